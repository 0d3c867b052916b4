"""The emulated Pico in real time, its USB offered to the flash tests as a pseudo-terminal.

It moves as fast as the clock on the wall, or as fast as this computer emulates, whichever is slower.
"""

import os
import select
import time
import tty
from collections.abc import Callable
from typing import Any

from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.rp2040.pico import Pico
from sabot_simulators.rp2040.wiring import PinDrivenMachine, Wiring

SLICE_US = 5_000
MOST_AT_ONCE = 4096

Flash = Callable[..., tuple[int, list[dict[str, Any]]]]  # ``sabot flash``: its exit code and what it said


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


def serve(pico: Pico, machine: PinDrivenMachine, cable: PtyCable, going_on: Callable[[], bool]) -> None:
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
            wiring.changes.append(runner_messages.usb(heard))
        end = agenda.now_us + SLICE_US
        while agenda.now_us < end and not said:
            next_us = agenda.next_us()
            wiring.follow()
            changes, wiring.changes = wiring.changes, []
            ran = pico.run(end if next_us is None else min(end, next_us), changes)
            agenda.advance(max(int(ran.now_us), agenda.now_us))
            wiring.take(ran)
            if ran.why == runner_messages.RESET:
                wiring.reset()
            said += ran.usb
            if ran.why == runner_messages.LOADER:
                return
