"""The application as a file system that a board runs in place: ``sabot-rp2040.romfs``."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from sabot_flash.errors import BadImage, NoApplication
from sabot_flash.image_components import ImageComponent, components_in

HEADER = b"\xd2\xcd\x31"  # of a file system that MicroPython runs in place


@dataclass(frozen=True, slots=True)
class Application:
    """The bytes of an application, and what it says of itself."""

    data: bytes
    components: tuple[ImageComponent, ...]

    @classmethod
    def read(cls, path: Path) -> "Application":
        """The application in a file; NoApplication if there is none, BadImage if it is not whole."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise NoApplication(f"{path}: {error.strerror}") from error
        return cls.check(data)

    @classmethod
    def check(cls, data: bytes) -> "Application":
        """The application in these bytes; BadImage says what is wrong with them."""
        if not data.startswith(HEADER):
            raise BadImage("it is no file system that a board can run in place")
        size = at = len(HEADER)
        length = 0
        while at < len(data):
            length = length << 7 | data[at] & 0x7F
            at += 1
            if not data[at - 1] & 0x80:
                size = at + length
                break
        if size != len(data):
            raise BadImage(f"it should have {size} bytes and has {len(data)}: it is not whole")
        return cls(data, components_in(data))

    @property
    def sha256(self) -> bytes:
        """The hash by which a board starts it."""
        return hashlib.sha256(self.data).digest()
