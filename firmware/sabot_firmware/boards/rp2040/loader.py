"""What takes a new application: the prompt of a board in development, the boot loader of a production board.

A watchdog that was started cannot be stopped, so a board in development comes to its prompt by a restart: a
mark that outlives it, but not the power, tells the next start to leave the prompt alone.
"""

import sys

import machine

_SCRATCH = 0x4005800C  # the watchdog's first scratch register
_MARK = 0x5AB07F1A
_PRODUCTION = "Sabot"  # how SABOT_PICO/mpconfigboard.h names its board


def held() -> bool:
    """Whether this start is one that leaves the prompt alone; the next one is not."""
    if machine.mem32[_SCRATCH] & 0xFFFFFFFF != _MARK:
        return False
    machine.mem32[_SCRATCH] = 0
    return True


def start() -> None:
    """Start it; does not return."""
    if _PRODUCTION in sys.implementation._machine:
        machine.bootloader()
    machine.mem32[_SCRATCH] = _MARK
    machine.reset()
