"""Card recognition: height of a stack, colour of a back, and the face if a card reader is fitted."""

from machine import ADC, I2C

from sabot_firmware.boards.rp2040 import pins
from sabot_firmware.hardware import COVER, ENTRY, NO_FACE

SAMPLES = 4


class Analogue:
    """The three analogue inputs and the card reader."""

    def __init__(self, bus: I2C) -> None:
        self._bus = bus
        self._height = ADC(pins.HEIGHT_ADC)
        self._entry = ADC(pins.ENTRY_COLOUR_ADC)
        self._exit = ADC(pins.EXIT_COLOUR_ADC)
        self._face = bytearray(1)
        try:
            bus.readfrom_into(pins.CARD_READER, self._face)
            self.has_reader = True
        except OSError:
            self.has_reader = False

    def height_um(self) -> int:
        """The height of the stack on the platform: the mean of a few samples."""
        total = 0
        for _ in range(SAMPLES):
            total += self._height.read_u16() >> 4
        return total * pins.HEIGHT_UM_PER_COUNT // SAMPLES

    def colour(self, sensor: int) -> int:
        """What a colour reader sees."""
        count = (self._entry if sensor == ENTRY else self._exit).read_u16() >> 4
        limits = pins.COLOUR_LIMITS
        for seen in range(COVER):  # on the way from an edge to an order: nothing is allocated
            if count <= limits[seen]:
                return seen
        return COVER

    def face(self) -> int:
        """The card that the reader sees; NO_FACE without a reader."""
        if not self.has_reader:
            return NO_FACE
        try:
            self._bus.readfrom_into(pins.CARD_READER, self._face)
        except OSError:
            return NO_FACE
        return self._face[0]
