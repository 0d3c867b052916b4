"""Putting an application onto a board: by MicroPython's prompt, or as a UF2 by the boot loader's drive."""
