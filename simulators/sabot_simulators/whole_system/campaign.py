"""``make simulate-everything``: many seeds of the whole system, in two processes; goes on where it stopped.

Each finished seed is a line of JSON. A campaign of the same commit goes on behind its last line. The result
is a page of ``docs/campaigns`` that adds up over runs. A seed that fails is shrunk, and its story is printed.
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_simulators.soak_campaign import REPOSITORY, commit
from sabot_simulators.whole_system.run import Result, kind_of, run
from sabot_simulators.whole_system.scenario import MINUTES, WEEKS_EVERY, draw
from sabot_simulators.whole_system.shrink import Shrinker, tell

SEEDS = 2000
GOAL = 300  # virtual seconds a second of processor time
SUMS = (
    "virtual_s", "alone_s", "processor_s", "rounds", "claims", "events", "commands", "power_cuts",
    "program_starts", "stops", "gave_up", "excused",
)  # fmt: skip
NAMES = {
    "virtual_s": "virtual seconds",
    "rounds": "rounds",
    "claims": "claims judged by the oracle",
    "excused": "wrong claims that no sensor could prevent (named by the oracle)",
    "events": "events emitted, each once in the journals or in an exact gap",
    "commands": "commands executed, each once",
    "power_cuts": "power cuts of the board",
    "program_starts": "starts of the driver's programs",
    "stops": "times people had to put the table right",
    "gave_up": "times they could not, and switched the machine off and on",
}

Line = dict[str, Any]


def one(seed: int) -> Line:
    """Run one seed; its figures."""
    try:
        result = run(draw(seed))
    except Exception as error:  # noqa: BLE001  the campaign goes on, and the page shows it
        return {"seed": seed, "problems": [f"0 s: the simulation failed: {error!r}"]} | dict.fromkeys(SUMS, 0)
    line: Line = {name: getattr(result, name) for name in SUMS}
    return line | {"seed": seed, "problems": result.problems}


class Campaign:
    """A run of seeds that can be interrupted."""

    def __init__(self, kept: Path, version: str) -> None:
        self._kept = kept
        self.version = version
        self.lines: list[Line] = []
        if kept.exists():
            for text in kept.read_text().splitlines():
                with suppress(ValueError):  # the last line may be half written
                    line = json.loads(text)
                    if line["commit"] == version:
                        self.lines.append(line)

    def run(self, seeds: int, processes: int, until: float) -> None:
        """Run seeds until so many were run, or until a time of the monotonic clock."""
        done = {line["seed"] for line in self.lines}
        waiting = iter([seed for seed in range(1, seeds + 1) if seed not in done])
        self._kept.parent.mkdir(parents=True, exist_ok=True)
        with multiprocessing.get_context("spawn").Pool(processes) as pool, self._kept.open("a") as kept:
            kept.write("\n")  # behind a line that may be half written
            for line in pool.imap_unordered(one, _until(waiting, until)):
                line["commit"] = self.version
                kept.write(json.dumps(line) + "\n")
                kept.flush()
                self.lines.append(line)
                if line["problems"]:
                    sys.stdout.write(f"seed {line['seed']}: {line['problems'][0]}\n")
                    sys.stdout.flush()

    def sum(self, name: str) -> float:
        """A figure of all seeds together."""
        return sum(float(line[name]) for line in self.lines)


def _until(seeds: Iterator[int], until: float) -> Iterator[int]:
    for seed in seeds:
        if time.monotonic() >= until:
            return
        yield seed


def page(campaign: Campaign, date: str, asked: int, planted: str) -> str:
    """The result as a page."""
    lines = campaign.lines
    failed = sorted((line for line in lines if line["problems"]), key=lambda line: int(line["seed"]))
    alone = [line for line in lines if line["alone_s"]]
    processor_s = campaign.sum("processor_s") or 1.0
    attended_s = campaign.sum("virtual_s") - campaign.sum("alone_s")
    ended = "" if len(lines) >= asked else f" of {asked:,}: it was interrupted and can be continued"
    text = [
        f"# The whole system, {date}",
        "",
        f"Command: `make simulate-everything SEEDS={asked}`, commit `{campaign.version}`.",
        f"Each seed is {MINUTES} virtual minutes of play with random faults and troubles. Every "
        f"{WEEKS_EVERY}th leaves the device without a host for one to two weeks in between.",
        "",
        "| figure | |",
        "| --- | ---: |",
        f"| seeds | {len(lines):,}{ended} |",
        f"| seeds over weeks | {len(alone):,} |",
        f"| **seeds with a problem** | **{len(failed):,}** |",
        *(f"| {words} | {campaign.sum(name):,.0f} |" for name, words in NAMES.items()),
        f"| processor time | {processor_s / 3600:.2f} h |",
        f"| virtual seconds per second, weeks without a host included | "
        f"{campaign.sum('virtual_s') / processor_s:,.0f} |",
        f"| the same while hosts are attached (goal {GOAL}) | {attended_s / processor_s:,.0f} |",
        "",
        "The last figure counts the processor time of the weeks too, so it is a lower bound.",
        "",
    ]
    for line in failed:
        text.append(f"- seed {line['seed']}: {'; '.join(sorted(set(map(kind_of, line['problems']))))[:300]}")
    if failed:
        text.append("")
    if planted:
        text += ["## Planted defects", "", "`make simulate-planted`, seeds from 1 on:", "", planted]
    return "\n".join(text).rstrip() + "\n"


def story(seed: int) -> str:
    """Run a seed again and shrink it, if it fails."""
    scenario = draw(seed)
    found: Result = run(scenario)
    if not found.problems:
        return f"seed {seed}: nothing is wrong; trace {found.trace}"
    shrinker = Shrinker(found)
    smallest = shrinker.shrink(scenario)
    return tell(smallest, shrinker.result)


def main() -> int:
    """Start or resume a campaign, or tell the story of one seed; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m sabot_simulators.whole_system.campaign", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--seed", type=int, help="only this one: run it, and shrink it if it fails")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=24 * 60, help="stop after so long, to go on later")
    parser.add_argument("--kept", type=Path, default=REPOSITORY / "build" / "simulate-everything.jsonl")
    parser.add_argument("--planted", type=Path, help="what make simulate-planted wrote, as a table")
    parser.add_argument("--commit", help="count this as a run of that commit")
    parser.add_argument("--page", type=Path, help="where the result is written; docs/campaigns if not given")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        told = story(arguments.seed)
        sys.stdout.write(told + "\n")
        return int("nothing is wrong" not in told)
    campaign = Campaign(arguments.kept, arguments.commit or commit())
    campaign.run(arguments.seeds, arguments.processes, time.monotonic() + arguments.minutes * 60)
    date = datetime.now(UTC).date().isoformat()
    planted = arguments.planted.read_text() if arguments.planted else ""
    written = arguments.page or REPOSITORY / "docs" / "campaigns" / f"{date}-whole-system.md"
    written.write_text(page(campaign, date, arguments.seeds, planted))
    failed = sum(bool(line["problems"]) for line in campaign.lines)
    rate = campaign.sum("virtual_s") / (campaign.sum("processor_s") or 1.0)
    sys.stdout.write(
        f"{len(campaign.lines)} seeds of {arguments.seeds}, {failed} with a problem, "
        f"{rate:.0f} virtual seconds per second: {written}\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(main())
