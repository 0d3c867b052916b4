"""What can go wrong, by name, and when.

A fault is planned as ``NAME[@PLACE][:CARD | ~PROBABILITY | +SECONDS]``, the same in tests and on a command
line: ``double_feed@tray:17`` is the 17th card drawn from the tray bringing the next one along;
``misfeed@shoe~0.01`` is one occasion in a hundred, again and again; ``door_opened@shoe+30`` is half a minute
after the machine was switched on. Without any of them it is the first occasion; without a place, the first
of the table. Cards are counted from 1 since the machine was made, at the place or on its way there: what is
planned for a card that offers no occasion happens at the next one that does.
"""

import re
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from sabot_firmware import machine_constants
from sabot_simulators.mechanism.agenda import Agenda
from sabot_simulators.mechanism.physical_cards import PhysicalCard

EDGE_SENSORS = ("entry", "insertion", "exit")
PRESENCE_SENSORS = ("tray", "chamber", "store", "shoe", "exit_tray")

# Each kind: what happens, and where it can (the first place is meant if none is given).
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    # Cards on their way
    "misfeed": ("the roller draws no card until it has been started anew twice", ("tray", "shoe")),
    "double_feed": ("the next card comes along, a little behind", ("tray", "shoe")),
    "aligned_double": ("the next card comes along, exactly under it", ("tray", "shoe")),
    "slip": ("the card moves at half the roller's speed", ("tray", "shoe")),
    "snag": (
        "the card catches and comes free when its roller is backed up once",
        ("entry", "insertion", "chamber"),
    ),
    "stuck": ("the card stops and goes no further", ("entry", "insertion", "chamber", "deal", "exit")),
    # Cards as they are
    "bent_card": ("a card lies up to its thickness too high, and may snag", ("tray", "shoe")),
    "missing_card": ("a card is taken away unseen", ("tray", "store", "shoe")),
    "extra_card": ("a card of the same back is added unseen", ("tray", "store", "shoe")),
    "other_deck_card": ("a card is exchanged for one of the other deck", ("tray", "store", "shoe")),
    "face_up_card": ("a card lies face up", ("tray", "store", "shoe")),
    "cover_card": ("a cover card was left in the stack", ("tray",)),
    "duplicate_card": ("a second copy of a card follows it", ("tray",)),
    # Sensors and switches
    "dirty_sensor": ("the sensor reads covered for 60 ms with nothing there", EDGE_SENSORS),
    "dead_sensor": ("the sensor says the same for ever", EDGE_SENSORS + PRESENCE_SENSORS),
    "chattering_sensor": (
        "every edge bounces several times within 1 ms, from then on",
        EDGE_SENSORS + PRESENCE_SENSORS,
    ),
    "missed_switch": (
        "the switch does not say that the move has arrived, from then on",
        ("elevator", "gripper", "shelf", "pusher"),
    ),
    # Movers
    "lost_steps": ("the elevator is a card's thickness lower than its steps say, until homed", ("chamber",)),
    "grip_slip": ("the gripper takes one card too many or too few", ("chamber",)),
    "motor_stall": (
        "the roller stands still, from then on; its driver says so after 20 ms",
        ("feed", "insert", "deal"),
    ),
    # People
    "door_opened": ("somebody opens the door and leaves it open", ("shuffler", "shoe")),
    "stack_not_taken": ("nobody takes the stack when it is time to", ("exit_tray",)),
    "stack_taken_early": ("a hand takes what has landed, whatever is to come", ("exit_tray",)),
    "hand_in_exit": ("a hand lays the cards taken last, or any card, into the exit tray", ("exit_tray",)),
    # The board
    "over_temperature": ("a motor is too warm for a minute", ("controller",)),
    "brown_out": ("the supply is low for 200 ms", ("controller",)),
    "power_cut": ("the power fails", ("controller",)),
    "stuck_noise": ("the ring oscillator's bit stands still, from then on", ("controller",)),
    "torn_record": ("a record was only half written", ("controller",)),
    "corrupted_record": ("a record is not what was written", ("controller",)),
    "wrong_clock": ("the clock is wrong", ("controller",)),
    "unknown_clock": ("the clock does not know the time", ("controller",)),
}

# These happen to memory and clock, which belong to whoever runs the firmware.
BOARD_KINDS = ("torn_record", "corrupted_record", "wrong_clock", "unknown_clock")

# Where a card's leading edge is when it catches at a place.
STUCK_AT_UM = {
    "entry": machine_constants.ENTRY_UM + 20_000,
    "insertion": machine_constants.INSERTION_UM + 40_000,
    "chamber": machine_constants.INSERTED_UM - 19_000,  # past the insertion sensor, still held by its roller
    "deal": machine_constants.EXIT_UM - 10_000,
    "exit": machine_constants.EXIT_UM + 40_000,
}
ON_THE_WAY = {"tray": ("entry", "insertion", "chamber"), "shoe": ("deal", "exit")}
# Whose cards are counted for a place.
COUNTED_AT = {
    **dict.fromkeys(("tray", "entry", "insertion", "feed", "shuffler"), ("tray",)),
    **dict.fromkeys(("chamber", "insert", "elevator", "gripper", "shelf", "store"), ("chamber",)),
    **dict.fromkeys(("shoe", "deal", "exit", "pusher"), ("shoe",)),
    "exit_tray": ("exit_tray",),
    "controller": ("tray", "shoe"),
}
MISFED_TURNS = 2  # how often the roller must be started anew
OVERHANG_UM = (8_000, 40_000)


def faults_and_places() -> str:
    """Every fault as it is written, a line each, with what happens."""
    return "\n".join(f"  {kind}@{'|'.join(places)}: {what}" for kind, (what, places) in sorted(KINDS.items()))


_TEXT = re.compile(r"(?P<kind>[^@:~+]*)(?:@(?P<place>[^@:~+]*))?(?:(?P<mark>[:~+])(?P<value>.*))?")


class UnknownFault(ValueError):
    """A fault that is not in the table or not well written; the text says what there is."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One planned fault: at the first occasion, or at a card, by chance, or from a time on."""

    kind: str
    place: str
    card: int | None = None
    probability: float | None = None
    seconds: float | None = None

    @classmethod
    def parse(cls, text: str) -> "PlannedFault":
        """Read ``NAME[@PLACE][:CARD | ~PROBABILITY | +SECONDS]``."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise UnknownFault(f"'{text}' is not written as NAME[@PLACE][:CARD | ~PROBABILITY | +SECONDS]")
        kind, place, mark, value = found["kind"], found["place"], found["mark"], found["value"]
        if kind not in KINDS:
            known = faults_and_places()
            raise UnknownFault(f"no fault is called '{kind}'. Faults and their places:\n{known}")
        places = KINDS[kind][1]
        if place is None:
            place = places[0]
        elif place not in places:
            raise UnknownFault(f"'{kind}' cannot happen at '{place}', only at {', '.join(places)}")
        if mark == ":":
            if not value.isdecimal() or int(value) == 0:
                raise UnknownFault(f"'{value}' is not the number of a card, counted from 1")
            return cls(kind, place, card=int(value))
        if mark == "~":
            probability = _number(value)
            if probability is None or not 0 < probability <= 1:
                raise UnknownFault(f"'{value}' is not a probability above 0 and up to 1")
            return cls(kind, place, probability=probability)
        if mark == "+":
            seconds = _number(value)
            if seconds is None or not 0 <= seconds < 1e9:
                raise UnknownFault(f"'{value}' is not a time in seconds")
            return cls(kind, place, seconds=seconds)
        return cls(kind, place)

    def __str__(self) -> str:
        text = f"{self.kind}@{self.place}"
        if self.card is not None:
            return f"{text}:{self.card}"
        if self.probability is not None:
            return f"{text}~{_shortest(self.probability)}"
        if self.seconds is not None:
            return f"{text}+{_shortest(self.seconds)}"
        return text


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _shortest(number: float) -> str:
    return repr(float(number)).removesuffix(".0")


class FaultOccurrence(NamedTuple):
    """A fault that has happened, when, and to which cards if it was cards."""

    fault: PlannedFault
    at_us: int
    cards: tuple[PhysicalCard, ...] = ()
    """Cards taken, added, exchanged (the old one first), turned, bent, or drawn together."""

    @property
    def kind(self) -> str:
        """Its name."""
        return self.fault.kind

    @property
    def place(self) -> str:
        """Where it happened."""
        return self.fault.place


class FaultPlan:
    """The faults of one run. Each happens once, except those that happen by chance."""

    def __init__(self, agenda: Agenda, random: Random) -> None:
        self.armed = False
        """Whether any fault has ever been planned."""
        self.happened: list[FaultOccurrence] = []
        self.cards = {"tray": 0, "chamber": 0, "shoe": 0, "exit_tray": 0}
        """Cards drawn from the tray, come into the chamber, drawn from the shoe, landed in the exit tray."""
        self.waiting: dict[tuple[str, str], list[PlannedFault]] = {}
        """Those that can still happen, by kind and place. No list in it is empty."""
        self._agenda = agenda
        self._random = random

    def add(self, fault: PlannedFault) -> None:
        """Plan one more."""
        self.armed = True
        self.waiting.setdefault((fault.kind, fault.place), []).append(fault)

    def due(self, kind: str, place: str, card: int) -> PlannedFault | None:
        """The fault that this occasion, at the so-and-so-many-th card, brings about; it is used up then."""
        waiting = self.waiting.get((kind, place), [])
        for fault in waiting:
            if fault.probability is not None:
                if self._random.random() < fault.probability:
                    return fault
            elif fault.card is None or fault.card <= card:
                waiting.remove(fault)
                if not waiting:
                    del self.waiting[kind, place]
                return fault
        return None

    def due_at(self, kind: str, place: str, coming: int = 0) -> PlannedFault | None:
        """The same, at the card counted last at a place, or at one that is still coming."""
        if (kind, place) not in self.waiting:
            return None
        return self.due(kind, place, sum(self.cards[each] for each in COUNTED_AT[place]) + coming)

    def note(self, fault: PlannedFault, *cards: PhysicalCard) -> None:
        """It happens now, to these cards."""
        self.happened.append(FaultOccurrence(fault, self._agenda.now_us, cards))

    def strikes(self, kind: str, place: str, coming: int = 0, cards: tuple[PhysicalCard, ...] = ()) -> bool:
        """Whether a fault happens here and now, to these cards if to any."""
        if (kind, place) not in self.waiting:
            return False
        fault = self.due_at(kind, place, coming)
        if fault is not None:
            self.note(fault, *cards)
        return fault is not None
