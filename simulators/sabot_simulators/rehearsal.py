"""A shoe without a mechanism: it counts the stacks it is told to dispense. Runs on MicroPython.

It is the device of ``make demo`` and of tests on MicroPython, and always says that it is a simulator:

    micropython -m sabot_simulators.rehearsal TTY MEMORY
"""

import os
import select
import sys

from sabot_firmware.serve import serve_once, ticks_ms
from sabot_protocol.codec import enum_number
from sabot_protocol.device_end import Caller, DeviceEnd, Executor, Identity
from sabot_protocol.device_port import DevicePort
from sabot_protocol.errors import Refusal
from sabot_protocol.memory import Memory

SIMULATOR = 0x0002
CARDS_A_STACK = 3

READY = enum_number("ShoeState", "ready")
ROUND_OPEN = enum_number("ShoeState", "round_open")
SHUFFLER_IDLE = enum_number("ShufflerState", "idle")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_protocol.codec import Values


class FileMemory(Memory):
    """Critical memory in a file, so that a restarted rehearsal remembers. A save replaces it whole."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            data = b""
        at = 0
        while at < len(data):
            name_size, size = data[at], data[at + 1]
            name = data[at + 2 : at + 2 + name_size].decode()
            at += 2 + name_size
            self._records[name] = data[at : at + size]
            at += size

    def save(self, name: str, data: bytes) -> None:
        """Write every record to a new file and put it in the place of the old one."""
        super().save(name, data)
        with open(self._path + ".new", "wb") as file:
            for each in self._records:
                record = self._records[each]
                file.write(bytes((len(each), len(record))) + each.encode() + record)
        os.rename(self._path + ".new", self._path)


class RehearsalShoe(Executor):
    """Takes a round and its stacks in order, and moves nothing."""

    def __init__(self) -> None:
        self.device: DeviceEnd | None = None
        self.round_id = 0
        self.hands = 0
        self.stack = 0

    def status(self) -> "tuple[int, int, int, int, int, int]":
        """(shuffler state, shoe state, fault, status flags, round id, stack)."""
        return SHUFFLER_IDLE, ROUND_OPEN if self.round_id else READY, 0, 0, self.round_id, self.stack

    def execute(self, name: str, values: "Values", caller: Caller) -> "Values":
        """Carry out what a shoe can do without a mechanism."""
        assert self.device is not None
        if name == "locate":
            self.device.emit("located", values[0])
        elif name == "open_round":
            self.round_id, _, self.hands = values
            self.stack = 0
        elif name == "dispense_stack":
            if values != (self.round_id, self.stack + 1) or self.stack >= self.hands:
                raise Refusal("stale", (self.round_id, self.stack))
            self.stack += 1
            self.device.emit("stack_dispensed", self.round_id, self.stack, CARDS_A_STACK)
        else:
            raise Refusal("not_supported")
        return ()


def main(tty: str, memory: str) -> None:
    """Serve one rehearsal shoe on a tty until the other end closes it."""
    shoe = RehearsalShoe()
    identity = Identity(b"REHEARSE", "Sabot rehearsal", "0.1.0", SIMULATOR)
    shoe.device = DeviceEnd(identity, FileMemory(memory), shoe, os.urandom, ticks_ms())
    port = DevicePort(shoe.device)
    with open(tty, "r+b", 0) as stream:
        poller = select.poll()
        poller.register(stream, select.POLLIN)
        while serve_once(port, stream, poller):
            pass


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
