"""The portable tests again, on a real MicroPython with a small heap: one test here for each there."""

import ast
import functools
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PORTABLE = Path(__file__).parent / "portable"
HEAP = "832k"  # source is compiled into it, and a 64-bit object is twice the size of a board's


def texts_of(path: Path) -> dict[str, str]:
    """A module's test functions: the text of each by its name."""
    text = path.read_text(encoding="utf-8")
    functions = [each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)]
    tests = [each for each in functions if each.name.startswith("test_")]
    return {each.name: ast.get_source_segment(text, each) or "" for each in tests}


TESTS = {path.stem: texts_of(path) for path in sorted(PORTABLE.glob("test_*.py"))}
ALL = [(module, name) for module, tests in TESTS.items() for name in tests]
CUTTING = [each for each in ALL if "CUT_EVERY" in TESTS[each[0]][each[1]]]
"""Those that go further in a full run."""


def run_tests(micropython: str, sweeps: str, *chosen: str) -> tuple[dict[str, bool], str]:
    """Run modules, or single tests (``module.test``), in one process: outcome by name, what was printed."""
    path = os.pathsep.join(["protocol", "firmware", "simulators", "tests/portable", ".frozen"])
    ran = subprocess.run(
        [micropython, "-X", f"heapsize={HEAP}", "tests/portable/runner.py", *chosen],
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


@functools.cache
def run_module(micropython: str, module: str) -> tuple[dict[str, bool], str]:
    """Run one module's tests in one process, cuts of the power as in a sample."""
    return run_tests(micropython, "sample", module)


@pytest.mark.parametrize(
    ("module", "name"),
    [pytest.param(*each, marks=pytest.mark.xdist_group(each[0])) for each in ALL],
)
def test_on_micropython(micropython: str, module: str, name: str) -> None:
    outcomes, printed = run_module(micropython, module)
    assert name in outcomes, f"{name} did not run:\n{printed}"
    assert outcomes[name], printed


@pytest.mark.full
@pytest.mark.parametrize(("module", "name"), CUTTING)
def test_more_power_cuts_on_micropython(micropython: str, module: str, name: str) -> None:
    outcomes, printed = run_tests(micropython, os.environ["SABOT_SWEEPS"], f"{module}.{name}")
    assert outcomes == {name: True}, printed
