"""The house that a device belongs to: its public key, the device's site, and how often the device was reset.

The record is in flash, beside the provisioning mark. Presence clears keys and leaves the house: a device that
belongs to one takes a new key only after the house has signed a reset statement for its serial number and
reset count.

What the house signs are lines of canonical JSON (docs/credentials.md). The device does not read JSON. It
writes the line that it expects from its own values and checks the signature over that line.
"""

from binascii import hexlify

KEY_SIZE = 32
MOST_COUNT = 0xFFFFFFFF


class HouseRecord:
    """What the device knows of its house; a board keeps it in flash, this one forgets it."""

    def __init__(self) -> None:
        self.key = b""  # empty: none
        self.site = ""
        self.count = 0
        """How often a reset statement was used."""
        self.damaged = False
        """There was a record, and it cannot be read: nobody can sign a statement for it."""

    def is_bound(self) -> bool:
        """Whether a reset needs the house's signature."""
        return self.damaged or bool(self.key)

    def write(self, key: bytes, site: str, count: int) -> None:
        """Keep it; OSError if that cannot be, and then the record is the old or the new one."""
        self.key, self.site, self.count = key, site, count
        self.damaged = False

    def count_reset(self) -> None:
        """A statement for this count was used: none for it counts again. OSError as in ``write``."""
        if self.key:
            self.write(self.key, self.site, min(self.count + 1, MOST_COUNT))


def is_site(text: str) -> bool:
    """Whether a site's name can be written into a line without escapes."""
    for each in text:
        if not " " <= each <= "~" or each in '"\\':
            return False
    return text == text.strip() and bool(text)


def reset_line(house: bytes, serial: bytes, count: int) -> bytes:
    """What the house signs so that a device without keys takes a new one."""
    told = '{"count":%d,"house":"%s","serial":"%s","v":1}' % (count, _hex(house), _hex(serial))
    return b"sabot reset 1\n" + told.encode()


def rotation_line(house: bytes, new: bytes, number: int, old_until_s: int) -> bytes:
    """What the house's old key signs to name the new one."""
    told = '{"from":"%s","number":%d,"old_until_s":%d,"to":"%s","v":1}'
    return b"sabot rotation 1\n" + (told % (_hex(house), number, old_until_s, _hex(new))).encode()


def is_key(key: bytes) -> bool:
    """Whether these bytes can be a house's key at all."""
    return len(key) == KEY_SIZE and bool(sum(key))


def _hex(data: bytes) -> str:
    return str(hexlify(data), "ascii")
