"""The two I/O expanders (MCP23017): inputs with one shared interrupt, a byte of outputs, and the lamp."""

from machine import I2C

from sabot_firmware.boards.rp2040 import pins
from sabot_firmware.hardware import SENSORS

_DIRECTION = 0x00
_POLARITY = 0x02
_INTERRUPT_ON_CHANGE = 0x04
_CONFIGURATION = 0x0A
_PULL_UPS = 0x0C
_LEVELS = 0x12
_LOWER_OUTPUTS = 0x14
_OUTPUTS = 0x15  # of the upper eight bits
_OPEN_DRAIN_MIRRORED = 0x44  # one interrupt for both ports, which the chips share
_NOBODY = 255
_DRIVEN = 0xFF00 | 7 << pins.LAMP_BIT


class Expanders:
    """Both chips. The upper byte of one of them and the lamp's bits are outputs; all others are inputs."""

    def __init__(self, bus: I2C) -> None:
        self._bus = bus
        self._levels = bytearray(2)
        self._byte = bytearray(1)
        self.outputs = 0
        self.lamp = 0
        self.words = [0, 0]  # each chip's inputs as read last, with the controller's polarity
        self.sensors = (bytearray([_NOBODY] * 16), bytearray([_NOBODY] * 16))
        self._seen = [0, 0]  # the bits with sensors
        inverted = [0, 0]
        for sensor, chip, bit, one in pins.INPUTS:
            self.sensors[chip][bit] = sensor
            self._seen[chip] |= 1 << bit
            if one == pins.LOW:
                inverted[chip] |= 1 << bit
        for chip, address in enumerate(pins.EXPANDERS):
            driven = _DRIVEN if chip == pins.OUTPUT_CHIP else 0
            self._write(address, _CONFIGURATION, _OPEN_DRAIN_MIRRORED * 0x0101)
            self._write(address, _LOWER_OUTPUTS, 0)
            self._write(address, _DIRECTION, 0xFFFF & ~driven)
            self._write(address, _POLARITY, inverted[chip])
            self._write(address, _PULL_UPS, pins.pulled_up(chip))
            self._write(address, _INTERRUPT_ON_CHANGE, self._seen[chip])

    def _write(self, address: int, register: int, word: int) -> None:
        self._bus.writeto_mem(address, register, bytes((word & 0xFF, word >> 8)))

    def scan(self, chip: int) -> int:
        """Read a chip's inputs, which ends its interrupt; return the bits that changed."""
        levels = self._levels
        self._bus.readfrom_mem_into(pins.EXPANDERS[chip], _LEVELS, levels)
        word = (levels[0] | levels[1] << 8) & self._seen[chip]
        changed = word ^ self.words[chip]
        self.words[chip] = word
        return changed

    def drive(self, outputs: int) -> None:
        """Set the output byte."""
        self.outputs = outputs
        self._byte[0] = outputs
        self._bus.writeto_mem(pins.EXPANDERS[pins.OUTPUT_CHIP], _OUTPUTS, self._byte)

    def light(self, colour: int) -> None:
        """Set the lamp."""
        self._byte[0] = colour << pins.LAMP_BIT
        self._bus.writeto_mem(pins.EXPANDERS[pins.OUTPUT_CHIP], _LOWER_OUTPUTS, self._byte)
        self.lamp = colour  # only now: a chip that does not answer is asked again


def output(bit: int) -> int:
    """The mask of an output within the output byte."""
    return 1 << bit - 8


assert SENSORS < _NOBODY
