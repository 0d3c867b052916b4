"""A session for asyncio programs: the threaded session, with calls that do not block the event loop."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from sabot_session.acts import Act
from sabot_session.needs import Need
from sabot_session.outcomes import ActDone
from sabot_session.session import TableSession
from sabot_session.snapshot import Changes
from sabot_session.threaded_session import ThreadedSession

WAIT_S = 1.0


class AsyncSession:
    """Calls a `ThreadedSession` from an event loop. It does not close it."""

    def __init__(self, threaded: ThreadedSession) -> None:
        self._threaded = threaded

    async def act(self, act_id: str, need_id: str | None, seen: int, credential: object, act: Act) -> ActDone:
        """Give an act; see `TableSession.act`."""
        return await asyncio.to_thread(self._threaded.act, act_id, need_id, seen, credential, act)

    async def needs(self) -> list[Need]:
        """What must happen now."""
        return await asyncio.to_thread(self._threaded.needs)

    async def read(self, look: Callable[[TableSession], Any]) -> Any:
        """Look at the session while nothing changes it."""
        return await asyncio.to_thread(self._threaded.read, look)

    async def changes(self, after: str | None = None) -> AsyncIterator[Changes]:
        """The whole snapshot first, or what changed since a cursor; then each change, until it is closed.

        A reader that is slow gets several changes as one, and a whole snapshot if it is far behind.
        """
        ended = threading.Event()
        try:
            while True:
                found = await asyncio.to_thread(self._threaded.wait_changes, after, WAIT_S, ended)
                if found is not None:
                    yield found
                    after = found.cursor
        finally:
            self._threaded.end_wait(ended)  # else the event loop could not end before time is up
