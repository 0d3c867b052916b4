"""One table: procedure, device, people and record, without input and output.

Acts of people, events of the device, answers and times go in. Needs, requests to the device and rows of the
record come out. Everything that one input changes is committed with its rows before anything of it is
visible. If the commit fails, the session is what it was before.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from sabot_driver.errors import SabotError
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import Message, Request
from sabot_protocol.host.messages import Buttons
from sabot_session import act_handlers, notes, shoe_results, unexplained
from sabot_session.acts import Act
from sabot_session.dealing_way import DealingWays
from sabot_session.device_reports import DEVICE, PROGRAM, DeviceReports
from sabot_session.device_side import CARDS_OUT, NONCE_SIZE, OVER, DeviceSide
from sabot_session.needs import Need, NeedKind
from sabot_session.outcomes import (
    ActDone,
    ActRefused,
    Answered,
    DeviceCommand,
    Failed,
    NeedGone,
    NotYours,
    StateChanged,
)
from sabot_session.people import Authenticated
from sabot_session.row_kinds import BY_NAME
from sabot_session.rows import (
    Actor,
    Authentication,
    DeviceEventId,
    Json,
    NumberedRow,
    Record,
    Row,
    SavedSession,
)
from sabot_session.session_state import (
    Announcement,
    NeedHistory,
    OutboxCommand,
    SessionState,
    Stranger,
    restore,
    save,
)
from sabot_session.snapshot import Changes, ChangeStream, snapshot
from sabot_session.table_needs import TableNeeds
from sabot_session.table_rows import KINDS, UNWRITTEN, UNWRITTEN_OF, clause_of, row_data
from sabot_session.unexplained import UNFIT
from sabot_table.errors import ImpossibleCards, RuleViolation
from sabot_table.house_policy import HousePolicy
from sabot_table.procedure import Attribution, TableProcedure, TableRole
from sabot_table.procedure.memory import TableMemory
from sabot_table.ruleset import RuleSet

MOST_KEPT = 256  # keys of acts, and who answered needs: a table runs for weeks


def random_nonce(shuffle_id: int) -> bytes:
    """Our part in a shuffle's chance: nobody can foretell it."""
    return secrets.token_bytes(NONCE_SIZE)


class People(Protocol):
    """The register of people: who somebody is, by what they hold and know."""

    def authenticate(self, shown: Any, at_s: int, /) -> Authenticated:
        """The person behind what somebody shows; `SabotError` if it proves nobody."""


class TableSession:
    """One table as people run it."""

    def __init__(
        self,
        rules: RuleSet,
        record: Record,
        people: People,
        *,
        table: str = "table",
        policy: HousePolicy | None = None,
        nonce: Callable[[int], bytes] = random_nonce,
    ) -> None:
        """Continue what is on record, or begin.

        ``policy`` is what the house allows less than the rule text. ``nonce`` gives ours for a shuffle id.
        """
        self.rules = rules
        self.name = table
        self._record = record
        self._people = people
        self._policy = policy
        self._nonce = nonce
        saved = record.load()
        if saved is None:
            memory = TableMemory(rules.sha256, method=rules.dealing.methods[0])
            self._saved = save(SessionState(memory))
            self.journal_at = 0
        else:
            self._saved = saved.state
            self.journal_at = saved.journal_at
        self._keys: dict[str, Any] = {}  # by act id, the newest: never written
        self._taken: set[int] = set()  # commands that the shell has
        self._answered_by: dict[str, str] = {}  # need id -> person, the newest
        self._stream = ChangeStream()
        self.notice = ""
        """What the machine's buttons asked for and the rules refused last; "" after the next step."""
        self._load(self._saved)
        self.state.device.up = False
        self._interrupted = self.state.running
        self._note_needs(self.state.memory.newest_s)
        self._stream.publish(snapshot(self))

    def _load(self, saved: str) -> None:
        self.state = restore(self.rules, saved)
        self.procedure = TableProcedure.restore(self.rules, self.state.memory.save(), self._policy)
        self.state.memory = self.procedure.table.memory
        self._load_parts()
        self._journal_now: int | None = None
        self._rows: list[Row] = []
        self._actors: dict[tuple[str, TableRole], Actor] = {}
        self._round_of_log = 0
        self.event: DeviceEventId | None = None
        """The event of the device that this step follows from."""

    def _load_parts(self) -> None:
        self.ways = DealingWays(self.state, self.procedure)
        self.machine = DeviceSide(self.state, self.procedure, self._nonce, self.ways)
        self.reports = DeviceReports(self)
        self._needs = TableNeeds(self.state, self.procedure, self.machine, self.ways)

    # -- what others see ------------------------------------------------------------------------

    def needs(self) -> list[Need]:
        """What must happen now, the most urgent first."""
        found = []
        for form in self._needs.forms():
            history = self.state.needs[f"{form.kind} {form.key}"]
            found.append(
                Need(
                    f"{form.kind}-{history.number}",
                    form.kind,
                    form.roles,
                    form.words,
                    form.clause,
                    form.acts,
                    history.since_s,
                    history.seen,
                    form.details,
                )
            )
        return found

    def needed(self) -> set[NeedKind]:
        """The kinds of needs that the state has now, also in the middle of a step."""
        return {each.kind for each in self._needs.forms()}

    def snapshot(self) -> dict[str, Any]:
        """The table as it stands, as versioned JSON; it holds no card that the dealer has not exposed."""
        return snapshot(self)

    def changes(self, after: str | None) -> Changes | None:
        """The parts of the snapshot that changed since a cursor; all of it without one, or after a gap."""
        return self._stream.changes(after)

    @property
    def cursor(self) -> int:
        """The record's newest row: the state that a person sees now."""
        return self.state.rows

    def awaits_device(self) -> bool:
        """Whether the machine has still to answer something; never for a machine that is not this table's."""
        device = self.state.device
        if self.state.stranger is not None:
            return False  # nothing is sent to it
        return not device.up or bool(device.survey) or bool(self.state.outbox)

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
            self.acting(actor)
            by = Attribution(actor.person, actor.role, now_s)
            act_handlers.HANDLERS[type(act)](self, act, by, act_id)
            if not self._rows:
                raise AssertionError(f"{act.NAME} left no row")
            self._rows = [replace(each, act_id=act_id) for each in self._rows]

        if key is not None:
            _keep(self._keys, act_id, key)
        try:
            self._step(now_s, take, actor=actor)
        except (SabotError, RuleViolation, ImpossibleCards):
            self._keys.pop(act_id, None)
            raise
        if need_id is not None:
            _keep(self._answered_by, need_id, actor.person)
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
        rule = self.procedure.table.rule(act.ACTION)
        allowed = [each for each in act.ROLES if rule is None or each in rule.who]
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
        self,
        up: bool,
        now_s: int,
        *,
        serial: str = "",
        memory_id: str = "",
        model: str = "",
        emulated: bool = False,
    ) -> None:
        """The link to the device is up or down.

        ``emulated``: its session proved that it is a simulator, with a key of the simulators' store.
        """

        def take() -> None:
            self.state.simulated_people = emulated if up else self.state.simulated_people
            known = self.state.device.serial
            if known and serial and serial != known:
                self._stranger_links(Stranger(serial, memory_id, model, up))
            else:
                self.state.stranger = None
                self.machine.link(up, serial, memory_id, model)

        self._step(now_s, take)

    def _stranger_links(self, seen: Stranger) -> None:
        """A machine answers that is not this table's: nothing goes to it before floor and service say so."""
        before = self.state.stranger
        if before is not None and before.serial == seen.serial:
            seen.installed_by, seen.journal_at = before.installed_by, before.journal_at
        self.state.stranger = seen
        self.state.device.up = False

    def _hear_stranger(self, at: int, now_s: int) -> None:
        """Once it is this table's machine, it is asked for all of its state: its events say nothing here."""

        def take() -> None:
            if self.state.stranger is not None:
                self.state.stranger.journal_at = max(self.state.stranger.journal_at, at)

        self._step(now_s, take)

    def machine_changed(self, journal_at: int) -> None:
        """The state has another machine: its journal is read on from here, at the end of this step."""
        self._load_parts()
        self._journal_now = journal_at

    def journal_of(self, serial: str) -> int:
        """How far the journal of a machine was read; 0 for one that is not this table's."""
        return self.journal_at if serial in (self.state.device.serial, "") else 0

    def device_event(self, at: int, message: Message | None, boot: int, number: int, now_s: int) -> None:
        """An event of the device; ``at`` is its place in the driver's journal. Known places are ignored."""
        if self.state.stranger is not None:
            self._hear_stranger(at, now_s)
            return
        if at <= self.journal_at:
            return
        device = self.state.device
        follows = DeviceEventId(device.serial, device.memory_id, boot, number)

        def take() -> None:
            if message is not None:
                self.machine.hear(message)
                self.reports.hear(message, now_s)

        def instead() -> None:
            if message is not None:
                self.machine.hear(message)

        if isinstance(message, Buttons):
            self._press(now_s, take, at, follows)
        else:
            what = "an event" if message is None else message.NAME
            self._report(now_s, what, take, instead, journal_at=at, follows=follows)

    def _press(self, now_s: int, take: Callable[[], None], at: int, follows: DeviceEventId) -> None:
        """A button is a person's touch: the rules may refuse it like any act."""
        try:
            self._step(now_s, take, journal_at=at, follows=follows)
        except UNFIT as error:
            self._step(now_s, lambda: None, journal_at=at, notice=str(error))

    def events_lost(self, at: int, now_s: int) -> None:
        """The device lost events before it could tell them: what it says of itself counts from now on."""
        if at <= self.journal_at or self.state.stranger is not None:
            return

        def take() -> None:
            self.state.device.lost_events = self.procedure.table.state in CARDS_OUT
            self.machine.link(
                True, self.state.device.serial, self.state.device.memory_id, self.state.device.model
            )

        self._step(now_s, take, journal_at=at)

    def answer(self, command_id: int, result: Answered | Failed, now_s: int) -> None:
        """What became of a request. A second answer to the same request is ignored."""
        if not self.state.outbox or self.state.outbox[0].id != command_id:
            return
        command = self._command(self.state.outbox[0])

        def ended() -> OutboxCommand:
            if result.number:
                self.state.device.last_number = result.number
            return self.state.outbox.pop(0)

        def take() -> None:
            done = ended()
            if isinstance(result, Answered):
                self.reports.executed(command.message, result.message, now_s)
            else:
                self.reports.failed(command.message, result, done, now_s)

        def instead() -> None:
            ended()
            self.machine.answer_unfit(command.message)

        self._report(now_s, f"{command.message.NAME} answered", take, instead)
        self._taken.discard(command_id)

    def must_hit(self, seat: int, now_s: int) -> None:
        """The progressive controller names the winner of its Must Hit meter (MDM 12.N)."""

        def take() -> None:
            meters = self.procedure.table.meters()
            meter = None if meters is None else meters.by_name.get("must-hit")
            by = Attribution("controller", TableRole.CONTROLLER, now_s)
            self._actors[by.who, by.role] = Actor("", TableRole.CONTROLLER, Authentication.SENSED)
            told: dict[str, Json] = {"seat": seat, "cents": 0 if meter is None else meter.cents}
            self.do(self.procedure.round_end.must_hit, by, seat, told=told)

        self._step(now_s, take)

    @property
    def takes_notes(self) -> bool:
        """Whether the rule text and the house policy let notes of the floor in."""
        text = self.rules.fixed.floor
        return text.notes if self._policy is None else self._policy.floor_terms(text).notes

    def receive_note(self, note: notes.Note, now_s: int) -> bool:
        """Take a note of the floor; False if the table took it before. `NoteRefused`: nothing has changed."""
        if notes.is_known(self, note):
            return False
        self._step(now_s, lambda: notes.receive(self, note, now_s))
        return True

    def tick(self, now_s: int) -> None:
        """Time passes: hours of packs, and cards that somebody may have laid into the tray."""

        def take() -> None:
            self.reports.warn_of_hours(now_s)
            if not self.state.outbox:
                request = self.machine.poll()
                if request is not None:
                    self.queue(request)

        self._step(now_s, take)

    # -- one step -------------------------------------------------------------------------------

    def _report(
        self,
        now_s: int,
        what: str,
        take: Callable[[], None],
        instead: Callable[[], object],
        *,
        journal_at: int | None = None,
        follows: DeviceEventId | None = None,
    ) -> None:
        """Take what the device told. What the rules refuse of it is on record, and the floor looks.

        ``instead`` is what is so whatever the rules say: the device's own state.
        """
        try:
            self._step(now_s, take, journal_at=journal_at, follows=follows)
        except UNFIT as error:
            refusal = error

            def note() -> None:
                instead()
                unexplained.note(self, DEVICE, what, refusal)

            self._step(now_s, note, journal_at=journal_at, follows=follows)

    def _step(
        self,
        now_s: int,
        take: Callable[[], None],
        *,
        actor: Actor | None = None,
        journal_at: int | None = None,
        follows: DeviceEventId | None = None,
        notice: str = "",
    ) -> None:
        self._now_s = now_s
        self.notice = notice
        try:
            self._take(take, follows)
            try:
                self._go_on(now_s)
            except UNFIT as error:
                self._load(self._saved)
                self._take(take, follows)
                unexplained.note(self, PROGRAM, "what follows from the table's state", error, once=True)
            rows = self._rows
            self.state.countersign += [
                self.state.rows + at for at, row in enumerate(rows, 1) if row.data.get("countersign")
            ]
            self.state.rows += len(rows)
            self._note_needs(now_s)
            saved = save(self.state)
            at = self.journal_at if journal_at is None else journal_at
            at = at if self._journal_now is None else self._journal_now
            if rows or saved != self._saved:
                self._record.commit(rows, SavedSession(saved, at))
            self._saved, self.journal_at = saved, at
            self._interrupted = False
            self._stream.publish(snapshot(self))
        except BaseException:
            self._load(self._saved)
            raise
        finally:
            self._rows = []
            self.event = None
            self._journal_now = None

    def _take(self, take: Callable[[], None], follows: DeviceEventId | None) -> None:
        self._rows, self._actors = [], {}
        self.event = follows
        self._note_interruption()
        self._note_policy()
        take()
        self._write_log({})

    def _go_on(self, now_s: int) -> None:
        """What follows from the state by itself: actions of the procedure, and the next request."""
        self.reports.go_on(now_s)
        self._write_log({})
        shoe_results.forget_if_over(self.state.results, self.procedure.table.memory)
        if not self.state.outbox:
            request = self.machine.next_request()
            if request is not None:
                self.queue(request)

    def _note_interruption(self) -> None:
        """The first step of a run: the run before was ended in the middle, or closed its table's session."""
        if self._interrupted:
            open_commands: list[Json] = [str(each.id) for each in self.state.outbox]
            data: dict[str, Json] = {"last_s": self.state.memory.newest_s, "commands": open_commands}
            playing = self.procedure.table.memory.round
            round_id = 0 if playing is None else playing.round_id
            self.row("interruption", PROGRAM, data, round_id=round_id)
        self.state.running = True

    def _note_policy(self) -> None:
        """The house policy in force is on record, from the first step that it is."""
        name, sha256 = ("", "") if self._policy is None else (self._policy.name, self._policy.sha256)
        if self.state.policy != sha256:
            self.row("house_policy", PROGRAM, {"name": name, "sha256": sha256})
            self.state.policy = sha256

    def end(self, now_s: int) -> None:
        """The program that runs this table ends, with nothing lost: the next run notes no interruption."""

        def take() -> None:
            self.state.running = False

        self._step(now_s, take)

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

    def set_game(self, act_id: str) -> None:
        """Have the machine set to what is dealt now, with the floor's act as authority; nothing if it is."""
        if self.ways.machine_serves():
            for request in self.machine.game_requests():
                self.queue(request, TableRole.FLOOR, act_id)

    def queue(self, request: Request[Any], role: TableRole | None = None, act_id: str = "") -> None:
        """Put a request into the outbox; ``role`` is whose credential the device asks for."""
        person = next((who for who, _ in self._actors), "") if role else ""
        self.state.outbox.append(
            OutboxCommand(
                self.state.next_command, request.NAME, request.pack().hex(), role or "", person, act_id
            )
        )
        self.state.next_command += 1

    def do(
        self,
        action: Callable[..., Any],
        by: Attribution,
        *args: Any,
        told: Mapping[str, Json] | None = None,
        **details: Any,
    ) -> Any:
        """An action of the procedure, and its rows; ``told`` is what only the act or the event knows."""
        playing = self.procedure.table.memory.round
        self._round_of_log = 0 if playing is None else playing.round_id  # one that ends has rows too
        result = action(by, *args, **details)
        self._write_log(told or {})
        return result

    def finish_round(self, by: Attribution) -> None:
        """A round whose cards are known is settled and collected by the act that says so."""
        table = self.procedure.table
        if table.state == "settling":
            self.reports.settle_by(by)
        if table.state in OVER:
            self.do(self.procedure.round_end.collect, by)
            self.state.round = None

    def row(
        self,
        kind: str,
        actor: Actor,
        data: Mapping[str, Json] | None = None,
        clause: str = "",
        round_id: int = 0,
    ) -> None:
        """A row that no action of the procedure writes."""
        self._rows.append(
            Row(kind, self._now_s, actor, data or {}, round_id, clause, follows=self._follows_of(actor))
        )

    def _follows_of(self, actor: Actor) -> DeviceEventId | None:
        if actor.how is not Authentication.SENSED:
            return None
        progress = self.state.round
        exposed = progress is not None and progress.exposed_by == actor
        return progress.exposed_event if exposed and progress is not None else self.event

    def _write_log(self, told: Mapping[str, Json]) -> None:
        table = self.procedure.table
        for order in table.take_orders():
            if order.do == "announce":  # what the others ask for follows from the state
                self.state.announcement = Announcement(str(order.details["text"]), table.state)
        playing = table.memory.round
        for by, what in table.take_log():
            action, _, pack = what.partition(" ")
            if action == "remove" and "destination" not in told:
                self.state.leaving.append(int(pack))  # the floor says where it goes
                continue
            if action in UNWRITTEN or (by.role, action) in UNWRITTEN_OF:
                continue
            actor = DEVICE if by.role is TableRole.DEVICE else self._actors[by.who, by.role]
            if action == "reveal" and actor is DEVICE:
                action = "cards_read"
            elif action == "reveal" and playing is not None and not playing.cards_known:
                continue  # the row of the exposure says so
            self._log_row(action, pack, actor, by.at_s, told)
            if action in VOIDING and playing is not None and playing.void_clause:
                rule = table.rule(action)
                signed = rule is not None and rule.countersign and by.role is TableRole.DEALER
                self._log_row("void", "", actor, by.at_s, {**told, "countersign": signed})

    def _log_row(self, action: str, what: str, actor: Actor, at_s: int, told: Mapping[str, Json]) -> None:
        pack_id = int(what) if what.isdigit() else 0  # a jam names the half instead
        table = self.procedure.table
        playing, kind = table.memory.round, KINDS.get(action, action)
        fields = BY_NAME[kind].data.model_fields
        known = {name: value for name, value in told.items() if name in fields}
        data = row_data(table, action, pack_id, playing, known)
        round_id = self._round_of_log if playing is None else playing.round_id
        round_id = 0 if action in OUTSIDE else round_id
        clause = clause_of(table, action, playing)
        self._rows.append(Row(kind, at_s, actor, data, round_id, clause, follows=self._follows_of(actor)))

    @property
    def next_row(self) -> int:
        """The number that the next row of this step gets."""
        return self.state.rows + len(self._rows) + 1

    def round_rows(self, round_id: int) -> Sequence[NumberedRow]:
        """The rows of a round on record."""
        return self._record.round_rows(round_id)

    def round_of_row(self, number: int) -> int:
        """The round that a row of the record belongs to; 0 if it belongs to none, or there is no such row."""
        found = self._record.rows(number - 1, 1)
        return found[0].row.round_id if found and found[0].number == number else 0

    def actor(self, by: Attribution) -> Actor:
        """Who acts in this step, as the record names them."""
        return self._actors[by.who, by.role]

    def acting(self, actor: Actor) -> None:
        """Rows of this step that name this person and role are this actor's."""
        self._actors[actor.person, actor.role] = actor

    def dealer_by(self, now_s: int) -> Attribution | None:
        """The dealer who is signed in, for what the machine sensed; None if nobody is."""
        dealer = self.state.dealer
        if dealer is None:
            return None
        how = dealer.how if dealer.how is Authentication.SIMULATED else Authentication.SIGNED_IN
        self._actors.setdefault(
            (dealer.person, TableRole.DEALER), Actor(dealer.person, TableRole.DEALER, how)
        )
        return Attribution(dealer.person, TableRole.DEALER, now_s)

    @staticmethod
    def device_by(now_s: int) -> Attribution:
        """The device, for what it told."""
        return Attribution("device", TableRole.DEVICE, now_s)


def _keep(kept: dict[str, Any], name: str, value: object) -> None:
    """Remember a value; the oldest one is forgotten where there are too many."""
    kept[name] = value
    while len(kept) > MOST_KEPT:
        del kept[next(iter(kept))]


OUTSIDE = frozenset(
    {
        "receive",
        "inspect",
        "verify",
        "spread",
        "spread_idle",
        "wash",
        "stack",
        "stack_unwashed",
        "accept_prepared",
        "decline_cut",
        "cut",
        "order_recut",
        "place_cover",
        "load",
        "burn",
        "open_table",
        "close_table",
        "idle",
        "player_arrives",
        "change_method",
        "play_one_pack",
        "repaired",
        "verify_shuffle",
        "deliver",
        "start_shuffle",
        "finish_shuffle",
        "remove",
        "identify",
    }
)
"""Actions that belong to no round, also while one is played."""
VOIDING = ("face_up_card", "too_few_cards", "wrong_number", "shoe_failed", "determine")
"""Acts that void the round; the row of the void follows theirs."""
