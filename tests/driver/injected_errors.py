"""A driver and a device over a good cable, where one call or one SQL statement fails once."""

import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tests.driver.connection_ends import Ends

from sabot_driver.errors import SabotError
from sabot_driver.io_loop import BatchResult, IoLoop, PortLost, PortOpened
from sabot_driver.journal import JournalBatch
from sabot_driver.loop_shell import complete
from sabot_protocol.device_port import DevicePort
from sabot_protocol.host.messages import CallFloor, Locate

STEP_MS = 100
OURS = ("sabot_driver", "sabot_protocol")
DEVICE = ("device_", "event_store", "ledger", "record_store", "key_store", "grid", "executor", "provisioning")
"""Modules of the device's end: nothing fails there."""


class StrikeAt:
    """A profile function that raises an error at the n-th call of the driver's code."""

    def __init__(self, n: int, error: type[Exception]) -> None:
        self.left = n
        self.where = ""
        self._error = error
        self._known: dict[CodeType, bool] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and self.left > 0 and self._is_ours(frame.f_code):
            self.left -= 1
            if not self.left:
                self.where = f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}"
                raise self._error("injected")

    def _is_ours(self, code: CodeType) -> bool:
        found = self._known.get(code)
        if found is None:
            path = Path(code.co_filename)
            found = self._known[code] = any(part in OURS for part in path.parts) and not path.name.startswith(
                DEVICE
            )
        return found


class Recorder(StrikeAt):
    """Raises nothing, and notes which function each call is of."""

    def __init__(self) -> None:
        super().__init__(1, RuntimeError)
        self.calls: list[str] = []

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and self._is_ours(frame.f_code):
            self.calls.append(f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}")


class FailingConnection(sqlite3.Connection):
    """A database whose n-th statement fails once."""

    left = 0
    code = sqlite3.SQLITE_IOERR
    failed: str | None = None

    def _count(self, sql: str) -> None:
        kind = FailingConnection
        if kind.left > 0:
            kind.left -= 1
            if not kind.left:
                kind.failed = sql
                error = sqlite3.OperationalError("injected")
                error.sqlite_errorcode = kind.code
                raise error

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Execute, or fail before anything was done."""
        self._count(sql)
        return super().execute(sql, *values)

    def executemany(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Execute, or fail before anything was done."""
        self._count(sql)
        return super().executemany(sql, *values)


class InjectedLife(Ends):
    """One life with commands and events; something fails once in it."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs: list[bytes | PortOpened | PortLost] = []
        self.futures: list[Future[Any]] = []
        self.failures: list[Exception] = []
        self.sent = b""
        self.strike: StrikeAt | None = None
        self.loop = IoLoop(self.connection, _Port(self), _Disk(self), lambda due: None)

    def guarded(self, act: Callable[[], None]) -> None:
        """Do something while the strike may come, as one of the driver's threads does it."""
        if self.strike is None or self.strike.where:
            act()
            return
        sys.setprofile(self.strike)
        try:
            act()
        finally:
            sys.setprofile(None)

    def step(self) -> None:
        """What the driver's threads do, once."""
        try:
            self.guarded(self._step_loop)
        except Exception as error:  # noqa: BLE001  as ``ThreadedLoop._step`` has it
            self.failures.append(error)
            self.loop.fail(self.now, error)
        sent, self.sent = self.sent, b""
        if sent:
            self.port.receive(sent, self.now)
        back = self.port.poll(self.now)
        if back:
            self.inputs.append(bytes(back))
        while self.connection.completions:
            complete(self.connection.completions.popleft())
        self.now += STEP_MS

    def _step_loop(self) -> None:
        self.loop.step(self.now)

    def run(self, ms: int) -> None:
        """Let time pass."""
        for _ in range(0, ms, STEP_MS):
            self.step()

    def give(self, request: Any) -> None:
        """A program gives a command."""

        def act() -> None:
            _, future = self.loop.call(self.now, self.connection.request, request, 5_000)
            self.futures.append(future)

        try:
            self.guarded(act)
        except (SabotError, MemoryError, RuntimeError) as error:
            self.failures.append(error)

    def play(self) -> None:
        """Commands and events, then a while for everything to recover."""
        self.run(1_000)
        for n in range(3):
            self.give(CallFloor(n % 2))
            self.device.emit("located", n + 1)
            self.run(500)
            self.give(Locate(n + 1))
            self.device.emit("located", n + 1)
            self.run(300)
        self.run(8_000)

    # -- what must be true ----------------------------------------------------------------------

    def check(self, what: str) -> None:
        """The client lives, each event is in the journal once, each command happened at most once."""
        assert all(future.done() for future in self.futures), f"{what}: a call never ends"
        errors = [future.exception() for future in self.futures]
        assert all(error is None or isinstance(error, SabotError) for error in errors), f"{what}: {errors}"
        assert self.connection.write_ahead.error is None, f"{what}: {self.connection.write_ahead.error}"
        before = len(self.done)
        self.strike = None
        self.give(CallFloor(1))
        self.run(6_000)
        assert self.futures[-1].exception() is None, f"{what}: {self.futures[-1].exception()}"
        assert len(self.done) == before + 1, what
        rows = [(each.boot_id, each.n) for each in self.journal.entries() if not each.is_gap]
        assert rows == [(1, n) for n in range(1, self.device.events.last + 1)], what
        answered = sum(future.exception() is None for future in self.futures)
        assert answered <= len([name for name, _ in self.done if name != "set_clock"]), what
        assert not self.connection._open, what


class _Port:
    def __init__(self, life: InjectedLife) -> None:
        self._life = life

    def start_open(self) -> None:
        life = self._life
        life.port, life.sent = DevicePort(life.device), b""
        life.inputs.append(PortOpened())

    def start_close(self) -> None:
        self._life.inputs.clear()
        self._life.port.close()

    def take(self) -> list[bytes | PortOpened | PortLost]:
        taken, self._life.inputs = self._life.inputs, []
        return taken

    def write(self, data: bytes) -> None:
        self._life.sent += data


class _Disk:
    """Writes at once, as the journal's thread does."""

    def __init__(self, life: InjectedLife) -> None:
        self._life = life
        self._result: BatchResult | None = None

    def start(self, batch: JournalBatch) -> None:
        try:
            self._result = BatchResult(batch, self._life.journal.write(batch, self._life.now))
        except Exception as error:  # noqa: BLE001  as ``JournalThread._write`` has it
            self._result = BatchResult(batch, error=error)

    def take(self) -> BatchResult | None:
        result, self._result = self._result, None
        return result
