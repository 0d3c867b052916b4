"""The memory chips of an emulated device in a file, so that it remembers over restarts of its program.

The file has critical memory, the log with its evidence, the mark and the house record, as the chips hold
them, and which decks the simulated people have. Cards are not in it: when the device starts again, the
machine is empty and the people hold all decks, as if somebody had emptied the machine while the power was
off. The file holds the device's keys: only its owner can read it.
"""

import base64
import json
import os
import zlib
from pathlib import Path
from typing import Any

from sabot_driver.private_files import make_folder, open_new, sync_folder
from sabot_simulators.python_device import WiredPythonDevice

VERSION = 1
LATER = ("house", "evidence")  # chips that files of older programs do not have


class BadMemoryFile(Exception):
    """A file that holds no saved memory of this device; the text says why."""


def _packed(cells: bytearray) -> str:
    return base64.b64encode(zlib.compress(bytes(cells))).decode("ascii")


class MemoryFile:
    """One device's memory on disk. ``save`` replaces the file in one step, and only if something changed."""

    def __init__(self, path: Path, device: WiredPythonDevice) -> None:
        self.path = path
        self._device = device
        self._written = -1
        self.loaded = False
        """Whether the device was started with the memory of the file."""

    def load(self) -> None:
        """Start the device with the memory in the file, if there is one.

        BadMemoryFile if it cannot be read or is of another device.
        """
        try:
            text = self.path.read_text(encoding="ascii")
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            raise BadMemoryFile(f"{self.path}: {error}") from error
        try:
            self._restore(json.loads(text))
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            raise BadMemoryFile(f"{self.path} is no saved memory: {error!r}") from error
        self.loaded = True

    def _restore(self, saved: dict[str, Any]) -> None:
        if saved["version"] != VERSION:
            raise ValueError(f"version {saved['version']}")
        if saved["serial"] != self._device.serial.hex():
            raise BadMemoryFile(
                f"{self.path} is the memory of another device; name another file, or --serial"
            )
        cells = {name: zlib.decompress(base64.b64decode(each)) for name, each in saved["chips"].items()}
        for name, chip in self._device.chips().items():
            if name in LATER and name not in cells:
                continue  # an older file
            if len(cells[name]) != len(chip.cells):
                raise ValueError(f"the size of {name}")
            chip.cells[:] = cells[name]
        self._device.reboot()
        if self._device.people is not None:
            backs = {int(deck_id): back for deck_id, back in saved["decks"].items()}
            self._device.people.hold_decks(backs, saved["cards"])

    def save(self) -> None:
        """Write the memory to the file if a chip was written since the last time; on the device's thread."""
        chips = self._device.chips()
        written = sum(chip.writes for chip in chips.values())
        if written == self._written:
            return
        people = self._device.people
        saved = {
            "version": VERSION,
            "serial": self._device.serial.hex(),
            "chips": {name: _packed(chip.cells) for name, chip in chips.items()},
            "decks": {} if people is None else people.decks(),
            "cards": 52 if people is None else people.cards_of_a_deck,
        }
        make_folder(self.path.parent)
        new = self.path.with_name(self.path.name + ".new")
        with open_new(new) as file:
            file.write(json.dumps(saved).encode("ascii"))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)
        sync_folder(self.path.parent)
        self._written = written
