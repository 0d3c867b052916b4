"""Runs a table's web application on a socket until it is told to end."""

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from sabot_serve.app import Served, TableApp
from sabot_serve.errors import NotServed, TlsRequired
from sabot_serve.local_api import Owned
from sabot_serve.players_app import players_app
from sabot_serve.table_people import Register
from sabot_session.asyncio_session import AsyncSession
from sabot_session.rows import Record

log = logging.getLogger("sabot.serve")
LOOPBACK = "127.0.0.1"
PORT = 8470
LARGEST_HEAD = 16 * 1024
MOST_CONNECTIONS = 200
END_S = 3
HEAD_S = 10.0


def is_loopback(host: str) -> bool:
    """Whether only this computer reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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
        tls = certificate is not None and private_key is not None
        if not tls and not is_loopback(host):
            raise TlsRequired(f"other computers reach {host}")
        self._socket = _bind(host, port)
        self._scheme = "https" if tls else "http"
        hosts = self._names(host, self._socket, names)
        self.address = f"{self._scheme}://{hosts[0]}"
        served = Served(session, people, record, hosts, self._scheme, browsers, self.stop, owned)
        self.app = TableApp(served)
        config = {"ssl_certfile": certificate, "ssl_keyfile": private_key}
        self._server = TableServer(server_config(self.app.asgi, config), self.app.views.close)
        self.players_address = ""
        """Where the players' display is; "" if there is none."""
        self._players: tuple[TableServer, socket.socket] | None = None
        if players_port is not None:
            listening = _bind(host, players_port)
            shown_at = self._names(host, listening, names)
            display = players_app(self.app.views, shown_at, self._scheme)
            self.players_address = f"{self._scheme}://{shown_at[0]}"
            self._players = _SecondServer(server_config(display, config), self.app.views.close), listening

    def _names(self, host: str, at: socket.socket, names: tuple[str, ...]) -> list[str]:
        """Every name with port under which browsers may reach a socket."""
        port = at.getsockname()[1]
        own = [host] if not is_loopback(host) else [host, "localhost", LOOPBACK]
        hosts = [f"{_bracketed(each)}:{port}".lower() for each in dict.fromkeys([*own, *names])]
        if port == (443 if self._scheme == "https" else 80):
            hosts += [each.rpartition(":")[0] for each in hosts]
        return hosts

    def run(self) -> None:
        """Serve until `stop`, a signal, or the end of the session."""
        try:
            asyncio.run(self._run())
        finally:
            self._socket.close()
            if self._players is not None:
                self._players[1].close()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            if self._players is not None:
                server, listening = self._players
                tasks.create_task(server.serve([listening]))
            await self._server.serve([self._socket])
            if self._players is not None:
                self._players[0].should_exit = True

    def stop(self) -> None:
        """End soon; from any thread."""
        self._server.should_exit = True

    @property
    def started(self) -> bool:
        """Whether it answers."""
        return self._server.started


class TableServer(uvicorn.Server):
    """A server that ends its streams first: they would keep it from ending."""

    def __init__(self, config: uvicorn.Config, end_streams: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_streams = end_streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End every stream, then the server."""
        self._end_streams()
        await super().shutdown(sockets)


class _SecondServer(TableServer):
    """A server that ends with the first one: only that one takes signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class PromptProtocol(H11Protocol):
    """HTTP/1.1 in which a request's head comes soon: uvicorn alone waits for it without end.

    Connections are bounded, so whoever opens many and sends nothing would keep every page out.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A peer has connected."""
        super().connection_made(transport)
        self._look = self.loop.call_later(HEAD_S, self._end_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._look.cancel()
        super().connection_lost(exc)

    def _end_if_idle(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:  # a request is being answered
            self._look = self.loop.call_later(HEAD_S, self._end_if_idle)


def server_config(app: Starlette, tls: dict[str, Any]) -> uvicorn.Config:
    """How a table's application is served: what peers can fill is bounded."""
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        http=PromptProtocol,
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        timeout_graceful_shutdown=END_S,
        **tls,
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _bind(host: str, port: int) -> socket.socket:
    made = None
    try:
        kind, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(kind, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        if made is not None:
            made.close()
        raise NotServed(f"{host}:{port}: {error.strerror or error}") from error
    return made
