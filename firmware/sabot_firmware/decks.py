"""The decks at the table: which there are, whose turn it is, and how long they may still be used.

Pure decisions: each ``refuse_…`` says by name why something must not be, or gives None. Times are UTC
seconds.
"""

from sabot_firmware.hardware import BLUE, RED

# How the cards are dealt decides how long a deck may be used (MD3 3.C), from its opening at the table on.
SHOE_METHOD = 0  # manual or automated shoe
HAND_METHOD = 1
HOURS_S = (8 * 3600, 4 * 3600)
WARN_BEFORE_S = (3600, 900, 300)

# Why not
TWO_ALREADY = "two_decks_already"
SAME_BACK = "same_back"  # MD3 3.B(2): the backs of two decks differ
UNKNOWN_BACK = "unknown_back"
USED_BEFORE = "deck_used_before"  # a removed deck never returns
NO_SUCH_DECK = "no_such_deck"
NOT_ITS_TURN = "not_its_turn"  # MD3 3.B(4): strict alternation
OTHER_MISSING = "other_deck_missing"  # wait for another, or let the floor choose one-deck play
TIME_UNKNOWN = "time_unknown"
PAST_ITS_HOURS = "past_its_hours"


class Deck:
    """One deck of 52, from its opening until it is removed."""

    def __init__(self, deck_id: int, back: int, opened_s: int) -> None:
        self.deck_id = deck_id
        self.back = back
        self.opened_s = opened_s


class Decks:
    """The one or two decks in use."""

    def __init__(self, method: int = SHOE_METHOD) -> None:
        self.method = method
        self.one_deck = False  # the floor's choice to go on with one (MD3 3.A)
        self._decks: list[Deck] = []
        self._highest_id = 0
        self.last_played = 0  # the deck of the round started last, void or not

    def find(self, deck_id: int) -> Deck | None:
        """The deck with this id, if it is in use."""
        for deck in self._decks:
            if deck.deck_id == deck_id:
                return deck
        return None

    def of_back(self, back: int) -> Deck | None:
        """The deck with this back, if there is one."""
        for deck in self._decks:
            if deck.back == back:
                return deck
        return None

    # -- coming and going -----------------------------------------------------------------------

    def refuse_registering(self, deck_id: int, back: int) -> str | None:
        """Why a new deck must not come to the table."""
        if back not in (RED, BLUE):
            return UNKNOWN_BACK
        if deck_id <= self._highest_id:
            return USED_BEFORE
        if self.of_back(back) is not None:
            return SAME_BACK
        if len(self._decks) >= 2:
            return TWO_ALREADY
        return None

    def register(self, deck_id: int, back: int, opened_s: int) -> None:
        """A new deck comes to the table."""
        self._decks.append(Deck(deck_id, back, opened_s))
        self._highest_id = deck_id
        if len(self._decks) == 2:
            self.one_deck = False

    def remove(self, deck_id: int) -> None:
        """A deck leaves the table for good."""
        self._decks = [deck for deck in self._decks if deck.deck_id != deck_id]

    # -- playing --------------------------------------------------------------------------------

    def refuse_shuffling(self, deck_id: int, now_s: int | None) -> str | None:
        """Why this deck must not be shuffled now; the time is None while nobody knows it."""
        return self._refuse_using(deck_id, now_s)

    def refuse_round(self, deck_id: int, now_s: int | None) -> str | None:
        """Why a new round must not be dealt from this deck now."""
        why = self._refuse_using(deck_id, now_s)
        if why is not None or self.last_played != deck_id or self.one_deck:
            return why
        return NOT_ITS_TURN if len(self._decks) == 2 else OTHER_MISSING

    def started(self, deck_id: int) -> None:
        """A round was started from this deck: it has used its turn, void or not."""
        self.last_played = deck_id

    def left_s(self, deck_id: int, now_s: int) -> int:
        """How long a deck may still be used by the method in use; negative when it is past that."""
        deck = self.find(deck_id)
        assert deck is not None
        return deck.opened_s + HOURS_S[self.method] - now_s

    def warning(self, deck_id: int, before_s: int, now_s: int) -> int | None:
        """The warning that fell due between two moments: seconds left, or None."""
        left, left_before = self.left_s(deck_id, now_s), self.left_s(deck_id, before_s)
        due = [each for each in WARN_BEFORE_S if left <= each < left_before]
        return min(due) if due else None

    def _refuse_using(self, deck_id: int, now_s: int | None) -> str | None:
        if self.find(deck_id) is None:
            return NO_SUCH_DECK
        if now_s is None:
            return TIME_UNKNOWN
        return PAST_ITS_HOURS if self.left_s(deck_id, now_s) <= 0 else None
