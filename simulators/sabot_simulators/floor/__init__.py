"""An emulated floor: servers of this computer, tables whose rows are written or played (docs/floor.md)."""
