"""How much was allocated since the last garbage collection, and the limits for it.

Asking for the free memory would walk through the whole heap, which takes milliseconds. MicroPython in our
image counts the allocated bytes anyway (``gc.allocated``, see ``sabot_image_build/sources.py``). On another
image this module walks the heap.
"""

import gc

COLLECT_BYTES = 32768  # while both halves are idle, garbage is collected from here on
PAUSE_BYTES = 65536  # without a shuffle, the shoe half is asked to pause between two cards
HOLD_BYTES = 81920  # cables are not read until then; room for one exchange and its reports remains
GRID_HOLD_BYTES = 106496  # on the grid, whose budget stays below it unless many cards are retried
_LIVE_BYTES = 90000  # in use after a collection, about

if hasattr(gc, "allocated"):
    allocated = gc.allocated
else:

    def allocated() -> int:
        """Bytes, by a walk."""
        return max(gc.mem_alloc() - _LIVE_BYTES, 0)  # type: ignore[attr-defined,no-any-return]
