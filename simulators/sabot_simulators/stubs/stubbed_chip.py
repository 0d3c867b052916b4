"""What is on the board besides the processor, as the stubs of MicroPython's modules drive it.

Every part uses the time of ``StubbedChip.now_us``. The firmware's own work takes no time: time passes only
while it waits in ``select.poll``. So a run does not depend on the speed of the computer.
"""

from collections.abc import Callable
from typing import Any

from sabot_firmware.boards.rp2040 import pins
from sabot_simulators.rp2040.runner_messages import (
    AxisMoves,
    AxisReached,
    BoardReport,
    BoardWiring,
    OutputsSet,
    PinSet,
    SampleWanted,
    Shown,
)
from sabot_simulators.rp2040.wiring import board_wiring

PWM = 0x40050000
SLICE = 0x14
CSR, DIV, CTR, CC, TOP = 0x00, 0x04, 0x08, 0x0C, 0x10
ENABLED = 0x01
RING_OSCILLATOR_BIT = 0x4006001C
FRAM_SIZE = 32768
FLASH_SIZE = 512 * 1024
SECTOR = 4096
UART_BUFFER = 1024  # bytes, as ``boards/rp2040/cables.py`` asks for
FREE_BYTES = 114_688  # of the heap, after a collection
COLLECTION_US = 18_000  # measured on a Pico at 100 KB in use
ALLOCATED_A_BYTE = 24  # on a cable: a frame of 40 bytes may allocate 1 KB
NEVER = 1 << 62


class FirmwareFailed(Exception):
    """The firmware did something that no board allows, or ended; the text says what."""


class WatchdogExpired(BaseException):
    """The watchdog was not fed in time: everything but the memory chips is lost."""


class PowerGone(BaseException):
    """The power is off: the firmware's thread ends here."""


class PowerFailed(BaseException):
    """The power fails in the midst of a write to the FRAM: the world must be told."""


class Dma:
    """One DMA channel, paced by a PWM slice."""

    def __init__(self, chip: "StubbedChip") -> None:
        self._chip = chip
        self.channel = len(chip.channels)
        chip.channels.append(self)
        self.read = self.write = self.planned = self.count = 0
        self.ctrl: dict[str, Any] = {}
        self.busy = False
        self.handler: Callable[[Any], None] | None = None

    def pack_ctrl(self, **values: Any) -> dict[str, Any]:
        """The settings, unchanged."""
        return {"inc_read": True, "chain_to": self.channel, "irq_quiet": True, **values}

    def config(self, **values: Any) -> None:
        """Set some registers."""
        for name, value in values.items():
            setattr(self, "planned" if name == "count" else name, value)

    def irq(self, handler: Callable[[Any], None], hard: bool = False) -> None:
        """Set the handler that is called at the end of a transfer."""
        self.handler = handler

    def active(self, on: int | None = None) -> bool:
        """Start or abort the channel, or return whether it is active."""
        if on is not None:
            self.busy = bool(on)
            if on:
                if self.planned <= 0:
                    raise FirmwareFailed("a DMA channel without transfers never ends")
                self.count = self.planned
        return self.busy

    def transfer(self) -> None:
        """Transfer one word."""
        chip = self._chip
        chip.registers[self.write] = chip.word_at(self.read)
        if self.ctrl["inc_read"]:
            self.read += 4
        self.count -= 1
        if self.count == 0:
            self.busy = False
            if self.ctrl["chain_to"] != self.channel:
                chip.channels[self.ctrl["chain_to"]].active(1)
            if not self.ctrl["irq_quiet"] and self.handler is not None:
                self.handler(None)


class Axis:
    """A PWM slice that makes steps, its periods fed by DMA: a period is latched at each wrap."""

    def __init__(self, chip: "StubbedChip", number: int, step_pin: int) -> None:
        self._chip = chip
        self._number = number
        slice_number = step_pin >> 1 & 7
        self.at = PWM + slice_number * SLICE
        self.request = 24 + slice_number
        self.position = 0
        self.stops: tuple[int, ...] = ()
        self.wraps_us = NEVER
        self._moving = 0  # the direction that was told

    def switched(self, on: bool) -> None:
        """Handle that the slice was switched on or off. The first wrap comes after its present period."""
        registers = self._chip.registers
        if not on:
            self.wraps_us = NEVER
            self._moving = 0
            return
        ticks_us = (registers[self.at + DIV] >> 4) / 125
        self.wraps_us = self._chip.now_us + round((registers[self.at + TOP] + 1) * ticks_us)

    def wrap(self) -> None:
        """Handle the end of a period: a step pulse, the next period, and the DMA transfer of the wrap."""
        chip, registers = self._chip, self._chip.registers
        plain = registers.get  # no register of this slice counts anything: it is what was written to it
        ticks_us = (plain(self.at + DIV, 0) >> 4) / 125
        self.wraps_us += round((plain(self.at + TOP, 0) + 1) * ticks_us)
        if plain(self.at + CC, 0):
            self._step()
        for channel in chip.channels:
            if channel.busy and channel.ctrl.get("treq_sel") == self.request:
                channel.transfer()
                break
        if not plain(self.at + CSR, 0) & ENABLED:
            self.wraps_us = NEVER

    def _step(self) -> None:
        chip = self._chip
        direction = chip.direction(self._number)
        if direction != self._moving:
            self._moving = direction
            chip.tell(AxisMoves(chip.now_us, self._number, direction))
        self.position += direction
        if self.position in self.stops:
            chip.tell(AxisReached(chip.now_us, self._number, self.position))


class Expander:
    """An MCP23017 with its pairs of registers."""

    def __init__(self) -> None:
        self.registers = bytearray(0x16)
        self.pins = 0  # what is on its inputs
        self.seen = 0  # what was there when it was read last

    def word(self, register: int) -> int:
        """A pair of registers."""
        return self.registers[register] | self.registers[register + 1] << 8

    def asserted(self) -> bool:
        """Whether a watched input has changed."""
        return bool((self.pins ^ self.seen) & self.word(0x04))

    def levels(self) -> int:
        """Read the inputs, which ends the interrupt."""
        self.seen = self.pins
        return (self.pins ^ self.word(0x02)) & self.word(0x00)


class FramChip:
    """The SPI FRAM, command by command. Its bytes outlive the power."""

    def __init__(self) -> None:
        self.cells = bytearray(FRAM_SIZE)
        self.cut_after: int | None = None
        """The power fails after so many more bytes were written; None for never."""
        self._said = bytearray()
        self._enabled = False

    def select(self, level: int) -> None:
        """Chip select: begin or end a command."""
        if level:
            said = self._said
            if said[:1] == b"\x06":
                self._enabled = True
            elif said[:1] == b"\x02":
                at = said[1] << 8 | said[2]
                if self._enabled:
                    self._store(at, said[3:])
                self._enabled = False
        self._said = bytearray()

    def _store(self, at: int, data: bytearray) -> None:
        if self.cut_after is not None and self.cut_after < len(data):
            data = data[: self.cut_after]
            self.cells[at : at + len(data)] = data
            self.cut_after = None
            self._said, self._enabled = bytearray(), False
            raise PowerFailed
        if self.cut_after is not None:
            self.cut_after -= len(data)
        self.cells[at : at + len(data)] = data

    def write(self, data: "bytes | bytearray | memoryview") -> None:
        """Write bytes to the chip."""
        self._said += data

    def read(self, length: int) -> bytes:
        """Read bytes from the chip."""
        if self._said[:1] == b"\x05":
            return bytes((0x02 if self._enabled else 0x00,)) * length
        at = self._said[1] << 8 | self._said[2]
        return bytes(self.cells[at : at + length])


class HeapModel:
    """How much garbage there is, about, and how long a collection stops the program.

    Turns of the loop and bytes on the cables allocate. A collection takes COLLECTION_US, in which interrupts
    stamp edges and nothing else happens. When no place is left, one comes by itself.
    """

    def __init__(self, chip: "StubbedChip") -> None:
        self._chip = chip
        self.allocated = 0
        """Bytes since the last collection."""
        self.forced = 0
        """Collections that came by themselves."""

    def allocate(self, size: int) -> None:
        """So many bytes more."""
        self.allocated += size
        if self.allocated > FREE_BYTES:
            self.forced += 1
            self.collect()

    def collect(self) -> None:
        """Collect the garbage; time passes meanwhile."""
        chip = self._chip
        self.allocated = 0
        ends_us = chip.now_us + COLLECTION_US
        while chip.now_us < ends_us:
            chip.wait(ends_us)


class StubbedChip:
    """The processor's pins and registers, and the parts on its buses, for one life of the firmware."""

    def __init__(self, fram: FramChip, flash: bytearray, hand_over: Callable[[], None]) -> None:
        wiring: BoardWiring = board_wiring()
        self.now_us = 0
        self.ticks_from_us = 0  # what the processor's counter had when this time was 0
        self.fram = fram
        self.flash = flash
        self.hand_over = hand_over
        """Lets the world go on, and returns when the firmware may."""
        self.registers = Registers(self)
        self.channels: list[Dma] = []
        self.arrays: list[tuple[int, int, Any]] = []
        self.levels = [0] * 30
        self.handlers: dict[int, list[tuple[Callable[[Any], None], int, Any]]] = {}
        self.axes = tuple(Axis(self, n, each.step_pin) for n, each in enumerate(wiring.axes))
        self.wiring = wiring
        self.watched_pins = frozenset(wiring.outputs)
        self.encoders = [(0.0, 0.0, 0.0)] * len(wiring.encoders)
        self._encoder_zero = [0] * len(wiring.encoders)
        self._counters = {PWM + each.slice * SLICE + CTR: n for n, each in enumerate(wiring.encoders)}
        self._switches = {axis.at + CSR: axis for axis in self.axes}
        self.expanders = {address: Expander() for address in wiring.expanders}
        self.outputs = 0
        self.face = 0xFF
        self.noise = b""
        self.noise_at = 0  # bits taken
        self.noise_stuck: int | None = None
        self.lines = [" " * 20, " " * 20]
        self.line = 0
        self.samples: list[int] = []
        self.usb_in = bytearray()
        self.usb_out = bytearray()
        self.uart_in = bytearray()
        self.uart_out = bytearray()
        self.heap = HeapModel(self)
        self.cable = True
        self.told: list[BoardReport] = []
        self.scheduled: list[tuple[Callable[[Any], None], Any]] = []
        self.timers: list[Any] = []
        self.horizon_us = 0  # the world must be asked before time goes beyond this
        self.watchdog_us = 0  # 0: not started
        self.fed_us = 0
        self.levels[pins.EXPANDER_INTERRUPT] = 1

    # -- the world --------------------------------------------------------------------------------

    def tell(self, what: BoardReport) -> None:
        """Queue a report to the world; time stops until the world has taken it."""
        self.told.append(what)

    def change(self, what: str, *values: Any) -> None:
        """Apply one change of the world to the board."""
        if what == "pin":
            self.set_pin(values[0], values[1])
        elif what == "inputs":
            self.expanders[self.wiring.expanders[values[0]]].pins = values[1]
            self.expander_interrupt()
        elif what == "sample":
            self.samples.append(values[0])
        elif what == "noise":
            rest = self.noise[self.noise_at >> 3 :]
            self.noise_at &= 7
            self.noise = rest + values[0].encode("latin-1")
        elif what == "noise_stuck":
            self.noise_stuck = None if values[0] < 0 else values[0]
        elif what == "encoder":
            self.encoders[values[0]] = (values[1], values[2], values[3])
        elif what == "face":
            self.face = values[0]
        elif what == "stop_at":
            self.axes[values[0]].stops = tuple(values[1:])
        elif what == "usb":
            if self.cable:
                self.usb_in += values[0].encode("latin-1")
        elif what == "uart":
            self.uart_in += values[0].encode("latin-1")
            del self.uart_in[UART_BUFFER:]  # as the hardware does: what does not fit is lost
        elif what == "cable":
            self.cable = bool(values[0])
            self.usb_in.clear()
        else:
            raise FirmwareFailed(f"no such change: {what}")

    def set_pin(self, pin: int, level: int) -> None:
        """Set the level of an input; its interrupts run at once."""
        before, self.levels[pin] = self.levels[pin], level
        if before != level:
            for handler, trigger, source in self.handlers.get(pin, ()):
                if trigger & (1 if level else 2):
                    handler(source)

    def expander_interrupt(self) -> None:
        """Set the interrupt line that both expanders share: LOW while one of them has a change."""
        asserted = any(each.asserted() for each in self.expanders.values())
        self.set_pin(pins.EXPANDER_INTERRUPT, 0 if asserted else 1)

    # -- the firmware -----------------------------------------------------------------------------

    def drive(self, pin: int, level: int) -> None:
        """Handle a new level of an output."""
        before, self.levels[pin] = self.levels[pin], level
        if pin == pins.FRAM_SELECT:
            self.fram.select(level)
        elif before != level and pin in self.watched_pins:
            self.tell(PinSet(self.now_us, pin, level))

    def direction(self, axis: int) -> int:
        """The direction of an axis."""
        wires = self.wiring.axes[axis]
        if wires.direction_pin is not None:
            return 1 if self.levels[wires.direction_pin] else -1
        return 1 if self.outputs >> wires.direction_bit & 1 else -1

    def write_expander(self, address: int, register: int, data: "bytes | bytearray") -> None:
        """Write registers of an expander."""
        expander = self.expanders[address]
        expander.registers[register : register + len(data)] = data
        if address == pins.EXPANDERS[pins.OUTPUT_CHIP]:
            word = expander.word(0x14) & ~expander.word(0x00) & 0xFFFF
            if word != self.outputs:
                self.outputs = word
                self.tell(OutputsSet(self.now_us, pins.OUTPUT_CHIP, word))
        self.expander_interrupt()

    def read_expander(self, address: int, register: int) -> int:
        """Read a pair of registers of an expander."""
        expander = self.expanders[address]
        if register != 0x12:
            return expander.word(register)
        levels = expander.levels()
        self.expander_interrupt()
        return levels

    def show(self, data: bytes) -> None:
        """Handle bytes written to the display."""
        if data[0] == 0x40:
            self.lines[self.line] = data[1:].decode()
            self.tell(Shown(self.now_us, self.lines[0], self.lines[1]))
        elif data[1] & 0x80:
            self.line = 1 if data[1] & 0x40 else 0

    def analogue(self, channel: int) -> int:
        """A sample of twelve bits, read from the world."""
        self.tell(SampleWanted(self.now_us, channel))
        while not self.samples:
            self.hand_over()
        return self.samples.pop()

    def oscillator_bit(self) -> int:
        """One raw bit of the ring oscillator."""
        if self.noise_stuck is not None:
            return self.noise_stuck
        at = self.noise_at
        if at >> 3 >= len(self.noise):
            raise FirmwareFailed("the ring oscillator's bits have come to an end")
        self.noise_at += 1
        return self.noise[at >> 3] >> (7 - (at & 7)) & 1

    def noise_left(self) -> int:
        """How many bytes of noise are left."""
        return len(self.noise) - (self.noise_at >> 3)

    def counted(self, encoder: int) -> int:
        """An encoder's count at this moment."""
        since, pulses, per_us = self.encoders[encoder]
        return int(pulses + per_us * max(self.now_us - since, 0))

    def word_at(self, address: int) -> int:
        """A word of an array that DMA reads."""
        for start, end, data in self.arrays:
            if start <= address < end:
                return int(data[(address - start) // 4])
        raise FirmwareFailed(f"DMA reads at {address:#x}, where nothing is")

    def addressof(self, data: Any) -> int:
        """The address of an array."""
        start = 0x20000000 + 0x10000 * len(self.arrays)
        self.arrays.append((start, start + 4 * len(data), data))
        return start

    # -- time ---------------------------------------------------------------------------------------

    def next_us(self) -> int:
        """The time of the next event on the board, in us."""
        due = NEVER
        for axis in self.axes:
            if axis.wraps_us < due:
                due = axis.wraps_us
        for timer in self.timers:
            if timer.due_us < due:
                due = timer.due_us
        return due

    def advance(self, to_us: int) -> None:
        """Let time pass and run what is due on the board; stop as soon as there is a report to the world."""
        while not self.told:
            due = self.next_us()
            if due > to_us:
                self.now_us = to_us
                break
            self.now_us = due
            for axis in self.axes:
                if axis.wraps_us == due:
                    axis.wrap()
            for timer in list(self.timers):
                if timer.due_us == due:
                    timer.fire()
        if self.watchdog_us and self.now_us - self.fed_us > self.watchdog_us:
            raise WatchdogExpired

    def wait(self, ends_us: int) -> None:
        """Let the firmware wait: time passes to the next event, at most to ``ends_us``."""
        if not (self.told or self.usb_out or self.uart_out):
            self.advance(min(ends_us, self.horizon_us))
        if self.told or self.usb_out or self.uart_out or self.now_us >= self.horizon_us:
            self.hand_over()

    def run_scheduled(self) -> None:
        """Run the functions that interrupts scheduled."""
        while self.scheduled:
            function, argument = self.scheduled.pop(0)
            function(argument)


class Registers(dict[int, int]):
    """``machine.mem32``: PWM slices, the ring oscillator, the watchdog's scratch."""

    def __init__(self, chip: StubbedChip) -> None:
        super().__init__()
        self._chip = chip

    def __getitem__(self, address: int) -> int:
        if address == RING_OSCILLATOR_BIT:
            return self._chip.oscillator_bit()
        encoder = self._chip._counters.get(address)
        if encoder is not None:
            return self._chip.counted(encoder) - self._chip._encoder_zero[encoder] & 0xFFFF
        return self.get(address, 0)

    def __setitem__(self, address: int, value: int) -> None:
        chip = self._chip
        encoder = chip._counters.get(address)
        if encoder is not None:
            chip._encoder_zero[encoder] = chip.counted(encoder) - value
            return
        super().__setitem__(address, value)
        axis = chip._switches.get(address)
        if axis is not None:
            axis.switched(bool(value & ENABLED))
