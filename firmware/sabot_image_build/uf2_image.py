"""UF2: the image format of the Pico's boot loader, 256 bytes of flash in each block of 512.

The first block carries the SHA-256 of all pages in an extension tag, which ``sabot flash`` checks.
"""

import hashlib
import struct

from sabot_image_build.programs import BuildFailed

FLASH = 0x10000000
RP2040 = 0xE48BFF56
PAYLOAD = 256
BLOCK = 512
_MAGIC = (0x0A324655, 0x9E5D5157, 0x0AB16F30)
_FAMILY_PRESENT = 0x00002000
_TAGS_PRESENT = 0x00008000
_SHA_TAG = 0xB46DB0


def to_uf2(parts: list[tuple[int, bytes]]) -> bytes:
    """Parts of the flash, each with its offset, as one UF2 file."""
    pages = []
    for offset, data in sorted(parts):
        if offset % PAYLOAD:
            raise BuildFailed(f"a part of the image begins at {offset:#x}, within a page")
        for at in range(0, len(data), PAYLOAD):
            pages.append((FLASH + offset + at, data[at : at + PAYLOAD].ljust(PAYLOAD, b"\0")))
    digest = hashlib.sha256(b"".join(page for _, page in pages)).digest()
    note = bytes([4 + len(digest)]) + _SHA_TAG.to_bytes(3, "little") + digest
    blocks = []
    for number, (address, page) in enumerate(pages):
        flags = _FAMILY_PRESENT if number else _FAMILY_PRESENT | _TAGS_PRESENT
        head = struct.pack("<8I", *_MAGIC[:2], flags, address, PAYLOAD, number, len(pages), RP2040)
        body = head + page + (b"" if number else note)
        blocks.append(body.ljust(BLOCK - 4, b"\0") + struct.pack("<I", _MAGIC[2]))
    return b"".join(blocks)


def from_uf2(image: bytes) -> dict[int, bytes]:
    """Pages of flash by offset; BuildFailed if the file is not an image for this chip."""
    pages = {}
    if not image or len(image) % BLOCK:
        raise BuildFailed("not a UF2: it is not made of blocks")
    for at in range(0, len(image), BLOCK):
        first, second, flags, address, size, _, _, family = struct.unpack_from("<8I", image, at)
        last = struct.unpack_from("<I", image, at + BLOCK - 4)[0]
        if (first, second, last) != _MAGIC or not flags & _FAMILY_PRESENT or family != RP2040:
            raise BuildFailed(f"not a UF2 for the RP2040: the block at {at} is another one")
        pages[address - FLASH] = image[at + 32 : at + 32 + size]
    return pages
