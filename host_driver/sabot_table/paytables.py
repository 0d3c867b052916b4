"""Paytables: which line pays what. Each text's own are in its file (`rule_text_files`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

from sabot_table.rule_text_files import PaytableRow, RuleText, packaged, rule_text

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


def all_paytables() -> tuple[Paytable, ...]:
    """Every paytable of every packaged text."""
    return tuple(each for key in packaged() for each in paytables_of(rule_text(key)))


def paytables_of(text: RuleText) -> tuple[Paytable, ...]:
    """Every paytable of a text."""
    return _tables(text.key, text.sha256)


@cache
def _tables(key: str, sha256: str) -> tuple[Paytable, ...]:
    """The paytables of a text; its hash tells two files of one key apart."""
    text = rule_text(key)
    assert text.sha256 == sha256
    return tuple(_read(text, row) for row in text.paytable)


def paytables_for(text: str, variant: str, wager: str) -> tuple[Paytable, ...]:
    """Every paytable that a text gives for a wager of a game, in the order of its letters."""
    return tuple(
        each
        for each in paytables_of(rule_text(text))
        if each.wager == wager and (not each.variants or variant in each.variants)
    )


def least_pays(text: str, variant: str, wager: str) -> int | None:
    """The least that a wager pays where the text gives only that; None where it fixes the payout."""
    rows = (row for row in _rows(rule_text(text), variant) if row.wager == wager)
    return next((row.least_pays for row in rows), None)


def wagers_of(text: str, variant: str) -> tuple[str, ...]:
    """Every wager that a text knows for a game, in the text's order."""
    return tuple(dict.fromkeys(row.wager for row in _rows(rule_text(text), variant)))


def _rows(text: RuleText, variant: str) -> list[PaytableRow]:
    return [row for row in text.paytable if not row.variants or variant in row.variants]


def _read(text: RuleText, row: PaytableRow) -> Paytable:
    stake_within = 1 if row.for_one else 0
    return Paytable(
        text=text.key,
        variants=row.variants,
        wager=row.wager,
        letter=row.letter,
        clause=text.cite(row.clause),
        rule=text.cite(row.rule),
        pays={line: Fraction(odds) - stake_within for line, odds in row.pays.items()},
        awards={line: _award(given) for line, given in row.awards.items()},
        vigorish=frozenset(row.vigorish),
    )


def _award(text: str) -> Award:
    if text.startswith("$"):
        return Award(None, 0, int(text[1:]) * 100)
    percent, meter = text.split("% ")
    return Award(meter, int(percent), 0)
