"""Paytables: which line pays what. The texts' own are data (``paytables.toml``)."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import Any

LOSE = "lose"
PUSH = Fraction(0)
LOST = Fraction(-1)


@dataclass(frozen=True, slots=True)
class Award:
    """What a progressive line pays: a share of a meter, or a fixed amount. The stake is within it ("for")."""

    meter: str | None
    percent: int
    cents: int

    def __str__(self) -> str:
        return f"{self.percent} % of {self.meter}" if self.meter else f"{self.cents} cents"


@dataclass(frozen=True, slots=True)
class Paytable:
    """One table of one wager. ``pays`` is net, "to 1"; ``vigorish`` the lines it is taken from."""

    text: str
    variants: tuple[str, ...]  # none: every variant
    wager: str
    letter: str | None
    clause: str
    rule: str
    pays: Mapping[str, Fraction]
    awards: Mapping[str, Award]
    vigorish: frozenset[str]

    def line(self, met: Sequence[str]) -> str:
        """The first line met that this table lists, or `LOSE`."""
        return next((each for each in met if each in self.pays), LOSE)

    def odds(self, line: str) -> Fraction:
        """What a line pays to 1, before vigorish; losing is -1."""
        return LOST if line == LOSE else self.pays[line]

    def paying(self, pays: int) -> "Paytable":
        """The same table with one line that pays so much: where the text gives a least payout only."""
        return replace(self, pays={line: Fraction(pays) for line in self.pays})

    def to_json(self) -> dict[str, object]:
        """All that settlement uses, for the rule set's hash."""
        return {
            "wager": self.wager,
            "letter": self.letter,
            "clause": self.clause,
            "rule": self.rule,
            "pays": {line: str(odds) for line, odds in self.pays.items()},
            "awards": {line: str(award) for line, award in self.awards.items()},
            "vigorish": sorted(self.vigorish),
        }


@cache
def all_paytables() -> tuple[Paytable, ...]:
    """Every paytable of every text."""
    data = resources.files("sabot_table").joinpath("paytables.toml").read_text(encoding="utf-8")
    return tuple(_read(row) for row in tomllib.loads(data)["paytable"])


def paytables_for(text: str, variant: str, wager: str) -> tuple[Paytable, ...]:
    """Every paytable that a text gives for a wager of a game, in the order of its letters."""
    return tuple(
        each for each in all_paytables()
        if (each.text, each.wager) == (text, wager) and (not each.variants or variant in each.variants)
    )


def wagers_of(text: str, variant: str) -> tuple[str, ...]:
    """Every wager that a text knows for a game, in the text's order."""
    rows = (each for each in all_paytables() if each.text == text)
    known = (each.wager for each in rows if not each.variants or variant in each.variants)
    return tuple(dict.fromkeys(known))


def _read(row: Mapping[str, Any]) -> Paytable:
    stake_within = 1 if row.get("for_one") else 0
    return Paytable(
        text=row["text"],
        variants=tuple(row.get("variants", ())),
        wager=row["wager"],
        letter=row.get("letter"),
        clause=row["clause"],
        rule=row["rule"],
        pays={line: Fraction(odds) - stake_within for line, odds in row.get("pays", {}).items()},
        awards={line: _award(text) for line, text in row.get("awards", {}).items()},
        vigorish=frozenset(row.get("vigorish", ())),
    )


def _award(text: str) -> Award:
    if text.startswith("$"):
        return Award(None, 0, int(text[1:]) * 100)
    percent, meter = text.split("% ")
    return Award(meter, int(percent), 0)
