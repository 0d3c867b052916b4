"""Acts about a round that somebody doubts: holds, disputes, corrections."""

from collections.abc import Mapping
from dataclasses import dataclass

from sabot_session.act_base import Act, D, F


@dataclass(frozen=True, slots=True)
class Hold(Act):
    """The cards of a round stay out of the tray until the floor releases them.

    ``round_id`` 0 is the newest round whose cards are not in the tray.
    """

    NAME = "hold"
    ROLES = (D, F)

    why: str = "held"
    round_id: int = 0


@dataclass(frozen=True, slots=True)
class Release(Act):
    """The floor releases the held cards of a pack."""

    NAME = "release"
    ROLES = (F,)

    pack_id: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class OpenDispute(Act):
    """Somebody says that the screen is wrong. ``round_id`` 0 is the newest round."""

    NAME = "open_dispute"
    ROLES = (D, F)

    why: str = "the screen is wrong"
    round_id: int = 0


@dataclass(frozen=True, slots=True)
class DecideDispute(Act):
    """The floor decides the dispute that a row opened, with surveillance's reference."""

    NAME = "decide_dispute"
    ROLES = (F,)

    row: int
    surveillance: str
    decision: str
    machine_wrong: bool


@dataclass(frozen=True, slots=True)
class ProposeCorrection(Act):
    """The dealer says what a finished round really was; the floor confirms it. None: it stays as it is."""

    NAME = "propose_correction"
    ROLES = (D,)

    round_id: int
    why: str
    wagers: Mapping[int, Mapping[str, int]] | None = None
    hands: Mapping[int, tuple[str, ...]] | None = None
    """By seat; seat 0 is the dealer."""


@dataclass(frozen=True, slots=True)
class ConfirmCorrection(Act):
    """The floor confirms the correction that a row proposed: it counts, and the old version is kept."""

    NAME = "confirm_correction"
    ROLES = (F,)

    row: int


@dataclass(frozen=True, slots=True)
class DeclineCorrection(Act):
    """The floor declines the correction that a row proposed."""

    NAME = "decline_correction"
    ROLES = (F,)

    row: int
    note: str = ""


ACTS: tuple[type[Act], ...] = (
    Hold, Release, OpenDispute, DecideDispute, ProposeCorrection, ConfirmCorrection, DeclineCorrection,
)  # fmt: skip
