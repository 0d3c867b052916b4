"""The file with the first key of a device's event chain. It goes to the regulator; the table PC keeps none.

Who has this key can check the tags of the chain, and can forge them (docs/evidence.md).
"""

import contextlib
import json
import os
from pathlib import Path
from types import TracebackType

from sabot_driver.errors import SabotError
from sabot_driver.private_files import MODE, sync_folder
from sabot_protocol.host.messages import ChainKeyIs

FORMAT = "sabot chain key 1"


class ChainKeyFileRefused(SabotError, ValueError):
    """The first key of an event chain must not, or cannot, be written to this path."""

    advice = "Name a new file on a medium that leaves this computer, for example the regulator's USB stick."


class ChainKeyFile:
    """A new file for the key, made before the device is asked for it; empty files do not stay.

    ``with ChainKeyFile(path, folders) as file: file.write(serial, answer)``
    """

    def __init__(self, path: Path, table_folders: tuple[Path, ...]) -> None:
        """ChainKeyFileRefused if the file exists, cannot be made or would be in a folder of the table."""
        self.path = path
        real = path.parent.resolve() / path.name
        for folder in table_folders:
            if real.is_relative_to(folder.resolve()):
                raise ChainKeyFileRefused(f"{path} is in {folder}: the table's PC must not keep this key")
        try:
            handle = os.open(real, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), MODE)
        except FileExistsError:
            raise ChainKeyFileRefused(f"{path} exists: a key is never written over another file") from None
        except OSError as error:
            raise ChainKeyFileRefused(f"{path} cannot be made: {error}") from error
        self._real = real
        self._file = os.fdopen(handle, "wb")
        self._written = False

    def __enter__(self) -> "ChainKeyFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if not self._written:
            with contextlib.suppress(OSError):
                self._real.unlink()

    def write(self, serial: bytes, answer: ChainKeyIs) -> None:
        """Write the key of this device's chain; it is on disk when this returns. OSError if that fails."""
        text = {
            "format": FORMAT,
            "serial": serial.hex(),
            "begun": {"boot_id": answer.boot_id, "n": answer.n},
            "hash": answer.hash.hex(),
            "key": answer.wrapped.hex(),
        }
        self._file.write(json.dumps(text).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        sync_folder(self._real.parent)
        self._written = True
