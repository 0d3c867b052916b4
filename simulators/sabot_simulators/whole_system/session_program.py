"""The table's session in the table PC's program, in virtual time; it lives and dies with the driver's.

``sabot_session.threaded_session`` is the shell that people use. This one does the same step by step: events
come from the driver's journal, requests go through the driver, and an earlier run's request is looked up.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from sabot_driver.errors import (
    DeviceRebooted,
    DeviceTimeout,
    JournalError,
    LinkLost,
    OutcomeUnknown,
    Refused,
    SabotError,
    SessionEnded,
)
from sabot_driver.link_state import LinkState
from sabot_driver.received_events import LostEvents, parse_entry
from sabot_driver.serial_numbers import format_serial
from sabot_protocol.host.message_base import Command, astuple
from sabot_session.acts import Act
from sabot_session.device_side import NONCE_SIZE
from sabot_session.errors import RecordFailed
from sabot_session.needs import Need
from sabot_session.outcomes import ActDone, Answered, DeviceCommand, Failed
from sabot_session.record import SqliteRecord
from sabot_session.record_opening import open_record
from sabot_session.session import TableSession
from sabot_simulators.simulated_staff import SimulatedRegister
from sabot_simulators.whole_system.table_pc import TRY_AGAIN_US, Call
from sabot_simulators.whole_system.world import TIMEOUT_MS, WholeSystem
from sabot_table.ruleset import RuleSet

SECOND_US = 1_000_000
LAYING_US = 200_000  # people lay the cards in before the machine is told to shuffle them
LOOK_UP_US = 500_000
DISK_ERRORS = (RecordFailed, JournalError, sqlite3.Error)


class SessionProgram:
    """A `TableSession` over the table PC's driver and a record on its disk."""

    def __init__(self, world: WholeSystem, path: Path, rules: RuleSet) -> None:
        self._world = world
        self._path = path
        self._rules = rules
        self._random = Random(f"{world.scenario.seed}/session")
        self._serial = format_serial(world.pc.serial)
        self.session: TableSession | None = None
        self.record: SqliteRecord | None = None
        self.given: dict[str, str] = {}
        """Every act that people gave, by its id, whether or not they were told that it was taken."""
        self.taken: dict[str, int] = {}
        """Acts that people were told to be on record: the row."""
        self.runs = 0
        self.on_refused: Callable[[object], None] = lambda message: None
        """Called with a request that the device refused."""
        self._restoring = False
        self._up = False
        self._at = 0  # how far the journal is read
        self._sent: tuple[DeviceCommand, Call] | None = None
        self._tick_us = 0
        self._not_before_us = 0

    # -- people ---------------------------------------------------------------------------------

    @property
    def serves(self) -> bool:
        """Whether people can look at it and act."""
        return self.session is not None and not self._restoring

    def needs(self) -> list[Need]:
        """What must happen now; nothing if the program does not run."""
        return self.session.needs() if self.session is not None and self.serves else []

    def act(self, act_id: str, need_id: str | None, seen: int, credential: object, act: Act) -> ActDone:
        """Give an act. Its id comes from the seed."""
        assert self.session is not None
        act_id = self._random.randbytes(8).hex()
        self.given[act_id] = act.NAME
        try:
            done = self.session.act(act_id, need_id, seen, credential, act, self._now_s())
        except DISK_ERRORS as error:
            self._disk_failed(error)
            raise
        self.taken[act_id] = done.row
        self._world.note(f"act {act.NAME}")
        return done

    # -- the program's life ---------------------------------------------------------------------

    def step(self) -> None:
        """Do what is due."""
        pc = self._world.pc
        if not pc.running or pc.journal is None or self._world.machine.agenda.now_us < self._not_before_us:
            return
        try:
            if self.session is None:
                self._begin()
            self._take_in()
        except DISK_ERRORS as error:
            self._disk_failed(error)
        except Exception as error:  # noqa: BLE001  a session must not fail, whatever the device does
            self._world.problem(f"the session failed: {error!r}")
            self._end_program()

    def _ended(self, in_order: bool) -> None:
        """The program ends: in order, or it is gone, and its record stays as the disk has it."""
        session, self.session = self.session, None
        record, self.record = self.record, None
        self._sent = None
        if record is None:
            return
        try:
            if in_order and session is not None:
                session.end(self._now_s())
        except DISK_ERRORS as error:
            self._world.note(f"the session could not note its end: {type(error).__name__}")
        record.close()

    def _begin(self) -> None:
        pc = self._world.pc
        assert pc.journal is not None
        self.record, _ = open_record(self._path, self._rules, pc.journal, self._now_s())
        self.session = TableSession(
            self._rules,
            self.record,
            SimulatedRegister(),
            nonce=lambda shuffle_id: self._random.randbytes(NONCE_SIZE),
        )
        pc.session_ends = self._ended
        self.runs += 1
        self._restoring, self._up, self._sent = True, False, None
        self._at = self.session.journal_of(self._serial)
        self._world.note(f"the session begins at row {self.session.cursor}")

    def _disk_failed(self, error: Exception) -> None:
        """The record could not be written: the program ends and is started again a little later."""
        self._world.note(f"the session ends: {type(error).__name__}")
        self._end_program()

    def _end_program(self) -> None:
        pc, agenda = self._world.pc, self._world.machine.agenda
        if not pc.disk.powered:
            pc.power_off()
        else:
            pc.kill()
        self._not_before_us = agenda.now_us + TRY_AGAIN_US
        agenda.after(TRY_AGAIN_US, pc.start, None)

    def _now_s(self) -> int:
        return self._world.pc.utc_us() // SECOND_US

    # -- inputs ---------------------------------------------------------------------------------

    def _take_in(self) -> None:
        session, pc = self.session, self._world.pc
        assert session is not None
        assert pc.journal is not None
        if self._restoring:
            if not pc.up:
                return
            self._look_up_open(session)
            self._restoring = False
        self._link(session)
        for entry in pc.journal.after(self._at):
            event = parse_entry(entry)
            if isinstance(event, LostEvents):
                session.events_lost(event.id, self._now_s())
            else:
                session.device_event(event.id, event.message, event.boot_id, event.n, self._now_s())
            self._at = event.id
        self._answers(session)
        now_us = self._world.machine.agenda.now_us
        if now_us >= self._tick_us:
            self._tick_us = now_us + SECOND_US
            session.tick(self._now_s())
        command = session.take_command()
        if command is not None:
            self._prepare(command)

    def _link(self, session: TableSession) -> None:
        connection = self._world.pc.connection
        assert connection is not None
        peer, up = connection.peer, connection.link is LinkState.UP
        if peer is None or up == self._up:
            return
        self._up = up
        memory_id = peer.memory_id.hex()
        session.link(up, self._now_s(), serial=self._serial, memory_id=memory_id, model="", emulated=True)

    # -- requests -------------------------------------------------------------------------------

    def _prepare(self, command: DeviceCommand) -> None:
        """People lay in what the command is about; then it is sent."""
        world, session = self._world, self.session
        assert session is not None
        if command.needs_key and command.key is None:
            session.answer(command.id, Failed(), self._now_s())  # the person must act again
            return
        laid = world.machine.powered and world.before_command(command.message.NAME, astuple(command.message))
        world.machine.agenda.after(LAYING_US if laid else 0, self._send, (session, command))

    def _send(self, what: tuple[TableSession, DeviceCommand]) -> None:
        session, command = what
        pc = self._world.pc
        if session is not self.session:
            return
        key = command.key
        by = None if key is None else (int(key.role), key.key)
        try:
            self._sent = command, pc.ask(command.message, TIMEOUT_MS, by)
        except SabotError as error:
            failed = Failed(error)
            self._later(lambda: self._answer(session, command, failed))

    def _later(self, what: Callable[[], None]) -> None:
        session = self.session

        def run(_: None) -> None:
            if session is self.session and session is not None:
                self._guarded(what)

        self._world.machine.agenda.after(LOOK_UP_US, run, None)

    def _guarded(self, what: Callable[[], None]) -> None:
        try:
            what()
        except DISK_ERRORS as error:
            self._disk_failed(error)
        except Exception as error:  # noqa: BLE001  a session must not fail, whatever the device does
            self._world.problem(f"the session failed: {error!r}")
            self._end_program()

    def _answers(self, session: TableSession) -> None:
        if self._sent is None or not self._sent[1].future.done():
            return
        (command, call), self._sent = self._sent, None
        error = call.future.exception()
        number = call.number if isinstance(command.message, Command) else 0
        if error is None:
            self._answer(session, command, Answered(call.future.result(), number))
        elif isinstance(error, DeviceTimeout | LinkLost | OutcomeUnknown) and number:
            self._look_up(session, command, number)
        elif isinstance(error, DeviceTimeout | LinkLost | DeviceRebooted | SessionEnded):
            self._answer(session, command, Failed(None, number))
        elif isinstance(error, SabotError):
            if isinstance(error, Refused):
                self._world.command_refused()
                self.on_refused(command.message)
            self._answer(session, command, Failed(error, number))
        else:
            raise error

    def _answer(self, session: TableSession, command: DeviceCommand, result: Answered | Failed) -> None:
        session.answer(command.id, result, self._now_s())

    def _look_up(self, session: TableSession, command: DeviceCommand, number: int) -> None:
        """A command without an answer: the device's ledger tells its outcome once it can be asked."""
        pc = self._world.pc
        try:
            future = pc.resolve(number) if pc.up else None
        except SabotError:
            future = None
        if future is None:
            self._later(lambda: self._look_up(session, command, number))
            return
        self._wait_for(session, command, number, future)

    def _wait_for(self, session: TableSession, command: DeviceCommand, number: int, future: Any) -> None:
        if not future.done():
            self._later(lambda: self._wait_for(session, command, number, future))
            return
        error = future.exception()
        if error is None:
            self._answer(session, command, Answered(None, number))
        elif isinstance(error, DeviceTimeout | LinkLost | SessionEnded):
            self._later(lambda: self._look_up(session, command, number))
        elif isinstance(error, SabotError):
            self._answer(session, command, Failed(None, number, unknown=isinstance(error, OutcomeUnknown)))
        else:
            raise error

    def _look_up_open(self, session: TableSession) -> None:
        """The request that an earlier run left without an answer; the driver knows the outcome by now."""
        command, journal = session.open_command(), self._world.pc.journal
        if command is None:
            return
        assert journal is not None
        last = session.state.device.last_number
        body = (command.message.ID, command.message.pack())
        found = None
        for each in journal.commands():
            if each.number > last and (each.message, each.body) == body:
                found = each
        if found is None or not isinstance(command.message, Command):
            session.answer(command.id, Failed(), self._now_s())
        elif found.outcome == "done":
            session.answer(command.id, Answered(None, found.number), self._now_s())
        else:
            unknown = found.outcome != "not_executed"
            session.answer(command.id, Failed(None, found.number, unknown=unknown), self._now_s())
