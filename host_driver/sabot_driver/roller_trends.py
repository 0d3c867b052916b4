"""How long cards take at each roller over the shuffles that a journal has, and what that lets expect.

The device reports mean and spread of each roller's travel times once a shuffle (`RollerTimes`). A forecast
extends the trend of the means to the limit of the rollers' tolerance. It is experimental: no real machine has
shown yet that drift is linear.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sabot_driver.device_values import DRIFT_LIMIT_PERMILLE, ROLLERS, RollerTiming, parse_roller_times
from sabot_driver.journal import JournalEntry
from sabot_driver.received_events import ReceivedEvent, parse_entry
from sabot_protocol.host.messages import RollerTimes

LEAST_SHUFFLES = 8
"""A trend of fewer says nothing."""
FARTHEST = 1_000_000
"""Rounds beyond which a trend counts as none."""


@dataclass(frozen=True, slots=True)
class RollerTrend:
    """One roller over the shuffles of a journal, oldest first."""

    roller: str
    timings: tuple[RollerTiming, ...]

    @property
    def change_percent(self) -> float | None:
        """How much slower (more than 0) the last shuffle was than the first; None for fewer than two."""
        means = self.means
        return None if len(means) < 2 or not means[0] else (means[-1] / means[0] - 1) * 100

    @property
    def means(self) -> list[float]:
        """The mean time of each shuffle that has one, in milliseconds."""
        return [each.mean_ms for each in self.timings if each.mean_ms is not None]

    @property
    def rounds_left(self) -> int | None:
        """Experimental: rounds until the mean leaves the tolerance, by the straight line through the means.

        None if there are too few shuffles, or the line leads nowhere near a limit.
        """
        return rounds_until(self.means, DRIFT_LIMIT_PERMILLE / 1000)


def trends(entries: Iterable[JournalEntry]) -> tuple[RollerTrend, ...]:
    """The rollers' trends by the rows of a journal; rows of other messages do not matter."""
    events = (parse_entry(each) for each in entries)
    told = [
        parse_roller_times(each.message)
        for each in events
        if isinstance(each, ReceivedEvent) and isinstance(each.message, RollerTimes)
    ]
    return tuple(
        RollerTrend(name, tuple(each[at] for each in told)) for at, name in enumerate(ROLLERS) if told
    )


def rounds_until(means: Sequence[float], limit: float) -> int | None:
    """Steps until the least-squares line leaves the first value by more than a share ``limit``."""
    count = len(means)
    if count < LEAST_SHUFFLES or not means[0]:
        return None
    middle = (count - 1) / 2
    average = sum(means) / count
    square = sum((at - middle) ** 2 for at in range(count))
    slope = sum((at - middle) * (each - average) for at, each in enumerate(means)) / square
    if not slope:
        return None
    now = average + slope * (count - 1 - middle)
    edge = means[0] * (1 + limit if slope > 0 else 1 - limit)
    left = (edge - now) / slope
    if left > FARTHEST:
        return None
    return max(0, int(left))
