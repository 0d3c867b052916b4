"""The ``sabot`` command in a test: run in this process, or a simulator in a process of its own."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.warm_start import WarmPopen

from sabot_cli import main


class Ran:
    """What a command said, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    def of(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.lines if each["event"] == event]


class Sabot:
    """Runs a command in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ran:
        self._capsys.readouterr()
        code = main.run([str(each) for each in arguments])
        return Ran(code, *self._capsys.readouterr())


@contextmanager
def simulated(*options: str) -> Iterator[str]:
    """``sabot simulate`` in a process of its own; its URL."""
    program = ["simulate", "--json", "--speed", "max", *options]
    process = WarmPopen(program, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = json.loads(process.stdout.readline())
    assert said["simulator"] is True
    try:
        yield said["url"]
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(120)
        process.stdout.close()
    assert code == 0
