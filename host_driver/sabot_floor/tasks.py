"""Ending tasks for certain: until Python 3.12 `asyncio.wait_for` can swallow a cancellation (bpo-37658)."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

AGAIN_S = 0.2


async def end_tasks(tasks: Iterable["asyncio.Future[Any]"]) -> None:
    """Cancel tasks until each has ended; a cancellation that a library swallowed is repeated."""
    left = {each for each in tasks if not each.done()}
    while left:
        for each in left:
            each.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_S)


async def run_until_closed(closed: asyncio.Event, *parts: Coroutine[Any, Any, None]) -> None:
    """Run parts until one of them fails or the connection has ended; the first error is raised."""
    running = [asyncio.ensure_future(each) for each in (closed.wait(), *parts)]
    for each in running:
        each.add_done_callback(_take_error)  # also if this task is cancelled again while it ends them
    try:
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        await end_tasks(running)


def _take_error(ended: "asyncio.Future[Any]") -> None:
    """Told once is enough: asyncio logs an error that nobody looks at."""
    if not ended.cancelled():
        ended.exception()
