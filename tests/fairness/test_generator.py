"""The generator against another one, written from SP 800-90A with Python's own ``hmac``."""

import hmac
from random import Random

import pytest
import scipy
from cavp import CAVP  # of the portable tests

from sabot_firmware.rng import entropy_source, lag_test
from sabot_firmware.rng.draws import Slots
from sabot_firmware.rng.drbg import HmacDrbg
from sabot_protocol.host.shuffle_audit import RevealedShuffle, about, slots_of


class Reference:
    """HMAC_DRBG as 10.1.2 has it, step by step: K and V, no pads, no state in place."""

    def __init__(self, entropy: bytes, nonce: bytes, personal: bytes) -> None:
        self.k, self.v = b"\x00" * 32, b"\x01" * 32
        self.update(entropy + nonce + personal)

    def hash(self, data: bytes) -> bytes:
        return hmac.new(self.k, data, "sha256").digest()

    def update(self, provided: bytes) -> None:
        self.k = self.hash(self.v + b"\x00" + provided)
        self.v = self.hash(self.v)
        if provided:
            self.k = self.hash(self.v + b"\x01" + provided)
            self.v = self.hash(self.v)

    def reseed(self, entropy: bytes, additional: bytes) -> None:
        self.update(entropy + additional)

    def generate(self, count: int, additional: bytes) -> bytes:
        if additional:
            self.update(additional)
        out = b""
        while len(out) < count:
            self.v = self.hash(self.v)
            out += self.v
        self.update(additional)
        return out[:count]


def test_the_reference_gives_nists_answers() -> None:
    for entropy, nonce, personal, again, first, second, answer in CAVP:
        made = Reference(bytes.fromhex(entropy), bytes.fromhex(nonce), bytes.fromhex(personal))
        if again:
            made.reseed(bytes.fromhex(again), b"")
        made.generate(128, bytes.fromhex(first))
        assert made.generate(128, bytes.fromhex(second)).hex() == answer


def test_both_agree_whatever_is_asked_of_them() -> None:
    random = Random(1)

    def some(most: int) -> bytes:
        return random.randbytes(random.choice((0, random.randrange(1, most))))

    for _ in range(100):
        entropy, nonce, personal = random.randbytes(32), some(33), some(80)
        ours, other = HmacDrbg(), Reference(entropy, nonce, personal)
        ours.instantiate(entropy, nonce, personal)
        for _ in range(8):
            if random.random() < 0.3:
                entropy, additional = random.randbytes(random.randrange(32, 129)), some(40)
                ours.reseed(entropy, additional)
                other.reseed(entropy, additional)
            count, additional = random.randrange(0, 200), some(40)
            assert bytes(ours.generate(count, additional)) == other.generate(count, additional)


def test_the_slots_are_those_of_a_third_reading_of_the_page() -> None:
    random = Random(2)
    for cards in (1, 6, 52, 416):
        seed, nonce = random.randbytes(32), random.randbytes(32)
        shuffle = RevealedShuffle(b"SABOT001", 3, 9, cards, b"", nonce, seed, ())
        reference = Reference(seed, nonce, about(shuffle))
        numbers = bytearray()
        expected = []
        for bound in range(1, cards + 1):
            while True:
                if not numbers:
                    numbers += reference.generate(64, b"")
                number, numbers = int.from_bytes(numbers[:2], "big"), numbers[2:]
                if number < 65536 - 65536 % bound:
                    break
            expected.append(number % bound)
        slots = Slots(cards)
        slots.fill(seed, nonce, about(shuffle))
        assert [slots.draw(bound) for bound in range(1, cards + 1)] == expected == list(slots_of(shuffle))


@pytest.mark.slow
def test_the_cutoffs_follow_from_the_entropy_stated() -> None:
    """SP 800-90B, 4.4.1 and 4.4.2, with a false alarm in 2^20."""
    entropy = entropy_source.ENTROPY_MILLIBITS / 1000
    assert -(-20 // entropy) + 1 == entropy_source.REPETITION_CUTOFF
    likeliest = 2**-entropy
    cutoff = 1 + scipy.stats.binom.ppf(1 - 2**-20, entropy_source.WINDOW, likeliest)
    assert cutoff == entropy_source.PROPORTION_CUTOFF


def test_the_lag_tests_cutoff_is_one_false_alarm_in_2_to_the_27_for_each_lag_and_sign() -> None:
    likeliest = 2 ** -(entropy_source.ENTROPY_MILLIBITS / 1000)
    assert 1 + scipy.stats.binom.ppf(1 - 2**-27, lag_test.WINDOW, likeliest) == lag_test.CUTOFF
    assert 2 * lag_test.LAGS * scipy.stats.binom.sf(lag_test.CUTOFF - 1, lag_test.WINDOW, likeliest) <= 2**-20
