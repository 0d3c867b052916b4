"""A whole run: shuffles, records the orders, judges them, and measures how soon a planted bias is found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sabot_simulators.fairness.order_tests import LEVEL, OrderReport, judge
from sabot_simulators.fairness.saved_progress import SavedProgress, run_missing
from sabot_simulators.fairness.simulated_shuffles import Orders, ShuffledBatch, shuffle_batches

LOOKS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)


@dataclass
class Evidence:
    """The orders of a run and what the tests say of them."""

    orders: Orders
    findings: OrderReport
    seconds: float
    stops: int = 0
    """Shuffles that the machine stopped, which were begun anew."""
    flagged_at: int | None = None
    """How many shuffles it took to find a bias, if that was asked for and one was found."""

    @property
    def seconds_per_thousand(self) -> float:
        """Seconds of processor time for a thousand shuffles, all processes together."""
        return 1000 * self.seconds / len(self.orders)


def gather(
    shuffles: int,
    cards: int,
    seed: int = 1,
    plant: str | None = None,
    processes: int | None = None,
    until_flagged: bool = False,
    shuffled: Callable[[int], None] = lambda count: None,
    saved: SavedProgress | None = None,
) -> Evidence:
    """Shuffle and judge. With ``until_flagged`` stop when a look finds a bias; the looks share the level.

    What ``saved`` has of this run is not shuffled again.
    """
    rows: list[Orders] = []
    seconds, stops = 0.0, 0
    done, looks = 0, [look for look in LOOKS if look < shuffles] + [shuffles] if until_flagged else []
    work = shuffle_batches(shuffles, cards, seed, plant)
    for orders, took, stopped in run_missing(work, processes, saved):
        seconds += took
        stops += stopped
        rows.append(orders)
        done += len(orders)
        shuffled(len(orders))
        if looks and done >= looks[0]:
            while looks and done >= looks[0]:
                looks.pop(0)
            findings = _judge(rows, LEVEL / (len(LOOKS) + 1))
            if findings.verdict == "biased":
                return Evidence(np.vstack(rows), findings, seconds, stops, done)
    return Evidence(np.vstack(rows), _judge(rows, LEVEL), seconds, stops)


def judged(stretches: Sequence[ShuffledBatch]) -> Evidence:
    """Evidence of orders that were made elsewhere; in each stretch one shuffle follows the other."""
    rows = [each.orders for each in stretches]
    seconds = sum(each.seconds for each in stretches)
    return Evidence(np.vstack(rows), _judge(rows, LEVEL), seconds)


def _judge(rows: list[Orders], level: float) -> OrderReport:
    return judge(np.vstack(rows), successive([len(each) for each in rows]), level)


def successive(sizes: list[int]) -> NDArray[np.intp]:
    """The rows that another shuffle of the same machine follows, in stretches of these sizes."""
    ends = np.cumsum([0, *sizes])
    return np.concatenate([np.arange(first, end - 1) for first, end in pairwise(ends)]).astype(np.intp)
