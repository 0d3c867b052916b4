"""The service's API on a Unix socket, for a table that is played at a terminal: other programs attach to it.

The socket is in a folder that only its owner may enter, and has the mode 0600 before it listens. Whoever
connects must show the local token all the same.
"""

import asyncio
import contextlib
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from sabot_driver.private_files import MODE, make_folder
from sabot_serve.app import Served, TableApp
from sabot_serve.local_api import Owned
from sabot_serve.service_file import UNIX, UNIX_HOST
from sabot_serve.table_people import Register
from sabot_session.asyncio_session import AsyncSession
from sabot_session.rows import Record
from sabot_table.procedure import TableRole
from sabot_web.errors import NotServed
from sabot_web.listening import WebServer, server_config

NAME = "service.sock"
LONGEST_PATH = 100  # sun_path has 104 bytes on some systems, 108 on Linux
JOIN_S = 10.0


class LocalService:
    """Serves a table's API on a socket, in a thread; use it as a context manager."""

    def __init__(
        self,
        session: AsyncSession,
        people: Register,
        record: Record,
        folder: Path,
        owned: Owned,
        simulated: Callable[[TableRole], object] | None = None,
    ) -> None:
        """Listen in a folder, or in a private one with a shorter path; `NotServed` if that cannot be."""
        self._made: Path | None = None
        self._socket, self.path = self._bind(folder)
        self.address = f"{UNIX}{self.path}"
        served = Served(session, people, record, [UNIX_HOST], owned=owned, simulated=simulated)
        self.app = TableApp(served)
        self._server = WebServer(server_config(self.app.asgi, {}), self.app.views.close)
        self._thread = threading.Thread(target=self._run, name="sabot-local-service", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(JOIN_S)
        self._socket.close()
        self.path.unlink(missing_ok=True)
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)

    def _run(self) -> None:
        asyncio.run(self._server.serve([self._socket]))

    def _bind(self, folder: Path) -> tuple[socket.socket, Path]:
        path = folder / NAME
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            make_folder(folder)
            if len(os.fsencode(path)) > LONGEST_PATH:
                self._made = Path(tempfile.mkdtemp(prefix="sabot-"))  # mode 0700
                path = self._made / NAME
            with contextlib.suppress(FileNotFoundError):
                path.unlink()  # of a process that was killed: whoever calls this holds the table's lock
            made.bind(str(path))
            path.chmod(MODE)  # before it listens: nobody can connect until then
            made.listen()
        except OSError as error:
            made.close()
            raise NotServed(f"{path}: {error}", "Check the rights of the folder.") from error
        return made, path
