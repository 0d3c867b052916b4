"""The examples of docs/driver.md run, and its tables are complete."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sabot_cli.main import COMMANDS
from sabot_driver import errors

PAGE = Path(__file__).parent.parent.parent / "docs" / "driver.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", EXAMPLES[number]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 5


def test_every_command_is_named() -> None:
    line = next(each for each in TEXT.splitlines() if each.startswith("`sabot devices |"))
    named = set(re.findall(r"[a-z]+", line.split("`")[1])) - {"sabot"}
    assert named == {*COMMANDS, "simulate", "fairness"}


def test_every_module_is_named(root: Path) -> None:
    folder = root / "host_driver" / "sabot_driver"
    table = TEXT[TEXT.index("## How it is built") :]
    named = set(re.findall(r"`([a-z_]+)`", table))
    plain = {"errors", "clock", "usb_ids", "__init__"}
    assert {path.stem for path in folder.glob("*.py")} - plain <= named


def test_errors_named_exist() -> None:
    table = TEXT[TEXT.index("## Errors") : TEXT.index("## What happens to a command")]
    for name in re.findall(r"`([A-Z][A-Za-z]+)`", table):
        assert hasattr(errors, name) or name in dir(__import__("builtins")), name
