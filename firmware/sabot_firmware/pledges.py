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
    from sabot_firmware.core import Core
    from sabot_firmware.rng.chance import Chance
    from sabot_firmware.rng.draws import Slots
    from sabot_protocol.codec import Values

NONCE_SIZE = 32
NO_NONCE = bytes(NONCE_SIZE)  # of a host that adds nothing
SLOTS_AT_ONCE = 32
MOST_OPEN = 4  # of the decks at the table, and of the last that left it
RAW_NOISE = enum_number("RngSource", "noise")
RNG_FAILED = enum_number("Fault", "rng_failed")

_LABEL = b"sabot shuffle 1"
_ABOUT = "<8sIIH"  # device, deck, shuffle, cards


def about(device: bytes, deck_id: int, shuffle_id: int, cards: int) -> bytes:
    """What a shuffle is, in bytes: nothing made for it holds for another device, deck or shuffle."""
    return _LABEL + struct.pack(_ABOUT, device, deck_id, shuffle_id, cards)


class Pledge:
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
        self.commitment = digest.digest()
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


class Pledges:
    """The pledges of the decks on this table, and the generator behind them."""

    def __init__(self, core: "Core", chance: "Chance") -> None:
        self._core = core
        self._kept = core.kept
        self.chance = chance
        self.device = bytes(8)  # the serial number, set by the board
        self._waiting: Pledge | None = None  # committed, not begun
        self._at_work: Pledge | None = None
        self._done: list[Pledge] = []  # the order a deck has now; one a deck
        self._open: list[Pledge] = []  # the deck has been fed again; one a deck, the newest last

    # -- the generator --------------------------------------------------------------------------

    def start(self) -> bool:
        """The generator's power-up tests; whether it passed."""
        try:
            self.chance.start()
        except RngFailed:
            return False
        return True

    # -- commands -------------------------------------------------------------------------------

    def commit(self, deck_id: int) -> "Values":
        """Pledge a deck's next shuffle; an earlier pledge that nobody has used is dropped."""
        why = self._kept.decks.refuse_using(deck_id, self._core.utc_s())
        if why is not None:
            raise forbidden(why)
        if self._kept.out_of_order:
            raise forbidden("out_of_order")
        pledge = self._make(deck_id)
        return pledge.shuffle_id, pledge.commitment

    def _make(self, deck_id: int) -> Pledge:
        core, kept = self._core, self._kept
        try:
            seed = self.chance.fresh_seed()
        except RngFailed:
            core.rng_failed()
            raise Refusal("device_fault", (RNG_FAILED,)) from None
        before = kept.pack()
        kept.shuffle_id += 1
        kept.save_or_undo(before)
        if self._waiting is not None:
            self._drop(self._waiting, "replaced")
        pledge = Pledge(self.device, deck_id, kept.shuffle_id, kept.game.cards(), seed)
        self._waiting = pledge
        core.report("shuffle_committed", deck_id, pledge.shuffle_id, pledge.commitment)
        return pledge

    def begin(self, deck_id: int) -> "Values":
        """Shuffle a deck without anything of the host's in it: pledged and begun at once."""
        self._core.refuse_shuffling(deck_id)
        return self._begin(self._make(deck_id), NO_NONCE)

    def begin_with(self, shuffle_id: int, nonce: bytes) -> "Values":
        """Begin the shuffle that is pledged, with the host's nonce."""
        pledge = self._waiting
        if pledge is None or pledge.shuffle_id != shuffle_id:
            raise forbidden("no_such_shuffle")
        self._core.refuse_shuffling(pledge.deck_id)
        if pledge.cards != self._kept.game.cards():  # another game since
            raise forbidden("no_such_shuffle")
        return self._begin(pledge, bytes(nonce))

    def _begin(self, pledge: Pledge, nonce: bytes) -> "Values":
        room = pledge.cards + 2  # one too many is fed before it is found out
        try:
            pledge.slots = self.chance.slots(room, pledge.seed, nonce, pledge.about)
        except RngFailed:
            self._core.rng_failed()
            raise Refusal("device_fault", (RNG_FAILED,)) from None
        pledge.nonce = nonce
        pledge.placed = array("H", bytes(2 * room))
        self._waiting, self._at_work = None, pledge
        try:
            self._core.begin_shuffle(pledge.deck_id, pledge.placed)
        except Refusal:
            pledge.wipe_slots()
            self._waiting, self._at_work = pledge, None
            raise
        return (pledge.shuffle_id,)

    def reveal(self, shuffle_id: int) -> "Values":
        """Seed and nonce of a shuffle whose deck has been fed again since."""
        pledge = self._find_open(shuffle_id)
        numbers = pledge.shuffle_id, pledge.deck_id, pledge.cards
        return numbers + (pledge.commitment, bytes(pledge.seed), pledge.nonce)

    def slots(self, shuffle_id: int, first: int) -> "Values":
        """Where the cards of such a shuffle went, as measured, from one of them on."""
        pledge = self._find_open(shuffle_id)
        return shuffle_id, first, list(pledge.placed[first : min(first + SLOTS_AT_ONCE, pledge.cards)])

    def samples(self, source: int, count: int) -> "Values":
        """Raw noise or bytes of the generator for a laboratory; no seed ever has any of them in it."""
        if source == RAW_NOISE:
            return source, self._core.hardware.noise(count)
        try:
            return source, self.chance.random(count)
        except RngFailed:
            raise Refusal("device_fault", (RNG_FAILED,)) from None

    def _find_open(self, shuffle_id: int) -> Pledge:
        for pledge in self._open:
            if pledge.shuffle_id == shuffle_id:
                return pledge
        for each in self._done + [self._waiting, self._at_work]:
            if each is not None and each.shuffle_id == shuffle_id:
                raise forbidden("not_revealed")
        raise forbidden("no_such_shuffle")

    # -- what becomes of a shuffle --------------------------------------------------------------

    def draw(self, bound: int) -> int:
        """The slot of the next card; the same however often it is tried."""
        pledge = self._at_work
        assert pledge is not None
        assert pledge.slots is not None
        return pledge.slots.draw(bound)

    def shuffle_id(self) -> int:
        """The shuffle that is being carried out, or was last."""
        return self._at_work.shuffle_id if self._at_work is not None else self._kept.shuffle_id

    def finished(self) -> None:
        """Every card of the deck is in its new order: the order before it may be told."""
        pledge, self._at_work = self._at_work, None
        if pledge is None:
            return
        pledge.wipe_slots()
        if self._kept.decks.find(pledge.deck_id) is None:  # it was taken off the table meanwhile
            self._drop(pledge, "deck_removed")
            return
        for older in self._of(self._done, pledge.deck_id):
            for oldest in self._of(self._open, pledge.deck_id):
                self._open.remove(oldest)
                oldest.wipe()
            self._done.remove(older)
            self._open.append(older)
            self._core.report("shuffle_revealable", older.deck_id, older.shuffle_id)
        while len(self._open) > MOST_OPEN:
            self._open.pop(0).wipe()
        self._done.append(pledge)

    def failed(self) -> None:
        """The shuffle was stopped: it must begin anew, with another pledge."""
        pledge, self._at_work = self._at_work, None
        if pledge is not None:
            self._drop(pledge, "stopped")

    def deck_removed(self, deck_id: int) -> None:
        """A deck leaves the table; nobody knows what is done with it, so its order is never told."""
        for pledge in self._of(self._done, deck_id):
            self._done.remove(pledge)
            self._drop(pledge, "deck_removed")
        if self._waiting is not None and self._waiting.deck_id == deck_id:
            self._drop(self._waiting, "deck_removed")
            self._waiting = None

    def _of(self, pledges: "list[Pledge]", deck_id: int) -> "list[Pledge]":
        return [each for each in pledges if each.deck_id == deck_id]

    def _drop(self, pledge: Pledge, why: str) -> None:
        pledge.wipe()
        reason = enum_number("DropReason", why)
        self._core.report("shuffle_dropped", pledge.deck_id, pledge.shuffle_id, reason)
