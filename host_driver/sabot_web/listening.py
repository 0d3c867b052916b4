"""Listening sockets and the HTTP server behind them: names, TLS, bounds on what peers can fill."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from sabot_web.errors import NotServed, TlsRequired

LOOPBACK = "127.0.0.1"
LARGEST_HEAD = 16 * 1024
MOST_CONNECTIONS = 200
END_S = 3
HEAD_S = 10.0
KEEP_ALIVE_S = 20
"""Of a connection without a request. More than the 5 s of httpx: the side that sends must close first."""


def is_loopback(host: str) -> bool:
    """Whether only this computer reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Listener:
    """A bound socket with its scheme and the names under which browsers reach it."""

    def __init__(
        self,
        host: str,
        port: int,
        certificate: Path | None = None,
        private_key: Path | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        """Bind; port 0 takes any. ``names`` are further names of this computer.

        `TlsRequired` for an address beyond this computer without certificate and key; `NotServed` if the
        address cannot be used.
        """
        secure = certificate is not None and private_key is not None
        kind, address = _resolve(host, port)
        if not secure and not is_loopback(host):
            raise TlsRequired(f"other computers reach {host}")
        self.socket = _bind(host, port, kind, address)
        self.scheme = "https" if secure else "http"
        self.tls: dict[str, Any] = {"ssl_certfile": certificate, "ssl_keyfile": private_key}
        bound = self.socket.getsockname()[1]
        own = [host] if not is_loopback(host) else [host, "localhost", LOOPBACK]
        self.hosts = [f"{_bracketed(each)}:{bound}".lower() for each in dict.fromkeys([*own, *names])]
        """Every name with port."""
        if bound == (443 if secure else 80):
            self.hosts += [each.rpartition(":")[0] for each in self.hosts]

    @property
    def address(self) -> str:
        """The address for browsers."""
        return f"{self.scheme}://{self.hosts[0]}"

    def close(self) -> None:
        """Give the address free."""
        self.socket.close()


class WebServer(uvicorn.Server):
    """A server that ends its streams first: they would keep it from ending."""

    def __init__(self, config: uvicorn.Config, end_streams: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_streams = end_streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End every stream, then the server."""
        self._end_streams()
        await super().shutdown(sockets)


class ServerBeside(WebServer):
    """One of several servers in an event loop. It takes no signals; the caller takes them for all of them.

    A server that takes signals raises them again when it ends. The event loop would then cancel the others.
    """

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take no signals."""
        yield

    def taking_signals(self) -> AbstractContextManager[None]:
        """A signal ends this server; it is raised again when the context ends."""
        return super().capture_signals()


class PromptProtocol(H11Protocol):
    """HTTP/1.1 in which a request's head comes soon: uvicorn alone waits for it without end.

    Connections are bounded, so whoever opens many and sends nothing would keep every page out. Only a head
    has a deadline; a connection between two requests has uvicorn's own, so no request meets a closed door.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A peer has connected."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Something of a request has come."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:  # not yet a whole head
            self._await_head()
        else:
            self._end_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._end_deadline()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_S, self.transport.close)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def server_config(app: Starlette, tls: dict[str, Any]) -> uvicorn.Config:
    """How an application is served: what peers can fill is bounded."""
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        http=PromptProtocol,
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=END_S,
        **tls,
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    """The family and the address of a host's name."""
    try:
        kind, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise NotServed(f"{host}: {why or error}", "Name an address of this computer.") from error
    return kind, address


def _bind(host: str, port: int, kind: socket.AddressFamily, address: Any) -> socket.socket:
    made = socket.socket(kind, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen()  # before the address is told: the system keeps connections until the server takes them
    except OSError as error:
        made.close()
        raise NotServed(f"{host}:{port}: {error.strerror or error}") from error
    return made
