"""``make monte-carlo``: whether the rounds that are really dealt agree with the exact odds.

Rounds are played by ``sabot play`` on emulated machines: shuffled, dealt, read at the exit and settled as at
a table. Of each round one seat is looked at, so that rounds are independent. For every wager the settlement's
lines are compared with the ways the odds count (chi-square), and what was won with the edge (z); p-values are
corrected for how many comparisons there are.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import erfc, sqrt
from typing import Any

import scipy
from rich.console import Console
from rich.progress import Progress
from tests.warm_start import WarmPopen

from sabot_table import ruleset
from sabot_table.odds import WagerOdds, odds
from sabot_table.paytables import LOSE

LEAST_EXPECTED = 5
SIGNIFICANT = 0.001  # of the whole run, all comparisons together
USUAL = ("md-three-card-baccarat", "md-five-treasures-baccarat")
ROUNDS_A_TABLE = 500


class TableFailed(Exception):
    """``sabot play`` did not play its rounds to the end."""


class Tally:
    """What became of the wagers of one seat a round."""

    def __init__(self) -> None:
        self.rounds = 0
        self.lines: dict[str, Counter[str]] = {}
        self.won: Counter[str] = Counter()
        """In cents, less what was lost."""
        self.staked: Counter[str] = Counter()

    def add(self, event: Mapping[str, Any]) -> None:
        """One round as ``sabot play --json`` tells it; void rounds settle nothing."""
        if event["event"] != "round" or event["void"]:
            return
        seats = sorted({line["seat"] for line in event["settlement"]})
        seat = seats[event["round"] % len(seats)]
        self.rounds += 1
        for line in event["settlement"]:
            if line["seat"] == seat:
                name = line["wager"]
                lost = line["outcome"] == "lose"
                self.lines.setdefault(name, Counter())[LOSE if lost else line["line"]] += 1
                self.staked[name] += line["stake_cents"]
                self.won[name] += -line["stake_cents"] if lost else line["pays_cents"] - line["vig_cents"]


@dataclass(frozen=True)
class Agreement:
    """One wager's sample beside its exact odds."""

    exact: WagerOdds
    rounds: int
    edge: float
    """As it came out; positive for the house."""
    error: float
    """The standard error of that."""
    p_edge: float
    p_lines: float


def compare(exact: WagerOdds, lines: Mapping[str, int], won: int, staked: int) -> Agreement:
    """How likely a sample this far from the exact odds is, if they are right."""
    rounds = sum(lines.values())
    chances = {each.name: each.ways / exact.total for each in exact.outcomes}
    unknown = sorted(set(lines) - set(chances))
    if unknown:
        raise ValueError(f"{exact.wager}: settled by lines that the odds do not have: {unknown}")
    mean = -float(exact.house_edge)
    variance = sum(float(each.pays) ** 2 * each.ways for each in exact.outcomes) / exact.total - mean**2
    error = sqrt(variance / rounds)
    z = (won / staked - mean) / error if error else 0.0
    statistic, freedom = 0.0, -1
    rare_seen, rare_expected = 0, 0.0
    for name, chance in chances.items():
        if chance * rounds < LEAST_EXPECTED:
            rare_seen, rare_expected = rare_seen + lines.get(name, 0), rare_expected + chance * rounds
            continue
        statistic += (lines.get(name, 0) - chance * rounds) ** 2 / (chance * rounds)
        freedom += 1
    if rare_expected >= LEAST_EXPECTED:
        statistic += (rare_seen - rare_expected) ** 2 / rare_expected
        freedom += 1
    p_lines = float(scipy.stats.chi2.sf(statistic, freedom)) if freedom > 0 else 1.0
    return Agreement(exact, rounds, -won / staked, error, erfc(abs(z) / sqrt(2)), p_lines)


def agreements(rules: ruleset.RuleSet, tally: Tally) -> list[Agreement]:
    """Every wager that was made, by the paytable in force."""
    found = []
    for exact in odds(rules):
        name = exact.wager
        if name in tally.lines and exact.paytable == rules.paytable(name).letter:
            found.append(compare(exact, tally.lines[name], tally.won[name], tally.staked[name]))
    return found


def least_p(found: Iterable[Agreement]) -> float:
    """The least of all p-values, corrected for their number."""
    values = [p for each in found for p in (each.p_edge, each.p_lines)]
    return min(1.0, min(values) * len(values))


def play(rules: str, rounds: int, seed: int) -> Iterator[Mapping[str, Any]]:
    """The events of one emulated table."""
    command = ["play", "--device", "sim://", "--rules", rules]
    command += ["--wagers", "auto", "--rounds", str(rounds), "--seed", str(seed), "--json"]
    with WarmPopen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        dealt = 0
        for line in process.stdout:
            event = json.loads(line)
            dealt += event["event"] == "round"
            yield event
        complaint = process.stderr.read()
    if process.returncode or dealt != rounds:
        ended = f"{dealt} of {rounds} rounds, exit {process.returncode}"
        raise TableFailed(f"sabot play, seed {seed}: {ended}: {complaint.strip()}")


def sample(rules: str, rounds: int, processes: int, seed: int, progress: Progress) -> Tally:
    """So many rounds, at tables that play one beside the other."""
    tally = Tally()
    task = progress.add_task(rules, total=rounds)

    def one(number: int) -> None:
        for event in play(rules, min(ROUNDS_A_TABLE, rounds - number * ROUNDS_A_TABLE), seed + number):
            tally.add(event)
            if event["event"] == "round":
                progress.advance(task)

    tables = -(-rounds // ROUNDS_A_TABLE)
    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(one, range(tables)))
    return tally


def show(console: Console, found: Iterable[Agreement]) -> None:
    """One line a wager."""
    for each in found:
        letter = f" {each.exact.paytable}" if each.exact.paytable else ""
        console.print(
            f"  {each.exact.wager + letter:<24} edge {float(each.exact.house_edge):>8.4f} exact,"
            f" {each.edge:>8.4f} ± {each.error:.4f} dealt; p {each.p_edge:.3f}, by lines {each.p_lines:.3f}",
            soft_wrap=True,
        )


def main() -> int:
    """Play, compare and report; 1 if the dealt rounds do not agree with the odds."""
    parser = argparse.ArgumentParser(prog="python -m tests.table.monte_carlo")
    parser.add_argument("--rounds", type=int, default=20_000, help="of each rule set")
    parser.add_argument("--rules", action="append", help=f"by default {' and '.join(USUAL)}")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    console = Console(highlight=False)
    everything: list[Agreement] = []
    for name in arguments.rules or USUAL:
        began = time.monotonic()
        with Progress(console=console, transient=True) as progress:
            tally = sample(name, arguments.rounds, arguments.processes, arguments.seed, progress)
        found = agreements(ruleset.load(name), tally)
        everything += found
        took = time.monotonic() - began
        console.print(f"{name}: {tally.rounds} rounds in {took:.0f} s")
        show(console, found)
    least = least_p(everything)
    agrees = least >= SIGNIFICANT
    verdict = "agrees with the odds" if agrees else "DOES NOT AGREE with the odds"
    console.print(f"least p, corrected: {least:.3f}: {verdict}")
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
