"""``sabot`` at a terminal of 80 columns, as a person uses it, and its screen as text."""

import difflib
import os
import re
import termios
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import pexpect
from pexpect.fdpexpect import fdspawn
from tests.warm_start import WarmPopen

COLUMNS, LINES = 80, 40
DEALER_PIN, FLOOR_PIN = "2468", "13579"
TIMEOUT_S = 120
SCREENS = Path(__file__).parent / "screens"
ERASE = "\r\x1b[K"
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SPINNER = re.compile("\r?[\u2800-\u28ff] ")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
VARIABLE = (
    (re.compile(r"socket://127\.0\.0\.1:\d+"), "socket://HOST"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?"), "DATE"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "TIME"),
    (re.compile(r"\b\d+\.\d s\b"), "N s"),
    (re.compile(r"\brow \d+"), "row N"),
    (re.compile(r"^(journal|record) [0-9a-f]{8} "), r"\1 CHAIN "),
    (re.compile(r"([0-9a-f]{4}-){7}[0-9a-f]{4}"), "HASH"),
    (re.compile(r"^\d+ shuffles?, \d+ counted as complete, \d+ "), "N shuffles, N counted, N "),
    (re.compile(r"/\S*/(?=\S+\.(key|jsonl|db))"), "FOLDER/"),
)


class Terminal:
    """One program at a terminal. What a person reads and types is kept in order."""

    def __init__(self, home: Path, *arguments: object) -> None:
        environment = {**os.environ, "SABOT_HOME": str(home), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        environment.pop("COLUMNS", None)
        end, inner = os.openpty()
        termios.tcsetwinsize(inner, (LINES, COLUMNS))
        streams: dict[str, Any] = {"stdin": inner, "stdout": inner, "stderr": inner}
        self._program = WarmPopen([*map(str, arguments)], terminal=True, env=environment, **streams)
        os.close(inner)
        self._screen = fdspawn(end, encoding="utf-8", timeout=TIMEOUT_S)
        self._screen.delaybeforesend = None
        self._read: list[str] = []

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._program.kill()
        self._program.wait()
        self._screen.close()

    def see(self, text: str) -> None:
        """Wait until a text is on the screen, after what was seen before."""
        try:
            self._screen.expect_exact(text)
        except (pexpect.TIMEOUT, pexpect.EOF):
            shown = f"{self.screen()}{self._screen.before}"
            raise AssertionError(f"'{text}' is not on the screen:\n{shown}") from None
        self._read.append(self._screen.before + self._screen.after)

    def see_all(self, *texts: str) -> None:
        """Wait until each of these texts is on the screen, in any order."""
        missing = list(texts)
        while missing:
            try:
                found = self._screen.expect_exact(missing)
            except (pexpect.TIMEOUT, pexpect.EOF):
                shown = f"{self.screen()}{self._screen.before}"
                raise AssertionError(f"{missing} are not on the screen:\n{shown}") from None
            self._read.append(self._screen.before + self._screen.after)
            del missing[found]

    def press(self, keys: str) -> None:
        """Type."""
        self._screen.send(keys)

    def do(self, *steps: tuple[str, str]) -> None:
        """See a text, then type; step by step."""
        for text, keys in steps:
            self.see(text)
            self.press(keys)

    def end(self) -> int:
        """Wait until the program has ended; its exit code."""
        self._screen.expect_exact(pexpect.EOF)
        self._read.append(self._screen.before)
        return self._program.wait()

    def kill(self) -> None:
        """Kill the program (-9)."""
        self._program.kill()
        self._program.wait()

    def screen(self) -> str:
        """The lines that stayed on the screen, without colours; times and places are named, not told."""
        lines = []
        for line in "".join(self._read).replace("\r\n", "\n").split("\n"):
            shown = CONTROL.sub("", line.rpartition(ERASE)[2] if ERASE in line else line)
            if SPINNER.match(shown):
                continue
            shown = shown.replace("\r", "")
            for pattern, name in VARIABLE:
                shown = pattern.sub(name, shown)
            lines.append(shown.rstrip())
        return "\n".join(lines).strip() + "\n"

    def widest(self) -> int:
        """The number of columns of the widest line that was ever shown, the status line included."""
        parts = re.split(r"\r\n|\r\x1b\[K|\r", "".join(self._read))
        return max(len(COLOUR.sub("", part)) for part in parts)


Open = Callable[..., Terminal]
"""Opens a terminal with a command of ``sabot``."""


def check_screen(name: str, shown: str) -> None:
    """Compare with the kept screen; `SABOT_KEEP_SCREENS` keeps this one instead."""
    path = SCREENS / f"{name}.txt"
    if os.environ.get("SABOT_KEEP_SCREENS"):
        path.write_text(shown, encoding="utf-8")
    kept = path.read_text(encoding="utf-8")
    changed = difflib.unified_diff(kept.splitlines(), shown.splitlines(), "kept", "shown", lineterm="")
    assert kept == shown, "\n".join(changed)
