"""The files of a table, for who compares them with something else."""

from pathlib import Path
from typing import Protocol

EVERY_ROW = 2**62
"""No file has so many rows."""


class TableFiles(Protocol):
    """A table whose files can be read."""

    @property
    def name(self) -> str:
        """The table."""

    @property
    def journal_path(self) -> Path:
        """Its journal."""

    @property
    def record_path(self) -> Path:
        """Its record."""
