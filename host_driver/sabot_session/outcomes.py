"""Results and refusals of acts, and outcomes of requests to the device."""

from dataclasses import dataclass
from typing import Any

from sabot_driver.errors import SabotError
from sabot_protocol.host.message_base import Message, Request


class ActRefused(SabotError):
    """The session refuses an act. It recorded nothing, and its state is unchanged."""

    advice = "Look at what the table needs now."


class NeedGone(ActRefused):
    """The need no longer exists.

    ``by`` is the person who met it; "" if no act met it in this run of the program.
    """

    def __init__(self, message: str, by: str = "") -> None:
        super().__init__(message)
        self.by = by


class StateChanged(ActRefused):
    """Roles, acts or details of the need changed after the row that the person saw last."""

    advice = "Look at the need again, then act."


class NotYours(ActRefused, PermissionError):
    """No role of this person may give the act, or the act needs a credential and none was shown."""

    advice = "Call the person whose act it is."


class NoDealer(ActRefused):
    """A round cannot be opened while no dealer is signed in: what the machine senses is the dealer's."""

    advice = "A dealer signs in first."


@dataclass(frozen=True, slots=True)
class ActDone:
    """An act that was accepted, with the number of its first row. ``repeated``: an earlier call did it."""

    row: int
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class DeviceCommand:
    """A request for the device. With ``needs_key`` the device executes it only with a person's ``key``.

    ``key`` is None if an earlier run of the program took the act: no file holds the key.
    """

    id: int
    message: Request[Any]
    needs_key: bool
    key: Any = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The device executed a request. ``message`` is None if only the ledger told the outcome."""

    message: Message | None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """A request was not executed, or its outcome is unknown (``unknown``).

    ``error`` is the device's refusal; None if the request was not sent or got lost.
    """

    error: SabotError | None = None
    number: int = 0
    unknown: bool = False
