"""The shipped board program in a thread of its own, run like an emulated Pico: ``Pico``'s interface.

Only one of two threads runs at any time: the firmware's during ``run``, the world's otherwise. So nothing
depends on how threads are scheduled, and the same seed gives the same run.
"""

import threading
from collections.abc import Callable, Sequence
from types import ModuleType, TracebackType
from typing import Self

from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.rp2040.runner_messages import Change, NoiseWanted, RunResult
from sabot_simulators.stubs.stub_modules import SERIAL, load_program
from sabot_simulators.stubs.stubbed_chip import (
    FLASH_SIZE,
    FirmwareFailed,
    FramChip,
    PowerFailed,
    PowerGone,
    StubbedChip,
    WatchdogExpired,
)

NOISE_LEFT = 2048  # bytes: then more is asked for


class StubbedBoard:
    """One board. FRAM and flash survive a power cut; everything else is new at each start."""

    def __init__(self, serial: bytes = SERIAL, ticks_from_us: int = 0) -> None:
        """``ticks_from_us``: first value of the processor's counter, so that a test can make it wrap."""
        self._serial = serial
        self._ticks_from_us = ticks_from_us
        self.fram = FramChip()
        self.flash = bytearray(b"\xff" * FLASH_SIZE)
        self.now_us = 0.0
        self.axes: tuple[int, ...] = (0, 0)
        self.boots = 0
        self._thread: threading.Thread | None = None
        self.on_load: Callable[[ModuleType], None] = lambda program: None
        """Called with ``boards.rp2040.program`` as it was imported for this start, before it runs."""
        self._firmwares_turn = _taken()
        self._worlds_turn = _taken()
        self._gone = False
        self._failed: BaseException | None = None
        self.chip = self._new_chip()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the firmware's thread."""
        self.power_off()

    # -- power ------------------------------------------------------------------------------------

    def _new_chip(self) -> StubbedChip:
        chip = StubbedChip(self.fram, self.flash, self._hand_over)
        chip.now_us = int(self.now_us)
        chip.ticks_from_us = self._ticks_from_us
        for axis, position in zip(chip.axes, self.axes, strict=True):
            axis.position = position
        return chip

    def power_on(self, by_watchdog: bool = False) -> None:
        """Start the boot. Nothing runs before the first ``run``."""
        before, self.chip = self.chip, self._new_chip()
        self.chip.noise, self.chip.noise_at = before.noise, before.noise_at
        self.chip.cable = before.cable
        for address, expander in before.expanders.items():
            self.chip.expanders[address].pins = self.chip.expanders[address].seen = expander.pins
        for pin, level in enumerate(before.levels):
            if pin not in self.chip.watched_pins:
                self.chip.levels[pin] = level
        self._gone, self._failed = False, None
        self.boots += 1
        program = load_program(self.chip, self._serial, by_watchdog)
        self.on_load(program)
        self._thread = threading.Thread(
            target=self._live, args=(program.main,), name="sabot-stubbed-board", daemon=True
        )
        self._thread.start()

    def power_off(self) -> None:
        """Cut the power: the program ends where it waits."""
        thread, self._thread = self._thread, None
        if thread is None or not thread.is_alive():
            return
        self._gone = True
        self._firmwares_turn.release()
        thread.join()
        self._worlds_turn = _taken()
        self._firmwares_turn = _taken()

    def pass_time(self, until_us: float) -> None:
        """Let time pass while the board is off."""
        self.now_us = until_us

    # -- running ----------------------------------------------------------------------------------

    def run(self, until_us: float, changes: Sequence[Change] = ()) -> RunResult:
        """Apply the changes, then run the board to a time or until it reports something to the mechanism."""
        chip = self.chip
        for name, *values in changes:
            chip.change(str(name), *values)
        if self._thread is None:
            self.now_us = max(until_us, self.now_us)
            return RunResult(self.now_us, runner_messages.UNTIL, (), b"", b"", self.axes)
        chip.horizon_us = max(int(until_us), chip.now_us)
        self._firmwares_turn.release()
        self._worlds_turn.acquire()
        self.now_us = float(chip.now_us)
        self.axes = tuple(axis.position for axis in chip.axes)
        if isinstance(self._failed, WatchdogExpired):
            self._thread.join()
            self.power_on(by_watchdog=True)
            return RunResult(self.now_us, runner_messages.RESET, (), b"", b"", self.axes)
        if isinstance(self._failed, PowerFailed):
            self._thread.join()
            self._thread = None
            return RunResult(self.now_us, "off", (), b"", b"", self.axes)
        if self._failed is not None:
            raise FirmwareFailed(f"the program ended: {self._failed!r}") from self._failed
        if chip.noise_left() < NOISE_LEFT:
            chip.tell(NoiseWanted(chip.now_us))
        told, chip.told = tuple(chip.told), []
        said, chip.usb_out = bytes(chip.usb_out), bytearray()
        uart, chip.uart_out = bytes(chip.uart_out), bytearray()
        spoke = said or uart
        why = runner_messages.SAID if spoke else runner_messages.TOLD if told else runner_messages.UNTIL
        return RunResult(self.now_us, why, told, said, uart, self.axes)

    def _hand_over(self) -> None:
        """In the firmware's thread: give control to the world's thread and wait for it to return control."""
        self._worlds_turn.release()
        self._firmwares_turn.acquire()
        if self._gone:
            raise PowerGone

    def _live(self, main: "Callable[[], None]") -> None:
        self._firmwares_turn.acquire()
        try:
            if self._gone:
                return
            main()
            self._failed = FirmwareFailed("main returned: the loader is to be started")
        except PowerGone:
            return
        except BaseException as error:  # noqa: BLE001  the world's thread raises it
            self._failed = error
        self._worlds_turn.release()


def _taken() -> threading.Lock:
    """A lock that is held: one thread releases it to let the other go on."""
    lock = threading.Lock()
    lock.acquire()
    return lock
