"""The machine in numbers: a shuffle against its bound, part by part, and how fast the emulation is.

The bound is what the reference machine's parts need for 52 cards if nothing ever waits: for each card the way
to its slot, grip, 110 ms of insertion, raising, release. Machine time is virtual: it is the same on every
computer. Rates and processor times are of this one.
"""

import time
from collections.abc import Iterator
from random import Random
from statistics import mean, median

from tests.bench.measure import Figure

from sabot_firmware import hardware, machine_constants, shoe
from sabot_simulators.dealer import Dealer
from sabot_simulators.mechanism.physical_cards import new_deck
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.python_device import PythonDevice

SHUFFLE = "a shuffle of 52, machine time"
EMULATION = "the emulated device, one process"
PARTS = ("the way to the slot", "grip", "insertion", "raising", "release", "height, and waiting for a card")
RAISE_US = machine_constants.travel_us(machine_constants.OPENING_UM)
INSERTION_US = machine_constants.INSERT_TRAVEL_UM  # one micrometre a microsecond
MOST_OF_BOUND = 1.15
LONGEST_SHUFFLE_S = 17.0
TIMES_REAL = 2000.0
MOST_FOR_416 = 9.0


class Timed(SimulatedMachine):
    """Notes when each order of an insertion is given, and how far the platform had to go."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.parts_us = [0] * len(PARTS)
        self.bound_us = [0] * len(PARTS)
        self._part = 5
        self._since_us: int | None = None
        self._at_um = 0

    def _enter(self, part: int) -> None:
        now = self.agenda.now_us
        if self._since_us is not None:
            self.parts_us[self._part] += now - self._since_us
        self._since_us, self._part = now, part

    def elevate(self, position_um: int) -> None:
        """The way to the slot, the opening, or raising again."""
        if self._part == 5:
            self._enter(0)
            self.bound_us[0] += machine_constants.travel_us(position_um - self._at_um)
        elif self._part == 1:
            self._enter(2)
            self.bound_us[2] += INSERTION_US
        else:
            self._enter(3)
            self.bound_us[3] += RAISE_US
        self._at_um = position_um
        super().elevate(position_um)

    def grip(self, closed: bool) -> None:
        """Close on the upper packet, or let it go."""
        self._enter(1 if closed else 4)
        self.bound_us[1 if closed else 4] += machine_constants.GRIP_US
        super().grip(closed)

    def measure(self) -> None:
        """The height, after a card is in."""
        if self._part == 4:
            self._enter(5)
        super().measure()

    def end(self) -> None:
        """The last card is in."""
        self._enter(5)


def shuffles(count: int) -> Iterator[Figure]:
    """The mean of so many shuffles against the bound, in all and part by part."""
    took_s, parts, bounds = [], [0] * len(PARTS), [0] * len(PARTS)
    for seed in range(count):
        random = Random(seed)
        machine = Timed(random)
        device = PythonDevice(machine, random.randrange)
        device.run_until_idle()
        device.command("register_deck", 1, hardware.RED, 1_800_000_000, role="floor")
        machine.load(new_deck(hardware.RED, random))
        device.run_until(lambda: True)
        device.command("shuffle", 1)
        began = machine.agenda.now_us
        reports = device.reports
        device.run_until(lambda reports=reports: "deck_counted" in [each[0] for each in reports])  # type: ignore[misc]
        machine.end()
        took_s.append((machine.agenda.now_us - began) / 1e6)
        parts = [sum(pair) for pair in zip(parts, machine.parts_us, strict=True)]
        bounds = [sum(pair) for pair in zip(bounds, machine.bound_us, strict=True)]
    bound_s = sum(bounds) / count / 1e6
    ratio = mean(took_s) / bound_s
    yield Figure(SHUFFLE, "all of it, s", mean(took_s), "the bound, s", bound_s, ratio, at_most=MOST_OF_BOUND)
    longest = max(took_s)
    yield Figure(
        SHUFFLE, "the longest of them, s", longest, "what it may take, s", LONGEST_SHUFFLE_S,
        longest / LONGEST_SHUFFLE_S, at_most=1.0,
    )  # fmt: skip
    for name, part, bound in zip(PARTS, parts, bounds, strict=True):
        own, other = part / count / 52_000, bound / count / 52_000
        if bound:
            yield Figure(SHUFFLE, f"{name}, ms a card", own, "the bound, ms a card", other, own / other)
        else:
            yield Figure(SHUFFLE, f"{name}, ms a card", own)


def rounds(count: int) -> Iterator[Figure]:
    """Rounds of the whole virtual device a second of processor time, and against the machine's own time.

    One process that never waits: on an idle machine a second of it is a second.
    """
    random = Random(1)
    machine = SimulatedMachine(random)
    dealer = Dealer(PythonDevice(machine, random.randrange))
    dealer.open_table()
    rates, ratios = [], []
    for _ in range(max(count // 10, 1)):
        machine_us, began = machine.agenda.now_us, time.process_time()
        for _ in range(10):
            dealer.play_round()
        took = time.process_time() - began
        rates.append(10 / took)
        ratios.append((machine.agenda.now_us - machine_us) / 1e6 / took)
    real = median(rates) / median(ratios)
    yield Figure(
        EMULATION, "rounds with their shuffles", median(rates), "a machine in real time", real,
        median(ratios), TIMES_REAL,
    )  # fmt: skip


def batch_shuffle(cards: int) -> float:
    """Processor time of one shuffle of so many cards."""
    random = Random(2)
    machine = SimulatedMachine(random, capacity="batch")
    device = PythonDevice(machine, random.randrange)
    device.run_until_idle()
    device.command("set_game", "batch", 3, cards // 52, 1, 24, role="floor")
    device.command("register_deck", 1, hardware.RED, 1_800_000_000, role="floor")
    machine.load(new_deck(hardware.RED, random, cards))
    device.run_until(lambda: True)
    device.command("shuffle", 1)
    began = time.process_time()
    device.run_until(lambda: "deck_counted" in [each[0] for each in device.reports])
    assert device.controller.shoe.state == shoe.EMPTY
    return time.process_time() - began


def batches(times: int) -> Iterator[Figure]:
    """What 416 cards cost against 52."""
    pairs = [(batch_shuffle(416), batch_shuffle(52)) for _ in range(times)]
    large, small = (median(each) for each in zip(*pairs, strict=True))
    ratio = median(own / other for own, other in pairs)
    name, reference = "a shuffle of 416, CPU s", "a shuffle of 52, CPU s"
    yield Figure(EMULATION, name, large, reference, small, ratio, at_most=MOST_FOR_416)


def machine_figures(quick: bool) -> Iterator[Figure]:
    """Everything."""
    yield from shuffles(2 if quick else 200)
    yield from rounds(10 if quick else 200)
    yield from batches(1 if quick else 5)
