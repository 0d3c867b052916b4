"""Shuffles: the device commits to a seed, the host adds its nonce, and the seed is revealed later.

Every shuffle has a commitment. Its seed leaves the device only after the deck has been fed again, whole, for
its next shuffle: until then cards of its order may still be dealt. A commitment that does not end in a
finished shuffle is dropped, and an event reports the drop, so that neither side can draw again unnoticed.
Seeds are kept in volatile memory only. A power cut loses them, and every deck inside is fed again after one.
"""

import struct
from array import array
from hashlib import sha256

from sabot_firmware import shuffler
from sabot_firmware.hardware import TRAY
from sabot_firmware.persistent_state import CARDS_MOVING
from sabot_firmware.refusals import forbidden, refuse
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
MOST_REVEALABLE = 4  # of the decks at the table, and of the last decks that left it
RAW_NOISE = 1  # of RngSource
RNG_FAILED = 20  # of Fault
REPLACED = enum_number("DropReason", "replaced")
STOPPED = enum_number("DropReason", "stopped")
DECK_REMOVED = enum_number("DropReason", "deck_removed")

_LABEL = b"sabot shuffle 1"
_ABOUT = "<8sIIH"  # device, deck, shuffle, cards


def about(device: bytes, deck_id: int, shuffle_id: int, cards: int) -> bytes:
    """A shuffle's identity: commitment and slots hold for no other device, deck or shuffle."""
    return _LABEL + struct.pack(_ABOUT, device, deck_id, shuffle_id, cards)


class Commitment:
    """One shuffle: its seed, the digest that commits the device to it, and where the cards went."""

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
        self.slots: Slots | None = None  # while the deck is shuffled
        self.placed = array("H")  # the slot of each card, as the lower packet's height proved it

    def wipe(self) -> None:
        """Overwrite everything that reveals the order."""
        self.wipe_slots()
        wipe(self.seed)
        for card in range(len(self.placed)):
            self.placed[card] = 0

    def wipe_slots(self) -> None:
        """Overwrite the drawn slots, which are not needed once the cards are in."""
        if self.slots is not None:
            self.slots.wipe()
            self.slots = None


class ShuffleCommands:
    """Executes the commands about shuffles, and owns the commitments of the decks at this table."""

    def __init__(self, controller: "Controller", rng: "DeviceRng") -> None:
        self._controller = controller
        self._persistent = controller.persistent
        self.rng = rng
        self.device = bytes(8)  # the serial number, set by the board
        self._committed: Commitment | None = None  # committed to, not begun
        self._running: Commitment | None = None
        self._completed: list[Commitment] = []  # of the order that a deck has now, one a deck
        self._revealable: list[Commitment] = []  # their decks were fed again; one a deck, the newest last

    # -- the generator --------------------------------------------------------------------------

    def start(self) -> bool:
        """Run the generator's power-up tests; whether it passed."""
        try:
            self.rng.start()
        except RngFailed:
            return False
        return True

    def fail(self) -> None:
        """The generator failed: the shuffler half stops. The round in play may be dealt out."""
        half = self._controller.shuffler
        if half.state not in (shuffler.JAMMED, shuffler.OUT_OF_ORDER):
            half.stop("controller", "rng_failed", 0)
        self._controller.process_changes()

    # -- commands -------------------------------------------------------------------------------

    def commit(self, deck_id: int) -> "Values":
        """Commit to a deck's next shuffle; an earlier commitment that was not used is dropped."""
        refuse(self._persistent.decks.refuse_using(deck_id, self._controller.utc_s()))
        if self._persistent.out_of_order:
            raise forbidden("out_of_order")
        commitment = self._make(deck_id)
        return commitment.shuffle_id, commitment.digest

    def begin(self, deck_id: int) -> "Values":
        """Shuffle a deck without a nonce of the host: commit and begin at once."""
        self._refuse_shuffling(deck_id)
        return self._begin(self._make(deck_id), NO_NONCE)

    def begin_with(self, shuffle_id: int, nonce: bytes) -> "Values":
        """Begin the shuffle that the device committed to, with the host's nonce."""
        commitment = self._committed
        if commitment is None or commitment.shuffle_id != shuffle_id:
            raise forbidden("no_such_shuffle")
        self._refuse_shuffling(commitment.deck_id)
        if commitment.cards != self._persistent.game.cards():  # the game was changed since
            raise forbidden("no_such_shuffle")
        return self._begin(commitment, bytes(nonce))

    def reveal(self, shuffle_id: int) -> "Values":
        """Seed and nonce of a shuffle whose deck has been fed again since."""
        commitment = self._find_revealable(shuffle_id)
        numbers = commitment.shuffle_id, commitment.deck_id, commitment.cards
        return numbers + (commitment.digest, bytes(commitment.seed), commitment.nonce)

    def slots(self, shuffle_id: int, first: int) -> "Values":
        """The measured slots of such a shuffle, from card ``first`` on."""
        commitment = self._find_revealable(shuffle_id)
        last = min(first + SLOTS_AT_ONCE, commitment.cards)
        return shuffle_id, first, list(commitment.placed[first:last])

    def samples(self, source: int, count: int) -> "Values":
        """Raw noise or bytes of the generator for a laboratory; no seed contains any of them."""
        if source == RAW_NOISE:
            return source, self._controller.hardware.noise(count)
        try:
            return source, self.rng.random(count)
        except RngFailed:
            raise Refusal("device_fault", (RNG_FAILED,)) from None

    def _refuse_shuffling(self, deck_id: int) -> None:
        controller = self._controller
        refuse(self._persistent.decks.refuse_using(deck_id, self._controller.utc_s()))
        if deck_id in (controller.shoe.deck, controller.shuffler.stored_deck):
            raise forbidden("in_use")
        if not controller.hardware.level(TRAY):
            raise forbidden("tray_empty")
        controller.refuse_if_unfit()

    def _make(self, deck_id: int) -> Commitment:
        persistent = self._persistent
        try:
            seed = self.rng.fresh_seed()
        except RngFailed:
            self.fail()
            raise Refusal("device_fault", (RNG_FAILED,)) from None
        before = persistent.pack()
        persistent.shuffle_id += 1
        persistent.save_or_undo(before)
        if self._committed is not None:
            self._drop(self._committed, REPLACED)
        commitment = Commitment(self.device, deck_id, persistent.shuffle_id, persistent.game.cards(), seed)
        self._committed = commitment
        self._controller.report("shuffle_committed", deck_id, commitment.shuffle_id, commitment.digest)
        return commitment

    def _begin(self, commitment: Commitment, nonce: bytes) -> "Values":
        """Draw the slots, save that cards move, and start the shuffler half."""
        controller, persistent = self._controller, self._persistent
        room = commitment.cards + 2  # one card too many is fed before the count shows it
        try:
            slots = self.rng.slots(room, commitment.seed, nonce, commitment.about)
        except RngFailed:
            self.fail()
            raise Refusal("device_fault", (RNG_FAILED,)) from None
        before = persistent.pack()
        persistent.shuffler_inside = CARDS_MOVING
        if persistent.delivered == commitment.deck_id:
            persistent.delivered = 0
        try:
            persistent.save_or_undo(before)
        except Refusal:
            slots.wipe()
            raise
        commitment.slots, commitment.nonce = slots, nonce
        commitment.placed = array("H", bytes(2 * room))
        self._committed, self._running = None, commitment
        controller.wear.add("shuffles")
        half = controller.shuffler
        controller.report_coalesced(half)  # the half is reported as empty before a card moves, not afterwards
        deck = persistent.decks.find(commitment.deck_id)
        assert deck is not None
        half.shuffle(deck.deck_id, deck.back, commitment.cards, slots, controller.now_us, commitment.placed)
        return (commitment.shuffle_id,)

    def _find_revealable(self, shuffle_id: int) -> Commitment:
        for commitment in self._revealable:
            if commitment.shuffle_id == shuffle_id:
                return commitment
        for each in self._completed + [self._committed, self._running]:
            if each is not None and each.shuffle_id == shuffle_id:
                raise forbidden("not_revealed")
        raise forbidden("no_such_shuffle")

    # -- what becomes of a shuffle --------------------------------------------------------------

    def shuffle_id(self) -> int:
        """The shuffle that runs, or the one committed to last."""
        return self._running.shuffle_id if self._running is not None else self._persistent.shuffle_id

    def finished(self) -> None:
        """All cards of the deck are in their new order: the order before may be revealed from now on."""
        commitment, self._running = self._running, None
        if commitment is None:
            return
        commitment.wipe_slots()
        if self._persistent.decks.find(commitment.deck_id) is None:  # the deck was removed meanwhile
            self._drop(commitment, DECK_REMOVED)
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
        """The shuffle was stopped: the next one needs a new commitment."""
        commitment, self._running = self._running, None
        if commitment is not None:
            self._drop(commitment, STOPPED)

    def deck_removed(self, deck_id: int) -> None:
        """A deck leaves the table. Its order is never revealed, since its cards may be used elsewhere."""
        for commitment in self._of(self._completed, deck_id):
            self._completed.remove(commitment)
            self._drop(commitment, DECK_REMOVED)
        if self._committed is not None and self._committed.deck_id == deck_id:
            self._drop(self._committed, DECK_REMOVED)
            self._committed = None

    def _of(self, commitments: "list[Commitment]", deck_id: int) -> "list[Commitment]":
        return [each for each in commitments if each.deck_id == deck_id]

    def _drop(self, commitment: Commitment, why: int) -> None:
        commitment.wipe()
        self._controller.report("shuffle_dropped", commitment.deck_id, commitment.shuffle_id, why)
