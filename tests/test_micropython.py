"""The portable tests again, on a real MicroPython with a small heap: one test here for each there."""

import ast
import functools
import os
import subprocess
from pathlib import Path

import pytest
from tests.sweeps import Amount

pytestmark = pytest.mark.slow

PORTABLE = Path(__file__).parent / "portable"
HEAP = "768k"  # source is compiled into it, and a 64-bit object is twice the size of a board's


def names_of(path: Path) -> list[str]:
    """The names of a module's test functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [each for each in tree.body if isinstance(each, ast.FunctionDef)]
    return [each.name for each in functions if each.name.startswith("test_")]


ALL = [(path.stem, name) for path in sorted(PORTABLE.glob("test_*.py")) for name in names_of(path)]


@functools.cache
def run_module(micropython: str, module: str, full: bool) -> tuple[dict[str, bool], str]:
    """Run one module's tests in one process: outcome by name, and everything it printed."""
    path = os.pathsep.join(["protocol", "firmware", "simulators", "tests/portable", ".frozen"])
    sweeps = os.environ["SABOT_SWEEPS"] if full else "sample"
    ran = subprocess.run(
        [micropython, "-X", f"heapsize={HEAP}", "tests/portable/runner.py", module],
        env={**os.environ, "MICROPYPATH": path, "SABOT_SWEEPS": sweeps},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    outcomes = {}
    for line in ran.stdout.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] in ("PASS", "FAIL"):
            outcomes[words[2]] = words[0] == "PASS"
    return outcomes, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("module", "name"),
    [pytest.param(*each, marks=pytest.mark.xdist_group(each[0])) for each in ALL],
)
def test_on_micropython(micropython: str, module: str, name: str, amount: Amount) -> None:
    outcomes, printed = run_module(micropython, module, amount.full)
    assert name in outcomes, f"{name} did not run:\n{printed}"
    assert outcomes[name], printed
