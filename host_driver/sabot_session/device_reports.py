"""What a device's events and answers mean for the table: actions of its procedure, and rows."""

from typing import TYPE_CHECKING, Any

from sabot_driver.errors import NotAllowed, Refused, SabotError
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import Message, Request
from sabot_protocol.host.messages import (
    Booted,
    DeckCounted,
    FaultCleared,
    FaultRaised,
    Forbidden,
    Place,
    RoundEnded,
    RoundVoided,
    ShoeState,
    ShuffleCommitted,
    StackDispensed,
    Verdict,
    VoidReason,
)
from sabot_session import buttons, shoe_results, shuffle_reveals
from sabot_session.device_side import CARDS_OUT, OVER
from sabot_session.outcomes import Failed, NotYours
from sabot_session.rows import Actor, Authentication, Json
from sabot_session.session_state import BegunShuffle, OutboxCommand
from sabot_session.table_rows import hands_data
from sabot_table.cards import DECK_CARDS, card
from sabot_table.errors import ImpossibleCards
from sabot_table.procedure import Attribution, TableRole, vocabulary
from sabot_table.procedure.memory import PackState
from sabot_table.procedure.packs import IN_SHOE

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep

DEVICE = Actor("", TableRole.DEVICE, Authentication.SENSED)
PROGRAM = Actor("", TableRole.PROGRAM, Authentication.PROGRAM)
RANKS, SUITS = "A23456789TJQK", "SHDC"  # of a face's number, 0 to 51
REMOVED_FOR = {
    messages.RemoveReason.WRONG_COUNT: vocabulary.RemovalReason.WRONG_COUNT,
    messages.RemoveReason.DAMAGED: vocabulary.RemovalReason.DAMAGED,
    messages.RemoveReason.HOURS: vocabulary.RemovalReason.HOURS,
    messages.RemoveReason.FLOOR_ORDER: vocabulary.RemovalReason.FLOOR_ORDER,
    messages.RemoveReason.TABLE_CLOSED: vocabulary.RemovalReason.FLOOR_ORDER,  # the floor closes the table
}
"""Why a pack leaves, by the machine's reason."""
WARN_MINUTES = (10, 30)
FIRST_SHOE_PLACE = Place.PUSHER


class DeviceReports:
    """Takes what the device told in a step of the session."""

    def __init__(self, session: "SessionStep") -> None:
        self._session = session

    # -- what the device told -------------------------------------------------------------------

    def hear(self, told: Message, now_s: int) -> None:
        """An event: the procedure and the record follow it."""
        table, progress = self._session.procedure.table, self._session.state.round
        by, way = self._session.device_by(now_s), self._session.ways.now()
        if way is not None and way.hear(self._session, told, now_s):
            return
        round_id = 0 if table.memory.round is None else table.memory.round.round_id
        if isinstance(told, DeckCounted):
            pack = next((each for each in table.packs() if each.pack_id == told.deck_id), None)
            if pack is not None and pack.state == "shuffling" and table.state != "closed":
                action = self._session.procedure.packs.finish_shuffle
                self._session.do(action, by, told.deck_id, told.count, told={"cards": told.count})
        elif isinstance(told, messages.DeckRemoved):
            there = table.state != "closed" and any(each.pack_id == told.deck_id for each in table.packs())
            if there and (table.memory.round is None or table.memory.round.pack_id != told.deck_id):
                reason = REMOVED_FOR[messages.RemoveReason(told.reason)]
                self._session.do(self._session.procedure.packs.remove_pack, by, told.deck_id, reason)
        elif isinstance(told, messages.ShufflerChanged):
            committed = self._session.state.device.commitments.get(told.deck_id)
            if told.state is messages.ShufflerState.FEEDING and committed is not None:
                self._shuffle_begun(committed.shuffle_id, now_s)  # the event came before the answer
        elif isinstance(told, ShuffleCommitted):
            self._session.row(
                "shuffle_committed",
                PROGRAM,
                {
                    "pack_id": told.deck_id,
                    "memory_id": self._session.state.device.memory_id,
                    "shuffle_id": told.shuffle_id,
                    "commitment": told.commitment.hex(),
                },
            )
        elif isinstance(told, messages.ShuffleRevealable):
            shuffle_reveals.revealable(self._session.state.device, told)
        elif isinstance(told, messages.Buttons):
            buttons.pressed(self._session, told.pressed, now_s)
        elif isinstance(told, FaultRaised):
            self._session.row(
                "fault_raised",
                DEVICE,
                {
                    "serial": self._session.state.device.serial,
                    "half": _half(told.place),
                    "fault": told.fault.name.lower(),
                    "place": told.place.name.lower(),
                    "cards": told.cards,
                    "steps": [told.steps] if told.steps else [],
                },
                round_id=round_id,
            )
        elif isinstance(told, FaultCleared):
            self._session.row(
                "fault_cleared",
                DEVICE,
                {
                    "serial": self._session.state.device.serial,
                    "half": _half(self._session.machine.cleared_at),
                    "fault": told.fault.name.lower(),
                },
                round_id=round_id,
            )
        elif isinstance(told, Booted):
            self._session.row(
                "machine_started", DEVICE, {"reason": told.reason.name.lower()}, round_id=round_id
            )
        elif progress is None or not round_id or getattr(told, "round_id", 0) != round_id:
            return
        elif isinstance(told, StackDispensed) and table.state == "dealing":
            self._session.do(
                self._session.procedure.three_card.deal_stack, by, round_id, told.stack, told.cards
            )
        elif isinstance(told, RoundEnded):
            self._round_ended(told.verdict, told.stub, told.count, now_s)
        elif isinstance(told, RoundVoided):
            self._round_voided(told.reason, now_s)

    def _round_ended(self, verdict: Verdict, stub: int, count: int, now_s: int) -> None:
        table, progress = self._session.procedure.table, self._session.state.round
        assert progress is not None
        playing = table.round
        progress.stub, progress.count = stub, count
        # UNPROVED: all cards came; for the shoe's path there is the floor's word.
        advice = "correct" if verdict is Verdict.UNPROVED else verdict.name.lower()
        told: dict[str, Json] = {
            "by": "machine",
            "stacks": count - stub,
            "stub": stub,
            "expected": table.pack_cards,
            "verdict": advice if advice == "correct" else None,  # else the dealer determines (MD3 10.C(2-4))
            "advice": advice,
        }
        if table.state in ("counting", "voided"):
            end_round = self._session.procedure.three_card.end_round
            by = self._session.device_by(now_s)
            self._session.do(end_round, by, playing.round_id, vocabulary.Verdict(advice), told=told)

    def _round_voided(self, reason: VoidReason, now_s: int) -> None:
        table, progress = self._session.procedure.table, self._session.state.round
        assert progress is not None
        if table.round.advice and table.state == "counting":
            return  # the count says so, and the dealer determines what it means
        if table.state in ("voided", "revealing", "settling", "collecting"):
            return
        action = self._session.procedure.voiding.voided_by_device
        told: dict[str, Json] = {"countersign": True}
        self._session.do(
            action, self._session.device_by(now_s), table.round.round_id, reason.name.lower(), told=told
        )

    def _not_opened(self, error: SabotError, now_s: int) -> None:
        """The device refused to open the round in play; the record says why."""
        table = self._session.procedure.table
        if table.state in ("voided", "revealing", "settling", "collecting"):
            return
        why = error.why if isinstance(error, Refused) else str(error)
        action, by = self._session.procedure.voiding.not_opened, self._session.device_by(now_s)
        told: dict[str, Json] = {"countersign": True}
        self._session.do(action, by, table.round.round_id, why, told=told)

    # -- what the device answered ---------------------------------------------------------------

    def executed(self, request: Request[Any], answer: Message | None, now_s: int) -> None:
        """The device executed a request; ``answer`` is None if only its ledger told so."""
        device, progress = self._session.state.device, self._session.state.round
        survey, way = device.survey, self._session.ways.now()
        if survey and survey[0].split()[0] == request.NAME:
            if answer is None:
                return  # asked again
            survey.pop(0)
            self._session.machine.surveyed(answer)
            if isinstance(answer, messages.ComponentIs):
                device.versions[messages.Component(answer.component).name.lower()] = answer.version
            elif isinstance(answer, messages.LastRoundIs):
                self._reconcile(answer, now_s)
            if not survey:
                self._identify(now_s)
        elif isinstance(request, messages.CommitShuffle):
            if request.deck_id not in device.commitments:
                device.commit_asked = request.deck_id
        elif isinstance(request, messages.ShuffleWith):
            self._shuffle_begun(request.shuffle_id, now_s)
        elif isinstance(request, messages.Sensors):
            if isinstance(answer, messages.SensorsAre) and self._session.machine.tray_covered(answer.levels):
                device.tray_seen_empty, device.refused = False, ""
        elif isinstance(request, messages.RegisterDeck):
            device.decks[request.deck_id] = request.back
        elif isinstance(request, messages.RemoveDeck):
            device.decks.pop(request.deck_id, None)
        elif isinstance(request, messages.ClearFault):
            self._session.machine.clearing(request.fault)
        elif isinstance(request, messages.VoidRound) and request.round_id == device.open_round:
            device.open_round = 0
            if progress is not None and progress.round_id == request.round_id:
                progress.device_done = True
        elif isinstance(request, messages.Purge):
            device.looked_in = True
        elif isinstance(request, messages.PathInspected):
            device.path_empty = True
        elif isinstance(request, messages.Stop | messages.ServiceMode | messages.SelfTest):
            self._session.machine.link(device.up, device.serial, device.memory_id, device.model)  # ask it all
        elif isinstance(request, messages.RevealShuffle | messages.ShuffleSlots):
            shuffle_reveals.answered(self._session, answer, now_s)
        elif isinstance(request, messages.EmptyMachine):
            device.emptying = not self._session.machine.emptying_ended()
        elif progress is not None and getattr(request, "round_id", progress.round_id) != progress.round_id:
            return  # events told of it before its answer came, and the next round has begun meanwhile
        elif way is not None and way.executed(self._session, request, answer, now_s):
            return
        elif progress is not None:
            self._round_request_executed(request, answer, now_s)

    def _round_request_executed(self, request: Request[Any], answer: Message | None, now_s: int) -> None:
        progress = self._session.state.round
        assert progress is not None
        if isinstance(request, messages.OpenRound):
            progress.opened = True
        elif isinstance(request, messages.CloseBets):
            progress.closed = True
        elif isinstance(request, messages.DispenseStack):
            progress.stacks_asked = request.stack
        elif isinstance(request, messages.EndRound):
            progress.end_asked = True
        elif isinstance(request, messages.VoidRound):
            progress.device_done = True
        elif isinstance(request, messages.RevealRound):
            progress.revealed = True
        elif isinstance(answer, messages.FacesAre):
            progress.faces.append(list(answer.faces))
            self._faces_read(now_s)

    def _faces_read(self, now_s: int) -> None:
        table, progress = self._session.procedure.table, self._session.state.round
        assert progress is not None
        if any(not each or max(each) >= DECK_CARDS for each in progress.faces):
            progress.must_type, progress.faces = True, []
            return
        turns = table.turns()
        if len(progress.faces) < len(turns):
            return
        hands = [
            tuple(card(RANKS[face % 13] + SUITS[face // 13]) for face in each) for each in progress.faces
        ]
        told = hands_data(
            turns,
            {seat: tuple(str(one) for one in hand) for seat, hand in zip(turns, hands, strict=True)},
            "reader",
        )
        try:
            self._session.do(
                self._session.procedure.three_card.hands_read,
                self._session.device_by(now_s),
                table.round.round_id,
                hands,
                told=told,
            )
        except ImpossibleCards as error:
            self.void_impossible(str(error), now_s)
            return
        self.settle(now_s)

    def settle(self, now_s: int) -> None:
        """The hands are known: wagers are settled by the act with which the dealer exposed them.

        Where the text has somebody else settle, that person's act is needed (`NeedKind.SETTLE`).
        """
        rule = self._session.procedure.table.rule("settle")
        if rule is not None and TableRole.DEALER not in rule.who:
            return
        progress = self._session.state.round
        assert progress is not None
        assert progress.exposed_by is not None
        dealer = progress.exposed_by
        self._session.acting(dealer)
        self.settle_by(Attribution(dealer.person, dealer.role, now_s))

    def settle_by(self, by: Attribution) -> None:
        """Settle the wagers; where wagers or cards are not known the record says so."""
        playing, round_end = self._session.procedure.table.round, self._session.procedure.round_end
        known = playing.wagers_known and playing.cards_known
        self._session.do(round_end.settle if known else round_end.settle_unknown, by)
        shoe_results.note(self._session.state.results, playing)

    def void_impossible(self, why: str, now_s: int) -> None:
        """The reader saw cards that no such pack can have: the round is void, and the pack leaves."""
        table, progress = self._session.procedure.table, self._session.state.round
        assert progress is not None
        action = self._session.procedure.voiding.voided_by_device
        told: dict[str, Json] = {"countersign": True}
        self._session.do(
            action, self._session.device_by(now_s), table.round.round_id, "wrong_number", told=told
        )
        table.round.cards_in_device = False
        pack = table.pack(table.round.pack_id)
        self._session.procedure.packs.mark_for_removal(pack, vocabulary.RemovalReason.DAMAGED, why)

    def _shuffle_begun(self, shuffle_id: int, now_s: int) -> None:
        """The machine has taken a pack out of the tray: its round's cards are collected."""
        device, table = self._session.state.device, self._session.procedure.table
        found = [deck for deck, each in device.commitments.items() if each.shuffle_id == shuffle_id]
        if not found:
            return
        committed = device.commitments.pop(found[0])
        if all(each.pack_id != found[0] for each in table.packs()):
            return  # a pack of another table, at which the machine was before
        ours = BegunShuffle(found[0], committed.commitment, committed.nonce)
        shuffle_reveals.begun(device, shuffle_id, ours)
        device.fed = 0 if device.in_shuffler == found[0] else found[0]
        device.doubtful = [each for each in device.doubtful if each != found[0]]
        self._session.state.unfed.pop(found[0], None)
        if vocabulary.DeviceUnit.SHUFFLER in table.memory.units:
            return  # people have said meanwhile that it cannot be used
        self._taken_in(table.pack(found[0]), shuffle_id, now_s)

    def _taken_in(self, pack: PackState, shuffle_id: int, now_s: int) -> None:
        """The machine has this pack: the round's cards are collected, and the shuffle begins.

        At a closed table, or if no dealer is signed in who collects, `go_on` does this later.
        """
        table = self._session.procedure.table
        playing = table.memory.round
        if playing is not None and playing.pack_id == pack.pack_id:
            if self._session.state.dealer is None:
                return
            self.collect(now_s)
        self._mark_past_hours(now_s)
        if pack.must_leave or table.state == "closed":
            return  # its hours ended while it was fed, or the table was closed
        if pack.state != "shuffling":
            action = self._session.procedure.packs.start_shuffle
            self._session.do(
                action,
                self._session.device_by(now_s),
                pack.pack_id,
                machine=True,
                told={"shuffle_id": shuffle_id},
            )

    def _packs_taken_in(self, now_s: int) -> None:
        """Packs that the machine took at a closed table, or without a dealer, lie in no rack any more."""
        table, device = self._session.procedure.table, self._session.state.device
        if table.state == "closed" or vocabulary.DeviceUnit.SHUFFLER in table.memory.units:
            return
        for pack in table.packs():
            if self._session.machine.was_taken_in(pack):
                begun = (number for number, each in device.begun.items() if each.pack_id == pack.pack_id)
                self._taken_in(pack, max(begun, default=0), now_s)

    def collect(self, now_s: int) -> None:
        """The dealer collected the cards of a round that is over; its pack leaves if it must."""
        by = self._session.dealer_by(now_s)
        if by is None:
            raise NotYours("collecting the cards: no dealer is signed in")
        self._session.collect_cards(by)

    def _identify(self, now_s: int) -> None:
        device, memory = self._session.state.device, self._session.procedure.table.memory
        if (memory.model, memory.versions) == (device.model, device.versions):
            return
        told: dict[str, Json] = {
            "serial": device.serial,
            "model": device.model,
            "components": [{"name": name, "version": version} for name, version in device.versions.items()],
        }
        action = self._session.procedure.equipment.identify
        self._session.do(
            action, self._session.device_by(now_s), device.model, dict(device.versions), told=told
        )

    def _reconcile(self, last: messages.LastRoundIs, now_s: int) -> None:
        """After the link came up: what the device says of the round in play is so."""
        table, device, progress = (
            self._session.procedure.table,
            self._session.state.device,
            self._session.state.round,
        )
        table.number_after(last.round_id)
        playing = table.memory.round
        if playing is None or progress is None or table.state not in CARDS_OUT or not progress.opened:
            return
        if device.open_round == playing.round_id and not device.lost_events:
            return
        if last.round_id == playing.round_id and not last.void and not device.lost_events:
            return  # it ended there, and its events are on their way
        if device.open_round == playing.round_id:
            progress.void_reason = VoidReason.FLOOR_ORDER
        else:
            progress.device_done = True
        reason = last.void if last.round_id == playing.round_id and last.void else VoidReason.POWER_CUT
        device.lost_events = False
        self._round_voided(VoidReason(reason), now_s)

    def failed(self, request: Request[Any], result: Failed, sent: OutboxCommand, now_s: int) -> None:
        """A request was not executed, or nobody knows whether it was."""
        error, device, progress = result.error, self._session.state.device, self._session.state.round
        reason = error.reason if isinstance(error, NotAllowed) else None
        if device.survey and device.survey[0].split()[0] == request.NAME:
            if error is not None and request.NAME == messages.ComponentQuery.NAME:
                device.survey.pop(0)  # a device that does not say is judged by what it says
                if not device.survey:
                    self._identify(now_s)
            return
        if result.unknown:
            self._session.machine.link(device.up, device.serial, device.memory_id, device.model)
            return
        if error is None:
            return  # it was not executed: the state decides again
        if isinstance(request, messages.RevealShuffle | messages.ShuffleSlots):
            shuffle_reveals.refused(device, request.shuffle_id)
            return
        if reason is Forbidden.TRAY_EMPTY:
            device.tray_seen_empty = True
        elif reason is Forbidden.SERVICE_ONLY and isinstance(request, messages.ClearFault):
            for each in device.faults:
                each.service = each.service or each.fault == request.fault
        elif reason is Forbidden.DECK_USED_BEFORE and isinstance(request, messages.RegisterDeck):
            self._session.state.highest_deck = max(self._session.state.highest_deck, request.deck_id)
            pack = self._session.procedure.table.pack(request.deck_id)
            mark = self._session.procedure.packs.mark_for_removal
            mark(pack, vocabulary.RemovalReason.FLOOR_ORDER, "the machine takes no deck with this number")
        elif isinstance(request, messages.CloseBets) and progress is not None and progress.stacks_asked:
            progress.closed = True  # cards have come: bets are closed there too
        elif isinstance(request, messages.RevealRound | messages.Faces) and progress is not None:
            progress.must_type, progress.faces = True, []
        elif isinstance(request, messages.OpenRound) and progress is not None:
            progress.device_done = True
            self._not_opened(error, now_s)
        if reason is Forbidden.PAST_ITS_HOURS:
            self._mark_past_the_machines_hours(request)
        way = self._session.ways.now()
        if way is not None:
            way.failed(self._session, request, reason)
        self._session.machine.refused(request)
        self._session.row("command_answered", PROGRAM, {"command": request.NAME, "outcome": str(error)[:500]})

    def _mark_past_the_machines_hours(self, request: Request[Any]) -> None:
        """The machine counts a deck's hours itself, also through a clock that was set back."""
        committed = self._session.state.device.commitments
        for pack in self._session.procedure.table.packs():
            if isinstance(request, messages.ShuffleWith):
                ours = committed.get(pack.pack_id)
                meant = ours is not None and ours.shuffle_id == request.shuffle_id
            else:
                meant = getattr(request, "deck_id", None) == pack.pack_id
            if meant:
                mark = self._session.procedure.packs.mark_for_removal
                mark(pack, vocabulary.RemovalReason.HOURS, "its hours are over by the machine's clock")

    # -- what follows from the state ------------------------------------------------------------

    def go_on(self, now_s: int) -> None:
        """Steps that follow by themselves: cards that came out, packs in the shuffler and in the shoe."""
        table = self._session.procedure.table
        playing = table.memory.round
        if playing is not None and table.state == "voided" and playing.cards_in_device:
            self._cards_came_out(now_s)
        self._units_failed(now_s)
        self._mark_past_hours(now_s)
        self._packs_taken_in(now_s)
        way = self._session.ways.now()
        if way is not None:
            way.go_on(self._session, now_s)
        self.load_if_ready(now_s)

    def _units_failed(self, now_s: int) -> None:
        """A machine that says it is out of order has failed with both halves."""
        device, units = self._session.state.device, self._session.procedure.table.memory.units
        for unit, failed in (
            (vocabulary.DeviceUnit.SHUFFLER, device.shuffler == messages.ShufflerState.OUT_OF_ORDER),
            (vocabulary.DeviceUnit.SHOE, device.shoe == ShoeState.OUT_OF_ORDER),
        ):
            if failed and unit not in units:
                told: dict[str, Json] = {"serial": device.serial, "unit": unit, "why": "out of order"}
                action = self._session.procedure.equipment.unit_failed
                self._session.do(action, self._session.device_by(now_s), unit, told=told)

    def _cards_came_out(self, now_s: int) -> None:
        table, device, progress = (
            self._session.procedure.table,
            self._session.state.device,
            self._session.state.round,
        )
        assert progress is not None
        if not progress.opened:
            table.round.cards_in_device = False  # it dealt none: nobody takes any out
            return
        if not progress.device_done:
            return
        out = device.shoe in (ShoeState.EMPTY, ShoeState.BLOCKED) and not device.survey
        other = device.shoe == ShoeState.READY and device.in_shoe != table.round.pack_id
        by = self._session.dealer_by(now_s)
        if by is not None and (out or other):
            self._session.do(self._session.procedure.voiding.empty_device, by)

    def load_if_ready(self, now_s: int) -> None:
        """The device has a pack in its shoe whose turn it is."""
        table, device = self._session.procedure.table, self._session.state.device
        if table.state != "between" or device.shoe != ShoeState.READY or device.survey:
            return
        if self._session.ways.now() is not None:
            return  # people load it
        pack = next((each for each in table.packs() if each.pack_id == device.in_shoe), None)
        if any(each.state in IN_SHOE for each in table.packs()):
            return  # another pack is still in people's hands
        may_play = pack is not None and pack.state == "shuffled" and not pack.must_leave
        if pack is not None and may_play and self._session.machine.in_turn():
            self._session.do(self._session.procedure.packs.load, self._session.device_by(now_s), pack.pack_id)

    def warn_of_hours(self, now_s: int) -> None:
        """Warn before a pack's hours end."""
        for pack in self._session.procedure.table.packs():
            left_s = self._session.procedure.packs.hours_left_s(pack, now_s)
            if left_s is None:
                continue
            if left_s <= 0:
                continue
            due = next((each for each in WARN_MINUTES if left_s <= each * 60), None)
            if due is not None and due < self._session.state.warned.get(pack.pack_id, WARN_MINUTES[-1] + 1):
                self._session.state.warned[pack.pack_id] = due
                self._session.row(
                    "hours_warned",
                    PROGRAM,
                    {
                        "pack_id": pack.pack_id,
                        "minutes": due,
                        "until_s": now_s + left_s,
                    },
                )

    def _mark_past_hours(self, now_s: int) -> None:
        """A pack past its hours must leave; a round that it plays is finished first (MD3 3.C)."""
        table, packs = self._session.procedure.table, self._session.procedure.packs
        playing = table.memory.round
        for pack in table.packs():
            in_play = playing is not None and playing.pack_id == pack.pack_id and table.state not in OVER
            left_s = packs.hours_left_s(pack, now_s)
            if left_s is not None and left_s <= 0 and not in_play:
                packs.mark_for_removal(pack, vocabulary.RemovalReason.HOURS, "its hours are over")


def _half(place: int) -> vocabulary.DeviceUnit:
    return vocabulary.DeviceUnit.SHOE if place >= FIRST_SHOE_PLACE else vocabulary.DeviceUnit.SHUFFLER
