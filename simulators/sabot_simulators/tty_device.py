"""A simulated device in real time on a tty that exists already: firmware on MicroPython, machine here.

    python -m sabot_simulators.tty_device TTY MEMORY [--table] [--seed N]

MEMORY is a file that holds the cells of critical memory. It survives this program: killing it is a
power cut. The cards do not survive. With ``--table`` two decks are registered and shuffled before the cable
is plugged in, unless the memory knows decks, and people take each stack. The program prints ``ready`` when it
has plugged in the cable.
"""

import argparse
import mmap
import os
import sys
from pathlib import Path
from random import Random

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_firmware.critical import FRAM_SIZE, Fram
from sabot_simulators.chips import BOARD_SECTORS, SimFlash
from sabot_simulators.dealer import Dealer
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import SIMULATOR, TEST_RNG
from sabot_simulators.endpoints.device_server import DeviceServer, wire_ms
from sabot_simulators.endpoints.pseudo_terminal import FileCable
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.micropython import find_micropython
from sabot_simulators.micropython_device import WIRED_HEAP, MicroPythonDevice, WireOptions, micropython

WIRE = WireOptions(flags=SIMULATOR | TEST_RNG, own_clock=True, flash=SimFlash(BOARD_SECTORS))
REACTION_MS = 250  # of the hand that takes a stack


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


def prepare(device: MicroPythonDevice) -> None:
    """Two decks come to the table, one into the shoe and one onto the shelf; not again after a power cut."""
    if not device.view().decks:
        device.clock_known = True  # as if a host had set it
        Dealer(device).open_table()
        device.clock_known = False


def main() -> int:
    """Serve one device on a tty until the other end closes it."""
    parser = argparse.ArgumentParser(prog="python -m sabot_simulators.tty_device")
    parser.add_argument("tty")
    parser.add_argument("memory", type=Path)
    parser.add_argument("--table", action="store_true", help="two decks are shuffled, and stacks are taken")
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    random = Random(arguments.seed)
    python = micropython(WIRED_HEAP) if find_micropython() else [sys.executable, "-u"]
    settings = DeviceSettings(speed=1.0, dealer=arguments.table, dealer_ms=REACTION_MS)
    with MicroPythonDevice(
        SimulatedMachine(random), random.randrange, FileFram(arguments.memory), python=python, wire=WIRE,
        settings=settings, now_ms=wire_ms(),
    ) as device:  # fmt: skip
        if arguments.table:
            prepare(device)
        device.keeps_reports = False
        server = DeviceServer(device)
        cable = FileCable(os.open(arguments.tty, os.O_RDWR | os.O_NOCTTY))
        server.plug(cable)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        cable.closed.wait()
        server.close()
    return 0


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(main())
