"""``make soak-campaign``: 100,000 rounds with bursts of two to four faults, in two processes.

Tables are played in shares. Each finished share is a line of JSON; a campaign that was interrupted goes on
behind the last line of the same commit and seed. The result is written as a page of ``docs/campaigns``.
"""

import argparse
import json
import multiprocessing
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_simulators.mechanism.faults import KINDS, PlannedFault
from sabot_simulators.oracle import UNSEEN
from sabot_simulators.soak import AIMED_AT, SoakReport, SoakTable

ROUNDS = 100_000
SHARE = 40  # tables
ROUNDS_A_TABLE = 8  # or recoveries
BURST = (2, 4)  # faults at about the same card
BURSTS = (1, 2)  # of them at a table
APART = 8  # cards within which the faults of a burst happen
COUNTERS = ("faults", "wrong", "unseen")
NUMBERS = ("tables", "rounds", "stops", "claims", "told", "gave_up")
REPOSITORY = Path(__file__).resolve().parents[2]

Line = dict[str, Any]


def bursts(random: Random) -> tuple[PlannedFault, ...]:
    """The faults of one table: one or two bursts, each around one card of the run."""
    return tuple(
        fault
        for _ in range(random.randint(*BURSTS))
        for fault in burst(random, 52 * random.randrange(ROUNDS_A_TABLE) + random.choice(AIMED_AT))
    )


def burst(random: Random, card: int) -> Iterator[PlannedFault]:
    """Two to four faults of any kind within a few cards; the controller counts those of tray and shoe."""
    for _ in range(random.randint(*BURST)):
        kind = random.choice(sorted(KINDS))
        place = random.choice(KINDS[kind][1])
        counted = 2 * card if place == "controller" else card
        yield PlannedFault(kind, place, card=counted + random.randrange(APART))


def share(seed: int, first: int) -> Line:
    """Play one share of tables; its figures."""
    findings, began, where = SoakReport(), time.process_time(), []
    for number in range(first, first + SHARE):
        own = seed * 1_000_003 + number
        before = sum(findings.wrong.values()), findings.gave_up
        table = SoakTable(own, findings, bursts(Random(own)), ROUNDS_A_TABLE)
        table.play()
        findings.tables += 1
        findings.faults.update(each.fault.kind for each in table.machine.faults.happened)
        if (sum(findings.wrong.values()), findings.gave_up) != before:
            where.append(number)
    line: Line = {name: getattr(findings, name) for name in NUMBERS}
    line |= {name: dict(getattr(findings, name)) for name in COUNTERS}
    return line | {"first": first, "where": where, "seconds": round(time.process_time() - began, 1)}


def add_up(lines: list[Line]) -> SoakReport:
    """The figures of all shares together."""
    total = SoakReport()
    for line in lines:
        for name in NUMBERS:
            setattr(total, name, getattr(total, name) + line[name])
        for name in COUNTERS:
            getattr(total, name).update(Counter(line[name]))
    return total


def commit() -> str:
    """The commit this runs on, with a mark if files are changed."""
    asked = ["git", "describe", "--always", "--dirty"]
    told = subprocess.run(asked, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return told.stdout.strip() or "unknown"


class Campaign:
    """A run of shares that can be interrupted."""

    def __init__(self, seed: int, kept: Path) -> None:
        self.seed = seed
        self.commit = commit()
        self._kept = kept
        self.lines: list[Line] = []
        if kept.exists():
            for text in kept.read_text().splitlines():
                with suppress(ValueError):  # the last line may be half written
                    line = json.loads(text)
                    if (line["commit"], line["seed"]) == (self.commit, seed):
                        self.lines.append(line)

    def rounds(self) -> int:
        """How many were played."""
        return sum(int(line["rounds"]) for line in self.lines)

    def run(self, rounds: int, processes: int, until: float) -> None:
        """Play until so many rounds were played, or until a time of the monotonic clock."""
        done = {line["first"] for line in self.lines}
        waiting = (first for first in range(0, sys.maxsize, SHARE) if first not in done)
        self._kept.parent.mkdir(parents=True, exist_ok=True)
        spawned = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, spawned) as pool, self._kept.open("a") as kept:
            kept.write("\n")  # behind a line that may be half written
            running = [pool.submit(share, self.seed, next(waiting)) for _ in range(processes)]
            while running:
                line = running.pop(0).result()
                line |= {"commit": self.commit, "seed": self.seed}
                kept.write(json.dumps(line) + "\n")
                kept.flush()
                self.lines.append(line)
                if self.rounds() + len(running) * SHARE < rounds and time.monotonic() < until:
                    running.append(pool.submit(share, self.seed, next(waiting)))


def page(campaign: Campaign, date: str, planted: str, asked: int = ROUNDS) -> str:
    """The result as a page."""
    found = add_up(campaign.lines)
    wrong = sum(found.wrong.values())
    seconds = sum(float(line["seconds"]) for line in campaign.lines)
    ended = "" if found.rounds >= asked else f" of {asked:,}: it was interrupted and can be continued"
    rows = [f"| {kind} | {found.faults[kind]:,} |" for kind in sorted(KINDS)]
    unseen = [f"| `{name}` | {found.unseen[name]:,} |" for name in UNSEEN]
    text = [
        f"# Soak with bursts of faults, {date}",
        "",
        f"Command: `make soak-campaign`, seed {campaign.seed}, commit `{campaign.commit}`.",
        f"Each table meets one or two bursts of {BURST[0]} to {BURST[1]} faults within {APART} cards, "
        "besides what `make soak` does to every table.",
        "",
        "| figure | |",
        "| --- | ---: |",
        f"| tables | {found.tables:,} |",
        f"| rounds | {found.rounds:,}{ended} |",
        f"| faults that happened | {sum(found.faults.values()):,} |",
        f"| times people had to put the machine right | {found.stops:,} |",
        f"| claims judged | {found.claims:,} |",
        f"| **wrong claims without an excuse** | **{wrong:,}** |",
        f"| 95 % upper bound of their rate | {found.upper_bound():.1e} |",
        f"| tables at which the dealer could not go on | {found.gave_up:,} |",
        f"| events that a host heard over a lossy wire, all as reported | {found.told:,} |",
        f"| processor time | {seconds / 3600:.1f} h |",
        "",
    ]
    for what, number in found.wrong.most_common(20):
        text.append(f"- {number} x {what}")
    where = sorted(number for line in campaign.lines for number in line["where"])
    if where:
        text += [f"Tables to look at: {', '.join(map(str, where))}.", ""]
    text += ["## Excused claims", "", "| what no sensor can see | claims |", "| --- | ---: |", *unseen, ""]
    text += ["## Faults", "", "| kind | happened |", "| --- | ---: |", *rows, ""]
    if planted:
        text += [
            "## Planted defects",
            "",
            "`make soak-planted` plants each defect into the controller and plays `make soak`'s tables until "
            "a claim gives it away.",
            "",
            planted,
        ]
    return "\n".join(text).rstrip() + "\n"


def main() -> int:
    """Start or resume a campaign; 1 if a claim was false."""
    parser = argparse.ArgumentParser(prog="python -m sabot_simulators.soak_campaign", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=24 * 60, help="stop after so long, to go on later")
    parser.add_argument("--kept", type=Path, default=REPOSITORY / "build" / "soak-campaign.jsonl")
    parser.add_argument("--planted", type=Path, help="what make soak-planted printed, as a table")
    parser.add_argument("--page", type=Path, help="where the result is written; docs/campaigns if not given")
    arguments = parser.parse_args()
    campaign = Campaign(arguments.seed, arguments.kept)
    campaign.run(arguments.rounds, arguments.processes, time.monotonic() + arguments.minutes * 60)
    date = datetime.now(UTC).date().isoformat()
    planted = arguments.planted.read_text() if arguments.planted else ""
    written = arguments.page or REPOSITORY / "docs" / "campaigns" / f"{date}-soak.md"
    written.write_text(page(campaign, date, planted, arguments.rounds))
    found = add_up(campaign.lines)
    sys.stdout.write(
        f"{found.rounds} rounds of {arguments.rounds}, {sum(found.wrong.values())} wrong claims: {written}\n"
    )
    return 1 if found.wrong else 0


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(main())
