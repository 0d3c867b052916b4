"""The rule texts: what a regulator's document fixes, whatever an operator's rule set says, with its clauses.

A text is one TOML file, packaged (``texts/``) or named by a rule set's ``text_file``. It says which acts
exist, from which state to which, by whom and under which clause. It gives the clause of every refusal and
void, bounds, hours, what makes a pack leave the table, and paytables. Another state is another file.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from sabot_table import text_vocabulary as vocabulary
from sabot_table.errors import Problem, RuleTextError, UnknownRuleText
from sabot_table.rule_texts import (
    CutRule,
    DealingMethod,
    FloorLevel,
    GameKind,
    RemovalReason,
    SettlementOrder,
    TableRole,
)
from sabot_table.toml_files import Part, read_text, read_toml, shaped

STAYS = "="
FOLDER = "texts"


def _words(value: object) -> object:
    return tuple(value.split()) if isinstance(value, str) else value


Words = Annotated[tuple[str, ...], BeforeValidator(_words), Field(min_length=1)]
Role = Annotated[TableRole, Field(strict=False)]
Roles = Annotated[tuple[Role, ...], BeforeValidator(_words), Field(min_length=1)]
Positive = Annotated[int, Field(gt=0)]
Filled = Annotated[str, Field(min_length=1)]


class ActRow(Part):
    """One act as a file writes it: words are separated by blanks, the clause has no key."""

    sources: Words = Field(alias="from")
    dest: Filled = Field(alias="to")
    who: Roles
    clause: Filled
    countersign: bool = False  # the floor countersigns it within the shift


class ActionRule(Part):
    """One thing that may happen: in which states, where it leads ("=": it stays), by whom, by which rule."""

    action: str
    sources: tuple[str, ...]
    dest: str
    who: tuple[TableRole, ...]
    clause: str
    countersign: bool = False  # whoever did it, the floor countersigns it within the shift

    def after(self, state: str) -> str:
        """Where the act leads from a state."""
        return state if self.dest == STAYS else self.dest


class CardBounds(Part):
    """Decks in one shoe, whether two packs may or shall alternate by a shuffler, hours, when to shuffle."""

    decks: tuple[Positive, Positive]
    two_packs: Literal["may", "shall"]
    hours_shoe: Positive | None = None
    hours_hand: Positive | None = None
    shuffled: Literal["every-round", "every-shoe"]


class SeatBounds(Part):
    """How many seats a table has."""

    least: Positive = 1
    most: Positive


class DealingBounds(Part):
    """By which methods cards may be dealt."""

    methods: Annotated[tuple[DealingMethod, ...], Field(min_length=1)]


class CutTerms(Part):
    """Which packs are cut, how far from top and bottom at least, and whether players are offered the cut."""

    when: CutRule
    from_top: Positive = 1
    from_bottom: Positive = 1
    by_players: bool = False


class CoverTerms(Part):
    """How far above the bottom the second cover card is at least."""

    above_bottom: Positive


class StubTerms(Part):
    """How often the dealer counts the stub at least where no shuffler counts."""

    count_every: Positive


class IdleTerms(Part):
    """Which packs a machine shuffled stay as they are when nobody plays."""

    kept_in: Words  # states of a pack
    kept_if_counted: bool  # only those that the machine counted


class WagerBounds(Part):
    """How many kinds of wager a hand may have."""

    most_kinds: Positive | None = None


class SettlementTerms(Part):
    """In which order wagers are settled, and whether the vigorish may be marked and collected later."""

    order: SettlementOrder
    may_mark_vigorish: bool = False


class FloorTerms(Part):
    """What may leave the table for the site's floor, and whether the floor may send notes to its screen.

    A text that says nothing lets nothing out and nothing in.
    """

    leaves: FloorLevel = FloorLevel.NONE
    notes: bool = False


class PaytableRow(Part):
    """One table of one wager. ``least_pays``: an operator may choose this payout or a higher one."""

    variants: tuple[str, ...] = ()
    wager: Filled
    letter: str | None = None
    clause: Filled
    rule: Filled
    for_one: bool = False
    vigorish: tuple[str, ...] = ()
    least_pays: Positive | None = None
    pays: dict[str, int | str] = Field(default_factory=dict)
    awards: dict[str, str] = Field(default_factory=dict)


class RuleText(Part):
    """One text, checked. `row`, `pack_row`, `clause` and `void_clause` look up what it says."""

    key: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9]{1,7}$")]
    title: Filled
    game: GameKind
    variants: Annotated[tuple[str, ...], Field(min_length=1)]
    cards: CardBounds
    seats: SeatBounds
    dealing: DealingBounds
    cut: CutTerms
    cover: CoverTerms | None = None
    stub: StubTerms | None = None
    idle: IdleTerms
    wagers: WagerBounds
    settlement: SettlementTerms
    floor: FloorTerms = FloorTerms()
    removal: dict[Annotated[RemovalReason, Field(strict=False)], Filled]
    clauses: dict[str, Filled]
    voids: dict[str, Filled]
    absent: dict[str, Filled] = Field(default_factory=dict)
    acts: dict[str, ActRow]
    pack_acts: dict[str, ActRow]
    paytable: Annotated[tuple[PaytableRow, ...], Field(min_length=1)]

    # -- what it says ---------------------------------------------------------------------------

    @cached_property
    def rows(self) -> dict[str, ActionRule]:
        """The acts of the table, in the file's order."""
        return self._rules(self.acts, vocabulary.TABLE_STATES, self.game)

    @cached_property
    def pack_rows(self) -> dict[str, ActionRule]:
        """The acts on a pack, in the file's order."""
        return self._rules(self.pack_acts, vocabulary.PACK_STATES)

    def _rules(
        self, acts: Mapping[str, ActRow], states: Iterable[str], game: GameKind | None = None
    ) -> dict[str, ActionRule]:
        return {
            action: ActionRule(
                action=action,
                sources=tuple(expand(row.sources, states, game)),
                dest=row.dest,
                who=row.who,
                clause=self.cite(row.clause),
                countersign=row.countersign,
            )
            for action, row in acts.items()
        }

    def cite(self, section: str) -> str:
        """A clause of this text: its key and the section."""
        return f"{self.key} {section}"

    def clause(self, key: str) -> str:
        """The clause of an act or of a ground, by its name."""
        section = self.clauses.get(key)
        if section is not None:
            return self.cite(section)
        row = self.rows.get(key) or self.pack_rows.get(key)
        return row.clause if row is not None else self.absent_clause(key)

    def absent_clause(self, action: str) -> str:
        """The clause by which an act is refused that this text does not have."""
        return self.cite(self.absent.get(action, self.clauses["no_such_act"]))

    def void_clause(self, reason: str) -> str:
        """The clause of a void round; a reason of the device without its own clause is a failed shoe."""
        return self.cite(self.voids.get(reason, self.voids["shoe_failed"]))

    def removal_clause(self, reason: RemovalReason) -> str:
        """The clause by which a pack leaves the table for this reason."""
        return self.cite(self.removal[reason])

    @property
    def every_round(self) -> bool:
        """Whether cards are shuffled after each round, or shoe by shoe."""
        return self.cards.shuffled == "every-round"

    @cached_property
    def sha256(self) -> str:
        """The hash of all it says about play; what may leave the table is not play."""
        whole = json.dumps(
            self.model_dump(mode="json", exclude={"floor"}), sort_keys=True, separators=(",", ":")
        )
        return hashlib.sha256(whole.encode()).hexdigest()


def expand(names: Iterable[str], states: Iterable[str], game: GameKind | None = None) -> Iterator[str]:
    """The states that a row names, groups of them (`vocabulary.GROUPS`) included."""
    known = [each for each in states if game is None or each not in _foreign(game)]
    for name in names:
        group = vocabulary.GROUPS.get(name)
        if group is None:
            yield name
        else:
            yield from (each for each in known if each in group)


def _foreign(game: GameKind) -> set[str]:
    others = (states for other, states in vocabulary.GAME_STATES.items() if other is not game)
    return {state for states in others for state in states}


# -- reading -------------------------------------------------------------------------------------

_packaged: dict[str, RuleText] = {}
_added: dict[str, RuleText] = {}


def packaged() -> tuple[str, ...]:
    """The keys of the packaged texts."""
    files = resources.files("sabot_table").joinpath(FOLDER).iterdir()
    return tuple(sorted(each.name.removesuffix(".toml") for each in files if each.name.endswith(".toml")))


def rule_text(key: str) -> RuleText:
    """The text with this key: packaged, or added by `add_file`. `UnknownRuleText` if there is none."""
    if key in _added:
        return _added[key]
    if key not in _packaged:
        if key not in packaged():
            known = ", ".join((*packaged(), *_added))
            raise UnknownRuleText(f"there is no rule text '{key}'; give one of {known}", known)
        file = resources.files("sabot_table").joinpath(FOLDER, f"{key}.toml")
        _packaged[key] = parse_text(file.read_text(encoding="utf-8"), f"{key}.toml")
    return _packaged[key]


def add_file(path: Path) -> RuleText:
    """The text of an operator's file. From now on `rule_text` knows its key."""
    if not path.is_file():
        raise UnknownRuleText(f"no rule text is at {path}; correct text_file in the rule set")
    text = parse_text(read_text(path, RuleTextError), str(path))
    if text.key in packaged():
        problem = Problem("key", f"is '{text.key}', which is packaged", "give the text a key of its own")
        raise RuleTextError(str(path), (problem,))
    _added[text.key] = text
    return text


def parse_text(text: str, source: str) -> RuleText:
    """A rule text out of a file's text; `RuleTextError` names everything that is wrong."""
    found = shaped(RuleText, read_toml(text, source, RuleTextError), source, RuleTextError)
    problems = tuple(_problems(found))
    if problems:
        raise RuleTextError(source, problems)
    return found


# -- checking ------------------------------------------------------------------------------------


def _problems(text: RuleText) -> Iterator[Problem]:
    acts, grounds = vocabulary.acts_of(text.game), vocabulary.grounds_of(text.game)
    yield from _unknown("acts", text.acts, acts)
    yield from _unknown("pack_acts", text.pack_acts, vocabulary.PACK_ACTS)
    yield from _unknown("absent", text.absent, vocabulary.EVERY_ACT - {*text.acts, *text.pack_acts})
    yield from _exactly("clauses", text.clauses, grounds)
    yield from _exactly("voids", text.voids, vocabulary.voids_of(text.game))
    yield from _rows("acts", text.acts, vocabulary.TABLE_STATES, _foreign(text.game))
    yield from _rows("pack_acts", text.pack_acts, vocabulary.PACK_STATES, set())
    yield from _whole(text)
    low, high = text.cards.decks
    if low > high:
        yield Problem("cards.decks", f"is {low} to {high}", "give the smaller number first")
    if text.seats.least > text.seats.most:
        yield Problem("seats.least", f"is {text.seats.least}", f"give {text.seats.most} at most")
    yield from _unknown("idle.kept_in", text.idle.kept_in, vocabulary.PACK_STATES)


def _unknown(where: str, given: Iterable[str], known: Iterable[str]) -> Iterator[Problem]:
    for name in given:
        if name not in known:
            do = f"give some of {', '.join(sorted(known))}"
            yield Problem(f"{where}.{name}", "is not known here", do)


def _exactly(where: str, given: Mapping[str, object], wanted: Mapping[str, str]) -> Iterator[Problem]:
    yield from _unknown(where, given, wanted)
    for key, about in wanted.items():
        if key not in given:
            yield Problem(f"{where}.{key}", "is missing", f"give the clause about: {about}")


def _rows(
    where: str, acts: Mapping[str, ActRow], states: Mapping[str, str], foreign: set[str]
) -> Iterator[Problem]:
    known = {*states} - foreign
    for action, row in acts.items():
        named = {*row.sources} - {*vocabulary.GROUPS}
        for state in sorted((named | ({row.dest} - {STAYS})) - known):
            yield Problem(f"{where}.{action}", f"names '{state}'", f"give some of {', '.join(sorted(known))}")
    reached = {next(iter(states))}
    while True:
        more = {
            row.dest
            for row in acts.values()
            if row.dest != STAYS and reached & set(expand(row.sources, known))
        } - reached
        if not more:
            break
        reached |= more
    for action, row in acts.items():
        for state in row.sources:
            if state in known and state not in reached:
                do = "no act leads there: add one, or remove the state"
                yield Problem(f"{where}.{action}", f"begins in '{state}'", do)


def _whole(text: RuleText) -> Iterator[Problem]:
    """What belongs together is there together."""
    pairs = (
        ("place_cover" in text.pack_acts, text.cover is not None, "cover", "pack_acts.place_cover"),
        ("pass_stub" in text.acts, text.stub is not None, "stub", "acts.pass_stub"),
        ("burn" in text.pack_acts, not text.every_round, "pack_acts.burn", "cards.shuffled = 'every-shoe'"),
        (
            "cover_card" in text.acts, "announce_last_hand" in text.acts,
            "acts.announce_last_hand", "acts.cover_card",
        ),
    )  # fmt: skip
    for one, other, where, with_ in pairs:
        if one != other:
            yield Problem(where, f"goes with {with_}, and one of them is missing", "give both or neither")
    if RemovalReason.WRONG_COUNT not in text.removal:
        do = "give its clause: a pack with a wrong count never stays"
        yield Problem("removal.wrong_count", "is missing", do)
    if DealingMethod.HAND not in text.dealing.methods and text.cards.hours_hand is not None:
        yield Problem("cards.hours_hand", "is given without the method 'hand'", "remove it")
