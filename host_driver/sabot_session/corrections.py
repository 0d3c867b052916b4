"""A corrected round: wagers, hands and settlement, from the record and from what people say."""

from collections.abc import Mapping, Sequence
from typing import Any

from sabot_session import row_data as d
from sabot_session.dispute_acts import ProposeCorrection
from sabot_session.outcomes import ActRefused
from sabot_session.round_history import RoundUnknown, build_round
from sabot_session.row_kinds import data_of
from sabot_session.rows import NumberedRow
from sabot_table.cards import Card, card, cards
from sabot_table.rule_texts import GameKind
from sabot_table.ruleset import RuleSet
from sabot_table.settlement import CardSource, DealtHands, results_of, settle


def corrected(rules: RuleSet, rows: Sequence[NumberedRow], act: ProposeCorrection) -> dict[str, Any]:
    """The parts of a settled three-card round that a correction replaces.

    Raises `RoundUnknown`, `ActRefused` for a round that cannot be corrected or a correction that says
    nothing, and what the rules say of the wagers and cards.
    """
    if not rows:
        raise RoundUnknown(f"the record has no round {act.round_id}")
    found = build_round(rows)
    settled = found.void is None and found.facts.settled is not None
    if rules.game is not GameKind.THREE_CARD or not settled:
        raise ActRefused(f"propose_correction: round {act.round_id} is not a settled three-card round")
    if act.wagers is None and act.hands is None:
        raise ActRefused("propose_correction: say which wagers or which hands were other than on record")
    bets = found.facts.bets if act.wagers is None else _bets(act.wagers)
    exposed = found.facts.exposed if act.hands is None else _exposed(act.hands)
    assert bets is not None
    assert exposed is not None
    told: dict[str, Any] = {"settled": _settled(rules, bets, exposed, rows)}
    if act.wagers is not None:
        told["bets"] = bets
    if act.hands is not None:
        told["exposed"] = exposed
    return told


def _bets(wagers: Mapping[int, Mapping[str, int]]) -> d.Bets:
    made = [
        d.Wager(seat=seat, wager=wager, cents=cents)
        for seat, some in sorted(wagers.items())
        for wager, cents in some.items()
    ]
    return d.Bets(seats=tuple(sorted(wagers)), wagers=tuple(made))


def _exposed(hands: Mapping[int, tuple[str, ...]]) -> d.Exposed:
    lain = [
        d.Hand(
            of=d.HandOf.SEAT if seat else d.HandOf.DEALER,
            seat=seat,
            cards=tuple(str(each) for each in cards(" ".join(names))),
        )
        for seat, names in hands.items()
    ]
    return d.Exposed(hands=tuple(lain), source=CardSource.DEALER)


def _settled(rules: RuleSet, bets: d.Bets, exposed: d.Exposed, rows: Sequence[NumberedRow]) -> d.Settled:
    if any(each.cards is None for each in exposed.hands):
        return d.Settled(lines=None)
    hands: dict[int, tuple[Card, ...]] = {
        each.seat: tuple(card(name) for name in each.cards or ()) for each in exposed.hands
    }
    play = DealtHands(hands.pop(0, ()), hands)
    forfeits, abandoned = _seats(rows, "forfeit"), _seats(rows, "abandon")
    if bets.wagers is None:
        results = results_of(rules, bets.seats, play, forfeits, abandoned)
        return d.Settled(
            lines=tuple(d.ResultLine.model_validate(each.to_json(), strict=False) for each in results)
        )
    wagers: dict[int, dict[str, int]] = {}
    for made in bets.wagers:
        wagers.setdefault(made.seat, {})[made.wager] = made.cents
    settlement = settle(rules, wagers, play, CardSource.DEALER, forfeits, abandoned)
    lines = (d.ResultLine.model_validate(each.to_json(), strict=False) for each in settlement.lines)
    return d.Settled(lines=tuple(lines))


def _seats(rows: Sequence[NumberedRow], kind: str) -> list[int]:
    found = [data_of(each.row) for each in rows if each.row.kind == kind]
    return [each.seat for each in found if isinstance(each, d.AtSeat)]
