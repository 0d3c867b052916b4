"""Who acts at a table, and what the procedure asks of people and of the device. Plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sabot_table.rule_texts import RemovalReason, TableRole

__all__ = ["Attribution", "DeviceUnit", "Order", "RemovalReason", "TableRole", "Verdict"]


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
