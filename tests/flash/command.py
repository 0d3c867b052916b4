"""``sabot flash --json`` in a test."""

import json
from typing import Any

import pytest

from sabot_cli import main


class Ran:
    """What a command said, and its exit code."""

    def __init__(self, code: int, out: str) -> None:
        self.code = code
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
        self.last = self.lines[-1] if self.lines else {}

    def names(self) -> list[str]:
        return list(dict.fromkeys(each["event"] for each in self.lines))


class Sabot:
    """Runs ``sabot flash --json`` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ran:
        self._capsys.readouterr()
        code = main.run(["flash", "--json", *map(str, arguments)])
        return Ran(code, self._capsys.readouterr().out)
