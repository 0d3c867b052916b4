"""What a host could guess: a trained predictor of the next card, given all the device tells in live rounds.

The features of a deck are every event with its time, and the answers to every query, repeated while the deck
is shuffled. The predictor is trained on half of the decks. It guesses the cards of the others one after the
other, and sees each card after its guess. It also knows the order in which they were fed. If nothing leaks,
it is right 4.54 times a deck. The same predictor with a planted leak shows that it would find one.

    python -m sabot_simulators.fairness.secrecy --decks 5000
"""

import argparse
import multiprocessing
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from random import Random

import numpy as np
import scipy
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_firmware import shuffler
from sabot_simulators.dealer import Dealer
from sabot_simulators.fairness.simulated_shuffles import Orders
from sabot_simulators.mechanism.physical_cards import PhysicalCard
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.python_device import PythonDevice

LEAKS = ("order", "slots", "times")
"""On purpose: where each card is; where it was put; or when, to the millisecond, which is not told either."""
ROUNDS_AT_ONCE = 25
POLLS = 8
POLL_MS = 2_000
EVENTS = 10
EVENT_SIZE = 42  # time, name, and as many numbers as the longest has
QUERIES = ("whereabouts", "sensors", "wear", "last_round", "decks", "game")
POLL_SIZE = 72
STACKS = 7
STACK_CARDS = 3
LEVEL = 0.001

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HostObservations:
    """Of so many decks: what was told before they were dealt, and while, and their orders by place fed."""

    before: Floats
    dealing: Floats
    leaked: dict[str, Floats]
    orders: Orders


@dataclass(frozen=True)
class Guesses:
    """How many cards were guessed right."""

    decks: int
    mean: float
    expected: float
    p: float
    """How likely a mean this high is if nothing leaks."""

    @property
    def leaks(self) -> bool:
        """Whether the mean is too high for chance."""
        return self.p < LEVEL


class _Shuffle:
    """The observations of one shuffle of one deck."""

    def __init__(self, deck_id: int, fed: list[PhysicalCard], began_ms: int) -> None:
        self.deck_id = deck_id
        self.fed = fed
        self.began_ms = began_ms
        self.events: list[list[float]] = []
        self.polls: list[list[float]] = []
        self.inserted_ms: list[float] = []
        self.placed: list[float] = []


class _Listener(Dealer):
    """A dealer whose table PC records everything."""

    device: PythonDevice

    def __init__(self, seed: int) -> None:
        machine = SimulatedMachine(Random(seed))
        super().__init__(PythonDevice(machine, None), STACKS)
        self._shuffles: dict[int, _Shuffle] = {}
        self._at_work: _Shuffle | None = None
        self._asking = False
        self.device.on_report = self._heard
        self.device.on_step = self._stepped
        self._dealt_ms: list[float] = []
        self.rows: list[tuple[list[float], list[float], dict[str, list[float]], list[int]]] = []
        self._next: tuple[_Shuffle, list[int]] | None = None

    def _now_ms(self) -> int:
        return self.device.machine.agenda.now_us // 1000

    def feed(self, deck_id: int) -> None:
        """Record the order in which the cards are fed."""
        self._at_work = _Shuffle(deck_id, list(self.decks[deck_id]), self._now_ms())
        self._shuffles[deck_id] = self._at_work
        super().feed(deck_id)

    def _heard(self, name: str, values: tuple[int | str, ...]) -> None:
        """An event, with its time in milliseconds, as the wire has it."""
        now = self._now_ms()
        if name in ("stack_dispensed", "round_ended"):
            self._dealt_ms.append(now)
        if name == "bets_closed":
            shuffle = self._shuffles[self.device.controller.shoe.deck]
            place = {id(card): at for at, card in enumerate(shuffle.fed)}
            self._next = shuffle, [place[id(card)] for card in self.device.machine.shoe]
            self._dealt_ms = [now]
        if name == "round_ended" and self._next is not None:
            self._row(*self._next)
            self._next = None
        shuffle_now = self._at_work
        if shuffle_now is not None and len(shuffle_now.events) < EVENTS and name != "buttons":
            numbers = [float(now - shuffle_now.began_ms), float(sum(name.encode()) % 251), *_numbers(values)]
            shuffle_now.events.append(_fitted(numbers, EVENT_SIZE))

    def _stepped(self) -> None:
        """Send every query repeatedly; for the planted leaks, also read what the device tells nobody."""
        shuffle = self._at_work
        if shuffle is None or self._asking:
            return
        controller = self.device.controller
        now = self._now_ms() - shuffle.began_ms
        half = controller.shuffler
        if half.state == shuffler.FEEDING and half.inserted > len(shuffle.inserted_ms):
            shuffle.inserted_ms.append(float(now))
        if half.state == shuffler.STORING and half.placed is not None and not shuffle.placed:
            shuffle.placed = [float(slot) for slot in half.placed[:52]]
        if len(shuffle.polls) < POLLS and now >= len(shuffle.polls) * POLL_MS:
            self._asking = True
            said: list[float] = [float(each) for each in controller.status()]
            for query in QUERIES:
                values = (shuffle.deck_id,) if query == "whereabouts" else ()
                said += _numbers(self.device.command(query, *values))
            said.append(float(sum(" ".join(self.device.machine.display).encode())))
            shuffle.polls.append(_fitted(said, POLL_SIZE))
            self._asking = False

    def _row(self, shuffle: _Shuffle, order: list[int]) -> None:
        before = [number for event in _padded(shuffle.events, EVENTS, EVENT_SIZE) for number in event]
        before += [number for poll in _padded(shuffle.polls, POLLS, POLL_SIZE) for number in poll]
        dealing = _fitted([later - earlier for earlier, later in pairwise(self._dealt_ms)], STACKS + 1)
        leaked = {
            "order": [float(order.index(card)) for card in range(len(order))],
            "slots": _fitted(shuffle.placed, len(order)),
            "times": _fitted(shuffle.inserted_ms, len(order)),
        }
        self.rows.append((before, dealing, leaked, order))


def _numbers(values: tuple[object, ...]) -> list[float]:
    """The numbers of any value."""
    found: list[float] = []
    for value in values:
        if isinstance(value, int):
            found.append(float(value))
        elif isinstance(value, str):
            found.append(float(len(value)))
        elif isinstance(value, bytes | list | tuple):
            found += [float(each) for each in value]
    return found


def _fitted(numbers: list[float], size: int) -> list[float]:
    return (numbers + [0.0] * size)[:size]


def _padded(rows: list[list[float]], count: int, size: int) -> list[list[float]]:
    return (rows + [[0.0] * size] * count)[:count]


def listen(seed: int, rounds: int) -> HostObservations:
    """Play rounds at one table and record everything."""
    table = _Listener(seed)
    table.open_table()
    while len(table.rows) < rounds:
        table.play_round()
    rows = table.rows[:rounds]
    return HostObservations(
        np.array([row[0] for row in rows]),
        np.array([row[1] for row in rows]),
        {leak: np.array([row[2][leak] for row in rows]) for leak in LEAKS},
        np.array([row[3] for row in rows], np.int16),
    )


def observe(decks: int, seed: int = 1, processes: int | None = None) -> Iterator[HostObservations]:
    """The observations of ``decks`` decks, from several tables."""
    tables = -(-decks // ROUNDS_AT_ONCE)
    sizes = [min(ROUNDS_AT_ONCE, decks - at * ROUNDS_AT_ONCE) for at in range(tables)]
    seeds = [seed * 1_000_003 + at for at in range(tables)]
    count = min(processes or os.cpu_count() or 1, tables)
    if count <= 1:
        yield from map(listen, seeds, sizes)
        return
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(listen, seeds, sizes)


def together(parts: list[HostObservations]) -> HostObservations:
    """Join the observations of all tables."""
    return HostObservations(
        np.vstack([part.before for part in parts]),
        np.vstack([part.dealing for part in parts]),
        {leak: np.vstack([part.leaked[leak] for part in parts]) for leak in LEAKS},
        np.vstack([part.orders for part in parts]),
    )


def predict(heard: HostObservations, leak: str | None = None) -> Guesses:
    """Train on every second deck and guess the cards of the others."""
    before = heard.before if leak is None else np.hstack((heard.before, heard.leaked[leak]))
    during = np.hstack((before, heard.dealing))
    cards = heard.orders.shape[1]
    dealt = STACKS * STACK_CARDS
    scores = np.hstack(
        (_scores(before, heard.orders, slice(0, dealt)), _scores(during, heard.orders, slice(dealt, cards)))
    )
    tried = heard.orders[1::2]
    rows = np.arange(len(tried))
    shown = np.zeros(tried.shape, np.bool_)
    right = np.zeros(len(tried))
    for position in range(cards):
        guess = np.where(shown, -np.inf, scores[:, position]).argmax(axis=1)
        right += guess == tried[:, position]
        shown[rows, tried[:, position]] = True
    chances = 1 / np.arange(cards, 0, -1)
    error = sqrt(float((chances * (1 - chances)).sum()) / len(tried))
    mean, expected = float(right.mean()), float(chances.sum())
    return Guesses(len(tried), mean, expected, float(scipy.stats.norm.sf((mean - expected) / error)))


def _scores(features: Floats, orders: Orders, positions: slice) -> Floats:
    """By ridge regression: for each deck tried and each position, a score for each card."""
    cards = orders.shape[1]
    features = features[:, features.std(axis=0) > 0]
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    features = np.hstack((features, features**2 - 1, np.ones((len(features), 1))))
    trained, tried = features[::2], features[1::2]
    places = orders[::2, positions]
    wanted = np.zeros((*places.shape, cards))
    np.put_along_axis(wanted, places[:, :, None].astype(np.intp), 1.0, axis=2)
    damping = 0.1 * len(trained) * np.eye(features.shape[1])
    weights = np.linalg.solve(trained.T @ trained + damping, trained.T @ wanted.reshape(len(trained), -1))
    return np.asarray(tried @ weights).reshape(len(tried), places.shape[1], cards)


def main(arguments: list[str] | None = None) -> int:
    """Listen, predict, report; 1 if anything leaks, or if a planted leak is not found."""
    parser = argparse.ArgumentParser(prog="python -m sabot_simulators.fairness.secrecy")
    parser.add_argument("--decks", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int)
    asked = parser.parse_args(arguments)
    console, aside = Console(highlight=False), Console(stderr=True, highlight=False)
    tables = -(-asked.decks // ROUNDS_AT_ONCE)
    parts = observe(asked.decks, asked.seed, asked.processes)
    heard = together(list(track(parts, "listening", tables, console=aside, transient=True)))
    found = predict(heard)
    console.print(
        f"{len(heard.orders)} decks, {heard.before.shape[1] + heard.dealing.shape[1]} numbers told of each: "
        f"{found.mean:.3f} cards guessed, {found.expected:.3f} by chance, p {found.p:.3g}"
    )
    controls = {leak: predict(heard, leak) for leak in LEAKS}
    for leak, guesses in controls.items():
        console.print(f"  with the {leak} leaked on purpose: {guesses.mean:.3f}, p {guesses.p:.3g}")
    return 1 if found.leaks or not controls["order"].leaks else 0


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(main())
