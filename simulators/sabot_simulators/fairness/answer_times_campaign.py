"""The campaign of answer times in this process: 5,000 decks of the strongest attack, a tenth of each other.

Decks are attacked in shares. Each finished deck is a line of JSON; a campaign that was interrupted goes on
behind the last deck of the same commit and seed. The result is written as a page of ``docs/campaigns``.

    python -m sabot_simulators.fairness.answer_times_campaign --decks 5000
"""

import argparse
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_simulators.fairness.answer_times import (
    MODES,
    PLANTED,
    STRONGEST,
    Found,
    Heard,
    Mode,
    attack,
    judge,
    keep,
    load,
)
from sabot_simulators.soak_campaign import REPOSITORY, commit

DECKS = REPOSITORY / "build" / "answer-times-in-process"
PAGES = REPOSITORY / "docs" / "campaigns"
SHARE = 25  # decks
HEAD = (
    "| attack | decks | answers | at another tick | at another time | jitter, µs | most information "
    "| bits a sample | p | may have escaped, bits a deck |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |"
)
TEXT = """# Answer times in-process, {date}

Command: `python -m sabot_simulators.fairness.answer_times_campaign --decks {decks} --seed {seed}`,
commit `{commit}`. It attacks the firmware in virtual time, each deck at a new table, and goes on where it
stopped. [side-channels.md](../side-channels.md) says what is measured.

{verdict}

In this process the firmware's computation takes no time. So the figures judge the grid, the budget and the
fixed pauses, and say nothing about the board's processor. The campaign on the emulated Pico (`make
attack-board`) does that.

- *At another tick*: the answer took more or fewer ticks than is usual at its place in the shuffle.
- *At another time*: it came more than 0.5 µs from the usual time within its tick.
- *Jitter*: from the earliest to the latest answer within its tick, over all decks and both cables.
- *p*: how often, in 400 exchanges of labels among the decks, any of the 15 pairs of what is seen and what is
  done (30 with two hosts) stands out as much as the pair that is named. It is 1 where every answer of every
  deck was as usual: then there is nothing that labels could explain.
- *May have escaped*: what could have gone unnoticed with that many decks, at 99 %. Where every answer was as
  usual, it is the information of the most frequent deviation that could have stayed unseen in that many
  answers.
- The last row is a planted leak: no grid, and an answer beside an edge is 2.4 ms late. The attack must find
  it.

{head}
{rows}
"""


def wanted(mode: Mode, decks: int) -> int:
    """How many decks of a mode the campaign attacks."""
    return decks if mode is STRONGEST else max(decks // 10, 10)


class AnswerTimesCampaign:
    """The decks of one commit and seed, a file for each mode."""

    def __init__(self, folder: Path, seed: int, decks: int) -> None:
        self.seed = seed
        self.decks = decks
        self.commit = commit()
        self._folder = folder / f"{self.commit.replace(' ', '-')}-{seed}"

    def _path(self, mode: Mode) -> Path:
        return self._folder / f"{mode.name.replace(' ', '_').replace(',', '')}.jsonl"

    def go_on(self, mode: Mode, processes: int, console: Console) -> list[Heard]:
        """Attack the decks of a mode that are missing; all of them."""
        path, goal = self._path(mode), wanted(mode, self.decks)
        there = len(load(path))
        if there:
            with path.open("a") as file:
                file.write("\n")  # behind a line that may be half written
        jobs = [
            (mode.name, self.seed, first, min(SHARE, goal - first)) for first in range(there, goal, SHARE)
        ]
        for share in _attack(jobs, processes):
            for heard in share:
                keep(path, heard)
            there += len(share)
            console.print(f"{mode.name}: {there} of {goal} decks")
        return load(path)[:goal]

    def page(self, found: dict[Mode, Found]) -> str:
        """The page of the result, with its verdict."""
        leaking = [mode.name for mode, each in found.items() if each.leaks and not mode.planted]
        if leaking:
            verdict = f"**Answer times tell something of the slots:** {'; '.join(leaking)}."
        else:
            verdict = "**No attack finds information at 99 %.**"
        if any(mode.planted and not each.leaks for mode, each in found.items()):
            verdict += " **The planted leak was not found:** the campaign proves nothing."
        strongest = found[STRONGEST]
        verdict += (
            f"\nOf the strongest attack's {strongest.samples:,} answers {strongest.moved:,} came at another "
            f"tick and {strongest.differing:,} at another time.\n"
            f"At most {strongest.escaped_bits:.3f} bits a deck, of the order's 225.6, could have "
            "escaped notice."
        )
        return TEXT.format(
            date=datetime.now(UTC).date(),
            decks=self.decks,
            seed=self.seed,
            commit=self.commit,
            verdict=verdict,
            head=HEAD,
            rows="\n".join(_row(mode, each) for mode, each in found.items()),
        )


def _attack(jobs: list[tuple[str, int, int, int]], processes: int) -> Iterator[list[Heard]]:
    """What each job hears, in order; in this process if one is enough."""
    if processes == 1 or not jobs:
        yield from map(_attack_share, jobs)
        return
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_attack_share, jobs)


def _attack_share(job: tuple[str, int, int, int]) -> list[Heard]:
    name, seed, first, decks = job
    mode = next(each for each in (*MODES, PLANTED) if each.name == name)
    return [attack(mode, seed * 1_000_003 + at) for at in range(first, first + decks)]


def _row(mode: Mode, found: Found) -> str:
    return (
        f"| {mode.name} | {found.decks:,} | {found.samples:,} | {found.moved:,} | {found.differing:,} "
        f"| {found.jitter_us:.1f} | {found.pair} | {found.bits:.2g} | {found.p:.3f} "
        f"| {found.escaped_bits:.3f} |"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack, judge, print, write the page; 1 if anything leaks, or if the planted leak is not found."""
    parser = argparse.ArgumentParser(prog="python -m sabot_simulators.fairness.answer_times_campaign")
    parser.add_argument("--decks", type=int, default=5000, help="of the strongest attack")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=DECKS, help="of the decks that were attacked")
    parser.add_argument("--pages", type=Path, default=PAGES, help="the folder of the page")
    asked = parser.parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    campaign = AnswerTimesCampaign(asked.folder, asked.seed, asked.decks)
    found: dict[Mode, Found] = {}
    for mode in (*MODES, PLANTED):
        found[mode] = judge(campaign.go_on(mode, asked.processes, console))
        console.print(_row(mode, found[mode]))
    page = asked.pages / f"{datetime.now(UTC).date()}-answer-times-in-process.md"
    page.write_text(campaign.page(found))
    console.print(str(page))
    return 1 if any(each.leaks is not mode.planted for mode, each in found.items()) else 0


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(main())
