"""Which rows the fault table has: every fault at the first, middle and last card of every phase, and pairs.

A pair is sampled: one fault in each half while both work, or a second fault while people put right what the
first one led to. The sample is always the same, and each fault is in it.
"""

from random import Random

from tests.machine.fault_cycle import (
    AT_ONCE,
    FIRST,
    IDLE,
    LAST,
    LASTS_US,
    LOAD,
    MIDDLE,
    MIDDLE_STACK,
    ONCE,
    PHASES,
    RECOVERY,
    SHELF,
    SHUFFLE,
    STUB,
    TRANSFER,
    Row,
    passing,
)

from sabot_simulators.mechanism.fault_effects import CARD_KINDS
from sabot_simulators.mechanism.faults import KINDS

EACH = (FIRST, MIDDLE, LAST)
NAMES = tuple(f"{kind}@{place}" for kind, (_, places) in KINDS.items() for place in places)

# Faults that hide each other, or that make each other worse, at the same moment
COMBINATIONS = (
    "missing_card@tray + extra_card@tray",
    "missing_card@tray + duplicate_card@tray",
    "missing_card@store + extra_card@store",
    "missing_card@shoe + extra_card@shoe",
    "aligned_double@shoe + extra_card@shoe",
    "door_opened@shuffler + missing_card@store",
    "corrupted_record@controller + power_cut@controller",
)

# Of which half a fault's place is; the rest concerns both
OF_THE_SHUFFLER = (
    "tray", "entry", "insertion", "chamber", "feed", "insert", "elevator", "gripper", "shelf", "shuffler",
)  # fmt: skip
OF_THE_SHOE = ("pusher", "shoe", "deal", "exit", "exit_tray")

# A phase in which a fault of a place finds its occasion, for pairs
OCCASION = {
    **dict.fromkeys(OF_THE_SHUFFLER, SHUFFLE),
    **dict.fromkeys(OF_THE_SHOE, STUB),
    "shelf": SHELF,
    "pusher": TRANSFER,
    "store": IDLE,
    "controller": SHUFFLE,
    "exit_tray": MIDDLE_STACK,
}
IN_EACH_HALF = 6  # pairs for each fault of the shuffler half
IN_RECOVERY = 4  # pairs for each fault


def cards(name: str, phase: str) -> tuple[str, ...]:
    """At which cards of a phase a fault is played; once where that makes no difference."""
    kind, _, place = name.partition(" + ")[0].partition("@")
    if kind == "stack_not_taken" or name.startswith("door_opened@shuffler + "):
        return (ONCE,)
    if kind in CARD_KINDS:
        lies = phase in (LOAD, SHUFFLE) if place == "tray" else True
        return EACH if lies else (ONCE,)
    if passing(place, phase) or (phase in LASTS_US and kind in AT_ONCE):
        return EACH
    return (ONCE,)


def single_rows() -> list[Row]:
    """Every fault alone, and those that come together."""
    every = [(name,) for name in NAMES] + [tuple(each.split(" + ")) for each in COMBINATIONS]
    return [
        Row(faults, phase, card)
        for faults in every
        for phase in PHASES
        for card in cards(" + ".join(faults), phase)
    ]


def pair_rows() -> list[Row]:
    """The sample of pairs."""
    return list(dict.fromkeys(_in_each_half() + _in_recovery()))


def _in_each_half() -> list[Row]:
    """A fault of the shuffler half and one of the shoe half, while a deck is fed and the other is dealt."""
    shuffler = [name for name in NAMES if _place(name) in OF_THE_SHUFFLER]
    shoe = [name for name in NAMES if _place(name) in OF_THE_SHOE and _place(name) != "pusher"]
    random = Random(14)
    found = []
    for turn in range(IN_EACH_HALF):
        random.shuffle(shoe)
        for number, name in enumerate(shuffler):
            other = shoe[(number + turn) % len(shoe)]
            phase = SHELF if _place(name) == "shelf" else SHUFFLE
            card, other_card = random.choice(cards(name, phase)), random.choice(cards(other, phase))
            found.append(Row((name,), phase, card, other, phase, other_card))
    return found


def _in_recovery() -> list[Row]:
    """Any fault, and any other while people put right what the first one led to."""
    random = Random(41)
    names = list(NAMES)
    found = []
    for turn in range(IN_RECOVERY):
        random.shuffle(names)
        for number, name in enumerate(names):
            other = names[number - 1 - turn]
            phase = OCCASION[_place(name)]
            card = random.choice(cards(name, phase))
            found.append(Row((name,), phase, card, other, RECOVERY, random.choice(EACH)))
    return found


def _place(name: str) -> str:
    return name.partition("@")[2]


def rows() -> list[Row]:
    """Every row of the table."""
    return single_rows() + pair_rows()
