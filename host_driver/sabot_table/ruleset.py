"""Rule sets: what one table plays, as data. Reads, checks and hashes them.

A rule set is a TOML file, packaged (``rulesets/``) or an operator's own, which may extend another. What a
text leaves open is chosen there; what it fixes (`sabot_table.rule_text_files`) cannot be changed by it.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from sabot_table import paytables
from sabot_table.cards import KING, NINE, SUITS, cards
from sabot_table.errors import (
    NotACard,
    Problem,
    RuleSetError,
    RuleTextError,
    UnknownRuleSet,
    UnknownRuleText,
    UnknownWager,
)
from sabot_table.paytables import Paytable
from sabot_table.rule_text_files import RuleText, add_file, rule_text
from sabot_table.rule_texts import DealingMethod, GameKind
from sabot_table.toml_files import Part, read_text, read_toml, shaped
from sabot_table.versions import NotAVersion, version
from sabot_table.wagers.royal_9 import KingNine

MAIN_WAGERS = {GameKind.THREE_CARD: ("ante",), GameKind.MINI: ("banker", "player", "tie")}
ROYAL_9 = "royal-9"
# Initial and reset amounts are at least these, by paytable (MDM 12.L).
STAR_FROM_CENTS = {"A": 5_000_000, "B": 2_500_000, "C": 5_000_000}
SUIT_FROM_CENTS = {"A": 35_000, "B": 35_000, "C": 45_000}
# Reset and maximum of the Must Hit meter are at least one of these pairs (MDM 12.O).
MUST_HIT_FROM_CENTS = ((25_000, 100_000), (10_000, 50_000), (10_000, 20_000))

Positive = Annotated[int, Field(gt=0)]


class CardTerms(Part):
    """Cards in one shoe (or deck), whether two such sets alternate, and the hours they may be used."""

    decks: Positive
    alternating: bool
    hours_shoe: Positive | None = None
    hours_hand: Positive | None = None


class DealingTerms(Part):
    """The methods the table may deal by; the first is the one it opens with.

    ``approved``: the models that the regulator approved. None given: the table does not check it.
    """

    methods: Annotated[tuple[DealingMethod, ...], Field(min_length=1)]
    approved: tuple[str, ...] = ()


class SeatTerms(Part):
    """How many seats there are, and on which side of the dealer seat 1 is."""

    count: Positive
    seat_one: Literal["dealer-left", "dealer-right"]


class VigorishTerms(Part):
    """How the vigorish is rounded, and when it is taken."""

    rounding: Literal["none", "up25"] = "none"
    collected: Literal["at-payout", "marked"] = "at-payout"


class OptionTerms(Part):
    """What the texts leave to the operator's submission."""

    disclosed_third: Literal["discard", "simulated-round"] = "discard"  # MDM 13.C(2)


class WagerTerms(Part):
    """One wager: whether it is offered, by which lettered table; what it pays where the text sets a least."""

    offered: bool = True
    paytable: str | None = None
    pays: Positive | None = None


class MeterTerms(Part):
    """A progressive meter: where it begins, where it starts again, and its share of each wager in 1/100 %."""

    initial_cents: Positive
    reset_cents: Positive
    rate_basis_points: Annotated[int, Field(ge=0, le=10_000)]


class MustHitTerms(MeterTerms):
    """The Must Hit meter; the progressive controller draws its winner."""

    maximum_cents: Positive


class Royal9Terms(Part):
    """All that the Royal 9 wager needs: stake, each seat's own King-9 ("KH 9S"), meters and rates."""

    stake_cents: Positive
    personal: dict[str, str]
    star: MeterTerms
    spade: MeterTerms
    heart: MeterTerms
    must_hit: MustHitTerms | None = None

    def king_nines(self) -> dict[int, KingNine]:
        """Each seat's own King-9."""
        found = {}
        for seat, text in self.personal.items():
            king, nine = cards(text)
            found[int(seat)] = KingNine(king.suit, nine.suit)
        return found


class RuleSet(Part):
    """What one table plays, checked against its text."""

    name: Annotated[str, Field(min_length=1)]
    title: str
    text: str
    variant: str = "standard"
    cards: CardTerms
    dealing: DealingTerms
    seats: SeatTerms
    vigorish: VigorishTerms = VigorishTerms()
    options: OptionTerms = OptionTerms()
    wagers: dict[str, WagerTerms]
    components: dict[str, dict[str, str]] = Field(default_factory=dict)
    royal_9: Royal9Terms | None = None

    @property
    def fixed(self) -> RuleText:
        """What the text fixes."""
        return rule_text(self.text)

    @property
    def game(self) -> GameKind:
        """Which of the two games it is."""
        return self.fixed.game

    @cached_property
    def offered(self) -> tuple[str, ...]:
        """The wagers offered, in the text's order."""
        known = paytables.wagers_of(self.text, self.variant)
        return tuple(each for each in known if each in self.wagers and self.wagers[each].offered)

    def paytables(self, wager: str) -> tuple[Paytable, ...]:
        """Every table the text gives for a wager, a payout that the operator chose put in."""
        if wager not in self.offered:
            raise UnknownWager(f"{self.name} offers no '{wager}'; it offers {', '.join(self.offered)}")
        pays = self.wagers[wager].pays
        tables = paytables.paytables_for(self.text, self.variant, wager)
        return tables if pays is None else tuple(each.paying(pays) for each in tables)

    def paytable(self, wager: str) -> Paytable:
        """The table by which this rule set pays a wager."""
        letter = self.wagers[wager].paytable if wager in self.wagers else None
        return next(each for each in self.paytables(wager) if each.letter == letter)

    @property
    def main_wagers(self) -> tuple[str, ...]:
        """The wagers that stand by themselves."""
        return MAIN_WAGERS[self.game]

    def clockwise(self) -> tuple[int, ...]:
        """The seats clockwise from the dealer's left."""
        seats = tuple(range(1, self.seats.count + 1))
        return seats if self.seats.seat_one == "dealer-left" else seats[::-1]

    def hours(self, method: DealingMethod) -> int | None:
        """How long cards may be used when dealt by this method; None: the text sets no limit."""
        return self.cards.hours_hand if method is DealingMethod.HAND else self.cards.hours_shoe

    @cached_property
    def sha256(self) -> str:
        """The hash of all that decides play: the resolved rule set and the paytables it pays by."""
        whole = {
            "rules": self.model_dump(mode="json"),
            "text": self.fixed.sha256,
            "paytables": [self.paytable(wager).to_json() for wager in self.offered],
        }
        canonical = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()


# -- reading -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Source:
    name: str
    data: Mapping[str, object]
    folder: Path


def names() -> tuple[str, ...]:
    """The packaged rule sets."""
    files = resources.files("sabot_table").joinpath("rulesets").iterdir()
    return tuple(sorted(each.name.removesuffix(".toml") for each in files if each.name.endswith(".toml")))


def load(name_or_path: str | Path) -> RuleSet:
    """A packaged rule set by its name, or an operator's file by its path."""
    source = _find(str(name_or_path), Path())
    return parse(_resolve(source, ()), source.name)


def parse(data: Mapping[str, object], source: str = "rule set") -> RuleSet:
    """A rule set out of its data, without ``extends``; `RuleSetError` names everything that is wrong."""
    rules = shaped(RuleSet, data, source, RuleSetError)
    problems = tuple(_problems(rules))
    if problems:
        raise RuleSetError(source, problems)
    return rules


def _find(name: str, folder: Path) -> _Source:
    if name in names():
        text = resources.files("sabot_table").joinpath("rulesets", f"{name}.toml").read_text(encoding="utf-8")
        return _Source(name, read_toml(text, name, RuleSetError), Path())
    path = folder / name
    if not path.is_file():
        raise UnknownRuleSet(
            f"no rule set '{name}': it is neither a file nor one of {', '.join(names())}; "
            "give one of these names or the path of a TOML file"
        )
    text = read_text(path, RuleSetError)
    return _Source(str(path), read_toml(text, str(path), RuleSetError), path.parent)


def _resolve(source: _Source, seen: tuple[str, ...]) -> Mapping[str, object]:
    data = dict(source.data)
    _add_text(data, source)
    base = data.pop("extends", None)
    if base is None:
        return data
    if not isinstance(base, str):
        problem = Problem("extends", f"is {base!r}", "give the name of a rule set or the path of a file")
        raise RuleSetError(source.name, (problem,))
    if source.name in seen:
        chain = " extends ".join((*seen, source.name))
        raise RuleSetError(source.name, (Problem("extends", f"runs in a circle: {chain}", "break it"),))
    if "name" not in data:
        problem = Problem("name", "is missing", "give the extended rule set a name of its own")
        raise RuleSetError(source.name, (problem,))
    return _merge(_resolve(_find(base, source.folder), (*seen, source.name)), data)


def _add_text(data: dict[str, object], source: _Source) -> None:
    """Read the rule text that a rule set brings along; its key takes the place of the file's name."""
    file = data.pop("text_file", None)
    if file is None:
        return
    if not isinstance(file, str):
        problem = Problem("text_file", f"is {file!r}", "give the path of a rule text's file")
        raise RuleSetError(source.name, (problem,))
    if "text" in data:
        problem = Problem("text_file", "is given beside text", "give one of the two")
        raise RuleSetError(source.name, (problem,))
    try:
        data["text"] = add_file(source.folder / file).key
    except (RuleTextError, UnknownRuleText) as error:
        problem = Problem("text_file", str(error), "correct that file")
        raise RuleSetError(source.name, (problem,)) from error


def _merge(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


# -- checking ------------------------------------------------------------------------------------


def _problems(rules: RuleSet) -> Iterator[Problem]:
    try:
        text = rule_text(rules.text)
    except UnknownRuleText as error:
        yield Problem("text", f"is '{rules.text}'", f"give one of {error.known}, or a text_file")
        return
    if rules.variant not in text.variants:
        known = ", ".join(text.variants)
        yield Problem("variant", f"{text.key} has no '{rules.variant}'", f"give one of {known}")
        return
    yield from _bounds(rules, text)
    yield from _hours(rules, text)
    yield from _wager_problems(rules)
    yield from _component_problems(rules)
    if rules.royal_9 is not None:
        yield from _royal_9_problems(rules, rules.royal_9)
    if (rules.royal_9 is not None) != (ROYAL_9 in rules.offered):
        yield Problem(
            "wagers.royal-9",
            "is offered without stake, King-9s, meters and rates, or these are given without it (MDM 12.L)",
            "give both wagers.royal-9 and the table [royal_9], or neither",
        )


def _bounds(rules: RuleSet, text: RuleText) -> Iterator[Problem]:
    for where, given, (low, high), clause in (
        ("cards.decks", rules.cards.decks, text.cards.decks, text.clause("decks")),
        ("seats.count", rules.seats.count, (text.seats.least, text.seats.most), text.clause("seats")),
    ):
        if not low <= given <= high:
            allowed = str(low) if low == high else f"{low} to {high}"
            yield Problem(where, f"is {given}", f"give {allowed} ({clause})")
    for method in rules.dealing.methods:
        if method not in text.dealing.methods:
            yield Problem(
                "dealing.methods",
                f"{text.key} has no '{method}'",
                f"choose among {', '.join(text.dealing.methods)} ({text.clause('methods')})",
            )
    if rules.vigorish.collected == "marked" and not text.settlement.may_mark_vigorish:
        yield Problem(
            "vigorish.collected",
            "is 'marked'",
            f"give 'at-payout': it is taken when the win is paid ({text.clause('vigorish')})",
        )


def _hours(rules: RuleSet, text: RuleText) -> Iterator[Problem]:
    hand = DealingMethod.HAND in rules.dealing.methods
    for key, hours, most in (
        ("hours_shoe", rules.cards.hours_shoe, text.cards.hours_shoe),
        ("hours_hand", rules.cards.hours_hand, text.cards.hours_hand if hand else None),
    ):
        if most is not None and (hours is None or hours > most):
            yield Problem(
                f"cards.{key}",
                "is missing" if hours is None else f"is {hours}",
                f"give {most} at most ({text.clause('hours')})",
            )


def _wager_problems(rules: RuleSet) -> Iterator[Problem]:
    known = paytables.wagers_of(rules.text, rules.variant)
    for wager, terms in rules.wagers.items():
        where = f"wagers.{wager}"
        if wager not in known:
            game = f"{rules.text} {rules.variant}"
            yield Problem(where, f"{game} has no such wager", f"choose among {', '.join(known)}")
            continue
        tables = paytables.paytables_for(rules.text, rules.variant, wager)
        letters = [each.letter for each in tables]
        if terms.paytable not in letters:
            chosen, some = terms.paytable, ", ".join(map(str, letters))
            given = "no paytable is chosen" if chosen is None else f"there is no paytable {chosen}"
            which = "leave paytable out" if letters == [None] else f"choose one of {some}"
            yield Problem(where, given, f"{which} ({tables[0].clause})")
        if terms.pays is None:
            continue
        least = paytables.least_pays(rules.text, rules.variant, wager)
        if least is None:
            yield Problem(f"{where}.pays", "the text fixes what this wager pays", "leave it out")
        elif terms.pays < least:
            do = f"give {least} at least ({tables[0].clause})"
            yield Problem(f"{where}.pays", f"is {terms.pays}", do)
    for wager in MAIN_WAGERS[rules.game]:
        if wager not in rules.wagers or not rules.wagers[wager].offered:
            yield Problem(f"wagers.{wager}", "is missing", "offer it: the game is played on it")


def _component_problems(rules: RuleSet) -> Iterator[Problem]:
    for model, minimums in rules.components.items():
        for component, least in minimums.items():
            try:
                version(least)
            except NotAVersion as error:
                where = f"components.{model}.{component}"
                yield Problem(where, str(error), "give numbers separated by points")


def _royal_9_problems(rules: RuleSet, royal: Royal9Terms) -> Iterator[Problem]:
    yield from _personal_problems(rules, royal)
    letter = rules.wagers[ROYAL_9].paytable if ROYAL_9 in rules.wagers else None
    for name, meter, least in (
        ("star", royal.star, STAR_FROM_CENTS.get(str(letter), 0)),
        ("spade", royal.spade, SUIT_FROM_CENTS.get(str(letter), 0)),
        ("heart", royal.heart, SUIT_FROM_CENTS.get(str(letter), 0)),
    ):
        for key, cents in (("initial_cents", meter.initial_cents), ("reset_cents", meter.reset_cents)):
            if cents < least:
                yield Problem(f"royal_9.{name}.{key}", f"is {cents}", f"give {least} at least (MDM 12.L)")
    if royal.stake_cents > 2_500:
        yield Problem(
            "royal_9.stake_cents",
            f"is {royal.stake_cents}",
            "give 2500 at most: the lowest line pays 25 dollars, stake included (MDM 12.K)",
        )
    hit = royal.must_hit
    if hit is not None and not any(
        hit.reset_cents >= reset and hit.maximum_cents >= most for reset, most in MUST_HIT_FROM_CENTS
    ):
        yield Problem(
            "royal_9.must_hit",
            f"resets to {hit.reset_cents} and pays {hit.maximum_cents} at most",
            "give at least 25000 and 100000, 10000 and 50000, or 10000 and 20000 (MDM 12.O)",
        )
    if hit is not None and not hit.reset_cents <= hit.initial_cents <= hit.maximum_cents:
        where = "royal_9.must_hit.initial_cents"
        yield Problem(where, f"is {hit.initial_cents}", "give something from reset to maximum")


def _personal_problems(rules: RuleSet, royal: Royal9Terms) -> Iterator[Problem]:
    seats = {str(seat) for seat in rules.clockwise()}
    if set(royal.personal) != seats:
        yield Problem(
            "royal_9.personal",
            f"gives seats {', '.join(sorted(royal.personal)) or 'none'}",
            f"give each of the seats 1 to {rules.seats.count} its King-9",
        )
    taken: dict[tuple[str, ...], str] = {}
    for seat, text in royal.personal.items():
        where = f"royal_9.personal.{seat}"
        try:
            pair = cards(text)
        except NotACard as error:
            yield Problem(where, str(error), "give a king and a nine, such as 'KH 9S'")
            continue
        if [each.rank for each in pair] != [KING, NINE]:
            yield Problem(where, f"is '{text}'", "give a king and a nine, such as 'KH 9S'")
        elif (suits := tuple(each.suit for each in pair)) in taken:
            yield Problem(where, f"is '{text}' like seat {taken[suits]}", "give every seat another one")
        else:
            taken[suits] = seat
    assert len(taken) <= len(SUITS) ** 2
