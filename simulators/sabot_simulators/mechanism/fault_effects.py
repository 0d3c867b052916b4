"""The effects of faults that act on the whole machine: unseen hands, doors, motors, the supply."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sabot_firmware import hardware, machine_constants
from sabot_simulators.mechanism.faults import BOARD_KINDS, PlannedFault
from sabot_simulators.mechanism.physical_cards import PhysicalCard, cover_card, one_card
from sabot_simulators.mechanism.sensors import BY_NAME, DIRT_US

if TYPE_CHECKING:
    from sabot_simulators.mechanism.simulated_machine import SimulatedMachine

ROLLERS = {"feed": hardware.FEED, "insert": hardware.INSERT, "deal": hardware.DEAL}
DOORS = {"shuffler": hardware.SHUFFLER_DOOR, "shoe": hardware.SHOE_DOOR}
COOLING_US = 60_000_000
BROWN_OUT_US = 200_000
HAND_US = 30_000  # how soon a hand is there
SOON_US = 100_000  # within about the time of a card
BEND_UM = (100, machine_constants.CARD_THICKNESS_UM)

CONTROLLER_KINDS = ("over_temperature", "brown_out", "power_cut", "stuck_noise", *BOARD_KINDS)
OF_THE_CONTROLLER = tuple((kind, "controller") for kind in CONTROLLER_KINDS)

# What a card that is drawn from a source may bring about, besides what happens to the card itself.
WITH_A_CARD = {
    "tray": (("motor_stall", "feed"), ("door_opened", "shuffler"), *OF_THE_CONTROLLER),
    "shoe": (("motor_stall", "deal"), ("door_opened", "shoe"), *OF_THE_CONTROLLER),
}
CARD_KINDS = (
    "bent_card",
    "missing_card",
    "extra_card",
    "other_deck_card",
    "face_up_card",
    "cover_card",
    "duplicate_card",
)


class FaultEffects:
    """Lets planned faults happen to a machine."""

    def __init__(self, machine: "SimulatedMachine") -> None:
        self._machine = machine
        self.put_in = {"tray": 0, "store": 0, "shoe": 0}
        """Cards that have come there since the first fault was planned."""
        self._actions: dict[str, Callable[[str], object]] = {
            "dead_sensor": lambda place: machine.sensors.freeze(BY_NAME[place]),
            "dirty_sensor": lambda place: machine.sensors.force(BY_NAME[place], DIRT_US),
            "chattering_sensor": lambda place: machine.sensors.chatter(BY_NAME[place]),
            "motor_stall": lambda place: machine.seize(ROLLERS[place]),
            "door_opened": lambda place: machine.open_door(DOORS[place]),
            "stack_taken_early": lambda place: machine.snatch_exit(),
            "hand_in_exit": lambda place: machine.meddle_with_exit(),
            "over_temperature": lambda place: machine.sensors.force(hardware.HOT, COOLING_US),
            "brown_out": lambda place: machine.sensors.force(hardware.SUPPLY_LOW, BROWN_OUT_US),
            "power_cut": lambda place: machine.cut_power(),
            "stuck_noise": lambda place: setattr(machine.ring_oscillator, "stuck", True),
        }

    def strike(self, fault: PlannedFault) -> None:
        """Let it happen now, or where it needs an occasion, at the next one."""
        if fault.kind in CARD_KINDS:
            cards: list[PhysicalCard] = getattr(self._machine, fault.place)
            if cards and fault.probability is None:
                self._tamper(fault, cards, None if fault.card is None else fault.card - 1)
                self._machine.presence()
                return
        elif fault.card is None and fault.probability is None:
            waits = fault.kind == "stack_taken_early" and not self._machine.exit_tray
            if fault.kind in BOARD_KINDS or (fault.kind in self._actions and not waits):
                self.happen(fault)
                return
        self._machine.faults.add(fault)

    def happen(self, fault: PlannedFault) -> None:
        """It happens now."""
        self._machine.faults.note(fault)
        if fault.kind in BOARD_KINDS:
            self._machine.on_fault(fault)
        else:
            self._actions[fault.kind](fault.place)

    # -- occasions ------------------------------------------------------------------------------

    def card_drawn(self, source: str) -> None:
        """A card was drawn: what is due with it happens while it is on its way."""
        machine = self._machine
        for kind, place in WITH_A_CARD[source]:
            fault = machine.faults.due_at(kind, place)
            if fault is not None:
                machine.agenda.after(machine.random.randrange(SOON_US), self.happen, fault)

    def card_landed(self) -> None:
        """A card has come into the exit tray."""
        machine = self._machine
        for kind in ("stack_taken_early", "hand_in_exit"):
            fault = machine.faults.due_at(kind, "exit_tray")
            if fault is not None:
                machine.agenda.after(HAND_US, self.happen, fault)

    def tampered(self, zone: str, cards: list[PhysicalCard]) -> list[PhysicalCard]:
        """What becomes of a stack that is put somewhere."""
        if zone not in self.put_in or not cards:
            return cards
        before = self.put_in[zone]
        self.put_in[zone] += len(cards)
        for kind in CARD_KINDS:
            fault = self._machine.faults.due(kind, zone, before + len(cards))
            if fault is not None and cards:
                self._tamper(fault, cards, None if fault.card is None else fault.card - before - 1)
        return cards

    def _tamper(self, fault: PlannedFault, cards: list[PhysicalCard], at: int | None) -> None:
        """An unseen hand changes one card of a stack."""
        machine = self._machine
        random = machine.random
        at = random.randrange(len(cards)) if at is None else min(max(at, 0), len(cards) - 1)
        card = cards[at]
        concerned = [card]
        if fault.kind == "bent_card":
            card.bend(random.randint(*BEND_UM))
        elif fault.kind == "missing_card":
            machine.removed.append(cards.pop(at))
        elif fault.kind == "extra_card":
            concerned = [one_card(machine.back_of(cards), random)]
            cards.insert(at, concerned[0])
        elif fault.kind == "other_deck_card":
            other = hardware.RED if card.back == hardware.BLUE else hardware.BLUE
            machine.removed.append(card)
            cards[at] = one_card(other, random)
            concerned.append(cards[at])
        elif fault.kind == "face_up_card":
            card.face_up = True
        elif fault.kind == "cover_card":
            concerned = [cover_card(random)]
            cards.insert(at, concerned[0])
        else:
            concerned = [one_card(card.back, random, card.number)]
            cards.insert(at + 1, concerned[0])
        if fault.place == "tray":
            for each in concerned:
                each.laid_us = machine.agenda.now_us
        machine.faults.note(fault, *concerned)
