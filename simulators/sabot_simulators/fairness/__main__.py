"""``python -m sabot_simulators.fairness``: shuffle, test the order the cards really have, say what was found.

Exit status: 0 for uniform, 1 for biased, 2 for a run that could not be made.
"""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from sabot_simulators.fairness.evidence import Evidence, gather
from sabot_simulators.fairness.page import write_page
from sabot_simulators.fairness.plants import PLANTS
from sabot_simulators.fairness.shuffling import Orders, ShuffleFailed

CARDS = (52, 104, 156, 208, 260, 312, 364, 416)


def main(arguments: list[str] | None = None) -> int:
    """Run it; 0 for uniform, 1 for biased, 2 if it could not be run."""
    asked = _parser().parse_args(arguments)
    console, aside = Console(highlight=False), Console(stderr=True, highlight=False)
    try:
        evidence = _gather(asked, aside)
    except ShuffleFailed as failed:
        aside.print(f"the machine stopped: {failed}")
        return 2
    if asked.orders is not None:
        write_orders(asked.orders, evidence.orders)
    title = asked.plant or "the reference machine"
    if asked.report is not None:
        aside.print(f"wrote {write_page(asked.report, title, evidence.findings, evidence.orders)}")
    if asked.json:
        for line in as_json(evidence, asked.plant):
            console.print(line, soft_wrap=True, markup=False)
    else:
        _show(console, title, evidence)
    return 1 if evidence.findings.verdict == "biased" else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sabot_simulators.fairness", description=__doc__)
    parser.add_argument("--shuffles", type=_positive, default=2000, metavar="N")
    parser.add_argument("--cards", type=int, choices=CARDS, default=52)
    parser.add_argument("--plant", choices=PLANTS, help="a bias to be found")
    parser.add_argument("--until-flagged", action="store_true", help="stop as soon as a bias is found")
    parser.add_argument("--orders", type=Path, metavar="FILE", help="write the orders, one a line")
    parser.add_argument("--report", type=Path, metavar="DIR", help="write a page with plots")
    parser.add_argument("--json", action="store_true", help="one object a line: each test, then the verdict")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=_positive, metavar="N", help="as many as there are cores")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not above 0")
    return number


def _gather(asked: argparse.Namespace, console: Console) -> Evidence:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(f"shuffling {asked.cards} cards", total=asked.shuffles)
        return gather(
            asked.shuffles,
            asked.cards,
            asked.seed,
            asked.plant,
            asked.processes,
            asked.until_flagged,
            lambda count: progress.advance(task, count),
        )


def write_orders(path: Path, orders: Orders) -> None:
    """One order a line: cards by their place in the tray, from 0, the top one first."""
    with path.open("w", encoding="ascii") as file:
        for order in orders:
            file.write(" ".join(map(str, order)) + "\n")


def as_json(evidence: Evidence, plant: str | None) -> list[str]:
    """One object a line."""
    findings = evidence.findings
    lines = [
        {
            "test": test.name,
            "statistic": test.statistic,
            "expected": test.expected,
            "p": test.p,
            "p_corrected": test.p_corrected,
            "detectable": findings.detectable(test),
            "detectable_in": test.unit,
        }
        for test in findings.tests
    ]
    verdict = {
        "verdict": findings.verdict,
        "shuffles": findings.shuffles,
        "cards": findings.cards,
        "level": findings.level,
        "plant": plant,
        "flagged_at": evidence.flagged_at,
        "seconds_per_thousand": round(evidence.seconds_per_thousand, 3),
    }
    return [json.dumps(line) for line in [*lines, verdict]]


def _show(console: Console, title: str, evidence: Evidence) -> None:
    findings = evidence.findings
    table = Table("test", "seen", "expected", "p", "p, corrected", "found with 99 %", "in")
    for test in findings.tests:
        numbers = (test.statistic, test.expected, test.p, test.p_corrected, findings.detectable(test))
        table.add_row(test.name, *(f"{number:.4g}" for number in numbers), test.unit)
    console.print(table)
    console.print(
        f"{title}: {findings.verdict}, {findings.shuffles} shuffles of {findings.cards} cards, "
        f"{evidence.seconds_per_thousand:.1f} s a thousand"
    )
    if evidence.flagged_at is not None:
        console.print(f"found after {evidence.flagged_at} shuffles")


if __name__ == "__main__":
    sys.exit(main())
