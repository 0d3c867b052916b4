"""A piped board on which an allocation of the firmware finds no memory, and which can be forked.

It needs MicroPython with the C module ``alloc_faults`` (``sabot_simulators.allocation_faults.unix_build``).
An exception that nothing handles begins a new life of the device over the same chips, as on the board
(``sabot_firmware.boards.rp2040.program``): every motor stops, and the firmware starts anew.
"""

import gc
import struct
import sys

import alloc_faults  # type: ignore[import-not-found]

# Loaded before any allocation fails: on the board these are frozen, and nothing is compiled for a message.
import sabot_firmware.event_log
import sabot_firmware.house_record
import sabot_firmware.provisioning_mark
import sabot_firmware.rng.device_rng  # noqa: F401
import sabot_protocol.device_port
import sabot_protocol.device_protocol
import sabot_protocol.provisioning  # noqa: F401
from sabot_protocol.errors import Refusal
from sabot_simulators.micropython_side import piped_board
from sabot_simulators.micropython_side.failing_board_messages import (
    ARM,
    BEGUN,
    COMPLETED,
    COUNTED,
    DISARM,
    FORK,
    FORMATS,
    JOINED,
    LEAVE,
    RESTARTED,
)
from sabot_simulators.micropython_side.piped_board import PORT, TICK, Ended, Pipe, PipedBoard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabot_protocol.codec import Value
    from sabot_protocol.executor import Caller

class CountingPipe(Pipe):
    """A pipe whose own allocations are not counted: it belongs to the emulation, not to the firmware."""

    def send(self, kind: int, fields: "tuple[Value, ...]" = (), data: "bytes | memoryview" = b"") -> None:
        """One message."""
        before = alloc_faults.count(False)
        super().send(kind, fields, data)
        alloc_faults.count(before)

    def take(self) -> "tuple[int, bytes]":
        """The next message: its kind and its body."""
        before = alloc_faults.count(False)
        message = super().take()
        alloc_faults.count(before)
        return message

    def ask(self, kind: int, fields: "tuple[Value, ...]" = (), data: bytes = b"") -> "tuple[int, bytes]":
        """One message and its answer: nothing can fail in between."""
        before = alloc_faults.count(False)
        answer = super().ask(kind, fields, data)
        alloc_faults.count(before)
        return answer


class FailingBoard(PipedBoard):
    """The firmware, of which one allocation fails."""

    def handle(self, kind: int, body: bytes) -> int:
        """Do one thing that the other end says, as the board would if memory were short."""
        if kind == ARM:
            alloc_faults.arm(*struct.unpack(FORMATS[ARM], body))
        elif kind == DISARM:
            self._disarm()
        elif kind == FORK:
            self._fork()
        elif kind == LEAVE:
            raise Ended
        else:
            counted = kind in (PORT, TICK)
            try:
                alloc_faults.count(counted)
                return super().handle(kind, body)
            except Ended:
                raise
            except Exception as error:  # noqa: BLE001  as the board's program does, whatever it is
                self._disarm()
                self._restart(error)
            finally:
                alloc_faults.count(False)
        return -1

    def _start(self, body: bytes, opened: bool = False) -> None:
        super()._start(body, opened)
        controller = self.controller()
        execute, pipe = controller.execute, self._pipe

        def told(name: str, values: "tuple[Value, ...]", caller: "Caller") -> "tuple[Value, ...]":
            pipe.send(BEGUN, (), name.encode())
            answer = execute(name, values, caller)
            pipe.send(COMPLETED, (), name.encode())
            return answer

        controller.execute = told  # type: ignore[method-assign]

    def _tell_report(self, name: str, values: "Sequence[Value]") -> None:
        before = alloc_faults.count(False)
        super()._tell_report(name, values)
        alloc_faults.count(before)

    def _restart(self, error: Exception) -> None:
        if isinstance(error, Refusal):  # a refusal is an answer; one that gets here is a defect
            raise error
        self._controller = None
        self._end = None
        self._ports.clear()
        gc.collect()
        self._pipe.send(RESTARTED, (), ("%s: %s" % (type(error).__name__, error)).encode())
        kind, times = self._pipe.take()
        if kind != piped_board.DATA:
            raise Ended
        self._start(times + self._started[8:])

    def _disarm(self) -> None:
        counted = alloc_faults.disarm()
        self._pipe.send(COUNTED, (counted, alloc_faults.failures()))

    def _fork(self) -> None:
        code = alloc_faults.fork()
        if code:
            self._pipe.send(JOINED, (code - 1,))


def main() -> int:
    """Serve the other end."""
    piped_board.FORMATS.update(FORMATS)
    try:
        FailingBoard(CountingPipe(sys.stdin.buffer, sys.stdout.buffer)).serve()
    except Ended:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
