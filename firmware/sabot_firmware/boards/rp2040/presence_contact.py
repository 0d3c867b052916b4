"""The presence contact in the locked logic compartment, readable even after the board has given up."""

from machine import I2C, Pin

from sabot_firmware.boards.rp2040 import pins

_PULL_UPS = 0x0C
_LEVELS = 0x12


class PresenceContactInput:
    """One input of an expander. If the bus does not answer, the contact counts as open."""

    def __init__(self) -> None:
        chip, bit, self._one = pins.PRESENCE_CONTACT
        self._address = pins.EXPANDERS[chip]
        self._bit = bit
        pulled = pins.pulled_up(chip)
        self._pull_ups = bytes((pulled & 0xFF, pulled >> 8))
        self._levels = bytearray(2)
        self._bus: I2C | None = None

    def closed(self) -> bool:
        """Whether the contact is closed now."""
        levels = self._levels
        try:
            if self._bus is None:
                self._bus = I2C(0, scl=Pin(pins.I2C_SCL), sda=Pin(pins.I2C_SDA), freq=400000)
                self._bus.writeto_mem(self._address, _PULL_UPS, self._pull_ups)
            self._bus.readfrom_mem_into(self._address, _LEVELS, levels)
        except OSError:
            self._bus = None
            return False
        return (levels[0] | levels[1] << 8) >> self._bit & 1 == self._one
