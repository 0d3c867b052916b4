"""UF2 images as the firmware's build makes them, and what a boot loader says of itself."""

import struct

from sabot_flash.uf2_image import PAGE
from sabot_image_build import modules
from sabot_image_build.modules import components_module
from sabot_image_build.uf2_image import to_uf2

INFO = "UF2 Bootloader v3.0\r\nModel: Raspberry Pi RP2\r\nBoard-ID: RPI-RP2\r\n"
MADE = [
    modules.ImageComponent("controller", "1.2.3", bytes(range(32))),
    modules.ImageComponent("rng", "1.2.4", bytes(32)),
]


def crc(page: bytes) -> int:
    """CRC-32 as the boot ROM has it, by division of the whole polynomial."""
    value = int.from_bytes(page, "big") << 32 ^ 0xFFFFFFFF << len(page) * 8
    for bit in range(len(page) * 8 + 31, 31, -1):
        if value >> bit & 1:
            value ^= 0x104C11DB7 << bit - 32
    return value


def program(made: list[modules.ImageComponent] = MADE, pages: int = 9) -> bytes:
    """A program that says what it is made of, as a frozen module has it."""
    told: dict[str, bytes] = {}
    exec(components_module(made), told)
    boot = bytes(range(252))
    body = bytes(1000) + told["TEXT"]
    return (boot + struct.pack("<I", crc(boot)) + body).ljust(pages * PAGE, b"\xa5")


def image(data: bytes | None = None) -> bytes:
    """A UF2 file of it."""
    return to_uf2([(0, program() if data is None else data)])
