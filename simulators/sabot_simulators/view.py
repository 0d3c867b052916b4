"""The firmware's state, as far as simulated people, tests and oracle need it."""

from dataclasses import dataclass

from sabot_firmware.controller import Controller
from sabot_firmware.half import MachineHalf


@dataclass(frozen=True)
class DeckView:
    """One registered deck."""

    deck_id: int
    back: int
    proved: bool
    """Whether all its cards are proved to be where ``cards`` says."""
    cards: tuple[int, ...]
    """Tray, path, chamber, store, shoe, exit tray, hands."""


@dataclass(frozen=True)
class View:
    """The firmware's state at one moment; a number is 0 if there is no such deck, round or fault."""

    shuffler_state: int
    shoe_state: int
    shuffler_fault: int
    shoe_fault: int
    feeding_deck: int
    stored_deck: int
    shoe_deck: int
    open_round: int
    stacks: int
    """Dealt in the round that is open."""
    last_round: int
    """The newest one, open or not."""
    last_played: int
    emptying: bool
    decks: tuple[DeckView, ...]

    def has_deck(self, deck_id: int) -> bool:
        """Whether a deck is registered."""
        return any(deck.deck_id == deck_id for deck in self.decks)

    def proved(self, deck_id: int) -> bool:
        """Whether all cards of a deck are proved to be where the firmware says."""
        return any(deck.deck_id == deck_id and deck.proved for deck in self.decks)

    def has_back(self, back: int) -> bool:
        """Whether a deck with this back is registered."""
        return any(deck.back == back for deck in self.decks)


def view_of(controller: Controller) -> View:
    """What a controller in this process believes."""
    decks = []
    for deck in controller.persistent.decks.in_use:
        proved, cards = controller.whereabouts(deck.deck_id)
        decks.append(DeckView(deck.deck_id, deck.back, proved, tuple(cards)))
    _, _, _, _, round_id, stacks = controller.status()
    return View(
        controller.shuffler.state,
        controller.shoe.state,
        _fault(controller.shuffler),
        _fault(controller.shoe),
        controller.shuffler.feeding_deck,
        controller.shuffler.stored_deck,
        controller.shoe.deck,
        round_id,
        stacks,
        controller.persistent.round_id,
        controller.persistent.decks.last_played,
        controller.service.emptying,
        tuple(decks),
    )


def _fault(half: MachineHalf) -> int:
    return half.jam.fault() if half.jam is not None else 0
