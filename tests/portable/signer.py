"""Ed25519 signatures for tests, also on MicroPython, which has none: slow, and not safe with real keys."""

from sabot_protocol import ed25519
from sabot_protocol.ed25519 import SIGNATURE_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator


def _run(work: "Generator[None, None, bytes]") -> bytes:
    while True:
        try:
            next(work)
        except StopIteration as end:
            return bytes(end.value)


def _sha512(text: bytes) -> bytes:
    return _run(ed25519._sha512(b"", (text,)))


def _of_base(scalar: int) -> bytes:
    """A multiple of the base point, as its 32 bytes."""
    base = ed25519._entry((ed25519._BX, ed25519._BY, 1, ed25519._BX * ed25519._BY % ed25519._P))
    sum = (0, 1, 1, 0)
    for bit in range(255, -1, -1):
        sum = ed25519._double(sum)
        if scalar >> bit & 1:
            sum = ed25519._add(sum, base)
    inverse = pow(sum[2], ed25519._P - 2, ed25519._P)
    x, y = sum[0] * inverse % ed25519._P, sum[1] * inverse % ed25519._P
    return (y | (x & 1) << 255).to_bytes(32, "little")


class Signer:
    """A key pair."""

    def __init__(self, secret: bytes) -> None:
        digest = _sha512(secret)
        scalar = bytearray(digest[:32])
        scalar[0] &= 248
        scalar[31] = scalar[31] & 63 | 64
        self._scalar = int.from_bytes(bytes(scalar), "little")
        self._prefix = digest[32:]
        self.public = _of_base(self._scalar)

    def sign(self, text: bytes) -> bytes:
        r = int.from_bytes(_sha512(self._prefix + text), "little") % ed25519._L
        first = _of_base(r)
        k = int.from_bytes(_sha512(first + self.public + text), "little")
        signature = first + ((r + k * self._scalar) % ed25519._L).to_bytes(32, "little")
        assert len(signature) == SIGNATURE_SIZE
        return signature
