"""A board on this computer: mechanism, chip and clock are another process, at the end of two pipes.

    micropython -X heapsize=384k -m sabot_simulators.micropython_side.piped_board

It runs on CPython as well (``python -u -m ...``), for want of MicroPython.

``sabot_simulators.micropython_device`` is the other end.
It gives the firmware what happens (an edge, a step of time, a
command) and then serves it until that is done: an order is carried out the moment it comes, what the firmware
reads is asked for and answered on the spot. So the firmware sees exactly what it would see with the mechanism
in its own process, and time stands still while it thinks.

A message is its kind, the length of its body (two bytes), and the body: fields by ``struct`` as ``FORMATS``
has them, then perhaps bytes. Requests, answers and reports are names of the wire's schema with their values.
Whether these are what the schema allows is looked at by the other end, which has memory to spare.
"""

import gc
import io
import struct
import sys

from sabot_firmware.controller import Controller
from sabot_firmware.critical import CriticalMemory, Fram
from sabot_firmware.hardware import Hardware
from sabot_firmware.persistent_state import RECORDS
from sabot_protocol import __version__, ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.errors import Refusal
from sabot_protocol.executor import Caller
from sabot_protocol.record_store import RecordStore
from sabot_simulators.micropython_side import small_heap  # noqa: F401 - before anything is compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from sabot_firmware.event_log import Flash
    from sabot_firmware.half import MachineHalf
    from sabot_firmware.rng.device_rng import DeviceRng
    from sabot_protocol.codec import Value
    from sabot_protocol.device_port import DevicePort
    from sabot_protocol.device_protocol import DeviceProtocol

# To the board: what happens. Each is followed by DONE, once everything that comes of it is done.
START = 0x01  # the power has come
EDGE = 0x02
STEP = 0x03  # time goes on
EXECUTE = 0x04  # a request of the wire, put to the controller; ANSWERED or REFUSED comes before DONE
PORT = 0x05  # bytes of a cable, if any, and what the device says: SAID comes before DONE
HEAP = 0x06  # collect garbage: USED comes before DONE
UNPLUG = 0x07  # a cable is pulled
TICK = 0x08  # the wire's time goes on
# To the board: what answers it
NUMBER = 0x10
DATA = 0x11
NOTHING_THERE = 0x12  # the time is not known
CHIP_FAILED = 0x13
GO_ON = 0x14  # a report was heard
VIEW = 0x15  # before that: what does the controller believe? BELIEVED answers it

# From the board: orders, which nobody answers
RUN = 0x20
ELEVATE = 0x21
HOME = 0x22
GRIP = 0x23
SHELVE = 0x24
PUSH = 0x25
MEASURE = 0x26
SHOW = 0x27
LIGHT = 0x28
# From the board: what it asks for; NUMBER or DATA answers it
LEVEL = 0x30
TRAVELLED = 0x31
HEIGHT = 0x32
COLOUR = 0x33
FACE = 0x34
DRAW = 0x35
UTC = 0x36
READ = 0x37
WRITE = 0x38
NOISE = 0x39
RAW_NOISE = 0x3A
READ_FLASH = 0x3B
PROGRAM = 0x3C
ERASE = 0x3D
# From the board: what comes of it
REPORT = 0x40  # a name and values, as ANSWERED and REFUSED are
DONE = 0x41
ANSWERED = 0x42
REFUSED = 0x43
SAID = 0x44
USED = 0x45
BELIEVED = 0x46
CRASHED = 0x47  # the firmware has failed; the traceback

FORMATS = {
    START: "<IIHB8sHI",  # now in us and in ms, cards a zone can hold, options; serial, flags, events kept
    EDGE: "<BBII",  # sensor, level, when, now
    STEP: "<I",  # now
    EXECUTE: "<B8s",  # role, host; then the request
    PORT: "<BIB",  # which cable, now in ms, whether the host has room for what is said; then bytes
    UNPLUG: "<B",
    TICK: "<IBI",  # now in ms, whether the contact in the logic compartment is closed, now in us
    NUMBER: "<q",
    RUN: "<Bb",  # roller, direction
    ELEVATE: "<i",
    GRIP: "<B",
    SHELVE: "<B",
    PUSH: "<B",
    SHOW: "<B",  # length of the first line; then both
    LIGHT: "<B",
    LEVEL: "<B",
    TRAVELLED: "<B",
    COLOUR: "<B",
    DRAW: "<I",
    READ: "<IH",  # address, length
    WRITE: "<I",  # address; then bytes
    READ_FLASH: "<IH",
    PROGRAM: "<I",
    ERASE: "<H",
    NOISE: "<H",
    RAW_NOISE: "<H",
    DONE: "<iBBB",  # microseconds until something is due or -1, shuffler, shoe, whether all is still
    SAID: "<i",  # milliseconds until the port is due, or -1; then bytes
    USED: "<III",  # bytes in use, most there ever were at a command or report, bytes of the heap
    BELIEVED: "<BBBBIIIIHIIB",  # states and faults of shuffler and shoe, decks fed, stored and in the shoe,
    # the open round and its stacks, the last round, the deck played last, emptying; then each deck as DECK
}
HEAD = "<BH"
HEAD_SIZE = 3
DECK = "<IBB7H"  # id, back, whether it is proved, and where its cards are

# What a value is
IS_INT = 1
IS_TEXT = 2
IS_BYTES = 3
IS_LIST = 4

MODEL = "Sabot simulator"
NO_SERIAL = bytes(8)
# Options of START
CABLE = 1  # the wire's end is here too
OWN_RNG = 2  # the board's own generator
LOG = 4  # a flash for the event log, and one for the mark behind it
CRASHED_OFTEN = 8  # critical memory is not to be used


def pack_said(name: str, values: "Sequence[Value]") -> bytes:
    """A name and its values: whole numbers, text, bytes and lists of such."""
    return _pack(name) + b"".join([_pack(value) for value in values])


def _pack(value: "Value") -> bytes:
    if isinstance(value, int):
        return struct.pack("<Bq", IS_INT, value)
    if isinstance(value, (list, tuple)):
        return struct.pack("<BH", IS_LIST, len(value)) + b"".join([_pack(each) for each in value])
    kind = IS_TEXT if isinstance(value, str) else IS_BYTES
    data = value.encode() if isinstance(value, str) else bytes(value)
    return struct.pack("<BH", kind, len(data)) + data


def unpack_said(data: bytes) -> "tuple[str, tuple[Value, ...]]":
    """A name and its values from bytes."""
    values = []
    at = 0
    while at < len(data):
        value, at = _unpack(data, at)
        values.append(value)
    return values[0], tuple(values[1:])


def _unpack(data: bytes, at: int) -> "tuple[Value, int]":
    if data[at] == IS_INT:
        return struct.unpack_from("<q", data, at + 1)[0], at + 9
    kind, size = struct.unpack_from("<BH", data, at)
    at += 3
    if kind == IS_LIST:
        values = []
        for _ in range(size):
            value, at = _unpack(data, at)
            values.append(value)
        return values, at
    raw = data[at : at + size]
    return raw.decode() if kind == IS_TEXT else raw, at + size


def thermal_noise() -> bytes:
    """What the Pico's thermometer adds while it reads 876, as the emulated one always does.

    With it the same seed gives the same cards on every kind of board.
    """
    return b"\xcc" * 8


class Ended(Exception):
    """The other process has gone: so has the power."""


class Pipe:
    """Messages over two byte streams."""

    def __init__(self, reads: "BinaryIO", writes: "BinaryIO") -> None:
        self._reads = reads
        self._writes = writes

    def send(self, kind: int, fields: "tuple[Value, ...]" = (), data: "bytes | memoryview" = b"") -> None:
        """One message."""
        body = struct.pack(FORMATS[kind], *fields) if fields else b""
        self._writes.write(struct.pack(HEAD, kind, len(body) + len(data)) + body + data)

    def take(self) -> "tuple[int, bytes]":
        """The next message: its kind and its body."""
        head = self._reads.read(HEAD_SIZE)
        if len(head) < HEAD_SIZE:
            raise Ended
        kind, size = struct.unpack(HEAD, head)
        return kind, self._reads.read(size) if size else b""

    def ask(self, kind: int, fields: "tuple[Value, ...]" = (), data: bytes = b"") -> "tuple[int, bytes]":
        """One message and its answer: kind and body."""
        self.send(kind, fields, data)
        return self.take()


class PipedHardware(Hardware):
    """The mechanism at the other end: orders go out, and what is read is asked for."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def ask(self, kind: int, fields: "tuple[Value, ...]" = ()) -> int:
        """A number from the other end."""
        said, body = self._pipe.ask(kind, fields)
        if said != NUMBER:
            raise Ended
        number: int = struct.unpack("<q", body)[0]
        return number

    def run(self, roller: int, direction: int) -> None:
        """Turn a roller, or stop it."""
        self._pipe.send(RUN, (roller, direction))

    def travelled_um(self, roller: int) -> int:
        """What a roller's encoder says."""
        return self.ask(TRAVELLED, (roller,))

    def elevate(self, position_um: int) -> None:
        """Send the platform somewhere."""
        self._pipe.send(ELEVATE, (position_um,))

    def home(self) -> None:
        """Send the platform down to its switch."""
        self._pipe.send(HOME)

    def grip(self, closed: bool) -> None:
        """Close or open the gripper."""
        self._pipe.send(GRIP, (1 if closed else 0,))

    def shelve(self, down: bool) -> None:
        """Carry the stack down to the shelf, or come back."""
        self._pipe.send(SHELVE, (1 if down else 0,))

    def push(self, forward: bool) -> None:
        """Push the store's stack into the shoe, or draw back."""
        self._pipe.send(PUSH, (1 if forward else 0,))

    def measure(self) -> None:
        """Read the height."""
        self._pipe.send(MEASURE)

    def height_um(self) -> int:
        """The height read last."""
        return self.ask(HEIGHT)

    def colour(self, sensor: int) -> int:
        """What a colour reader sees."""
        return self.ask(COLOUR, (sensor,))

    def face(self) -> int:
        """What the card reader sees."""
        return self.ask(FACE)

    def level(self, sensor: int) -> int:
        """What a sensor reads."""
        return self.ask(LEVEL, (sensor,))

    def noise(self, count: int) -> bytes:
        """Raw bits of the board's ring oscillator."""
        kind, body = self._pipe.ask(RAW_NOISE, (count,))
        if kind != DATA:
            raise Ended
        return body

    def show(self, first: str, second: str) -> None:
        """Two lines on the display."""
        line = first.encode()
        self._pipe.send(SHOW, (len(line),), line + second.encode())

    def light(self, colour: int) -> None:
        """The lamp."""
        self._pipe.send(LIGHT, (colour,))


class _PipedChip:
    """A chip at the other end: what it holds outlives this process."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def _access(self, kind: int, fields: "tuple[Value, ...]", data: bytes = b"") -> bytes:
        kind, body = self._pipe.ask(kind, fields, data)
        if kind == CHIP_FAILED:
            raise OSError(body.decode())
        if kind != DATA:
            raise Ended
        return body


class PipedFram(_PipedChip, Fram):
    """Critical memory."""

    def read(self, address: int, length: int) -> bytes:
        """So many bytes from an address on."""
        return self._access(READ, (address, length))

    def write(self, address: int, data: "bytes | bytearray | memoryview") -> None:
        """Write bytes from an address on."""
        self._access(WRITE, (address,), bytes(data))


def _flash(pipe: Pipe, first: int = 0) -> "Flash":
    """The flash from a sector on; loaded only where there is one."""
    from sabot_firmware.event_log import Flash

    class PipedFlash(_PipedChip, Flash):
        def read(self, address: int, length: int) -> bytes:
            return self._access(READ_FLASH, (address + first * self.sector_size, length))

        def program(self, address: int, data: bytes) -> None:
            self._access(PROGRAM, (address + first * self.sector_size,), bytes(data))

        def erase(self, sector: int) -> None:
            self._access(ERASE, (sector + first,))

    return PipedFlash(pipe)


class PipedBoard:
    """The firmware's controller on this board, and what it is given."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._hardware = PipedHardware(pipe)
        self._controller: Controller | None = None
        self._end: DeviceProtocol | None = None
        self._ports: dict[int, DevicePort] = {}  # by the number of the cable
        self._now_ms = 0
        self._started = b""
        self._most = 0  # bytes in use, the most there were

    def serve(self) -> None:
        """Do what the other end says until it is gone."""
        while True:
            kind, body = self._pipe.take()
            if kind == VIEW:
                self._say_belief()
                continue
            due = self.handle(kind, body)
            controller = self.controller()
            idle = 1 if controller.idle() else 0
            self._pipe.send(DONE, (due, controller.shuffler.state, controller.shoe.state, idle))

    def handle(self, kind: int, body: bytes) -> int:
        """Do one thing that the other end says; microseconds until something is due, or -1."""
        if kind == EDGE:
            sensor, level, at_us, now_us = struct.unpack(FORMATS[EDGE], body)
            self.controller().edge(sensor, level, at_us, now_us)
        elif kind == STEP:
            left = self.controller().step(struct.unpack(FORMATS[STEP], body)[0])
            return left if left is not None else -1
        elif kind == EXECUTE:
            self._execute(body)
        elif kind == PORT:
            self._carry(body)
        elif kind == HEAP:
            self._note_heap()
            self._pipe.send(USED, self._heap())
        elif kind == UNPLUG:
            if body[0] in self._ports:
                self._ports.pop(body[0]).close()
        elif kind == TICK:
            self._tick(*struct.unpack(FORMATS[TICK], body))
        else:
            self._start(body)
        return -1

    def controller(self) -> "Controller":
        """The controller, which is there once the power has come."""
        assert self._controller is not None
        return self._controller

    def _start(self, body: bytes, opened: bool = False) -> None:
        """The power has come: the wire's end first, so that what the controller reports is kept."""
        from sabot_firmware.controller import Controller

        self._started = body
        self._ports.clear()
        now_us, self._now_ms, self._hardware.capacity, options, serial, flags, events_kept = struct.unpack(
            FORMATS[START], body
        )
        crashed = bool(options & CRASHED_OFTEN) and not opened
        memory = self._open_memory()
        if crashed:
            from sabot_protocol.provisioning import UnusableStore

            memory = UnusableStore()
        log = None
        mark = None
        house = None
        if options & LOG:
            from sabot_firmware.event_log import SECTORS, EventLog
            from sabot_firmware.flash_cells import SECTORS as CELLS_SECTORS
            from sabot_firmware.house_record import FlashHouseRecord
            from sabot_firmware.provisioning_mark import FlashProvisioningMark

            log = EventLog(
                _flash(self._pipe), evidence=EventLog(_flash(self._pipe, SECTORS + 2 * CELLS_SECTORS))
            )
            mark = FlashProvisioningMark(_flash(self._pipe, SECTORS))
            house = FlashHouseRecord(_flash(self._pipe, SECTORS + CELLS_SECTORS))
        own = options & OWN_RNG
        rng = self._make_rng(own, memory, serial)
        self._controller = Controller(self._hardware, memory, rng, self._report, self._utc_s, log)
        if options & CABLE:
            self._controller.shuffle_commands.device = serial
            from sabot_protocol.device_protocol import DeviceIdentity, DeviceProtocol

            identity = DeviceIdentity(serial, MODEL, __version__, flags)
            self._end = DeviceProtocol(
                identity,
                memory,
                self._controller,
                rng.nonce if own else self._noise,
                self._now_ms,
                event_capacity=events_kept,
                log=log,
                mark=mark,
                reopen=self._open_memory if crashed else None,
                opened=opened,
                house=house,
            )
            if self._controller.persistent.record_lost():
                self._end.renew_memory_id()
        self._controller.start(now_us)

    def _make_rng(self, own: int, memory: RecordStore, serial: bytes) -> "DeviceRng":
        """The board's own generator, or one that asks the other end; only that one is loaded."""
        if own:
            from sabot_firmware.rng.device_rng import DeviceRng

            return DeviceRng(self._hardware.noise, memory, serial, thermal_noise)
        from sabot_simulators.micropython_side.scripted_rng import ScriptedRng

        return ScriptedRng(self._draw)

    def _execute(self, body: bytes) -> None:
        self._note_heap()
        role, host_id = struct.unpack_from(FORMATS[EXECUTE], body, 0)
        name, values = unpack_said(body[9:])
        try:
            answer = self.controller().execute(name, values, Caller(host_id, role, True))
        except Refusal as refusal:
            self._pipe.send(REFUSED, (), pack_said(refusal.error, refusal.values))
        else:
            self._pipe.send(ANSWERED, (), pack_said(name, answer))

    def _carry(self, body: bytes) -> None:
        """Bytes of a cable, and what the device says."""
        number, now_ms, room = struct.unpack_from(FORMATS[PORT], body, 0)
        if number not in self._ports:
            from sabot_protocol.device_port import DevicePort

            assert self._end is not None
            self._ports[number] = DevicePort(self._end)
        port = self._ports[number]
        self._now_ms = now_ms
        if len(body) > 6:
            port.receive(body[6:], now_ms)
        said = port.poll(now_ms, bool(room))
        due = port.deadline()
        left = max(ticks.diff(due, now_ms), 0) if due is not None else -1
        self._pipe.send(SAID, (left,), said)

    def _open_memory(self) -> RecordStore:
        return CriticalMemory(PipedFram(self._pipe), RECORDS)

    def _tick(self, now_ms: int, contact: int, now_us: int) -> None:
        self._now_ms = now_ms
        end = self._end
        if end is None:
            return
        end.tick(now_ms)
        end.update_contact(bool(contact))
        if end.restart_required:
            self._start(struct.pack("<II", now_us, now_ms) + self._started[8:], True)

    # -- what the controller is given -----------------------------------------------------------------

    def _report(self, name: str, *values: "Value") -> None:
        if self._end is not None:
            self._end.emit(name, *values)
        self._tell_report(name, values)

    def _tell_report(self, name: str, values: "Sequence[Value]") -> None:
        """Tell the other end, and answer what it asks before it lets this go on."""
        self._note_heap()
        self._pipe.send(REPORT, (), pack_said(name, values))
        kind, _ = self._pipe.take()
        while kind == VIEW:
            self._say_belief()
            kind, _ = self._pipe.take()
        if kind != GO_ON:
            raise Ended

    def _draw(self, bound: int) -> int:
        return self._hardware.ask(DRAW, (bound,))

    def _noise(self, length: int) -> bytes:
        return self._pipe.ask(NOISE, (length,))[1]

    def _utc_s(self) -> int | None:
        if self._end is not None:
            seconds, _, quality = self._end.utc()
            if quality:
                return seconds
        kind, body = self._pipe.ask(UTC)
        return struct.unpack("<q", body)[0] if kind == NUMBER else None

    # -- what is asked of it --------------------------------------------------------------------

    def _say_belief(self) -> None:
        controller = self.controller()
        persistent, shuffler, shoe = controller.persistent, controller.shuffler, controller.shoe
        decks = b""
        for deck in persistent.decks.in_use:
            proved, cards = controller.whereabouts(deck.deck_id)
            decks += struct.pack(DECK, deck.deck_id, deck.back, 1 if proved else 0, *cards)
        _, _, _, _, round_id, stacks = controller.status()
        fields = (
            shuffler.state,
            shoe.state,
            _fault(shuffler),
            _fault(shoe),
            shuffler.feeding_deck,
            shuffler.stored_deck,
            shoe.deck,
            round_id,
            stacks,
            persistent.round_id,
            persistent.decks.last_played,
            1 if controller.service.emptying else 0,
        )
        self._pipe.send(BELIEVED, fields, decks)

    def _note_heap(self) -> None:
        gc.collect()
        self._most = max(self._most, self._heap()[0])

    def _heap(self) -> "tuple[int, int, int]":
        if not hasattr(gc, "mem_alloc"):  # CPython
            return 0, 0, 0
        used: int = gc.mem_alloc()
        free: int = gc.mem_free()  # type: ignore[attr-defined]
        return used, self._most, used + free


def _fault(half: "MachineHalf") -> int:
    return enum_number("Fault", half.jam.cause) if half.jam is not None else 0


def _traceback(error: Exception) -> str:
    print_exception = getattr(sys, "print_exception", None)
    if print_exception is None:  # CPython
        return repr(error)
    text = io.StringIO()
    print_exception(error, text)
    return text.getvalue()


def main() -> int:
    """Serve the other end; 1 if the firmware failed."""
    pipe = Pipe(sys.stdin.buffer, sys.stdout.buffer)
    try:
        PipedBoard(pipe).serve()
    except Ended:
        return 0
    except Exception as error:  # noqa: BLE001 - whatever it is, the other end must hear of it
        pipe.send(CRASHED, (), _traceback(error).encode())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
