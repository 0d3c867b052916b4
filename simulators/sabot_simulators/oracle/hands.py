"""People who had a half in hand: which cards lay there that no sensor shows (excuse ``overlooked``)."""

from collections.abc import Callable, Iterable

from sabot_firmware import hardware
from sabot_simulators.mechanism.moving_parts import SHOE, SHUFFLER
from sabot_simulators.mechanism.physical_cards import PhysicalCard
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.oracle.claims import Excuse

NEAR_UM = 1_000  # a card that stays where it is
STACKS = {
    SHUFFLER: ((hardware.CHAMBER, "chamber"), (hardware.STORE, "store")),
    SHOE: ((hardware.SHOE, "shoe"),),
}


class Overlooked:
    """The cards of each half that a person could have found and did not."""

    def __init__(self, machine: SimulatedMachine, deck_of: Callable[[PhysicalCard], int]) -> None:
        """``deck_of`` says which deck a card belongs to, 0 if to none."""
        self._machine = machine
        self._deck_of = deck_of
        self._opened_us = list(machine.opened_us)
        self._left: dict[int, dict[int, tuple[int, Excuse]]] = {SHUFFLER: {}, SHOE: {}}

    def door(self, half: int) -> None:
        """Note whether the door of a half was opened since the last call."""
        if self._machine.opened_us[half] != self._opened_us[half]:
            self._opened_us[half] = self._machine.opened_us[half]
            self.in_hand(half, "its door was opened")

    def in_hand(self, half: int, cause: str) -> None:
        """A person has a half in hand now, and may overlook what no sensor shows."""
        now_us, hidden = self._machine.agenda.now_us, self._hidden(half)
        self._left[half] = {
            id(card): (place, Excuse("overlooked", self._deck_of(card), (card,), cause, now_us))
            for card, place in hidden
        }

    def excuses(self, half: int, cards: Iterable[PhysicalCard]) -> list[Excuse | None]:
        """For each card that lies in a half which is called empty: the excuse, or None."""
        lies = {id(card): place for card, place in self._hidden(half)}
        return [self._excuse(half, id(card), lies.get(id(card))) for card in cards]

    def _excuse(self, half: int, card: int, place: int | None) -> Excuse | None:
        then, excuse = self._left[half].get(card, (0, None))
        return excuse if place is not None and abs(place - then) <= NEAR_UM else None

    def _hidden(self, half: int) -> list[tuple[PhysicalCard, int]]:
        """The cards that no sensor shows, and where: a leading edge in um, below 0 before a dead sensor."""
        machine = self._machine
        track = machine.deal_track if half == SHOE else machine.feed_track
        now_us = machine.agenda.now_us
        dead = machine.sensors.is_dead
        hidden = [(card, body.lead_now(now_us)) for body in track.unseen(dead) for card in body.cards]
        if half == SHUFFLER:  # beside the stack
            hidden += [(card, 0) for card in machine.crashed]
        for sensor, zone in STACKS[half]:
            if dead(sensor):
                stack = machine.stack() if zone == "chamber" else getattr(machine, zone)
                hidden += [(card, -NEAR_UM * (sensor + 2)) for card in stack]
        return hidden
