"""How programs of this computer find the process that runs a table: a lock and ``service.json``.

The lock is held while the process runs the table, and the system releases it however the process ends. So a
file without a lock is stale. The file holds a token for local programs; only the owner can read it.
"""

import json
import os
import sqlite3
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from sabot_driver.held_files import FileHeld, hold
from sabot_driver.private_files import make_folder, open_new, sync_folder
from sabot_serve.errors import ServiceFileFailed, ServiceRunning

VERSION = 1
NAME = "service.json"
UNIX = "unix:"
"""What the address of a service on a Unix socket begins with; the path of the socket follows."""
UNIX_HOST = "table"
"""The host that requests over such a socket name."""


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Where a service listens, and what lets a program of this computer in."""

    address: str  # such as http://127.0.0.1:8470, or unix:/… for a socket
    pid: int
    token: str
    version: int = VERSION
    certificate: str = ""
    """The certificate that it shows, a file; "" without TLS."""

    def __repr__(self) -> str:
        return f"ServiceAddress({self.address!r}, pid={self.pid})"


class ServiceFile:
    """The lock and the file of one table's service; use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        """Take the lock; `ServiceRunning` if another process has it."""
        self.path = folder / NAME
        try:
            make_folder(folder)
            self._lock = hold(self.path)
        except FileHeld as error:
            raise ServiceRunning(f"{folder.name}: {error} runs this table") from error
        except (sqlite3.Error, OSError) as error:
            raise ServiceFileFailed(f"{self.path}: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def publish(self, address: str, token: str, certificate: Path | None = None) -> None:
        """Tell programs of this computer where the service listens."""
        shown = "" if certificate is None else str(certificate.resolve())
        text = json.dumps(asdict(ServiceAddress(address, os.getpid(), token, certificate=shown)))
        new = self.path.with_name(NAME + ".new")
        try:
            with open_new(new) as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
            sync_folder(self.path.parent)
        except OSError as error:
            raise ServiceFileFailed(f"{self.path}: {error}") from error

    def close(self) -> None:
        """Remove the file, then release the lock: nobody finds an address that nobody serves."""
        self.path.unlink(missing_ok=True)
        self._lock.close()


def find_service(folder: Path) -> ServiceAddress | None:
    """The service of the table whose files are in a folder; None if none runs."""
    path = folder / NAME
    if not path.exists():
        return None
    try:
        hold(path).close()
    except FileHeld:
        pass
    except (sqlite3.Error, OSError) as error:
        raise ServiceFileFailed(f"{path}: {error}") from error
    else:
        return None  # whoever wrote the file has ended
    try:
        read = json.loads(path.read_bytes())
        version = int(read["version"])
        address, token = str(read["address"]), str(read["token"])
        return ServiceAddress(address, int(read["pid"]), token, version, str(read.get("certificate", "")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ServiceFileFailed(f"{path}: {error}") from error
