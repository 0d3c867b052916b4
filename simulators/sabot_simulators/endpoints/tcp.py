"""A TCP port that leads to an emulated device: every connection is a cable of its own."""

import socket

from sabot_simulators.endpoints.device_server import Unplugged


class SocketCable:
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._fileno = connection.fileno()

    def fileno(self) -> int | None:
        """The socket."""
        return self._fileno

    def take(self, most: int) -> bytes:
        """Bytes that arrived; Unplugged when the host has closed the connection."""
        try:
            data = self._socket.recv(most)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise Unplugged(str(error)) from error
        if not data:
            raise Unplugged("the host has closed the connection")
        return data

    def give(self, data: bytes) -> int:
        """Send what there is room for now; how many bytes that was."""
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:  # the next take says so
            return len(data)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class TcpListener:
    """Listens on one address; port 0 takes a free one."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._socket = socket.create_server((host, port))
        self._socket.setblocking(False)
        self.host, self.port = self._socket.getsockname()[:2]
        self.unplugged = False
        """While set, every host is refused."""

    @property
    def url(self) -> str:
        """The URL for pyserial."""
        return f"socket://{self.host}:{self.port}"

    def fileno(self) -> int:
        """The listening socket."""
        return self._socket.fileno()

    def accept(self) -> SocketCable | None:
        """The cable of a host that has connected, or None."""
        try:
            connection, _ = self._socket.accept()
        except BlockingIOError:
            return None
        if self.unplugged:
            connection.close()
            return None
        return SocketCable(connection)

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()
