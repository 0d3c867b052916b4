"""Wrong claims and their excuses.

An excuse is one event that no sensor of this machine can see. It names the cards, the deck, the cause and
the window: from when to when that event may make a claim wrong. ``UNSEEN`` lists them; there is no other.
"""

from dataclasses import dataclass

from sabot_simulators.mechanism.physical_cards import PhysicalCard


@dataclass(frozen=True)
class Unseen:
    """A kind of event that no sensor can see."""

    means: str
    """What happens, and why no sensor sees it."""
    excuses: str
    """Which claims it excuses."""
    names: str
    """The cards an excuse of this name must name."""
    window: str
    """From when to when it excuses."""


UNSEEN = {
    "aligned_at_the_exit": Unseen(
        "two cards, one exactly under the other, pass the exit as one. Only the count at the round's end "
        "shows it, and not if the same deck has one card too many",
        "the number of a stack, of a stub, of a round, of what is left in the shoe",
        "both cards, as the mechanism drew them together",
        "from the draw until the next deck is pushed into the shoe",
    ),
    "behind_a_closed_door": Unseen(
        "no sensor counts what lies on the shelf or in the shoe. If a card leaves or joins it behind a "
        "closed door, only the count of the stub shows that",
        "the number on the shelf or in the shoe; never a count and never a round that is called correct",
        "each card that was taken or added",
        "from the moment it was taken or added, after the deck's count, until the stub has come out",
    ),
    "composition": Unseen(
        "a count is not a composition: a second copy of a card in the place of another counts as a card",
        "which cards they are, never how many; and that the shoe is empty, if a deck that came out short was "
        "counted whole with another card in the place of the one in the path",
        "each card that is not of the deck, or that is missing from it",
        "from the moment it was laid into the tray, if it lay there when this shuffle began or came later, "
        "or from its exchange behind a closed door, until the deck is fed again",
    ),
    "laid_onto_a_stack": Unseen(
        "a card that a hand lays onto a stack that waits in the exit tray covers no sensor",
        "what lies in the exit tray; never what was dealt",
        "each card that did not come out of the shoe with this stack",
        "while that stack waits",
    ),
    "taken_unseen": Unseen(
        "a dead or chattering sensor of the exit tray does not show that the stack was taken",
        "what lies in the exit tray; the device waits and deals nothing meanwhile",
        "the cards that were taken",
        "while that stack waits and the sensor is not repaired",
    ),
    "past_a_dead_sensor": Unseen(
        "the shoe's last card passes a dead exit sensor. The count is one too low, the round is void and the "
        "shoe stays blocked",
        "a number that is one too low, and that the card is left in the shoe; never a round that is called "
        "correct",
        "the shoe's last card, which landed after the sensor had failed; no card may be left in shoe or path",
        "from the failure of the sensor until it is repaired or the stub is taken",
    ),
    "overlooked": Unseen(
        "a person who takes cards out, looks in, inspects the path or leaves service overlooks a card that "
        "no sensor shows: it covers none, lies beside the stack or before a dead one",
        "that the half is empty; never a number of cards, never the place of a deck, and never a card that "
        "the device knows to be missing, unless a person vouches for the path or its deck was counted whole",
        "the card; the cause names the person and the act, which the simulated person recorded",
        "from that act until a sensor shows the card, or the next count would find it: of the chamber (not "
        "beyond the insertion's sensor), or of a card that passes the exit; if the card moved, only while it "
        "sticks before the exit, or before a dead sensor there",
    ),
    "wrong_clock": Unseen(
        "the device has no clock during a power cut. If a host sets it back, or registers a deck while it is "
        "ahead, the deck seems younger than it is",
        "that a deck is within its hours",
        "no card: the deck",
        "while the clock is behind; for a deck registered while the clock was ahead, as long as it is in use",
    ),
}


@dataclass(frozen=True)
class Excuse:
    """Why one claim was wrong although the firmware is correct."""

    name: str
    """The key in ``UNSEEN``."""
    deck_id: int
    cards: tuple[PhysicalCard, ...]
    cause: str
    """The fault that happened, or the hand."""
    from_us: int
    """Since when it excuses."""


@dataclass(frozen=True)
class WrongClaim:
    """A claim that the mechanism contradicts."""

    what: str
    at_us: int
    faults: tuple[str, ...]
    """The faults that had happened, as a help for analysis; they excuse nothing."""
    excuses: tuple[Excuse, ...] = ()

    @property
    def unseen(self) -> str | None:
        """The name of the unseen event (a key of ``UNSEEN``) if every difference is excused, else None."""
        return self.excuses[0].name if self.excuses else None
