"""The board's program: the device from power-up on, and what happens after an exception.

An exception of any kind stops every motor. Then the device starts anew over its critical memory, as after a
power cut, and reports why. After repeated failures the controller is not started again: the link stays up and
refuses everything that moves.
"""

import gc

import machine

from sabot_firmware.boards.rp2040.board import Rp2040
from sabot_firmware.boards.rp2040.board_clock import now_ms
from sabot_firmware.boards.rp2040.fram import SpiFram
from sabot_firmware.boards.rp2040.log_flash import EvidenceFlash, LogFlash
from sabot_firmware.boards.rp2040.loop import Device, KeysCleared
from sabot_firmware.critical import CriticalMemory
from sabot_firmware.event_log import EventLog
from sabot_firmware.persistent_state import RECORDS
from sabot_protocol import ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.provisioning import UnusableStore
from sabot_protocol.record_store import RecordStore

WATCHDOG_MS = 4000
CRASH = ("crash", 96)  # the record of what went wrong last
MOST_CRASHES = 3
SOUND_AFTER_MS = 60000
EVIDENCE_QUEUE = 2048  # bytes of rows that wait until nothing moves

POWER = enum_number("BootReason", "power")
WATCHDOG = enum_number("BootReason", "watchdog")
UNKNOWN = enum_number("BootReason", "unknown")


class Program:
    """The device's life from power-up on: what fails is stopped, written down and begun anew."""

    def __init__(self) -> None:
        self._watchdog = machine.WDT(timeout=WATCHDOG_MS)
        self._reason = WATCHDOG if machine.reset_cause() == machine.WDT_RESET else POWER
        self._board: Rp2040 | None = None
        self._memory: RecordStore = UnusableStore()  # until the chip is there
        self._crashes = 0
        self._sound = False  # this life has lasted; noted while it does, because ticks tell six days at most
        self._opened = False

    def run(self) -> None:
        """Returns only to let the loader be started."""
        while True:
            self._sound = False
            try:
                self._live()
                return
            except KeysCleared:
                self._crashes, self._opened, self._reason = 0, True, UNKNOWN
            except Exception as error:  # noqa: BLE001  whatever it is: nothing may move
                if self._board is not None:
                    self._board.safe()
                self._crashes = 1 if self._sound else self._crashes + 1
                self._reason = UNKNOWN
                gc.collect()  # first: an error for want of memory would be followed by another one
                self._keep(error)

    def _live(self) -> None:
        """One life of the device; it ends with an exception, or when the loader is to be started."""
        began = now_ms()
        given_up = self._crashes >= MOST_CRASHES
        if self._board is None and not given_up:
            self._board = Rp2040()
        if self._crashes <= MOST_CRASHES:
            self._memory = _open_memory()
        else:
            self._memory = UnusableStore()  # the chip itself may be what fails: only identification is left
        log = EventLog(LogFlash(), evidence=EventLog(EvidenceFlash(), queue_bytes=EVIDENCE_QUEUE))
        board = None if given_up else self._board  # what failed is not touched again
        reopen = None if self._crashes <= MOST_CRASHES else _open_memory
        opened, self._opened = self._opened, False
        device = Device(board, self._memory, log, self._reason, reopen, opened)
        if given_up:
            device.stay_idle()
        else:
            device.begin(self._memory, self._crashes > 0 or self._reason == WATCHDOG)
        gc.collect()
        gc.threshold(-1)  # type: ignore[attr-defined]  # from here on the loop says when (see main.py)
        while not device.leaves(now_ms()):
            self._watchdog.feed()
            if not self._sound and ticks.diff(now_ms(), began) > SOUND_AFTER_MS:
                self._sound = True
            device.turn()
        if self._board is not None:
            self._board.safe()
        device.let_go()
        self._memory = UnusableStore()

    def _keep(self, error: Exception) -> None:
        """Write what went wrong to critical memory."""
        text = "%s: %s" % (type(error).__name__, error)
        try:
            self._memory.save(CRASH[0], text.encode()[: CRASH[1]])
        except Exception:  # noqa: BLE001  the memory may be what failed
            return


def _open_memory() -> RecordStore:
    return CriticalMemory(SpiFram(), others=RECORDS + (CRASH,))


def main() -> None:
    """Returns only to let the loader be started."""
    Program().run()
