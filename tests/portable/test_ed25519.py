"""Ed25519 signatures: the vectors of RFC 8032, and everything that must not fit."""

from sabot_protocol import ed25519
from sabot_protocol.ed25519 import SignatureCheck

# RFC 8032, 7.1: public key, message, signature
VECTORS = (
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
        "387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
        "4a7c15e9716ed28dc027beceea1ec40a",
    ),
)
PUBLIC, MESSAGE, SIGNATURE = [bytes.fromhex(each) for each in VECTORS[2]]
ORDER = 2**252 + 27742317777372353535851937790883648493


def fits(public, signature, message):
    check = SignatureCheck(public, signature, (message,))
    steps = 1
    while not check.step():
        steps += 1
        assert steps < 1000
    return check.fits


def test_the_vectors_of_the_rfc():
    for public, message, signature in VECTORS:
        assert fits(bytes.fromhex(public), bytes.fromhex(signature), bytes.fromhex(message))


def test_nothing_else_fits():
    assert not fits(PUBLIC, SIGNATURE, MESSAGE + b"\0")
    assert not fits(bytes.fromhex(VECTORS[1][0]), SIGNATURE, MESSAGE)
    for at in (0, 31, 32, 63):
        bad = bytearray(SIGNATURE)
        bad[at] ^= 1
        assert not fits(PUBLIC, bytes(bad), MESSAGE), at
    for size in (0, 32, 63):
        assert not fits(PUBLIC, SIGNATURE[:size], MESSAGE)
    assert not fits(PUBLIC[:31], SIGNATURE, MESSAGE)


def test_a_signature_has_one_form():
    """The same s again, the order of the curve higher: fits in arithmetic, and anybody could make it."""
    s = int.from_bytes(SIGNATURE[32:], "little") + ORDER
    assert not fits(PUBLIC, SIGNATURE[:32] + s.to_bytes(32, "little"), MESSAGE)


def test_keys_that_fit_any_message_are_none():
    """With a key of small order and R = s·B nobody needs a secret."""
    base = b"\x58" + b"\x66" * 31  # the curve's base point
    one = (1).to_bytes(32, "little")
    assert not fits(one, base + one, b"anything")  # the neutral element: R = 1·B
    for y in (1, 2**255 - 20, 2**255 - 19, 2**255 - 18, 2**255 - 1 - 2**254):
        assert not fits(y.to_bytes(32, "little"), base + one, b"anything"), y
    assert not fits(bytes(32), bytes(64), b"")


def test_a_key_has_one_form():
    """The points with the lowest y have a second form of 32 bytes, with y + p."""

    def point(y):
        work = ed25519._point(y.to_bytes(32, "little"))
        while True:
            try:
                next(work)
            except StopIteration as end:
                return end.value

    low = [y for y in range(2, 19) if point(y) is not None]
    assert low
    for y in low:
        assert point(y + 2**255 - 19) is None, y


def test_each_slice_is_short():
    """At most so many multiplications modulo p, whatever is checked."""
    longest = 0
    count = [0]
    double, add = ed25519._double, ed25519._add

    def counted(function, most):
        def call(*values):
            count[0] += most
            return function(*values)

        return call

    ed25519._double, ed25519._add = counted(double, 8), counted(add, 8)
    try:
        check = SignatureCheck(PUBLIC, SIGNATURE, (MESSAGE,))
        while not check.step():
            longest = max(longest, count[0])
            count[0] = 0
    finally:
        ed25519._double, ed25519._add = double, add
    assert 0 < longest <= 24, longest
