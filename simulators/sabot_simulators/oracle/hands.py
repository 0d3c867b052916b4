"""People who had a half in hand: which card they overlooked there (excuse ``overlooked``)."""

from collections.abc import Callable, Iterable

from sabot_firmware import hardware, machine_constants
from sabot_simulators.mechanism.hidden_cards import NEAR_UM, OverlookedCard, hidden_cards
from sabot_simulators.mechanism.moving_parts import SHOE, SHUFFLER
from sabot_simulators.mechanism.physical_cards import PhysicalCard
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.oracle.claims import Excuse


class Overlooked:
    """Excuses a card by the act at which a person overlooked it, until the next count that would find it.

    The simulated people say what they overlooked (``machine.overlooked``). No act excuses a card that the
    device itself knows to be missing, until a person vouches for the path or its deck was counted whole.
    """

    def __init__(self, machine: SimulatedMachine, deck_of: Callable[[PhysicalCard], int]) -> None:
        """``deck_of`` says which deck a card belongs to, 0 if to none."""
        self._machine = machine
        self._deck_of = deck_of
        self._counted_us = -1  # when the chamber was last counted
        self._passed: tuple[PhysicalCard, ...] = ()  # the newest that passed the exit
        self._known: list[PhysicalCard] = []  # in the shoe's path, and the device said that cards are missing
        self._short = 0  # the deck that they are missing from
        self.replaced: list[PhysicalCard] = []
        """Cards that were known to be missing until their deck was counted whole; they still lie there."""

    def chamber_counted(self, whole: int) -> None:
        """The chamber was counted, and found the cards on the way there; ``whole`` is that deck, 0 if not."""
        self._counted_us = self._machine.agenda.now_us
        if whole and whole == self._short:
            self.replaced, self._known = self._known, []

    def passed_the_exit(self, cards: tuple[PhysicalCard, ...]) -> None:
        """These cards fell into the exit tray; a card in the path stops one that comes after it."""
        self._passed = cards

    def missed(self, deck_id: int) -> None:
        """The device says that cards of a deck are missing: it knows of what lies in the shoe's path now."""
        self._known, self._short = self._machine.deal_track.cards(), deck_id
        self.replaced = []

    def vouched(self) -> None:
        """The device knows of no card any more: a person vouches for the path, or its memory is lost."""
        self._known = []

    def look(self) -> None:
        """A card that has left the shoe's path is not missing there any more."""
        lies = set(map(id, self._machine.deal_track.cards()))
        self._known = [card for card in self._known if id(card) in lies]
        self.replaced = [card for card in self.replaced if id(card) in lies]

    def excuses(self, half: int, cards: Iterable[PhysicalCard]) -> list[Excuse | None]:
        """For each card that lies in a half which is called empty: the excuse, or None."""
        lies = {id(card): place_um for card, place_um in hidden_cards(self._machine, half)}
        return [self._excuse(half, card, lies.get(id(card))) for card in cards]

    def _excuse(self, half: int, card: PhysicalCard, place_um: int | None) -> Excuse | None:
        act = self._newest(half, card)
        if act is None or place_um is None or self._moved(act, place_um) or self._would_be_found(act):
            return None  # nobody overlooked it, or a sensor shows it or should have shown it since
        if half == SHOE and any(each is card for each in self._known):
            return None
        cause = f"{act.person} {act.act}"
        return Excuse("overlooked", self._deck_of(card), (card,), cause, act.at_us)

    def _newest(self, half: int, card: PhysicalCard) -> OverlookedCard | None:
        for each in reversed(self._machine.overlooked):
            if each.half == half and each.card is card:
                return each
        return None

    def _moved(self, act: OverlookedCard, place_um: int) -> bool:
        """Whether a card moved since an act, and nothing but the device kept it from a sensor.

        The deal roller may move it until it sticks before the exit, or past a dead sensor there.
        """
        if abs(place_um - act.place_um) <= NEAR_UM:
            return False
        machine = self._machine
        sticks = any(
            body.stuck_at_um is not None and abs(place_um - body.stuck_at_um) <= NEAR_UM
            for body in machine.deal_track.bodies
            if any(card is act.card for card in body.cards)
        )
        return not (sticks or (act.half == SHOE and machine.sensors.is_dead(hardware.EXIT)))

    def _would_be_found(self, act: OverlookedCard) -> bool:
        """Whether a count since an act would have found its card: of the chamber, or at the exit.

        The count of the chamber is made at the insertion's sensor. No count finds a card that lies beyond it.
        """
        if act.half == SHUFFLER:
            return self._counted_us > act.at_us and act.place_um < machine_constants.INSERTION_UM
        ahead = any(each is card for each in act.path for card in self._passed)
        return self._machine.landed_us > act.at_us and not ahead
