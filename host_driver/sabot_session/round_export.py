"""Rounds as JSON and as CSV, for people and programs that examine them."""

import csv
import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from sabot_session import row_data as d
from sabot_session.round_history import Replaced, Round, RoundFacts
from sabot_session.rows import Actor, Json
from sabot_table.settlement import TAKEN, WagerOutcome

VERSION = 1
COLUMNS = (
    "round", "opened", "ended", "dealer", "method", "machine", "pack", "end", "void_clause", "void_why",
    "verdict", "cards_from", "dealers_hand", "player_hand", "banker_hand", "seat", "seats_hand", "wager",
    "stake_cents", "outcome", "line", "odds", "pays_cents", "vig_cents", "net_cents", "clause", "corrected",
    "complete", "not_known",
)  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would take such a text for a formula


def round_json(each: Round) -> dict[str, Json]:
    """All of a round; keys are never renamed within a version."""
    void = each.void
    return {
        "version": VERSION,
        "round": each.round_id,
        "opened_s": each.opened_s,
        "ended_s": each.ended_s,
        "dealer": each.dealer,
        "method": each.method,
        "machine": each.serial,
        "pack": each.pack_id,
        "simulated": each.simulated,
        "end": str(each.end),
        **_facts(each.facts),
        "hands": [hand.to_json() for hand in each.hands],
        "verdict": None if each.verdict is None else str(each.verdict),
        "void": None
        if void is None
        else {
            "clause": void.clause,
            "why": void.why,
            "give_back": None if void.give_back is None else [it.to_json() for it in void.give_back],
            "at_s": void.at_s,
            "by": _actor(void.actor),
        },
        "wagers_made": [{"row": row, "kind": kind, **it.to_json()} for row, kind, it in each.wagers_made],
        "older": [_older(it) for it in each.older],
        "held": list(each.held),
        "disputes": [
            {
                "row": it.number,
                "why": it.why,
                "machine": it.serial,
                "surveillance": it.surveillance,
                "decision": it.decision,
                "machine_wrong": it.machine_wrong,
            }
            for it in each.disputes
        ],
        "to_countersign": list(each.to_countersign),
        "complete": each.complete,
        "missing": list(each.missing),
        "not_known": list(each.not_known),
        "done": [
            {"row": it.number, "kind": it.kind, "at_s": it.at_s, "clause": it.clause, **_actor(it.actor)}
            for it in each.done
        ],
    }


def rounds_csv(rounds: Iterable[Round]) -> str:
    """A table with a header: a line for each wager's result or return, one line for a round without any."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\r\n")  # RFC 4180
    writer.writeheader()
    for each in rounds:
        for line in each.lines or _returned(each) or (None,):
            cells = _cells(each, line)
            writer.writerow({name: _safe(cells.get(name)) for name in COLUMNS})
    return text.getvalue()


def _returned(each: Round) -> tuple[d.ResultLine, ...]:
    """The wagers that a void round gave back."""
    void = each.void
    if void is None:
        return ()
    return tuple(
        d.ResultLine(
            seat=made.seat, wager=made.wager, outcome=WagerOutcome.RETURNED, line="", stake_cents=made.cents,
            pays_cents=0, vig_cents=0, clause=void.clause,
        )
        for made in void.give_back or ()
    )  # fmt: skip


def _cells(each: Round, line: d.ResultLine | None) -> Mapping[str, object]:
    hands = {(it.of, it.seat): _hand(it) for it in each.hands}
    cells: dict[str, object] = {
        "round": each.round_id,
        "opened": _utc(each.opened_s),
        "ended": _utc(each.ended_s),
        "dealer": each.dealer,
        "method": each.method,
        "machine": each.serial,
        "pack": each.pack_id or None,
        "end": each.end,
        "void_clause": each.void and each.void.clause,
        "void_why": each.void and each.void.why,
        "verdict": each.verdict or "not counted",
        "cards_from": each.source,
        "dealers_hand": hands.get((d.HandOf.DEALER, 0)),
        "player_hand": hands.get((d.HandOf.PLAYER, 0)),
        "banker_hand": hands.get((d.HandOf.BANKER, 0)),
        "corrected": "yes" if each.older else "no",
        "complete": "yes" if each.complete else f"no: {', '.join(each.missing)}",
        "not_known": ", ".join(each.not_known),
    }
    if line is not None:
        cells |= {
            "seat": line.seat,
            "seats_hand": hands.get((d.HandOf.SEAT, line.seat)),
            "wager": line.wager,
            "stake_cents": line.stake_cents,
            "outcome": line.outcome,
            "line": line.line,
            "odds": line.odds,
            "pays_cents": line.pays_cents,
            "vig_cents": line.vig_cents,
            "net_cents": net_cents(line),
            "clause": line.clause,
        }
    return cells


def net_cents(line: d.ResultLine) -> int | None:
    """What the player has more than before the round; None if the stake is not known."""
    if line.stake_cents is None or line.pays_cents is None or line.vig_cents is None:
        return None
    if line.outcome in TAKEN:
        return -line.stake_cents
    return line.pays_cents - line.vig_cents


def _facts(facts: RoundFacts) -> dict[str, Json]:
    found = {
        "bets": facts.bets,
        "exposed": facts.exposed,
        "settled": facts.settled,
        "counted": facts.counted,
    }
    return {name: None if value is None else value.to_json() for name, value in found.items()}


def _older(it: Replaced) -> dict[str, Json]:
    by: dict[str, Json] = {"row": it.number, "at_s": it.at_s, "floor": it.floor, "dealer": it.dealer}
    return {**by, "why": it.why, **_facts(it.before)}


def _actor(actor: Actor) -> dict[str, Json]:
    return {"person": actor.person, "role": str(actor.role), "how": str(actor.how)}


def _hand(hand: d.Hand) -> str:
    if hand.cards is None:
        return "not known"
    return f"{' '.join(hand.cards)} ({hand.points})"


def _utc(at_s: int | None) -> str | None:
    if at_s is None:
        return None
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _safe(value: object) -> object:
    """The cell as it is written: a text that looks like a formula gets an apostrophe in front."""
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value
