"""The board's program begins here. It never ends: whatever fails, the motors stop and the link comes back."""

import micropython

micropython.kbd_intr(-1)  # no byte of the cable is a command to MicroPython
micropython.alloc_emergency_exception_buf(100)

from sabot_firmware.boards.rp2040.loop import main  # noqa: E402  only now may anything take time

main()
