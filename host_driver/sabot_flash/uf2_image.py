"""UF2 files: whether one is whole, for this chip, and what it says of itself.

A file is blocks of 512 bytes, each with a page of flash and where it goes. A block may carry notes after its
page (extension tags): ours has the SHA-256 of the program in its first block.
"""

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path

from sabot_flash.errors import BadImage, NoApplication
from sabot_flash.image_components import ImageComponent, components_in, over_program

BLOCK = 512
PAGE = 256
HEAD = struct.Struct("<8I")
MAGIC = (0x0A324655, 0x9E5D5157)
MAGIC_END = 0x0AB16F30
NOT_MAIN_FLASH = 0x0001
FAMILY_PRESENT = 0x2000
TAGS_PRESENT = 0x8000
RP2040 = 0xE48BFF56
FLASH_AT = 0x10000000
FLASH_BYTES = 2 << 20
SHA_TAG = 0xB46DB0
BOOT_BYTES = 256
"""The first page is the second stage of the boot; its last four bytes are a checksum of the rest."""


@dataclass(frozen=True, slots=True)
class Uf2Image:
    """A UF2 that is whole."""

    data: bytes
    program: bytes
    """What will be in the flash, from its beginning on."""
    sha256: bytes
    components: tuple[ImageComponent, ...]
    """As a board with this program reports them."""

    @property
    def version(self) -> str:
        """The version of the first component, the controller's."""
        return self.components[0].version


def read_image(path: Path) -> Uf2Image:
    """An image out of a file; NoApplication if there is none, BadImage says what is wrong with it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NoApplication(f"{path}: {error.strerror}", "Build it with 'make firmware'.") from error
    return check_image(data)


def check_image(data: bytes) -> Uf2Image:
    """Look at every block, then at the whole."""
    if not data or len(data) % BLOCK:
        raise BadImage(f"not a UF2: {len(data)} bytes are not made of blocks of {BLOCK}")
    total = len(data) // BLOCK
    pages = []
    for number in range(total):
        block = data[number * BLOCK : (number + 1) * BLOCK]
        pages.append(_page(block, number, total))
    program = b"".join(pages)
    if len(program) > FLASH_BYTES:
        raise BadImage(f"{len(program)} bytes do not fit into a flash of {FLASH_BYTES}")
    if not _boots(program[:BOOT_BYTES]):
        raise BadImage("its first page is not what the chip boots from: its checksum is wrong")
    digest = hashlib.sha256(program).digest()
    told = _note(data[:BLOCK], SHA_TAG)
    if told is None:
        raise BadImage("it does not carry the hash of its program: it was not built by this project")
    if told != digest:
        raise BadImage("its program is not the one whose hash it carries: it is damaged")
    return Uf2Image(data, program, digest, over_program(components_in(program), digest))


def _page(block: bytes, number: int, total: int) -> bytes:
    """The page of a block, which must be the next one."""
    first, second, flags, address, size, index, count, family = HEAD.unpack_from(block)
    (last,) = struct.unpack_from("<I", block, BLOCK - 4)
    if (first, second) != MAGIC or last != MAGIC_END:
        raise BadImage(f"not a UF2: block {number} has another beginning or end")
    if not flags & FAMILY_PRESENT or family != RP2040:
        raise BadImage(f"not for the RP2040: block {number} is for family {family:#010x}")
    if flags & NOT_MAIN_FLASH:
        raise BadImage(f"block {number} is not for the flash")
    if (index, count) != (number, total):
        raise BadImage(f"block {number} of {total} says it is {index} of {count}: it is not whole")
    if size != PAGE:
        raise BadImage(f"block {number} has {size} bytes, not a page")
    if address != FLASH_AT + number * PAGE:
        raise BadImage(f"block {number} goes to {address:#010x}, not to the next page")
    return block[HEAD.size : HEAD.size + PAGE]


def _note(block: bytes, kind: int) -> bytes | None:
    """What a note of a block says; None if it has none of that kind."""
    (flags,) = struct.unpack_from("<I", block, 8)
    at = HEAD.size + PAGE
    while flags & TAGS_PRESENT and at + 4 <= BLOCK - 4:
        size = block[at]
        if size < 4 or at + size > BLOCK - 4:
            return None
        if int.from_bytes(block[at + 1 : at + 4], "little") == kind:
            return block[at + 4 : at + size]
        at += size + -size % 4
    return None


def _boots(page: bytes) -> bool:
    """Whether the boot ROM would start it: CRC-32 (MPEG-2) over 252 bytes."""
    crc = 0xFFFFFFFF
    for byte in page[: BOOT_BYTES - 4]:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc & 0x80000000 else 0)) & 0xFFFFFFFF
    return crc == int.from_bytes(page[BOOT_BYTES - 4 : BOOT_BYTES], "little")
