"""The reference machine, moved by orders and reporting edges, in virtual time.

It implements the firmware's ``Hardware`` and knows the truth: ``truth()`` says where every card is, and in
which order. People act on it through the methods of their names: load, take, open a door.
"""

from collections.abc import Callable
from random import Random

from sabot_firmware import figures, hardware
from sabot_firmware.hardware import Hardware
from sabot_simulators.mechanism.cards import Card
from sabot_simulators.mechanism.events import Agenda
from sabot_simulators.mechanism.faults import MISFED_TURNS, OVERHANG_UM, STUCK_AT_UM, Fault, Plan
from sabot_simulators.mechanism.track import Body, Roller, Track

DOORS = {"tray": hardware.SHUFFLER_DOOR, "shoe": hardware.SHOE_DOOR}
ROLLER_NAMES = {hardware.FEED: "feed", hardware.INSERT: "insert", hardware.DEAL: "deal"}
SENSOR_NAMES = {hardware.ENTRY: "entry", hardware.INSERTION: "insertion", hardware.EXIT: "exit"}


class Machine(Hardware):
    """Tray, feed, chamber, store, pusher, shoe and exit tray, with everything that moves in between."""

    def __init__(self, random: Random, faults: tuple[Fault, ...] = ()) -> None:
        self.agenda = Agenda()
        self.random = random
        self.faults = Plan(faults, random)
        self._drawn = {"tray": 0, "shoe": 0}  # how many cards were taken from there
        self._vain = {"tray": 0, "shoe": 0}  # how often the roller must still be started to draw a card
        self._lost_um = 0  # how far the elevator is below where its steps say
        self._dead: set[int] = set()  # sensors that say the same for ever
        self.on_edge: Callable[[int, int, int], None] = lambda sensor, level, at_us: None
        spread = figures.ROLLER_TOLERANCE_PERCENT / 100
        self._rollers = [
            Roller(round(figures.ROLLER_UM_PER_MS * (1 + random.uniform(-spread, spread)))) for _ in range(3)
        ]
        self.tray: list[Card] = []
        self.chamber: list[Card] = []  # the top card first, as in all stacks
        self.store: list[Card] = []
        self.shoe: list[Card] = []
        self.exit_tray: list[Card] = []
        self.handed_out: list[Card] = []
        self.removed: list[Card] = []
        self._levels = [0] * hardware.SENSORS
        closed = (hardware.SHUFFLER_DOOR, hardware.SHOE_DOOR, hardware.PUSHER_HOME, hardware.ELEVATOR_HOME)
        for switch in closed:
            self._levels[switch] = 1
        self._levels[hardware.ELEVATOR] = 1
        feed, insert, deal = self._rollers
        self.feed_track = Track(
            self.agenda,
            ((feed, 0), (insert, figures.INSERT_NIP_UM)),
            ((hardware.ENTRY, figures.ENTRY_UM), (hardware.INSERTION, figures.INSERTION_UM)),
            figures.INSERTED_UM,
            self._from_tray,
            self._into_chamber,
            self._set,
        )
        self.deal_track = Track(
            self.agenda,
            ((deal, 0),),
            ((hardware.EXIT, figures.EXIT_UM),),
            figures.DEALT_UM,
            self._from_shoe,
            self._into_exit_tray,
            self._set,
        )
        self._platform_um = 0
        self._target_um = 0
        self._gripped: list[Card] | None = None  # the upper packet while the gripper is closed
        self._height_um = 0
        self._moves = [0] * 4  # the newest order to elevator, gripper, shelf, pusher
        self.crashed: list[Card] = []  # cards that met no opening: they lie across the chamber's mouth

    # -- the truth ------------------------------------------------------------------------------

    def truth(self) -> dict[str, list[Card]]:
        """Where every card really is, in order, top or foremost first."""
        return {
            "tray": list(self.tray),
            "path": self.feed_track.cards() + list(self.crashed),
            "chamber": list(self._gripped or []) + list(self.chamber),
            "store": list(self.store),
            "shoe": self.deal_track.cards() + list(self.shoe),
            "exit_tray": list(self.exit_tray),
            "handed_out": list(self.handed_out),
            "removed": list(self.removed),
        }

    def stack(self) -> list[Card]:
        """The chamber's stack as one, from the top."""
        return list(self._gripped or []) + self.chamber

    # -- orders ---------------------------------------------------------------------------------

    def run(self, roller: int, direction: int) -> None:
        """Turn a roller, or stop it."""
        source = "shoe" if roller == hardware.DEAL else "tray"
        if direction and self.faults.strikes("stall", ROLLER_NAMES[roller], self._drawn[source] + 1):
            self._rollers[roller].speed_um_ms = 0
        if direction > 0 and self._vain[source]:
            self._vain[source] -= 1
        if not self._levels[DOORS[source]]:
            direction = hardware.STOP  # the door's switch cuts the motors of its half
        self._rollers[roller].turn(direction, self.agenda.now_us)
        (self.deal_track if roller == hardware.DEAL else self.feed_track).rollers_changed()

    def travelled_um(self, roller: int) -> int:
        """What a roller's encoder says."""
        return self._rollers[roller].now_um(self.agenda.now_us)

    def elevate(self, position_um: int) -> None:
        """Send the platform somewhere; it takes whole steps."""
        step = figures.ELEVATOR_STEP_UM
        self._target_um = (position_um + step // 2) // step * step
        self._set(hardware.ELEVATOR, 0)
        self._set(hardware.ELEVATOR_HOME, 0)
        self._order(0, figures.travel_us(self._target_um - self._platform_um), self._elevated)

    def grip(self, closed: bool) -> None:
        """Close or open the gripper."""
        self._order(1, figures.GRIP_US, self._grip_closed if closed else self._grip_opened)

    def shelve(self, down: bool) -> None:
        """Carry the stack down to the shelf, or come back."""
        self._order(2, figures.SHELF_US, self._shelved if down else self._shelf_back)

    def push(self, forward: bool) -> None:
        """Push the store's stack into the shoe, or draw back."""
        self._set(hardware.PUSHER_HOME, 0)
        self._set(hardware.PUSHER_END, 0)
        self._order(3, figures.PUSHER_US, self._pushed if forward else self._drawn_back)

    def measure(self) -> None:
        """Read the height."""
        self._set(hardware.HEIGHT, 0)
        self.agenda.at(self.agenda.now_us + figures.HEIGHT_US, self._measured)

    def height_um(self) -> int:
        """The height read last."""
        return self._height_um

    def colour(self, sensor: int) -> int:
        """What a colour reader sees: the uppermost card of what lies there."""
        track = self.deal_track if sensor == hardware.EXIT else self.feed_track
        body = track.at(sensor)
        return hardware.NOTHING if body is None else body.cards[0].colour

    def level(self, sensor: int) -> int:
        """A sensor's level at this moment."""
        return self._levels[sensor]

    # -- people ---------------------------------------------------------------------------------

    def load(self, cards: list[Card]) -> None:
        """Somebody puts a stack into the tray; its first card is fed first."""
        self.tray += cards
        self._presence()

    def take_exit(self) -> list[Card]:
        """Somebody takes what lies in the exit tray."""
        taken, self.exit_tray = self.exit_tray, []
        self.handed_out += taken
        self._presence()
        return taken

    def open_door(self, door: int) -> None:
        """Somebody opens a door: its half's rollers stop at once."""
        self._set(door, 0)
        rollers = (hardware.DEAL,) if door == hardware.SHOE_DOOR else (hardware.FEED, hardware.INSERT)
        for roller in rollers:
            self.run(roller, hardware.STOP)

    def close_door(self, door: int) -> None:
        """Somebody closes a door again."""
        self._set(door, 1)

    def empty_by_hand(self, door: int) -> list[Card]:
        """Somebody takes every card out of a half, through its open door."""
        assert not self._levels[door], "the door is closed"
        self._vain["shoe" if door == hardware.SHOE_DOOR else "tray"] = 0
        if door == hardware.SHOE_DOOR:
            taken = self.exit_tray + self.deal_track.clear() + self.shoe
            self.exit_tray, self.shoe = [], []
        else:
            taken = self.stack() + self.crashed + self.feed_track.clear() + self.store
            self.chamber, self._gripped, self.crashed, self.store = [], None, [], []
            self._moves[1] += 1  # the gripper is opened by hand, whatever it was about to do
            self._set(hardware.GRIPPER, 0)
        self.handed_out += taken
        self._presence()
        return taken

    # -- what moves -----------------------------------------------------------------------------

    def _order(self, mover: int, us: int, done: Callable[[int], None]) -> None:
        """An order to a mover replaces the one before."""
        self._moves[mover] += 1
        self.agenda.at(self.agenda.now_us + us, done, self._moves[mover])

    def _elevated(self, order: int) -> None:
        if order == self._moves[0]:
            if self.faults.strikes("lost_steps", "chamber", len(self.stack()) + 1):
                self._lost_um += figures.CARD_THICKNESS_UM
            self._platform_um = self._target_um - self._lost_um
            self._set(hardware.ELEVATOR, 1)
            self._set(hardware.ELEVATOR_HOME, 1 if self._platform_um == 0 else 0)

    def _grip_closed(self, order: int) -> None:
        """The blades enter the gap nearest to them; what lies above is held."""
        if order != self._moves[1] or self._gripped is not None:
            return
        reach_um = figures.BLADE_UM - self._platform_um
        height_um = below = 0
        for card in reversed(self.chamber):
            if height_um + card.thickness_um // 2 > reach_um:
                break
            height_um += card.thickness_um
            below += 1
        above = len(self.chamber) - below
        if below and self.faults.strikes("grip_slip", "chamber", len(self.chamber) + 1):
            above += 1
        self._gripped, self.chamber = self.chamber[:above], self.chamber[above:]
        self._set(hardware.GRIPPER, 1)

    def _grip_opened(self, order: int) -> None:
        if order == self._moves[1]:
            self.chamber = (self._gripped or []) + self.chamber
            self._gripped = None
            self._set(hardware.GRIPPER, 0)

    def _shelved(self, order: int) -> None:
        if order == self._moves[2]:
            self.store = self.chamber + self.store
            self.chamber = []
            self._presence()
            self._set(hardware.SHELF, 1)

    def _shelf_back(self, order: int) -> None:
        if order == self._moves[2]:
            self._set(hardware.SHELF, 0)

    def _pushed(self, order: int) -> None:
        if order == self._moves[3]:
            self.shoe, self.store = self.shoe + self.store, []
            self._presence()
            self._set(hardware.PUSHER_END, 1)

    def _drawn_back(self, order: int) -> None:
        if order == self._moves[3]:
            self._set(hardware.PUSHER_HOME, 1)

    def _measured(self, _: int) -> None:
        """The sensor sees what lies on the platform; while a packet is held up, only the lower one."""
        on_platform = self.chamber
        if self._gripped is not None and not self._open():
            on_platform = self._gripped + self.chamber
        height = sum(card.thickness_um for card in on_platform) + self.random.gauss(0, 8)
        step = figures.HEIGHT_STEP_UM
        self._height_um = round(height / step) * step
        self._set(hardware.HEIGHT, 1)

    def _open(self) -> bool:
        """Whether there is a gap between the packets wide enough for a card."""
        lower_um = sum(card.thickness_um for card in self.chamber)
        return self._platform_um + lower_um <= figures.BLADE_UM - figures.OPENING_UM // 2

    # -- cards ----------------------------------------------------------------------------------

    def _from_tray(self) -> Body | None:
        return self._draw_from("tray", self.tray)

    def _from_shoe(self) -> Body | None:
        return self._draw_from("shoe", self.shoe)

    def _draw_from(self, source: str, cards: list[Card]) -> Body | None:
        """The roller draws the next card, if nothing goes wrong."""
        if not cards:
            return None
        number = self._drawn[source] + 1
        faults = self.faults
        if faults.strikes("misfeed", source, number):
            self._vain[source] = MISFED_TURNS
        if self._vain[source]:
            return None
        body = Body([cards.pop(0)], figures.CARD_LENGTH_UM, 0, 0)
        if cards and faults.strikes("double_feed", source, number):
            body.cards.append(cards.pop(0))
            body.length_um += self.random.randrange(*OVERHANG_UM)
        elif cards and faults.strikes("aligned_double", source, number):
            body.cards.append(cards.pop(0))
        if faults.strikes("slip", source, number):
            body.drag_percent = 50
        place = faults.stuck_place(source, number)
        if place is not None:
            body.stuck_at_um = STUCK_AT_UM[place]
        self._drawn[source] += len(body.cards)
        self._presence()
        return body

    def _into_chamber(self, body: Body) -> None:
        if self._open():
            self.chamber = body.cards + self.chamber
        else:
            self.crashed += body.cards
        self._presence()

    def _into_exit_tray(self, body: Body) -> None:
        self.exit_tray += body.cards
        self._presence()

    # -- sensors --------------------------------------------------------------------------------

    def _presence(self) -> None:
        for sensor, cards in (
            (hardware.TRAY, self.tray),
            (hardware.CHAMBER, self.chamber or self._gripped),
            (hardware.STORE, self.store),
            (hardware.SHOE, self.shoe),
            (hardware.EXIT_TRAY, self.exit_tray),
        ):
            self._set(sensor, 1 if cards else 0)

    def _set(self, sensor: int, level: int) -> None:
        if sensor in SENSOR_NAMES and level:
            source = "shoe" if sensor == hardware.EXIT else "tray"
            if self.faults.strikes("dead_sensor", SENSOR_NAMES[sensor], self._drawn[source]):
                self._dead.add(sensor)
        if self._levels[sensor] != level and sensor not in self._dead:
            self._levels[sensor] = level
            self.on_edge(sensor, level, self.agenda.now_us)
