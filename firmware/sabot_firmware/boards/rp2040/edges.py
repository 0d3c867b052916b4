"""Edges, stamped in interrupts and queued in a ring of fixed size.

An interrupt allocates nothing. ``select.poll`` can wait for the ring, which is ready while it holds an edge,
so an interrupt ends the loop's wait. While the loop talks to a host for many milliseconds, the ring is
``eager``: it schedules a call that handles the edge between two steps of that talk.
"""

import io
from array import array

from machine import Pin
from micropython import schedule

from sabot_firmware.boards.rp2040.board_clock import now_us

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 64  # a power of two
_POLL = 3  # what ioctl is asked: is something there?
_READABLE = 1


def _nothing(_: object) -> None:
    """The handler while no edge needs to be handled at once."""


class EdgesLost(Exception):
    """More edges came than the ring holds, so what happened is unknown."""


class EdgeRing(io.IOBase):
    """Sensor numbers, levels and times, first in, first out."""

    def __init__(self) -> None:
        self._whats = bytearray(SIZE)  # sensor << 1 | level
        self._times = array("I", [0] * SIZE)
        self._head = 0  # where the next one goes; only interrupts change it
        self._tail = 0  # where the oldest is; only the loop changes it
        self.lost = 0
        self.eager = False  # whether ``on_edge`` is to be called soon after an edge
        self.on_edge: Callable[[object], None] = _nothing
        self.scheduled = False  # that is on its way; ``on_edge`` clears it
        self.sensor = 0  # what ``take`` took
        self.level = 0
        self.at_us = 0

    def put(self, what: int) -> None:
        """Queue an edge (sensor << 1 | level) with the present time; called in interrupts."""
        head = self._head
        after = (head + 1) & (SIZE - 1)
        if after == self._tail:
            self.lost += 1
            return
        self._times[head] = now_us()
        self._whats[head] = what
        self._head = after
        if self.eager and not self.scheduled:
            self.call()

    def call(self) -> None:
        """Schedule ``on_edge``."""
        self.scheduled = True
        schedule(self.on_edge, None)

    def take(self) -> bool:
        """Take the oldest edge into ``sensor``, ``level`` and ``at_us``; False if there is none."""
        tail = self._tail
        if tail == self._head:
            if self.lost:
                raise EdgesLost(self.lost)
            return False
        what = self._whats[tail]
        self.sensor = what >> 1
        self.level = what & 1
        self.at_us = self._times[tail]
        self._tail = (tail + 1) & (SIZE - 1)
        return True

    def next_sensor(self) -> int:
        """The sensor of the oldest edge; -1 if there is none."""
        tail = self._tail
        return self._whats[tail] >> 1 if tail != self._head else -1

    def ioctl(self, request: int, argument: int) -> int:
        """Answer ``select.poll``: whether an edge is queued."""
        if request == _POLL and self._head != self._tail:
            return argument & _READABLE
        return 0


def watch(ring: EdgeRing, sensor: int, number: int, one: int) -> Pin:
    """Queue a pin's edges as those of a sensor; ``one`` is the pin level that means 1."""
    pin = Pin(number, Pin.IN, Pin.PULL_DOWN if one else Pin.PULL_UP)
    pin.irq(_handler(ring, sensor << 1, pin, 1 - one), Pin.IRQ_RISING | Pin.IRQ_FALLING, hard=True)
    return pin


def _handler(ring: EdgeRing, what: int, pin: Pin, flip: int) -> "Callable[[Pin], None]":
    put = ring.put
    value = pin.value

    def handler(_: Pin) -> None:
        put(what | (value() ^ flip))

    return handler


def watch_interrupt(ring: EdgeRing, what: int, number: int) -> Pin:
    """Queue a value whenever a pin goes low."""
    pin = Pin(number, Pin.IN, Pin.PULL_UP)
    put = ring.put

    def handler(_: Pin) -> None:
        put(what)

    pin.irq(handler, Pin.IRQ_FALLING, hard=True)
    return pin
