"""Commit and reveal: the device is bound to a shuffle's seed before the host adds its nonce.

A pledge is made for every shuffle. Its seed never leaves the device before the deck has been fed again,
whole, for its next shuffle: until then its order may still be dealt. A pledge that is not carried out to the
end is dropped and the drop is reported, so that neither side can try again in silence. Seeds are kept in
volatile memory only: a power cut forgets them, and every deck inside is fed again after one.
"""

import struct
from array import array
from hashlib import sha256

from sabot_firmware.dealing import forbidden
from sabot_firmware.rng import RngFailed, wipe
from sabot_protocol.codec import enum_number
from sabot_protocol.errors import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_firmware.controller import Controller
    from sabot_firmware.rng.device_rng import DeviceRng
    from sabot_firmware.rng.draws import Slots
    from sabot_protocol.codec import Values

NONCE_SIZE = 32
NO_NONCE = bytes(NONCE_SIZE)  # of a host that adds nothing
SLOTS_AT_ONCE = 32
MOST_REVEALABLE = 4  # of the decks at the table, and of the last that left it
RAW_NOISE = enum_number("RngSource", "noise")
RNG_FAILED = enum_number("Fault", "rng_failed")

_LABEL = b"sabot shuffle 1"
_ABOUT = "<8sIIH"  # device, deck, shuffle, cards


def about(device: bytes, deck_id: int, shuffle_id: int, cards: int) -> bytes:
    """What a shuffle is, in bytes: nothing made for it holds for another device, deck or shuffle."""
    return _LABEL + struct.pack(_ABOUT, device, deck_id, shuffle_id, cards)


class Commitment:
    """One shuffle's seed, and what became of it."""

    def __init__(self, device: bytes, deck_id: int, shuffle_id: int, cards: int, seed: bytearray) -> None:
        self.deck_id = deck_id
        self.shuffle_id = shuffle_id
        self.cards = cards
        self.about = about(device, deck_id, shuffle_id, cards)
        self.seed = seed
        self.nonce = NO_NONCE
        digest = sha256(self.about)
        digest.update(seed)
        self.digest = digest.digest()
        self.slots: Slots | None = None  # while it is shuffled
        self.placed = array("H")  # where each card went, as the lower packet's height proved it

    def wipe(self) -> None:
        """Overwrite everything that tells the order."""
        self.wipe_slots()
        wipe(self.seed)
        for card in range(len(self.placed)):
            self.placed[card] = 0

    def wipe_slots(self) -> None:
        """The cards are in: what was drawn ahead is not needed any more."""
        if self.slots is not None:
            self.slots.wipe()
            self.slots = None


class ShuffleCommands:
    """The pledges of the decks on this table, and the generator behind them."""

    def __init__(self, controller: "Controller", rng: "DeviceRng") -> None:
        self._controller = controller
        self._persistent = controller.persistent
        self.rng = rng
        self.device = bytes(8)  # the serial number, set by the board
        self._committed: Commitment | None = None  # committed, not begun
        self._running: Commitment | None = None
        self._completed: list[Commitment] = []  # the order a deck has now; one a deck
        self._revealable: list[Commitment] = []  # the deck has been fed again; one a deck, the newest last

    # -- the generator --------------------------------------------------------------------------

    def start(self) -> bool:
        """The generator's power-up tests; whether it passed."""
        try:
            self.rng.start()
        except RngFailed:
            return False
        return True

    # -- commands -------------------------------------------------------------------------------

    def commit(self, deck_id: int) -> "Values":
        """Pledge a deck's next shuffle; an earlier pledge that nobody has used is dropped."""
        why = self._persistent.decks.refuse_using(deck_id, self._controller.utc_s())
        if why is not None:
            raise forbidden(why)
        if self._persistent.out_of_order:
            raise forbidden("out_of_order")
        commitment = self._make(deck_id)
        return commitment.shuffle_id, commitment.digest

    def _make(self, deck_id: int) -> Commitment:
        controller, persistent = self._controller, self._persistent
        try:
            seed = self.rng.fresh_seed()
        except RngFailed:
            controller.rng_failed()
            raise Refusal("device_fault", (RNG_FAILED,)) from None
        before = persistent.pack()
        persistent.shuffle_id += 1
        persistent.save_or_undo(before)
        if self._committed is not None:
            self._drop(self._committed, "replaced")
        commitment = Commitment(self.device, deck_id, persistent.shuffle_id, persistent.game.cards(), seed)
        self._committed = commitment
        controller.report("shuffle_committed", deck_id, commitment.shuffle_id, commitment.digest)
        return commitment

    def begin(self, deck_id: int) -> "Values":
        """Shuffle a deck without anything of the host's in it: pledged and begun at once."""
        self._controller.refuse_shuffling(deck_id)
        return self._begin(self._make(deck_id), NO_NONCE)

    def begin_with(self, shuffle_id: int, nonce: bytes) -> "Values":
        """Begin the shuffle that is pledged, with the host's nonce."""
        commitment = self._committed
        if commitment is None or commitment.shuffle_id != shuffle_id:
            raise forbidden("no_such_shuffle")
        self._controller.refuse_shuffling(commitment.deck_id)
        if commitment.cards != self._persistent.game.cards():  # another game since
            raise forbidden("no_such_shuffle")
        return self._begin(commitment, bytes(nonce))

    def _begin(self, commitment: Commitment, nonce: bytes) -> "Values":
        room = commitment.cards + 2  # one too many is fed before it is found out
        try:
            commitment.slots = self.rng.slots(room, commitment.seed, nonce, commitment.about)
        except RngFailed:
            self._controller.rng_failed()
            raise Refusal("device_fault", (RNG_FAILED,)) from None
        commitment.nonce = nonce
        commitment.placed = array("H", bytes(2 * room))
        self._committed, self._running = None, commitment
        try:
            self._controller.begin_shuffle(commitment.deck_id, commitment.placed)
        except Refusal:
            commitment.wipe_slots()
            self._committed, self._running = commitment, None
            raise
        return (commitment.shuffle_id,)

    def reveal(self, shuffle_id: int) -> "Values":
        """Seed and nonce of a shuffle whose deck has been fed again since."""
        commitment = self._find_revealable(shuffle_id)
        numbers = commitment.shuffle_id, commitment.deck_id, commitment.cards
        return numbers + (commitment.digest, bytes(commitment.seed), commitment.nonce)

    def slots(self, shuffle_id: int, first: int) -> "Values":
        """Where the cards of such a shuffle went, as measured, from one of them on."""
        commitment = self._find_revealable(shuffle_id)
        return (
            shuffle_id,
            first,
            list(commitment.placed[first : min(first + SLOTS_AT_ONCE, commitment.cards)]),
        )

    def samples(self, source: int, count: int) -> "Values":
        """Raw noise or bytes of the generator for a laboratory; no seed ever has any of them in it."""
        if source == RAW_NOISE:
            return source, self._controller.hardware.noise(count)
        try:
            return source, self.rng.random(count)
        except RngFailed:
            raise Refusal("device_fault", (RNG_FAILED,)) from None

    def _find_revealable(self, shuffle_id: int) -> Commitment:
        for commitment in self._revealable:
            if commitment.shuffle_id == shuffle_id:
                return commitment
        for each in self._completed + [self._committed, self._running]:
            if each is not None and each.shuffle_id == shuffle_id:
                raise forbidden("not_revealed")
        raise forbidden("no_such_shuffle")

    # -- what becomes of a shuffle --------------------------------------------------------------

    def draw(self, bound: int) -> int:
        """The slot of the next card; the same however often it is tried."""
        commitment = self._running
        assert commitment is not None
        assert commitment.slots is not None
        return commitment.slots.draw(bound)

    def shuffle_id(self) -> int:
        """The shuffle that is being carried out, or was last."""
        return self._running.shuffle_id if self._running is not None else self._persistent.shuffle_id

    def finished(self) -> None:
        """Every card of the deck is in its new order: the order before it may be told."""
        commitment, self._running = self._running, None
        if commitment is None:
            return
        commitment.wipe_slots()
        if self._persistent.decks.find(commitment.deck_id) is None:  # it was taken off the table meanwhile
            self._drop(commitment, "deck_removed")
            return
        for older in self._of(self._completed, commitment.deck_id):
            for oldest in self._of(self._revealable, commitment.deck_id):
                self._revealable.remove(oldest)
                oldest.wipe()
            self._completed.remove(older)
            self._revealable.append(older)
            self._controller.report("shuffle_revealable", older.deck_id, older.shuffle_id)
        while len(self._revealable) > MOST_REVEALABLE:
            self._revealable.pop(0).wipe()
        self._completed.append(commitment)

    def failed(self) -> None:
        """The shuffle was stopped: it must begin anew, with another pledge."""
        commitment, self._running = self._running, None
        if commitment is not None:
            self._drop(commitment, "stopped")

    def deck_removed(self, deck_id: int) -> None:
        """A deck leaves the table; nobody knows what is done with it, so its order is never told."""
        for commitment in self._of(self._completed, deck_id):
            self._completed.remove(commitment)
            self._drop(commitment, "deck_removed")
        if self._committed is not None and self._committed.deck_id == deck_id:
            self._drop(self._committed, "deck_removed")
            self._committed = None

    def _of(self, commitments: "list[Commitment]", deck_id: int) -> "list[Commitment]":
        return [each for each in commitments if each.deck_id == deck_id]

    def _drop(self, commitment: Commitment, why: str) -> None:
        commitment.wipe()
        reason = enum_number("DropReason", why)
        self._controller.report("shuffle_dropped", commitment.deck_id, commitment.shuffle_id, reason)
