"""HMAC-DRBG with SHA-256 as in SP 800-90A (rev. 1, 10.1.2): instantiate, reseed, generate.

Its strength is that of its seed, up to 256 bits. Earlier output cannot be computed from a later state.
``wipe`` overwrites key and value in place; copies that a hash made on its way are garbage until their memory
is reused.
"""

from binascii import unhexlify
from hashlib import sha256

from sabot_firmware.rng import RngFailed, wipe

STRENGTH_BITS = 256
MAX_REQUEST = 65536  # bytes of one generate (SP 800-90A, table 2: 2^19 bits)
RESEED_INTERVAL = 10000  # requests; the standard would allow 2^48

_BLOCK = 64
_SIZE = 32
_ZERO = b"\x00"
_ONE = b"\x01"


class HmacDrbg:
    """One generator, unusable before ``instantiate`` and after ``wipe``."""

    def __init__(self) -> None:
        self._key = bytearray(_SIZE)
        self._value = bytearray(_SIZE)
        self._inner_pad = bytearray(_BLOCK)
        self._outer_pad = bytearray(_BLOCK)
        self._requests = 0  # since the last seed; 0: there was none

    def instantiate(
        self, entropy: bytes | bytearray, nonce: bytes | bytearray, personal: bytes = b""
    ) -> None:
        """Start anew from entropy input, nonce and personalization string."""
        for index in range(_SIZE):
            self._key[index] = 0
            self._value[index] = 1
            self._inner_pad[_SIZE + index] = 0x36  # no key is as long as a block
            self._outer_pad[_SIZE + index] = 0x5C
        self._pads()
        self._update((entropy, nonce, personal))
        self._requests = 1

    def reseed(self, entropy: bytes | bytearray, additional: bytes = b"") -> None:
        """Mix in new entropy; later output cannot be predicted from the state before."""
        if not self._requests:
            raise RngFailed("the generator was never seeded")
        self._update((entropy, additional))
        self._requests = 1

    def generate(self, count: int, additional: bytes = b"") -> bytearray:
        """So many bytes; RngFailed without a seed, or if a reseed is due."""
        if not self._requests:
            raise RngFailed("the generator was never seeded")
        if self.is_due() or not 0 <= count <= MAX_REQUEST:
            raise RngFailed("the generator must be reseeded first, or is asked for too much")
        if additional:
            self._update((additional,))
        out = bytearray(count)
        at = 0
        while at < count:
            self._value[:] = self._hmac(self._value)
            take = min(_SIZE, count - at)
            out[at : at + take] = self._value[:take]
            at += take
        self._update((additional,) if additional else ())
        self._requests += 1
        return out

    def is_due(self) -> bool:
        """Whether a reseed is due before more output."""
        return self._requests > RESEED_INTERVAL

    def wipe(self) -> None:
        """Overwrite everything from which output could be computed."""
        for each in (self._key, self._value, self._inner_pad, self._outer_pad):
            wipe(each)
        self._requests = 0

    def _update(self, parts: "tuple[bytes | bytearray, ...]") -> None:
        """HMAC_DRBG_Update with the concatenation of ``parts`` as provided data."""
        provided = False
        for part in parts:
            if part:
                provided = True
        for mark in (_ZERO, _ONE):
            inner = sha256(self._inner_pad)
            inner.update(self._value)
            inner.update(mark)
            for part in parts:
                if part:
                    inner.update(part)
            self._key[:] = self._outer(inner.digest())
            self._pads()
            self._value[:] = self._hmac(self._value)
            if not provided:
                return

    def _pads(self) -> None:
        """Set HMAC's pads for a new key."""
        key, inner, outer = self._key, self._inner_pad, self._outer_pad
        for index in range(_SIZE):
            inner[index] = key[index] ^ 0x36
            outer[index] = key[index] ^ 0x5C

    def _hmac(self, data: bytearray) -> bytes:
        inner = sha256(self._inner_pad)
        inner.update(data)
        return self._outer(inner.digest())

    def _outer(self, inner: bytes) -> bytes:
        outer = sha256(self._outer_pad)
        outer.update(inner)
        return outer.digest()


# Known answers for power-up: NIST CAVP, HMAC_DRBG SHA-256, without and with a reseed (drbgvectors_no_reseed
# and drbgvectors_pr_false, both PersonalizationStringLen 0, COUNT 0), the first 32 of the 128 bytes returned.
_NO_RESEED = (
    b"ca851911349384bffe89de1cbdc46e6831e44d34a4fb935ee285dd14b71a7488",
    b"659ba96c601dc69fc902940805ec0ca8",
    b"",
    b"e528e9abf2dece54d47c7e75e5fe302149f817ea9fb4bee6f4199697d04d5b89",
)
_RESEED = (
    b"06032cd5eed33f39265f49ecb142c511da9aff2af71203bffaf34a9ca5bd9c0d",
    b"0e66f71edc43e42a45ad3c6fc6cdc4df",
    b"01920a4e669ed3a85ae8a33b35a74ad7fb2a6bb4cf395ce00334a9c9a5a5d552",
    b"76fc79fe9b50beccc991a11b5635783a83536add03c157fb30645e611c2898bb",
)


def check_known_answers(make: "type[HmacDrbg]" = HmacDrbg) -> None:
    """The generator's power-up test: RngFailed if it does not give the known answers."""
    for entropy, nonce, again, answer in (_NO_RESEED, _RESEED):
        drbg = make()
        drbg.instantiate(unhexlify(entropy), unhexlify(nonce))
        if again:
            drbg.reseed(unhexlify(again))
        drbg.generate(128)
        if bytes(drbg.generate(128)[:_SIZE]) != unhexlify(answer):
            raise RngFailed("the generator does not give a known answer")
        drbg.wipe()
        try:
            drbg.generate(1)
        except RngFailed:
            continue
        raise RngFailed("the generator works without a seed")
