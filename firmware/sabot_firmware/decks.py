"""The decks at the table: which are registered, whose turn it is, how long each may still be used.

Pure decisions. Each ``refuse_…`` returns the reason as a name of ``Forbidden``, or None if nothing speaks
against it. Times are UTC seconds. A deck here is the unit that alternates: 52 cards, or a batch of several
52.
"""

from sabot_firmware.hardware import BLUE, RED

# How the cards are dealt, numbered as on the wire
AUTOMATED_SHOE = 0
MANUAL_SHOE = 1
HAND = 2
CARD_BY_CARD = 3

# How long cards may be used is a matter of the rule text (MD3 3.C, MDM 3.C): the host sets it with the game
DEFAULT_HOURS = 8  # until it has
NO_LIMIT = 0xFFFF  # hours
FOR_EVER_S = 0x7FFFFFFF

# Numbers of rounds and decks only rise, so a single number near the end of the range would use them all up
MAX_STEP = 4096  # how far a new number is ahead of the newest at most
MAX_FIRST = 0x7FFFFFFF  # the first one: a host may go on with numbers that another device has given
WARN_BEFORE_S = (3600, 900, 300, 0)

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


def is_far_ahead(number: int, newest: int) -> bool:
    """Whether the number of a new round or deck is too far above the newest one; 0: there is none."""
    return number > (newest + MAX_STEP if newest else MAX_FIRST)


class Deck:
    """One deck, from its opening until it is removed."""

    def __init__(self, deck_id: int, back: int, opened_s: int, aged_s: int = 0) -> None:
        self.deck_id = deck_id
        self.back = back
        self.opened_s = opened_s
        self.aged_s = aged_s  # the oldest it was ever seen, and the uptime since: no clock makes it younger

    def age_s(self, now_s: int) -> int:
        """Seconds since its opening, by wall time or uptime, whichever is more."""
        self.aged_s = min(max(self.aged_s, now_s - self.opened_s), FOR_EVER_S)  # what ``left_s`` can say
        return self.aged_s


class DeckRegistry:
    """The one or two registered decks."""

    def __init__(self, hours: int = DEFAULT_HOURS) -> None:
        self.hours = hours  # how long each may be used
        self.one_deck = False  # the floor's choice to go on with one (MD3 3.A)
        self.in_use: list[Deck] = []
        self.highest_id = 0
        self.last_played = 0  # the deck of the round started last, void or not

    def find(self, deck_id: int) -> Deck | None:
        """The registered deck with this id, or None."""
        for deck in self.in_use:
            if deck.deck_id == deck_id:
                return deck
        return None

    def of_back(self, back: int) -> Deck | None:
        """The registered deck with this back, or None."""
        for deck in self.in_use:
            if deck.back == back:
                return deck
        return None

    # -- coming and going -----------------------------------------------------------------------

    def refuse_registering(self, deck_id: int, back: int) -> str | None:
        """Why a new deck must not be registered."""
        if back not in (RED, BLUE):
            return UNKNOWN_BACK
        if deck_id <= self.highest_id:
            return USED_BEFORE
        if self.of_back(back) is not None:
            return SAME_BACK
        if len(self.in_use) >= 2:
            return TWO_ALREADY
        return None

    def register(self, deck_id: int, back: int, opened_s: int) -> None:
        """Register a new deck."""
        self.in_use.append(Deck(deck_id, back, opened_s))
        self.highest_id = deck_id
        if len(self.in_use) == 2:
            self.one_deck = False

    def grow_older(self, seconds: int) -> None:
        """Add uptime to the age of every deck, whatever the clock says."""
        for deck in self.in_use:
            deck.aged_s = min(deck.aged_s + seconds, FOR_EVER_S)

    def remove(self, deck_id: int) -> None:
        """Remove a deck for good."""
        self.in_use = [deck for deck in self.in_use if deck.deck_id != deck_id]

    # -- playing --------------------------------------------------------------------------------

    def refuse_using(self, deck_id: int, now_s: int | None) -> str | None:
        """Why this deck must not be used now; ``now_s`` is None while the time is unknown."""
        if self.find(deck_id) is None:
            return NO_SUCH_DECK
        if now_s is None:
            return TIME_UNKNOWN
        return PAST_ITS_HOURS if self.left_s(deck_id, now_s) <= 0 else None

    def refuse_turn(self, deck_id: int, now_s: int | None) -> str | None:
        """Why a new round, or shoe, must not be dealt from this deck now."""
        why = self.refuse_using(deck_id, now_s)
        if why is not None or self.last_played != deck_id or self.one_deck:
            return why
        return NOT_ITS_TURN if len(self.in_use) == 2 else OTHER_MISSING

    def started(self, deck_id: int) -> None:
        """This deck has used its turn, even if the round becomes void."""
        self.last_played = deck_id

    def left_s(self, deck_id: int, now_s: int) -> int:
        """Seconds that a deck may still be used in this game; negative when its hours are over."""
        deck = self.find(deck_id)
        assert deck is not None
        age_s = deck.age_s(now_s)
        return FOR_EVER_S if self.hours == NO_LIMIT else self.hours * 3600 - age_s

    def warning(self, left_before_s: int, left_s: int) -> int | None:
        """The warning that fell due between two remaining times, or None."""
        due = [each for each in WARN_BEFORE_S if left_s <= each < left_before_s]
        return min(due) if due else None
