"""Runs a table's web application on a socket until it is told to end."""

import ipaddress
import logging
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from sabot_serve.app import Served, TableApp
from sabot_serve.errors import NotServed, TlsRequired
from sabot_serve.table_people import Register
from sabot_session.asyncio_session import AsyncSession

log = logging.getLogger("sabot.serve")
LOOPBACK = "127.0.0.1"
PORT = 8470
LARGEST_HEAD = 16 * 1024
MOST_CONNECTIONS = 200
END_S = 3


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
        *,
        host: str = LOOPBACK,
        port: int = PORT,
        certificate: Path | None = None,
        private_key: Path | None = None,
        names: tuple[str, ...] = (),
        browsers: Path | None = None,
    ) -> None:
        """Bind the socket; port 0 takes any. ``names`` are further names under which browsers reach it.

        ``browsers`` is the file that keeps those that were let in.
        `TlsRequired` for an address beyond this computer without certificate and key; `NotServed` if the
        address cannot be used.
        """
        tls = certificate is not None and private_key is not None
        if not tls and not is_loopback(host):
            raise TlsRequired(f"other computers reach {host}")
        self._socket = _bind(host, port)
        port = self._socket.getsockname()[1]
        scheme = "https" if tls else "http"
        own = [host] if not is_loopback(host) else [host, "localhost", LOOPBACK]
        hosts = [f"{_bracketed(each)}:{port}".lower() for each in dict.fromkeys([*own, *names])]
        if port == (443 if tls else 80):
            hosts += [each.rpartition(":")[0] for each in hosts]
        self.address = f"{scheme}://{hosts[0]}"
        self.app = TableApp(Served(session, people, hosts, scheme, browsers, self.stop))
        self._server = _Server(
            uvicorn.Config(
                self.app.asgi,
                log_config=None,
                access_log=False,
                server_header=False,
                ws="none",
                limit_concurrency=MOST_CONNECTIONS,
                h11_max_incomplete_event_size=LARGEST_HEAD,
                timeout_graceful_shutdown=END_S,
                ssl_certfile=certificate,
                ssl_keyfile=private_key,
            ),
            self.app.views.close,
        )

    def run(self) -> None:
        """Serve until `stop`, a signal, or the end of the session."""
        try:
            self._server.run([self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        """End soon; from any thread."""
        self._server.should_exit = True

    @property
    def started(self) -> bool:
        """Whether it answers."""
        return self._server.started


class _Server(uvicorn.Server):
    """A server that ends its streams first: they would keep it from ending."""

    def __init__(self, config: uvicorn.Config, end_streams: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_streams = end_streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._end_streams()
        await super().shutdown(sockets)


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
