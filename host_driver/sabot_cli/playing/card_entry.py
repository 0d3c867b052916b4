"""Cards that no reader saw: the dealer types them, at a prompt or in a file."""

from collections.abc import Iterator, Sequence
from typing import Protocol, TextIO

import click

from sabot_driver.errors import SabotError
from sabot_table.cards import Card, cards
from sabot_table.errors import NotACard

VOID = "void"


class CardsNotEntered(SabotError):
    """Cards must be typed in, and nobody is there to do it. Nothing is settled; the round stays open."""

    advice = "Play in a terminal, or give the cards in a file: --typed FILE."


class VoidRequested(Exception):
    """The dealer typed no cards but that the floor voids the round."""


class CardEntry(Protocol):
    """Who names cards."""

    def cards(self, what: str, count: int, seen: Sequence[str] | None) -> tuple[Card, ...]:
        """So many cards; ``seen`` are those that people at an emulated table see, where there are any."""

    def number(self, what: str, least: int, most: int, usual: int) -> int:
        """How many cards: where a player cuts, where the dealer puts the cover card."""

    def complain(self, text: str) -> None:
        """What was typed cannot be; it is asked for again."""


class SimulatedEntry:
    """Types what really lies there."""

    def cards(self, what: str, count: int, seen: Sequence[str] | None) -> tuple[Card, ...]:
        """What was seen; NobodyTypes where this process does not see it."""
        if seen is None or len(seen) != count:
            raise CardsNotEntered(f"nobody sees {what}")
        return cards(" ".join(seen))

    def number(self, what: str, least: int, most: int, usual: int) -> int:
        """As usual."""
        return usual

    def complain(self, text: str) -> None:
        """Who types what lies there cannot type it better."""
        raise VoidRequested(text)


class FileEntry:
    """Typed lines, one for each hand: ``KS 5D TC``. At a wrong one the next line is taken."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines

    @classmethod
    def of(cls, stream: TextIO) -> "FileEntry":
        """The lines of a file; empty ones and remarks (#) are left out."""
        return cls(line for line in (each.split("#")[0].strip() for each in stream) if line)

    def _line(self, what: str) -> str:
        line = next(self._lines, None)
        if line is None:
            raise CardsNotEntered(f"there is no line for {what}")
        return line

    def cards(self, what: str, count: int, seen: Sequence[str] | None) -> tuple[Card, ...]:
        """The next line that names so many cards."""
        while True:
            text = self._line(what)
            if text.lower() == VOID:
                raise VoidRequested("the floor voids the round")
            try:
                named = cards(text)
            except NotACard as error:
                self.complain(str(error))
                continue
            if len(named) == count:
                return named
            self.complain(f"{what}: '{text}' names {len(named)} cards and there are {count}")

    def number(self, what: str, least: int, most: int, usual: int) -> int:
        """As usual: a file tells cards only."""
        return usual

    def complain(self, text: str) -> None:
        """On standard error."""
        click.echo(text, err=True)


class PromptEntry(FileEntry):
    """The dealer at a terminal."""

    def __init__(self) -> None:
        super().__init__(iter(()))

    def _line(self, what: str) -> str:
        return str(click.prompt(f"{what} (or 'void')", err=True))

    def number(self, what: str, least: int, most: int, usual: int) -> int:
        """Asked for, with the usual number at hand."""
        kind = click.IntRange(least, most)
        return int(click.prompt(what, type=kind, default=usual, err=True))


class NoEntry(FileEntry):
    """No terminal and no file: cuts are as usual, cards stop the table."""

    def __init__(self) -> None:
        super().__init__(iter(()))
