"""The first thing that runs: no byte of the cable stops the program, and no file system is mounted."""

import micropython

micropython.kbd_intr(-1)
