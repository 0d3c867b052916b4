"""A failing scenario shrunk to a short story: every fault and trouble that is not needed is left out."""

from collections.abc import Callable
from dataclasses import replace

from sabot_simulators.mechanism.faults import PlannedFault
from sabot_simulators.whole_system.run import Result, run
from sabot_simulators.whole_system.scenario import Scenario, Trouble

TRIES = 60
LINES = 40


class Shrinker:
    """Looks for the smallest part of a scenario that still shows one of the same problems."""

    def __init__(self, found: Result, play: Callable[[Scenario], Result] = run, tries: int = TRIES) -> None:
        self._kinds = found.kinds
        self._play = play
        self._left = tries
        self.result = found
        """The result of the smallest scenario so far."""

    def shrink(self, scenario: Scenario) -> Scenario:
        """The smallest scenario that was found; another run of it fails in the same way."""
        size = max(len(scenario.parts()) // 2, 1)
        while size:
            smaller = self._without_some(scenario, size)
            if smaller is None:
                size //= 2
            else:
                scenario = smaller
                size = min(size, max(len(scenario.parts()) // 2, 1))
        return self._shorter(scenario)

    def _without_some(self, scenario: Scenario, size: int) -> Scenario | None:
        parts = scenario.parts()
        for at in range(0, len(parts), size):
            smaller = _with(scenario, parts[:at] + parts[at + size :])
            if self._fails(smaller):
                return smaller
        return None

    def _shorter(self, scenario: Scenario) -> Scenario:
        """End soon after the first problem, and leave out what the problem does not need."""
        minutes = min(int(first_problem_s(self.result) // 60) + 1, scenario.minutes)
        for changed in (
            {"minutes": minutes},
            {"observer": False},
            {"days_alone": 0.0},
            {"ticks_from_us": 0},
            {"pc_ticks_from_ms": 0},
        ):
            smaller = replace(scenario, **changed)
            if smaller != scenario and self._fails(smaller):
                scenario = smaller
        return scenario

    def _fails(self, scenario: Scenario) -> bool:
        if self._left <= 0:
            return False
        self._left -= 1
        result = self._play(scenario)
        if not result.kinds & self._kinds:
            return False
        self.result = result
        return True


def _with(scenario: Scenario, parts: list[PlannedFault | Trouble]) -> Scenario:
    return replace(
        scenario,
        faults=tuple(part for part in parts if isinstance(part, PlannedFault)),
        troubles=tuple(part for part in parts if isinstance(part, Trouble)),
    )


def first_problem_s(result: Result) -> float:
    """When the first problem was noted."""
    return float(result.problems[0].split(" s: ", 1)[0]) if result.problems else result.virtual_s


def tell(scenario: Scenario, result: Result) -> str:
    """The story, for people."""
    lines = [f"seed {scenario.seed}, {scenario.minutes} minutes; the board's counter begins at "
             f"{scenario.ticks_from_us} us, the PC's at {scenario.pc_ticks_from_ms} ms"]  # fmt: skip
    lines += [f"  {part}" for part in scenario.parts()] or ["  no fault and no trouble"]
    problem = next((at for at, line in enumerate(result.story) if "PROBLEM" in line), len(result.story))
    lines += ["...", *result.story[max(problem - LINES, 0) : problem + 1], "", "found:"]
    lines += [f"  {each}" for each in result.problems[:10]]
    return "\n".join(lines)
