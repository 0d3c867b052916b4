"""Fixtures of the fairness tests."""

import json
from pathlib import Path

import pytest
from tests.fairness.sessions import Lines, Sabot, Session

from sabot_cli.main import run


@pytest.fixture
def sabot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Sabot:
    """Runs a command with ``--json``: its exit code and its lines."""
    monkeypatch.setenv("SABOT_HOME", str(tmp_path / "home"))

    def command(*arguments: str) -> tuple[int, Lines]:
        code = run([*arguments, "--json"])
        return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return command


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """One session for all tests of a module."""
    return Session(tmp_path_factory.mktemp("session"))
