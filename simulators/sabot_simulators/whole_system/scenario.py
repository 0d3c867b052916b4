"""What one seed stands for: how long, whose clocks begin where, and every trouble with its time.

A scenario is plain data. The same scenario gives the same run, and one with fewer troubles is still one, so
that a failure can be shrunk.
"""

from dataclasses import dataclass
from random import Random

from sabot_simulators.mechanism.faults import KINDS, PlannedFault

MINUTES = 30
DAY_S = 86_400
WEEKS_EVERY = 40  # each so-and-so-many-th seed leaves the device alone for weeks
SESSION_EVERY = 3  # each so-and-so-many-th seed has a table that people run through the session
FIRST_S = 60  # the table has been opened by then, mostly
MOST_FAULTS = 6
TROUBLES = (4, 14)
CARDS_A_MINUTE = 40
WRAPS_US = (1 << 30, 1 << 32, 1000 << 29, 1000 << 30)
"""Where counters of the board wrap, or where the difference of two times changes its sign: 2**30 and 2**32
microseconds, 2**29 and 2**30 milliseconds."""
WRAPS_MS = (1 << 29, 1 << 30)

TROUBLE_KINDS: dict[str, tuple[float, float]] = {
    # How long each lasts, in seconds
    "cable_pulled": (0.05, 120),
    "cable_loses": (5, 120),
    "cable_damages": (5, 120),
    "cable_repeats": (5, 120),
    "cable_slow": (5, 60),
    "attacker_noise": (1, 60),
    "attacker_replays": (1, 60),
    "program_killed": (0.5, 60),
    "program_stopped": (1, 60),
    "computer_loses_power": (5, 90),
    "computer_loses_power_in_a_write": (5, 90),
    "computer_clock": (10, 600),
    "disk_slow": (5, 90),
    "disk_full": (5, 120),
    "disk_fails": (0.5, 30),
    "disk_locked": (0.5, 40),
    "power_cut": (0.1, 60),
    "power_cut_in_a_record": (0.1, 30),
    "observer_pulled": (1, 60),
}
CLOCK_JUMPS_S = (-86_400, -3_600, -30, 45, 3_000, 40_000)


@dataclass(frozen=True, order=True)
class Trouble:
    """One trouble: when, what, how long, and a number that its kind explains."""

    at_s: float
    kind: str
    lasts_s: float
    amount: int = 0

    def __str__(self) -> str:
        return f"{self.at_s:.1f} s: {self.kind} for {self.lasts_s:.1f} s"


@dataclass(frozen=True)
class Scenario:
    """Everything that a run depends on."""

    seed: int
    minutes: int = MINUTES
    ticks_from_us: int = 0
    """Where the board's counter begins."""
    pc_ticks_from_ms: int = 0
    """Where the table PC's counter begins."""
    faults: tuple[PlannedFault, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    days_alone: float = 0.0
    """How long no host is attached, in the middle."""
    observer: bool = False
    session: bool = False
    """Whether people run the table through the session, with its record on the table PC's disk."""

    def parts(self) -> list[PlannedFault | Trouble]:
        """What can be left out."""
        return [*self.faults, *self.troubles]


def draw(seed: int, minutes: int = MINUTES, weeks: bool | None = None) -> Scenario:
    """The scenario of a seed."""
    random = Random(f"{seed}/scenario")
    seconds = minutes * 60
    before_us = random.randrange(10, seconds) * 1_000_000
    wrap_us = random.choice(WRAPS_US)
    wrap_ms = random.choice(WRAPS_MS)
    pc_before_ms = random.randrange(10, seconds) * 1000
    faults = tuple(_fault(random, seconds) for _ in range(random.randrange(MOST_FAULTS + 1)))
    troubles = sorted(_trouble(random, seconds) for _ in range(random.randint(*TROUBLES)))
    alone = seed % WEEKS_EVERY == 0 if weeks is None else weeks
    return Scenario(
        seed,
        minutes,
        wrap_us - before_us,
        wrap_ms - pc_before_ms,
        faults,
        tuple(troubles),
        random.uniform(7, 15) if alone else 0.0,
        random.random() < 0.5,
        seed % SESSION_EVERY == 0,
    )


def _fault(random: Random, seconds: int) -> PlannedFault:
    kind = random.choice(sorted(KINDS))
    place = random.choice(KINDS[kind][1])
    if place == "controller" or kind == "door_opened":
        return PlannedFault(kind, place, seconds=round(random.uniform(FIRST_S, seconds), 3))
    return PlannedFault(kind, place, card=random.randrange(1, max(seconds // 60 * CARDS_A_MINUTE, 2)))


def _trouble(random: Random, seconds: int) -> Trouble:
    kind = random.choice(sorted(TROUBLE_KINDS))
    shortest, longest = TROUBLE_KINDS[kind]
    lasts_s = round(shortest * (longest / shortest) ** random.random(), 3)
    amount = random.choice(CLOCK_JUMPS_S) if kind == "computer_clock" else random.randrange(1, 120)
    return Trouble(round(random.uniform(FIRST_S / 2, seconds), 3), kind, lasts_s, amount)
