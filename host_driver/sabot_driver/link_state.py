"""Values that a client reports: the state of its link, notices, the device of the session."""

import enum
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from sabot_driver.errors import SabotError


class LinkState(enum.Enum):
    """The state of the link between this client and its device."""

    DOWN = "down"
    """No session; the driver tries to reconnect."""
    PROVING = "proving"
    """The port is open, and the handshake is not finished."""
    UP = "up"
    """The device takes requests."""
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Notice:
    """A change of the driver's state: link up or down, a reboot, a journal that cannot be written."""

    kind: str
    """``up``, ``down``, ``rebooted``, ``journal_failed``, ``journal_works``, ``step_not_allowed``,
    ``clock_not_set``, ``driver_failed``, ``subscriber_failed``."""
    text: str
    error: SabotError | None = None


@dataclass(frozen=True, slots=True)
class Peer:
    """The device as the handshake of the last session proved it."""

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
    """How a request ended. The shell completes its future without holding a lock."""

    future: "Future[Any]"
    answer: Any = None
    error: SabotError | None = None
