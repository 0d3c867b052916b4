"""Device keys on disk, one file a device, readable by its owner only."""

import contextlib
import os
import stat
import threading
from pathlib import Path

from sabot_driver.errors import KeyExposed, KeyMissing
from sabot_driver.serials import to_text
from sabot_protocol.session import KEY_SIZE


class Keyring:
    """A folder with a file for each device: 64 hexadecimal digits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, serial: bytes, simulator: bool = False) -> Path:
        """Where a device's key is kept. A simulator's is never in the place of a real device's."""
        return self.folder / f"{to_text(serial)}{'.simulator' if simulator else ''}.key"

    def find(self, serial: bytes, simulator: bool = False) -> bytes | None:
        """A device's key, None if there is none; KeyExposed if others can read it."""
        path = self.path(serial, simulator)
        return read_key(path) if path.exists() else None

    def keep(self, serial: bytes, key: bytes, simulator: bool = False) -> Path:
        """Put a device's key into its file, replacing an older one; nobody else can read it at any moment."""
        path = self.path(serial, simulator)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_key(path, key)
        return path


def write_key(path: Path, key: bytes) -> None:
    """Write a key file that only its owner can read; of two who write it at once, one wins whole."""
    new = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(key.hex() + "\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def read_key(path: Path) -> bytes:
    """The key in a file; KeyExposed if others can read it, KeyMissing if it holds none."""
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise KeyMissing(f"{path}: {error}") from error
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise KeyExposed(f"{path}: others than its owner can read this key")
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_SIZE:
        raise KeyMissing(f"{path}: not a key of {KEY_SIZE} bytes in hexadecimal")
    return key
