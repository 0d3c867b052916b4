"""Clocks of our own programs, hours apart, although they are tasks of one process.

While `shifted_clocks` is entered, ``time.time`` and ``time.time_ns`` add the shift of the running task. Tasks
and threads (`asyncio.to_thread`) inherit it from where they were started. Monotonic clocks are not shifted.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import ParamSpec, TypeVar

_shift_s: ContextVar[int] = ContextVar("shift_s", default=0)
P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def shifted_clocks() -> Iterator[None]:
    """Let every clock of this process show the shift of its task."""
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + _shift_s.get()
    time.time_ns = lambda: real_ns() + _shift_s.get() * 1_000_000_000
    try:
        yield
    finally:
        time.time, time.time_ns = real, real_ns


def with_shift(shift_s: int, do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call something with a shifted clock; tasks that it starts keep the shift."""

    def shifted() -> T:
        _shift_s.set(shift_s)
        return do(*args, **kwargs)

    return copy_context().run(shifted)
