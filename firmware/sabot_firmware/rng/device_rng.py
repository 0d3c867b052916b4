"""The device's random number generator: seeds and slots for shuffles, nonces for the wire."""

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
MAKESHIFT_NOISE = 256  # bytes of raw noise for one nonce after the generator failed


def _nothing_besides() -> bytes:
    """No additional input, for a board that has none."""
    return b""


class DeviceRng:
    """Seeded from raw noise, and reseeded before every shuffle.

    Entropy is credited for the noise only. Serial number, boot record, persistent seed and the board's
    additional input (``besides``) are mixed in, so that undetected failed noise does not make two boots or
    devices alike.

    Public bytes (nonces, samples for a laboratory) come from a second generator that the first one seeded.
    They reveal nothing about seeds, and asking for them changes no shuffle. After a failed test every method
    raises RngFailed until ``start`` has passed all tests. Generators for tests are subclasses that set
    ``test``; the firmware contains none.
    """

    test = False  # whether its shuffles are predictable

    def __init__(
        self,
        noise: "Callable[[int], bytes]",
        memory: "RecordStore | None" = None,
        serial: bytes = b"",
        besides: "Callable[[], bytes]" = _nothing_besides,
        count: "Callable[[bytearray, int, int], int]" = lag_test.count,
    ) -> None:
        """``memory`` holds the persistent seed; ``count`` is as for ``EntropySource``."""
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

    def wipe(self) -> None:
        """Overwrite both generators; every method raises RngFailed until ``start`` has passed."""
        self._ready = False
        self._drbg.wipe()
        self._public.wipe()

    def start(self) -> None:
        """Run the power-up tests and take the first seed; RngFailed if a test fails."""
        self._started = True
        self.wipe()
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
        """The personalization string, different at every start of every device; no entropy credited."""
        personal = _LABEL
        for part in (self._serial, self._carried.boot(), self._carried.load(), self._besides()):
            personal += bytes((len(part),)) + part
        return personal

    def take(self, entropy: bytes) -> None:
        """Mix in bytes of the host, now and at every later start; MemoryFailed if they cannot be saved."""
        self._carried.mix(entropy)
        if self._ready:
            for drbg in (self._drbg, self._public):
                if not drbg.is_due():
                    drbg.generate(0, entropy)  # as additional input

    def fresh_seed(self) -> bytearray:
        """A new seed, after a reseed with 256 bits of noise."""
        self._reseed(self._drbg)
        return self._drbg.generate(SEED_SIZE)

    def _reseed(self, drbg: HmacDrbg) -> None:
        if not self._ready:
            raise RngFailed("the generator has not passed its power-up tests")
        self._ready = False  # in case the noise fails
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
        """Public bytes, for tests of the generator."""
        if not self._ready or self._public.is_due():
            self._reseed(self._public)
        return bytes(self._public.generate(count))

    def nonce(self, count: int) -> bytes:
        """Public bytes for the wire, which must work even when the generator failed, to report that.

        After a failure they are a hash of the available noise, counter, serial number and boot record. They
        differ from each other, and a handshake is also bound to its number and the boot's; they are not
        promised to be unpredictable.
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
