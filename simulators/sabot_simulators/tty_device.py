"""A whole simulated device in real time on a tty: firmware on MicroPython, mechanism here.

    python -m sabot_simulators.tty_device TTY MEMORY [--table] [--seed N]

MEMORY is a file in the place of the critical memory's chip: what is in it outlives the power, which is this
program; the cards do not. With ``--table`` two decks are registered and shuffled before the cable is plugged
in (machine time that does not pass here), unless the memory knows decks, and somebody takes each stack. It
always says that it is a simulator.
"""

import argparse
import contextlib
import mmap
import os
import select
import sys
import time
from pathlib import Path
from random import Random

from sabot_firmware import shoe
from sabot_firmware.critical import FRAM_SIZE, Fram
from sabot_simulators.dealer import Dealer
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.micropython import find_micropython
from sabot_simulators.micropython_device import MicroPythonDevice, WireOptions, micropython

HEAP = "768k"  # the firmware is compiled into it from its source, with the wire's end
LONGEST_WAIT_MS = 500
DEAF_MS = 20  # after so long a host that took nothing is tried again
TAKE_BYTES = 1024  # before the clock is looked at
REACTION_US = 250_000  # of the hand that takes a stack
WIRE = WireOptions(flags=0x0006)  # a simulator whose shuffles can be foretold
WAITING = (shoe.STACK_WAITING, shoe.STUB_WAITING)


class FileFram(Fram):
    """An FRAM in a file; what was written is there even if this program is killed."""

    def __init__(self, path: Path) -> None:
        if not path.exists() or path.stat().st_size != FRAM_SIZE:
            path.write_bytes(bytes(FRAM_SIZE))
        with path.open("r+b") as file:
            self._cells = mmap.mmap(file.fileno(), FRAM_SIZE)

    def read(self, address: int, length: int) -> bytes:
        """So many bytes from an address on."""
        return self._cells[address : address + length]

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Write bytes from an address on."""
        self._cells[address : address + len(data)] = bytes(data)


class TtyServer:
    """A device whose time is this computer's, and the byte stream it is plugged into."""

    def __init__(self, device: MicroPythonDevice, stream: int, hands: bool) -> None:
        self._device = device
        self._stream = stream
        self._hands = hands
        self._poller = select.poll()
        self._poller.register(stream, select.POLLIN)
        os.set_blocking(stream, False)
        self._waiting_since_us: int | None = None
        self._zero_us = device.machine.agenda.now_us - time.monotonic_ns() // 1000

    def run(self) -> None:
        """Until the stream ends."""
        wait_ms = 0
        unsent = b""
        while True:
            data = b""
            if self._poller.poll(wait_ms):
                try:
                    data = os.read(self._stream, TAKE_BYTES)
                except BlockingIOError:
                    data = b""
                except OSError:  # the other end was closed
                    return
                else:
                    if not data:
                        return
            self._catch_up()
            blocked = bool(unsent)
            said, due_ms = self._device.carry(data, room=not blocked)
            unsent += said
            if unsent:
                with contextlib.suppress(BlockingIOError):
                    unsent = unsent[os.write(self._stream, unsent) :]
            wait_ms = min(self._rest_ms(due_ms), DEAF_MS if unsent else LONGEST_WAIT_MS)
            if data or (blocked and not unsent):
                wait_ms = 0

    def _catch_up(self) -> None:
        """What has happened in the machine meanwhile happens now, one thing after the other."""
        device = self._device
        agenda = device.machine.agenda
        now_us = self._zero_us + time.monotonic_ns() // 1000
        device.run_for(max(now_us - agenda.now_us, 0))
        if device.shoe_state not in WAITING:
            self._waiting_since_us = None
        elif self._waiting_since_us is None:
            self._waiting_since_us = agenda.now_us
        elif self._hands and agenda.now_us - self._waiting_since_us >= REACTION_US:
            device.machine.take_exit()
            device.run_for(0)

    def _rest_ms(self, due_ms: int | None) -> int:
        """How long nothing is to be done unless bytes come."""
        waits = [LONGEST_WAIT_MS]
        due_us = self._device.due_us()
        if due_us is not None:
            waits.append(-(-due_us // 1000))
        if due_ms is not None:
            waits.append(due_ms)
        if self._waiting_since_us is not None and self._hands:
            waits.append(REACTION_US // 1000)
        return min(waits)


def prepare(device: MicroPythonDevice) -> None:
    """Two decks come to the table, one into the shoe and one onto the shelf; not again after a power cut."""
    if not device.view().decks:
        Dealer(device).open_table()


def main() -> int:
    """Serve one device on a tty until the other end closes it."""
    parser = argparse.ArgumentParser(prog="python -m sabot_simulators.tty_device")
    parser.add_argument("tty")
    parser.add_argument("memory", type=Path)
    parser.add_argument("--table", action="store_true", help="two decks are shuffled, and stacks are taken")
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    random = Random(arguments.seed)
    python = micropython(HEAP) if find_micropython() else [sys.executable, "-u"]
    chip = FileFram(arguments.memory)
    with MicroPythonDevice(
        SimulatedMachine(random), random.randrange, chip, python=python, wire=WIRE
    ) as device:
        if arguments.table:
            prepare(device)
        device.clock_known = False  # from now on the host says what time it is
        stream = os.open(arguments.tty, os.O_RDWR | os.O_NOCTTY)
        TtyServer(device, stream, arguments.table).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
