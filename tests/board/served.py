"""The emulated Pico in real time, its USB offered to any host program as a pseudo-terminal or a TCP port.

    python -m sabot_simulators.rp2040.served --image build/firmware/sabot-rp2040.uf2 [--tcp PORT] [--deck]

It moves as fast as the clock on the wall, or as fast as this computer emulates, whichever is slower.
"""

import argparse
import os
import select
import socket
import sys
import tempfile
import time
import tty
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Protocol

from sabot_firmware import hardware
from sabot_simulators.mechanism.cards import new_deck
from sabot_simulators.rp2040 import messages
from sabot_simulators.rp2040.pico import EmulatorMissing, Pico, bootrom
from sabot_simulators.rp2040.wiring import PinMachine, Wiring, board_wiring

SLICE_US = 5_000
MOST_AT_ONCE = 4096


class Cable(Protocol):
    """The host's side of the cable."""

    address: str

    def exchange(self, data: bytes, wait_s: float) -> bytes:
        """Pass on what the device said, and wait for what the host says, at most so long."""


class PtyCable:
    """A pseudo-terminal; its name is the port to open."""

    def __init__(self) -> None:
        self._ours, self._theirs = os.openpty()
        tty.setraw(self._theirs)
        self.address = os.ttyname(self._theirs)

    def exchange(self, data: bytes, wait_s: float) -> bytes:
        """Both ways; what nobody reads fills the terminal's buffer and is then lost."""
        _, writable, _ = select.select([], [self._ours] if data else [], [], 0)
        if writable:
            os.write(self._ours, data)
        readable, _, _ = select.select([self._ours], [], [], wait_s)
        return os.read(self._ours, MOST_AT_ONCE) if readable else b""


class TcpCable:
    """A TCP port of this computer; one host at a time."""

    def __init__(self, port: int) -> None:
        self._server = socket.create_server(("127.0.0.1", port))
        self._host: socket.socket | None = None
        self.address = "socket://127.0.0.1:%d" % self._server.getsockname()[1]

    def exchange(self, data: bytes, wait_s: float) -> bytes:
        """Both ways; without a host what the device says is lost."""
        waiting: list[socket.socket] = [self._host or self._server]
        try:
            if data and self._host is not None:
                self._host.sendall(data)
            readable, _, _ = select.select(waiting, [], [], wait_s)
            if not readable:
                return b""
            if self._host is None:
                self._host = self._server.accept()[0]
                return b""
            heard = self._host.recv(MOST_AT_ONCE)
        except OSError:
            heard = b""
        if not heard and self._host is not None:
            self._host.close()
            self._host = None
        return heard


def serve(pico: Pico, machine: PinMachine, cable: Cable, going_on: Callable[[], bool]) -> None:
    """Run the board in real time until told to stop, or until it has started its boot loader."""
    wiring, agenda = Wiring(machine), machine.agenda
    pico.power_on()
    began = time.monotonic()
    said = b""
    while going_on():
        ahead_s = agenda.now_us / 1e6 - (time.monotonic() - began)
        heard = cable.exchange(said, max(ahead_s, 0))
        said = b""
        if heard:
            wiring.changes.append(messages.usb(heard))
        end = agenda.now_us + SLICE_US
        while agenda.now_us < end and not said:
            next_us = agenda.next_us()
            wiring.follow()
            changes, wiring.changes = wiring.changes, []
            ran = pico.run(end if next_us is None else min(end, next_us), changes)
            agenda.advance(max(int(ran.now_us), agenda.now_us))
            wiring.take(ran)
            if ran.why == messages.RESET:
                wiring.reset()
            said += ran.usb
            if ran.why == messages.LOADER:
                return


def main() -> int:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m sabot_simulators.rp2040.served", description=__doc__)
    parser.add_argument("--image", type=Path, default=Path("build/firmware/sabot-rp2040.uf2"))
    parser.add_argument("--tcp", type=int, metavar="PORT", help="offer a TCP port; 0 takes a free one")
    parser.add_argument("--deck", action="store_true", help="a red deck lies in the tray")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    machine = PinMachine(Random(options.seed))
    if options.deck:
        machine.load(new_deck(hardware.RED, machine.random))
    cable: Cable = PtyCable() if options.tcp is None else TcpCable(options.tcp)
    try:
        rom = bootrom(Path(tempfile.gettempdir()) / "sabot")
        with Pico(options.image, board_wiring(), rom, options.seed) as pico:
            sys.stdout.write(f"SIMULATOR: an emulated Pico at {cable.address}\n")
            sys.stdout.flush()
            serve(pico, machine, cable, lambda: True)
    except EmulatorMissing as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
