"""What can go wrong in the mechanism, by name.

A fault is planned as ``NAME[@PLACE][:CARD]``, the same in tests and on a command line:
``double_feed@tray:17`` is the 17th card drawn from the tray bringing the next one along;
``stuck@insertion:3`` is the third card stopping there. Without a card it is the first one that comes;
without a place, the first of the table.
"""

from dataclasses import dataclass
from random import Random

from sabot_firmware import figures

# Each kind: what happens, and where it can (the first place is meant if none is given).
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "misfeed": ("the roller draws no card until it has been started anew twice", ("tray", "shoe")),
    "double_feed": ("the next card comes along, a little behind", ("tray", "shoe")),
    "aligned_double": ("the next card comes along, exactly under it", ("tray", "shoe")),
    "slip": ("the card moves at half the roller's speed", ("tray", "shoe")),
    "stuck": ("the card stops and goes no further", ("entry", "insertion", "chamber", "deal", "exit")),
    "grip_slip": ("the gripper takes one card too many", ("chamber",)),
    "lost_steps": ("the elevator is a card's thickness lower than its steps say, from then on", ("chamber",)),
    "dead_sensor": ("the sensor says the same for ever", ("entry", "insertion", "exit")),
    "stall": ("the roller does not turn", ("feed", "insert", "deal")),
}

# Where a card's leading edge is when it sticks at a place.
STUCK_AT_UM = {
    "entry": figures.ENTRY_UM + 20_000,
    "insertion": figures.INSERTION_UM + 40_000,
    "chamber": figures.INSERTED_UM - 10_000,
    "deal": figures.EXIT_UM - 10_000,
    "exit": figures.EXIT_UM + 40_000,
}
SOURCES = {"entry": "tray", "insertion": "tray", "chamber": "tray", "deal": "shoe", "exit": "shoe"}
MISFED_TURNS = 2  # how often the roller must be started anew
OVERHANG_UM = (8_000, 40_000)


class UnknownFault(ValueError):
    """A fault that is not in the table; the text says which ones are."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One planned fault."""

    kind: str
    place: str
    card: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Fault":
        """Read ``NAME[@PLACE][:CARD]``."""
        head, _, number = text.partition(":")
        kind, _, place = head.partition("@")
        if kind not in KINDS:
            raise UnknownFault(f"no fault is called '{kind}'; there are {', '.join(sorted(KINDS))}")
        places = KINDS[kind][1]
        if place and place not in places:
            raise UnknownFault(f"'{kind}' cannot happen at '{place}', only at {', '.join(places)}")
        if number and (not number.isdecimal() or number == "0"):
            raise UnknownFault(f"'{number}' is not the number of a card, counted from 1")
        return cls(kind, place or places[0], int(number) if number else None)

    def __str__(self) -> str:
        return f"{self.kind}@{self.place}" + (f":{self.card}" if self.card else "")


class Plan:
    """The faults of one run, each of which happens once."""

    def __init__(self, faults: tuple[Fault, ...], random: Random) -> None:
        self._waiting = list(faults)
        self.random = random
        self.happened: list[Fault] = []

    def strikes(self, kind: str, place: str, card: int) -> bool:
        """Whether this fault happens to the so-and-so-many-th card here and now; it is used up then."""
        for fault in self._waiting:
            if fault.kind == kind and fault.place == place and fault.card in (None, card):
                self._waiting.remove(fault)
                self.happened.append(fault)
                return True
        return False

    def stuck_place(self, source: str, card: int) -> str | None:
        """Where a card that comes from a source will stick, if anywhere."""
        for place, comes_from in SOURCES.items():
            if comes_from == source and self.strikes("stuck", place, card):
                return place
        return None
