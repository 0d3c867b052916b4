"""Where the core gets its chance from: a seed for every shuffle, and the slots that follow from it."""

from sabot_firmware.rng import RngFailed
from sabot_firmware.rng.draws import Slots
from sabot_firmware.rng.drbg import STRENGTH_BITS, HmacDrbg, check_known_answers
from sabot_firmware.rng.noise import Noise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SEED_SIZE = 32


class Chance:
    """The generator of the device: seeded from raw noise, reseeded before every shuffle.

    Every method raises RngFailed when a test fails, and from then on until ``start`` has found all in order.
    Generators for tests are subclasses that say so in ``test``; none is part of the firmware.
    """

    test = False  # whether its shuffles can be foretold

    def __init__(self, noise: "Callable[[int], bytes]") -> None:
        self._noise = Noise(noise)
        self._drbg = HmacDrbg()
        self._ready = False

    def start(self) -> None:
        """The power-up tests, and the first seed."""
        self._ready = False
        self._drbg.wipe()
        check_known_answers()
        self._noise.start()
        nonce = bytes(self._noise.entropy(STRENGTH_BITS // 2))
        self._drbg.instantiate(self._noise.entropy(STRENGTH_BITS), nonce)
        self._ready = True

    def fresh_seed(self) -> bytearray:
        """A new seed: the generator is reseeded with 256 bits of noise before, whatever its state was."""
        self._reseed()
        return self._drbg.generate(SEED_SIZE)

    def _reseed(self) -> None:
        if not self._ready:
            raise RngFailed("the generator has not passed its power-up tests")
        self._ready = False  # should the noise fail
        self._drbg.reseed(self._noise.entropy(STRENGTH_BITS))
        self._ready = True

    def slots(self, cards: int, seed: bytes | bytearray, nonce: bytes, about: bytes) -> Slots:
        """The slots of a shuffle of so many cards."""
        slots = Slots(cards)
        slots.fill(seed, nonce, about)
        return slots

    def random(self, count: int) -> bytes:
        """Bytes for the wire's nonces, and for whoever tests the generator."""
        if not self._ready or self._drbg.is_due():
            self._reseed()
        return bytes(self._drbg.generate(count))
