"""The examples of docs/driver.md run, and its tables are complete."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sabot_cli.main import COMMANDS
from sabot_driver import errors

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parent.parent.parent / "docs" / "driver.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


ROUNDS = [number for number, each in enumerate(EXAMPLES) if "EndRound(ROUND)" in each]


@pytest.mark.parametrize("number", sorted({*range(len(EXAMPLES))} - {*ROUNDS}))
def test_an_example_runs(number: int, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", EXAMPLES[number]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 7


@pytest.mark.parametrize("way", ["blocking", "asyncio"])
def test_an_example_deals_a_whole_round(way: str, tmp_path: Path) -> None:
    found = [
        each for each in EXAMPLES if "EndRound(ROUND)" in each and ("asyncio" in each) == (way == "asyncio")
    ]
    assert len(found) == 1
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", found[0]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert "CORRECT 52 cards, stub 43" in ran.stdout
    hands = re.findall(r"^stack \d (.*)$", ran.stdout, flags=re.MULTILINE)
    cards = [card for hand in hands for card in hand.split()]
    assert len(hands) == 3
    assert len(set(cards)) == 9
    assert all(re.fullmatch(r"[A23456789TJQK][SHDC]", card) for card in cards)


def test_every_command_is_named() -> None:
    listed = TEXT[TEXT.index("Commands; each explains itself") : TEXT.index("| exit code |")]
    named = set(re.findall(r"`([a-z][a-z-]*)`", listed))
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
