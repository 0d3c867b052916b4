"""What the acts of other ways to deal than in stacks do: actions of the procedure, rows, requests."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sabot_protocol.host import messages
from sabot_session import dealing_acts as acts
from sabot_session.act_base import Act
from sabot_session.rows import Json
from sabot_session.session_state import RoundProgress, ShoeProgress
from sabot_session.table_rows import clause_of, coup_data
from sabot_table.cards import Card, card, cards
from sabot_table.errors import RuleViolation
from sabot_table.hand_ranking import HAND_CARDS
from sabot_table.procedure import Attribution, TableRole
from sabot_table.procedure.mini_procedure import FIRST_CARDS
from sabot_table.rule_texts import DealingMethod
from sabot_table.settlement import CardSource

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep

FLOOR = TableRole.FLOOR
COUNTERSIGN: dict[str, Json] = {"countersign": True}


# -- the machine and the method -----------------------------------------------------------------


def change_method(session: "SessionStep", act: acts.ChangeMethod, by: Attribution, act_id: str) -> None:
    """Cards are dealt another way; the machine, if it serves, is set to it."""
    told: dict[str, Json] = {"method": act.method, "before": session.procedure.table.method, "why": act.why}
    session.do(session.procedure.equipment.change_method, by, act.method, told=told)
    shoe, device = session.state.shoe, session.state.device
    if act.method is DealingMethod.AUTOMATED_SHOE:  # a pack in people's hands is shuffled again
        device.doubtful = sorted({*device.doubtful, shoe.in_hand, shoe.out} - {0})
        session.state.shoe = ShoeProgress()
    session.set_game(act_id)


def play_one_pack(session: "SessionStep", act: acts.PlayOnePack, by: Attribution, act_id: str) -> None:
    """The table goes on with one pack, and so does the machine."""
    session.do(session.procedure.packs.play_one_pack, by)
    session.set_game(act_id)


# -- a pack on its way into a shoe --------------------------------------------------------------


def start_shuffle(session: "SessionStep", act: acts.StartShuffle, by: Attribution, act_id: str) -> None:
    """The dealer shuffles by hand."""
    session.do(session.procedure.packs.start_shuffle, by, act.pack_id, machine=False)


def finish_shuffle(session: "SessionStep", act: acts.FinishShuffle, by: Attribution, act_id: str) -> None:
    """The stack is shuffled."""
    session.do(session.procedure.packs.finish_shuffle, by, act.pack_id)


def verify_shuffle(session: "SessionStep", act: acts.VerifyShuffle, by: Attribution, act_id: str) -> None:
    """The floor saw no uneven distribution (MDM 5.A(2))."""
    session.do(session.procedure.packs.verify_shuffle, by, act.pack_id)


def decline_cut(session: "SessionStep", act: acts.DeclineCut, by: Attribution, act_id: str) -> None:
    """The cut is offered to the next player."""
    session.do(session.procedure.packs.decline_cut, by, act.pack_id, act.seat, told={"seat": act.seat})


def cut(session: "SessionStep", act: acts.CutPack, by: Attribution, act_id: str) -> None:
    """A player or the dealer cut."""
    told: dict[str, Json] = {"from_top": act.from_top, "seat": act.seat}
    seat = act.seat or None
    session.do(session.procedure.packs.cut, by, act.pack_id, act.from_top, seat, told=told)


def order_recut(session: "SessionStep", act: acts.OrderRecut, by: Attribution, act_id: str) -> None:
    """The next person who is entitled cuts again."""
    session.do(session.procedure.packs.order_recut, by, act.pack_id)


def place_cover(session: "SessionStep", act: acts.PlaceCover, by: Attribution, act_id: str) -> None:
    """The second cover card of a batch."""
    told: dict[str, Json] = {"above_bottom": act.above_bottom}
    session.do(session.procedure.packs.place_cover, by, act.pack_id, act.above_bottom, told=told)


def laid_in(session: "SessionStep", act: acts.LaidIn, by: Attribution, act_id: str) -> None:
    """The machine takes the batch in its shoe, if its door was opened and its sensors see cards."""
    table = session.procedure.table
    batch = session.ways.delivery.next_pack()
    if batch is None or batch.pack_id != act.pack_id or not session.ways.delivery.is_ready(batch):
        what = f"pack {act.pack_id} laid into the shoe"
        raise RuleViolation(what, table.clause("load"), "cut it and place its cover card first")
    session.row("laid_in", session.actor(by), {"pack_id": act.pack_id}, table.clause("load"))
    session.state.device.refused = ""
    session.queue(messages.LoadShoe(act.pack_id), FLOOR, act_id)


def load(session: "SessionStep", act: acts.LoadPack, by: Attribution, act_id: str) -> None:
    """Into the manual shoe, or into the hand."""
    table = session.procedure.table
    if table.method is DealingMethod.AUTOMATED_SHOE:
        what = f"pack {act.pack_id} in a manual shoe"
        raise RuleViolation(what, table.clause("methods"), f"this table deals by {table.method}")
    session.do(session.procedure.packs.load, by, act.pack_id)
    session.state.shoe = ShoeProgress(in_hand=act.pack_id)


def burn(session: "SessionStep", act: acts.Burn, by: Attribution, act_id: str) -> None:
    """The first card decides how many go with it. The machine deals those; by hand they were dealt."""
    table, first = session.procedure.table, card(act.first)
    if table.method is not DealingMethod.AUTOMATED_SHOE:
        told: dict[str, Json] = {"first": str(first), "burned": first.burns}
        session.do(session.procedure.packs.burn, by, act.pack_id, first, first.burns, told=told)
        return
    shoe, pack = session.state.shoe, table.pack(act.pack_id)
    table.check_pack("burn", pack, by)
    if shoe.burns_taken != 1 or shoe.burn_card:
        raise RuleViolation("a burn card", table.clause("burn"), "wait for the machine's first card")
    data: dict[str, Json] = {"pack_id": act.pack_id, "first": str(first)}
    session.row("burn_card", session.actor(by), data, table.clause("burn"))
    shoe.burn_card = str(first)


def end_shoe(session: "SessionStep", act: acts.EndShoe, by: Attribution, act_id: str) -> None:
    """The cards of a finished shoe are in the discard rack."""
    session.do(session.procedure.packs.end_shoe, by)


# -- seats --------------------------------------------------------------------------------------


def collect_vigorish(session: "SessionStep", act: acts.CollectVigorish, by: Attribution, act_id: str) -> None:
    """A seat pays what it owes."""
    owed = session.procedure.table.memory.marked.get(act.seat, 0)
    told: dict[str, Json] = {"seat": act.seat, "cents": owed}
    session.do(session.procedure.betting.collect_vigorish, by, act.seat, told=told)


# -- a round ------------------------------------------------------------------------------------


def dealt(session: "SessionStep", act: acts.Dealt, by: Attribution, act_id: str) -> None:
    """Every hand has its cards; the procedure counts them one by one."""
    table = session.procedure.table
    table.check("deal_card", by)
    if table.round.method == DealingMethod.AUTOMATED_SHOE:
        what = "cards dealt by hand"
        raise RuleViolation(what, table.clause("deal_card"), f"this round is dealt by {table.round.method}")
    while table.state == "dealing":
        if table.three_card:
            three_card = session.procedure.three_card
            session.do(three_card.deal_card_to, by, three_card.next_to())
        else:
            session.do(session.procedure.mini.deal_card, by)


def count_stub(session: "SessionStep", act: acts.CountStub, by: Attribution, act_id: str) -> None:
    """The dealer's count of the stub, and of the hands where it does not fit (MD3 8.F, 9.D)."""
    table = session.procedure.table
    hands = len(table.turns()) * HAND_CARDS if act.hands is None else sum(act.hands.values())
    verdict = _verdict(session, act)
    told: dict[str, Json] = {
        "by": "dealer", "stacks": hands, "stub": act.stub, "expected": table.pack_cards, "verdict": verdict,
    }  # fmt: skip
    if verdict != "correct":  # the procedure writes the void only
        table.check("count_stub", by)
        clause = clause_of(table, "count_stub", table.round)
        session.row("count_stub", session.actor(by), told, clause, table.round.round_id)
    session.do(session.procedure.three_card.count_stub, by, act.stub, act.hands, told={**told, **COUNTERSIGN})


def _verdict(session: "SessionStep", act: acts.CountStub) -> str:
    table = session.procedure.table
    counts = dict.fromkeys(table.turns(), HAND_CARDS) if act.hands is None else act.hands
    total = act.stub + sum(counts.values())
    if total != table.pack_cards:
        return "card_missing" if total < table.pack_cards else "card_extra"
    return "misdealt" if any(each != HAND_CARDS for each in counts.values()) else "correct"


def pass_stub(session: "SessionStep", act: acts.PassStub, by: Attribution, act_id: str) -> None:
    """The stub is not counted in this round."""
    session.do(session.procedure.three_card.pass_stub, by)


def announce(session: "SessionStep", act: acts.Announce, by: Attribution, act_id: str) -> None:
    """The dealer turned the first four cards and types them."""
    player, banker = cards(" ".join(act.player)), cards(" ".join(act.banker))
    _must_type(session)
    data = coup_data(player, banker, "dealer")
    session.do(session.procedure.mini.announce, by, player, banker, CardSource.DEALER, told=data)
    if session.state.round is not None:
        session.state.round.must_type = False


def third_card(session: "SessionStep", act: acts.TurnThird, by: Attribution, act_id: str) -> None:
    """The dealer types a third card."""
    drawn = card(act.card)
    _must_type(session)
    told: dict[str, Json] = {"to": act.to, "card": str(drawn), "source": "dealer"}
    session.do(session.procedure.mini.third_card, by, act.to, drawn, told=told)
    if session.state.round is not None:
        session.state.round.must_type = False


def _must_type(session: "SessionStep") -> None:
    """Refuse typed cards while the machine's reader tells them."""
    table, progress = session.procedure.table, session.state.round
    reads = table.method is DealingMethod.AUTOMATED_SHOE and table.memory.round is not None
    if reads and (progress is None or not progress.must_type):
        raise RuleViolation("typed cards", table.clause("cards_known"), "wait: the machine reads them")


def settle(session: "SessionStep", act: acts.Settle, by: Attribution, act_id: str) -> None:
    """The wagers are settled as shown."""
    session.reports.settle_by(by)


def collect(session: "SessionStep", act: acts.Collect, by: Attribution, act_id: str) -> None:
    """The cards are off the layout; the round is over."""
    progress, table = session.state.round, session.procedure.table
    waits = progress is not None and progress.opened and not progress.device_done
    if waits and session.ways.machine_serves():
        raise RuleViolation("collecting cards", table.clause("collect"), "wait: the machine ends the round")
    session.collect_cards(by)


def taken_out(session: "SessionStep", act: acts.TakenOut, by: Attribution, act_id: str) -> None:
    """The cards of a void round came out of a machine that cannot be used."""
    table = session.procedure.table
    if session.ways.machine_serves():
        raise RuleViolation(
            "cards taken out by hand", table.clause("empty_device"), "the machine ejects them"
        )
    session.do(session.procedure.voiding.empty_device, by)
    if session.state.round is not None:
        session.state.round.device_done = True


def drawn_in_error(
    session: "SessionStep", act: acts.ReportDrawnInError, by: Attribution, act_id: str
) -> None:
    """A card too many: unseen it is the next card; seen it is another matter."""
    _by_hand(session, "a card drawn in error")
    seen = _seen(act.seen)
    session.do(session.procedure.irregularities.drawn_in_error, by, seen, told={"card": act.seen})


def unauthorised_third(session: "SessionStep", act: acts.ReportThird, by: Attribution, act_id: str) -> None:
    """A third card against the rules (MDM 13.B-C)."""
    _by_hand(session, "a third card against the rules")
    session.do(session.procedure.mini.unauthorised_third, by, _seen(act.seen), told={"card": act.seen})


def card_exposed(session: "SessionStep", act: acts.ReportExposed, by: Attribution, act_id: str) -> None:
    """A card was seen (MDM 13.D); one that the machine brought face up is named by this."""
    progress, seen = session.state.round, card(act.card)
    if progress is None or not progress.aside:
        _by_hand(session, "a card that was seen")
    session.do(session.procedure.mini.card_exposed, by, seen, told={"card": str(seen)})
    if progress is not None:
        progress.aside = 0


def _by_hand(session: "SessionStep", what: str) -> None:
    """Refuse a card that no machine dealt at a table whose machine deals."""
    table = session.procedure.table
    if table.method is DealingMethod.AUTOMATED_SHOE and session.state.round is not None:
        do = "the machine deals only cards that are asked for; void the round if cards are wrong"
        raise RuleViolation(what, table.clause("drawn_in_error"), do)


def _seen(named: str | None) -> Card | None:
    return None if named is None else card(named)


def too_few(session: "SessionStep", act: acts.ReportTooFew, by: Attribution, act_id: str) -> None:
    """The shoe cannot finish the round: void, and new cards."""
    session.do(session.procedure.voiding.too_few_cards, by)


def cover_card(session: "SessionStep", act: acts.ReportCover, by: Attribution, act_id: str) -> None:
    """The cover card came; the machine's shoe senses its own."""
    _by_hand(session, "a cover card")
    session.do(session.procedure.mini.cover_card, by)


def last_hand(session: "SessionStep", act: acts.AnnounceLastHand, by: Attribution, act_id: str) -> None:
    """The next hand is the shoe's last."""
    session.do(session.procedure.mini.announce_last_hand, by)


def begin_simulated(session: "SessionStep", act: acts.BeginSimulated, by: Attribution, act_id: str) -> None:
    """A round without wagers, opened by cards that were seen (MDM 13.D)."""
    session.do(
        session.procedure.mini.begin_simulated, by,
        told={"dealer": by.who, "serial": session.state.device.serial, "simulated": True},
    )  # fmt: skip
    playing = session.procedure.table.round
    by_hand = session.procedure.table.method is not DealingMethod.AUTOMATED_SHOE
    session.state.round = RoundProgress(playing.round_id, device_done=by_hand)
    assert playing.dealt <= FIRST_CARDS


def authorise_simulated(
    session: "SessionStep", act: acts.AuthoriseSimulated, by: Attribution, act_id: str
) -> None:
    """The machine opens a round that has no bets."""
    table = session.procedure.table
    playing = table.memory.round
    if playing is None or not playing.simulated:
        raise RuleViolation("a simulated round", table.clause("begin_simulated"), "none is in play")
    session.row(
        "authorise_simulated", session.actor(by), {}, table.clause("begin_simulated"), playing.round_id
    )
    session.queue(messages.SimulateRound(playing.round_id, playing.pack_id), FLOOR, act_id)


Handler = Callable[["SessionStep", Any, Attribution, str], None]
HANDLERS: Mapping[type[Act], Handler] = {
    acts.ChangeMethod: change_method,
    acts.PlayOnePack: play_one_pack,
    acts.StartShuffle: start_shuffle,
    acts.FinishShuffle: finish_shuffle,
    acts.VerifyShuffle: verify_shuffle,
    acts.DeclineCut: decline_cut,
    acts.CutPack: cut,
    acts.OrderRecut: order_recut,
    acts.PlaceCover: place_cover,
    acts.LaidIn: laid_in,
    acts.LoadPack: load,
    acts.Burn: burn,
    acts.EndShoe: end_shoe,
    acts.CollectVigorish: collect_vigorish,
    acts.Dealt: dealt,
    acts.CountStub: count_stub,
    acts.PassStub: pass_stub,
    acts.Announce: announce,
    acts.TurnThird: third_card,
    acts.Settle: settle,
    acts.TakenOut: taken_out,
    acts.Collect: collect,
    acts.ReportDrawnInError: drawn_in_error,
    acts.ReportThird: unauthorised_third,
    acts.ReportExposed: card_exposed,
    acts.ReportTooFew: too_few,
    acts.ReportCover: cover_card,
    acts.AnnounceLastHand: last_hand,
    acts.BeginSimulated: begin_simulated,
    acts.AuthoriseSimulated: authorise_simulated,
}
