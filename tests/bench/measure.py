"""Rates of contenders that take turns, so that a busy moment of the machine slows all of them alike."""

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

Run = Callable[[int], float]
"""Does a thing so many times; says how long that took, in seconds."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report."""

    section: str
    name: str
    rate: float
    """Of the thing measured, a second."""
    reference: str = ""
    reference_rate: float | None = None
    ratio: float | None = None
    goal: float | None = None
    """The ratio to reach."""
    allocated: float | None = None
    """Bytes a frame, where somebody counts them."""
    allowed: float | None = None
    """The bytes a frame may allocate."""
    p50_us: float | None = None
    p99_us: float | None = None
    """How long one takes, where somebody keeps the time of each."""
    least: float | None = None
    """The rate to reach."""
    at_most: float | None = None
    """The ratio not to exceed."""
    latest_us: float | None = None
    """What 99 of 100 may take."""

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None if there is none."""
        if self.goal is not None and self.ratio is not None:
            return self.ratio >= self.goal
        if self.least is not None:
            return self.rate >= self.least
        if self.at_most is not None and self.ratio is not None:
            return self.ratio <= self.at_most
        if self.latest_us is not None and self.p99_us is not None:
            return self.p99_us <= self.latest_us
        if self.allowed is not None and self.allocated is not None:
            return self.allocated <= self.allowed
        return None


class Rates:
    """What each contender reached in each round."""

    def __init__(self, seconds: Mapping[str, list[float]], count: int) -> None:
        self._seconds = seconds
        self._count = count

    def rate(self, name: str) -> float:
        """The median rate, a second."""
        return self._count / median(self._seconds[name])

    def figure(self, section: str, name: str, reference: str, goal: float | None = None) -> Figure:
        """One contender against another: the median of the ratios, each of one round."""
        pairs = zip(self._seconds[name], self._seconds[reference], strict=True)
        ratio = median(other / own for own, other in pairs)
        return Figure(section, name, self.rate(name), reference, self.rate(reference), ratio, goal)


def take_turns(contenders: Mapping[str, Run], count: int, rounds: int) -> Rates:
    """Let each do its thing ``count`` times, in turn, for so many rounds after one to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for each in range(rounds + 1):
        for name, run in contenders.items():
            gc.collect()
            took = run(count)
            if each:
                seconds[name].append(took)
    return Rates(seconds, count)


def repeated(once: Callable[[], object]) -> Run:
    """A run of something that is called without arguments."""

    def run(count: int) -> float:
        began = time.perf_counter()
        for _ in range(count):
            once()
        return time.perf_counter() - began

    return run
