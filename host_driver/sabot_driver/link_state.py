"""What a client tells of itself and of its device: plain values, shared by the core and its shells."""

import enum
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from sabot_driver.errors import SabotError


class LinkState(enum.Enum):
    """How things stand between this client and its device."""

    DOWN = "down"
    """No cable; it is tried again by itself."""
    PROVING = "proving"
    """A cable is there, the device has not yet proved itself."""
    UP = "up"
    """The device takes requests."""
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the driver says of itself: link up or down, a reboot, a journal that cannot be written."""

    kind: str
    """``up``, ``down``, ``rebooted``, ``journal_failed``, ``journal_works``, ``step_not_allowed``,
    ``clock_not_set``, ``driver_failed``, ``subscriber_failed``."""
    text: str
    error: SabotError | None = None


@dataclass(frozen=True, slots=True)
class Peer:
    """The device as it proved itself in the running session."""

    serial: bytes
    boot_id: int
    memory_id: bytes
    version: tuple[int, int]
    limited: bool
    owner: bool
    flags: int
    """Bits of ``IdentityFlag``; proved, unlike those of ``Client.identity``."""


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """How a request ended: settle its future with one of the two, outside of any lock."""

    future: "Future[Any]"
    answer: Any = None
    error: SabotError | None = None
