"""Imported first where source is compiled on a small heap: garbage is collected early from then on.

Otherwise what the compiler leaves behind cuts the free memory into pieces, and a large one is not found.
"""

import gc

if hasattr(gc, "threshold"):  # MicroPython
    gc.threshold(8192)
