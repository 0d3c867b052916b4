"""Ed25519 signatures (RFC 8032), checked in slices: each ``step`` is a few dozen multiplications.

Only public values are used, so the time may depend on them. MicroPython has neither SHA-512 nor curves; both
are here, on its big integers. A board may have something faster (``Executor.check_signature``).
"""

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

SIGNATURE_SIZE = 64
PUBLIC_SIZE = 32

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = 37095705934669439343138083508754565189542113879843219016388785533085940283555
_ROOT = 19681161376707505956807079304988542015446066515923890162744021073123829784752  # of -1
_BX = 15112221349535400772501151409588531511454012693041857206046113283949847762202
_BY = 46316835694926478169428394003475163141307993866256225615783033603165251855960
_MASK = 2**64 - 1
_HASH_SLICE = 8  # rounds of SHA-512 in one step
_POWER_SLICE = 16  # squarings in one step

# SHA-512's constants, FIPS 180-4 (4.2.3, 5.3.5)
_FIRST = (
    b"\x6a\x09\xe6\x67\xf3\xbc\xc9\x08\xbb\x67\xae\x85\x84\xca\xa7\x3b\x3c\x6e\xf3\x72\xfe\x94\xf8\x2b"
    b"\xa5\x4f\xf5\x3a\x5f\x1d\x36\xf1\x51\x0e\x52\x7f\xad\xe6\x82\xd1\x9b\x05\x68\x8c\x2b\x3e\x6c\x1f"
    b"\x1f\x83\xd9\xab\xfb\x41\xbd\x6b\x5b\xe0\xcd\x19\x13\x7e\x21\x79"
)
_K = (
    b"\x42\x8a\x2f\x98\xd7\x28\xae\x22\x71\x37\x44\x91\x23\xef\x65\xcd\xb5\xc0\xfb\xcf\xec\x4d\x3b\x2f"
    b"\xe9\xb5\xdb\xa5\x81\x89\xdb\xbc\x39\x56\xc2\x5b\xf3\x48\xb5\x38\x59\xf1\x11\xf1\xb6\x05\xd0\x19"
    b"\x92\x3f\x82\xa4\xaf\x19\x4f\x9b\xab\x1c\x5e\xd5\xda\x6d\x81\x18\xd8\x07\xaa\x98\xa3\x03\x02\x42"
    b"\x12\x83\x5b\x01\x45\x70\x6f\xbe\x24\x31\x85\xbe\x4e\xe4\xb2\x8c\x55\x0c\x7d\xc3\xd5\xff\xb4\xe2"
    b"\x72\xbe\x5d\x74\xf2\x7b\x89\x6f\x80\xde\xb1\xfe\x3b\x16\x96\xb1\x9b\xdc\x06\xa7\x25\xc7\x12\x35"
    b"\xc1\x9b\xf1\x74\xcf\x69\x26\x94\xe4\x9b\x69\xc1\x9e\xf1\x4a\xd2\xef\xbe\x47\x86\x38\x4f\x25\xe3"
    b"\x0f\xc1\x9d\xc6\x8b\x8c\xd5\xb5\x24\x0c\xa1\xcc\x77\xac\x9c\x65\x2d\xe9\x2c\x6f\x59\x2b\x02\x75"
    b"\x4a\x74\x84\xaa\x6e\xa6\xe4\x83\x5c\xb0\xa9\xdc\xbd\x41\xfb\xd4\x76\xf9\x88\xda\x83\x11\x53\xb5"
    b"\x98\x3e\x51\x52\xee\x66\xdf\xab\xa8\x31\xc6\x6d\x2d\xb4\x32\x10\xb0\x03\x27\xc8\x98\xfb\x21\x3f"
    b"\xbf\x59\x7f\xc7\xbe\xef\x0e\xe4\xc6\xe0\x0b\xf3\x3d\xa8\x8f\xc2\xd5\xa7\x91\x47\x93\x0a\xa7\x25"
    b"\x06\xca\x63\x51\xe0\x03\x82\x6f\x14\x29\x29\x67\x0a\x0e\x6e\x70\x27\xb7\x0a\x85\x46\xd2\x2f\xfc"
    b"\x2e\x1b\x21\x38\x5c\x26\xc9\x26\x4d\x2c\x6d\xfc\x5a\xc4\x2a\xed\x53\x38\x0d\x13\x9d\x95\xb3\xdf"
    b"\x65\x0a\x73\x54\x8b\xaf\x63\xde\x76\x6a\x0a\xbb\x3c\x77\xb2\xa8\x81\xc2\xc9\x2e\x47\xed\xae\xe6"
    b"\x92\x72\x2c\x85\x14\x82\x35\x3b\xa2\xbf\xe8\xa1\x4c\xf1\x03\x64\xa8\x1a\x66\x4b\xbc\x42\x30\x01"
    b"\xc2\x4b\x8b\x70\xd0\xf8\x97\x91\xc7\x6c\x51\xa3\x06\x54\xbe\x30\xd1\x92\xe8\x19\xd6\xef\x52\x18"
    b"\xd6\x99\x06\x24\x55\x65\xa9\x10\xf4\x0e\x35\x85\x57\x71\x20\x2a\x10\x6a\xa0\x70\x32\xbb\xd1\xb8"
    b"\x19\xa4\xc1\x16\xb8\xd2\xd0\xc8\x1e\x37\x6c\x08\x51\x41\xab\x53\x27\x48\x77\x4c\xdf\x8e\xeb\x99"
    b"\x34\xb0\xbc\xb5\xe1\x9b\x48\xa8\x39\x1c\x0c\xb3\xc5\xc9\x5a\x63\x4e\xd8\xaa\x4a\xe3\x41\x8a\xcb"
    b"\x5b\x9c\xca\x4f\x77\x63\xe3\x73\x68\x2e\x6f\xf3\xd6\xb2\xb8\xa3\x74\x8f\x82\xee\x5d\xef\xb2\xfc"
    b"\x78\xa5\x63\x6f\x43\x17\x2f\x60\x84\xc8\x78\x14\xa1\xf0\xab\x72\x8c\xc7\x02\x08\x1a\x64\x39\xec"
    b"\x90\xbe\xff\xfa\x23\x63\x1e\x28\xa4\x50\x6c\xeb\xde\x82\xbd\xe9\xbe\xf9\xa3\xf7\xb2\xc6\x79\x15"
    b"\xc6\x71\x78\xf2\xe3\x72\x53\x2b\xca\x27\x3e\xce\xea\x26\x61\x9c\xd1\x86\xb8\xc7\x21\xc0\xc2\x07"
    b"\xea\xda\x7d\xd6\xcd\xe0\xeb\x1e\xf5\x7d\x4f\x7f\xee\x6e\xd1\x78\x06\xf0\x67\xaa\x72\x17\x6f\xba"
    b"\x0a\x63\x7d\xc5\xa2\xc8\x98\xa6\x11\x3f\x98\x04\xbe\xf9\x0d\xae\x1b\x71\x0b\x35\x13\x1c\x47\x1b"
    b"\x28\xdb\x77\xf5\x23\x04\x7d\x84\x32\xca\xab\x7b\x40\xc7\x24\x93\x3c\x9e\xbe\x0a\x15\xc9\xbe\xbc"
    b"\x43\x1d\x67\xc4\x9c\x10\x0d\x4c\x4c\xc5\xd4\xbe\xcb\x3e\x42\xb6\x59\x7f\x29\x9c\xfc\x65\x7e\x2a"
    b"\x5f\xcb\x6f\xab\x3a\xd6\xfa\xec\x6c\x44\x19\x8c\x4a\x47\x58\x17"
)


class SignatureCheck:
    """One signature that is being checked: ``step`` until it returns True, then ``fits`` has the result.

    The text is given in parts: a list of revocations is long, and a board has little memory.
    """

    def __init__(self, public: bytes, signature: bytes, text: "Iterable[bytes]") -> None:
        self.fits = False
        self._work = _check(bytes(public), bytes(signature), text)

    def step(self) -> bool:
        """One slice of the work; whether it is done."""
        try:
            next(self._work)
        except StopIteration as end:
            self.fits = bool(end.value)
            return True
        return False


def _check(public: bytes, signature: bytes, text: "Iterable[bytes]") -> "Generator[None, None, bool]":
    """Whether s·B - h·A is the R of the signature; no cofactor, and no key of small order."""
    if len(signature) != SIGNATURE_SIZE or len(public) != PUBLIC_SIZE:
        return False
    s = int.from_bytes(signature[32:], "little")
    if s >= _L:
        return False
    key = yield from _point(public)
    if key is None:
        return False
    x, y = key
    x = _P - x
    minus = (x, y, 1, x * y % _P)
    yield
    small = minus
    for _ in range(3):
        small = _double(small)
    if not small[0]:
        return False
    digest = yield from _sha512(signature[:32] + public, text)
    base = (_BX, _BY, 1, _BX * _BY % _P)
    minus_entry, base_entry = _entry(minus), _entry(base)
    yield
    entries = (base_entry, minus_entry, _entry(_add(base, minus_entry)))
    of_base = s.to_bytes(32, "little")
    of_key = (int.from_bytes(digest, "little") % _L).to_bytes(32, "little")
    sum = (0, 1, 1, 0)
    for bit in range(252, -1, -1):  # both are below 2^253
        sum = _double(sum)
        at, shift = bit >> 3, bit & 7
        both = (of_base[at] >> shift & 1) | (of_key[at] >> shift & 1) << 1
        if both:
            sum = _add(sum, entries[both - 1])
        yield
    inverse = yield from _power(sum[2], _P - 2)
    encoded = sum[1] * inverse % _P | (sum[0] * inverse % _P & 1) << 255
    return encoded.to_bytes(32, "little") == signature[:32]


def _point(encoded: bytes) -> "Generator[None, None, tuple[int, int] | None]":
    """A point from its 32 bytes (RFC 8032, 5.1.3); None if there is none, or they are not its only bytes."""
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & 2**255 - 1
    if y >= _P:
        return None
    u = (y * y - 1) % _P
    v = (_D * y * y + 1) % _P
    cube = v * v % _P * v % _P
    power = yield from _power(u * cube % _P * cube % _P * v % _P, (_P - 5) // 8)
    x = u * cube % _P * power % _P
    square = v * x % _P * x % _P
    if square != u:
        if square != _P - u:
            return None
        x = x * _ROOT % _P
    if not x and sign:
        return None
    return (x if x & 1 == sign else _P - x), y


def _power(base: int, exponent: int) -> "Generator[None, None, int]":
    """A power modulo p."""
    bits = exponent.to_bytes(32, "little")
    result = 1
    for bit in range(255, -1, -1):
        result = result * result % _P
        if bits[bit >> 3] >> (bit & 7) & 1:
            result = result * base % _P
        if not bit % _POWER_SLICE:
            yield
    return result


def _entry(point: "tuple[int, int, int, int]") -> "tuple[int, int, int, int]":
    """A point as ``_add`` wants its second one."""
    x, y, z, t = point
    return (y - x) % _P, (y + x) % _P, 2 * z % _P, 2 * _D * t % _P


def _add(
    point: "tuple[int, int, int, int]", entry: "tuple[int, int, int, int]"
) -> "tuple[int, int, int, int]":
    """The sum of two points in extended coordinates (RFC 8032, 5.1.4)."""
    x, y, z, t = point
    a = (y - x) * entry[0] % _P
    b = (y + x) * entry[1] % _P
    c = t * entry[3] % _P
    d = z * entry[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _double(point: "tuple[int, int, int, int]") -> "tuple[int, int, int, int]":
    """Twice a point (RFC 8032, 5.1.4)."""
    x, y, z, _ = point
    a = x * x % _P
    b = y * y % _P
    h = a + b
    e = h - (x + y) * (x + y) % _P
    g = a - b
    f = 2 * z * z % _P + g
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _blocks(first: bytes, parts: "Iterable[bytes]") -> "Generator[bytes, None, None]":
    """A text in blocks of 128 bytes, the last ones with SHA-512's padding."""
    size = len(first)
    for part in parts:
        size += len(part)
        first += part
        while len(first) >= 128:
            yield first[:128]
            first = first[128:]
    first += b"\x80" + bytes((111 - size) % 128) + (size * 8).to_bytes(16, "big")
    yield first[:128]
    if len(first) > 128:
        yield first[128:]


def _sha512(first: bytes, parts: "Iterable[bytes]") -> "Generator[None, None, bytes]":
    """The SHA-512 (FIPS 180-4) of a text: fewer than 128 bytes, and parts that follow."""
    state = list(struct.unpack(">8Q", _FIRST))
    for block in _blocks(first, parts):
        words = list(struct.unpack(">16Q", block))
        a, b, c, d, e, f, g, h = state
        for turn in range(80):
            word = words[turn & 15]
            if turn >= 16:
                early, late = words[turn + 1 & 15], words[turn + 14 & 15]
                word += (_turned(early, 1) ^ _turned(early, 8) ^ early >> 7) + words[turn + 9 & 15]
                word = word + (_turned(late, 19) ^ _turned(late, 61) ^ late >> 6) & _MASK
                words[turn & 15] = word
            constant = struct.unpack_from(">Q", _K, 8 * turn)[0]
            one = h + (_turned(e, 14) ^ _turned(e, 18) ^ _turned(e, 41)) + (g ^ e & (f ^ g)) + constant + word
            two = (_turned(a, 28) ^ _turned(a, 34) ^ _turned(a, 39)) + (a & b | c & (a | b))
            h, g, f, e = g, f, e, d + one & _MASK
            d, c, b, a = c, b, a, one + two & _MASK
            if not (turn + 1) % _HASH_SLICE:
                yield
        after = (a, b, c, d, e, f, g, h)
        for index in range(8):
            state[index] = state[index] + after[index] & _MASK
    return struct.pack(">8Q", *state)


def _turned(word: int, by: int) -> int:
    """A word of 64 bits, rotated to the right."""
    return (word >> by | word << 64 - by) & _MASK
