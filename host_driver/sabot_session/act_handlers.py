"""What each act does: actions of the procedure, rows, requests for the device."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sabot_protocol.host import messages
from sabot_protocol.host.messages import Fault, RemoveReason, VoidReason
from sabot_session import (
    acts,
    dealing_handlers,
    dispute_handlers,
    equipment_handlers,
    notes,
    seat_handlers,
    service_handlers,
    swap_handlers,
    unexplained,
)
from sabot_session.device_side import BACKS, OVER
from sabot_session.outcomes import ActRefused
from sabot_session.rows import Json
from sabot_session.session_state import RoundProgress, ShoeProgress
from sabot_session.table_rows import coup_data, hands_data
from sabot_table.cards import cards, check_possible
from sabot_table.errors import RuleViolation
from sabot_table.hand_ranking import HAND_CARDS
from sabot_table.procedure import Attribution, TableRole
from sabot_table.procedure.mini_procedure import FIRST_CARDS
from sabot_table.procedure.vocabulary import RemovalReason
from sabot_table.rule_texts import DealingMethod
from sabot_table.settlement import CardSource

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep

FLOOR = TableRole.FLOOR
ON_DEVICE = {
    RemovalReason.WRONG_COUNT: RemoveReason.WRONG_COUNT,
    RemovalReason.DAMAGED: RemoveReason.DAMAGED,
    RemovalReason.HOURS: RemoveReason.HOURS,
    RemovalReason.FLOOR_ORDER: RemoveReason.FLOOR_ORDER,
}


# -- the table and its people -------------------------------------------------------------------


def open_table(session: "SessionStep", act: acts.OpenTable, by: Attribution, act_id: str) -> None:
    """The table opens; the machine is set to its game if it is not."""
    rules = session.rules
    told: dict[str, Json] = {
        "table": session.name,
        "rule_text": rules.text,
        "ruleset": rules.name,
        "ruleset_sha256": rules.sha256,
        "method": session.procedure.table.method,
        "serial": session.state.device.serial,
    }
    if act.method is not None and act.method is not session.procedure.table.method:
        changed: dict[str, Json] = {"method": act.method, "before": session.procedure.table.method}
        session.do(session.procedure.equipment.change_method, by, act.method, told=changed)
        told["method"] = act.method
    session.do(session.procedure.open_table, by, told=told)
    session.set_game(act_id)


def set_game(session: "SessionStep", act: acts.SetGame, by: Attribution, act_id: str) -> None:
    """The machine is set to this table's game."""
    session.row("set_game", session.actor(by))
    session.set_game(act_id)


def close_table(session: "SessionStep", act: acts.CloseTable, by: Attribution, act_id: str) -> None:
    """The table closes; what is still open is listed."""
    if session.procedure.table.state in OVER:
        session.reports.collect(by.at_s)
    told: dict[str, Json] = {
        "countersignatures": list(session.state.countersign),
        "disputes": [each.row for each in session.state.disputes],
        "holds": [each.row for each in session.state.holds.values()],
    }
    session.do(session.procedure.close_table, by, told=told)


def sign_in(session: "SessionStep", act: acts.SignIn, by: Attribution, act_id: str) -> None:
    """A dealer begins to deal here; between rounds only."""
    _between_rounds(session, "a change of dealers")
    before, after = session.state.dealer, session.actor(by)
    if before is not None:
        session.row("sign_out", before, {"relieved_by": by.who})
    session.row("sign_in", after)
    session.state.dealer = after


def sign_out(session: "SessionStep", act: acts.SignOut, by: Attribution, act_id: str) -> None:
    """The dealer leaves the table; between rounds only."""
    _between_rounds(session, "a dealer who leaves")
    session.row("sign_out", session.actor(by), {"relieved_by": ""})
    session.state.dealer = None


def _between_rounds(session: "SessionStep", what: str) -> None:
    if session.procedure.table.state not in ("closed", "between", "idle", *OVER):
        raise RuleViolation(
            f"{what} in a round", session.procedure.table.clause("open_bets"), "finish it first"
        )


def call_floor(session: "SessionStep", act: acts.CallFloor, by: Attribution, act_id: str) -> None:
    """Lamp and display show it."""
    session.row("call_floor", session.actor(by), {"why": act.why}, round_id=_round_id(session))
    session.state.called = act.why
    session.queue(messages.CallFloor(1))


def floor_comes(session: "SessionStep", act: acts.FloorComes, by: Attribution, act_id: str) -> None:
    """The call ends."""
    if not session.state.called:
        raise ActRefused("floor_comes: nobody has called the floor")
    session.row("floor_comes", session.actor(by), {}, round_id=_round_id(session))
    session.state.called = ""
    session.queue(messages.CallFloor(0))


def _round_id(session: "SessionStep") -> int:
    playing = session.procedure.table.memory.round
    return 0 if playing is None else playing.round_id


def countersign(session: "SessionStep", act: acts.Countersign, by: Attribution, act_id: str) -> None:
    """The floor countersigns a row."""
    if act.row not in session.state.countersign:
        clause = session.procedure.table.clause("void")
        raise RuleViolation(f"countersigning row {act.row}", clause, "it needs no countersignature")
    data: dict[str, Json] = {"row": act.row, "note": act.note}
    session.row("countersign", session.actor(by), data, round_id=session.round_of_row(act.row))
    session.state.countersign.remove(act.row)
    session.state.countersign_words.pop(act.row, None)
    session.state.unexplained.pop(act.row, None)


# -- packs --------------------------------------------------------------------------------------


def receive_pack(session: "SessionStep", act: acts.ReceivePack, by: Attribution, act_id: str) -> None:
    """A pack arrives; its hours run, and the machine is told of it."""
    if act.back not in BACKS or not act.bag:
        clause = session.procedure.table.clause("receive_pack")
        raise RuleViolation(
            f"a pack with {act.back} backs, bag '{act.bag}'", clause, "say back and bag number"
        )
    unknown = [each for each in session.procedure.table.packs() if not session.machine.on_device(each)]
    if unknown and session.state.device.up and session.ways.machine_serves():
        raise RuleViolation(
            f"a pack while the machine does not know {unknown[0].back.upper()}",
            session.procedure.table.clause("receive_pack"),
            "make that pack known to it first: it takes decks by rising numbers",
        )
    pack_id = max(session.procedure.table.memory.highest_pack, session.state.highest_deck) + 1
    hours = session.rules.hours(session.procedure.table.method)
    told: dict[str, Json] = {
        "pack_id": pack_id,
        "back": act.back,
        "cards": session.procedure.table.pack_cards,
        "bag": act.bag,
        "brought_by": act.brought_by,
        "until_s": None if hours is None else by.at_s + hours * 3600,
    }
    session.do(session.procedure.packs.receive_pack, by, pack_id, act.back, told=told)
    if session.ways.machine_serves():
        session.queue(messages.RegisterDeck(pack_id, BACKS[act.back], by.at_s), FLOOR, act_id)


def register_pack(session: "SessionStep", act: acts.RegisterPack, by: Attribution, act_id: str) -> None:
    """The machine is told of a pack."""
    pack = session.procedure.table.pack(act.pack_id)
    session.row("register_pack", session.actor(by), {"pack_id": act.pack_id})
    session.queue(messages.RegisterDeck(act.pack_id, BACKS[pack.back], pack.opened_s), FLOOR, act_id)


def prepare(session: "SessionStep", act: Any, by: Attribution, act_id: str) -> None:
    """One step of the opening of a pack."""
    packs = session.procedure.packs
    action = {
        acts.Inspect: packs.inspect,
        acts.Verify: packs.verify,
        acts.Spread: packs.spread,
        acts.Wash: packs.wash,
        acts.Stack: packs.stack,
    }[type(act)]
    session.do(action, by, act.pack_id)


def remove_pack(session: "SessionStep", act: acts.RemovePack, by: Attribution, act_id: str) -> None:
    """A pack leaves the table; one inside the machine must come out first."""
    table = session.procedure.table
    told: dict[str, Json] = {
        "pack_id": act.pack_id,
        "reason": act.reason,
        "destination": act.destination,
        "bag": act.bag,
    }
    playing = table.memory.round
    if table.state in OVER and playing is not None and playing.pack_id == act.pack_id:
        session.reports.collect(by.at_s)  # a pack that must leave has left with that
    pack = next((each for each in table.packs() if each.pack_id == act.pack_id), None)
    serves = session.ways.machine_serves()
    if pack is not None and serves and session.machine.is_inside(pack):
        raise RuleViolation(
            f"pack {act.pack_id} removed from inside the machine",
            table.clause("remove"),
            "take it out first: the floor or service has the machine emptied ('sabot service empty')",
        )
    if pack is not None:
        session.do(session.procedure.packs.remove_pack, by, act.pack_id, act.reason, told=told)
    else:
        gone = next((each for each in table.memory.packs if each.pack_id == act.pack_id), None)
        known = act.pack_id in session.state.leaving or act.pack_id in session.state.device.decks
        if not known:
            before = act.pack_id <= table.memory.highest_pack
            was = "has left this table" if before else "was never at this table"
            raise ActRefused(
                f"{act.NAME}: deck {act.pack_id} {was}",
                "'sabot deck list' shows the decks and their numbers.",
            )
        why = "" if gone is None else gone.must_leave
        session.row("remove", session.actor(by), {**told, "why": why}, table.clause("shuffle_count"))
        session.state.leaving = [each for each in session.state.leaving if each != act.pack_id]
    session.state.holds.pop(act.pack_id, None)
    session.state.unfed.pop(act.pack_id, None)
    session.state.device.stops.pop(act.pack_id, None)
    if serves and act.pack_id in session.state.device.decks:
        session.queue(messages.RemoveDeck(act.pack_id, ON_DEVICE[act.reason]), FLOOR, act_id)


def order_shuffle(session: "SessionStep", act: acts.OrderShuffle, by: Attribution, act_id: str) -> None:
    """A pack that came out unplayed is shuffled again, on the floor's order (MD3 5.A)."""
    machine = session.ways.machine_serves()
    session.do(session.procedure.packs.start_shuffle, by, act.pack_id, machine=machine)
    session.state.device.stops.pop(act.pack_id, None)
    if act.pack_id in (session.state.shoe.out, session.state.shoe.in_hand):
        session.state.shoe = ShoeProgress()


# -- a round ------------------------------------------------------------------------------------


def no_more_bets(session: "SessionStep", act: acts.NoMoreBets, by: Attribution, act_id: str) -> None:
    """The round is opened, if it is not, and closed for bets; the machine deals."""
    unexplained.check_none(session.state)
    betting, table = session.procedure.betting, session.procedure.table
    if _waits_for_cards(session):
        _settle_untyped(session, by)
    if table.state != "betting":
        seat_handlers.open_bets(session, act, by, act_id)
    kept, known = session.state.bets, session.state.bets_known
    if act.wagers is not None:
        _lay(session, act.wagers, by)
    elif act.seats is not None:
        _lay_seats(session, act.seats, by)
    elif not table.round.wagers and known:
        _lay(session, kept, by)
    elif not table.round.wagers:
        _lay_seats(session, kept, by)
    session.do(betting.no_more_bets, by, told={})
    playing = table.round
    by_hand = playing.method != DealingMethod.AUTOMATED_SHOE
    session.state.round = RoundProgress(playing.round_id, device_done=by_hand, must_type=by_hand)
    session.state.unfed[playing.pack_id] = playing.round_id
    session.state.bets = {seat: dict(made) for seat, made in playing.wagers.items()}
    session.state.bets_known = playing.wagers_known


def _lay(session: "SessionStep", wagers: Mapping[int, Mapping[str, int]], by: Attribution) -> None:
    """The layout has exactly these wagers."""
    betting, main = session.procedure.betting, session.rules.main_wagers
    _seat(session, wagers, by)
    for seat, made in list(session.procedure.table.round.wagers.items()):
        gone = [each for each in made if each not in wagers.get(seat, {})]
        for wager in sorted(gone, key=lambda each: each in main):
            told: dict[str, Json] = {"seat": seat, "wager": wager, "cents": made[wager]}
            session.do(betting.withdraw_wager, by, seat, wager, told=told)
    for seat, some in sorted(wagers.items()):
        for wager in sorted(some, key=lambda each: each not in main):
            session.do(betting.place_wager, by, seat, wager, some[wager])


def _lay_seats(session: "SessionStep", seats: Iterable[int], by: Attribution) -> None:
    """These seats bet, and their wagers are not known."""
    betting = list(seats)
    _seat(session, betting, by)
    session.do(session.procedure.betting.place_seats, by, betting)


def _seat(session: "SessionStep", seats: Iterable[int], by: Attribution) -> None:
    for seat in sorted(set(seats) - set(session.procedure.table.memory.seated)):
        session.do(session.procedure.betting.sit, by, seat, told={"seat": seat})


def _waits_for_cards(session: "SessionStep") -> bool:
    progress = session.state.round
    return session.procedure.table.state == "revealing" and progress is not None and progress.must_type


def expose(session: "SessionStep", act: acts.Expose, by: Attribution, act_id: str) -> None:
    """The hands lie open: only now the machine is asked for their cards."""
    table, progress = session.procedure.table, session.state.round
    key = "reveal" if table.three_card else "announce"
    dealt = table.state == ("revealing" if table.three_card else "drawing")
    if not dealt or progress is None or progress.exposed_by is not None or table.round.player:
        raise RuleViolation("exposing hands", table.clause(key), "the hands are not dealt, or lie open")
    data = hands_data(table.turns(), {}, None) if table.three_card else coup_data(None, None, None)
    session.row("reveal", session.actor(by), data, table.clause(key), table.round.round_id)
    progress.exposed_by, progress.exposed_event = session.actor(by), session.event
    if not table.three_card and len([each for each in table.round.drawn if each]) < FIRST_CARDS:
        progress.must_type = True  # a card that was drawn before the round is not read in it


def type_hands(session: "SessionStep", act: acts.TypeHands, by: Attribution, act_id: str) -> None:
    """The dealer types the cards that lie open; wagers are settled."""
    table, progress = session.procedure.table, session.state.round
    table.check("reveal", by)
    assert progress is not None
    if table.round.method == DealingMethod.AUTOMATED_SHOE and not progress.must_type:
        raise RuleViolation("typed cards", table.clause("cards_known"), "wait: the machine reads them")
    told_now = {seat: cards(" ".join(names)) for seat, names in act.hands.items()}
    for seat, hand in told_now.items():
        if seat not in table.turns() or len(hand) != HAND_CARDS:
            what = f"{len(hand)} cards of {'the dealer' if seat == 0 else f'seat {seat}'}"
            raise RuleViolation(what, table.clause("reveal"), "type three cards of a hand that was dealt")
        progress.typed[seat] = [str(each) for each in hand]
    typed = {seat: cards(" ".join(names)) for seat, names in progress.typed.items()}
    check_possible((each for hand in typed.values() for each in hand), table.rules.cards.decks)
    named = {seat: tuple(names) for seat, names in progress.typed.items()}
    if len(typed) < len(table.turns()):
        turns = [seat for seat in table.turns() if seat in told_now]
        session.row(
            "expose_hand",
            session.actor(by),
            hands_data(turns, named, "dealer"),
            table.clause("reveal"),
            table.round.round_id,
        )
        return
    progress.exposed_by = progress.exposed_by or session.actor(by)
    told = hands_data(table.turns(), named, "dealer")
    dealer = typed.pop(0, ())
    session.do(session.procedure.three_card.reveal, by, dealer, typed, CardSource.DEALER, told=told)
    session.reports.settle(by.at_s)


def leave_untyped(session: "SessionStep", act: acts.LeaveUntyped, by: Attribution, act_id: str) -> None:
    """The round is settled with cards that are not known."""
    table = session.procedure.table
    if not _waits_for_cards(session):
        do = "expose the hands, or wait for the reader"
        raise RuleViolation("leaving cards untyped", table.clause("reveal"), do)
    _settle_untyped(session, by)


def _settle_untyped(session: "SessionStep", by: Attribution) -> None:
    session.do(session.procedure.three_card.hands_not_known, by)
    table, progress = session.procedure.table, session.state.round
    if progress is not None and progress.exposed_by is None:  # dealt by hand: they lie open now
        data = hands_data(table.turns(), {}, None)
        session.row("reveal", session.actor(by), data, table.clause("reveal"), table.round.round_id)
        progress.exposed_by = session.actor(by)
    session.reports.settle(by.at_s)


def determine(session: "SessionStep", act: acts.Determine, by: Attribution, act_id: str) -> None:
    """The dealer says what a wrong count means. A pack that is short or has a card too many must leave."""
    table = session.procedure.table
    told: dict[str, Json] = {"verdict": act.verdict, "advice": table.round.advice}
    session.do(session.procedure.three_card.determine, by, act.verdict, told=told)


def report(session: "SessionStep", act: Any, by: Attribution, act_id: str) -> None:
    """Void the round for a report of the dealer or an order of the floor.

    The rule text says whether the floor countersigns a report.
    """
    procedure = session.procedure
    if isinstance(act, acts.ReportFaceUp):
        session.do(procedure.irregularities.face_up_card, by)
        reason = VoidReason.FACE_UP_CARD
    elif isinstance(act, acts.ReportWrongNumber):
        session.do(procedure.voiding.wrong_number, by, act.why)
        reason = VoidReason.WRONG_NUMBER
    elif isinstance(act, acts.VoidRound):
        session.do(procedure.voiding.void_by_floor, by, act.why)
        reason = VoidReason.FLOOR_ORDER
    else:
        session.do(procedure.voiding.shoe_failed, by, act.why)
        reason = VoidReason.SHOE_FAILED
    if session.state.round is not None:
        session.state.round.void_reason = reason


# -- the machine --------------------------------------------------------------------------------


def clear_fault(session: "SessionStep", act: acts.ClearFault, by: Attribution, act_id: str) -> None:
    """The machine checks with its sensors whether a fault is gone; the floor countersigns a dealer's act."""
    fault = Fault.__members__.get(act.fault.upper())
    if fault is None:
        raise ActRefused(f"clear_fault: there is no fault '{act.fault}'")
    data: dict[str, Json] = {"fault": act.fault, "countersign": by.role is TableRole.DEALER}
    clause = session.procedure.table.clause("shoe_failed")
    session.row("clear_fault", session.actor(by), data, clause, _round_id(session))
    session.state.device.refused = ""
    role = None if by.role is TableRole.DEALER else by.role
    session.queue(messages.ClearFault(fault), role, act_id)


def empty_machine(session: "SessionStep", act: acts.EmptyMachine, by: Attribution, act_id: str) -> None:
    """Every card inside comes out; packs that were shuffled are shuffled again on this order (MD3 5.A)."""
    table = session.procedure.table
    session.row("empty_machine", session.actor(by), {}, table.clause("start_shuffle"), _round_id(session))
    session.queue(messages.EmptyMachine(), FLOOR, act_id)


def purge(session: "SessionStep", act: acts.Purge, by: Attribution, act_id: str) -> None:
    """The deal roller turns by one pitch."""
    session.row("purge", session.actor(by), {}, session.procedure.table.clause("shoe_failed"))
    session.queue(messages.Purge(), FLOOR, act_id)


def path_inspected(session: "SessionStep", act: acts.PathInspected, by: Attribution, act_id: str) -> None:
    """The floor states that no card lies in the shoe's path."""
    session.row("path_inspected", session.actor(by), {}, session.procedure.table.clause("shoe_failed"))
    session.queue(messages.PathInspected(), FLOOR, act_id)


Handler = Callable[["SessionStep", Any, Attribution, str], None]
HANDLERS: Mapping[type[acts.Act], Handler] = {
    acts.OpenTable: open_table,
    acts.CloseTable: close_table,
    acts.SignIn: sign_in,
    acts.SignOut: sign_out,
    acts.CallFloor: call_floor,
    acts.FloorComes: floor_comes,
    acts.ReceivePack: receive_pack,
    acts.RegisterPack: register_pack,
    acts.Inspect: prepare,
    acts.Verify: prepare,
    acts.Spread: prepare,
    acts.Wash: prepare,
    acts.Stack: prepare,
    acts.RemovePack: remove_pack,
    acts.OrderShuffle: order_shuffle,
    acts.NoMoreBets: no_more_bets,
    acts.Expose: expose,
    acts.TypeHands: type_hands,
    acts.LeaveUntyped: leave_untyped,
    acts.Determine: determine,
    acts.ReportFaceUp: report,
    acts.ReportWrongNumber: report,
    acts.ReportShoeFailed: report,
    acts.VoidRound: report,
    acts.Countersign: countersign,
    acts.SetGame: set_game,
    acts.ClearFault: clear_fault,
    acts.EmptyMachine: empty_machine,
    acts.Purge: purge,
    acts.PathInspected: path_inspected,
    **dealing_handlers.HANDLERS,
    **equipment_handlers.HANDLERS,
    **seat_handlers.HANDLERS,
    **dispute_handlers.HANDLERS,
    **swap_handlers.HANDLERS,
    **service_handlers.HANDLERS,
    **notes.HANDLERS,
}
"""What each act does. A module of acts has its handlers in a mapping ``HANDLERS``; it is joined here."""
