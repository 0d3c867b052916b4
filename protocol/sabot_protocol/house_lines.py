"""What a house signs for its devices: lines of canonical JSON (docs/credentials.md).

The device does not read JSON. It writes the line that it expects from its own values and checks the signature
over that line. A board loads this module when it is needed.
"""

import struct
from binascii import hexlify

KEY_SIZE = 32
ROLES = ((2, "dealer"), (3, "floor"), (4, "service"))  # that a certificate can have, in the order of its line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


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


def certificate_text(house: bytes, key: bytes, not_after_s: int, person: str, roles: int, site: str) -> bytes:
    """A certificate's own text, whose SHA-256 begins with its id."""
    names = ",".join(['"%s"' % name for role, name in ROLES if roles >> role & 1])
    told = '{"house":"%s","key":"%s","not_after_s":%d,"person":"%s","roles":[%s],"site":"%s","v":1}'
    return (told % (_hex(house), _hex(key), not_after_s, person, names, site)).encode()


def certificate_line(text: bytes) -> bytes:
    """What the house signs for a person."""
    return b"sabot certificate 1\n" + text


def revocation_parts(house: bytes, number: int, ids: bytes | bytearray) -> "Iterator[bytes]":
    """What the house signs to revoke certificates, in parts: the whole of it is long."""
    told = '{"house":"%s","number":%d,"revoked":['
    yield b"sabot revocations 1\n" + (told % (_hex(house), number)).encode()
    for at in range(0, len(ids), 16):
        yield (b',"' if at else b'"') + hexlify(ids[at : at + 16]) + b'"'
    yield b'],"v":1}'


def elevation_line(transcript: bytes, role: int, message: int, number: int, body_sha256: bytes) -> bytes:
    """What a person signs with the certificate's key to authorise one request of one session."""
    return b"sabot elevation 1\n" + transcript + struct.pack("<BBI", role, message, number) + body_sha256


def is_key(key: bytes) -> bool:
    """Whether these bytes can be a house's key at all."""
    return len(key) == KEY_SIZE and bool(sum(key))


def _hex(data: bytes) -> str:
    return str(hexlify(data), "ascii")
