"""What a house signs for its devices: lines of canonical JSON (docs/credentials.md).

The device does not read JSON. It writes the line that it expects from its own values and checks the signature
over that line. A board loads this module when it is needed.
"""

from binascii import hexlify

KEY_SIZE = 32


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
