"""The cables while the grid runs: bytes pass at ticks that a timer's alarm makes, in an interrupt.

``sabot_grid`` is that interrupt (``sabot_image_build/SABOT_PICO/grid.c``). Here is what happens between
ticks. Each tick of each cable is handled once, in its order. With it two things are settled for the tick
ANSWERED_AFTER later: what is sent then, and how many bytes may come in. Both follow from the bytes that came,
not from when this loop came to deal with them.
"""

import sabot_grid

from sabot_protocol import ticks
from sabot_protocol.grid import ANSWERED_AFTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_firmware.boards.rp2040.cables import Cable

IN_BYTES = 320  # as the interrupt has it: what may come in at one tick
UNDER_WAY_BYTES = 320  # what may come in until then, or is still to be looked at; it is copied at each tick
NONE = -1


class GridCables:
    """The cables, numbered as the interrupt has them. Ticks are numbered from 1."""

    def __init__(self, cables: "tuple[Cable, ...]") -> None:
        self._cables = cables
        self._worked = [0] * len(cables)  # the tick of each that was dealt with
        self._allowed = [0] * len(cables)  # bytes that may come in at the ticks that were not
        self._buffer = bytearray(IN_BYTES)
        self.runs = False
        sabot_grid.stop()  # it may run on after a crash

    def start(self) -> None:
        """From the next tick on."""
        sabot_grid.start()
        self.runs = True
        share = UNDER_WAY_BYTES // ANSWERED_AFTER
        for n, cable in enumerate(self._cables):
            sabot_grid.put(n, 1, cable.take_unsent())
            for tick in range(1, ANSWERED_AFTER + 1):
                sabot_grid.allow(n, tick, share)
            self._worked[n] = 0
            self._allowed[n] = share

    def stop(self, now_ms: int) -> None:
        """The loop reads and writes the cables itself again, beginning with what is under way."""
        sabot_grid.stop()
        self.runs = False
        for n, cable in enumerate(self._cables):
            for tick in range(self._worked[n] + 1, sabot_grid.ticks(n) + 2):  # one more may have begun
                self._receive(n, tick, now_ms)
            cable.unsent(sabot_grid.rest(n))

    def due_us(self) -> int:
        """How long until the next tick."""
        return sabot_grid.due_us()  # type: ignore[no-any-return]

    def ready(self) -> int:
        """The cable whose tick has come and was not dealt with, the oldest first; NONE if there is none."""
        found = NONE
        for n in range(len(self._worked)):
            if sabot_grid.ticks(n) != self._worked[n] and (
                found == NONE or ticks.diff(self.at_us(n), self.at_us(found)) < 0
            ):
                found = n
        return found

    def at_us(self, n: int) -> int:
        """When that tick of a cable was."""
        return sabot_grid.at_us(n, self._worked[n] + 1)  # type: ignore[no-any-return]

    def work(self, n: int) -> None:
        """Deal with what a cable's oldest tick brought."""
        tick = self._worked[n] = self._worked[n] + 1
        port, now_ms = self._cables[n].port, sabot_grid.at_ms(n, tick)
        self._receive(n, tick, now_ms)
        said, allowed = b"", 0
        if sabot_grid.unsent(n, tick):  # the host does not read: it is not listened to either
            port.poll(now_ms, False)
        else:
            if port.has_work(now_ms):
                said = port.run_tick(now_ms)
            allowed = min(max(UNDER_WAY_BYTES - self._allowed[n] - port.waiting(), 0), IN_BYTES)
        sabot_grid.put(n, tick + ANSWERED_AFTER, said)
        sabot_grid.allow(n, tick + ANSWERED_AFTER, allowed)
        self._allowed[n] = allowed

    def _receive(self, n: int, tick: int, now_ms: int) -> None:
        taken = sabot_grid.take(n, tick, self._buffer)
        if taken:
            self._cables[n].port.receive(bytes(memoryview(self._buffer)[:taken]), now_ms)
