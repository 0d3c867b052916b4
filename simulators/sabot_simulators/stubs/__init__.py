"""The shipped board program on CPython, over stubs of MicroPython's modules, in virtual time."""
