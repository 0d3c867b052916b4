"""The table PC: the shipped driver over a cable and a disk in virtual time, which can be killed."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from sabot_driver.connection import Connection
from sabot_driver.errors import JournalDamaged, Refused, SabotError
from sabot_driver.io_loop import BatchResult, IoLoop
from sabot_driver.journal import Journal, JournalBatch
from sabot_driver.link_state import LinkState
from sabot_driver.loop_shell import complete
from sabot_protocol import ticks
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import Request
from sabot_protocol.notifications import EventReceived
from sabot_simulators.mechanism.agenda import Agenda
from sabot_simulators.whole_system.cable import Cable
from sabot_simulators.whole_system.simulated_disk import SimulatedDisk

OPENING_UTC_US = 1_800_000_000_000_000
TRY_AGAIN_US = 5_000_000  # a program that could not open its journal is started again
RESOLVE_MS = 20_000
GRAVE = ("driver_failed", "step_not_allowed")


@dataclass
class Call:
    """One request of a program, from the moment it was made."""

    host_id: bytes
    number: int
    message: "Request[Any]"
    future: "Future[Any]"
    at_us: int
    timeout_ms: int
    ended_us: int | None = None
    killed: bool = False
    """The program was killed while it waited."""


class BatchWriter:
    """Writes batches to the journal when the disk has time (``io_loop.DiskWorker``)."""

    def __init__(self, agenda: Agenda, disk: SimulatedDisk, journal: Journal, pc: "TablePc") -> None:
        self._agenda = agenda
        self._disk = disk
        self._journal = journal
        self._pc = pc
        self._batch: JournalBatch | None = None
        self._result: BatchResult | None = None
        self.stopped = False

    def start(self, batch: JournalBatch) -> None:
        """Begin to write a batch."""
        self._batch = batch
        self._agenda.after(self._disk.delay_us(), self._begin, batch)

    def take(self) -> BatchResult | None:
        """The result, once."""
        result, self._result = self._result, None
        return result

    def write_now(self) -> None:
        """Write the batch that waits, if there is one, and have its result at once."""
        if self._batch is not None:
            self._result = self._write(self._batch)

    def _begin(self, batch: JournalBatch) -> None:
        if self.stopped or self._batch is not batch:
            return
        result = self._write(batch)
        if not self.stopped:  # else the computer lost its power meanwhile
            self._agenda.after(self._disk.waited_us, self._end, result)

    def _write(self, batch: JournalBatch) -> BatchResult:
        self._batch = None
        self._disk.waited_us = 0
        try:
            newest = self._journal.write(batch, self._pc.utc_us())
        except Exception as error:  # noqa: BLE001  the loop tells a failed disk from a bug
            if not self._disk.powered:
                self._pc.power_off()
            return BatchResult(batch, None, error)
        for memory_id, each in batch.events:
            if isinstance(each, EventReceived):
                self._pc.written[memory_id, each.boot_id] = each.n
        return BatchResult(batch, newest)

    def _end(self, result: BatchResult) -> None:
        if not self.stopped:
            self._result = result
            self._pc.on_input()


class TablePc:
    """A computer with the driver, as the owner of the device or as an observer."""

    def __init__(
        self,
        agenda: Agenda,
        random: Random,
        cable: Cable,
        disk: SimulatedDisk,
        path: Path,
        key: bytes,
        serial: bytes,
        slot: int,
        ticks_from_ms: int,
        problem: Callable[[str], None],
    ) -> None:
        self._agenda = agenda
        self._random = random
        self.cable = cable
        self.disk = disk
        self._path = path
        self._key = key
        self.serial = serial
        self._slot = slot
        self._ticks_from_ms = ticks_from_ms
        self._problem = problem
        self.owner = slot == messages.KeySlot.DEVICE
        self.clock_wrong_by_s = 0
        self.held_off = False
        """The program must not be started yet."""
        self.starts = 0
        """How often the program was started."""
        self.calls: list[Call] = []
        self.resolved: dict[int, Any] = {}
        """Answers, or errors, of commands whose outcome was asked for after a start."""
        self.journal: Journal | None = None
        self.connection: Connection | None = None
        self.loop: IoLoop | None = None
        self.written: dict[tuple[bytes, int], int] = {}
        """By memory id and boot id: the last event whose batch the journal reported as written."""
        self.session_ends: Callable[[bool], None] | None = None
        """Ends the session that runs in this program and closes its files; True if the program is stopped in
        order, False if it is gone."""
        self._open_calls: list[Call] = []
        self._writer: BatchWriter
        self._ready = True
        self._due_us: int | None = 0
        self._resolving: list[int] | None = None

    # -- the program's life ---------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether the program runs."""
        return self.loop is not None

    @property
    def up(self) -> bool:
        """Whether it has a session and knows the outcome of every earlier command."""
        return self.connection is not None and self.connection.link is LinkState.UP and self._resolving == []

    def now_ms(self) -> int:
        """The computer's own ticks."""
        return (self._agenda.now_us // 1000 + self._ticks_from_ms) & ticks.MASK

    def utc_us(self) -> int:
        """The computer's time of day."""
        return OPENING_UTC_US + self._agenda.now_us + self.clock_wrong_by_s * 1_000_000

    def start(self, _: object = None) -> None:
        """Start the program; if the journal cannot be opened, once more later."""
        if self.running or self.held_off:
            return
        self.disk.come_back()
        self.starts += 1
        try:
            self.journal = Journal(self._path, self.serial, self._random.randbytes)
            self.connection = Connection(
                "virtual:", self._key, self.serial, self.journal, self.now_ms(), owner=self.owner,
                slot=self._slot, utc_us=self.utc_us, random=self._random.randbytes,
            )  # fmt: skip
        except SabotError as error:
            if isinstance(error, JournalDamaged):
                self._problem(f"the journal cannot be opened: {error}")
            journal, self.journal = self.journal, None
            if journal is not None:
                self.disk.let_go(journal.close)
            self._agenda.after(TRY_AGAIN_US, self.start, None)
            return
        position = self.journal.position()
        self.written = {} if position is None else {position[:2]: position[2]}
        self.connection.protocol.acknowledge = self._acknowledge  # type: ignore[method-assign]
        self._writer = BatchWriter(self._agenda, self.disk, self.journal, self)
        self.loop = IoLoop(self.connection, self.cable.port, self._writer, self._wake)
        self.cable.port.on_input = self.on_input
        self._resolving = None
        self._ready = True

    def stop(self) -> None:
        """End the program in order: the session, then the journal."""
        loop = self.loop
        if loop is None or self.connection is None:
            return
        self._end_session(True)
        loop.close(self.now_ms())
        for _ in range(100):  # the last batch
            self._step()
            if loop.idle() or self.connection.write_ahead.error is not None:
                break
            self._writer.write_now()
        self._leave()
        assert self.journal is not None
        self.journal.close()
        self.journal = None

    def kill(self) -> None:
        """The program is gone at this moment; its files stay as the system has them."""
        if self.loop is None:
            return
        self._leave()
        journal, self.journal = self.journal, None
        assert journal is not None

        def close_files() -> None:
            journal.close()
            self._end_session(False)

        self.disk.let_go(close_files)

    def _end_session(self, in_order: bool) -> None:
        ends, self.session_ends = self.session_ends, None
        if ends is not None:
            ends(in_order)

    def power_off(self) -> None:
        """The computer loses its power: the program is gone, and so is what was not synchronised."""
        self.disk.lose_power()
        self.kill()

    def _leave(self) -> None:
        self.cable.port.start_close()
        self.loop = self.connection = None
        self._writer.stopped = True
        for call in self._open_calls:
            call.killed = not call.future.done()
        self._open_calls = []

    # -- steps ----------------------------------------------------------------------------------

    def next_us(self) -> int | None:
        """When the program has something to do by itself; None for never."""
        if self.loop is None:
            return None
        return self._agenda.now_us if self._ready else self._due_us

    def run_due(self) -> None:
        """Let the program do what is due."""
        due = self.next_us()
        while due is not None and due <= self._agenda.now_us:
            self._step()
            due = self.next_us()

    def _step(self) -> None:
        loop, connection = self.loop, self.connection
        assert loop is not None
        assert connection is not None
        self._ready = False
        try:
            self._wake(loop.step(self.now_ms()))
        except Exception as error:  # noqa: BLE001  the shell of the threads does the same
            self._problem(f"the driver failed: {error!r}")
            loop.fail(self.now_ms(), error)
            self._ready = True
        while connection.completions:
            complete(connection.completions.popleft())
        for call in list(self._open_calls):
            if call.future.done():
                call.ended_us = self._agenda.now_us
                self._open_calls.remove(call)
        for notice in connection.take_notices():
            if notice.kind in GRAVE:
                self._problem(f"the driver reports {notice.kind}: {notice.text}")
        if connection.link is LinkState.UP:
            self._resolve_open(connection)

    def _wake(self, due: int | None) -> None:
        now_us = self._agenda.now_us
        if due is None:
            self._due_us = None
            return
        wait_ms = ticks.diff(due, self.now_ms())
        self._due_us = (now_us // 1000 + max(wait_ms, 1)) * 1000

    def on_input(self) -> None:
        """Port or disk have something for the program."""
        self._ready = True

    def _acknowledge(self, boot_id: int, n: int) -> None:
        """The driver tells the device that an event is on disk: only if its batch was written."""
        assert self.connection is not None
        protocol = self.connection.protocol
        written = self.written.get((protocol.memory_id, boot_id), 0)
        if n > written:
            self._problem(f"event {n} was acknowledged, the journal has {written}")
        type(protocol).acknowledge(protocol, boot_id, n)

    # -- requests -------------------------------------------------------------------------------

    def ask(self, message: "Request[Any]", timeout_ms: int, by: tuple[int, bytes] | None = None) -> Call:
        """Send a request; SabotError if it cannot be sent."""
        loop, connection, journal = self.loop, self.connection, self.journal
        assert loop is not None
        assert connection is not None
        assert journal is not None
        number, future = loop.call(self.now_ms(), connection.request, message, timeout_ms, by)
        call = Call(journal.host_id, number, message, future, self._agenda.now_us, timeout_ms)
        self.calls.append(call)
        self._open_calls.append(call)
        self._ready = True
        return call

    def resolve(self, number: int) -> "Future[Any] | None":
        """Ask for the outcome of a command of this journal; None if it was never written down or sent."""
        assert self.loop is not None
        assert self.connection is not None
        assert self.journal is not None
        record = self.journal.command(number)
        if record is None:
            return None
        kind = messages.BY_ID[record.message]
        assert issubclass(kind, Request)
        peer = self.connection.peer
        memory_id = record.memory_id or (peer.memory_id if peer is not None else b"")
        self._ready = True
        return self.loop.call(self.now_ms(), self.connection.resolve, number, kind, memory_id, RESOLVE_MS)

    def _resolve_open(self, connection: Connection) -> None:
        """After a start: ask for the outcome of every command that the journal has open."""
        if self._resolving is not None or not self.owner:
            self._resolving = self._resolving or []
            return
        assert self.journal is not None
        self._resolving = [each.number for each in self.journal.commands(open_only=True)]
        if self._resolving:
            self._resolve_next(None)

    def _resolve_next(self, asked: "Future[Any] | None") -> None:
        if self._resolving is None or self.connection is None:
            return
        if asked is not None:
            error = asked.exception()
            if error is None or isinstance(error, Refused):
                self.resolved[self._resolving.pop(0)] = asked.result() if error is None else error
        while self._resolving:
            try:
                future = self.resolve(self._resolving[0])
            except SabotError:
                self._resolving = None  # in the next session
                return
            assert future is not None
            future.add_done_callback(self._resolve_next)
            return
