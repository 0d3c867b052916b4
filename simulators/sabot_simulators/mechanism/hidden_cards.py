"""Cards that no sensor shows, and which of them a person overlooked at which act."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabot_firmware import hardware
from sabot_simulators.mechanism.physical_cards import PhysicalCard

if TYPE_CHECKING:
    from sabot_simulators.mechanism.moving_parts import MovingParts

NEAR_UM = 1_000  # a card that stays where it is
STACKS = (
    ((hardware.CHAMBER, "chamber"), (hardware.STORE, "store")),
    ((hardware.SHOE, "shoe"),),
)  # of each half


@dataclass(frozen=True)
class OverlookedCard:
    """A card that a person could have found in a half, and did not."""

    card: PhysicalCard
    half: int
    place_um: int
    """Where it lay then; see ``hidden_cards``."""
    path: tuple[PhysicalCard, ...]
    """The cards of its path then: one that lay ahead comes out without meeting it."""
    person: str
    act: str
    at_us: int


def hidden_cards(machine: "MovingParts", half: int) -> list[tuple[PhysicalCard, int]]:
    """The cards that no sensor shows, and where: a leading edge in um, below 0 before a dead sensor."""
    track = (machine.feed_track, machine.deal_track)[half]
    now_us = machine.agenda.now_us
    dead = machine.sensors.is_dead
    hidden = [(card, body.lead_now(now_us)) for body in track.unseen(dead) for card in body.cards]
    if track is machine.feed_track:  # beside the stack
        hidden += [(card, 0) for card in machine.crashed]
    for sensor, zone in STACKS[half]:
        if dead(sensor):
            stack = machine.elevator.cards if zone == "chamber" else getattr(machine, zone)
            hidden += [(card, -NEAR_UM * (sensor + 2)) for card in stack]
    return hidden
