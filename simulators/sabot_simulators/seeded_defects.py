"""Defects seeded into the controller, to prove that ``make soak`` finds each of them.

A plant patches classes of ``sabot_firmware`` in this process, while its context lasts. The firmware itself
has none of them. ``python -m sabot_simulators.seeded_defects`` plants each in turn and says at which table
the soak found it (``make soak-planted``).
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rich.console import Console

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_firmware import shoe, whereabouts
from sabot_firmware.controller import Controller
from sabot_firmware.dealing import DELIVERY, Dealing
from sabot_firmware.decks import PAST_ITS_HOURS, DeckRegistry
from sabot_firmware.machine_constants import DECK_CARDS
from sabot_firmware.persistent_state import CARDS_INSIDE, NO_CARDS, PersistentState
from sabot_firmware.rounds import CARD_MISSING, CORRECT, Round
from sabot_firmware.service import Service
from sabot_firmware.shuffler import Shuffler
from sabot_simulators.soak import SoakReport, soak

TABLES = 2000


def _around(owner: type, name: str, wrapper: Callable[..., Any]) -> Any:
    """Replace a method by one that is given the original first."""
    original = getattr(owner, name)

    def planted(self: Any, *arguments: Any) -> Any:
        return wrapper(original, self, *arguments)

    return patch.object(owner, name, planted)


@contextmanager
def round_of_51() -> Iterator[None]:
    """A round of 51 cards is called correct."""

    def close(original: Callable[..., None], self: Dealing, ended: Round, verdict: int, stub: int) -> None:
        one_short = verdict == CARD_MISSING and sum(ended.stacks) + stub == DECK_CARDS - 1
        original(self, ended, CORRECT if one_short else verdict, stub)

    with _around(Dealing, "_close", close):
        yield


@contextmanager
def retry_counts_twice() -> Iterator[None]:
    """A count is one too high after a retry."""

    def counted(original: Callable[..., int | None], self: Shuffler) -> int | None:
        count = original(self)
        return count if count is None else count + (self.retries > 0)

    with _around(Shuffler, "counted", counted):
        yield


@contextmanager
def turn_forgotten() -> Iterator[None]:
    """A power cut forgets whose turn it is."""

    def load(original: Callable[..., None], self: PersistentState) -> None:
        original(self)
        self.decks.last_played = 0

    with _around(PersistentState, "_load", load):
        yield


@contextmanager
def void_returns_the_turn() -> Iterator[None]:
    """A void round gives the turn back."""

    def started(original: Callable[..., None], self: Any, deck_id: int) -> None:
        self.planted_before = self.last_played
        original(self, deck_id)

    def void(original: Callable[..., None], self: Dealing, reason: int) -> None:
        decks: Any = self._persistent.decks
        if self.round is not None:
            decks.last_played = decks.planted_before
        original(self, reason)

    with _around(DeckRegistry, "started", started), _around(Dealing, "void", void):
        yield


@contextmanager
def shelf_behind_an_open_door() -> Iterator[None]:
    """A deck on the shelf stays proved when the door is opened."""

    def door(original: Callable[..., None], self: Controller, *arguments: Any) -> None:
        with patch.object(self.shuffler, "forget_shelf", lambda: None):
            original(self, *arguments)

    with _around(Controller, "_door", door):
        yield


class _AnyBack(int):
    """A back that every card shows."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__


@contextmanager
def backs_ignored() -> Iterator[None]:
    """The entry does not look at backs."""

    def shuffle(original: Callable[..., None], self: Shuffler, deck_id: int, back: int, *others: Any) -> None:
        original(self, deck_id, _AnyBack(back), *others)

    with _around(Shuffler, "shuffle", shuffle):
        yield


@contextmanager
def jammed_shoe_vouches() -> Iterator[None]:
    """A jammed shoe still vouches for its deck."""
    with patch.object(whereabouts, "VOUCHED", (*whereabouts.VOUCHED, shoe.JAMMED)):
        yield


@contextmanager
def stub_one_too_many() -> Iterator[None]:
    """A short round reports one card too many in its stub."""

    def close(original: Callable[..., None], self: Dealing, ended: Round, verdict: int, stub: int) -> None:
        original(self, ended, verdict, stub + (verdict == CARD_MISSING))

    with _around(Dealing, "_close", close):
        yield


@contextmanager
def hours_never_over() -> Iterator[None]:
    """A deck is never past its hours."""

    def using(original: Callable[..., str | None], self: DeckRegistry, *arguments: Any) -> str | None:
        why = original(self, *arguments)
        return None if why == PAST_ITS_HOURS else why

    with _around(DeckRegistry, "refuse_using", using):
        yield


@contextmanager
def shoe_was_not_working() -> Iterator[None]:
    """After a power cut the shoe forgets that cards were moving in it."""

    def forgetful(original: Callable[..., None], self: Controller, now_us: int) -> None:
        self.persistent.shoe_inside = NO_CARDS
        original(self, now_us)

    with _around(Controller, "start", forgetful):
        yield


@contextmanager
def service_leaves_the_path() -> Iterator[None]:
    """Service and out of order do not note that a card may stick in the shoe's path."""

    def forget(original: Callable[..., None], self: Service) -> None:
        cleared = self._controller.shoe.cleared
        original(self)
        self._controller.shoe.cleared = cleared

    with _around(Service, "_forget", forget):
        yield


@contextmanager
def inspection_used_up() -> Iterator[None]:
    """A deck that never came to the shoe uses an inspection of the path up."""

    def inspected(original: Callable[..., Any], self: Dealing) -> Any:
        half = self._controller.shoe
        with patch.object(half, "block", lambda missing, deck_id: None):
            cleared, answer = half.cleared, original(self)
        half.cleared = cleared
        half.block(0, 0)
        return answer

    with _around(Dealing, "path_inspected", inspected):
        yield


@contextmanager
def whole_with_one_more() -> Iterator[None]:
    """A batch counts as delivered whole while one more card of it lies in the path."""

    def came_out(original: Callable[..., None], self: Dealing, cards: int) -> None:
        half, delivered = self._controller.shoe, self._ejecting == DELIVERY
        missing = half.missing
        if delivered:
            half.missing = 0
        original(self, cards)
        if delivered:
            half.missing = missing

    with _around(Dealing, "_came_out", came_out):
        yield


@contextmanager
def purge_unblocks() -> Iterator[None]:
    """A purge that brought no card out unblocks the shoe."""

    def account(original: Callable[..., None], self: shoe.Shoe) -> None:
        original(self)
        if self._purging:
            self.block(0, 0)

    with _around(shoe.Shoe, "_account", account):
        yield


@contextmanager
def hands_forgotten() -> Iterator[None]:
    """A power cut forgets that hands were in the shoe."""

    def load(original: Callable[..., None], self: PersistentState) -> None:
        original(self)
        self.cleared = False

    with _around(PersistentState, "_load", load):
        yield


@contextmanager
def last_card_forgotten() -> Iterator[None]:
    """The shoe's last card, drawn and not counted, does not block the shoe after a power cut."""

    def start(original: Callable[..., None], self: Controller, now_us: int) -> None:
        self.persistent.shoe_inside = min(self.persistent.shoe_inside, CARDS_INSIDE)
        original(self, now_us)

    with _around(Controller, "start", start):
        yield


# Each plant, and the claim that gives it away
PLANTS: dict[str, tuple[Callable[[], Any], str]] = {
    "round-of-51": (round_of_51, "a correct round of 51"),
    "retry-counts-twice": (retry_counts_twice, "in the chamber"),
    "turn-forgotten": (turn_forgotten, "it is the turn"),
    "void-returns-the-turn": (void_returns_the_turn, "it is the turn"),
    "shelf-behind-an-open-door": (shelf_behind_an_open_door, "behind a door that nobody opened"),
    "backs-ignored": (backs_ignored, "of one back"),
    "jammed-shoe-vouches": (jammed_shoe_vouches, "in a shoe that works"),
    "stub-one-too-many": (stub_one_too_many, "a stub of"),
    "hours-never-over": (hours_never_over, "within its hours"),
    "shoe-was-not-working": (shoe_was_not_working, "the shoe half is empty"),
    "service-leaves-the-path": (service_leaves_the_path, "52 in the shoe"),
    "inspection-used-up": (inspection_used_up, "52 in the shoe"),
    "whole-with-one-more": (whole_with_one_more, "was delivered whole"),
    "purge-unblocks": (purge_unblocks, "the shoe half is empty"),
    "hands-forgotten": (hands_forgotten, "52 in the shoe"),
    "last-card-forgotten": (last_card_forgotten, "the shoe half is empty"),
}


def find(name: str, tables: int, seed: int, console: Console) -> SoakReport:
    """Soak with one defect until it is found, at most so many tables."""
    plant, claim = PLANTS[name]
    with plant():
        return soak(tables, seed, console, until=claim)


def main() -> int:
    """Seed each defect in turn; 1 if one was not found."""
    parser = argparse.ArgumentParser(prog="python -m sabot_simulators.seeded_defects", description=__doc__)
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", choices=sorted(PLANTS), action="append")
    parser.add_argument("--write", type=Path, help="a file that gets the result as a table of Markdown")
    arguments = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    missed = 0
    rows = ["| planted | found at table | by the claim |", "| --- | ---: | --- |"]
    for name in arguments.plant or PLANTS:
        began = time.monotonic()
        found = find(name, arguments.tables, arguments.seed, console)
        took = time.monotonic() - began
        if found.has(PLANTS[name][1]):
            what = next(each for each in found.wrong if PLANTS[name][1] in each)
            console.print(f"{name:<26} found at table {found.tables:>4} ({took:.0f} s): {what}")
            rows.append(f"| {name} | {found.tables:,} | {what.partition(': ')[0]} |")
        else:
            missed += 1
            console.print(f"[red]{name:<26} not found in {found.tables} tables ({took:.0f} s)[/red]")
            rows.append(f"| {name} | **not found in {found.tables:,}** | |")
    if arguments.write is not None:
        arguments.write.parent.mkdir(parents=True, exist_ok=True)
        arguments.write.write_text("\n".join(rows) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(main())
