"""A device on MicroPython whose allocations can be made to fail, with a test host that owns it."""

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from sabot_firmware.critical import CriticalMemory
from sabot_firmware.persistent_state import RECORDS
from sabot_protocol import ticks
from sabot_protocol.codec import CODEC
from sabot_protocol.handshake import ClearExchange
from sabot_protocol.key_store import KeyStore
from sabot_protocol.notifications import AttachRefused, EventReceived, SessionDown
from sabot_protocol.wire_constants import DEVICE
from sabot_simulators.chips import BOARD_SECTORS, SimFlash, SimFram
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.micropython_device import (
    FORMATS,
    WIRED_HEAP,
    FirmwareCrashed,
    MicroPythonDevice,
    MicroPythonProcess,
    WireOptions,
)
from sabot_simulators.micropython_side import failing_board_messages as messages
from sabot_simulators.micropython_side import piped_board
from sabot_simulators.simulated_host import PEOPLE, PERSON, SimulatedHost

SERIAL = b"SCARCE01"
SOON_US = 1_000
FORMATS.update({kind: struct.Struct(form) for kind, form in messages.FORMATS.items()})


class ChildFailed(Exception):
    """What was done in a forked copy of the device ended with an error; the text is its traceback."""


class FailingDevice(SimulatedHost, MicroPythonDevice):
    """A device with a host. ``arm`` lets an allocation fail; ``in_a_copy`` tries something without effect."""

    side = "failing_board"

    def __init__(self, python: Path, seed: int, provisioned: bool = True) -> None:
        machine = SimulatedMachine(Random(seed))
        self.machine = machine
        self._make_keys()
        self.host = self._new_host(SERIAL)
        self.begun: list[str] = []
        """Commands that the controller was given."""
        self.completed: list[str] = []
        """Commands that it executed to the end."""
        self.restarts: list[str] = []
        """The exceptions that ended a life of the device."""
        self.counted = (0, 0)
        """After ``disarm`` or a restart: allocations, and how many of them found no memory."""
        self._question: ClearExchange | None = None
        self._is_copy = False
        chip = SimFram()
        if provisioned:
            keys = KeyStore(CriticalMemory(chip, RECORDS))
            keys.set(DEVICE, self._keys[DEVICE])
            for role in PEOPLE:
                keys.set(role, self._person_key(role, SERIAL), role, PERSON)
        wire = WireOptions(SERIAL, random=machine.random.randbytes, flash=SimFlash(BOARD_SECTORS))
        command = [str(python), "-X", f"heapsize={WIRED_HEAP}"]
        super().__init__(machine, None, chip, python=command, wire=wire)

    # -- the host -------------------------------------------------------------------------------

    def connect(self) -> None:
        """Open a session as the owner, and wait for it."""
        self.host.connect(self._now_ms())
        self.run_until(lambda: self.host.up)

    def ask_clear(self, name: str, *values: bytes) -> tuple[Any, ...]:
        """Ask what may be asked without a session, repeated until the device answers."""
        question = self._question = ClearExchange(CODEC, name, values, self._now_ms())
        self.run_until(lambda: question.answer is not None)
        self._question = None
        assert question.answer is not None
        return tuple(question.answer)

    def say(self, data: bytes) -> None:
        """Put bytes on another cable, and take no notice of the answer."""
        self.carry(data, 1)
        self._do(piped_board.UNPLUG, 1)

    def carry(
        self, data: bytes, cable: int = 0, now_ms: int | None = None, room: bool = True
    ) -> tuple[bytes, int | None]:
        """Bytes that came over a cable, and what the device says: nothing, if it had to start anew."""
        lives = len(self.restarts)
        now_ms = self._now_ms() if now_ms is None else now_ms
        _, body = self._do(piped_board.PORT, cable, now_ms, int(room), data=data)
        if len(self.restarts) > lives:
            return b"", None
        (due,) = FORMATS[piped_board.SAID].unpack_from(body)
        return body[FORMATS[piped_board.SAID].size :], due if due >= 0 else None

    def _step(self) -> int | None:
        due = MicroPythonDevice._step(self)
        now = self._now_ms()
        self.tick(now)
        left: int | None = 0
        while True:
            out = self.host.poll(now)
            if self._question is not None:
                out += self._question.poll(now)
            back, left = self.carry(out, 0, now)
            if back:
                if self._question is not None:
                    self._question.receive(back)
                self.host.receive(back, now)
            if not out and not back:
                break
        waits = [] if left is None else [left]
        for end in (self.host, self._question):
            deadline = end.deadline() if end is not None else None
            if deadline is not None:
                waits.append(ticks.diff(deadline, now))
        for wait_ms in waits:
            wait = max(wait_ms * 1000 - self.machine.agenda.now_us % 1000, SOON_US)
            due = wait if due is None or wait < due else due
        for each in self.host.take_notifications():
            self.happened.append(each)
            if isinstance(each, EventReceived):
                self.host.acknowledge(each.boot_id, each.n)
            elif isinstance(each, SessionDown | AttachRefused):  # as the driver does
                self.host.connect(now)
                due = SOON_US
        return due

    # -- failures -------------------------------------------------------------------------------

    def arm(self, n: int, lasting: bool) -> None:
        """Let the n-th allocation fail that bytes of a cable cause, or also all behind it; 0 only counts."""
        self.counted = (0, 0)
        self._do(messages.ARM, n, int(lasting))

    def disarm(self) -> None:
        """From now on none fails; ``counted`` has the figures, unless the device has had to start anew."""
        if not self.counted[0]:
            self._do(messages.DISARM)

    def _serve(self, at: MicroPythonProcess, said: int, body: bytes) -> bool:
        if said == messages.BEGUN:
            self.begun.append(body.decode())
        elif said == messages.COMPLETED:
            self.completed.append(body.decode())
        elif said == messages.COUNTED:
            allocations, failures = FORMATS[messages.COUNTED].unpack(body)
            self.counted = (allocations, failures)
        elif said == messages.JOINED:
            if self._is_copy:  # the copy's MicroPython is gone: this comes from the one it was forked of
                self._is_copy = False
                raise FirmwareCrashed(f"MicroPython has ended in a trial, with exit code {body[0]}")
        elif said == messages.RESTARTED:
            self.restarts.append(body.decode())
            self.machine.power_off()  # every motor stops
            self.machine.power_on()
            self._edges.clear()
            self.boots += 1
            at.send(piped_board.DATA, data=struct.pack("<II", self._ticks_us(), self._now_ms()))
        else:
            return MicroPythonDevice._serve(self, at, said, body)
        return True

    # -- copies ---------------------------------------------------------------------------------

    def in_a_copy(self, what: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Do something in a copy of everything, device, mechanism and host; what it returned.

        Both processes are forked. This device is as it was before. ChildFailed if it raised an exception.
        """
        reads, writes = os.pipe()
        board = self._board()
        board.send(messages.FORK)
        child = os.fork()
        if child == 0:
            self._be_the_copy(what, board, writes)
        os.close(writes)
        with os.fdopen(reads, "rb") as pipe:
            told = json.loads(pipe.read() or b"{}")
        os.waitpid(child, 0)
        if "error" in told or not told:
            self.close()
            raise ChildFailed(told.get("error", "the copy ended without a word"))
        self._serve_until_done(messages.FORK)
        result: dict[str, Any] = told["result"]
        return result

    def _be_the_copy(
        self, what: Callable[[], dict[str, Any]], board: MicroPythonProcess, writes: int
    ) -> None:
        """Do it, tell the result, and end this process without any cleaning up."""
        try:
            self._serve_until_done(messages.FORK)
            self._is_copy = True
            told: dict[str, Any] = {"result": what()}
            board.send(messages.LEAVE)
        except BaseException as error:  # noqa: BLE001  the parent raises it
            told = {"error": f"{type(error).__name__}: {error}"}
        os.write(writes, json.dumps(told).encode())
        os._exit(0)
