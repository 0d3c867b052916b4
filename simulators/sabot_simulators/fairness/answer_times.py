"""The attack on answer times: what they tell of the slots while a device shuffles, and the statistics.

A host sends any number of questions while a deck is shuffled. It records when each answer comes, how many
ticks of the grid that took, and when the device takes bytes. What the machine does follows from the slots.
The statistics look for mutual information between the two, and compare it with shuffled labels.

This module attacks the firmware in this process, in virtual time; ``tests/board/answer_times.py`` attacks the
board's image. In this process the firmware's computation takes no time. So a leak by computing time is
planted (``Mode.planted``), to show that the attack would find it: without the grid, an answer beside an edge
is late.

    python -m sabot_simulators.fairness.answer_times_campaign --decks 5000
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import chain, permutations, product
from math import factorial, log2, prod
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from sabot_firmware import hardware, shuffler
from sabot_protocol import frame, grid
from sabot_protocol.codec import CODEC
from sabot_protocol.device_port import DevicePort
from sabot_protocol.wire_constants import CLEAR_TO_DEVICE
from sabot_simulators.dealer import Dealer
from sabot_simulators.hosted_device import HostedDevice
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_protocol.codec import Value

PERIOD_US = grid.PERIOD_MS * 1000
TICKS = 320  # of a shuffle with its storing
CARDS = 52
SHUFFLES = 400  # of the labels
LEVEL = 0.99
NEAR_US = 3000  # an edge so long before a tick, or
SOON_US = 1000  # so soon after it, coincides with it
FIRST_US = 7000  # after a tick the first question is asked: so all decks are attacked alike
FLOOD = 6  # frames at a time
BINS = 6
FEATURES = ("offset", "ticks", "delay", "accepted", "answers")
LATE_US = 2400  # of the planted leak: what an answer took longer beside an edge, on the old firmware

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Mode:
    """One kind of attack: what a host without a key and the owner send, how often, on which cable."""

    name: str
    first: tuple[str, ...] = ()
    """Clear messages on the owner's own cable, in turn; ``noise`` is a frame that is none."""
    second: tuple[str, ...] = ()
    """The same on another cable."""
    owner: tuple[str, ...] = ()
    """Queries of the owner."""
    every_us: int = 23_000
    flood: bool = False
    planted: bool = False


CLEAR = ("identify", "hello", "prove", "provision", "noise")
QUERIES = ("status", "sensors", "decks", "game", "wear", "counters", "last_round")
MODES = (
    Mode("two hosts, one floods with hello, one polls", first=("identify",), second=("hello",), flood=True),
    Mode("polled with identify", first=("identify",)),
    Mode("flooded with identify", first=("identify",), flood=True),
    Mode("flooded with every clear message", first=CLEAR, flood=True),
    Mode("two hosts, both flood with everything", first=CLEAR, second=CLEAR, flood=True),
    Mode("the owner polls status", owner=("status",)),
    Mode("the owner asks everything", owner=QUERIES, every_us=61_000),
    Mode("the owner asks, another host floods", owner=QUERIES, second=CLEAR, flood=True, every_us=61_000),
)
STRONGEST = MODES[0]
PLANTED = Mode("polled with identify, no grid", first=("identify",), planted=True)


@dataclass
class Heard:
    """The observations of one deck: its start, what a host saw, and what the machine did. Microseconds."""

    began_us: float
    answered: list[tuple[float, float]] = field(default_factory=list)  # asked, answered
    second: list[tuple[float, float]] = field(default_factory=list)  # the same on another cable
    accepted: list[float] = field(default_factory=list)  # when the device took bytes, where that can be seen
    worked: list[float] = field(default_factory=list)  # edges and orders
    inserted: list[float] = field(default_factory=list)  # when each card was in
    slots: list[int] = field(default_factory=list)
    turn: int = 0  # decks of the same turn are attacked alike: such as the first one of a table
    late: int = 0  # answers that were ready after their tick, where the board counts them
    spare_us: float = 0.0  # the least time for which one waited for its tick


@dataclass(frozen=True)
class Found:
    """The results of the statistics for one mode."""

    decks: int
    samples: int
    """Answers whose times were looked at."""
    differing: int
    """Those whose tick or time within the tick was not the usual one."""
    pair: str
    """The feature and the label with the most information."""
    bits: float
    """Their mutual information, bits a sample above what shuffled labels give."""
    threshold: float
    """What would have been noticed, bits a sample above the mean of shuffled labels."""
    p: float
    jitter_us: float
    """From the earliest to the latest answer within its tick."""
    escaped_bits: float
    """What could have escaped notice: bits a deck."""
    moved: int = 0
    """Answers that took more or fewer ticks than is usual at their tick."""
    late: int = 0
    spare_us: float = 0.0

    @property
    def leaks(self) -> bool:
        """Whether there is more information than by chance."""
        return self.p < 1 - LEVEL


def clear_frame(name: str, random: Random) -> bytes:
    """A frame of a host without a key."""
    if name == "noise":
        return bytes(random.randrange(1, 256) for _ in range(24)) + b"\x00"
    message = CODEC.named(name)
    values: list[Value] = []
    for _, kind, *limits in message.fields:
        if kind == "bytes":
            values.append(random.randbytes(limits[0]))
        elif kind.startswith("u"):
            values.append(random.randint(limits[0], limits[1]))
        else:
            values.append(CODEC.enum_values(kind)[0])
    return bytes(frame.encode(bytes((CLEAR_TO_DEVICE, message.id)) + message.pack(values)))


# -- statistics ------------------------------------------------------------------------------------------


def _table(heard: Sequence[Heard], second: bool) -> tuple[dict[str, Floats], dict[str, Ints]]:
    """By tick: what was seen on one cable or the other, and what the machine did then."""
    rows = len(heard)
    seen = {name: np.full((rows, TICKS), np.nan) for name in FEATURES}
    labels = {name: np.zeros((rows, TICKS), np.int64) for name in ("busy", "cards", "slot")}
    starts = np.zeros(rows)
    for row, deck in enumerate(heard):
        answered = deck.second if second else deck.answered
        if not answered:
            continue
        phase = answered[0][1] % PERIOD_US - PERIOD_US / 4
        began = deck.began_us - deck.began_us % PERIOD_US  # from here the attack counts, too
        start = starts[row] = began + phase % PERIOD_US
        tick = start + PERIOD_US * np.arange(TICKS)
        seen["answers"][row] = 0
        for asked, at in answered:
            index = int((at - start) // PERIOD_US)
            if 0 <= index < TICKS:
                if not seen["answers"][row, index]:
                    seen["offset"][row, index] = at - tick[index]
                    seen["delay"][row, index] = at - asked
                    seen["ticks"][row, index] = (at - start) // PERIOD_US - (asked - start) // PERIOD_US
                seen["answers"][row, index] += 1
        for at in deck.accepted:
            index = int((at - start) // PERIOD_US)
            if 0 <= index < TICKS and np.isnan(seen["accepted"][row, index]):
                seen["accepted"][row, index] = at - tick[index]
    turns = _turns(heard)
    when = _usual(seen["offset"], turns, PERIOD_US / 4)  # an answer comes
    for row, deck in enumerate(heard):
        at_tick = starts[row] + PERIOD_US * np.arange(TICKS) + when[row]
        worked = np.array(sorted(deck.worked))
        near = np.searchsorted(worked, at_tick + SOON_US) - np.searchsorted(worked, at_tick - NEAR_US)
        labels["busy"][row] = near > 0
        done = np.searchsorted(np.array(deck.inserted), at_tick)
        labels["cards"][row] = done
        slots = np.array([*deck.slots, 0])
        slot = slots[np.minimum(done, len(deck.slots))]
        labels["slot"][row] = 3 * slot // (np.minimum(done, CARDS - 1) + 1)
    for turn in np.unique(turns):
        cards = labels["cards"][turns == turn]
        usual = np.round(cards.mean(axis=0)).astype(np.int64)
        labels["cards"][turns == turn] = np.clip(cards - usual, -3, 3) + 3
    return seen, labels


def _turns(heard: Sequence[Heard]) -> Ints:
    return np.array([deck.turn for deck in heard], np.int64)


def _usual(values: Floats, turns: Ints, otherwise: float) -> Floats:
    """For each deck the median of each tick, over the decks of its turn that have a value there."""
    usual = np.full(values.shape, otherwise)
    for turn in np.unique(turns):
        columns = [column[~np.isnan(column)] for column in values[turns == turn].T]
        usual[turns == turn] = [np.median(column) if len(column) else otherwise for column in columns]
    return usual


def _off(values: Floats, turns: Ints) -> Floats:
    """How far each value is from what is usual at its tick; 0 where there is none."""
    there = ~np.isnan(values)
    return np.where(there, np.where(there, values, 0.0) - _usual(values, turns, 0.0), 0.0)


def _binned(values: Floats, turns: Ints) -> Ints:
    """How far each value is from what is usual at its tick, in a few bins; one more where there was none."""
    there = ~np.isnan(values)
    off = _off(values, turns)
    off[np.abs(off) < 0.5] = 0.0  # half a microsecond is the emulator's own grain
    parts = np.linspace(0, 1, BINS + 1)[1:-1]
    edges = np.quantile(off[there], parts) if there.any() else np.zeros(0)
    low = np.digitize(off, np.unique(np.concatenate((edges, [-0.25, 0.25]))))
    return np.where(there, low, BINS + 4).astype(np.int64)


def information(first: Ints, second: Ints) -> float:
    """Mutual information of two arrays of small numbers, in bits."""
    width = int(second.max()) + 1
    joint = np.bincount((first * width + second).ravel()).astype(np.float64)
    joint = np.pad(joint, (0, -len(joint) % width)).reshape(-1, width)
    joint /= joint.sum()
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    there = joint > 0
    return float((joint[there] * np.log2(joint[there] / apart[there])).sum())


def _orders(turns: Ints, random: np.random.Generator, most: int) -> list[Ints]:
    """Orders in which each deck has the labels of any one of its turn: all if they are few, else a sample.

    The first one leaves every deck its own labels. Without such orders the test would find too much: of four
    decks the odd one could never keep its label.
    """
    places = [np.flatnonzero(turns == turn) for turn in np.unique(turns)]
    mixed: Iterable[tuple[Sequence[int] | Ints, ...]]
    if prod(factorial(len(each)) for each in places) <= most:
        mixed = product(*(permutations(each.tolist()) for each in places))
    else:
        drawn = (tuple(random.permutation(each) for each in places) for _ in range(most))
        mixed = chain([tuple(places)], drawn)
    orders = []
    for arranged in mixed:
        order = np.arange(len(turns))
        for each, other in zip(places, arranged, strict=True):
            order[each] = other
        orders.append(order)
    return orders


def _by_chance(binned: Sequence[Ints], done: Sequence[Ints], order: Ints) -> list[float]:
    """The information of every pair when the decks have their labels in another order."""
    moved = {id(other): other[order] for other in done}  # several pairs share a label
    return [information(one, moved[id(other)]) for one, other in zip(binned, done, strict=True)]


def judge(heard: Sequence[Heard], seed: int = 1, shuffles: int = SHUFFLES) -> Found:
    """Look for the pair of what is seen and what is done that tell most of each other.

    Many pairs are looked at, and the one that stands out most is reported. Its p is the share of shuffled
    labels under which *any* pair stands out as much, so looking at many is accounted for.
    """
    rows = len(heard)
    random = np.random.default_rng(seed)
    turns = _turns(heard)
    orders = _orders(turns, random, shuffles)
    pairs: list[tuple[str, str]] = []
    binned: list[Ints] = []
    done: list[Ints] = []
    samples, differing, moved, jitter = 0, 0, 0, 0.0
    for second in (False, True):
        if second and not any(deck.second for deck in heard):
            continue
        seen, labels = _table(heard, second)
        for feature, values in seen.items():
            in_bins = _binned(values, turns)
            for label, what in labels.items():
                pairs.append((("second " if second else "") + feature, label))
                binned.append(in_bins)
                done.append(what)
        offsets = seen["offset"]
        there = ~np.isnan(offsets)
        samples += int(there.sum())
        differing += int((np.abs(_off(offsets, turns)) > 0.5).sum())
        moved += int((np.abs(_off(seen["ticks"], turns)) > 0.5).sum())
        if there.any():
            jitter = max(jitter, float(np.nanmax(offsets) - np.nanmin(offsets)))
    real = np.array([information(one, other) for one, other in zip(binned, done, strict=True)])
    chance = np.array([_by_chance(binned, done, order) for order in orders])
    mean, spread = chance.mean(axis=0), np.maximum(chance.std(axis=0), 1e-12)
    scores = (real - mean) / spread
    best = int(scores.argmax())
    most = ((chance - mean) / spread).max(axis=1)
    p = float((most >= scores[best] - 1e-9).mean()) if spread.max() > 1e-9 else 1.0
    threshold = float(np.quantile(most, LEVEL) * spread[best])
    per_deck = samples / rows
    if spread.max() > 1e-9:
        escaped = threshold * per_deck
    else:  # every answer was as usual: so rarely may one differ that none did, at the same level
        rare = min(-np.log(1 - LEVEL) / max(samples, 1), 0.5)
        escaped = per_deck * -(rare * log2(rare) + (1 - rare) * log2(1 - rare))
    name = " x ".join(pairs[best])
    gained = float(real[best] - mean[best])
    late, spare = sum(deck.late for deck in heard), min(deck.spare_us for deck in heard)
    return Found(
        rows, samples, differing, name, gained, threshold, p, jitter, float(escaped), moved, late, spare
    )


# -- the attack on the firmware in this process ----------------------------------------------------------


class _Noted(DevicePort):
    """A port that records every byte."""

    heard: Callable[["_Noted"], None] = staticmethod(lambda port: None)

    def poll(self, now: int, room: bool = True) -> bytes:
        said = super().poll(now, room)
        if said:
            self.heard(self)
        return said


class Questions:
    """The clear frames of a mode, first and second cable at a time: every deck is asked the same."""

    def __init__(self, mode: Mode) -> None:
        self._mode = mode
        self._random = Random(mode.name)
        self._made: list[tuple[bytes, bytes]] = []

    def at(self, n: int) -> tuple[bytes, bytes]:
        """What is asked the n-th time."""
        mode = self._mode
        while len(self._made) <= n:
            self._made.append((self._some(mode.first), self._some(mode.second)))
        return self._made[n]

    def _some(self, names: tuple[str, ...]) -> bytes:
        count = FLOOD if self._mode.flood and names else min(len(names), 1)
        random = self._random
        return b"".join(clear_frame(names[random.randrange(len(names))], random) for _ in range(count))


_questions = cache(Questions)


class Attacked(HostedDevice):
    """A device in virtual time with an owner on one cable; hosts without a key on it and another one."""

    def __init__(self, machine: SimulatedMachine, mode: Mode) -> None:
        self._mode: Mode | None = None
        self._questions = _questions(mode)
        self._asked: dict[DevicePort, list[float]] = {}
        self._asks = 0
        self._next_us = 0
        self._late: list[tuple[float, float]] = []
        self.heard = Heard(0)
        super().__init__(machine, None)
        self._mode = mode
        note = machine.on_edge

        def edge(sensor: int, level: int, at_us: int) -> None:
            self.heard.worked.append(at_us)
            note(sensor, level, at_us)

        machine.on_edge = edge
        if mode.planted:
            self.controller.on_grid = lambda: False  # type: ignore[method-assign]

    def _boot(self) -> None:
        super()._boot()
        self.port, self.other = _Noted(self.end), _Noted(self.end)
        self.port.heard = self.other.heard = self._spoke

    def begin(self) -> None:
        """Start the observations of one deck."""
        self.heard = Heard(self.machine.agenda.now_us)
        self._asked = {self.port: [], self.other: []}
        self._next_us = self.machine.agenda.now_us // PERIOD_US * PERIOD_US + PERIOD_US + FIRST_US

    def _step(self) -> int | None:
        mode, half = self._mode, self.controller.shuffler
        due = super()._step()
        if mode is None or half.state not in (shuffler.FEEDING, shuffler.STORING):
            return due
        now = self.machine.agenda.now_us
        if half.state == shuffler.FEEDING and half.inserted > len(self.heard.inserted):
            self.heard.inserted.append(now)
        if half.placed is not None:
            self.heard.slots = list(half.placed[: half.inserted])
        if now >= self._next_us:
            self._next_us = now + mode.every_us
            frames = self._questions.at(self._asks)
            self._asks += 1
            for port, asked in zip((self.port, self.other), frames, strict=True):
                if asked:
                    port.receive(asked, self._now_ms())
                    self._asked[port].append(now)
            if mode.owner:
                message = CODEC.named(mode.owner[self._asks % len(mode.owner)])
                self.host.request(message.id, message.pack(()), self._now_ms())
                self._asked[self.port].append(now)
        for port in (self.port, self.other):
            port.poll(self._now_ms())
            deadline = port.deadline()
            if deadline is not None:
                left = max(deadline * 1000 - now, 1)
                due = left if due is None else min(due, left)
        left = self._next_us - now
        return left if due is None else min(due, left)

    def _spoke(self, port: DevicePort) -> None:
        asked = self._asked.get(port)
        if not asked:
            return
        at, worked = self.machine.agenda.now_us, self.heard.worked
        if self._mode is not None and self._mode.planted and worked and at - worked[-1] < LATE_US:
            at = int(worked[-1]) + LATE_US
        (self.heard.second if port is self.other else self.heard.answered).append((asked[0], at))
        asked.clear()


def attack(mode: Mode, seed: int) -> Heard:
    """One deck of a table of its own, attacked in one way."""
    random = Random(f"{seed} {mode.name}")
    device = Attacked(SimulatedMachine(random), mode)
    table = Dealer(device)
    device.run_until_idle()
    deck_id = table.new_deck(hardware.RED)
    device.begin()
    table.feed(deck_id)
    table.wait(lambda: device.controller.shuffler.state not in (shuffler.FEEDING, shuffler.STORING))
    return device.heard


# -- results ---------------------------------------------------------------------------------------------


def load(path: Path) -> list[Heard]:
    """The decks that a campaign has written so far, one a line; a line that was cut short is left out."""
    found = []
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                found.append(Heard(**json.loads(line)))
            except ValueError:
                continue
    return found


def keep(path: Path, heard: Heard) -> None:
    """Append one deck to the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(asdict(heard)) + "\n")
