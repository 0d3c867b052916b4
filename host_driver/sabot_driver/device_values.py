"""A device's answers as typed values with names: cards, states, sensors, wear.

The wire carries numbers. Every program that shows them to people needs the same names, so they are made here,
from the schema and its meanings. A number that this version does not know stays a number.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import TypeVar

from sabot_protocol.host.messages import (
    ClockQuality,
    Fault,
    RollerTimes,
    Sensor,
    SensorsAre,
    ShoeState,
    ShufflerState,
    StatusFlag,
    StatusReport,
    WearIs,
)
from sabot_protocol.meanings import MEMBERS
from sabot_protocol.meanings import WEAR as WEAR_MEANINGS
from sabot_protocol.schema import SENSORS, WEAR

RANKS = "A23456789TJQK"
SUITS = "SHDC"
DECK_FACES = len(RANKS) * len(SUITS)
ROLLERS = ("feed", "insert", "deal")
"""The rollers, in the order of every list of three on the wire."""
SECRET_STATES = (ShufflerState.FEEDING, ShufflerState.HOLDING, ShufflerState.STORING)
"""States in which the device does not tell the sensors that would reveal the order."""
DRIFT_LIMIT_PERMILLE = 50
"""The rollers' tolerance of the reference machine: 5 %. Beyond it a card's window is no longer right."""
_AT_REST = {Sensor.ELEVATOR: 1, Sensor.ELEVATOR_HOME: 1, Sensor.PUSHER_HOME: 1} | {
    Sensor[name.upper()]: level for name, _, half, level, _ in SENSORS if half
}
MemberT = TypeVar("MemberT", bound=IntEnum)


def member_or_number(kind: type[MemberT], number: int) -> MemberT | int:
    """The member with this number, or the number: a newer device may have more of them."""
    try:
        return kind(number)
    except ValueError:
        return number


def name_of(member: IntEnum | int) -> str:
    """A member's name as the schema writes it, such as ``stack_waiting``; an unknown number as digits."""
    return member.name.lower() if isinstance(member, IntEnum) else str(member)


def meaning_of(member: IntEnum | int) -> str:
    """What a member means, in words; its name or number if the schema has no words for it."""
    words = MEMBERS.get(f"{type(member).__name__}.{name_of(member)}")
    return name_of(member).replace("_", " ") if words is None else words


# -- cards --------------------------------------------------------------------------------------


def card_name(face: int) -> str | None:
    """The card of a face's number, such as ``KS`` for 12; None for a face that the reader did not read."""
    if not 0 <= face < DECK_FACES:
        return None
    return RANKS[face % len(RANKS)] + SUITS[face // len(RANKS)]


def card_names(faces: Iterable[int]) -> list[str | None]:
    """The cards of several faces, in their order."""
    return [card_name(each) for each in faces]


def face_number(card: str) -> int:
    """The number of a card's face: the inverse of ``card_name``; ValueError for what is no card's name."""
    if len(card) != 2 or card[0] not in RANKS or card[1] not in SUITS:
        raise ValueError(f"'{card}' is not the name of a card, such as KS or TD")
    return RANKS.index(card[0]) + len(RANKS) * SUITS.index(card[1])


# -- status -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """A status report with typed states."""

    shuffler: ShufflerState | int
    shoe: ShoeState | int
    fault: Fault | int | None
    """The fault that stops the machine; None if there is none."""
    round_id: int | None
    """The newest round; None if there was none."""
    stack: int | None
    """The stack of that round that was dealt last."""
    round_open: bool
    owned: bool
    """Whether a host owns the device."""
    clock: ClockQuality | int
    at: datetime | None
    """The device's time, UTC; None while its clock is not set."""
    uptime_s: int


def parse_status(report: StatusReport) -> DeviceStatus:
    """A status report with names instead of numbers."""
    return DeviceStatus(
        shuffler=member_or_number(ShufflerState, report.shuffler),
        shoe=member_or_number(ShoeState, report.shoe),
        fault=member_or_number(Fault, report.fault) if report.fault else None,
        round_id=report.round_id or None,
        stack=report.stack if report.round_id else None,
        round_open=bool(report.flags & StatusFlag.ROUND_OPEN),
        owned=bool(report.flags & StatusFlag.OWNED),
        clock=member_or_number(ClockQuality, report.clock),
        at=datetime.fromtimestamp(report.utc_s, UTC) if report.utc_s else None,
        uptime_s=report.uptime_s,
    )


# -- sensors ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SensorReading:
    """One sensor or switch."""

    sensor: Sensor
    level: bool | None
    """True: covered, closed, pressed, arrived. None while the device does not tell it."""
    at_rest: bool
    """Its level in an idle, empty machine with closed doors."""

    @property
    def name(self) -> str:
        """Its name in the schema, such as ``shoe_door``."""
        return name_of(self.sensor)

    @property
    def meaning(self) -> str:
        """What level 1 says."""
        return meaning_of(self.sensor)

    @property
    def is_at_rest(self) -> bool:
        """Whether its level is told and is the one of a machine at rest."""
        return self.level is not None and self.level == self.at_rest


@dataclass(frozen=True, slots=True)
class SensorReadings:
    """All sensors at one moment."""

    sensors: tuple[SensorReading, ...]
    height_um: int | None
    """The height of the stack in the chamber; None while the device does not tell it."""
    rollers_um: tuple[int | None, ...]
    """Encoders of ``ROLLERS``; None while the device does not tell them."""

    def __getitem__(self, sensor: Sensor) -> SensorReading:
        return self.sensors[sensor]


def parse_sensors(answer: SensorsAre, shuffler: ShufflerState | int) -> SensorReadings:
    """The sensors by name. ``shuffler`` is that half's state: in some the device hides what tells slots."""
    hidden = shuffler in SECRET_STATES
    secret = {Sensor[name.upper()] for name, _, _, _, tells in SENSORS if tells}
    readings = tuple(
        SensorReading(
            each,
            None if hidden and each in secret else bool(answer.levels >> each & 1),
            bool(_AT_REST.get(each, 0)),
        )
        for each in Sensor
    )
    rollers = tuple(
        None if hidden and name != "deal" else turned
        for name, turned in zip(ROLLERS, answer.rollers_um, strict=True)
    )
    return SensorReadings(readings, None if hidden else answer.height_um, rollers)


# -- wear ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WearReading:
    """One number that the machine keeps of its own wear."""

    name: str
    """Its name in the schema, such as ``jams_exit``; its place if this version does not know it."""
    value: int
    meaning: str
    unit: str
    """``ms``, ``permille``, or empty for a count."""

    @property
    def drift_permille(self) -> int | None:
        """How much slower (more than 0) or faster cards pass than drawn; None for what is no such average."""
        return self.value - 1000 if self.unit == "permille" and self.value else None

    @property
    def limit(self) -> tuple[int, int] | None:
        """The lowest and the highest value within the machine's tolerance; None where there is no limit."""
        if self.unit != "permille":
            return None
        return 1000 - DRIFT_LIMIT_PERMILLE, 1000 + DRIFT_LIMIT_PERMILLE

    @property
    def within_limit(self) -> bool:
        """Whether the value has no limit, is inside it, or was never measured (0)."""
        limit = self.limit
        return limit is None or not self.value or limit[0] <= self.value <= limit[1]


def parse_wear(answer: WearIs) -> list[WearReading]:
    """The wear counters by name, in the order of the schema."""
    return [_wear(at, value) for at, value in enumerate(answer.values)]


def _wear(at: int, value: int) -> WearReading:
    name = WEAR[at] if at < len(WEAR) else f"wear_{at}"
    unit = next((unit for unit in ("ms", "permille") if name.endswith("_" + unit)), "")
    return WearReading(name, value, WEAR_MEANINGS.get(name, "unknown to this version"), unit)


@dataclass(frozen=True, slots=True)
class RollerTiming:
    """How long cards took at one roller between two shuffles."""

    roller: str
    cards: int
    """Cards that were timed; none that needed help."""
    mean_ms: float | None
    """None without a card."""
    deviation_ms: float | None
    """The standard deviation; None for fewer than two cards."""


def parse_roller_times(event: RollerTimes) -> tuple[RollerTiming, ...]:
    """The event ``roller_times`` as mean and deviation of each roller."""
    sums = zip(ROLLERS, event.counts, event.sums, event.squares, strict=True)
    return tuple(_timing(*each) for each in sums)


def _timing(roller: str, cards: int, tenths: int, squares: int) -> RollerTiming:
    if not cards:
        return RollerTiming(roller, 0, None, None)
    mean = tenths / cards
    spread = max(squares / cards - mean * mean, 0.0) ** 0.5 / 10 if cards > 1 else None
    return RollerTiming(roller, cards, mean / 10, spread)
