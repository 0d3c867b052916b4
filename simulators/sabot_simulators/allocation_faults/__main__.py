"""``make no-memory``: every message with each of its allocations failing; the result as a page.

The exit code is 1 if anything was wrong.
"""

import argparse
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_simulators.allocation_faults.failing_device import ChildFailed, FailingDevice
from sabot_simulators.allocation_faults.unix_build import build_micropython
from sabot_simulators.allocation_faults.walk import MessageFigures, Walk, walk_through


def main() -> int:
    """Run it; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m sabot_simulators.allocation_faults", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="try only each so many-th allocation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--page", type=Path, help="write the result there")
    options = parser.parse_args()
    console = Console()
    began = time.monotonic()
    device = FailingDevice(build_micropython(), options.seed)
    walk = Told(device, console, options.every)
    try:
        walk_through(walk)
    except ChildFailed as failed:
        console.print(f"a trial ended with an error: {failed}", style="red", markup=False)
        return 1
    finally:
        device.close()
    page = result_page(walk.figures, options.every, options.seed, time.monotonic() - began)
    if options.page is not None:
        options.page.write_text(page)
    wrong = sum(len(each.wrong) for each in walk.figures)
    console.print(f"{sum(each.trials for each in walk.figures):,} trials, {wrong} wrong", highlight=False)
    return 1 if wrong else 0


class Told(Walk):
    """A walk that says where it is."""

    def __init__(self, device: FailingDevice, console: Console, every: int) -> None:
        super().__init__(device, every)
        self._console = console

    def finished(self, figures: MessageFigures) -> None:
        """Print the line of a message."""
        line = f"{figures.message:30} {figures.allocations:5} allocations {figures.trials:5} trials"
        self._console.print(f"{line} {figures.restarts:5} restarts {dict(figures.outcomes)}", highlight=False)
        for each in figures.wrong[:5]:
            self._console.print(f"    {each}", style="red", markup=False, highlight=False)


def result_page(figures: list[MessageFigures], every: int, seed: int, seconds: float) -> str:
    """The result as a page of ``docs/campaigns``."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    trials = sum(each.trials for each in figures)
    wrong = sum(len(each.wrong) for each in figures)
    lines = [
        f"# No memory at any allocation, {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"Command: `make no-memory EVERY={every}`, seed {seed}, commit `{commit or 'unknown'}`.",
        "MicroPython's unix port is built from the sources of the board's image. One allocation that a",
        "message causes finds no memory, or this one and all behind it, until the exception is handled or",
        "ends the device's life. Then the device starts anew, as the board's program does. All trials of a",
        "message begin in the same state.",
        "",
        f"**{trials:,} trials, {wrong} wrong.** Wrong would be: a host without a session, a device without",
        "its keys, a command executed twice, a host told something else about it than was done, a wrong",
        f"claim about cards, a table that cannot play on. It took {seconds / 60:.0f} minutes.",
        "",
        "*Absorbed*: the firmware found no memory and went on. *Outcomes*: what the host was told.",
        "",
        "| message | allocations | trials | new lives | absorbed | outcomes | wrong |",
        "| --- | ---: | ---: | ---: | ---: | --- | ---: |",
    ]
    for each in figures:
        outcomes = ", ".join(f"{name} {count}" for name, count in sorted(each.outcomes.items()))
        lines.append(
            f"| {each.message} | {each.allocations} | {each.trials} | {each.restarts} | {each.absorbed} "
            f"| {outcomes} | {len(each.wrong)} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(main())
