"""One reader of the session for all pages of a table."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from sabot_session.asyncio_session import AsyncSession
from sabot_web.view_channels import BEAT_S, LEAST_S, ViewChannels


class ViewStream(ViewChannels):
    """The views of one session. Run it as a task; read it from routes of the same event loop."""

    def __init__(self, session: AsyncSession) -> None:
        super().__init__()
        self._session = session
        self._added: dict[str, Any] = {}

    async def run(self) -> None:
        """Follow the session until this task is cancelled. What ends the session is raised here."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow())
                tasks.create_task(self._watch())
        finally:
            self.close()

    async def _follow(self) -> None:
        async for change in self._session.changes():
            next_s = time.monotonic() + LEAST_S
            self.heard()
            self.publish({**self.snapshot, **change.parts, **self._added})
            await asyncio.sleep(max(0.0, next_s - time.monotonic()))

    async def _watch(self) -> None:
        """Notice a session that no longer answers: nothing else comes while nothing changes."""
        while True:
            await self._session.read(lambda session: session.cursor)
            self.heard()
            await asyncio.sleep(BEAT_S / 2)

    def add(self, name: str, part: Mapping[str, Any]) -> None:
        """Put something beside the session's snapshot, under a name that no part of it has."""
        self._added[name] = part
        if self.snapshot:
            self.publish({**self.snapshot, **self._added})
