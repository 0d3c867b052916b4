"""Which tests run which lines, recorded one test module at a time and kept until something of it changes.

A test module's record is stale when the module, or a mutated file that its tests run, has changed.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from coverage import CoverageData
from tests.mutants.coverage_plugin import CONTEXT, FOLDER
from tests.mutants.packages import CODE_FOLDERS, ROOT, all_mutated_files, test_files

BUILD = ROOT / "build/mutants"
RECORDS = BUILD / "map"
LONGEST_S = 1200  # of one test module
CONFIG = """[run]
data_file = {folder}/data
parallel = true
concurrency = thread
sigterm = true
context = ${{{context}-}}
disable_warnings = no-data-collected, module-not-measured, couldnt-parse
include =
{include}
"""
START = "import coverage\n\ncoverage.process_startup()\n"


@dataclass
class CoverageMap:
    """The tests that run a line, and what each of them costs."""

    seconds: dict[str, float] = field(default_factory=dict)
    """A test's duration."""
    lines: dict[str, dict[int, set[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    """Path, line: the tests that run it; "" stands for the import."""

    def tests_for(self, path: str, lines: range) -> list[str]:
        """The tests that run one of these lines, fastest first; of the whole file if only its import does."""
        here = self.lines.get(path, {})
        found = {test for line in lines for test in here.get(line, ())} - {""}
        if not found and self.at_import(path, lines):
            found = {test for tests in here.values() for test in tests} - {""}
        return sorted(
            (test for test in found if test in self.seconds), key=lambda test: (self.seconds[test], test)
        )

    def at_import(self, path: str, lines: range) -> bool:
        """Whether one of these lines runs when the module, or another one, is imported."""
        here = self.lines.get(path, {})
        return any("" in here.get(line, ()) for line in lines)


def load() -> CoverageMap:
    """The map as far as it is recorded, without stale records."""
    made = CoverageMap()
    for test in test_files():
        record = _fresh(test)
        if record is None:
            continue
        made.seconds.update(record["seconds"])
        tests = ["", *record["seconds"]]
        for path, lines in record["lines"].items():
            for line, numbers in lines.items():
                made.lines[path][int(line)].update(tests[number] for number in numbers)
    return made


def record(workers: int, say: Callable[[str], None], only: str = "") -> None:
    """Record the test modules whose record is missing or stale."""
    due = [test for test in test_files() if only in test and _fresh(test) is None]
    _digest.cache_clear()
    with ThreadPoolExecutor(workers) as pool:
        for number, text in enumerate(pool.map(_record, due), 1):
            say(f"{number}/{len(due)} {text}")


def _path(test: str) -> Path:
    return RECORDS / (test.removesuffix(".py").replace("/", ".") + ".json")


@cache
def _digest(path: str) -> str:
    file = ROOT / path
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.exists() else ""


def _fresh(test: str) -> "dict[str, Any] | None":
    try:
        found: dict[str, Any] = json.loads(_path(test).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    same = found["test"] == _digest(test) and all(
        _digest(path) == was for path, was in found["files"].items()
    )
    return found if same else None


def _record(test: str) -> str:
    folder = BUILD / "recording" / test.replace("/", ".")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = all_mutated_files()
    before = {path: _digest(path) for path in files}
    include = "\n".join(f"    {ROOT / path}" for path in files)
    (folder / "coveragerc").write_text(
        CONFIG.format(folder=folder, context=CONTEXT, include=include), encoding="utf-8"
    )
    (folder / "sitecustomize.py").write_text(START, encoding="utf-8")
    environment = os.environ | {
        FOLDER: str(folder),
        "PYTHONPATH": os.pathsep.join([str(folder), *(str(ROOT / each) for each in CODE_FOLDERS)]),
    }
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider",
        "-p", "tests.mutants.coverage_plugin", f"--basetemp={folder}/tmp", test,
    ]  # fmt: skip
    with (folder / "output.txt").open("wb") as output:
        try:
            subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=output,
                timeout=LONGEST_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{test}: not finished in {LONGEST_S} s, left out"
    if not (folder / "tests.json").exists():
        return f"{test}: no result, see {folder}/output.txt"
    seconds = json.loads((folder / "tests.json").read_text(encoding="utf-8"))
    lines = _lines(folder, {name: number for number, name in enumerate(["", *seconds])})
    found = {
        "test": _digest(test),
        "files": {path: before[path] for path in lines},
        "seconds": {name: round(took, 3) for name, took in seconds.items()},
        "lines": lines,
    }
    RECORDS.mkdir(parents=True, exist_ok=True)
    _path(test).write_text(json.dumps(found), encoding="utf-8")
    shutil.rmtree(folder)
    return f"{test}: {len(seconds)} tests, {sum(seconds.values()):.0f} s"


def _lines(folder: Path, numbers: dict[str, int]) -> dict[str, dict[int, list[int]]]:
    """Path and line: the numbers of the tests that run it."""
    lines: dict[str, dict[int, list[int]]] = {}
    for file in folder.glob("data.*"):
        data = CoverageData(basename=str(file))
        data.read()
        for measured in data.measured_files():
            here = lines.setdefault(Path(measured).relative_to(ROOT).as_posix(), {})
            for line, contexts in data.contexts_by_lineno(measured).items():
                tests = {numbers[each] for each in contexts if each in numbers}
                here[line] = sorted(tests.union(here.get(line, ())))
    return lines
