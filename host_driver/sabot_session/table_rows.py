"""Rows for the record out of what the table's procedure wrote down."""

from collections.abc import Mapping

from sabot_session.rows import Json
from sabot_table.cards import Card, card
from sabot_table.coup import points
from sabot_table.procedure import TableRole
from sabot_table.procedure.context import TableContext
from sabot_table.procedure.memory import PackState, RoundState
from sabot_table.rule_texts import DealingMethod

KINDS = {"receive": "receive_pack"}
"""Kinds of rows that have another name than the action in the procedure's log."""
UNWRITTEN = ("place_wager",)
UNWRITTEN_OF = {
    (TableRole.DEVICE, "hands_dealt"),
    (TableRole.DEVICE, "four_dealt"),
    (TableRole.DEALER, "deal_card"),
}
"""Actions that another row of the same step tells, of anybody and of some roles."""


BY_METHOD: Mapping[str, Mapping[str, str]] = {
    "count_stub": {
        DealingMethod.AUTOMATED_SHOE: "count_automated",
        DealingMethod.MANUAL_SHOE: "count_manual",
        DealingMethod.HAND: "count_hand",
    },
    "count_wrong": {DealingMethod.AUTOMATED_SHOE: "count_automated"},
    "recount": {DealingMethod.AUTOMATED_SHOE: "count_automated"},
    "determine": {DealingMethod.AUTOMATED_SHOE: "count_automated"},
    "hands_dealt": {DealingMethod.HAND: "dealt_by_hand"},
    "pass_stub": {DealingMethod.MANUAL_SHOE: "uncounted_manual", DealingMethod.HAND: "uncounted_hand"},
}
"""Actions whose clause depends on how the round is dealt, with the ground that has it."""


def clause_of(table: TableContext, action: str, playing: RoundState | None) -> str:
    """The clause of this table's text for an action."""
    if action == "void" and playing is not None and playing.void_clause:
        return playing.void_clause
    if playing is not None and action in BY_METHOD:
        action = BY_METHOD[action].get(playing.method, action)
    return table.clause({"cards_read": "reveal", "receive": "receive_pack"}.get(action, action))


def row_data(
    table: TableContext, action: str, pack_id: int, playing: RoundState | None, told: Mapping[str, Json]
) -> dict[str, Json]:
    """The data of an action's row; ``told`` is what only the act or the event knows."""
    data: dict[str, Json] = {} if not pack_id else {"pack_id": pack_id}
    if action == "start_shuffle":
        data["by"] = _pack(table, pack_id).shuffled_by
    elif action == "finish_shuffle":
        data |= {"by": _pack(table, pack_id).shuffled_by, "expected": table.pack_cards}
    elif playing is not None and action == "open_bets":
        data |= {"pack_id": playing.pack_id, "method": playing.method, "simulated": playing.simulated}
    elif playing is not None and action == "no_more_bets":
        data |= {"seats": sorted(playing.wagers), "wagers": _wagers(table, playing)}
    elif playing is not None and action == "begin_simulated":
        data |= {"pack_id": playing.pack_id, "method": playing.method}
    elif playing is not None and action == "announce":
        data |= {"player": _points(playing.player[:2]), "banker": _points(playing.banker[:2])}
    elif playing is not None and action in ("coup_complete", "coup_simulated"):
        player, banker = _cards(playing.player), _cards(playing.banker)
        return {**data, **coup_data(player, banker, playing.source)}
    elif playing is not None and action == "deal_card":
        data |= {"number": playing.dealt, "draw": playing.draws}
    elif playing is not None and action == "deal_stack":
        turns, stack = table.turns(), len(playing.stacks)
        data |= {"stack": stack, "seat": turns[min(stack, len(turns)) - 1], "cards": playing.stacks[-1]}
    elif playing is not None and action == "settle":
        lines = (playing.settlement or {}).get("settlement")
        meters = table.meters()
        shown: list[Json] = (
            [] if meters is None else [{"name": it, "cents": on.cents} for it, on in meters.by_name.items()]
        )
        data |= {"lines": lines, "meters": shown}  # type: ignore[dict-item]
    elif playing is not None and action in ("wrong_number", "shoe_failed"):
        data["why"] = playing.void_why
    elif playing is not None and action == "void":
        data |= {"why": playing.void_why, "give_back": _wagers(table, playing)}
    return {**data, **told}


def _pack(table: TableContext, pack_id: int) -> PackState:
    return next(each for each in table.memory.packs if each.pack_id == pack_id)


def _wagers(table: TableContext, playing: RoundState) -> list[Json] | None:
    if not playing.wagers_known:
        return None
    offered = table.rules.offered  # their order is the same before and after a restart
    return [
        {"seat": seat, "wager": wager, "cents": cents}
        for seat, made in sorted(playing.wagers.items())
        for wager, cents in sorted(made.items(), key=lambda each: offered.index(each[0]))
    ]


def _cards(names: list[str]) -> tuple[Card, ...]:
    return tuple(card(each) for each in names)


def _points(names: list[str]) -> int | None:
    return points(_cards(names)) if names else None


def coup_data(
    player: tuple[Card, ...] | None, banker: tuple[Card, ...] | None, source: str | None
) -> dict[str, Json]:
    """Both hands of mini baccarat for a row; None where the cards are not known."""
    hands: list[Json] = [
        {"of": of, "cards": None if some is None else [str(each) for each in some]}
        for of, some in (("player", player), ("banker", banker))
    ]
    return {"hands": hands, "source": source}


def hands_data(
    turns: list[int], hands: Mapping[int, tuple[str, ...] | None], source: str | None
) -> dict[str, Json]:
    """Hands for a row: by seat, the dealer's is seat 0; None where the cards are not known."""
    lain: list[Json] = [
        {"of": "seat" if seat else "dealer", "seat": seat, "cards": None if cards is None else list(cards)}
        for seat, cards in ((seat, hands.get(seat)) for seat in turns)
    ]
    return {"hands": lain, "source": source}
