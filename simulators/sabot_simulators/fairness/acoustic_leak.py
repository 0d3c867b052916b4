"""What a listener learns about the order from the elevator, by a microphone or the supply current.

    python -m sabot_simulators.fairness.acoustic_leak                      the table
    python -m sabot_simulators.fairness.acoustic_leak --svg FILE           and the curve as a figure

Card k goes onto ``below`` cards, 0 to k - 1, all equally likely. The platform moves from the place of the
card before to that of this one. The listener times start and stop of each move. Each instant has an error of
up to ``within_ms``, uniformly distributed, so a duration has an error of up to twice that. The listener knows
the machine. With ``hears_direction`` it also knows the direction of a move: the supply current shows the
weight of the platform.

The moves are a hidden Markov chain. The information about the slots is the mean of log p(heard | slots) -
log p(heard), where p(heard) sums over all sequences of slots (the forward algorithm). Nothing is fitted and
no attack is chosen: no listener gets more from these moves. The order of a deck has log2 52! = 225.6 bits.

Two remedies, each of which costs seconds:

- *classes*: each move takes one of a few durations, the next longer one, at a lower speed;
- *decoys*: before each card the platform goes to places drawn at random, then to the slot.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_firmware import machine_constants
from sabot_protocol import grid

Floats = NDArray[np.float64]

CARDS = machine_constants.DECK_CARDS
WITHIN_MS = (1.0, 5.0, 20.0)
CLASSES = (16, 8, 4, 2, 1)
DECOYS = (1, 2, 3)
ORDER_BITS = math.log2(math.factorial(CARDS))
DECKS = 200

WIDTH, HEIGHT, LEFT, BOTTOM = 720, 420, 60, 50
COLOURS = {1.0: "#b00020", 5.0: "#c77700", 20.0: "#1a5fb4"}


@dataclass(frozen=True)
class Remedy:
    """How the machine moves: without a remedy, in ``classes`` of duration, or with ``decoys`` a card."""

    classes: int = 0
    decoys: int = 0

    def __str__(self) -> str:
        if self.classes:
            return f"{self.classes} {'class' if self.classes == 1 else 'classes'} of duration"
        if self.decoys:
            return f"{self.decoys} {'decoy' if self.decoys == 1 else 'decoys'} a card"
        return "none"


@dataclass(frozen=True)
class AcousticLeak:
    """What a listener learns of one deck, in bits, and what the remedy costs."""

    remedy: Remedy
    within_ms: float
    bits: float
    error_bits: float
    """One standard error of ``bits``."""
    seconds: float
    """By how much the remedy lengthens a shuffle, on average."""


def plain_ms() -> Floats:
    """The duration of a move over 0 to 51 cards, in ms."""
    return np.array(
        [machine_constants.travel_us(n * machine_constants.CARD_THICKNESS_UM) / 1000 for n in range(CARDS)]
    )


def durations_ms(remedy: Remedy) -> Floats:
    """The durations of the same moves with a remedy, in ms."""
    plain = plain_ms()
    if not remedy.classes:
        return plain
    ends = np.linspace(0, CARDS - 1, remedy.classes + 1).round().astype(int)[1:]
    if remedy.classes == 1:
        return np.full(CARDS, plain[-1])  # where the slot is the same, it goes there and back
    return np.array([plain[ends[np.searchsorted(ends, n)]] for n in range(CARDS)])


def likelihood(off_ms: Floats, within_ms: float) -> Floats:
    """The density of a duration that is off by this: the difference of two even errors, a triangle."""
    return np.maximum(2 * within_ms - np.abs(off_ms), 0) / (2 * within_ms) ** 2


class AcousticListener:
    """A listener with a timing precision, at a machine with a remedy."""

    def __init__(self, remedy: Remedy, within_ms: float, hears_direction: bool) -> None:
        self._remedy = remedy
        self._within_ms = within_ms
        self._hears_direction = hears_direction
        self._durations = durations_ms(remedy)
        places = np.arange(CARDS)
        steps = places[None, :] - places[:, None]  # from (row) to (column)
        self._took = self._durations[np.abs(steps)]
        self._way = np.sign(steps)

    def learns(self, random: np.random.Generator) -> float:
        """The information in one deck's moves about its slots, in bits: an unbiased sample."""
        slots = [int(random.integers(k)) for k in range(1, CARDS + 1)]
        knows = np.zeros(CARDS)  # p(heard so far, this place)
        knows[slots[0]] = 1.0
        heard_given_slots = heard = 0.0
        for k in range(2, CARDS + 1):
            before, now = slots[k - 2], slots[k - 1]
            chain = np.eye(CARDS)  # p(heard of this card | place before, place now)
            at = before
            for stop in [*(int(random.integers(CARDS)) for _ in range(self._remedy.decoys)), now]:
                chain = chain @ self._hear(at, stop, random)  # decoys are equally likely: a factor cancels
                at = stop
            heard_given_slots += math.log2(chain[before, now])
            knows = knows @ chain
            knows[k:] = 0.0
            knows /= k
            total = float(knows.sum())
            heard += math.log2(total)
            knows /= total
        return heard_given_slots - heard

    def _hear(self, at: int, to: int, random: np.random.Generator) -> Floats:
        """The likelihood of one heard move, for every pair of places from and to."""
        errors = random.uniform(-self._within_ms, self._within_ms, 2)
        heard_ms = self._took[at, to] + errors[1] - errors[0]
        fits = likelihood(heard_ms - self._took, self._within_ms)
        if self._hears_direction:
            fits = fits * (self._way == self._way[at, to])
        return fits

    def costs_s(self) -> float:
        """The mean time that the remedy adds to a shuffle, in seconds."""
        plain = plain_ms()
        total = 0.0
        for k in range(2, CARDS + 1):
            steps = np.abs(np.arange(k)[None, :] - np.arange(k - 1)[:, None])
            direct = plain[steps].mean()
            if not self._remedy.decoys:
                total += float(self._durations[steps].mean() - direct)
                continue
            anywhere = np.arange(CARDS)[None, :]
            total += float(plain[np.abs(anywhere - np.arange(k - 1)[:, None])].mean())  # to the first decoy
            between = plain[np.abs(anywhere - anywhere.T)].mean()
            total += float(between) * (self._remedy.decoys - 1)
            total += float(plain[np.abs(anywhere - np.arange(k)[:, None])].mean() - direct)  # from the last
        return total / 1000


def listen(
    remedy: Remedy, within_ms: float, hears_direction: bool, decks: int = DECKS, seed: int = 1
) -> AcousticLeak:
    """What a listener learns of a deck, as a mean over ``decks``."""
    random = np.random.default_rng(seed)
    listener = AcousticListener(remedy, within_ms, hears_direction)
    bits = np.array([listener.learns(random) for _ in range(decks)])
    error = float(bits.std(ddof=1)) / math.sqrt(decks)
    return AcousticLeak(remedy, within_ms, float(bits.mean()), error, listener.costs_s())


def end_bits(durations: Floats, tick_ms: float, shuffles: int = 100_000, seed: int = 1) -> float:
    """What the tick at which a shuffle ends tells about its slots, in bits, if nothing else varies.

    The tick is a function of the slots, so it tells as much as it varies: its entropy.
    """
    random = np.random.default_rng(seed)
    total, before = np.zeros(shuffles), np.zeros(shuffles, dtype=np.int64)
    for cards in range(1, CARDS + 1):
        below = random.integers(0, cards, shuffles)
        total += durations[np.abs(below - before)]
        before = below
    _, counts = np.unique(np.floor(total / tick_ms), return_counts=True)
    chances = counts / shuffles
    return float(-(chances * np.log2(chances)).sum())


def remedies() -> Iterator[Remedy]:
    """None, then classes from many to one, then decoys."""
    yield Remedy()
    for classes in CLASSES:
        yield Remedy(classes=classes)
    for decoys in DECOYS:
        yield Remedy(decoys=decoys)


def table(rows: list[list[AcousticLeak]]) -> str:
    """The figures as a table of Markdown."""
    lines = [
        "| remedy | longer by | " + " | ".join(f"within {within:g} ms" for within in WITHIN_MS) + " |",
        "| --- " * (2 + len(WITHIN_MS)) + "|",
    ]
    for row in rows:
        cells = " | ".join(f"{each.bits:.0f}" for each in row)
        lines.append(f"| {row[0].remedy} | {row[0].seconds:.1f} s | {cells} |")
    return "\n".join(lines)


def figure(rows: list[list[AcousticLeak]]) -> str:
    """An SVG: bits that are learnt against seconds that the remedy costs."""
    longest = max(row[0].seconds for row in rows)

    def x(seconds: float) -> float:
        return LEFT + (WIDTH - LEFT - 20) * seconds / longest

    def y(bits: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 20) * max(bits, 0) / ORDER_BITS

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        "<title>Bits of a deck's order that a listener learns, against seconds that a remedy costs</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for bits in range(0, int(ORDER_BITS) + 1, 50):
        parts.append(f'<path d="M{LEFT} {y(bits):.0f}H{WIDTH - 20}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(bits) + 4:.0f}" text-anchor="end">{bits}</text>')
    for seconds in range(0, int(longest) + 1, 2):
        parts.append(f'<text x="{x(seconds):.0f}" y="{HEIGHT - 30}" text-anchor="middle">{seconds}</text>')
    parts.append(f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">seconds longer</text>')
    parts.append(f'<text x="{LEFT}" y="14">bits of 225.6 a deck; lines: classes, squares: decoys</text>')
    for column, within in enumerate(WITHIN_MS):
        colour = COLOURS[within]
        line = [row[column] for row in rows if not row[column].remedy.decoys]
        points = " ".join(f"{x(each.seconds):.1f},{y(each.bits):.1f}" for each in line)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for each in line:
            parts.append(
                f'<circle cx="{x(each.seconds):.1f}" cy="{y(each.bits):.1f}" r="3" fill="{colour}"/>'
            )
        for each in (row[column] for row in rows if row[column].remedy.decoys):
            parts.append(
                f'<rect x="{x(each.seconds) - 4:.1f}" y="{y(each.bits) - 4:.1f}" width="8" height="8" '
                f'fill="none" stroke="{colour}" stroke-width="2"/>'
            )
        parts.append(
            f'<text x="{WIDTH - 20}" y="{34 + 16 * column}" text-anchor="end" fill="{colour}">'
            f"within {within:g} ms</text>"
        )
    return "\n".join([*parts, "</svg>", ""])


def main(arguments: list[str] | None = None) -> int:
    """Print the table for a listener who hears direction, and for one who does not."""
    parser = argparse.ArgumentParser(description="What a listener at the elevator learns of a deck's order.")
    parser.add_argument("--decks", type=int, default=DECKS, help="decks that each figure is a mean of")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--svg", type=Path, help="write the curve to this file")
    options = parser.parse_args(arguments)
    told = end_bits(plain_ms(), grid.PERIOD_MS)
    sys.stdout.write(f"the tick at which a shuffle ends: {told:.1f} bits\n\n")
    for hears_direction in (True, False):
        rows = [
            [listen(remedy, within, hears_direction, options.decks, options.seed) for within in WITHIN_MS]
            for remedy in remedies()
        ]
        error = max(each.error_bits for row in rows for each in row)
        heard = "heard" if hears_direction else "not heard"
        sys.stdout.write(f"direction {heard}; standard error up to {error:.1f} bits\n{table(rows)}\n\n")
        if hears_direction and options.svg is not None:
            options.svg.write_text(figure(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(main())
