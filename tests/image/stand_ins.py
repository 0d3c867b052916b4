"""Stand-ins for MicroPython's own modules, enough to run the stepper on CPython: a PWM slice fed by DMA.

``Slice`` runs a move as the RP2040 does: a period is latched at each wrap, the transfer that the wrap asks
for comes after it, a channel that is done starts the one it is chained to, and that one sees the next wrap.
"""

import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

PWM = 0x40050000
SLICE = 0x14
CSR, DIV, CTR, CC, TOP = 0x00, 0x04, 0x08, 0x0C, 0x10


class Memory:
    """Arrays by address."""

    def __init__(self) -> None:
        self.arrays: dict[int, array[int]] = {}

    def addressof(self, data: "array[int]") -> int:
        """Where an array is; kept, so that nothing else comes to lie there."""
        for address, known in self.arrays.items():
            if known is data:
                return address
        address = 0x20000000 + 0x10000 * len(self.arrays)
        self.arrays[address] = data
        return address

    def read(self, address: int) -> int:
        """The word at an address."""
        base = address & ~0xFFFF
        return self.arrays[base][(address - base) // 4]


class Registers(dict[int, int]):
    """``machine.mem32`` for the registers of PWM slices."""

    def __missing__(self, address: int) -> int:
        return 0


class Dma:
    """One DMA channel."""

    made: "list[Dma]"
    memory: Memory

    def __init__(self) -> None:
        self.channel = len(self.made)
        self.made.append(self)
        self.read = self.write = self.planned = self.count = 0
        self.ctrl: dict[str, Any] = {}
        self.busy = False
        self.handler: Any = None

    def pack_ctrl(self, **values: Any) -> dict[str, Any]:
        """What was asked for, as it is."""
        return {"inc_read": True, "chain_to": self.channel, "irq_quiet": True, **values}

    def config(self, **values: Any) -> None:
        """Set some registers."""
        for name, value in values.items():
            setattr(self, "planned" if name == "count" else name, value)

    def irq(self, handler: Any, hard: bool) -> None:
        """Who is called at the end."""
        assert hard
        self.handler = handler

    def active(self, on: int | None = None) -> bool:
        """Start, abort, or tell."""
        if on is not None:
            self.busy = bool(on)
            if on:
                assert self.planned > 0, "a channel without transfers never ends"
                self.count = self.planned
        return self.busy

    def transfer(self, registers: Registers) -> None:
        """One word."""
        registers[self.write] = self.memory.read(self.read)
        if self.ctrl["inc_read"]:
            self.read += 4
        self.count -= 1
        if self.count == 0:
            self.busy = False
            if self.ctrl["chain_to"] != self.channel:
                self.made[self.ctrl["chain_to"]].active(1)
            if not self.ctrl["irq_quiet"]:
                self.handler(None)


class Slice:
    """A PWM slice that runs to the end of a move: when each pulse came."""

    def __init__(self, registers: Registers, pin: int) -> None:
        self._registers = registers
        self._at = PWM + (pin >> 1 & 7) * SLICE

    def run(self, most: int = 10000, after: int | None = None) -> list[int]:
        """The times of the pulses, in ticks; stopped after so many, if a number is given."""
        registers, at = self._registers, self._at
        pulses: list[int] = []
        now = 0
        period = registers.pop("first", 0)  # type: ignore[call-overload]
        while registers[at + CSR] & 1 and len(pulses) < most:
            now += period
            period = registers[at + TOP] + 1  # latched
            if registers[at + CC]:
                pulses.append(now)
            for channel in list(Dma.made):
                if channel.busy:
                    channel.transfer(registers)
                    break
            if after is not None and len(pulses) == after:
                break
        return pulses


class Latching(Registers):
    """A slice's first period is the one written before it is switched on; what comes later is the next."""

    def __setitem__(self, address: Any, value: int) -> None:
        if isinstance(address, int) and (address - PWM) % SLICE == CSR and value & 1:
            super().__setitem__("first", self[address + TOP] + 1)  # type: ignore[index]
        super().__setitem__(address, value)


@contextmanager
def micropython() -> Iterator[Registers]:
    """MicroPython's modules stand in for a while; the registers that the firmware writes."""
    registers = Latching()
    memory = Memory()
    Dma.made, Dma.memory = [], memory
    machine, rp2, uctypes = ModuleType("machine"), ModuleType("rp2"), ModuleType("uctypes")
    machine.mem32 = registers  # type: ignore[attr-defined]
    machine.Pin = machine.PWM = lambda *values, **named: None  # type: ignore[attr-defined]
    rp2.DMA = Dma  # type: ignore[attr-defined]
    uctypes.addressof = memory.addressof  # type: ignore[attr-defined]
    names = {"machine": machine, "rp2": rp2, "uctypes": uctypes}
    ours = [name for name in sys.modules if name.startswith("sabot_firmware.boards.rp2040")]
    before = {name: sys.modules.get(name) for name in [*names, *ours]}
    for name in ours:
        del sys.modules[name]
    sys.modules.update(names)
    try:
        yield registers
    finally:
        for name in [each for each in sys.modules if each.startswith("sabot_firmware.boards.rp2040")]:
            del sys.modules[name]
        for name, module in before.items():
            if module is not None:
                sys.modules[name] = module
            else:
                sys.modules.pop(name, None)
