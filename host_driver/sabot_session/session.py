"""One table: procedure, device, people and record, without input and output.

Acts of people, events of the device, answers and times go in. Needs, requests to the device and rows of the
record come out. Everything that one input changes is committed with its rows before anything of it is
visible. If the commit fails, the session is what it was before.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sabot_driver.errors import NotAllowed, SabotError
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import Message, Request
from sabot_protocol.host.messages import (
    Booted,
    DeckCounted,
    DeckHours,
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
from sabot_session import acts, act_handlers
from sabot_session.acts import Act, Authenticated
from sabot_session.device_side import CARDS_OUT, DeviceSide
from sabot_session.needs import Need
from sabot_session.rows import Actor, Authentication, DeviceEventId, Json, Record, Row, SavedSession
from sabot_session.session_state import NeedHistory, OutboxCommand, SessionState, restore, save
from sabot_session.table_needs import TableNeeds
from sabot_session.table_rows import KINDS, UNWRITTEN, clause_of, hands_data, row_data
from sabot_table.cards import DECK_CARDS, card
from sabot_table.errors import ImpossibleCards, RuleViolation
from sabot_table.procedure import Attribution, TableProcedure, TableRole, vocabulary
from sabot_table.procedure.memory import TableMemory
from sabot_table.ruleset import RuleSet

DEVICE = Actor("", TableRole.DEVICE, Authentication.SENSED)
PROGRAM = Actor("", TableRole.PROGRAM, Authentication.PROGRAM)
RANKS, SUITS = "A23456789TJQK", "SHDC"  # of a face's number, 0 to 51
WARN_MINUTES = (10, 30)
FIRST_SHOE_PLACE = Place.PUSHER


class ActRefused(SabotError):
    """An act that is not accepted: nothing was recorded, and nothing has changed."""

    advice = "Look at what the table needs now."


class NeedGone(ActRefused):
    """The need was met before; ``by`` is the person who did, if the record tells."""

    def __init__(self, message: str, by: str = "") -> None:
        super().__init__(message)
        self.by = by


class StateChanged(ActRefused):
    """The need has changed since the person looked."""

    advice = "Look at the need again, then act."


class NotYours(ActRefused, PermissionError):
    """The act is not for this person's role, or the credential does not allow it."""

    advice = "Call the person whose act it is."


class People(Protocol):
    """The register of people: who somebody is, by what they hold and know."""

    def authenticate(self, credential: object, now_s: int) -> Authenticated:
        """The person behind a credential; `SabotError` if it proves nobody."""


@dataclass(frozen=True, slots=True)
class ActDone:
    """What became of an act: the record's row. ``repeated``: it was accepted before."""

    row: int
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class DeviceCommand:
    """A request for the device; ``key`` authorises it where a person must."""

    id: int
    message: Request[Message]
    needs_key: bool
    key: Any = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The device executed a request. ``message`` is None if only its ledger told so."""

    message: Message | None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """A request was not executed, or its outcome is unknown (``unknown``)."""

    error: SabotError | None = None
    number: int = 0
    unknown: bool = False


class TableSession:
    """One table as people run it."""

    def __init__(
        self,
        rules: RuleSet,
        record: Record,
        people: People,
        *,
        table: str = "table",
        policy: Mapping[str, frozenset[TableRole]] | None = None,
        random: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        """Continue what is on record, or begin. ``policy`` names fewer roles for an act than the rules do."""
        self.rules = rules
        self.name = table
        self._record = record
        self._people = people
        self._policy = policy or {}
        self._random = random
        saved = record.load()
        if saved is None:
            memory = TableMemory(rules.sha256, method=rules.dealing.methods[0])
            self._saved = save(SessionState(memory))
            self.journal_at = 0
        else:
            self._saved = saved.state
            self.journal_at = saved.journal_at
        self._keys: dict[str, Any] = {}  # by act id: never written
        self._taken: set[int] = set()  # commands that the shell has
        self._answered_by: dict[str, str] = {}  # need id -> person
        self._load(self._saved)
        self.state.device.up = False

    def _load(self, saved: str) -> None:
        self.state = restore(self.rules, saved)
        self.procedure = TableProcedure.restore(
            self.rules, TableProcedure(self.rules, self.state.memory).table.save()
        )
        self.state.memory = self.procedure.table.memory
        self.machine = DeviceSide(self.state, self.procedure, self._random)
        self._needs = TableNeeds(self.state, self.procedure, self.machine)
        self._rows: list[Row] = []
        self._actors: dict[tuple[str, TableRole], Actor] = {}

    # -- what others see ------------------------------------------------------------------------

    def needs(self) -> list[Need]:
        """What must happen now, the most urgent first."""
        found = []
        for form in self._needs.forms():
            history = self.state.needs[f"{form.kind} {form.key}"]
            found.append(
                Need(
                    f"{form.kind}-{history.number}", form.kind, form.roles, form.words, form.clause, form.acts,
                    history.since_s, history.seen, form.details,
                )
            )  # fmt: skip
        return found

    @property
    def cursor(self) -> int:
        """The record's newest row: the state that a person sees now."""
        return self.state.rows

    def take_command(self) -> DeviceCommand | None:
        """The next request for the device, once; None if there is none, or the last one has no answer yet."""
        if not self.state.outbox or self.state.outbox[0].id in self._taken or not self.state.device.up:
            return None
        first = self.state.outbox[0]
        self._taken.add(first.id)
        return self._command(first)

    def open_command(self) -> DeviceCommand | None:
        """The request that was in the outbox when the session was restored; its outcome must be found out."""
        return self._command(self.state.outbox[0]) if self.state.outbox else None

    def _command(self, kept: OutboxCommand) -> DeviceCommand:
        kind: Any = messages.BY_NAME[kept.name]
        key = self._keys.get(kept.act_id) if kept.role else None
        return DeviceCommand(kept.id, kind.unpack(bytes.fromhex(kept.body)), bool(kept.role), key)

    # -- people ---------------------------------------------------------------------------------

    def act(
        self, act_id: str, need_id: str | None, seen: int, credential: object, act: Act, now_s: int
    ) -> ActDone:
        """Take a person's act: check it, commit it, and only then let anything follow from it.

        ``need_id`` is the need that it meets; None for an act that no need asks for. ``credential`` None is
        the dealer who is signed in. An ``act_id`` that is on record returns its row and does nothing.
        Raises `ActRefused` with its kinds, or the procedure's `RuleViolation`; nothing has changed then.
        """
        before = self._record.act(act_id)
        if before is not None:
            return ActDone(before.number, repeated=True)
        if need_id is not None:
            self._check_need(need_id, seen, act)
        actor, key = self._authenticate(credential, act, now_s)

        def take() -> None:
            self._actors[actor.person, actor.role] = actor
            by = Attribution(actor.person, actor.role, now_s)
            act_handlers.HANDLERS[type(act)](self, act, by, act_id)
            if not self._rows:
                raise AssertionError(f"{act.NAME} left no row")
            first = self._rows[0]
            self._rows[0] = Row(
                first.kind, first.at_s, first.actor, first.data, first.round_id, first.clause, act_id
            )

        self._keys[act_id] = key
        try:
            self._step(now_s, take, actor=actor)
        except (SabotError, RuleViolation, ImpossibleCards):
            self._keys.pop(act_id, None)
            raise
        if need_id is not None:
            self._answered_by[need_id] = actor.person
        kept = self._record.act(act_id)
        return ActDone(self.state.rows if kept is None else kept.number)

    def _check_need(self, need_id: str, seen: int, act: Act) -> None:
        need = next((each for each in self.needs() if each.id == need_id), None)
        if need is None:
            by = self._answered_by.get(need_id, "")
            raise NeedGone(f"{act.NAME}: this was done before" + (f" by {by}" if by else ""), by)
        if act.NAME not in need.acts:
            raise ActRefused(f"{act.NAME} does not meet '{need.words}'")
        if seen < need.seen:
            raise StateChanged(f"{act.NAME}: '{need.words}' has changed since you looked")

    def _authenticate(self, credential: object, act: Act, now_s: int) -> tuple[Actor, Any]:
        allowed = [each for each in act.ROLES if each in self._policy.get(act.NAME, frozenset(act.ROLES))]
        if credential is None:
            dealer = self.state.dealer
            if dealer is None or TableRole.DEALER not in allowed:
                raise NotYours(f"{act.NAME}: this is for {' or '.join(allowed)}, with a credential")
            how = dealer.how if dealer.how is Authentication.SIMULATED else Authentication.SIGNED_IN
            return Actor(dealer.person, TableRole.DEALER, how), None
        who = self._people.authenticate(credential, now_s)
        if who.how is Authentication.SIMULATED and not self.state.simulated_people:
            raise NotYours(f"{act.NAME}: simulated people act only at an emulated device")
        role = next((each for each in allowed if each in who.roles), None)
        if role is None:
            raise NotYours(f"{act.NAME} by {who.person}: this is for {' or '.join(allowed)}")
        return Actor(who.person, role, who.how), who.key

    # -- the device -----------------------------------------------------------------------------

    def link(
        self, up: bool, now_s: int, *, serial: str = "", memory_id: str = "", model: str = "",
        emulated: bool = False,
    ) -> None:  # fmt: skip
        """The link to the device is up or down.

        ``emulated``: its session proved that it is a simulator, with a key of the simulators' store.
        """

        def take() -> None:
            self.state.simulated_people = emulated if up else self.state.simulated_people
            self.machine.link(up, serial, memory_id, model)

        self._step(now_s, take)

    def device_event(self, at: int, message: Message | None, boot: int, number: int, now_s: int) -> None:
        """An event of the device; ``at`` is its place in the driver's journal. Known places are ignored."""
        if at <= self.journal_at:
            return
        device = self.state.device
        follows = DeviceEventId(device.serial, device.memory_id, boot, number)

        def take() -> None:
            if message is not None:
                self.machine.hear(message)
                self._hear(message, now_s)

        self._step(now_s, take, journal_at=at, follows=follows)

    def events_lost(self, at: int, now_s: int) -> None:
        """The device lost events before it could tell them: what it says of itself counts from now on."""
        if at <= self.journal_at:
            return

        def take() -> None:
            self.state.device.lost_events = self.procedure.table.state in CARDS_OUT
            self.machine.link(True, self.state.device.serial, self.state.device.memory_id, self.state.device.model)

        self._step(now_s, take, journal_at=at)

    def answer(self, command_id: int, result: Answered | Failed, now_s: int) -> None:
        """What became of a request. A second answer to the same request is ignored."""
        if not self.state.outbox or self.state.outbox[0].id != command_id:
            return
        command = self._command(self.state.outbox[0])

        def take() -> None:
            done = self.state.outbox.pop(0)
            if result.number:
                self.state.device.last_number = result.number
            if isinstance(result, Answered):
                self._executed(command.message, result.message, now_s)
            else:
                self._failed(command.message, result, done, now_s)

        self._step(now_s, take)
        self._taken.discard(command_id)

    def tick(self, now_s: int) -> None:
        """Time passes: hours of packs, and cards that somebody may have laid into the tray."""

        def take() -> None:
            self._warn_of_hours(now_s)
            if not self.state.outbox:
                request = self.machine.poll()
                if request is not None:
                    self.queue(request)

        self._step(now_s, take)

    # -- one step -------------------------------------------------------------------------------

    def _step(
        self,
        now_s: int,
        take: Callable[[], None],
        *,
        actor: Actor | None = None,
        journal_at: int | None = None,
        follows: DeviceEventId | None = None,
    ) -> None:
        self._rows = []
        self._follows = follows
        self._now_s = now_s
        try:
            take()
            self._go_on(now_s)
            self._write_log({})
            if not self.state.outbox:
                request = self.machine.next_request()
                if request is not None:
                    self.queue(request)
            rows = self._rows
            self.state.countersign += [
                self.state.rows + at for at, row in enumerate(rows, 1) if row.data.get("countersign")
            ]
            self.state.rows += len(rows)
            self._note_needs(now_s)
            saved = save(self.state)
            at = self.journal_at if journal_at is None else journal_at
            if rows or saved != self._saved:
                self._record.commit(rows, SavedSession(saved, at))
            self._saved, self.journal_at = saved, at
        except BaseException:
            self._load(self._saved)
            raise
        finally:
            self._rows = []
            self._follows = None

    def _note_needs(self, now_s: int) -> None:
        known: dict[str, NeedHistory] = {}
        for form in self._needs.forms():
            key, shape = f"{form.kind} {form.key}", repr((form.roles, form.acts, form.details))
            before = self.state.needs.get(key)
            if before is None:
                before = NeedHistory(self.state.next_need, now_s, self.state.rows, shape)
                self.state.next_need += 1
            elif before.form != shape:
                before = NeedHistory(before.number, before.since_s, self.state.rows, shape)
            known[key] = before
        self.state.needs = known

    # -- for the handlers of acts ---------------------------------------------------------------

    def queue(self, request: Request[Any], role: TableRole | None = None, act_id: str = "") -> None:
        """Put a request into the outbox; ``role`` is whose credential the device asks for."""
        person = next((who for who, _ in self._actors), "") if role else ""
        self.state.outbox.append(
            OutboxCommand(
                self.state.next_command, request.NAME, request.pack().hex(), role or "", person, act_id
            )
        )
        self.state.next_command += 1

    def do(self, action: Callable[..., Any], by: Attribution, *args: Any, told: Mapping[str, Json] | None = None,
           **details: Any) -> Any:  # fmt: skip
        """An action of the procedure, and its rows; ``told`` is what only the act or the event knows."""
        result = action(by, *args, **details)
        self._write_log(told or {})
        return result

    def row(
        self, kind: str, actor: Actor, data: Mapping[str, Json] | None = None, clause: str = "", round_id: int = 0
    ) -> None:
        """A row that no action of the procedure writes."""
        self._rows.append(
            Row(kind, self._now_s, actor, data or {}, round_id, clause, follows=self._follows_of(actor))
        )

    def _follows_of(self, actor: Actor) -> DeviceEventId | None:
        return self._follows if actor.how is Authentication.SENSED else None

    def _write_log(self, told: Mapping[str, Json]) -> None:
        table = self.procedure.table
        table.take_orders()  # what they ask for follows from the state
        playing = table.memory.round
        for by, what in table.take_log():
            action, _, pack = what.partition(" ")
            if action in UNWRITTEN or (action == "remove" and by.role is TableRole.DEVICE):
                continue
            actor = DEVICE if by.role is TableRole.DEVICE else self._actors[by.who, by.role]
            data = row_data(table, action, int(pack or 0), playing, told)
            round_id = 0 if playing is None or action in OUTSIDE else playing.round_id
            clause = clause_of(table, action, playing)
            kind = KINDS.get(action, action)
            self._rows.append(Row(kind, by.at_s, actor, data, round_id, clause, follows=self._follows_of(actor)))

    def dealer_by(self, now_s: int) -> Attribution | None:
        """The dealer who is signed in, for what the machine sensed; None if nobody is."""
        dealer = self.state.dealer
        if dealer is None:
            return None
        how = dealer.how if dealer.how is Authentication.SIMULATED else Authentication.SIGNED_IN
        self._actors[dealer.person, TableRole.DEALER] = Actor(dealer.person, TableRole.DEALER, how)
        return Attribution(dealer.person, TableRole.DEALER, now_s)

    @staticmethod
    def device_by(now_s: int) -> Attribution:
        """The device, for what it told."""
        return Attribution("device", TableRole.DEVICE, now_s)

    # -- what the device told -------------------------------------------------------------------

    def _hear(self, told: Message, now_s: int) -> None:
        table, progress = self.procedure.table, self.state.round
        by = self.device_by(now_s)
        round_id = 0 if table.memory.round is None else table.memory.round.round_id
        if isinstance(told, DeckCounted):
            pack = next((each for each in table.packs() if each.pack_id == told.deck_id), None)
            if pack is not None and pack.state == "shuffling":
                action = self.procedure.packs.finish_shuffle
                self.do(action, by, told.deck_id, told.count, told={"cards": told.count})
        elif isinstance(told, ShuffleCommitted):
            self.row("shuffle_committed", PROGRAM, {
                "pack_id": told.deck_id, "memory_id": self.state.device.memory_id,
                "shuffle_id": told.shuffle_id, "commitment": told.commitment.hex(),
            })  # fmt: skip
        elif isinstance(told, FaultRaised):
            half = vocabulary.DeviceUnit.SHOE if told.place >= FIRST_SHOE_PLACE else vocabulary.DeviceUnit.SHUFFLER
            self.row("fault_raised", DEVICE, {
                "serial": self.state.device.serial, "half": half, "fault": told.fault.name.lower(),
                "place": told.place.name.lower(), "cards": told.cards, "steps": [told.steps] if told.steps else [],
            }, round_id=round_id)  # fmt: skip
        elif isinstance(told, FaultCleared):
            self.row(
                "fault_gone", DEVICE, {"serial": self.state.device.serial, "fault": told.fault.name.lower()},
                round_id=round_id,
            )  # fmt: skip
        elif isinstance(told, Booted):
            self.row("machine_started", DEVICE, {"reason": told.reason.name.lower()}, round_id=round_id)
        elif isinstance(told, DeckHours):
            return
        elif progress is None or getattr(told, "round_id", 0) != round_id or not round_id:
            return
        elif isinstance(told, StackDispensed) and table.state == "dealing":
            self.do(self.procedure.three_card.deal_stack, by, round_id, told.stack, told.cards)
        elif isinstance(told, RoundEnded):
            progress.device_done = True
            self._round_ended(told.verdict, told.stub, told.count, now_s)
        elif isinstance(told, RoundVoided):
            progress.device_done = True
            self._round_voided(told.reason, now_s)

    def _round_ended(self, verdict: Verdict, stub: int, count: int, now_s: int) -> None:
        table, progress = self.procedure.table, self.state.round
        assert progress is not None
        playing = table.round
        progress.stub, progress.count = stub, count
        unproved = verdict is Verdict.UNPROVED  # all cards came; for the shoe's path there is the floor's word
        advice = "correct" if unproved else verdict.name.lower()
        told: dict[str, Json] = {
            "by": "machine", "stacks": count - stub, "stub": stub, "expected": table.pack_cards,
            "verdict": None, "advice": advice,
        }  # fmt: skip
        if table.state == "counting" and advice != "correct":
            progress.advice = verdict  # the dealer determines what it means (MD3 10.C(2-4))
            self.row("count_stub", DEVICE, told, table.clause("10.C", "8"), playing.round_id)
        elif table.state == "counting":
            by = self.device_by(now_s)
            told["verdict"] = advice
            self.do(self.procedure.three_card.end_round, by, playing.round_id, vocabulary.Verdict.CORRECT, told=told)

    def _round_voided(self, reason: VoidReason, now_s: int) -> None:
        table, progress = self.procedure.table, self.state.round
        assert progress is not None
        if progress.advice and table.state == "counting":
            return  # the count says so, and the dealer determines what it means
        if table.state in ("voided", "revealing", "settling", "collecting"):
            return
        action = self.procedure.voiding.voided_by_device
        told: dict[str, Json] = {"countersign": True}
        self.do(action, self.device_by(now_s), table.round.round_id, reason.name.lower(), told=told)

    # -- what the device answered ---------------------------------------------------------------

    def _executed(self, request: Request[Message], answer: Message | None, now_s: int) -> None:
        device, progress = self.state.device, self.state.round
        survey = device.survey
        if survey and request.NAME == survey[0].split()[0]:
            if answer is None:
                return  # asked again
            survey.pop(0)
            self.machine.surveyed(answer)
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
            if isinstance(answer, messages.SensorsAre) and self.machine.tray_covered(answer.levels):
                device.tray_seen_empty, device.refused = False, ""
        elif isinstance(request, messages.EmptyMachine):
            device.emptying = device.shoe != ShoeState.EMPTY or device.shuffler != messages.ShufflerState.IDLE
        elif progress is not None:
            self._round_request_executed(request, answer, now_s)

    def _round_request_executed(
        self, request: Request[Message], answer: Message | None, now_s: int
    ) -> None:
        progress = self.state.round
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
        table, progress = self.procedure.table, self.state.round
        assert progress is not None
        if any(not each or max(each) >= DECK_CARDS for each in progress.faces):
            progress.must_type, progress.faces = True, []
            return
        turns = table.turns()
        if len(progress.faces) < len(turns):
            return
        hands = [tuple(card(RANKS[face % 13] + SUITS[face // 13]) for face in each) for each in progress.faces]
        told = hands_data(
            turns, {seat: tuple(str(one) for one in hand) for seat, hand in zip(turns, hands, strict=True)},
            "reader",
        )  # fmt: skip
        try:
            self.do(self.procedure.three_card.hands_read, self.device_by(now_s), table.round.round_id, hands, told=told)
        except ImpossibleCards as error:
            self._impossible(str(error), now_s)
            return
        self.settle(now_s)

    def settle(self, now_s: int) -> None:
        """The hands are known: wagers are settled by the act with which the dealer exposed them."""
        progress = self.state.round
        assert progress is not None and progress.exposed_by is not None
        dealer = progress.exposed_by
        self._actors[dealer.person, dealer.role] = dealer
        self.do(self.procedure.round_end.settle, Attribution(dealer.person, dealer.role, now_s))

    def _impossible(self, why: str, now_s: int) -> None:
        """The reader saw cards that no such pack can have: the round is void, and the pack leaves."""
        table, progress = self.procedure.table, self.state.round
        assert progress is not None
        action = self.procedure.voiding.voided_by_device
        told: dict[str, Json] = {"countersign": True}
        self.do(action, self.device_by(now_s), table.round.round_id, "wrong_number", told=told)
        table.round.cards_in_device = False
        pack = table.pack(table.round.pack_id)
        self.procedure.packs.mark_for_removal(pack, vocabulary.RemovalReason.DAMAGED, why)

    def _shuffle_begun(self, shuffle_id: int, now_s: int) -> None:
        """The machine has taken a pack out of the tray: its round's cards are collected."""
        device, table = self.state.device, self.procedure.table
        found = [deck for deck, each in device.commitments.items() if each.shuffle_id == shuffle_id]
        if not found:
            return
        device.commitments.pop(found[0])
        device.shuffler, device.in_shuffler = messages.ShufflerState.FEEDING, found[0]
        pack = table.pack(found[0])
        playing = table.memory.round
        if playing is not None and playing.pack_id == pack.pack_id:
            self.collect(now_s)
        if pack.state != "shuffling":
            action = self.procedure.packs.start_shuffle
            self.do(action, self.device_by(now_s), pack.pack_id, machine=True, told={"shuffle_id": shuffle_id})

    def collect(self, now_s: int) -> None:
        """The dealer collected the cards of a round that is over; its pack leaves if it must."""
        by = self.dealer_by(now_s)
        if by is None:
            raise NotYours("collecting the cards: no dealer is signed in")
        self.do(self.procedure.round_end.collect, by)
        self.state.round = None

    def _identify(self, now_s: int) -> None:
        device, memory = self.state.device, self.procedure.table.memory
        if (memory.model, memory.versions) == (device.model, device.versions):
            return
        told: dict[str, Json] = {
            "serial": device.serial, "model": device.model,
            "components": [{"name": name, "version": version} for name, version in device.versions.items()],
        }  # fmt: skip
        action = self.procedure.equipment.identify
        self.do(action, self.device_by(now_s), device.model, dict(device.versions), told=told)

    def _reconcile(self, last: messages.LastRoundIs, now_s: int) -> None:
        """After the link came up: what the device says of the round in play is so."""
        table, device, progress = self.procedure.table, self.state.device, self.state.round
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

    def _failed(self, request: Request[Message], result: Failed, sent: OutboxCommand, now_s: int) -> None:
        error, device, progress = result.error, self.state.device, self.state.round
        reason = error.reason if isinstance(error, NotAllowed) else None
        if device.survey and request.NAME == device.survey[0].split()[0]:
            if error is not None and request.NAME == messages.ComponentQuery.NAME:
                device.survey.pop(0)  # a device that does not say is judged by what it says
                if not device.survey:
                    self._identify(now_s)
            return
        if result.unknown:
            self.machine.link(device.up, device.serial, device.memory_id, device.model)
            return
        if error is None:
            return  # it was not executed: the state decides again
        if reason is Forbidden.TRAY_EMPTY:
            device.tray_seen_empty = True
        elif reason is Forbidden.SERVICE_ONLY and isinstance(request, messages.ClearFault):
            for each in device.faults:
                each.service = each.service or each.fault == request.fault
        elif isinstance(request, messages.CloseBets) and progress is not None and progress.stacks_asked:
            progress.closed = True  # cards have come: bets are closed there too
        elif isinstance(request, messages.RevealRound | messages.Faces) and progress is not None:
            progress.must_type, progress.faces = True, []
        elif isinstance(request, messages.OpenRound) and progress is not None:
            progress.device_done = True
            self._round_voided(VoidReason.SHOE_FAILED, now_s)
        self.machine.refused(request)
        self.row("command_answered", PROGRAM, {"command": request.NAME, "outcome": str(error)[:500]})

    # -- what follows from the state ------------------------------------------------------------

    def _go_on(self, now_s: int) -> None:
        """Steps that follow by themselves: cards that came out, a pack that lies in the shoe."""
        table, device = self.procedure.table, self.state.device
        playing = table.memory.round
        if playing is not None and table.state == "voided" and playing.cards_in_device:
            self._cards_came_out(now_s)
        self.load_if_ready(now_s)
        if device.taken_out and not device.emptying and device.in_shoe and device.in_shuffler:
            device.taken_out = False

    def _cards_came_out(self, now_s: int) -> None:
        table, device, progress = self.procedure.table, self.state.device, self.state.round
        assert progress is not None
        if progress.opened and not progress.device_done:
            return
        out = device.shoe in (ShoeState.EMPTY, ShoeState.BLOCKED) and not device.survey
        other = device.shoe == ShoeState.READY and device.in_shoe != table.round.pack_id
        by = self.dealer_by(now_s)
        if by is not None and (out or other or not progress.opened):
            self.do(self.procedure.voiding.empty_device, by)

    def load_if_ready(self, now_s: int) -> None:
        """The device has a pack in its shoe whose turn it is."""
        table, device = self.procedure.table, self.state.device
        if table.state != "between" or device.shoe != ShoeState.READY or device.survey:
            return
        pack = next((each for each in table.packs() if each.pack_id == device.in_shoe), None)
        if pack is not None and pack.state == "shuffled" and self.machine.in_turn():
            self.do(self.procedure.packs.load, self.device_by(now_s), pack.pack_id)

    def _warn_of_hours(self, now_s: int) -> None:
        for pack in self.procedure.table.packs():
            left_s = self.procedure.packs.hours_left_s(pack, now_s)
            if left_s is None:
                continue
            due = next((each for each in WARN_MINUTES if left_s <= each * 60), None)
            if due is not None and due < self.state.warned.get(pack.pack_id, WARN_MINUTES[-1] + 1):
                self.state.warned[pack.pack_id] = due
                self.row("hours_warned", PROGRAM, {
                    "pack_id": pack.pack_id, "minutes": due, "until_s": now_s + left_s,
                })  # fmt: skip

    def rows_after(self, after: int = 0) -> Sequence[Any]:
        """Rows of the record, for faces."""
        return self._record.rows(after)


OUTSIDE = frozenset({
    "receive", "inspect", "verify", "spread", "spread_idle", "wash", "stack", "stack_unwashed", "accept_prepared",
    "decline_cut", "cut", "order_recut", "place_cover", "load", "burn", "open_table", "close_table", "idle",
    "player_arrives", "change_method", "play_one_pack", "repaired", "start_shuffle", "finish_shuffle", "remove",
    "identify",
})  # fmt: skip
"""Actions that belong to no round, also while one is played."""
__all__ = [
    "ActDone", "ActRefused", "Answered", "DeviceCommand", "Failed", "NeedGone", "NotYours", "People",
    "StateChanged", "TableSession", "acts",
]  # fmt: skip
