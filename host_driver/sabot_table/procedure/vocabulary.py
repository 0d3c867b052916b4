"""What comes to a table and what it asks for: people's actions, a device's events, orders. Plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sabot_table.cards import Card
from sabot_table.settlement import CardSource


class TableRole(StrEnum):
    """Who does something at the table."""

    DEALER = "dealer"
    FLOOR = "floor"
    PLAYER = "player"
    DEVICE = "device"
    CONTROLLER = "controller"  # of the progressive meters


@dataclass(frozen=True, slots=True)
class Attribution:
    """Who did something, as what, and when (UTC seconds)."""

    who: str
    role: TableRole
    at_s: int


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody or something must do now: the device, the dealer, the progressive controller."""

    do: str
    details: Mapping[str, object] = field(default_factory=dict)


class DeviceUnit(StrEnum):
    """The two halves of a device."""

    SHUFFLER = "shuffler"
    SHOE = "shoe"


class Verdict(StrEnum):
    """What the count of a round's stacks and stub says (MD3 8.F, 10.C)."""

    CORRECT = "correct"
    MISDEALT = "misdealt"
    CARD_MISSING = "card_missing"
    CARD_EXTRA = "card_extra"


# -- what a device tells -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Identified:
    """Which model it is, and the versions of its components."""

    model: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ShuffleStarted:
    """It shuffles a pack."""

    pack: int


@dataclass(frozen=True, slots=True)
class ShuffleFinished:
    """It has shuffled a pack and does not count."""

    pack: int


@dataclass(frozen=True, slots=True)
class PackCounted:
    """It has shuffled a pack and counted it."""

    pack: int
    count: int


@dataclass(frozen=True, slots=True)
class PackLoaded:
    """It moved a pack into its shoe."""

    pack: int


@dataclass(frozen=True, slots=True)
class PackDelivered:
    """It brought a whole shuffled pack out, to be cut and laid in: the pack's turn is used from then on."""

    pack: int


@dataclass(frozen=True, slots=True)
class StackDispensed:
    """A stack came out of the shoe."""

    round_id: int
    stack: int
    cards: int


@dataclass(frozen=True, slots=True)
class CardDispensed:
    """One card of mini baccarat came out of the shoe: one of the first four, or a third card."""

    round_id: int
    card: int
    draw: int = 0
    """Which draw of the device's it was, from 1; 0 where nobody counts them."""


@dataclass(frozen=True, slots=True)
class CardAside:
    """A card of mini baccarat came out that goes to no hand now: seen, or drawn in error."""

    round_id: int
    draw: int


@dataclass(frozen=True, slots=True)
class CoverCardSeen:
    """A cover card came out of the shoe."""


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """The stub came out and all was counted."""

    round_id: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class RoundVoided:
    """It cannot finish the round: ``reason`` is its own name for why."""

    round_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class UnitFailed:
    """One of its halves cannot be used."""

    unit: DeviceUnit


@dataclass(frozen=True, slots=True)
class CardsRead:
    """What its exit reader saw, told after the reveal: stacks in order; in mini Player and Banker."""

    round_id: int
    stacks: tuple[tuple[Card, ...], ...]
    source: CardSource = CardSource.READER


@dataclass(frozen=True, slots=True)
class ThirdCardRead:
    """The face of a third card of mini baccarat, which lies open."""

    round_id: int
    to: str
    card: Card


DeviceEvent = (
    Identified | ShuffleStarted | ShuffleFinished | PackCounted | PackLoaded | PackDelivered | StackDispensed
    | RoundEnded | CardDispensed | CardAside | CoverCardSeen | RoundVoided | UnitFailed | CardsRead
    | ThirdCardRead
)  # fmt: skip
