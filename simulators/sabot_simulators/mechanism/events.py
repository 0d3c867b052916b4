"""Virtual time: what happens next, in microseconds, in the same order every time."""

import heapq
from collections.abc import Callable


class Agenda:
    """Things to happen at given times. Ties happen in the order they were put down."""

    def __init__(self) -> None:
        self.now_us = 0
        self._queue: list[tuple[int, int, Callable[[int], None], int]] = []
        self._order = 0

    def at(self, time_us: int, action: Callable[[int], None], argument: int = 0) -> None:
        """Call ``action(argument)`` at a time, which must not lie in the past."""
        self._order += 1
        heapq.heappush(self._queue, (time_us, self._order, action, argument))

    def next_us(self) -> int | None:
        """When the next thing happens, or None."""
        return self._queue[0][0] if self._queue else None

    def advance(self, to_us: int) -> None:
        """Let everything happen up to and including a time."""
        queue = self._queue
        while queue and queue[0][0] <= to_us:
            self.now_us, _, action, argument = heapq.heappop(queue)
            action(argument)
        self.now_us = to_us
