"""The cables while the grid runs: bytes pass at ticks that a timer's alarm makes, in an interrupt.

``sabot_grid`` is that interrupt (``sabot_image_build/SABOT_PICO/grid.c``). Between two ticks this module
handles the bytes of the last tick and queues the answers for the next tick.
"""

import sabot_grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_firmware.boards.rp2040.cables import Cable

IN_BYTES = 320  # as the interrupt has it: what comes in at a tick, or is still to be dealt with
NONE = -1


class GridCables:
    """The cables, numbered as the interrupt has them."""

    def __init__(self, cables: "tuple[Cable, ...]") -> None:
        self._cables = cables
        self._worked = [0] * len(cables)  # the tick of each that was dealt with
        self._buffer = bytearray(IN_BYTES)
        self.runs = False
        sabot_grid.stop()  # it may run on after a crash

    def start(self) -> None:
        """From the next tick on."""
        sabot_grid.start()
        self.runs = True
        for n, cable in enumerate(self._cables):
            sabot_grid.put(n, cable.take_unsent())
            sabot_grid.allow(n, IN_BYTES)
            self._worked[n] = sabot_grid.ticks(n)

    def stop(self, now_ms: int) -> None:
        """The loop reads and writes the cables itself again, beginning with what is under way."""
        sabot_grid.stop()
        self.runs = False
        for n, cable in enumerate(self._cables):
            self._receive(n, now_ms)
            cable.unsent(sabot_grid.rest(n))

    def due_us(self) -> int:
        """How long until the next tick."""
        return sabot_grid.due_us()  # type: ignore[no-any-return]

    def ready(self) -> int:
        """The cable whose tick has come and was not dealt with, the oldest first; NONE if there is none."""
        found = NONE
        for n in range(len(self._worked)):
            if sabot_grid.ticks(n) != self._worked[n] and (found == NONE or self._older(n, found)):
                found = n
        return found

    def _older(self, n: int, other: int) -> bool:
        return sabot_grid.older(n, other)  # type: ignore[no-any-return]

    def at_us(self, n: int) -> int:
        """When a cable's last tick was."""
        return sabot_grid.at_us(n)  # type: ignore[no-any-return]

    def work(self, n: int) -> None:
        """Deal with what a cable's last tick brought, and leave what is said to it for the next one."""
        self._worked[n] = sabot_grid.ticks(n)
        port, now_ms = self._cables[n].port, sabot_grid.at_ms(n)
        self._receive(n, now_ms)
        if sabot_grid.left(n):  # the host does not read: it is not listened to either
            port.poll(now_ms, False)
            return
        if port.has_work(now_ms):
            said = port.run_tick(now_ms)
            if said:
                sabot_grid.put(n, said)
        sabot_grid.allow(n, IN_BYTES - port.waiting())

    def _receive(self, n: int, now_ms: int) -> None:
        taken = sabot_grid.take(n, self._buffer)
        if taken:
            self._cables[n].port.receive(bytes(memoryview(self._buffer)[:taken]), now_ms)
