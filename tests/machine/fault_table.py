"""The fault table: every fault at every phase of the machine's work, and what the machine did about it.

Each row plays one table with two decks through two rounds and the shuffles between them, lets its fault or
faults happen, and goes on as far as the machine lets it. Then the table is brought back and must deal a
correct round. ``python -m tests.machine.fault_table`` plays every row and writes ``docs/faults.csv``, the
rows, and ``docs/faults.md``, the page about them.
"""

import csv
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple
from pathlib import Path

from tests.machine.fault_cycle import Row
from tests.machine.fault_page import render
from tests.machine.fault_played import Outcome, Played
from tests.machine.fault_rows import rows

ROOT = Path(__file__).parent.parent.parent
ROWS = ROOT / "docs" / "faults.csv"
PAGE = ROOT / "docs" / "faults.md"
HEADER = (
    "faults", "phase", "card", "then", "then phase", "then card",
    "did", "after ms", "reported", "seen in", "round", "cards", "why", "then did",
    "defects",
)  # fmt: skip


def write(outcomes: dict[Row, Outcome], path: Path = ROWS) -> None:
    """The rows, as data."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(HEADER)
        for row, outcome in outcomes.items():
            lines.writerow((row.name, *astuple(row)[1:], *astuple(outcome)))


def read(path: Path = ROWS) -> dict[Row, Outcome]:
    """The rows, as the file has them."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        assert tuple(next(lines)) == HEADER
        found = {}
        for name, phase, card, then, then_phase, then_card, did, after_ms, *cells in lines:
            row = Row(tuple(name.split(" + ")), phase, card, then, then_phase, then_card)
            found[row] = Outcome(did, int(after_ms) if after_ms else None, *cells)
        return found


def _outcome(row: Row) -> Outcome:
    return Played(row).outcome()


def main() -> None:
    """Play every row; write the rows and the page."""
    table = rows()
    with ProcessPoolExecutor() as pool:
        outcomes = dict(zip(table, pool.map(_outcome, table, chunksize=16), strict=True))
    write(outcomes)
    PAGE.write_text(render(outcomes), encoding="utf-8")
    sys.stdout.write(f"wrote {ROWS.relative_to(ROOT)} and {PAGE.relative_to(ROOT)}: {len(table)} rows\n")
    for did, number in Counter(outcome.did for outcome in outcomes.values()).most_common():
        sys.stdout.write(f"  {did:<22}{number:>5}\n")
    for row, outcome in outcomes.items():
        if outcome.defects:
            sys.stdout.write(f"not sound: {row}: {outcome.defects}\n")


if __name__ == "__main__":
    main()
