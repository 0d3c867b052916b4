"""Futures that an interruption cannot break."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class _Condition(threading.Condition):
    """A condition entered and left by its lock's own ways.

    A condition's own ways in and out are Python: Ctrl-C on them would leave the lock held by a thread that
    does not know it, and whoever comes next would wait for ever.
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
    """An answer that will come. Who waits for it and is interrupted holds up nobody else."""

    def __init__(self) -> None:
        super().__init__()
        self._condition = _Condition()
