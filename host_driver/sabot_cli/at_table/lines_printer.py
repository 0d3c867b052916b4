"""Lines at a terminal: never wider than it, equal ones folded, and one status line below them."""

import re
import sys
import textwrap
from collections.abc import Iterable

from rich.text import Text

from sabot_cli.output import Output, plain_text

ERASE = "\r\x1b[K"
KEPT_SPACE = re.compile(r" (?=[+-]?\d+\.\d\d\b)|(?<=\brow) (?=\d)|(?<=\b\d) (?=[a-z])")
"""Where a line does not end: before an amount, in "row 41", and after the number of a step or seat."""


class LinesPrinter:
    """Prints lines for a person; says nothing in JSON."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._last: tuple[str, ...] = ()
        self._again = 0
        self._status = ""
        self._live = output.console.is_terminal and not output.as_json

    @property
    def width(self) -> int | None:
        """Columns to use; None where a line may be of any length (a pipe, a file)."""
        return self._output.console.width if self._output.console.is_terminal else None

    def print(self, lines: Iterable[str] | str, style: str = "") -> None:
        """Print what belongs together; the status line is gone until it is set again.

        The same once more is counted, not repeated.
        """
        given = (lines,) if isinstance(lines, str) else tuple(lines)
        if self._output.as_json or not given:
            return
        if given == self._last:
            self._again += 1
            return
        self._end_status()
        self._tell_repeated()
        self._last = given
        for line in given:
            self._write(line, style)

    def status(self, text: str) -> None:
        """The line below all others; only at a terminal."""
        if text == self._status or not self._live:
            return
        self._end_status()
        self._status = text
        if text:
            sys.stdout.write(cut(plain_text(text), (self.width or 80) - 1))
            sys.stdout.flush()

    def close(self) -> None:
        """Nothing is left below the last line."""
        self._end_status()
        if not self._output.as_json:
            self._tell_repeated()

    def _tell_repeated(self) -> None:
        if self._again:
            self._write(f"  (the same {self._again} more time{'' if self._again == 1 else 's'})", "dim")
        self._again, self._last = 0, ()

    def _write(self, line: str, style: str) -> None:
        for part in fold(plain_text(line), self.width):
            self._output.console.print(Text(part, style=style), soft_wrap=True)

    def _end_status(self) -> None:
        if self._status:
            sys.stdout.write(ERASE)
            sys.stdout.flush()
            self._status = ""


def fold(line: str, width: int | None) -> list[str]:
    """A line as lines of at most so many columns; what follows is indented a little more."""
    if width is None or len(line) <= width:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    kept = "\u00a0"  # textwrap ends no line there
    parts = textwrap.wrap(
        KEPT_SPACE.sub(kept, line.strip()),
        width,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=True,
        break_on_hyphens=False,
    )
    return [part.replace(kept, " ") for part in parts]


def fold_for(output: Output, line: str) -> str:
    """A line folded for the terminal of an output; as it is for a pipe or a file."""
    console = output.console
    return "\n".join(fold(line, console.width if console.is_terminal else None))


def cut(text: str, width: int) -> str:
    """The beginning of a text in so many columns."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"
