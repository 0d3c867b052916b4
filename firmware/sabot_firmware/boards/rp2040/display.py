"""The display: two lines of 20 characters on I2C (ST7032 or alike)."""

from machine import I2C

from sabot_firmware.boards.rp2040 import pins

WIDTH = 20
_COMMAND = 0x00
_TEXT = 0x40
_GO_TO = 0x80
_SECOND_LINE = 0x40
_START = b"\x38\x39\x14\x73\x5e\x6c\x0c\x01"  # two lines, contrast, follower on, display on, clear


class Display:
    """Shows lines. A display that does not answer is ignored, since nothing depends on it."""

    def __init__(self, bus: I2C) -> None:
        self._bus = bus
        self.there = True
        try:
            for command in _START:
                bus.writeto(pins.DISPLAY, bytes((_COMMAND, command)))
        except OSError:
            self.there = False

    def show(self, line: int, text: str) -> None:
        """Write one line, padded with blanks; takes about a millisecond."""
        if not self.there:
            return
        shown = text.encode()[:WIDTH]
        try:
            self._bus.writeto(pins.DISPLAY, bytes((_COMMAND, _GO_TO | (_SECOND_LINE if line else 0))))
            self._bus.writeto(pins.DISPLAY, bytes((_TEXT,)) + shown + b" " * (WIDTH - len(shown)))
        except OSError:
            self.there = False
