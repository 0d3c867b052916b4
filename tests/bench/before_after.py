"""The bench of an older checkout and of this one, in turns: ``python -m tests.bench.before_after FOLDER``.

Each turn measures both, one after the other, each in a process of its own with the modules of its checkout.
Times are processor times of that process, so that other jobs of the computer change little. Only pieces that
both checkouts have and that stay in one process are compared: messages, frames, the emulated device.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tests.code_lines import FOLDERS, ROOT

TURNS = 9
CHILD = """
import json, time
time.perf_counter = time.process_time
from tests.bench import codec, machine
rows = [*codec.typed(300, 3), *codec.frames(300, 3), *machine.rounds(20), *machine.batches(1)]
print(json.dumps({row.name: row.rate for row in rows}))
"""


def measured(folder: Path) -> dict[str, float]:
    """The figures of a checkout: a second of processor time, or what their names say."""
    path = os.pathsep.join(str(folder / each) for each in ("", *FOLDERS))
    ran = subprocess.run(
        [sys.executable, "-c", CHILD],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(ran.stdout)
    return found


def compared(before: Path, turns: int) -> list[tuple[str, float, float, float]]:
    """Each figure before and now, and the median of its ratios, each of one turn."""
    figures: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for _ in range(turns):
        older, newer = measured(before), measured(ROOT)
        for name in older:
            if name in newer:
                figures[name].append((older[name], newer[name]))
    return [
        (
            name,
            median(old for old, _ in pairs),
            median(new for _, new in pairs),
            median(n / o for o, n in pairs),
        )
        for name, pairs in figures.items()
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.before_after", description=__doc__)
    parser.add_argument("folder", type=Path, help="a checkout of the older commit")
    parser.add_argument("--turns", type=int, default=TURNS)
    asked = parser.parse_args(arguments)
    sys.stdout.write("| figure | before | now | now / before |\n| --- | ---: | ---: | ---: |\n")
    for name, old, new, ratio in compared(asked.folder.resolve(), asked.turns):
        shown = [f"{each:,.0f}" if each > 1000 else f"{each:.3g}" for each in (old, new)]
        sys.stdout.write(f"| {name} | {shown[0]} | {shown[1]} | {ratio:.2f} |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
