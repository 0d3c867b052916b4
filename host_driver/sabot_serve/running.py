"""Runs a table's web application on a socket until it is told to end."""

import asyncio
from pathlib import Path

from sabot_serve.app import Served, TableApp
from sabot_serve.local_api import Owned
from sabot_serve.players_app import players_app
from sabot_serve.table_people import Register
from sabot_session.asyncio_session import AsyncSession
from sabot_session.rows import Record
from sabot_web.free_memory import give_back_always
from sabot_web.listening import LOOPBACK, Listener, ServerBeside, server_config

PORT = 8470


class TableService:
    """The service of one table: a listening socket and the application behind it."""

    def __init__(
        self,
        session: AsyncSession,
        people: Register,
        record: Record,
        *,
        host: str = LOOPBACK,
        port: int = PORT,
        certificate: Path | None = None,
        private_key: Path | None = None,
        names: tuple[str, ...] = (),
        browsers: Path | None = None,
        players_port: int | None = None,
        owned: Owned | None = None,
    ) -> None:
        """Bind the socket; port 0 takes any. ``names`` are further names under which browsers reach it.

        ``browsers`` is the file that keeps those that were let in. ``players_port`` is the players'
        display's own listener. ``owned`` is what programs of this computer may ask about.

        `TlsRequired` for an address beyond this computer without certificate and key; `NotServed` if the
        address cannot be used.
        """
        self._listener = Listener(host, port, certificate, private_key, names)
        self.address = self._listener.address
        hosts, scheme = self._listener.hosts, self._listener.scheme
        served = Served(session, people, record, hosts, scheme, browsers, self.stop, owned)
        self.app = TableApp(served)
        config = server_config(self.app.asgi, self._listener.tls)
        self._server = ServerBeside(config, self.app.views.close)
        self.players_address = ""
        """Where the players' display is; "" if there is none."""
        self._players: tuple[ServerBeside, Listener] | None = None
        if players_port is not None:
            listening = Listener(host, players_port, certificate, private_key, names)
            display = players_app(self.app.views, listening.hosts, listening.scheme)
            self.players_address = listening.address
            config = server_config(display, listening.tls)
            self._players = ServerBeside(config, self.app.views.close), listening

    def run(self) -> None:
        """Serve until `stop`, a signal, or the end of the session."""
        try:
            asyncio.run(self._run())
        finally:
            self._listener.close()
            if self._players is not None:
                self._players[1].close()

    async def _run(self) -> None:
        with self._server.taking_signals():
            async with asyncio.TaskGroup() as tasks:
                gives_back = tasks.create_task(give_back_always())
                if self._players is not None:
                    server, listening = self._players
                    tasks.create_task(server.serve([listening.socket]))
                await self._server.serve([self._listener.socket])
                gives_back.cancel()
                if self._players is not None:
                    self._players[0].should_exit = True

    def stop(self) -> None:
        """End soon; from any thread."""
        self._server.should_exit = True
        if self._players is not None:
            self._players[0].should_exit = True

    @property
    def started(self) -> bool:
        """Whether it answers."""
        return self._server.started
