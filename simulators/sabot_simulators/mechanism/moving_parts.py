"""The moving parts of the reference machine: zones, tracks and motors, driven by the firmware's orders.

Each half has its motors behind a door whose switch cuts them; without power nothing turns at all. A move that
is cut ends nowhere: what it carried stays where it came from until the move is ordered again.
"""

from collections import deque
from random import Random
from typing import TYPE_CHECKING

from sabot_firmware import hardware, machine_constants
from sabot_firmware.hardware import Hardware
from sabot_protocol import ticks
from sabot_simulators.mechanism.agenda import Agenda
from sabot_simulators.mechanism.elevator_model import ElevatorModel
from sabot_simulators.mechanism.faults import MISFED_TURNS, ON_THE_WAY, OVERHANG_UM, STUCK_AT_UM, FaultPlan
from sabot_simulators.mechanism.physical_cards import PhysicalCard
from sabot_simulators.mechanism.ring_oscillator import RingOscillator
from sabot_simulators.mechanism.sensors import SensorModel
from sabot_simulators.mechanism.track import CardGroup, Roller, Track

if TYPE_CHECKING:
    from sabot_simulators.mechanism.fault_effects import FaultEffects

SHUFFLER, SHOE = 0, 1  # the halves
DOORS = (hardware.SHUFFLER_DOOR, hardware.SHOE_DOOR)
HALF_OF_ROLLER = {hardware.FEED: SHUFFLER, hardware.INSERT: SHUFFLER, hardware.DEAL: SHOE}
STALLS = {
    hardware.FEED: hardware.FEED_STALL,
    hardware.INSERT: hardware.INSERT_STALL,
    hardware.DEAL: hardware.DEAL_STALL,
}
STALL_US = 20_000
CAPACITIES = {
    # cards a zone, blades, travel
    "deck": (
        machine_constants.DECK_CAPACITY,
        machine_constants.BLADE_UM,
        machine_constants.ELEVATOR_TRAVEL_DECK_UM,
    ),
    "batch": (
        machine_constants.BATCH_CAPACITY,
        machine_constants.BLADE_BATCH_UM,
        machine_constants.ELEVATOR_TRAVEL_BATCH_UM,
    ),
}
BENT_SNAGS = 0.5  # how likely a bent card catches on its way
LIP_UM = machine_constants.DEALT_UM - machine_constants.CARD_LENGTH_UM  # where the exit tray begins


class MovingParts(Hardware):
    """Tray, feed, chamber, store, pusher, shoe and exit tray, with everything that moves in between."""

    effects: "FaultEffects"

    def __init__(self, random: Random, capacity: str, reader: bool) -> None:
        self.agenda = Agenda()
        self.random = random
        self.faults = FaultPlan(self.agenda, random)
        self.ring_oscillator = RingOscillator(random)
        self.sensors = SensorModel(self.agenda, random, self.faults)
        self.capacity, blade_um, travel_um = CAPACITIES[capacity]
        self.elevator = ElevatorModel(self.agenda, random, self.faults, self.sensors, blade_um, travel_um)
        spread = machine_constants.ROLLER_TOLERANCE_PERCENT / 100
        self._rollers = [
            Roller(round(machine_constants.ROLLER_UM_PER_MS * (1 + random.uniform(-spread, spread))))
            for _ in range(3)
        ]
        self.tray: list[PhysicalCard] = []  # the top card first, as in all stacks
        self.store: list[PhysicalCard] = []
        self.shoe: list[PhysicalCard] = []
        self.exit_tray: list[PhysicalCard] = []
        self.crashed: list[PhysicalCard] = []  # met no opening or no room, in the shuffler half
        self.landed: deque[tuple[PhysicalCard, ...]] = deque(maxlen=2 * machine_constants.BATCH_CAPACITY)
        """What fell into the exit tray lately, each body that moved as one; an observer takes it out."""
        self.landed_us = -1  # when the newest of them did
        self.opened_us = [-1, -1]  # when the door of each half was last opened
        self.display = ("", "")
        self.lamp = hardware.DARK
        self.powered = True
        feed, insert, deal = self._rollers
        self.feed_track = Track(
            self.agenda,
            ((feed, 0), (insert, machine_constants.INSERT_NIP_UM)),
            (
                (hardware.ENTRY, machine_constants.ENTRY_UM),
                (hardware.INSERTION, machine_constants.INSERTION_UM),
            ),
            machine_constants.INSERTED_UM,
            self._from_tray,
            self._into_chamber,
            self.sensors.set,
        )
        self.deal_track = Track(
            self.agenda,
            ((deal, 0),),
            ((hardware.EXIT, machine_constants.EXIT_UM),),
            machine_constants.DEALT_UM,
            self._from_shoe,
            self._into_exit_tray,
            self.sensors.set,
        )
        self._reader = reader
        self._live = [True, True]  # whether the motors of each half have current
        self._exit_full = False  # a card that comes stops at the exit tray's lip
        self._vain = [0, 0]  # how often each half's roller must still be started to draw a card
        self._shelf_up = True
        self._pusher_home = True
        self._measuring = 0  # the newest order of each of these
        self._shelf_order = 0
        self._pusher_order = 0
        for switch in (*DOORS, hardware.PUSHER_HOME, hardware.ELEVATOR_HOME, hardware.ELEVATOR):
            self.sensors.set(switch, 1)

    @property
    def chamber(self) -> list[PhysicalCard]:
        """What lies on the platform; the gripper's packet is not among it."""
        return self.elevator.lower()

    # -- orders ---------------------------------------------------------------------------------

    def run(self, roller: int, direction: int) -> None:
        """Turn a roller, or stop it."""
        half = HALF_OF_ROLLER[roller]
        motor = self._rollers[roller]
        if not self._live[half]:
            direction = hardware.STOP
        if direction == motor.direction:
            return
        if direction > 0 and roller != hardware.INSERT and self._vain[half]:
            self._vain[half] -= 1
        if roller == hardware.INSERT and direction and self.faults.strikes("motor_stall", "insert", 1):
            motor.stalled = True
        self._turn(roller, direction)

    def _turn(self, roller: int, direction: int) -> None:
        motor = self._rollers[roller]
        motor.turn(direction, self.agenda.now_us)
        if motor.stalled:
            self.sensors.set(STALLS[roller], 0)
            self.agenda.after(STALL_US, self._stall_shows, roller)
        (self.deal_track if roller == hardware.DEAL else self.feed_track).rollers_changed()

    def seize(self, roller: int) -> None:
        """A roller's motor stalls, from now on."""
        self._rollers[roller].stalled = True
        self._turn(roller, self._rollers[roller].direction)

    def _stall_shows(self, roller: int) -> None:
        motor = self._rollers[roller]
        if motor.stalled and motor.direction and self.agenda.now_us - motor.since_us >= STALL_US:
            self.sensors.set(STALLS[roller], 1)

    def travelled_um(self, roller: int) -> int:
        """What a roller's encoder says: 30 bits, which wrap."""
        motor = self._rollers[roller]
        gone_um = motor.velocity_um_ms * (self.agenda.now_us - motor.since_us) // 1000
        return motor.travelled_um + gone_um & ticks.MASK

    def elevate(self, position_um: int) -> None:
        """Send the platform somewhere; it takes whole steps."""
        if self.powered:
            self.elevator.send(position_um, self._live[SHUFFLER])

    def home(self) -> None:
        """Send the platform down to its switch."""
        if self.powered:
            self.elevator.home(self._live[SHUFFLER])

    def grip(self, closed: bool) -> None:
        """Close or open the gripper."""
        if self._live[SHUFFLER]:
            self.elevator.grip(closed)

    def shelve(self, down: bool) -> None:
        """Carry the stack down to the shelf, or come back."""
        if self._live[SHUFFLER]:
            self._shelf_order += 1
            self._shelf_up = False
            self.agenda.after(
                machine_constants.SHELF_US, self._shelved if down else self._shelf_back, self._shelf_order
            )

    def push(self, forward: bool) -> None:
        """Push the store's stack into the shoe, or draw back."""
        if self._live[SHOE]:
            self._pusher_order += 1
            self._pusher_home = False
            self.sensors.set(hardware.PUSHER_HOME, 0)
            self.sensors.set(hardware.PUSHER_END, 0)
            done = self._pushed if forward else self._drawn_back
            self.agenda.after(machine_constants.PUSHER_US, done, self._pusher_order)

    def measure(self) -> None:
        """Read the height."""
        if self.powered:
            self.sensors.reset(hardware.HEIGHT)
            self._measuring += 1
            self.agenda.after(machine_constants.HEIGHT_US, self._measured, self._measuring)

    def height_um(self) -> int:
        """The height read last."""
        return self.elevator.height_um

    def colour(self, sensor: int) -> int:
        """What a colour reader sees: the uppermost card of what lies there."""
        track = self.deal_track if sensor == hardware.EXIT else self.feed_track
        body = track.at(sensor)
        return hardware.NOTHING if body is None else body.cards[0].colour

    def face(self) -> int:
        """What the card reader at the exit sees from below, of the foremost card there."""
        body = self.deal_track.at(hardware.EXIT) if self._reader else None
        return hardware.NO_FACE if body is None else body.cards[0].face

    def level(self, sensor: int) -> int:
        """What a sensor reads at this moment."""
        return self.sensors.levels[sensor]

    def noise(self, count: int) -> bytes:
        """Raw bits of the ring oscillator."""
        return self.ring_oscillator.read(count)

    def show(self, first: str, second: str) -> None:
        """Two lines on the display."""
        self.display = (first, second)

    def light(self, colour: int) -> None:
        """The lamp."""
        self.lamp = colour

    # -- movers ---------------------------------------------------------------------------------

    def _shelved(self, order: int) -> None:
        if order == self._shelf_order:
            cards = self.elevator.lift_off()
            if self._pusher_home:
                self._lower_onto_shelf(cards)
            else:
                self.crashed += cards  # the pusher stands where they should go
            self.presence()
            self.sensors.arrive(hardware.SHELF, 1, "shelf")

    def _shelf_back(self, order: int) -> None:
        if order == self._shelf_order:
            self._shelf_up = True
            self.sensors.arrive(hardware.SHELF, 0, "shelf")

    def _pushed(self, order: int) -> None:
        if len(self.shoe) + len(self.store) > self.capacity:
            return  # the pusher stops against cards that have no room to go to, short of its switch
        if order == self._pusher_order:
            cards, self.store = self.store, []
            self._fill("shoe", cards)
            self.presence()
            self.sensors.arrive(hardware.PUSHER_END, 1, "pusher")

    def _drawn_back(self, order: int) -> None:
        if order == self._pusher_order:
            self._pusher_home = True
            self.sensors.arrive(hardware.PUSHER_HOME, 1, "pusher")

    def _measured(self, order: int) -> None:
        if order == self._measuring:
            self.elevator.measured()

    def _cut(self, half: int) -> None:
        """The motors of a half lose their current in the midst of what they do."""
        self._live[half] = False
        if half == SHOE:
            self._pusher_order += 1
            self.run(hardware.DEAL, hardware.STOP)
        else:
            self._shelf_order += 1
            if not self.sensors.levels[hardware.SHELF]:
                self._shelf_up = True  # a lowering that was cut: the stack is still in the chamber
            self.elevator.freeze()
            self.run(hardware.FEED, hardware.STOP)
            self.run(hardware.INSERT, hardware.STOP)

    def _supply(self) -> None:
        """Motors whose door is closed have current again; none moves before it is told to."""
        self._live = [self.powered and bool(self.sensors.levels[door]) for door in DOORS]

    # -- cards ----------------------------------------------------------------------------------

    def _from_tray(self) -> CardGroup | None:
        return self._draw_from("tray", self.tray, SHUFFLER)

    def _from_shoe(self) -> CardGroup | None:
        body = self._draw_from("shoe", self.shoe, SHOE)
        if self._exit_full and body is not None:
            body.stop_at(LIP_UM)
        return body

    def _draw_from(self, source: str, cards: list[PhysicalCard], half: int) -> CardGroup | None:
        """The roller draws the next card, if nothing goes wrong."""
        if not cards:
            return None
        faults = self.faults
        if faults.waiting and faults.strikes("misfeed", source, 1):
            self._vain[half] = MISFED_TURNS
        if self._vain[half]:
            return None
        card = cards.pop(0)
        body = CardGroup([card], machine_constants.CARD_LENGTH_UM, 0, 0)
        if card.bent and self.random.random() < BENT_SNAGS:
            body.stuck_at_um = STUCK_AT_UM[self.random.choice(ON_THE_WAY[source])]
            body.snagged = True
        if faults.waiting:
            self._upset(body, source, cards)
        faults.cards[source] += len(body.cards)
        if faults.waiting:
            self.effects.card_drawn(source)
        if not cards:
            self.sensors.set(hardware.SHOE if half else hardware.TRAY, 0)
        return body

    def _upset(self, body: CardGroup, source: str, cards: list[PhysicalCard]) -> None:
        """What may happen to a card that is drawn."""
        strikes = self.faults.strikes
        both = (body.cards[0], cards[0]) if cards else ()
        if cards and strikes("double_feed", source, 1, both):
            body.cards.append(cards.pop(0))
            body.length_um += self.random.randrange(*OVERHANG_UM)
        elif cards and strikes("aligned_double", source, 1, both):
            body.cards.append(cards.pop(0))
        if strikes("slip", source, 1):
            body.drag_percent = 50
        for place in ON_THE_WAY[source]:
            snags = strikes("snag", place, 1)
            if snags or strikes("stuck", place, 1):
                body.stuck_at_um = STUCK_AT_UM[place]
                body.snagged = snags
                break

    def _into_chamber(self, body: CardGroup) -> None:
        cards, elevator = body.cards, self.elevator
        self.faults.cards["chamber"] += len(cards)
        fits = len(elevator.cards) + len(cards) <= self.capacity
        if fits and self._shelf_up and not self.crashed and elevator.is_open():
            elevator.insert(cards)
            self.sensors.set(hardware.CHAMBER, 1)
        else:
            self.crashed += cards

    def _into_exit_tray(self, body: CardGroup) -> None:
        faults = self.faults
        faults.cards["exit_tray"] += len(body.cards)
        self.landed.append(tuple(body.cards))
        self.landed_us = self.agenda.now_us
        self.exit_tray += body.cards
        self.sensors.set(hardware.EXIT_TRAY, 1)
        if len(self.exit_tray) >= self.capacity:
            self._look_at_exit_room()
        if faults.waiting:
            self.effects.card_landed()

    def _look_at_exit_room(self) -> None:
        """A card that finds the exit tray full stops at its lip, 6 mm behind the exit's sensor."""
        full = len(self.exit_tray) + len(self.deal_track.beyond(LIP_UM)) >= self.capacity
        if full != self._exit_full:
            self._exit_full = full
            self.deal_track.bar(LIP_UM, full)

    def _fill(self, zone: str, cards: list[PhysicalCard]) -> None:
        """A stack comes behind what a zone holds; an unseen hand may change it."""
        if self.faults.armed:
            cards = self.effects.tampered(zone, cards)
        holds: list[PhysicalCard] = getattr(self, zone)
        holds += cards

    def _lower_onto_shelf(self, cards: list[PhysicalCard]) -> None:
        """A stack comes onto what lies on the shelf; cards that find no room there lie crashed beside it."""
        room = max(self.capacity - len(self.store), 0)
        if self.faults.armed:
            cards = self.effects.tampered("store", cards)
            room = max(room, len(cards) if not self.store else 0)  # an unseen hand finds room for one more
        kept, over = (cards[-room:], cards[:-room]) if room else ([], cards)
        self.store[:0] = kept
        self.crashed += over

    def presence(self) -> None:
        """Let the presence sensors see what lies before them."""
        for sensor, cards in (
            (hardware.TRAY, self.tray),
            (hardware.CHAMBER, self.elevator.cards),
            (hardware.STORE, self.store),
            (hardware.SHOE, self.shoe),
            (hardware.EXIT_TRAY, self.exit_tray),
        ):
            self.sensors.set(sensor, 1 if cards else 0)
