"""The wire between a Sabot shoe and its table PC.

Every module directly in this package runs unchanged on MicroPython and CPython;
``host`` and ``generate`` are for CPython only and are never put on a board.
"""

__version__ = "0.1.0"
"""The release of the whole project; its packages and the board's image take it from here."""
