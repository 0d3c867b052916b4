"""What people report that no sensor sees: ``--report ROUND:WHAT[=CARD]``, such as ``2:card_exposed=KH``."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sabot_table.cards import Card, card
from sabot_table.errors import NotACard

# Each: what it is, and the states in which it is reported, the first that comes
IRREGULARITIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "face_up_card": ("a card lies face up in the shoe", ("dealing", "counting")),
    "wrong_number": ("a hand has a wrong number of cards", ("revealing", "settling")),
    "shoe_failed": ("the shoe does not deal", ("dealing", "drawing")),
    "drawn_in_error": ("a card too many was drawn, and not seen", ("settling", "dealing")),
    "unauthorised_third": ("the Player got a third card; seen, if it is named", ("settling", "drawing")),
    "card_exposed": ("a card was seen that belongs to no hand", ("settling",)),
}
_TEXT = re.compile(r"(?P<round>\d+):(?P<what>[a-z_]+)(?:=(?P<card>\w+))?")


class BadReport(ValueError):
    """A report that is not well written, or of nothing that can be."""


@dataclass(frozen=True, slots=True)
class IrregularityReport:
    """One thing that people report, in the round of this number."""

    round: int
    what: str
    seen: Card | None = None
    any_card: bool = False  # seen, whichever it is: at an emulated table

    @classmethod
    def parse(cls, text: str) -> "IrregularityReport":
        """Read ``ROUND:WHAT[=CARD]``; ``=seen`` is whatever card it is."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise BadReport(f"'{text}' is not written as ROUND:WHAT[=CARD]")
        if found["what"] not in IRREGULARITIES:
            raise BadReport(f"nobody reports '{found['what']}'; there are {', '.join(IRREGULARITIES)}")
        if found["card"] in (None, "seen"):
            return cls(int(found["round"]), found["what"], None, found["card"] == "seen")
        try:
            return cls(int(found["round"]), found["what"], card(found["card"]))
        except NotACard as error:
            raise BadReport(str(error)) from None

    def may_be(self, state: str, allowed: Collection[str]) -> bool:
        """Whether this is the moment for it."""
        return state in IRREGULARITIES[self.what][1] and self.what in allowed

    def arguments(self) -> tuple[Any, ...]:
        """What the procedure is told besides who and when."""
        if self.what in ("wrong_number", "shoe_failed"):
            return (IRREGULARITIES[self.what][0],)
        return () if self.seen is None and self.what == "face_up_card" else (self.seen,)

    def to_json(self) -> dict[str, Any]:
        """For a program."""
        return {"round": self.round, "what": self.what, "card": None if self.seen is None else str(self.seen)}

    def __str__(self) -> str:
        named = "" if self.seen is None else f" ({self.seen})"
        return IRREGULARITIES[self.what][0] + named
