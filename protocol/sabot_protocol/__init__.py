"""The wire between a Sabot shoe and its table PC.

Every module directly in this package runs unchanged on MicroPython and CPython;
``host`` and ``generate`` are for CPython only and are never put on a board.
"""
