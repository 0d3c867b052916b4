"""Runs the wall's web application on a socket until it is told to end."""

import asyncio
import time
from pathlib import Path

from sabot_floor.connection import Servers
from sabot_floor.wall.archive_reader import ArchiveReader
from sabot_floor.wall.wall_app import ServedWall, WallApp
from sabot_floor.wall.wall_feed import WallFeed
from sabot_floor.wall.wall_model import JudgedFloor, WallModel, WallSettings
from sabot_session.people import PeopleRegister
from sabot_web.free_memory import give_back_always
from sabot_web.listening import LOOPBACK, Listener, WebServer, server_config

PORT = 8480


class WallService:
    """The wall of one site: a listening socket, the application behind it, and the feed of the floor."""

    def __init__(
        self,
        servers: Servers,
        site: str,
        people: PeopleRegister,
        archive: ArchiveReader | None = None,
        *,
        host: str = LOOPBACK,
        port: int = PORT,
        certificate: Path | None = None,
        private_key: Path | None = None,
        names: tuple[str, ...] = (),
        browsers: Path | None = None,
        settings: WallSettings | None = None,
    ) -> None:
        """Bind the socket; port 0 takes any. `TlsRequired` and `NotServed` as `Listener` raises them."""
        self._listener = Listener(host, port, certificate, private_key, names)
        self.address = self._listener.address
        self.model = WallModel(settings, time.monotonic())
        self.feed = WallFeed(servers, site, self.model, self._shown)
        listener = self._listener
        self.app = WallApp(
            ServedWall(self.feed, site, people, archive, listener.hosts, listener.scheme, browsers)
        )
        self._server = WebServer(server_config(self.app.asgi, listener.tls), self.app.views.close)

    def _shown(self, floor: JudgedFloor) -> None:
        self.app.shown(floor)

    def run(self) -> None:
        """Serve until `stop` or a signal."""
        try:
            asyncio.run(self._run())
        finally:
            self._listener.close()

    async def _run(self) -> None:
        gives_back = asyncio.create_task(give_back_always())
        await self._server.serve([self._listener.socket])
        gives_back.cancel()

    def stop(self) -> None:
        """End soon; from any thread."""
        self._server.should_exit = True

    @property
    def started(self) -> bool:
        """Whether it answers."""
        return self._server.started
