"""The way to a new application: the prompt of a development board, the boot loader of a production board.

A started watchdog cannot be stopped, so a development board reaches its prompt by a restart: a mark in a
register that survives the restart, but not a power cut, tells the next start to offer the prompt.
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
    """Whether this start is to offer the prompt; the next one will not."""
    if machine.mem32[_SCRATCH] & 0xFFFFFFFF != _MARK:
        return False
    machine.mem32[_SCRATCH] = 0
    return True


def overwrite_heap() -> None:
    """Overwrite all unused heap memory, because RAM keeps its contents through the restart."""
    gc.collect()
    taken: object = None
    size = _LARGEST
    while size >= _SMALLEST:
        try:
            taken = (taken, bytearray(size))  # a chain: a list would need one large piece to grow in
        except MemoryError:
            size //= 2


def start() -> None:
    """Overwrite keys and seeds left in RAM, then start the loader; does not return."""
    overwrite_heap()
    if _PRODUCTION in sys.implementation._machine:
        machine.bootloader()
    machine.mem32[_SCRATCH] = _MARK
    machine.reset()
