"""Which needs a table has: a pure function of its state."""

from collections.abc import Iterator

from sabot_protocol.host.messages import Back, Fault, Place, ShoeState, ShufflerState
from sabot_session import acts, unexplained
from sabot_session.dealing_acts import Settle
from sabot_session.dealing_way import DealingWays
from sabot_session.device_side import NAMES, OVER, DeviceSide
from sabot_session.dispute_acts import Release
from sabot_session.dispute_needs import dispute_needs
from sabot_session.equipment_needs import equipment_needs
from sabot_session.needs import NeedForm, NeedKind
from sabot_session.out_of_order_needs import out_of_order_needs
from sabot_session.rows import Json
from sabot_session.seat_acts import PlayerArrives
from sabot_session.session_state import SessionState
from sabot_session.swap_needs import swap_needs
from sabot_table.procedure import TableProcedure, TableRole
from sabot_table.procedure.memory import PackState
from sabot_table.procedure.vocabulary import RemovalReason, Verdict

D, F, S = TableRole.DEALER, TableRole.FLOOR, TableRole.SERVICE
PREPARATION = {
    "received": (acts.Inspect, "inspect {back}"),
    "inspected": (acts.Verify, "verify the dealer's inspection of {back}"),
    "verified": (acts.Spread, "spread {back}"),
    "spread": (acts.Wash, "wash {back}"),
    "washed": (acts.Stack, "stack {back}"),
}
"""What the opening of a pack asks for, by the pack's state (MD3 4.A-C)."""
STORED = ("shuffled", "cut", "covered", "loaded")
REPORTS = (
    acts.ReportFaceUp.NAME,
    acts.ReportWrongNumber.NAME,
    acts.ReportShoeFailed.NAME,
    acts.VoidRound.NAME,
)
"""What may be told of a round while its cards are dealt, whatever else is needed."""


class TableNeeds:
    """Reads a table's state and says what must happen now."""

    def __init__(
        self, state: SessionState, procedure: TableProcedure, machine: DeviceSide, ways: DealingWays
    ) -> None:
        self._state = state
        self._procedure = procedure
        self._machine = machine
        self._ways = ways

    def forms(self) -> list[NeedForm]:
        """Every need, the most urgent first."""
        if self._procedure.table.state == "closed":
            name = acts.OpenTable.NAME
            opened = NeedForm(NeedKind.OPEN_TABLE, (F,), "open the table", self._clause(name), (name,))
            return [*swap_needs(self._state), *unexplained.needs(self._state), opened]
        return [
            *swap_needs(self._state),
            *self._of_link(),
            *self._of_people(),
            *unexplained.needs(self._state),
            *self._of_faults(),
            *out_of_order_needs(self._state, self._procedure),
            *self._of_way(),
            *self._of_cards_inside(),
            *self._of_packs(),
            *self._of_bets(),
            *dispute_needs(self._state),
            *self._of_countersignatures(),
        ]

    def _clause(self, key: str) -> str:
        return self._procedure.table.clause(key)

    def _asked(self, *requests: str) -> bool:
        """Whether such a request is on its way to the device: a person has met that need."""
        return any(each.name in requests for each in self._state.outbox)

    # -- people and link ------------------------------------------------------------------------

    def _of_link(self) -> Iterator[NeedForm]:
        if not self._state.device.up and self._state.stranger is None and self._ways.machine_serves():
            yield NeedForm(
                NeedKind.LINK, (), "the machine does not answer: check its cable and power; play goes on then"
            )

    def _of_people(self) -> Iterator[NeedForm]:
        if self._state.dealer is None:
            yield NeedForm(NeedKind.SIGN_IN, (D,), "a dealer signs in", "", (acts.SignIn.NAME,))

    def _of_countersignatures(self) -> Iterator[NeedForm]:
        for row in self._state.countersign:
            if row in self._state.unexplained:
                continue
            told = self._state.countersign_words.get(row)  # a state saved by version 0.1.0 has none
            yield NeedForm(
                NeedKind.COUNTERSIGN,
                (F,),
                f"countersign row {row} of the record" if told is None else f"countersign {told} (row {row})",
                "",
                (acts.Countersign.NAME,),
                str(row),
                {"row": row},
            )

    # -- the machine ----------------------------------------------------------------------------

    def _of_faults(self) -> Iterator[NeedForm]:
        device = self._state.device
        faults = device.faults if self._ways.machine_serves() else []
        for at, each in enumerate(faults):
            if each.clearing or self._asked(acts.ClearFault.NAME):
                continue
            fault, place = Fault(each.fault).name.lower(), Place(each.place).name.lower()
            words = f"{fault.replace('_', ' ')} at the {place.replace('_', ' ')}: {each.steps}".rstrip(": ")
            yield NeedForm(
                NeedKind.CLEAR_FAULT,
                (S,) if each.service else (D, F, S),
                words,
                self._clause("shoe_failed"),
                (acts.ClearFault.NAME,),
                f"{fault} {at}",
                {"fault": fault, "place": place, "cards": each.cards, "steps": each.steps},
            )
        asked = self._asked("return_to_service")
        yield from equipment_needs(self._procedure.table, device, asked)

    def _of_cards_inside(self) -> Iterator[NeedForm]:
        device = self._state.device
        if not device.up or device.survey or device.faults or not self._ways.machine_serves():
            return
        if self._machine.must_come_out() and not self._asked("empty_machine"):
            words = "empty the machine: every card inside is shuffled again"
            yield NeedForm(
                NeedKind.EMPTY_MACHINE, (F,), words, self._clause("start_shuffle"), (acts.EmptyMachine.NAME,)
            )
        if self._asked("purge", "path_inspected"):
            return
        if device.shoe == ShoeState.BLOCKED and not device.looked_in:
            words = "a card may lie in the shoe's path: open the shoe's door, look, close it, then purge"
            yield NeedForm(NeedKind.PURGE, (F,), words, self._clause("shoe_failed"), (acts.Purge.NAME,))
        elif device.shoe == ShoeState.BLOCKED and not device.path_empty:
            words = "nothing came out: look into the shoe's path once more and say that it is empty"
            yield NeedForm(
                NeedKind.INSPECT_PATH, (F,), words, self._clause("shoe_failed"), (acts.PathInspected.NAME,)
            )
        wanted, busy = self._machine.wanted_game(), self._asked("set_game", "play_one_deck")
        if device.game is not None and device.game != wanted and not busy:
            words = "the machine is set to another game: set it to this table's"
            yield NeedForm(NeedKind.SET_GAME, (F,), words, self._clause("methods"), (acts.SetGame.NAME,))

    # -- packs ----------------------------------------------------------------------------------

    def _of_packs(self) -> Iterator[NeedForm]:
        table, device = self._procedure.table, self._state.device
        if not self._ways.machine_serves():
            yield from self._without_machine()
            return
        if not device.up or device.survey:
            return
        there = table.packs()
        # The machine takes decks by rising numbers, so one that it does not know comes first.
        unknown = next((each for each in there if not self._machine.on_device(each)), None)
        if device.game == self._machine.wanted_game() and unknown is None:
            for back in self._backs():
                leaving = [each for each in table.memory.packs if each.pack_id in self._state.leaving]
                backs = {NAMES[Back(each)] for each in device.decks.values()}
                if back not in backs and all(each.back != back for each in (*there, *leaving)):
                    words = f"bring a new pack with {back} backs"
                    yield NeedForm(
                        NeedKind.RECEIVE_PACK,
                        (F,),
                        words,
                        self._clause("receive_pack"),
                        (acts.ReceivePack.NAME,),
                        back,
                        {"back": back},
                    )
        for deck_id in dict.fromkeys((*self._state.leaving, *device.decks)):
            if all(each.pack_id != deck_id for each in there) and not self._asked("remove_deck"):
                yield self._remove(deck_id)
        for pack in there:
            if self._machine.on_device(pack) or pack is unknown:
                yield from self._of_pack(pack)

    def _backs(self) -> tuple[str, ...]:
        """The backs that packs at this table must have."""
        table = self._procedure.table
        if table.rules.cards.alternating and not table.memory.one_pack:
            return ("red", "blue")
        there = [each.back for each in table.packs()]
        return (there[0] if there else "red",)

    def _without_machine(self) -> Iterator[NeedForm]:
        """One pack, which the machine knows nothing of."""
        there = self._procedure.table.packs()
        for pack_id in self._state.leaving:
            yield self._remove(pack_id)
        if not there:
            clause, name = self._clause("receive_pack"), acts.ReceivePack.NAME
            words = "bring a new pack with red backs"
            details: dict[str, Json] = {"back": "red"}
            yield NeedForm(NeedKind.RECEIVE_PACK, (F,), words, clause, (name,), "red", details)
        for pack in there:
            if pack.state in PREPARATION:
                yield self._prepare(pack)

    def _prepare(self, pack: PackState) -> NeedForm:
        act, words = PREPARATION[pack.state]
        return NeedForm(
            NeedKind.PREPARE_PACK,
            act.ROLES,
            words.format(back=pack.back.upper()),
            self._clause(act.NAME),
            (act.NAME,),
            str(pack.pack_id),
            {"pack_id": pack.pack_id, "back": pack.back, "step": act.NAME},
        )

    def _remove(self, deck_id: int) -> NeedForm:
        memory, on_device = self._procedure.table.memory, self._state.device.decks.get(deck_id)
        gone = next((each for each in memory.packs if each.pack_id == deck_id), None)
        back = gone.back if gone is not None else "" if on_device is None else NAMES[Back(on_device)]
        why = "no one knows it here" if gone is None else gone.must_leave or "it must leave"
        reason = RemovalReason.FLOOR_ORDER if gone is None else RemovalReason(gone.removal_reason)
        details: dict[str, Json] = {"pack_id": deck_id, "back": back, "reason": str(reason), "why": why}
        wrong = reason is RemovalReason.WRONG_COUNT and gone is not None
        if wrong and gone is not None and gone.seen not in (None, self._procedure.table.pack_cards):
            details["count"] = gone.seen
        return NeedForm(
            NeedKind.REMOVE_PACK,
            (F,),
            f"take {back.upper()} off the table: {why}",
            self._clause("shuffle_count"),
            (acts.RemovePack.NAME,),
            str(deck_id),
            details,
        )

    def _replace(self, pack: PackState) -> NeedForm:
        """The shuffler stopped with a pack again and again: a card may be bent or damaged."""
        times, back = self._state.device.stops[pack.pack_id], pack.back.upper()
        words = (
            f"{back} stopped the shuffler {times} times: look for a damaged card; "
            "take the pack off the table, or order it shuffled again"
        )
        reason = RemovalReason.DAMAGED
        return NeedForm(
            NeedKind.REPLACE_PACK,
            (F,),
            words,
            self._procedure.table.rules.fixed.removal_clause(reason),
            (acts.RemovePack.NAME, acts.OrderShuffle.NAME),
            str(pack.pack_id),
            {"pack_id": pack.pack_id, "back": pack.back, "reason": str(reason), "why": "it jams"},
        )

    def _of_pack(self, pack: PackState) -> Iterator[NeedForm]:
        table, key = self._procedure.table, str(pack.pack_id)
        details: dict[str, Json] = {"pack_id": pack.pack_id, "back": pack.back}
        back = pack.back.upper()
        if pack.must_leave and self._may_leave(pack):
            yield self._remove(pack.pack_id)
            return
        if not self._machine.on_device(pack):
            if self._asked("register_deck"):
                return
            words = f"make {back} known to the machine"
            yield NeedForm(
                NeedKind.REGISTER_PACK,
                (F,),
                words,
                self._clause("receive_pack"),
                (acts.RegisterPack.NAME,),
                key,
                details,
            )
            return
        if pack.state in PREPARATION:
            yield self._prepare(pack)
            return
        playing = table.memory.round
        held = self._state.holds.get(pack.pack_id)
        if held is not None:
            words = f"release {back}, which is held: {held.why}"
            yield NeedForm(NeedKind.RELEASE, (F,), words, "", (Release.NAME,), key, details)
        in_round = playing is not None and playing.pack_id == pack.pack_id
        if in_round:
            pass
        elif pack.state in STORED and self._lies_outside(pack):
            words = f"{back} came out of the machine: order it shuffled again"
            yield NeedForm(
                NeedKind.ORDER_SHUFFLE,
                (F,),
                words,
                self._clause("start_shuffle"),
                (acts.OrderShuffle.NAME,),
                key,
                details,
            )
        if self._machine.stops_often(pack) and self._may_leave(pack) and not self._state.device.faults:
            yield self._replace(pack)
        waits = self._machine.pack_to_feed()
        if waits is not None and waits.pack_id == pack.pack_id:
            words = f"lay {back} into the tray"
            yield NeedForm(NeedKind.FEED, (D,), words, self._clause("start_shuffle"), (), key, details)

    def _may_leave(self, pack: PackState) -> bool:
        """Whether a pack lies on the table, and no round needs it."""
        playing = self._procedure.table.memory.round
        over = self._procedure.table.state in OVER and playing is not None and not playing.cards_in_device
        in_round = playing is not None and playing.pack_id == pack.pack_id and not over
        return not in_round and not self._machine.is_inside(pack) and not self._asked("remove_deck")

    def _lies_outside(self, pack: PackState) -> bool:
        device = self._state.device
        if pack.pack_id in (self._state.shoe.out, self._state.shoe.in_hand):
            return False  # it came out whole, and people have it
        rest = device.shoe in (ShoeState.EMPTY, ShoeState.READY, ShoeState.BLOCKED)
        idle = device.shuffler in (ShufflerState.IDLE, ShufflerState.STORED)
        out = pack.pack_id in device.doubtful and not device.emptying and not self._machine.is_inside(pack)
        return rest and idle and out and not device.faults

    # -- the round ------------------------------------------------------------------------------

    def _of_way(self) -> Iterator[NeedForm]:
        way = self._ways.now()
        yield from self._of_round() if way is None else way.needs()

    def _of_round(self) -> Iterator[NeedForm]:
        table, device, progress = self._procedure.table, self._state.device, self._state.round
        playing = table.memory.round
        if playing is None or progress is None:
            return
        if (
            table.state in ("dealing", "counting")
            and device.shoe == ShoeState.STACK_WAITING
            and playing.stacks
        ):
            turns = table.turns()
            seat = turns[min(len(playing.stacks), len(turns)) - 1]
            whose = f"seat {seat}" if seat else "the dealer"
            yield NeedForm(
                NeedKind.TAKE_STACK,
                (D,),
                f"take the stack of {whose}",
                self._clause("deal_stack"),
                (),
                str(len(playing.stacks)),
                {"stack": len(playing.stacks), "seat": seat},
            )
        if device.shoe == ShoeState.STUB_WAITING:
            yield NeedForm(NeedKind.TAKE_STUB, (D,), "take the stub", self._clause("count_automated"))
        if table.state == "counting" and playing.advice:
            yield self._determine()
        elif table.state == "settling":
            yield self._settle()
        elif table.state == "revealing" and progress.exposed_by is None:
            words = "expose the hands, settle as shown"
            yield NeedForm(NeedKind.EXPOSE, (D,), words, self._clause("reveal"), (acts.Expose.NAME,))
        elif table.state == "revealing" and progress.must_type:
            words = "type the hands as they lie"
            yield NeedForm(
                NeedKind.TYPE_HANDS,
                (D,),
                words,
                self._clause("reveal"),
                (acts.TypeHands.NAME, acts.LeaveUntyped.NAME),
                "",
                {"round_id": playing.round_id, "hands": table.turns()},
            )

    def _settle(self) -> NeedForm:
        """The text has another person settle than the dealer, who exposed the hands."""
        rule = self._procedure.table.rule(Settle.NAME)
        roles = () if rule is None else tuple(each for each in Settle.ROLES if each in rule.who)
        words = "settle the wagers as shown"
        return NeedForm(NeedKind.SETTLE, roles, words, self._clause(Settle.NAME), (Settle.NAME,))

    def _determine(self) -> NeedForm:
        progress = self._state.round
        assert progress is not None
        advice, count = self._procedure.table.round.advice, progress.count
        expected = self._procedure.table.pack_cards
        words = f"{count} seen, {expected} expected: count the hands and say whether it was misdealt"
        choices = [str(each) for each in Verdict if each is not Verdict.CORRECT]
        return NeedForm(
            NeedKind.DETERMINE,
            (D,),
            words,
            self._clause("count_automated"),
            (acts.Determine.NAME,),
            "",
            {
                "advice": advice,
                "count": count,
                "stub": progress.stub,
                "expected": expected,
                "verdicts": choices,
            },
        )

    def _of_bets(self) -> Iterator[NeedForm]:
        table = self._procedure.table
        if table.state == "idle":
            name, words = PlayerArrives.NAME, "the table is idle: say when somebody wants to play"
            yield NeedForm(NeedKind.PLAYER_ARRIVES, (D,), words, self._clause(name), (name,))
        way = self._ways.now()
        if self._state.unexplained or not (self.may_close_bets() if way is None else way.may_close_bets()):
            return
        words = "no more bets" if self._betting() else "no more bets: say which seats bet"
        yield NeedForm(
            NeedKind.BETS,
            (D,),
            words,
            self._clause("no_more_bets"),
            (acts.NoMoreBets.NAME,),
            "",
            {"seats": self._betting(), "pack_id": self._state.device.in_shoe},
        )

    def _betting(self) -> list[int]:
        """The seats that bet if nobody tells others."""
        playing = self._procedure.table.memory.round
        open_now = playing is not None and self._procedure.table.state == "betting"
        return sorted(playing.wagers if open_now and playing is not None else self._state.bets)

    def may_close_bets(self) -> bool:
        """Whether the pack whose turn it is lies in the shoe, and nothing stands against a round."""
        table, device = self._procedure.table, self._state.device
        playing = table.memory.round
        progress = self._state.round
        over = table.state in ("between", "betting") or (
            table.state in OVER and playing is not None and not playing.cards_in_device
        )
        over = over or (table.state == "revealing" and progress is not None and progress.must_type)
        if not over or self._state.dealer is None or not device.up or device.survey or table.memory.units:
            return False
        if self._asked("stop", "service_mode", "self_test"):
            return False
        pack = next((each for each in table.packs() if each.pack_id == device.in_shoe), None)
        if pack is None or pack.must_leave or pack.state not in ("shuffled", "loaded"):
            return False
        return device.shoe == ShoeState.READY and self._machine.in_turn() and not device.emptying
