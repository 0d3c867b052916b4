"""``python -m tests.bench``: rates of wire, driver and machine, compared with others, and goals met.

It judges nothing: the goals are shown, and the exit status is 0 whether they are met or not.
"""

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from tests.bench import codec, driver, evidence, machine, on_micropython, over_pty, pages
from tests.bench.measure import Figure

WIDTH = 130  # columns the table needs


def stay_on_one_core() -> int | None:
    """Keep this process and those it starts on the last core it may use; None where that cannot be said."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def figures(quick: bool) -> Iterator[Figure]:
    """Everything measured, in about a minute; or at once and good for nothing but to see that it runs."""
    count, rounds = (10, 1) if quick else (1500, 15)
    yield from machine.machine_figures(quick)
    yield from codec.typed(count, rounds)
    yield from codec.frames(count, rounds)
    yield from over_pty.figures(40 if quick else 640, 1 if quick else 25)
    yield from driver.figures(20 if quick else 500, 1 if quick else 15)
    yield from evidence.figures(1000 if quick else 1_000_000)
    yield from on_micropython.figures(64 if quick else 20000)


def table(rows: list[Figure]) -> Table:
    """The figures for a person."""
    shown = Table(
        title="Sabot in numbers",
        caption="a second, unless it says otherwise; ratio: median over rounds; bytes: allocated for a frame",
    )
    headings = ("measured", "figure", "p50/p99 µs", "against", "figure", "ratio", "bytes", "goal", "met")
    for heading in headings:
        shown.add_column(heading, justify="left" if heading in ("measured", "against") else "right")
    section = ""
    for row in rows:
        if row.section != section:
            section = row.section
            shown.add_section()
            shown.add_row(f"[bold]{section}[/bold]")
        goal = f"≥ {row.goal:g}" if row.goal is not None else f"≤ {row.allowed:g} B" if row.allowed else ""
        goal = f"≤ {row.at_most:g}" if row.at_most is not None else goal
        goal = f"≥ {row.least:,.0f}/s" if row.least is not None else goal
        goal = f"p99 ≤ {row.latest_us / 1000:.0f} ms" if row.latest_us is not None else goal
        met = {None: "", True: "[green]yes[/green]", False: "[red]no[/red]"}[row.met]
        shown.add_row(
            row.name,
            _shown(row.rate),
            "" if row.p50_us is None else f"{row.p50_us:.0f}/{row.p99_us:.0f}",
            row.reference,
            "" if row.reference_rate is None else _shown(row.reference_rate),
            "" if row.ratio is None else f"{row.ratio:.2f}",
            "" if row.allocated is None else f"{row.allocated:,.0f}",
            goal,
            met,
        )
    return shown


def _shown(figure: float) -> str:
    return f"{figure:,.0f}" if figure > 1000 else f"{figure:.2f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Sabot in numbers.")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.add_argument("--quick", action="store_true", help="only see that everything runs")
    parser.add_argument("--machine", action="store_true", help="only shuffles and the emulated device, 20 s")
    parser.add_argument("--pages", action="store_true", help="only the pages, a minute")
    arguments = parser.parse_args()
    measured = machine.machine_figures(arguments.quick) if arguments.machine else figures(arguments.quick)
    if arguments.pages:
        measured = pages.figures(50 if arguments.quick else 1500)
    core = None if arguments.pages else stay_on_one_core()
    console = Console()
    console.width = max(console.width, WIDTH)
    if arguments.json:
        for row in measured:
            console.out(json.dumps({**asdict(row), "met": row.met}), highlight=False)
        return
    with console.status("measuring, about a minute"):
        rows = list(measured)
    console.print(table(rows))
    console.print("everything ran on " + ("any core" if core is None else f"core {core} alone"))
    if not (arguments.machine or arguments.pages) and not any(
        row.section == "on MicroPython" for row in rows
    ):
        console.print("MicroPython is not installed here: its figures are missing")


if __name__ == "__main__":
    main()
