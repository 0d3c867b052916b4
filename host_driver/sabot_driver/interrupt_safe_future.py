"""A future that stays usable when Ctrl-C interrupts a thread that waits for it."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class _Condition(threading.Condition):
    """A condition whose ``__enter__`` and ``__exit__`` are its lock's own.

    A condition's own methods are Python code. Ctrl-C within them would leave the lock held, and the next
    thread would wait for ever.
    """

    @property
    def __enter__(self) -> Callable[[], Any]:
        lock: threading.RLock = self._lock  # type: ignore[attr-defined]
        return lock.__enter__

    @property
    def __exit__(self) -> Callable[..., None]:
        lock: threading.RLock = self._lock  # type: ignore[attr-defined]
        return lock.__exit__


class InterruptSafeFuture(Future[T]):
    """An answer that will come. A thread that is interrupted while it waits blocks no other thread."""

    def __init__(self) -> None:
        super().__init__()
        self._condition = _Condition()
