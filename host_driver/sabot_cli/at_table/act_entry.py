"""What a person must still say for an act: its details, and who the person is. Questions come one by one.

A generator yields each `Question` and is sent the answer; it returns what was asked for. So the program goes
on telling what happens at the table while somebody types.
"""

import dataclasses
import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from sabot_driver import Credential
from sabot_driver.errors import SabotError
from sabot_house.proof import show_file
from sabot_house.statements import CERTIFICATE, kind_of
from sabot_protocol.host.messages import Role
from sabot_session.acts import Act, parse_act
from sabot_session.needs import Need
from sabot_session.people import Presented
from sabot_table.cards import cards
from sabot_table.errors import ImpossibleCards, TableError
from sabot_table.procedure import TableRole
from sabot_table.ruleset import RuleSet
from sabot_table.wager_acceptance import check_wagers

LABELS = {
    "bag": "number of the bag or seal",
    "brought_by": "brought by",
    "pack_id": "number of the pack",
    "row": "number of the row",
    "back": "back (red, blue)",
    "surveillance": "what surveillance saw",
    "decision": "what the floor decides",
    "machine_wrong": "was the machine wrong",
}
AMOUNT = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
YES, NO = ("y", "yes"), ("n", "no")

ASKED = ("why", "brought_by", "destination", "bag")
"""Details that are asked for although an act can be without them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """What is asked next; ``default`` is the answer of an empty line."""

    text: str
    default: str = ""
    hidden: bool = False
    wrong: str = ""
    """Why the answer before was not taken."""
    shown: str = ""
    """The default in short, where it is long."""
    hint: str = ""
    """What is told before it is asked."""

    def __str__(self) -> str:
        return f"{self.text} [{self.shown or self.default}]: " if self.default else f"{self.text}: "


class BadEntry(ValueError):
    """An answer that cannot be taken; the text says why."""


Asking = Generator[Question, str, Any]
Wagers = Mapping[int, Mapping[str, int]]


def ask(question: Question, parse: Callable[[str], Any] = str) -> Asking:
    """Ask until the answer can be taken; the parsed answer."""
    while True:
        text = (yield question).strip() or question.default
        try:
            return parse(text)
        except (BadEntry, TableError, ImpossibleCards, ValueError) as error:
            question = dataclasses.replace(question, wrong=str(error), hint="")


def required(text: str) -> str:
    """An answer that may not be empty."""
    if not text:
        raise BadEntry("an answer is needed")
    return text


# -- who ----------------------------------------------------------------------------------------


@dataclasses.dataclass
class Identification:
    """How people at this terminal prove who they are."""

    simulated: Callable[[TableRole], object] | None = None
    """Gives the simulated person of a role, where only those act."""
    held: dict[TableRole, str] = dataclasses.field(default_factory=dict)
    """The key file or badge that each role showed last; a PIN is never kept."""
    dealer_here: Callable[[], str] | None = None
    """The dealer who signed in at this terminal, at a table that another program runs."""

    def ask(self, roles: Sequence[TableRole], dealer: str | None, signing_in: bool = False) -> Asking:
        """The credential for an act of these roles; None for the dealer who is signed in."""
        if TableRole.DEALER in roles and dealer and not signing_in:
            if self.dealer_here is None or self.dealer_here() == dealer:
                return None
            roles = [TableRole.DEALER]
        role = next((each for each in roles if each is not TableRole.DEALER), TableRole.DEALER)
        if self.simulated is not None:
            return self.simulated(TableRole.DEALER if signing_in else role)
        if role is TableRole.DEALER:
            person = yield from ask(Question("dealer's id or badge"), required)
            pin = yield from ask(Question(f"PIN of {person}", hidden=True))
            return Presented(pin, person=person)
        before = self.held.get(role, "")
        question = Question(f"{role}'s key file or badge", before, shown=Path(before).name)
        held = yield from ask(question, required)
        shown = read_held(role, held)
        self.held[role] = held
        pin = yield from ask(Question(f"PIN of {role}", hidden=True))
        return dataclasses.replace(shown, pin=pin)


def read_held(role: TableRole, held: str) -> Presented:
    """What somebody holds: the key or certificate in a file of this name, or a badge with this code."""
    path = Path(held).expanduser()
    if path.is_file() and kind_of(path) == CERTIFICATE:
        return Presented("", certificate=show_file(path, int(time.time())))
    if path.is_file():
        return Presented("", key=Credential.read(Role[role.name], path))
    if "/" in held or held.endswith(".key"):
        raise SabotError(f"{held}: there is no such key file", "Insert the medium, or name another file.")
    return Presented("", badge=held)


# -- what ---------------------------------------------------------------------------------------


def ask_act(
    kind: type[Act], need: Need | None, rules: RuleSet, usual: Wagers, told: Mapping[str, str] | None = None
) -> Asking:
    """An act with its details: from the need, from ``told``, else asked for. ``usual`` are usual wagers."""
    details: dict[str, Any] = dict(need.details) if need is not None else {}
    special = SPECIAL.get(kind.NAME)
    if special is not None:
        return (yield from special(details, rules, usual))
    data: dict[str, Any] = dict(told or {})
    for field in dataclasses.fields(kind):
        if field.name in data:
            continue
        if field.name in details:
            data[field.name] = details[field.name]
            continue
        if field.default is not dataclasses.MISSING and field.name not in ASKED:
            continue
        data[field.name] = yield from ask(_question(field), _parser(field))
    return parse_act(kind.NAME, {name: value for name, value in data.items() if value is not None})


def _question(field: "dataclasses.Field[Any]") -> Question:
    label = LABELS.get(field.name, field.name.replace("_", " "))
    choices = _choices(field.type)
    if field.type is bool:
        label += " (y, n)"
    elif choices:
        label += f" ({', '.join(choices)})"
    given = field.default is not dataclasses.MISSING and field.default not in (None, "")
    return Question(label, str(field.default) if given else "")


def _parser(field: "dataclasses.Field[Any]") -> Callable[[str], Any]:
    choices = _choices(field.type)
    optional = field.default is not dataclasses.MISSING

    def parse(text: str) -> Any:
        if not text:
            if optional:
                return field.default
            raise BadEntry("an answer is needed")
        if choices and text not in choices:
            raise BadEntry(f"'{text}' is none of {', '.join(choices)}")
        if field.type is bool:
            if text.lower() not in (*YES, *NO):
                raise BadEntry(f"'{text}' is neither y nor n")
            return text.lower() in YES
        return text

    return parse


def _choices(kind: Any) -> tuple[str, ...]:
    if get_origin(kind) is Literal:
        return tuple(map(str, get_args(kind)))
    return tuple(kind) if isinstance(kind, type) and issubclass(kind, StrEnum) else ()


def _ask_wagers(details: Mapping[str, Any], rules: RuleSet, usual: Wagers) -> Asking:
    seats = details.get("seats") or list(usual)
    hint = "Type the seats that bet as usual (1 3 5), or their wagers (1 ante 20 tie 5, 3 ante 10)."
    question = Question("seats that bet", " ".join(map(str, seats)), hint=hint)
    wagers = yield from ask(question, lambda answer: parse_wagers(answer, rules, usual))
    return parse_act("no_more_bets", {"wagers": wagers})


def parse_wagers(text: str, rules: RuleSet, usual: Wagers) -> dict[int, dict[str, int]]:
    """Wagers out of a line: seats alone bet as usual; amounts are in money, such as 12.50."""
    wagers: dict[int, dict[str, int]] = {}
    with_amounts = any(each.isalpha() for each in text)
    for part in text.split(",") if with_amounts else text.replace(",", " ").split():
        words = part.replace("=", " ").replace(":", " ").split()
        if not words:
            continue
        seat = _number(words[0])
        if len(words) == 1:
            made = dict(usual.get(seat) or next(iter(usual.values()), {}))
        elif len(words) % 2 == 0:
            raise BadEntry(f"'{part.strip()}': write a seat, then wager and amount, such as 1 ante 20")
        else:
            made = {name: _cents(amount) for name, amount in zip(words[1::2], words[2::2], strict=True)}
        wagers[seat] = made
    check_wagers(rules, wagers)
    return wagers


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise BadEntry(f"'{text}' is no seat")
    return int(text)


def _cents(text: str) -> int:
    if not AMOUNT.fullmatch(text):
        raise BadEntry(f"'{text}' is no amount")
    cents = Decimal(text) * 100
    if cents != int(cents):
        raise BadEntry(f"{text} has a fraction of a cent")
    return int(cents)


def _ask_hands(details: Mapping[str, Any], rules: RuleSet, usual: Wagers) -> Asking:
    hands: dict[int, tuple[str, ...]] = {}
    for seat in details["hands"]:
        whose = f"seat {seat}" if seat else "the dealer"
        known = [each for hand in hands.values() for each in hand]
        question = Question(f"cards of {whose} (KS 10H 2D)")
        hands[seat] = yield from ask(question, partial(_parse_hand, known, rules.cards.decks))
    return parse_act("type_hands", {"hands": hands})


def parse_hands(text: str, rules: RuleSet) -> dict[int, tuple[str, ...]]:
    """Hands out of a line: ``dealer 7S AH JC, 1 8H 6H 10S``; seat 0 is the dealer."""
    hands: dict[int, tuple[str, ...]] = {}
    for part in text.split(","):
        whose, _, lain = part.strip().partition(" ")
        if not whose:
            continue
        seat = 0 if whose.lower() == "dealer" else _number(whose)
        if seat in hands:
            raise BadEntry(f"'{whose}' has two hands")
        known = [each for hand in hands.values() for each in hand]
        hands[seat] = _parse_hand(known, rules.cards.decks, lain.strip())
    if 0 not in hands:
        raise BadEntry("the dealer's hand is missing: write every hand, such as dealer 7S AH JC, 1 8H 6H 10S")
    return hands


def _parse_hand(known: Sequence[str], decks: int, text: str) -> tuple[str, ...]:
    """Cards of one hand; `BadEntry` if so many of a card cannot be there."""
    hand = tuple(str(each) for each in cards(required(text)))
    for each in hand:
        if [*known, *hand].count(each) > decks:
            raise BadEntry(f"{each} was typed {[*known, *hand].count(each)} times; there are {decks}")
    return hand


def _ask_verdict(details: Mapping[str, Any], rules: RuleSet, usual: Wagers) -> Asking:
    other = "card_extra" if details["count"] < details["expected"] else "card_missing"
    words = {str(each).replace("_", " "): str(each) for each in details["verdicts"] if each != other}

    def parse(text: str) -> str:
        said = text.lower().replace("_", " ")
        if said not in words:
            raise BadEntry(f"'{text}' is none of {', '.join(words)}")
        return words[said]

    hint = "Misdealt: a hand has a wrong number of cards. The round is void either way."
    default = str(details["advice"]).replace("_", " ")
    question = Question(f"what is it ({', '.join(words)})", default, hint=hint)
    return parse_act("determine", {"verdict": (yield from ask(question, parse))})


SPECIAL: Mapping[str, Callable[[Mapping[str, Any], RuleSet, Wagers], Asking]] = {
    "no_more_bets": _ask_wagers,
    "type_hands": _ask_hands,
    "determine": _ask_verdict,
}
