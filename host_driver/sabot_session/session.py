"""The session of one table: takes in inputs, and commits what follows from each in one step.

Inputs are acts of people, events and answers of the device, notes of the floor, and the time. Outputs are
needs, requests to the device and rows of the record. The session does no input or output except through
its `Record`, and starts no thread. Calls must not overlap (`threaded_session` has a lock).

One input makes one step. A step commits its rows together with the new state. Only after the commit do
`changes` and `take_command` show what followed. If anything in the step fails, the commit included, the
session goes back to the state before the step.
"""

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from sabot_driver.errors import SabotError
from sabot_protocol.errors import FieldError
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import Message
from sabot_protocol.host.messages import Buttons
from sabot_session import act_handlers, notes, shoe_results, unexplained
from sabot_session.acts import Act
from sabot_session.countersigned_rows import act_in_words
from sabot_session.device_reports import DEVICE, PROGRAM
from sabot_session.device_side import CARDS_OUT, NONCE_SIZE
from sabot_session.needs import Need
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
from sabot_session.rows import Actor, Authentication, DeviceEventId, Json, Record, SavedSession
from sabot_session.session_state import NeedHistory, OutboxCommand, SessionState, Stranger, save
from sabot_session.session_step import SessionStep
from sabot_session.snapshot import Changes, ChangeStream, snapshot
from sabot_session.unexplained import UNFIT
from sabot_table.errors import TableError
from sabot_table.house_policy import HousePolicy
from sabot_table.procedure import Attribution, TableRole
from sabot_table.procedure.memory import TableMemory
from sabot_table.ruleset import RuleSet

MOST_REMEMBERED = 256  # entries of each dictionary that only lives in memory: a table runs for weeks


def random_nonce(shuffle_id: int) -> bytes:
    """Draw the host's nonce for a shuffle from the system's generator; it must be unpredictable."""
    return secrets.token_bytes(NONCE_SIZE)


class People(Protocol):
    """The register of people, as the session uses it."""

    def authenticate(self, shown: Any, at_s: int, /) -> Authenticated:
        """The person whom ``shown`` (key, badge or certificate, and PIN) proves; `SabotError` if nobody."""


class TableSession(SessionStep):
    """One table as people run it. Times (``now_s``) are UTC seconds.

    Handlers work on the base class; its attributes ``state`` and ``procedure`` change only within a step.
    """

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
        """Continue the session that the record has saved; begin a new one if the record is new.

        ``policy``: restrictions of the house beyond the rule text. ``nonce`` makes the host's nonce for a
        shuffle id. Raises `BadSavedSession` if the saved session is damaged, newer, or of another rule set.
        """
        saved = record.load()
        if saved is None:
            memory = TableMemory(rules.sha256, method=rules.dealing.methods[0])
            self._saved = save(SessionState(memory))
            self.journal_at = 0
        else:
            self._saved = saved.state
            self.journal_at = saved.journal_at
        super().__init__(rules, record, self._saved, table=table, policy=policy, nonce=nonce)
        self._people = people
        self._device_keys: dict[str, Any] = {}  # act id -> its person's key for the device; never on disk
        self._handed_out: set[int] = set()  # ids of commands that `take_command` has returned
        self._met_by: dict[str, str] = {}  # need id -> the person who met it, in this run of the program
        self._stream = ChangeStream()
        self.notice = ""
        """Why the rules refused the newest press of a machine's button; "" after the next step."""
        self.state.device.up = False
        self._interrupted = self.state.running
        self._update_need_history(self.state.memory.newest_s)
        self._saved = save(self.state)  # a first step that fails goes back to this, with the link down
        self._stream.publish(snapshot(self))

    # -- what others see ------------------------------------------------------------------------

    def needs(self) -> list[Need]:
        """What must happen now, the most urgent first. Within a step, use `needed`."""
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

    def snapshot(self) -> dict[str, Any]:
        """The table as versioned JSON. It holds no card that the dealer has not exposed."""
        return snapshot(self)

    def changes(self, after: str | None) -> Changes | None:
        """The parts of the snapshot that changed since the cursor ``after``; None if none did.

        All parts if ``after`` is None, too old, or of another run of the program.
        """
        return self._stream.changes(after)

    @property
    def cursor(self) -> int:
        """The number of the record's newest row, for ``seen`` of `act`; not the cursor of `changes`."""
        return self.state.rows

    def awaits_device(self) -> bool:
        """Whether the session waits for this table's machine: for its link, its state or an answer."""
        device = self.state.device
        if self.state.stranger is not None:
            return False  # nothing is sent to it
        return not device.up or bool(device.survey) or bool(self.state.outbox)

    def take_command(self) -> DeviceCommand | None:
        """Return the oldest request of the outbox for sending, once.

        None if the link is down, the outbox is empty, or its oldest request was returned before and has no
        answer yet. So at most one request is on its way.
        """
        if not self.state.outbox or self.state.outbox[0].id in self._handed_out or not self.state.device.up:
            return None
        first = self.state.outbox[0]
        self._handed_out.add(first.id)
        return self._command(first)

    def open_command(self) -> DeviceCommand | None:
        """The oldest request of the outbox, whether or not it was sent.

        A program that starts calls this once: an earlier run may have sent the request. The program finds
        out its outcome and gives it to `answer`.
        """
        return self._command(self.state.outbox[0]) if self.state.outbox else None

    def _command(self, saved: OutboxCommand) -> DeviceCommand:
        kind: Any = messages.BY_NAME[saved.name]
        key = self._device_keys.get(saved.act_id) if saved.role else None
        return DeviceCommand(saved.id, kind.unpack(bytes.fromhex(saved.body)), bool(saved.role), key)

    # -- people ---------------------------------------------------------------------------------

    def act(
        self, act_id: str, need_id: str | None, seen: int, credential: object, act: Act, now_s: int
    ) -> ActDone:
        """Check a person's act, execute it, and commit it.

        If the record has a row with this ``act_id``, nothing happens and the result names that row. So a
        caller that got no answer can repeat the call.

        ``need_id``: the need that the act meets. With None, need and ``seen`` are not checked (an offer).
        ``seen``: the newest row of the record that the person saw.
        ``credential``: what the person shows; None stands for the dealer who is signed in.

        Raises `NeedGone`, `StateChanged`, `NotYours` or another `ActRefused`; what the register of people
        raises; `RuleViolation` or another `TableError` of the procedure; `RecordFailed`. After any of them
        the session is unchanged.
        """
        before = self._record.act(act_id)
        if before is not None:
            return ActDone(before.number, repeated=True)
        if need_id is not None:
            self._check_need(need_id, seen, act)
        actor, key = self._authenticate(credential, act, now_s)

        def change() -> None:
            self.acting(actor)
            by = Attribution(actor.person, actor.role, now_s)
            act_handlers.HANDLERS[type(act)](self, act, by, act_id)
            if not self._rows:
                raise AssertionError(f"{act.NAME} left no row")
            self._rows = [replace(each, act_id=act_id) for each in self._rows]

        if key is not None:
            _remember(self._device_keys, act_id, key)
        try:
            self._step(now_s, change)
        except (SabotError, TableError):
            self._device_keys.pop(act_id, None)
            raise
        except FieldError as error:  # such as a time before 2026, by a wrong clock of this computer
            self._device_keys.pop(act_id, None)
            advice = "Check this computer's date and time, and what was typed."
            raise ActRefused(
                f"{act.NAME}: no request to the machine can say this: {error}", advice
            ) from error
        if need_id is not None:
            _remember(self._met_by, need_id, actor.person)
        committed = self._record.act(act_id)
        return ActDone(self.state.rows if committed is None else committed.number)

    def _check_need(self, need_id: str, seen: int, act: Act) -> None:
        need = next((each for each in self.needs() if each.id == need_id), None)
        if need is None:
            by = self._met_by.get(need_id, "")
            what = f"this was done before by {by}" if by else "this is no longer needed"
            raise NeedGone(f"{act.NAME}: {what}", by)
        if act.NAME not in need.acts:
            raise ActRefused(f"{act.NAME} does not meet '{need.words}'")
        if seen < need.seen:
            raise StateChanged(f"{act.NAME}: '{need.words}' has changed since you looked")

    def _authenticate(self, credential: object, act: Act, now_s: int) -> tuple[Actor, Any]:
        """The actor of an act, and the person's key for the device (None if there is none).

        The role is the first that the act, the rule text with the house policy, and the register allow.
        """
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
            has = " and ".join(sorted(who.roles)) or "no role here"
            what = act.NAME.replace("_", " ")
            raise NotYours(f"{what}: this is an act of {' or '.join(allowed)}; {who.person} is {has}")
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
        """Take in that the link to a device is up or down.

        A serial number other than this table's machine's makes the device a stranger: the session sends it
        nothing. ``emulated``: the device proved, with a key of the simulators' store, that it is emulated.
        """

        def change() -> None:
            self.state.simulated_people = emulated if up else self.state.simulated_people
            known = self.state.device.serial
            if known and serial and serial != known:
                self._note_stranger(Stranger(serial, memory_id, model, up))
            else:
                self.state.stranger = None
                self.machine.link(up, serial, memory_id, model)

        self._step(now_s, change)

    def _note_stranger(self, seen: Stranger) -> None:
        """Keep what is known of a machine that is not this table's, until service and floor accept it."""
        before = self.state.stranger
        if before is not None and before.serial == seen.serial:
            seen.installed_by, seen.journal_at = before.installed_by, before.journal_at
        self.state.stranger = seen
        self.state.device.up = False

    def _skip_stranger_event(self, at: int, now_s: int) -> None:
        """Note only the event's place in the journal.

        Its content is not needed: if the table accepts the machine, the session asks it for its whole state.
        """

        def change() -> None:
            if self.state.stranger is not None:
                self.state.stranger.journal_at = max(self.state.stranger.journal_at, at)

        self._step(now_s, change)

    def journal_of(self, serial: str) -> int:
        """The newest place taken in from a machine's journal; 0 for a machine that is not this table's."""
        return self.journal_at if serial in (self.state.device.serial, "") else 0

    def device_event(self, at: int, message: Message | None, boot: int, number: int, now_s: int) -> None:
        """Take in an event of the device. ``message`` is None for an event that this program does not know.

        ``at`` is its place in the driver's journal; a place that was taken in before is ignored. ``boot``
        and ``number`` identify the event in rows.
        """
        if self.state.stranger is not None:
            self._skip_stranger_event(at, now_s)
            return
        if at <= self.journal_at:
            return
        device = self.state.device
        event = DeviceEventId(device.serial, device.memory_id, boot, number)

        def change() -> None:
            if message is not None:
                self.machine.hear(message)
                self.reports.hear(message, now_s)

        def machine_state_only() -> None:
            if message is not None:
                self.machine.hear(message)

        if isinstance(message, Buttons):
            self._step_or_notice(now_s, change, at, event)
        else:
            what = "an event" if message is None else message.NAME
            self._step_or_unexplained(now_s, what, change, machine_state_only, journal_at=at, event=event)

    def events_lost(self, at: int, now_s: int) -> None:
        """Take in that the device lost events, and ask it for its whole state again.

        If cards of a round are out, the answer decides whether the round is void
        (`DeviceState.lost_events`). ``at`` as in `device_event`.
        """
        if at <= self.journal_at or self.state.stranger is not None:
            return

        def change() -> None:
            self.state.device.lost_events = self.procedure.table.state in CARDS_OUT
            self.machine.events_lost()

        self._step(now_s, change, journal_at=at)

    def answer(self, command_id: int, result: Answered | Failed, now_s: int) -> None:
        """Take in the outcome of the oldest request. An outcome for any other id is ignored."""
        if not self.state.outbox or self.state.outbox[0].id != command_id:
            return
        command = self._command(self.state.outbox[0])

        def remove_from_outbox() -> OutboxCommand:
            if result.number:
                self.state.device.last_number = result.number
            return self.state.outbox.pop(0)

        def change() -> None:
            done = remove_from_outbox()
            if isinstance(result, Answered):
                self.reports.executed(command.message, result.message, now_s)
            else:
                self.reports.failed(command.message, result, done, now_s)

        def machine_state_only() -> None:
            remove_from_outbox()
            self.machine.answer_unfit(command.message)

        self._step_or_unexplained(now_s, f"{command.message.NAME} answered", change, machine_state_only)
        self._handed_out.discard(command_id)

    # -- other inputs ---------------------------------------------------------------------------

    def must_hit(self, seat: int, now_s: int) -> None:
        """Take in that the progressive controller named the winner of its Must Hit meter (MDM 12.N)."""

        def change() -> None:
            meters = self.procedure.table.meters()
            meter = None if meters is None else meters.by_name.get("must-hit")
            by = Attribution("controller", TableRole.CONTROLLER, now_s)
            self._actors[by.who, by.role] = Actor("", TableRole.CONTROLLER, Authentication.SENSED)
            told: dict[str, Json] = {"seat": seat, "cents": 0 if meter is None else meter.cents}
            self.do(self.procedure.round_end.must_hit, by, seat, told=told)

        self._step(now_s, change)

    def receive_note(self, note: notes.Note, now_s: int) -> bool:
        """Take in a note of the floor; False if the table has it already.

        Raises `NoteRefused` if the table does not accept it; nothing has changed then.
        """
        if notes.is_known(self, note):
            return False
        self._step(now_s, lambda: notes.receive(self, note, now_s))
        return True

    def tick(self, now_s: int) -> None:
        """Take in the time: warn of packs whose hours end, and query the tray if the session waits for it."""

        def change() -> None:
            self.reports.warn_of_hours(now_s)
            if not self.state.outbox:
                request = self.machine.poll()
                if request is not None:
                    self.queue(request)

        self._step(now_s, change)

    def end(self, now_s: int) -> None:
        """Take in that the program ends in order: the next run writes no row `interruption`."""

        def change() -> None:
            self.state.running = False

        self._step(now_s, change)

    # -- one step -------------------------------------------------------------------------------

    def _step_or_notice(self, now_s: int, change: Callable[[], None], at: int, event: DeviceEventId) -> None:
        """Take in a press of a button. The rules may refuse it like any act: then `notice` says why."""
        try:
            self._step(now_s, change, journal_at=at, event=event)
        except UNFIT as error:
            self._step(now_s, lambda: None, journal_at=at, notice=str(error))

    def _step_or_unexplained(
        self,
        now_s: int,
        what: str,
        change: Callable[[], None],
        machine_state_only: Callable[[], object],
        *,
        journal_at: int | None = None,
        event: DeviceEventId | None = None,
    ) -> None:
        """Take in a report of the device, which cannot be refused.

        If the rules refuse ``change``, the step runs ``machine_state_only`` instead, and a row `unexplained`
        has the refusal.
        """
        try:
            self._step(now_s, change, journal_at=journal_at, event=event)
        except UNFIT as error:
            refusal = error

            def note() -> None:
                machine_state_only()
                unexplained.note(self, DEVICE, what, refusal)

            self._step(now_s, note, journal_at=journal_at, event=event)

    def _step(
        self,
        now_s: int,
        change: Callable[[], None],
        *,
        journal_at: int | None = None,
        event: DeviceEventId | None = None,
        notice: str = "",
    ) -> None:
        """Run ``change`` and what follows from it, and commit rows and state together.

        Nothing is written if neither rows nor state differ. After any exception the state is the saved one.
        If only what follows automatically is refused, ``change`` is committed with a row `unexplained`. For
        that ``change`` runs a second time, on the saved state.
        """
        self._now_s = now_s
        self.notice = notice
        try:
            self._apply(change, event)
            try:
                self._apply_automatic(now_s)
            except UNFIT as error:
                self._load(self._saved)
                self._apply(change, event)
                unexplained.note(self, PROGRAM, "what follows from the table's state", error, once=True)
            rows = self._rows
            for number, row in enumerate(rows, self.state.rows + 1):
                if row.data.get("countersign"):
                    self.state.countersign.append(number)
                    self.state.countersign_words[number] = act_in_words(row)
            self.state.rows += len(rows)
            self._update_need_history(now_s)
            saved = save(self.state)
            at = self.journal_at if journal_at is None else journal_at
            at = at if self._new_journal_at is None else self._new_journal_at
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
            self._new_journal_at = None

    def _apply(self, change: Callable[[], None], event: DeviceEventId | None) -> None:
        self._rows, self._actors = [], {}
        self.event = event
        self._note_interruption()
        self._note_policy()
        change()
        self._write_log({})

    def _apply_automatic(self, now_s: int) -> None:
        """Run the procedure's actions that need no person, and queue the next request if none is open."""
        self.reports.go_on(now_s)
        self._write_log({})
        shoe_results.forget_if_over(self.state.results, self.procedure.table.memory)
        if not self.state.outbox:
            request = self.machine.next_request()
            if request is not None:
                self.queue(request)

    def _note_interruption(self) -> None:
        """Write the row `interruption` in the first step of a run, if the run before did not call `end`."""
        if self._interrupted:
            open_commands: list[Json] = [str(each.id) for each in self.state.outbox]
            data: dict[str, Json] = {"last_s": self.state.memory.newest_s, "commands": open_commands}
            playing = self.procedure.table.memory.round
            round_id = 0 if playing is None else playing.round_id
            self.row("interruption", PROGRAM, data, round_id=round_id)
        self.state.running = True

    def _note_policy(self) -> None:
        """Write the row `house_policy` if the policy is another one than in the step before."""
        name, sha256 = ("", "") if self._policy is None else (self._policy.name, self._policy.sha256)
        if self.state.policy != sha256:
            self.row("house_policy", PROGRAM, {"name": name, "sha256": sha256})
            self.state.policy = sha256

    def _update_need_history(self, now_s: int) -> None:
        """Number new needs, forget those that are gone, and note which needs changed.

        A need has changed if its roles, acts or details differ. Another text alone is no change.
        """
        known: dict[str, NeedHistory] = {}
        for form in self._needs.forms():
            key, content = f"{form.kind} {form.key}", repr((form.roles, form.acts, form.details))
            before = self.state.needs.get(key)
            if before is None:
                before = NeedHistory(self.state.next_need, now_s, self.state.rows, content)
                self.state.next_need += 1
            elif before.form != content:
                before = NeedHistory(before.number, before.since_s, self.state.rows, content)
            known[key] = before
        self.state.needs = known


def _remember(entries: dict[str, Any], name: str, value: object) -> None:
    """Add an entry; beyond `MOST_REMEMBERED`, drop the oldest."""
    entries[name] = value
    while len(entries) > MOST_REMEMBERED:
        del entries[next(iter(entries))]
