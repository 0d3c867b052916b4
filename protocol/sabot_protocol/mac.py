"""HMAC-SHA-256 with the key's pads prepared once, and comparison in constant time."""

from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def digests_equal_portable(a: bytes, b: bytes) -> bool:
    """Whether two byte strings are equal, in a time that depends on their lengths only."""
    if len(a) != len(b):
        return False
    differing = 0
    for index in range(len(a)):
        differing |= a[index] ^ b[index]
    return differing == 0


def mac_matches_portable(packet: bytes | memoryview, end: int, code: bytes) -> bool:
    """Whether ``packet`` from ``end`` on is the beginning of ``code``; allocates nothing."""
    differing = 0
    for index in range(len(packet) - end):
        differing |= packet[end + index] ^ code[index]
    return differing == 0


def mac_matches_native(packet: bytes | memoryview, end: int, code: bytes) -> bool:
    """The same where ``hmac`` has a comparison of its own."""
    return compare_digest(packet[end:], code[: len(packet) - end])


digests_equal: "Callable[[bytes, bytes], bool]" = digests_equal_portable
mac_matches: "Callable[[bytes | memoryview, int, bytes], bool]" = mac_matches_portable
try:
    from hmac import compare_digest

    digests_equal = compare_digest
    mac_matches = mac_matches_native
except ImportError:  # MicroPython has no hmac module
    pass

_BLOCK = 64
_CAN_COPY = hasattr(sha256(b""), "copy")  # CPython; a MicroPython hash is spent after digest()


class Mac:
    """HMAC-SHA-256 under one key."""

    def __init__(self, key: bytes) -> None:
        if len(key) > _BLOCK:
            key = sha256(key).digest()
        padded = key + bytes(_BLOCK - len(key))
        self._inner_pad = bytes([byte ^ 0x36 for byte in padded])
        self._outer_pad = bytes([byte ^ 0x5C for byte in padded])
        if _CAN_COPY:
            self._inner = sha256(self._inner_pad)
            self._outer = sha256(self._outer_pad)

    if _CAN_COPY:

        def digest(self, data: bytes | bytearray | memoryview) -> bytes:
            """The 32 bytes of the code for ``data``."""
            inner = self._inner.copy()
            inner.update(data)
            outer = self._outer.copy()
            outer.update(inner.digest())
            return outer.digest()

    else:

        def digest(self, data: bytes | bytearray | memoryview) -> bytes:
            """The 32 bytes of the code for ``data``."""
            inner = sha256(self._inner_pad)
            inner.update(data)
            outer = sha256(self._outer_pad)
            outer.update(inner.digest())
            return outer.digest()


def hmac_sha256(key: bytes, data: bytes) -> bytes:
    """HMAC-SHA-256 of ``data`` under ``key``."""
    return Mac(key).digest(data)
