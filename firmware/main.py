"""The board's program starts here. Whatever fails, the motors stop and the link comes back.

It ends only when service starts the boot loader.
"""

import gc

import micropython

micropython.kbd_intr(-1)  # no byte of the cable is a command to MicroPython
micropython.alloc_emergency_exception_buf(100)

# What is loaded now stays: between garbage it would leave a heap of holes.
gc.threshold(8192)  # type: ignore[attr-defined]  # of MicroPython

from sabot_firmware.boards.rp2040 import loader  # noqa: E402  only now may anything take time

if loader.held():
    micropython.kbd_intr(3)  # service wants the prompt
else:
    from sabot_firmware.boards.rp2040.program import main

    main()
    loader.start()
