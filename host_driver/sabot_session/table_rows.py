"""Rows for the record out of what the table's procedure wrote down."""

from collections.abc import Mapping

from sabot_session.rows import Json
from sabot_table.procedure.context import TableContext
from sabot_table.procedure.memory import PackState, RoundState
from sabot_table.rule_texts import DealingMethod

KINDS = {"receive": "receive_pack"}
"""Kinds of rows that have another name than the action in the procedure's log."""
COUNTS = ("count_stub", "count_wrong", "recount", "determine")
UNWRITTEN = ("place_wager", "hands_dealt")
"""Actions that another row of the same step tells."""


def clause_of(table: TableContext, action: str, playing: RoundState | None) -> str:
    """The clause of this table's text for an action."""
    if action == "void" and playing is not None and playing.void_clause:
        return playing.void_clause
    if action in COUNTS and playing is not None and playing.method == DealingMethod.AUTOMATED_SHOE:
        return table.clause("count_automated")
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
        data |= {"seats": sorted(playing.wagers), "wagers": _wagers(playing)}
    elif playing is not None and action == "deal_stack":
        turns, stack = table.turns(), len(playing.stacks)
        data |= {"stack": stack, "seat": turns[min(stack, len(turns)) - 1], "cards": playing.stacks[-1]}
    elif playing is not None and action == "settle":
        lines = (playing.settlement or {}).get("settlement")
        data |= {"lines": lines, "meters": []}  # type: ignore[dict-item]
    elif playing is not None and action in ("wrong_number", "shoe_failed"):
        data["why"] = playing.void_why
    elif playing is not None and action == "void":
        data |= {"why": playing.void_why, "give_back": _wagers(playing)}
    return {**data, **told}


def _pack(table: TableContext, pack_id: int) -> PackState:
    return next(each for each in table.memory.packs if each.pack_id == pack_id)


def _wagers(playing: RoundState) -> list[Json] | None:
    if not playing.wagers_known:
        return None
    return [
        {"seat": seat, "wager": wager, "cents": cents}
        for seat, made in sorted(playing.wagers.items())
        for wager, cents in made.items()
    ]


def hands_data(
    turns: list[int], hands: Mapping[int, tuple[str, ...] | None], source: str | None
) -> dict[str, Json]:
    """Hands for a row: by seat, the dealer's is seat 0; None where the cards are not known."""
    lain: list[Json] = [
        {"of": "seat" if seat else "dealer", "seat": seat, "cards": None if cards is None else list(cards)}
        for seat, cards in ((seat, hands.get(seat)) for seat in turns)
    ]
    return {"hands": lain, "source": source}
