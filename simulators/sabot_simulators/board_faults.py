"""Faults of the controller board, which the mechanism does not have: of its records and of its clock."""

from random import Random

from sabot_firmware import kept
from sabot_firmware.critical import CriticalMemory
from sabot_simulators.chips import SimFram
from sabot_simulators.in_process import LockStep
from sabot_simulators.mechanism.faults import Fault

WRONG_BY_S = (-86_400, 3_600, 9 * 3_600, 1_000_000)
LONGEST_RECORD = 120  # bytes within which the power goes while one is written


class BoardFaults:
    """The board's memory chip and what can happen to it and to the clock."""

    def __init__(self, random: Random) -> None:
        self.chip = SimFram()
        self._random = random

    def join(self, device: LockStep) -> None:
        """From now on such faults of the device's machine happen here."""

        def strike(fault: Fault) -> None:
            if fault.kind == "wrong_clock":
                device.clock_wrong_by_s = self._random.choice(WRONG_BY_S)
            elif fault.kind == "unknown_clock":
                device.clock_known = False
            elif fault.kind == "corrupted_record":
                self._flip_a_bit()
                if self._random.random() < 0.5:  # a record is read only when the power comes
                    device.machine.cut_power()
            else:
                self.chip.power.cut_after(self._random.randrange(LONGEST_RECORD))

        device.machine.on_fault = strike

    def _flip_a_bit(self) -> None:
        """Of the core's record, the one that counts until another is written."""
        record = CriticalMemory(self.chip, kept.RECORDS).load("core")
        if record is not None:
            at = bytes(self.chip.cells).index(record) + self._random.randrange(len(record))
            self.chip.flip(at, self._random.randrange(8))
