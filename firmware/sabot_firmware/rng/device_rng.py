"""Where chance comes from: a seed for every shuffle, the slots that follow from it, the wire's nonces."""

from hashlib import sha256

from sabot_firmware.rng import RngFailed, lag_test, wipe
from sabot_firmware.rng.draws import Slots
from sabot_firmware.rng.drbg import STRENGTH_BITS, HmacDrbg, check_known_answers
from sabot_firmware.rng.entropy_source import EntropySource
from sabot_firmware.rng.persistent_seed import PersistentSeed
from sabot_protocol.errors import MemoryFailed
from sabot_protocol.record_store import RecordStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SEED_SIZE = 32
_LABEL = b"sabot generator 1"
MAKESHIFT_NOISE = 256  # bytes of raw noise that go into one nonce while the generator cannot be trusted


def _nothing_besides() -> bytes:
    """What a board adds that has nothing to add."""
    return b""


class DeviceRng:
    """The generator of the device: seeded from raw noise, reseeded before every shuffle.

    The noise is the only source that entropy is credited for. Serial number, boot record, the seed carried
    forward in critical memory and what the board adds (``besides``) are mixed in, so that noise which fails
    unseen does not make two boots or two devices alike.

    What others get to see (nonces, a laboratory's samples) comes from a second generator that the first one
    seeded: nothing of it tells anything of seeds, and asking for it changes no shuffle. Methods raise
    RngFailed when a test fails, and from then on until ``start`` has found all in order. Generators for tests
    are subclasses that say so in ``test``; none is part of the firmware.
    """

    test = False  # whether its shuffles can be foretold

    def __init__(
        self,
        noise: "Callable[[int], bytes]",
        memory: "RecordStore | None" = None,
        serial: bytes = b"",
        besides: "Callable[[], bytes]" = _nothing_besides,
        count: "Callable[[bytearray, int, int], int]" = lag_test.count,
    ) -> None:
        """``memory``: critical memory, where a seed is carried forward; ``count``: as ``Noise`` takes it."""
        self._read = noise
        self._noise = EntropySource(noise, count)
        self._carried = PersistentSeed(RecordStore() if memory is None else memory)
        self._serial = serial
        self._besides = besides
        self._drbg = HmacDrbg()
        self._public = HmacDrbg()
        self._started = False
        self._ready = False
        self._makeshifts = 0

    def start(self) -> None:
        """The power-up tests, and the first seed."""
        self._started = True
        self._ready = False
        self._drbg.wipe()
        self._public.wipe()
        check_known_answers()
        self._noise.start()
        nonce = self._noise.entropy(STRENGTH_BITS // 2)
        entropy = self._noise.entropy(STRENGTH_BITS)
        try:
            self._drbg.instantiate(entropy, nonce, self._personal())
            self._carried.replace(self._drbg.generate(SEED_SIZE))
        except MemoryFailed as error:
            self._drbg.wipe()
            raise RngFailed("no seed can be carried forward: %s" % error) from None
        wipe(nonce)
        wipe(entropy)
        entropy, nonce = self._drbg.generate(SEED_SIZE), self._drbg.generate(SEED_SIZE // 2)
        self._public.instantiate(entropy, nonce)
        wipe(nonce)
        wipe(entropy)
        self._ready = True

    def _personal(self) -> bytes:
        """What makes this start another one than any before, here and elsewhere; credited with no entropy."""
        personal = _LABEL
        for part in (self._serial, self._carried.boot(), self._carried.load(), self._besides()):
            personal += bytes((len(part),)) + part
        return personal

    def take(self, entropy: bytes) -> None:
        """Mix in bytes of the host, now and for every later start; MemoryFailed if they cannot be kept."""
        self._carried.mix(entropy)
        if self._ready:
            for drbg in (self._drbg, self._public):
                if not drbg.is_due():
                    drbg.generate(0, entropy)  # as additional input

    def fresh_seed(self) -> bytearray:
        """A new seed: the generator is reseeded with 256 bits of noise before, whatever its state was."""
        self._reseed(self._drbg)
        return self._drbg.generate(SEED_SIZE)

    def _reseed(self, drbg: HmacDrbg) -> None:
        if not self._ready:
            raise RngFailed("the generator has not passed its power-up tests")
        self._ready = False  # should the noise fail
        entropy = self._noise.entropy(STRENGTH_BITS)
        drbg.reseed(entropy, self._besides())
        wipe(entropy)
        self._ready = True

    def slots(self, cards: int, seed: bytes | bytearray, nonce: bytes, about: bytes) -> Slots:
        """The slots of a shuffle of so many cards."""
        slots = Slots(cards)
        try:
            slots.fill(seed, nonce, about)
        except RngFailed:
            slots.wipe()
            raise
        return slots

    def random(self, count: int) -> bytes:
        """Bytes for whoever tests the generator."""
        if not self._ready or self._public.is_due():
            self._reseed(self._public)
        return bytes(self._public.generate(count))

    def nonce(self, count: int) -> bytes:
        """Bytes for the wire, which must work even when the generator does not, to tell of it.

        Then they are a hash of whatever noise there is. They differ from each other, and a handshake is bound
        to its number and the boot's besides; that nobody could foresee them is not promised.
        """
        try:
            if not self._started:
                self.start()
            return self.random(count)
        except RngFailed:
            return self._makeshift(count)

    def _makeshift(self, count: int) -> bytes:
        out = b""
        while len(out) < count:
            self._makeshifts += 1
            digest = sha256(("%d" % self._makeshifts).encode())
            digest.update(self._serial)
            digest.update(self._boot())
            digest.update(self._read(MAKESHIFT_NOISE))
            out += digest.digest()
        return out[:count]

    def _boot(self) -> bytes:
        try:
            return self._carried.boot()
        except MemoryFailed:
            return b""
