"""Device keys on disk, one file a device, readable by its owner only."""

import contextlib
import os
import threading
from collections.abc import Callable, Collection
from pathlib import Path

from sabot_driver.errors import KeyExposed, KeyMissing
from sabot_driver.private_files import MODE, OTHERS, make_folder, sync_folder
from sabot_driver.serial_numbers import format_serial
from sabot_protocol.wire_constants import KEY_SIZE

SIMULATORS = "simulators"


class Keyring:
    """A folder with a file for each device: 64 hexadecimal digits. Simulators' keys have a folder apart."""

    def __init__(self, folder: Path, machines: Callable[[], Collection[str]] = tuple) -> None:
        """``machines`` gives the serial numbers of tables that have a machine, its key here or not."""
        self.folder = folder
        self._machines = machines

    def path(self, serial: bytes, simulator: bool = False) -> Path:
        """The file of a device's key. Simulators' keys are in a folder of their own."""
        folder = self.folder / SIMULATORS if simulator else self.folder
        return folder / f"{format_serial(serial)}.key"

    def is_machine(self, serial: bytes) -> bool:
        """Whether a machine with this serial number is known here, by a key or by a table's name."""
        name = format_serial(serial)
        return any(self.folder.glob(f"{name}.*")) or name in self._machines()

    def had_key(self, serial: bytes) -> bool:
        """Whether a machine with this serial number has proved a key to this computer or to its owner's."""
        return self.path(serial).exists() or self.observer_path(serial).exists()

    def find(self, serial: bytes, simulator: bool = False) -> bytes | None:
        """A device's key, None if there is none; KeyExposed if others can read it."""
        return _find(self.path(serial, simulator))

    def keep(self, serial: bytes, key: bytes, simulator: bool = False) -> Path:
        """Store a device's key, replacing an older one. Only its owner can ever read the file."""
        return write_key(self.path(serial, simulator), key)

    def observer_path(self, serial: bytes) -> Path:
        """The file of the key with which this host observes a device that it does not own."""
        return self.folder / f"{format_serial(serial)}.observer.key"

    def find_observers(self, serial: bytes) -> bytes | None:
        """The observers' key of a device, None if there is none here."""
        return _find(self.observer_path(serial))

    def next_path(self, serial: bytes, simulator: bool = False) -> Path:
        """The file of a device's new key until the device has confirmed it."""
        path = self.path(serial, simulator)
        return path.with_name(path.name + ".next")

    def find_next(self, serial: bytes, simulator: bool = False) -> bytes | None:
        """A new key that may or may not have reached the device, None if there is none."""
        return _find(self.next_path(serial, simulator))

    def keep_next(self, serial: bytes, key: bytes, simulator: bool = False) -> None:
        """Store a new key beside the old one, before it is sent to the device."""
        write_key(self.next_path(serial, simulator), key)

    def settle(self, serial: bytes, key: bytes, simulator: bool = False) -> None:
        """Keep the one of the two keys that the device has, and delete the other."""
        if self.find(serial, simulator) != key:
            self.keep(serial, key, simulator)
        self.next_path(serial, simulator).unlink(missing_ok=True)


def _find(path: Path) -> bytes | None:
    return read_key(path) if path.exists() else None


def write_key(path: Path, key: bytes, person: int = 0) -> Path:
    """Write a key file that only its owner can read, and return its path.

    The file is replaced in one step. When this returns, its contents and its name survive a power cut.
    """
    make_folder(path.parent)
    new = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    try:
        with os.fdopen(
            os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE), "w", encoding="ascii"
        ) as file:
            file.write(key.hex() + (f" {person}" if person else "") + "\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:  # a full disk: half a key must not stay behind under a name that nobody looks for
        new.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    return path


def read_key(path: Path) -> bytes:
    """The key in a file; KeyExposed if others can read the file, KeyMissing if it holds no key."""
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise KeyMissing(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise KeyMissing(f"{path}: not a key of {KEY_SIZE} bytes in hexadecimal") from error
    if os.name == "posix" and mode & OTHERS:
        raise KeyExposed(f"{path}: users other than its owner can read this key")
    try:
        key = bytes.fromhex(text.split()[0] if text else "")
    except ValueError:
        key = b""
    if len(key) != KEY_SIZE:
        raise KeyMissing(f"{path}: not a key of {KEY_SIZE} bytes in hexadecimal")
    return key


def read_person(path: Path) -> int:
    """The person's number behind the key in a file; 0 if there is none."""
    try:
        words = path.read_text(encoding="ascii").split()
        return int(words[1]) if len(words) > 1 else 0
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise KeyMissing(f"{path}: what follows the key is not a person's number: {error}") from error
