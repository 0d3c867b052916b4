"""``sabot play`` started again in this process, as at a terminal: a person asks for the needs, and leaves."""

import time
from collections.abc import Callable

import pytest

from sabot_cli import play_command
from sabot_cli.at_table import terminal_table
from sabot_cli.main import run

PATIENCE_S = 120.0


class PatientKeys:
    """A person who asks for the needs (?) now and then, until they are as expected, and leaves."""

    def __init__(self, done: Callable[[], bool]) -> None:
        self._done = done
        self._ends = time.monotonic() + PATIENCE_S

    def __call__(self) -> "PatientKeys":
        return self

    def __enter__(self) -> "PatientKeys":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, timeout: float) -> str:
        """The next key."""
        time.sleep(timeout)
        return "q" if self._done() or time.monotonic() > self._ends else "?"


class NextStart:
    """Starts ``sabot play`` at a device; what it says."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, url: str, expected: Callable[[str], bool], *options: str) -> str:
        """Leave when it says what is expected, or after a long time; all that it said."""
        said = ""

        def done() -> bool:
            nonlocal said
            said += self._capsys.readouterr().out
            return expected(said)

        self._capsys.readouterr()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(play_command, "at_terminal", lambda: True)
            patched.setattr(terminal_table, "TypedKeys", PatientKeys(done))
            code = run(["play", "--device", url, "--simulator", "--players", "1", *options])
        said += self._capsys.readouterr().out
        assert code == 0, said
        return said
