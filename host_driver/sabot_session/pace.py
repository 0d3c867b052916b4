"""The pace of a table, from its record: touches and seconds of each round.

A touch is an act of the dealer, or a press of a button, without which the round does not go on. Cards that
people take or lay into the tray are no touches: the machine senses them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sabot_session.rows import Authentication, NumberedRow
from sabot_table.procedure import TableRole

TOUCHES = ("open_bets", "no_more_bets", "place_wager", "withdraw_wager", "reveal", "determine", "settle")
"""Rows of a round that a dealer's touch leaves; rows of one act are one touch."""


@dataclass(frozen=True, slots=True)
class RoundPace:
    """How one round was played."""

    round_id: int
    touches: int
    dealt_s: int  # from "no more bets" until the last hand was dealt and counted
    seconds: int  # from "no more bets" until it was settled or void


def paces(rows: Iterable[NumberedRow]) -> list[RoundPace]:
    """The pace of each round that is settled or void, in the record's order."""
    by_round: dict[int, list[NumberedRow]] = {}
    for each in rows:
        if each.row.round_id:
            by_round.setdefault(each.row.round_id, []).append(each)
    return [found for some in by_round.values() if (found := _pace(some)) is not None]


def _pace(rows: list[NumberedRow]) -> RoundPace | None:
    first = {each.row.kind: each.row for each in reversed(rows)}
    begun, ended = first.get("no_more_bets"), first.get("settle") or first.get("void")
    if begun is None or ended is None:
        return None
    counted = first.get("count_stub") or ended
    touched = {
        each.row.act_id or str(each.row.follows)
        for each in rows
        if each.row.kind in TOUCHES and each.row.actor.role is TableRole.DEALER and _is_touch(each)
    }
    dealt_s, seconds = counted.at_s - begun.at_s, ended.at_s - begun.at_s
    return RoundPace(begun.round_id, len(touched), dealt_s, seconds)


def _is_touch(each: NumberedRow) -> bool:
    """A row that follows from an answer of the machine has no act of its own."""
    return bool(each.row.act_id) or each.row.actor.how is Authentication.SENSED
