"""What takes a new application: the prompt of a board in development, the boot loader of a production board.

A watchdog that was started cannot be stopped, so a board in development comes to its prompt by a restart: a
mark that outlives it, but not the power, tells the next start to leave the prompt alone.
"""

import gc
import sys

import machine

_SCRATCH = 0x4005800C  # the watchdog's first scratch register
_MARK = 0x5AB07F1A
_LARGEST = 16384
_SMALLEST = 16  # a block of the heap
_PRODUCTION = "Sabot"  # how SABOT_PICO/mpconfigboard.h names its board


def held() -> bool:
    """Whether this start is one that leaves the prompt alone; the next one is not."""
    if machine.mem32[_SCRATCH] & 0xFFFFFFFF != _MARK:
        return False
    machine.mem32[_SCRATCH] = 0
    return True


def overwrite_heap() -> None:
    """Overwrite whatever in the heap nothing refers to any more: RAM outlives the restart into a loader."""
    gc.collect()
    taken: object = None
    size = _LARGEST
    while size >= _SMALLEST:
        try:
            taken = (taken, bytearray(size))  # a chain: a list would need one large piece to grow in
        except MemoryError:
            size //= 2


def start() -> None:
    """Overwrite what the program left in RAM, keys and seeds among it, and start it; does not return."""
    overwrite_heap()
    if _PRODUCTION in sys.implementation._machine:
        machine.bootloader()
    machine.mem32[_SCRATCH] = _MARK
    machine.reset()
