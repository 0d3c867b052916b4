"""The controller's state that survives a power cut, and its record in critical memory.

The record is saved before the action that depends on it: a round before its first card moves, a half that
holds cards before the first card enters. A record that is one step old is safe.
"""

import struct

from sabot_firmware.decks import AUTOMATED_SHOE, Deck, DeckRegistry
from sabot_firmware.machine_constants import DECK_CARDS
from sabot_firmware.rng import persistent_seed
from sabot_firmware.rounds import STACK_CARDS
from sabot_protocol.errors import MemoryDamaged, MemoryFailed, Refusal
from sabot_protocol.record_store import RecordStore

RECORDS = (("core", 192), ("wear", 128), persistent_seed.RECORD)

_VERSION = 2
_HEAD = "<BBBBBIIH"  # version, flags, method, decks, stack cards, highest deck, last played, hours of a deck
_DECK = "<IBII"  # id, back, opened, aged
_ROUND = "<IIBBHIIBB"
_ROUND_FIELDS: "tuple[str, ...]" = ("round_id", "round_deck", "verdict", "void", "count", "shuffle_id")
_ROUND_FIELDS += ("delivered", "shuffler_inside", "shoe_inside")
_CALIBRATION = "<iI"
_MISSING = "<HI"  # cards not accounted for, and their deck

_FIXED = _HEAD + _DECK[1:] * 2 + _ROUND[1:] + _CALIBRATION[1:] * 2 + _MISSING[1:] + "B"  # the name's length
_FIXED_SIZE = struct.calcsize(_FIXED)
_NO_DECK = Deck(0, 0, 0)

# Flags of the record; 0x08 is not used
ONE_DECK = 0x01
_OUT_OF_ORDER = 0x02
_ROUND_OPEN = 0x04
_INSPECTED = 0x10
_CLEARED = 0x20

# What a half held
NO_CARDS = 0
CARDS_INSIDE = 1  # cards lie in it, none of them where no sensor sees it
CARDS_MOVING = 2  # cards were being moved, and one may lie where no sensor sees it


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def _nothing() -> None:
    """Where nothing waits for a record."""


class GameSettings:
    """The game that the machine serves, as the host sets it."""

    def __init__(self) -> None:
        self.name = ""
        self.method = AUTOMATED_SHOE
        self.decks = 1  # decks of 52 in one deck or batch
        self.stack_cards = STACK_CARDS

    def cards(self) -> int:
        """Cards in one deck or batch."""
        return DECK_CARDS * self.decks


class PersistentState:
    """Everything that survives a power cut."""

    def __init__(self, memory: RecordStore) -> None:
        self._memory = memory
        self._written = b""
        self._sure = True  # whether the last write is known to have succeeded
        self._unread = False  # the memory did not answer: its record must not be overwritten
        self.decks = DeckRegistry()
        self.game = GameSettings()
        self._buffer = bytearray(RECORDS[0][1])
        self.before_save: Callable[[], None] = _nothing
        """Called before the record is packed, which takes a while: a board serves fed cards."""
        self.out_of_order = False
        self.round_open = False
        self.round_id = 0  # the newest round
        self.round_deck = 0
        self.verdict = 0
        self.void = 0
        self.count = 0
        self.shuffle_id = 0
        self.delivered = 0  # a batch that was delivered whole and may be laid into the shoe
        self.shuffler_inside = NO_CARDS
        self.shoe_inside = NO_CARDS
        self.missing = 0  # cards that may lie in the shoe's path
        self.short_deck = 0
        self.inspected = False
        self.cleared = False
        self.calibration = [[0, 0], [300, 0]]  # value and date of blade_um and card_um
        self.damaged = False
        self._load()

    def _load(self) -> None:
        try:
            record = self._memory.load("core")
        except MemoryDamaged:
            self.damaged = True
            return
        except MemoryFailed:
            self.damaged = self._unread = True
            return
        if not record:
            return
        if record[0] != _VERSION:
            self.damaged = True
            return
        self._unpack(record)
        self._written = bytes(record)

    def forget_numbers(self) -> None:
        """Let the numbers of rounds and decks begin anew; those of an open round and of decks in use stay."""
        decks = self.decks
        decks.highest_id = max([each.deck_id for each in decks.in_use] + [0])
        if not self.round_open:
            self.round_id = self.round_deck = self.verdict = self.void = self.count = 0

    def record_lost(self) -> bool:
        """Whether a record existed and is unreadable, so that round and deck numbers start anew."""
        return self.damaged and not self._unread

    def _unpack(self, record: bytes) -> None:
        game, decks = self.game, self.decks
        head = struct.unpack_from(_HEAD, record, 0)
        flags = head[1]
        game.method, game.decks, game.stack_cards = head[2], head[3], head[4]
        decks.highest_id, decks.last_played, decks.hours = head[5], head[6], head[7]
        decks.one_deck = bool(flags & ONE_DECK)
        self.out_of_order = bool(flags & _OUT_OF_ORDER)
        self.round_open = bool(flags & _ROUND_OPEN)
        self.inspected = bool(flags & _INSPECTED)
        self.cleared = bool(flags & _CLEARED)
        at = struct.calcsize(_HEAD)
        decks.in_use = []
        for _ in range(2):
            deck_id, back, opened_s, aged_s = struct.unpack_from(_DECK, record, at)
            if deck_id:
                decks.in_use.append(Deck(deck_id, back, opened_s, aged_s))
            at += struct.calcsize(_DECK)
        values = struct.unpack_from(_ROUND, record, at)
        for index in range(len(values)):
            setattr(self, _ROUND_FIELDS[index], values[index])
        at += struct.calcsize(_ROUND)
        for each in self.calibration:
            each[0], each[1] = struct.unpack_from(_CALIBRATION, record, at)
            at += struct.calcsize(_CALIBRATION)
        self.missing, self.short_deck = struct.unpack_from(_MISSING, record, at)
        at += struct.calcsize(_MISSING)
        game.name = str(record[at + 1 : at + 1 + record[at]], "utf-8")

    def save(self) -> None:
        """Write the record if it changed; MemoryFailed if that fails."""
        self.before_save()
        if self._unread:
            raise MemoryFailed("the record could not be read at power-up")
        record = self.pack()
        if record != self._written or not self._sure:
            self._sure = False
            self._memory.save("core", record)
            self._sure = True
            self._written = record

    def save_or_undo(self, before: bytes) -> None:
        """Save what a command changed; if that fails, restore ``before`` and raise Refusal."""
        try:
            self.save()
        except MemoryFailed:
            self._unpack(before)
            raise Refusal("memory_failed") from None

    def pack(self) -> bytes:
        """The state as a record.

        Field by field into one buffer: in parts it took 2 ms on a board, which a card had to wait for.
        """
        game, decks, calibration, buffer = self.game, self.decks, self.calibration, self._buffer
        flags = ONE_DECK if decks.one_deck else 0
        if self.out_of_order:
            flags |= _OUT_OF_ORDER
        if self.round_open:
            flags |= _ROUND_OPEN
        if self.inspected:
            flags |= _INSPECTED
        if self.cleared:
            flags |= _CLEARED
        in_use = decks.in_use
        first = in_use[0] if in_use else _NO_DECK
        second = in_use[1] if len(in_use) > 1 else _NO_DECK
        name = game.name.encode()
        end = _FIXED_SIZE + len(name)
        struct.pack_into(
            _FIXED,
            buffer,
            0,
            _VERSION,
            flags,
            game.method,
            game.decks,
            game.stack_cards,
            decks.highest_id,
            decks.last_played,
            decks.hours,
            first.deck_id,
            first.back,
            first.opened_s,
            first.aged_s,
            second.deck_id,
            second.back,
            second.opened_s,
            second.aged_s,
            self.round_id,
            self.round_deck,
            self.verdict,
            self.void,
            self.count,
            self.shuffle_id,
            self.delivered,
            self.shuffler_inside,
            self.shoe_inside,
            calibration[0][0],
            calibration[0][1],
            calibration[1][0],
            calibration[1][1],
            self.missing,
            self.short_deck,
            len(name),
        )
        buffer[_FIXED_SIZE:end] = name
        return bytes(memoryview(buffer)[:end])
