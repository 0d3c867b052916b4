"""What a machine that cannot be used asks of people before another way of dealing (MD3 13.E)."""

from collections.abc import Iterator

from sabot_session import acts, dealing_acts
from sabot_session.needs import NeedForm, NeedKind
from sabot_session.rows import Json
from sabot_session.session_state import SessionState
from sabot_session.shoe_dealing import rack_is_free
from sabot_table.procedure import TableProcedure, TableRole
from sabot_table.procedure.context import TableContext
from sabot_table.procedure.vocabulary import RemovalReason
from sabot_table.rule_texts import DealingMethod

D, F = TableRole.DEALER, TableRole.FLOOR


def _one_pack(table: TableContext) -> Iterator[NeedForm]:
    """Two packs need the shuffler (MD3 3.B): one of them leaves, not the one on the layout.

    With a failed shoe the shuffler is not used either: packs leave the machine only through the shoe.
    """
    there, playing = table.packs(), table.memory.round
    marked = all(how != "failed" for how in table.memory.units.values())
    if len(there) < 2 or not marked or table.state not in ("between", "idle", "collecting", "voided"):
        return
    kept = 0 if playing is None else playing.pack_id
    others = [each for each in there if each.pack_id != kept]
    leaves = next((each for each in others if each.pack_id == table.memory.last_pack), others[-1])
    words = f"take {leaves.back.upper()} off the table: without a shuffler one pack is played"
    why: dict[str, Json] = {"pack_id": leaves.pack_id, "reason": str(RemovalReason.FLOOR_ORDER)}
    name, clause = acts.RemovePack.NAME, table.clause("two_packs")
    yield NeedForm(NeedKind.REMOVE_PACK, (F,), words, clause, (name,), str(leaves.pack_id), why)


def _end_of_round(table: TableContext) -> Iterator[NeedForm]:
    """The round that the machine dealt last is ended by people."""
    if table.state == "settling":
        name, words = dealing_acts.Settle.NAME, "settle the wagers as shown"
        yield NeedForm(NeedKind.SETTLE, (D,), words, table.clause("settle"), (name,))
    elif table.state == "voided" and table.round.cards_in_device:
        name, words = dealing_acts.TakenOut.NAME, "take the round's cards out of the machine"
        yield NeedForm(NeedKind.TAKE_OUT, (D,), words, table.clause("empty_device"), (name,))
    elif table.state in ("collecting", "voided") and rack_is_free(table):
        name, words = dealing_acts.Collect.NAME, "collect the cards"
        yield NeedForm(NeedKind.COLLECT, (D,), words, table.clause("collect"), (name,))


def out_of_order_needs(state: SessionState, procedure: TableProcedure) -> Iterator[NeedForm]:
    """Choose another method, and play with one pack."""
    table = procedure.table
    if not table.memory.units:
        return
    playing = table.memory.round
    if playing is not None and playing.method == DealingMethod.AUTOMATED_SHOE:
        yield from _end_of_round(table)
    yield from _one_pack(table)
    if table.state not in ("between", "idle"):
        return
    if any(how == "failed" for how in table.memory.units.values()):
        return
    if table.method is DealingMethod.AUTOMATED_SHOE:
        barred = (DealingMethod.AUTOMATED_SHOE, DealingMethod.HAND)  # the hand needs the shuffler (MD3 9.A)
        allowed: list[Json] = [str(each) for each in table.rules.dealing.methods if each not in barred]
        name, words = dealing_acts.ChangeMethod.NAME, "choose another way of dealing"
        clause = table.clause(name)
        yield NeedForm(NeedKind.CHANGE_METHOD, (F,), words, clause, (name,), "", {"methods": allowed})
