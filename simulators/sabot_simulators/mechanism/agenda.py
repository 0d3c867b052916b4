"""Virtual time: what happens next, in microseconds, in the same order every time."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")
NEVER_US = 1 << 62


class Agenda:
    """Things to happen at given times. Ties happen in the order they were put down.

    Nothing is ever removed. An action whose reason is gone must notice that itself when its time comes.
    """

    def __init__(self) -> None:
        self.now_us = 0
        self._queue: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self._order = count()
        self.noticed = False
        """Set when the firmware must be given something, such as an edge; ``run`` stops there."""

    def at(self, time_us: int, action: Callable[[T], None], argument: T) -> None:
        """Call ``action(argument)`` at a time, which must not lie in the past."""
        heappush(self._queue, (time_us, next(self._order), action, argument))

    def after(self, wait_us: int, action: Callable[[T], None], argument: T) -> None:
        """Call ``action(argument)`` after a time."""
        heappush(self._queue, (self.now_us + wait_us, next(self._order), action, argument))

    def next_us(self) -> int | None:
        """When the next thing happens, or None."""
        return self._queue[0][0] if self._queue else None

    def advance(self, to_us: int) -> None:
        """Let everything happen up to and including a time."""
        queue = self._queue
        while queue and queue[0][0] <= to_us:
            self.now_us, _, action, argument = heappop(queue)
            action(argument)
        self.now_us = to_us

    def run(self, until_us: int | None) -> bool:
        """Let things happen until one is noticed, at most to a time; False if nothing is left to happen.

        What nobody could notice needs no step of the firmware: this is the quick way through it.
        """
        queue = self._queue
        self.noticed = False
        latest_us = NEVER_US if until_us is None else until_us
        while queue and queue[0][0] <= latest_us:
            self.now_us, _, action, argument = heappop(queue)
            action(argument)
            if self.noticed:
                latest_us = self.now_us  # what happens at the same time is noticed with it
        if self.noticed:
            return True
        if until_us is None:
            return False
        self.now_us = until_us
        return True
