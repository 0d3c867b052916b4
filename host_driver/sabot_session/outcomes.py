"""What becomes of acts and of requests to the device: results and errors."""

from dataclasses import dataclass
from typing import Any

from sabot_driver.errors import SabotError
from sabot_protocol.host.message_base import Message, Request


class ActRefused(SabotError):
    """An act that is not accepted: nothing was recorded, and nothing has changed."""

    advice = "Look at what the table needs now."


class NeedGone(ActRefused):
    """The need was met before; ``by`` is the person who did, if the record tells."""

    def __init__(self, message: str, by: str = "") -> None:
        super().__init__(message)
        self.by = by


class StateChanged(ActRefused):
    """The need has changed since the person looked."""

    advice = "Look at the need again, then act."


class NotYours(ActRefused, PermissionError):
    """The act is not for this person's role, or the credential does not allow it."""

    advice = "Call the person whose act it is."


@dataclass(frozen=True, slots=True)
class ActDone:
    """What became of an act: the record's row. ``repeated``: it was accepted before."""

    row: int
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class DeviceCommand:
    """A request for the device; ``key`` authorises it where a person must."""

    id: int
    message: Request[Any]
    needs_key: bool
    key: Any = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The device executed a request. ``message`` is None if only its ledger told so."""

    message: Message | None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """A request was not executed, or its outcome is unknown (``unknown``)."""

    error: SabotError | None = None
    number: int = 0
    unknown: bool = False
