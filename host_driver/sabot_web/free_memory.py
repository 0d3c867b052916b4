"""Memory that a service has freed goes back to the system; its size then shows what it uses.

The C library keeps free memory between used blocks. A service that runs for months grows by it, and nobody
can tell that from a leak.
"""

import asyncio
import ctypes
import sys

EVERY_S = 10.0
"""One time takes 1 to 2 ms."""


def give_back() -> None:
    """Give free memory back now. Only glibc can; with another C library nothing happens."""
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


async def give_back_always() -> None:
    """Give free memory back every now and then, until cancelled."""
    while True:
        await asyncio.sleep(EVERY_S)
        give_back()
