"""A fixed few defects that the tests named with them must notice: ``make mutants-sample``, part of CI."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.mutants import campaign
from tests.mutants.campaign import Job
from tests.mutants.fork_server import KILLED, functions_only
from tests.mutants.packages import ROOT

LONG_S = 600.0  # a slow computer is not taken for a test that hangs or passes
LIST = Path(__file__).with_name("planted.toml")


@dataclass(frozen=True, slots=True)
class Defect:
    """A piece of a file, what it becomes, and the tests that notice."""

    what: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]

    def job(self) -> Job:
        """The defect as a mutant; ValueError unless the piece occurs exactly once."""
        before = (ROOT / self.path).read_text(encoding="utf-8")
        if before.count(self.old) != 1:
            raise ValueError(f"{LIST.name}: '{self.what}': the old text is not exactly once in {self.path}")
        after = before.replace(self.old, self.new)
        inside = functions_only(before, after)
        seconds = (LONG_S,) * len(self.tests)
        return Job(self.what, self.path, before, after, self.tests, seconds, inside, LONG_S)


def defects() -> list[Defect]:
    """The list."""
    found = tomllib.loads(LIST.read_text(encoding="utf-8"))["defect"]
    return [Defect(**(each | {"tests": tuple(each["tests"])})) for each in found]


def run(workers: int, say: Callable[[str], None]) -> int:
    """Plant each defect; 1 if the tests did not notice one of them."""
    jobs = [each.job() for each in defects()]
    found = campaign.run(jobs, workers, say, keep_results=False)
    unnoticed = [result for result in found if result.outcome != KILLED]
    for result in unnoticed:
        say(f"NOT NOTICED ({result.outcome}): {result.name}")
    say(f"{len(found) - len(unnoticed)} of {len(jobs)} planted defects were noticed")
    return 1 if unnoticed or len(found) != len(jobs) else 0
