"""``make floor`` as a program: it starts all of it, says where, and ends in order."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

WAIT_S = 180


@pytest.mark.slow
def test_a_site_of_two_tables_starts_and_ends_in_order(tmp_path: Path) -> None:
    words = ["--tables", "2", "--seconds", "3", "--speed", "max", "--folder", str(tmp_path)]
    ended = subprocess.run(
        [sys.executable, "-m", "sabot_simulators.floor", *words],
        capture_output=True, text=True, timeout=WAIT_S, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    said = [line.split() for line in ended.stdout.splitlines()]
    assert [line[1] for line in said if line[0] == "table"] == ["t01", "t02"]
    assert any("/enter#" in line for line in ended.stdout.splitlines())
    with sqlite3.connect(tmp_path / "archive.db") as db:
        there = {name for (name,) in db.execute("SELECT DISTINCT table_name FROM sources")}
    assert there == {"t01", "t02"}
    for log in tmp_path.glob("*.log"):
        assert "Traceback" not in log.read_text(encoding="utf-8")
