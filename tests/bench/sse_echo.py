"""The reference for pages: a bare Starlette application that sends each line of its input to every reader."""

import asyncio
import sys
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route


class Echo:
    """The newest line, and who waits for the next."""

    def __init__(self) -> None:
        self._line = b""
        self._changed = asyncio.Event()

    async def read_input(self) -> None:
        """Take lines until the input ends."""
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            self._line = line.strip()
            self._changed.set()
            self._changed = asyncio.Event()

    async def _lines(self) -> AsyncIterator[bytes]:
        while True:
            changed = self._changed
            yield b'data: {"number": %s}\n\n' % (self._line or b"0")
            await changed.wait()

    async def events(self, request: Request) -> StreamingResponse:
        """The stream."""
        return StreamingResponse(self._lines(), media_type="text/event-stream")


async def main(port: int) -> None:
    """Serve until the input ends."""
    echo = Echo()
    app = Starlette(routes=[Route("/events", echo.events)])
    config = uvicorn.Config(app, port=port, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    await echo.read_input()
    server.should_exit = True
    await serving


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
