"""A TCP proxy between a site's programs and one server, whose network can be cut."""

import asyncio
import contextlib

from sabot_simulators.free_port import free_port

CHUNK = 64 * 1024


class CutNetwork:
    """Forwards connections to a port of this computer until it is cut; cut, it resets them and takes none."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.port = free_port()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def join(self) -> None:
        """Forward from now on."""
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self.port)

    async def cut(self) -> None:
        """Reset every connection and refuse new ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for each in list(self._open):
            each.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.transport.abort()
            self._open.discard(writer)
            return
        self._open.add(to_writer)
        try:
            await asyncio.gather(_copy(reader, to_writer), _copy(to_reader, writer))
        finally:
            for each in (writer, to_writer):
                each.transport.abort()
                self._open.discard(each)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()
