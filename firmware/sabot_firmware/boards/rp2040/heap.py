"""How much was allocated since garbage was last collected, and how much may be.

Nothing here asks what is free: that is a walk through the whole heap, which takes milliseconds. MicroPython
in our image counts the bytes anyway (``gc.allocated``, see ``sabot_image_build/sources.py``).
On another image this module walks the heap all the same.
"""

import gc

COLLECT_BYTES = 32768  # while everything rests, it is collected at the next occasion
PAUSE_BYTES = 65536  # the shoe half is asked to stand between two cards for it, if no deck is shuffled
HOLD_BYTES = 81920  # cables are not read until they do; one exchange, and what motion leads to, find room yet
GRID_HOLD_BYTES = 106496  # on the grid, whose budget keeps below it unless cards are tried again and again
_LIVE_BYTES = 90000  # what is left after a collection, about

if hasattr(gc, "allocated"):
    allocated = gc.allocated
else:

    def allocated() -> int:
        """Bytes, by a walk."""
        return max(gc.mem_alloc() - _LIVE_BYTES, 0)  # type: ignore[attr-defined,no-any-return]
