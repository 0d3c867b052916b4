"""Faults of the controller board: of the records in critical memory and of the clock."""

from collections.abc import Callable
from random import Random

from sabot_firmware import persistent_state
from sabot_firmware.critical import HEAD_SIZE, CriticalMemory
from sabot_protocol.errors import MemoryDamaged
from sabot_protocol.record_store import RECORDS
from sabot_simulators.chips import SimFram
from sabot_simulators.mechanism.faults import PlannedFault
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine

FOREVER = 1 << 60
WRONG_BY_S = (-86_400, 3_600, 9 * 3_600, 1_000_000)
LONGEST_RECORD = 120  # bytes within which the power goes while one is written


class BoardFaults:
    """Lets the faults of memory chip and clock that are planned for a machine happen on its board."""

    def __init__(self, random: Random, chip: SimFram) -> None:
        self._random = random
        self._chip = chip

    def join(
        self, machine: SimulatedMachine, clock_wrong: Callable[[int], None], clock_lost: Callable[[], None]
    ) -> None:
        """Receive the board faults of a machine; ``clock_wrong`` gets the error of the clock in seconds."""

        def strike(fault: PlannedFault) -> None:
            if fault.kind == "wrong_clock":
                clock_wrong(self._random.choice(WRONG_BY_S))
            elif fault.kind == "unknown_clock":
                clock_lost()
            elif fault.kind == "corrupted_record":
                self._flip_a_bit()
                if self._random.random() < 0.5:  # a record is read only when the power comes
                    machine.cut_power()
            else:
                self._chip.power.cut_after(self._random.randrange(LONGEST_RECORD))

        machine.on_fault = strike

    def _flip_a_bit(self) -> None:
        """Of the controller's record, the one that counts until another is written. The power may be off."""
        cells = SimFram(self._chip.size)
        cells.cells[:] = self._chip.cells
        try:
            record = CriticalMemory(cells, persistent_state.RECORDS).load("core")
        except MemoryDamaged:
            return  # once is enough
        if record is not None:
            at = bytes(self._chip.cells).index(record) + self._random.randrange(len(record))
            self._chip.flip(at, self._random.randrange(8))


def keys_record() -> tuple[int, int]:
    """Address and length of the record of the keys in critical memory, both slots together."""
    at = 0
    for name, most in RECORDS:
        size = 2 * (HEAD_SIZE + most)
        if name == "keys":
            return at, size
        at += size
    raise KeyError("keys")


def damage_memory(chip: SimFram, cause: str) -> None:
    """Damage critical memory; ``cause`` is one of ``emulated_device.MEMORY_FAULTS`` except ``crashes``."""
    if cause == "absent":
        chip.failing = FOREVER
    elif cause == "read_only":
        chip.deaf = True
    elif cause == "blank":
        chip.cells[:] = bytes(len(chip.cells))
    else:
        assert cause == "damaged"
        at, size = keys_record()
        for address in range(at, at + size):
            chip.flip(address, 3)
