"""The mechanism by itself, driven by orders as the firmware would give them: each thing really happens.

Every fault kind is shown at every place it can happen at: the edges seen, and where the cards are.
"""

from collections.abc import Callable, Iterator
from random import Random

import pytest

from sabot_firmware import hardware, machine_constants
from sabot_firmware.hardware import (
    BACK,
    BLUE,
    CHAMBER,
    COVER,
    DEAL,
    ELEVATOR,
    ELEVATOR_HOME,
    ENTRY,
    EXIT,
    EXIT_TRAY,
    FEED,
    FORWARD,
    GRIPPER,
    HEIGHT,
    INSERT,
    INSERTION,
    NO_FACE,
    PUSHER_END,
    PUSHER_HOME,
    RED,
    SHELF,
    SHOE,
    SHOE_DOOR,
    SHUFFLER_DOOR,
    STOP,
    STORE,
    TRAY,
)
from sabot_protocol import ticks
from sabot_simulators.chips import PowerCut
from sabot_simulators.mechanism.faults import KINDS, PlannedFault, UnknownFault
from sabot_simulators.mechanism.physical_cards import PhysicalCard, cover_card, new_deck
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine

MS = 1_000
SECOND = 1_000_000
SENSOR_IDS = {
    "entry": ENTRY,
    "insertion": INSERTION,
    "exit": EXIT,
    "tray": TRAY,
    "chamber": CHAMBER,
    "store": STORE,
    "shoe": SHOE,
    "exit_tray": EXIT_TRAY,
}


class Rig:
    """A machine, the edges it has reported, and the simplest way to drive it."""

    def __init__(self, *faults: str, seed: int = 1, capacity: str = "deck", reader: bool = True) -> None:
        self.random = Random(seed)
        planned = tuple(PlannedFault.parse(each) for each in faults)
        self.machine = SimulatedMachine(self.random, planned, capacity, reader)
        self.edges: list[tuple[int, int, int]] = []
        self.machine.on_edge = lambda sensor, level, at_us: self.edges.append((sensor, level, at_us))

    @property
    def now_us(self) -> int:
        return self.machine.agenda.now_us

    def wait(self, us: int) -> None:
        self.machine.agenda.advance(self.now_us + us)

    def until(self, sensor: int, level: int, within_us: int = SECOND) -> bool:
        """Whether a sensor has this level, now or within a time."""
        end_us = self.now_us + within_us
        while self.machine.level(sensor) != level:
            next_us = self.machine.agenda.next_us()
            if next_us is None or next_us > end_us:
                self.machine.agenda.advance(end_us)
                return False
            self.machine.agenda.advance(next_us)
        return True

    def seen(self, sensor: int) -> list[int]:
        """The levels a sensor has gone to."""
        return [level for each, level, _ in self.edges if each == sensor]

    def shadows(self, sensor: int) -> list[int]:
        """How long the sensor was covered each time, in microseconds."""
        found, began = [], None
        for each, level, at_us in self.edges:
            if each == sensor:
                if level:
                    began = at_us
                elif began is not None:
                    found.append(at_us - began)
        return found

    def happened(self) -> list[str]:
        return [f"{each.kind}@{each.place}" for each in self.machine.faults.happened]

    # -- a shuffler and a shoe in a few lines ----------------------------------------------------

    def load(self, cards: int = 3, back: int = RED) -> list[PhysicalCard]:
        deck = new_deck(back, self.random, cards)
        self.machine.load(list(deck))
        return deck

    def stage(self) -> bool:
        """Bring the next card to the insertion sensor."""
        self.machine.run(FEED, FORWARD)
        came = self.until(INSERTION, 1, 300 * MS)
        self.machine.run(FEED, STOP)
        return came

    def seat(self, below_um: int) -> int:
        blade_um = (
            machine_constants.BLADE_UM if self.machine.capacity < 100 else machine_constants.BLADE_BATCH_UM
        )
        return blade_um - below_um

    def open(self, below: int) -> bool:
        """Grip all but so many cards of the stack, and lower those."""
        machine = self.machine
        stack = machine.stack()
        seat_um = self.seat(sum(card.thickness_um for card in stack[len(stack) - below :]))
        machine.elevate(seat_um)
        self.until(ELEVATOR, 1)
        machine.grip(True)
        closed = self.until(GRIPPER, 1, 30 * MS)
        machine.elevate(seat_um - machine_constants.OPENING_UM)
        self.until(ELEVATOR, 1)
        return closed

    def let_in(self) -> None:
        self.machine.run(INSERT, FORWARD)
        self.machine.run(FEED, FORWARD)
        self.until(INSERTION, 0, 200 * MS)
        self.machine.run(FEED, STOP)
        self.wait(40 * MS)
        self.machine.run(INSERT, STOP)

    def close(self) -> None:
        self.machine.grip(False)
        self.until(GRIPPER, 0, 30 * MS)

    def shuffle(self, cards: int, below: Callable[[int], int] = lambda held: held) -> None:
        """Insert so many cards, each above as many as ``below`` says."""
        for _ in range(cards):
            assert self.stage()
            self.open(below(len(self.machine.stack())))
            self.let_in()
            self.close()

    def height(self) -> int:
        self.machine.measure()
        assert self.until(HEIGHT, 1)
        return self.machine.height_um()

    def shelve(self) -> bool:
        self.machine.shelve(True)
        down = self.until(SHELF, 1, 900 * MS)
        self.machine.shelve(False)
        return self.until(SHELF, 0, 900 * MS) and down

    def push(self) -> bool:
        self.machine.push(True)
        there = self.until(PUSHER_END, 1, 700 * MS)
        self.machine.push(False)
        return self.until(PUSHER_HOME, 1, 700 * MS) and there

    def deal(self, cards: int = 1) -> None:
        """Let so many cards go past the exit, if they come."""
        self.machine.run(DEAL, FORWARD)
        for _ in range(cards):
            self.until(EXIT, 1, 200 * MS)
            self.until(EXIT, 0, 200 * MS)
        self.machine.run(DEAL, STOP)
        self.wait(60 * MS)

    def stored(self, cards: int = 5) -> list[PhysicalCard]:
        """A stack in the store, come there as stacks do."""
        self.load(cards)
        self.shuffle(cards)
        assert self.shelve()
        return list(self.machine.store)

    def in_shoe(self, cards: int = 5) -> list[PhysicalCard]:
        """A stack laid into the shoe by hand."""
        deck = new_deck(RED, self.random, cards)
        self.machine.open_door(SHOE_DOOR)
        self.machine.load_shoe(list(deck))
        self.machine.close_door(SHOE_DOOR)
        return deck

    def whole(self, cards: int) -> None:
        """Every card is in one place, and there are so many."""
        held = [id(card) for zone in self.machine.truth().values() for card in zone]
        assert len(held) == len(set(held)) == cards

    def bring(self, source: str, cards: int = 5) -> list[PhysicalCard]:
        return self.load(cards) if source == "tray" else self.in_shoe(cards)

    def draw(self, source: str) -> None:
        """Draw cards from a source for half a second."""
        roller = FEED if source == "tray" else DEAL
        self.machine.run(roller, FORWARD)
        self.wait(500 * MS)
        self.machine.run(roller, STOP)


def one_card_us(machine: SimulatedMachine, roller: int) -> int:
    """How long a card takes to pass a point."""
    return machine_constants.CARD_LENGTH_UM * 1000 // machine._rollers[roller].speed_um_ms


# -- faults, each where it can happen ---------------------------------------------------------------

SHOWN: dict[tuple[str, str], Callable[[str], None]] = {}


def shows(kind: str, *places: str) -> Callable[[Callable[[str], None]], Callable[[str], None]]:
    """This shows a kind at these places, or at all of its places."""

    def keep(check: Callable[[str], None]) -> Callable[[str], None]:
        for place in places or KINDS[kind][1]:
            SHOWN[kind, place] = check
        return check

    return keep


def test_every_kind_is_shown_at_every_place() -> None:
    assert set(SHOWN) == {(kind, place) for kind, (_, places) in KINDS.items() for place in places}


@pytest.mark.parametrize(("kind", "place"), [(kind, place) for kind in KINDS for place in KINDS[kind][1]])
def test_a_fault_does_what_its_line_says(kind: str, place: str) -> None:
    SHOWN[kind, place](place)


@shows("misfeed")
def _(place: str) -> None:
    rig = Rig(f"misfeed@{place}:1")
    rig.bring(place)
    sensor, roller = (ENTRY, FEED) if place == "tray" else (EXIT, DEAL)
    came = []
    for _ in range(3):
        rig.machine.run(roller, FORWARD)
        came.append(rig.until(sensor, 1, 200 * MS))
        rig.machine.run(roller, STOP)
    assert came == [False, False, True]
    rig.whole(5)


@shows("double_feed")
def _(place: str) -> None:
    rig = Rig(f"double_feed@{place}:2")
    rig.bring(place)
    sensor, roller = (ENTRY, FEED) if place == "tray" else (EXIT, DEAL)
    rig.machine.run(INSERT, FORWARD)
    rig.draw(place)
    card_us = one_card_us(rig.machine, roller)
    first, second = rig.shadows(sensor)[:2]
    assert abs(first - card_us) < 7 * MS  # two rollers of unlike speed hold it
    assert second > card_us + 5 * MS
    rig.whole(5)


@shows("aligned_double")
def _(place: str) -> None:
    rig = Rig(f"aligned_double@{place}:1")
    deck = rig.bring(place)
    machine = rig.machine
    sensor, roller = (ENTRY, FEED) if place == "tray" else (EXIT, DEAL)
    machine.run(roller, FORWARD)
    assert rig.until(sensor, 1)
    track = machine.feed_track if place == "tray" else machine.deal_track
    assert track.bodies[0].cards == deck[:2]
    machine.run(INSERT, FORWARD)
    assert rig.until(sensor, 0)
    assert abs(rig.shadows(sensor)[0] - one_card_us(machine, roller)) < 7 * MS
    rig.whole(5)


@shows("slip")
def _(place: str) -> None:
    rig = Rig(f"slip@{place}:1")
    rig.bring(place)
    sensor, roller = (ENTRY, FEED) if place == "tray" else (EXIT, DEAL)
    rig.machine.run(roller, FORWARD)
    assert rig.until(sensor, 1)
    way_um = machine_constants.ENTRY_UM if place == "tray" else machine_constants.EXIT_UM
    half_speed_us = 2 * way_um * 1000 // rig.machine._rollers[roller].speed_um_ms
    assert abs(rig.now_us - half_speed_us) < 200


@shows("snag")
def _(place: str) -> None:
    rig = Rig(f"snag@{place}:1")
    deck = rig.load(1)
    machine = rig.machine
    rig.open(0)
    roller = FEED if place == "entry" else INSERT
    if place == "entry":
        assert not rig.stage()
        assert machine.level(ENTRY)
    else:
        assert rig.stage()
        machine.run(INSERT, FORWARD)
        machine.run(FEED, FORWARD)
        rig.wait(300 * MS)
    assert machine.stack() == []
    assert machine.level(INSERTION) == (place == "insertion")
    machine.run(roller, STOP)
    machine.run(roller, FORWARD)
    rig.wait(300 * MS)
    assert machine.stack() == []  # starting anew is not enough
    machine.run(roller, BACK)
    rig.wait(10 * MS)
    machine.run(roller, FORWARD)
    if place == "entry":
        assert rig.until(INSERTION, 1, 100 * MS)
        machine.run(INSERT, FORWARD)
    rig.wait(300 * MS)
    assert machine.stack() == deck
    rig.whole(1)


@shows("stuck")
def _(place: str) -> None:
    rig = Rig(f"stuck@{place}:1")
    machine = rig.machine
    if place in ("deal", "exit"):
        deck, track, rollers, stays = rig.in_shoe(), machine.deal_track, [DEAL], "shoe"
    else:
        deck, track, rollers, stays = rig.load(5), machine.feed_track, [FEED, INSERT], "path"
        rig.open(0)
    for direction in (FORWARD, BACK, FORWARD):
        for roller in rollers:
            machine.run(roller, direction)
        rig.wait(90 * MS)
        if direction == FORWARD:
            rig.wait(300 * MS)
    assert machine.truth()[stays][0] is deck[0]
    assert track.bodies[0].speed_um_ms == 0
    levels = {"entry": (1, 0), "insertion": (1, 1), "chamber": (0, 0), "deal": (0,), "exit": (1,)}[place]
    where = (EXIT,) if stays == "shoe" else (ENTRY, INSERTION)
    covered = [track.at(sensor) is track.bodies[0] for sensor in where]
    if place == "insertion":
        covered[0] = True  # its end still lies in the entry
    assert covered == [bool(each) for each in levels]
    rig.whole(5)


@shows("bent_card")
def _(place: str) -> None:
    snagged = 0
    for seed in range(12):
        rig = Rig(f"bent_card@{place}:2", seed=seed)
        deck = rig.bring(place)
        assert [card.bent for card in deck] == [False, True, False, False, False]
        assert 350 < deck[1].thickness_um <= 620
        if place == "shoe":
            rig.deal(2)
            snagged += rig.machine.exit_tray != deck[:2]
            continue
        rig.shuffle(1)
        before = rig.height()
        rig.stage()
        rig.open(1)
        rig.let_in()
        if rig.machine.feed_track.cards()[:1] == deck[1:2]:
            snagged += 1
            continue
        rig.close()
        assert 350 < rig.height() - before <= 700
    assert 0 < snagged < 12


def zone_rig(kind: str, place: str) -> tuple[Rig, list[PhysicalCard], list[PhysicalCard]]:
    """A stack of five at a place, its second card concerned: the rig, before, and after."""
    rig = Rig(f"{kind}@{place}:2")
    if place == "store":
        before = rig.load()
        before += rig.load(2)
        rig.shuffle(5)
        rig.shelve()
        before.reverse()
        return rig, before, rig.machine.store
    before = rig.bring(place)
    return rig, before, rig.machine.tray if place == "tray" else rig.machine.shoe


@shows("missing_card")
def _(place: str) -> None:
    rig, before, after = zone_rig("missing_card", place)
    assert after == before[:1] + before[2:]
    assert rig.machine.removed == before[1:2]
    rig.whole(5)


@shows("extra_card")
def _(place: str) -> None:
    rig, before, after = zone_rig("extra_card", place)
    assert after[:1] + after[2:] == before
    assert after[1] not in before
    assert after[1].back == RED
    rig.whole(6)


@shows("other_deck_card")
def _(place: str) -> None:
    rig, before, after = zone_rig("other_deck_card", place)
    assert after[:1] + after[2:] == before[:1] + before[2:]
    assert [card.back for card in after] == [RED, BLUE, RED, RED, RED]
    assert rig.machine.removed == before[1:2]
    rig.whole(6)


@shows("face_up_card")
def _(place: str) -> None:
    rig, before, after = zone_rig("face_up_card", place)
    assert after == before
    assert [card.face_up for card in after] == [False, True, False, False, False]
    rig.whole(5)


@shows("cover_card")
def _(place: str) -> None:
    rig, before, after = zone_rig("cover_card", place)
    assert after[:1] + after[2:] == before
    assert after[1].colour == COVER
    rig.whole(6)


@shows("duplicate_card")
def _(place: str) -> None:
    rig, before, after = zone_rig("duplicate_card", place)
    assert after[:2] + after[3:] == before
    assert (after[2].number, after[2].back) == (after[1].number, after[1].back)
    rig.whole(6)


@shows("dirty_sensor")
def _(place: str) -> None:
    rig = Rig(f"dirty_sensor@{place}:1")
    sensor = SENSOR_IDS[place]
    if place == "exit":
        rig.in_shoe(1)
        rig.deal()
        track = rig.machine.deal_track
    else:
        rig.load(1)
        rig.open(0)
        rig.stage()
        rig.let_in()
        track = rig.machine.feed_track
    assert track.bodies == []
    rig.wait(100 * MS)
    assert rig.seen(sensor) == [1, 0, 1, 0]
    assert rig.shadows(sensor)[1] == 60 * MS


@shows("dead_sensor")
def _(place: str) -> None:
    rig = Rig(f"dead_sensor@{place}:1")
    sensor, machine = SENSOR_IDS[place], rig.machine
    if place in ("entry", "insertion", "chamber", "tray", "store"):
        deck = rig.load(2)
        for _ in range(2):  # blindly
            rig.machine.run(FEED, FORWARD)
            rig.wait(81 * MS)
            rig.machine.run(FEED, STOP)
            rig.open(0)
            machine.run(FEED, FORWARD)
            machine.run(INSERT, FORWARD)
            rig.wait(90 * MS)
            machine.run(FEED, STOP)
            rig.wait(60 * MS)
            machine.run(INSERT, STOP)
            rig.close()
        machine.shelve(True)
        rig.wait(SECOND)
        assert machine.level(SHELF)
        assert sorted(map(id, machine.store + machine.stack())) == sorted(map(id, deck))
    else:
        rig.in_shoe()
        machine.run(DEAL, FORWARD)
        rig.wait(400 * MS)
        assert len(machine.exit_tray) > 1
    assert rig.seen(sensor) == []
    assert machine.level(sensor) == 0
    machine.repair()
    machine.presence()
    if place in ("store", "shoe", "exit_tray"):
        assert rig.seen(sensor) == [1]


@shows("chattering_sensor")
def _(place: str) -> None:
    rig = Rig(f"chattering_sensor@{place}")
    sensor, machine = SENSOR_IDS[place], rig.machine
    if place in ("exit", "shoe", "exit_tray"):
        rig.in_shoe(1)
        rig.wait(2 * MS)
        machine.run(DEAL, FORWARD)
        rig.wait(300 * MS)
        machine.take_exit()
    else:
        rig.load(1)
        rig.open(0)
        machine.run(FEED, FORWARD)
        rig.wait(81 * MS)
        machine.run(INSERT, FORWARD)
        rig.wait(150 * MS)
        machine.run(INSERT, STOP)
        rig.close()
        machine.shelve(True)
        rig.wait(900 * MS)
        machine.shelve(False)
        rig.wait(900 * MS)
        machine.push(True)
    rig.wait(SECOND)
    times = [at_us for each, _, at_us in rig.edges if each == sensor]
    levels = rig.seen(sensor)
    bursts = [[times[0]]]
    for at_us in times[1:]:
        if at_us - bursts[-1][0] > MS:
            bursts.append([])
        bursts[-1].append(at_us)
    assert len(bursts) == 2  # it came and it went
    assert all(len(burst) in (3, 5, 7) for burst in bursts)
    assert levels == [1, 0] * (len(bursts[0]) // 2) + [1] + [0, 1] * (len(bursts[1]) // 2) + [0]
    machine.repair()
    assert machine.level(sensor) == 0


@shows("missed_switch", "elevator")
def _(place: str) -> None:
    rig = Rig("missed_switch@elevator")
    rig.machine.elevate(10_000)
    assert rig.until(ELEVATOR, 1)
    rig.machine.home()
    assert not rig.until(ELEVATOR_HOME, 1)
    assert rig.machine.elevator.platform_um == 0
    assert not rig.machine.level(ELEVATOR)
    rig.machine.repair()
    assert rig.machine.level(ELEVATOR_HOME)


@shows("missed_switch", "gripper")
def _(place: str) -> None:
    rig = Rig("missed_switch@gripper:1")
    rig.load(1)
    assert not rig.open(0)
    assert rig.machine.elevator.closed  # it has closed all the same
    rig.machine.repair()
    assert rig.machine.level(GRIPPER)


@shows("missed_switch", "shelf")
def _(place: str) -> None:
    rig = Rig("missed_switch@shelf:1")
    rig.load(2)
    rig.shuffle(2)
    assert not rig.shelve()
    assert len(rig.machine.store) == 2


@shows("missed_switch", "pusher")
def _(place: str) -> None:
    rig = Rig("missed_switch@pusher:1")
    rig.stored(2)
    rig.machine.push(True)
    assert not rig.until(PUSHER_END, 1)
    assert len(rig.machine.shoe) == 2
    assert not rig.machine.level(PUSHER_HOME)


@shows("lost_steps")
def _(place: str) -> None:
    rig = Rig("lost_steps@chamber:2")
    rig.load(3)
    rig.shuffle(1)
    assert rig.machine.elevator.platform_um == rig.seat(0) - machine_constants.OPENING_UM
    rig.machine.elevate(10_000)
    rig.until(ELEVATOR, 1)
    assert rig.machine.elevator.platform_um == 9_700
    rig.machine.elevate(12_000)
    rig.until(ELEVATOR, 1)
    assert rig.machine.elevator.platform_um == 11_700  # it stays so much lower
    rig.machine.home()
    assert rig.until(ELEVATOR_HOME, 1)
    rig.machine.elevate(10_000)
    rig.until(ELEVATOR, 1)
    assert rig.machine.elevator.platform_um == 10_000


@shows("grip_slip")
def _(place: str) -> None:
    taken = set()
    for seed in range(10):
        rig = Rig("grip_slip@chamber:7", seed=seed)
        rig.load(8)
        rig.shuffle(6)
        rig.open(3)
        taken.add(len(rig.machine.elevator.upper()))
        rig.whole(8)
    assert taken == {2, 4}


@shows("motor_stall")
def _(place: str) -> None:
    rig = Rig(f"motor_stall@{place}:1")
    roller = {"feed": FEED, "insert": INSERT, "deal": DEAL}[place]
    stall = {"feed": hardware.FEED_STALL, "insert": hardware.INSERT_STALL, "deal": hardware.DEAL_STALL}[place]
    rig.load()
    rig.in_shoe()
    machine = rig.machine
    machine.run(roller, FORWARD)
    assert rig.until(stall, 1, 200 * MS)
    stood_us = rig.now_us
    before_um = machine.travelled_um(roller)
    rig.wait(100 * MS)
    assert machine.travelled_um(roller) == before_um
    if place == "insert":
        assert (before_um, stood_us) == (0, 20 * MS)
    machine.run(roller, STOP)
    assert not machine.level(stall)
    machine.run(roller, BACK)
    assert not rig.until(stall, 1, 19 * MS)
    assert rig.until(stall, 1, 2 * MS)
    machine.repair()
    assert not machine.level(stall)
    rig.wait(10 * MS)
    assert ticks.diff(machine.travelled_um(roller), before_um) < 0
    rig.whole(8)


@shows("door_opened")
def _(place: str) -> None:
    door, roller = (SHUFFLER_DOOR, FEED) if place == "shuffler" else (SHOE_DOOR, DEAL)
    rig = Rig(f"door_opened@{place}:2")
    rig.load()
    rig.in_shoe()
    machine = rig.machine
    machine.run(roller, FORWARD)
    machine.run(INSERT, FORWARD)
    assert rig.until(door, 0, SECOND)
    assert machine.faults.cards["tray" if place == "shuffler" else "shoe"] == 2
    before_um = machine.travelled_um(roller)
    machine.run(roller, FORWARD)
    rig.wait(SECOND)
    assert machine.travelled_um(roller) == before_um
    assert not machine.level(door)


@shows("stack_not_taken")
def _(place: str) -> None:
    rig = Rig("stack_not_taken@exit_tray:2")
    deck = rig.in_shoe()
    rig.deal(1)
    assert rig.machine.take_exit() == deck[:1]
    rig.deal(2)
    assert rig.machine.take_exit() == []
    assert rig.machine.level(EXIT_TRAY)
    assert rig.machine.take_exit() == deck[1:3]


@shows("stack_taken_early")
def _(place: str) -> None:
    rig = Rig("stack_taken_early@exit_tray:2")
    deck = rig.in_shoe()
    rig.deal(3)
    assert rig.machine.handed_out == deck[:2]
    assert rig.machine.exit_tray == deck[2:3]
    assert rig.seen(EXIT_TRAY) == [1, 0, 1]


@shows("hand_in_exit")
def _(place: str) -> None:
    rig = Rig("hand_in_exit@exit_tray:4")
    deck = rig.in_shoe()
    rig.deal(3)
    rig.machine.take_exit()
    rig.deal(1)
    assert rig.machine.exit_tray == deck[3:4] + deck[:3]  # what was taken last is back
    rig.machine.take_exit()
    rig.machine.strike("hand_in_exit")
    assert rig.seen(EXIT_TRAY) == [1, 0, 1, 0, 1]
    rig.whole(5)


@shows("over_temperature")
def _(place: str) -> None:
    rig = Rig("over_temperature+2")
    rig.wait(2 * SECOND)
    assert rig.edges == [(hardware.HOT, 1, 2 * SECOND)]
    rig.wait(60 * SECOND)
    assert rig.seen(hardware.HOT) == [1, 0]


@shows("brown_out")
def _(place: str) -> None:
    rig = Rig("brown_out+2")
    rig.wait(3 * SECOND)
    low = hardware.SUPPLY_LOW
    assert rig.edges == [(low, 1, 2 * SECOND), (low, 0, 2 * SECOND + 200 * MS)]


@shows("stuck_noise")
def _(place: str) -> None:
    rig = Rig("stuck_noise+2")
    before = rig.machine.noise(64)
    assert before == Rig().machine.noise(64)  # from the seed
    assert len(set(before)) > 16
    rig.wait(3 * SECOND)
    assert rig.machine.noise(64) in (bytes(64), b"\xff" * 64)
    rig.machine.repair()
    assert len(set(rig.machine.noise(64))) > 16


@shows("power_cut")
def _(place: str) -> None:
    rig = Rig("power_cut:2")
    rig.load()
    rig.machine.run(FEED, FORWARD)
    rig.machine.run(INSERT, FORWARD)
    with pytest.raises(PowerCut):
        rig.wait(SECOND)
    assert not rig.machine.powered
    assert rig.machine.faults.cards["tray"] == 2
    told = []
    rig.machine.power_on()
    rig.machine.on_power_cut = lambda: told.append(rig.machine.powered)
    rig.machine.strike("power_cut")
    assert told == [False]


@shows("torn_record")
@shows("corrupted_record")
@shows("wrong_clock")
@shows("unknown_clock")
def _(place: str) -> None:
    kinds = ["torn_record", "corrupted_record", "wrong_clock", "unknown_clock"]
    rig = Rig("torn_record", "corrupted_record:2", "wrong_clock+3", "unknown_clock~1")
    told: list[str] = []
    rig.machine.on_fault = lambda fault: told.append(fault.kind)
    rig.load(2)
    rig.machine.run(INSERT, FORWARD)
    rig.machine.run(FEED, FORWARD)
    rig.wait(4 * SECOND)
    assert sorted(told) == sorted([*kinds, "unknown_clock"])  # by chance: with each of two cards
    rig.whole(2)


# -- how faults are written and struck -------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["slip@shoe", "stuck@exit:9", "misfeed@tray~0.01", "misfeed@tray~1e-05", "door_opened@shoe+12.5"]
    + ["power_cut@controller+3", "motor_stall@deal~1"],
)
def test_a_fault_is_written_as_it_is_read(text: str) -> None:
    assert str(PlannedFault.parse(text)) == text


def test_without_a_place_the_first_is_meant() -> None:
    assert PlannedFault.parse("slip:3") == PlannedFault("slip", "tray", 3)
    assert PlannedFault.parse("power_cut+3") == PlannedFault("power_cut", "controller", seconds=3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no fault is called"),
        ("jam", r"no fault is called 'jam'\. Faults and their places:\n  aligned_double@tray"),
        ("stall@feed", "no fault is called"),
        ("stuck@moon", "cannot happen at 'moon', only at entry"),
        ("stuck@", "cannot happen at ''"),
        ("slip:0", "counted from 1"),
        ("slip:x", "not the number"),
        ("slip:", "not the number"),
        ("slip~0", "not a probability"),
        ("slip~1.5", "not a probability"),
        ("slip~nan", "not a probability"),
        ("slip+-1", "not a time"),
        ("slip+soon", "not a time"),
        ("slip+inf", "not a time"),
        ("slip:3~0.5", "not the number"),
        ("slip@tray@shoe", "is not written as"),
    ],
)
def test_a_fault_nobody_knows_is_refused_with_what_there_is(text: str, words: str) -> None:
    with pytest.raises(UnknownFault, match=words):
        PlannedFault.parse(text)


def test_a_fault_by_chance_happens_about_so_often_and_again_and_again() -> None:
    rig = Rig("slip@shoe~0.25", capacity="batch")
    rig.in_shoe(400)
    rig.machine.run(DEAL, FORWARD)
    rig.wait(100 * SECOND)
    assert len(rig.machine.exit_tray) == 400
    assert 70 < len(rig.machine.faults.happened) < 130


def test_a_fault_from_a_time_on_happens_at_the_next_occasion() -> None:
    rig = Rig("aligned_double@shoe+1")
    deck = rig.in_shoe()
    rig.deal(1)
    assert rig.machine.exit_tray == deck[:1]
    rig.wait(SECOND)
    assert rig.happened() == []
    rig.deal(1)  # this one had been drawn before
    assert rig.machine.exit_tray == deck[:2]
    assert rig.happened() == ["aligned_double@shoe"]
    rig.deal(1)
    assert rig.machine.exit_tray == deck[:4]
    assert rig.machine.faults.happened[0].at_us >= SECOND


def test_what_needs_no_occasion_strikes_at_once() -> None:
    rig = Rig()
    rig.load()
    rig.in_shoe()
    machine = rig.machine
    machine.run(DEAL, FORWARD)
    rig.wait(5 * MS)
    for text, sensor, level in (
        ("dirty_sensor@exit", EXIT, 1),
        ("over_temperature", hardware.HOT, 1),
        ("brown_out", hardware.SUPPLY_LOW, 1),
        ("hand_in_exit", EXIT_TRAY, 1),
        ("stack_taken_early", EXIT_TRAY, 0),
        ("door_opened@shuffler", SHUFFLER_DOOR, 0),
    ):
        machine.strike(text)
        assert rig.edges[-1] == (sensor, level, rig.now_us), text
        assert str(machine.faults.happened[-1].fault).startswith(text)
        assert machine.faults.happened[-1].at_us == rig.now_us
    machine.strike("motor_stall@deal")
    before_um = machine.travelled_um(DEAL)
    assert rig.until(hardware.DEAL_STALL, 1, 20 * MS)
    assert machine.travelled_um(DEAL) == before_um
    machine.strike("dead_sensor@tray")
    machine.take_tray()
    assert machine.level(TRAY) == 1


def test_an_unseen_hand_strikes_at_once_where_cards_are_and_else_when_they_come() -> None:
    rig = Rig()
    rig.machine.strike("missing_card@shoe")
    assert rig.happened() == []
    deck = rig.in_shoe()
    assert len(rig.machine.shoe) == 4
    for place in (4, 2, 4, 2, 4):
        rig.machine.strike(f"face_up_card@shoe:{place}")
    assert [card.face_up for card in rig.machine.shoe] == [False, True, False, True]
    rig.machine.strike("missing_card@shoe~1")  # with every stack that comes
    assert set(deck) - set(rig.machine.shoe) == set(rig.machine.removed)
    rig.in_shoe()
    assert len(rig.machine.shoe) == 8
    rig.whole(10)


def test_a_change_while_a_sensor_still_bounces_is_not_lost() -> None:
    for seed in range(20):
        rig = Rig(seed=seed)
        card = new_deck(RED, rig.random, 1)
        rig.machine.strike("chattering_sensor@exit_tray")
        for _ in range(5):
            rig.machine.put_into_exit(card)
            rig.wait(rig.random.randrange(MS))
            rig.machine.take_exit()
            rig.wait(rig.random.randrange(MS))
        rig.machine.put_into_exit(card)
        rig.wait(MS)
        assert rig.machine.level(EXIT_TRAY) == 1
        assert rig.seen(EXIT_TRAY)[-1] == 1


def test_missing_and_extra_together_keep_the_number() -> None:
    for other in ("extra_card", "duplicate_card"):
        rig = Rig("missing_card@tray:10", f"{other}@tray:30")
        deck = rig.load(52)
        assert len(rig.machine.tray) == 52
        assert len(set(deck) - set(rig.machine.tray)) == 1
        rig.whole(53)


def test_several_faults_combine() -> None:
    rig = Rig("double_feed@shoe:1", "slip@shoe:1", "stuck@exit:1", "dead_sensor@exit_tray+0")
    rig.in_shoe()
    rig.machine.run(DEAL, FORWARD)
    rig.wait(SECOND)
    (body,) = rig.machine.deal_track.bodies
    assert (len(body.cards), body.drag_percent, body.speed_um_ms) == (2, 50, 0)
    assert sorted(rig.happened()) == ["dead_sensor@exit_tray", "double_feed@shoe", "slip@shoe", "stuck@exit"]


# -- orders ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("from_um", [0, 4_000, 25_000])
def test_homing_takes_its_time_and_ends_at_the_switch(from_um: int) -> None:
    rig = Rig()
    rig.machine.elevate(from_um)
    rig.until(ELEVATOR, 1)
    rig.edges.clear()
    began_us = rig.now_us
    rig.machine.home()
    assert not rig.machine.level(ELEVATOR)
    assert rig.until(ELEVATOR, 1)
    assert rig.now_us - began_us == machine_constants.travel_us(from_um)
    assert rig.machine.level(ELEVATOR_HOME)
    assert rig.seen(ELEVATOR_HOME) == ([1] if from_um else [])


def test_the_platform_goes_no_further_than_it_can() -> None:
    for capacity, most_um in (("deck", 25_000), ("batch", 140_000)):
        rig = Rig(capacity=capacity)
        rig.machine.elevate(200_000)
        rig.until(ELEVATOR, 1)
        assert rig.machine.elevator.platform_um == most_um
        rig.machine.elevate(-1_000)
        rig.until(ELEVATOR, 1)
        assert rig.machine.elevator.platform_um == 0


def test_a_face_is_read_while_its_card_is_at_the_exit() -> None:
    rig = Rig()
    deck = rig.in_shoe(3)
    deck[1].face_up = True
    rig.machine.shoe[2] = cover_card(rig.random)
    rig.machine.run(DEAL, FORWARD)
    faces = []
    for _ in range(3):
        assert rig.machine.face() == NO_FACE
        assert rig.until(EXIT, 1)
        faces.append(rig.machine.face())
        assert rig.until(EXIT, 0)
    assert faces == [deck[0].number, NO_FACE, NO_FACE]
    blind = Rig(reader=False)
    blind.in_shoe(1)
    blind.machine.run(DEAL, FORWARD)
    assert blind.until(EXIT, 1)
    assert blind.machine.face() == NO_FACE


def test_an_order_at_the_very_moment_of_an_edge_does_not_lose_it() -> None:
    first = Rig()
    first.in_shoe()
    first.machine.run(DEAL, FORWARD)
    first.until(EXIT, 1)

    def stop_and_go(_: None) -> None:
        rig.machine.run(DEAL, STOP)
        rig.machine.run(DEAL, FORWARD)

    rig = Rig()
    rig.in_shoe()
    rig.machine.agenda.at(first.now_us, stop_and_go, None)
    rig.machine.run(DEAL, FORWARD)
    assert rig.until(EXIT, 1, first.now_us + 2)
    assert rig.until(EXIT, 0, 100 * MS)


def test_a_card_that_is_backed_up_goes_no_further_than_the_tray() -> None:
    rig = Rig()
    deck = rig.load(2)
    assert rig.stage()
    rig.machine.run(FEED, BACK)
    rig.wait(SECOND)
    (body,) = rig.machine.feed_track.bodies
    assert (body.lead_now(rig.now_us), body.speed_um_ms) == (0, 0)
    assert rig.seen(ENTRY) == rig.seen(INSERTION) == [1, 0]
    assert rig.stage()
    assert rig.machine.feed_track.cards() == deck[:1]


def test_display_lamp_and_buttons() -> None:
    rig = Rig()
    rig.machine.show("one", "two")
    rig.machine.light(hardware.AMBER)
    assert (rig.machine.display, rig.machine.lamp) == (("one", "two"), hardware.AMBER)
    rig.machine.press(hardware.LEFT_BUTTON)
    rig.machine.release(hardware.LEFT_BUTTON)
    assert rig.seen(hardware.LEFT_BUTTON) == [1, 0]


@pytest.mark.parametrize(("capacity", "cards"), [("deck", 52), ("batch", 60)])
def test_a_stack_is_built_as_ordered(capacity: str, cards: int) -> None:
    rig = Rig(capacity=capacity)
    deck = rig.load(cards)
    slots = Random(3)
    order: list[PhysicalCard] = []

    def below(held: int) -> int:
        above = slots.randrange(held + 1)
        order.insert(above, deck[held])
        return held - above

    rig.shuffle(cards, below)
    assert rig.machine.stack() == order
    assert abs(rig.height() - sum(card.thickness_um for card in deck)) <= 50
    assert rig.shelve()
    assert rig.push()
    assert rig.machine.shoe == order


def test_while_a_packet_is_held_up_only_the_lower_one_is_measured() -> None:
    rig = Rig()
    rig.load(10)
    rig.shuffle(10)
    rig.open(4)
    lower = sum(card.thickness_um for card in rig.machine.chamber)
    assert len(rig.machine.chamber) == 4
    assert abs(rig.height() - lower) <= 50


def test_a_card_that_meets_no_opening_lies_across_and_so_does_the_next() -> None:
    rig = Rig()
    deck = rig.load(3)
    rig.stage()
    rig.machine.elevate(machine_constants.BLADE_UM)
    rig.until(ELEVATOR, 1)
    rig.let_in()
    assert rig.machine.crashed == deck[:1]
    rig.stage()
    rig.open(0)
    rig.let_in()
    assert rig.machine.crashed == deck[:2]
    assert rig.machine.truth()["path"][-2:] == deck[:2]
    rig.whole(3)


@pytest.mark.parametrize(("capacity", "room"), [("deck", 53), ("batch", 418)])
def test_a_hand_keeps_what_finds_no_room(capacity: str, room: int) -> None:
    for zone in ("tray", "shoe", "exit_tray"):
        rig = Rig(capacity=capacity)
        machine = rig.machine
        deck = new_deck(RED, rig.random, room + 2)
        if zone == "tray":
            machine.load(deck)
        elif zone == "shoe":
            machine.open_door(SHOE_DOOR)
            machine.load_shoe(deck)
        else:
            machine.put_into_exit(deck)
        assert getattr(machine, zone) == deck[:room]
        assert machine.handed_out == deck[room:]
        rig.whole(room + 2)


def test_a_stack_that_comes_down_onto_a_full_shelf_crashes_and_is_not_lost() -> None:
    rig = Rig()
    machine = rig.machine
    deck = new_deck(RED, rig.random, 55)
    machine.load(deck[:3])
    rig.shuffle(3)
    machine.store = deck[3:]
    assert rig.shelve()
    assert len(machine.crashed) == 2
    rig.whole(55)


def test_the_pusher_stops_short_of_its_switch_if_the_shoe_has_no_room() -> None:
    rig = Rig()
    machine = rig.machine
    deck = new_deck(RED, rig.random, 54)
    machine.store, machine.shoe = deck[:2], deck[2:]
    assert not rig.push()
    assert (machine.store, machine.shoe) == (deck[:2], deck[2:])
    rig.whole(54)


def test_a_card_that_finds_the_exit_tray_full_stops_under_the_exit_sensor() -> None:
    rig = Rig()
    machine = rig.machine
    deck = rig.in_shoe(4)
    machine.put_into_exit(new_deck(BLUE, rig.random, 52))
    machine.run(DEAL, FORWARD)
    rig.wait(SECOND)
    assert machine.exit_tray[-1] is deck[0]
    assert machine.deal_track.cards() == deck[1:2]
    assert machine.level(EXIT)
    assert machine.shoe == deck[2:]
    machine.snatch_exit()
    rig.wait(SECOND)
    assert machine.level(EXIT)  # it does not come free by itself


def test_a_card_on_its_way_to_a_tray_that_a_hand_fills_stops_and_goes_on_if_it_is_emptied_in_time() -> None:
    rig = Rig()
    machine = rig.machine
    deck = rig.in_shoe(2)
    machine.run(DEAL, FORWARD)
    rig.wait(20 * MS)
    machine.put_into_exit(new_deck(BLUE, rig.random, 53))
    rig.wait(10 * MS)
    machine.snatch_exit()
    rig.wait(SECOND)
    assert machine.exit_tray == deck
    assert rig.seen(EXIT) == [1, 0, 1, 0]


def test_a_slow_card_stops_at_a_tray_that_a_hand_fills_just_before_it() -> None:
    rig = Rig("slip@shoe:1")
    machine = rig.machine
    deck = rig.in_shoe(1)
    machine.run(DEAL, FORWARD)
    rig.wait(86 * MS)
    assert machine.level(EXIT)
    machine.put_into_exit(new_deck(BLUE, rig.random, 53))
    rig.wait(20 * MS)
    assert machine.deal_track.bodies[0].speed_um_ms == 0
    rig.wait(SECOND)
    assert machine.deal_track.cards() == deck
    assert machine.level(EXIT)


def test_the_chamber_holds_no_more_than_it_can() -> None:
    rig = Rig()
    deck = rig.load(53)
    rig.shuffle(53)
    extra = rig.load(1)
    assert rig.stage()
    rig.open(0)
    rig.let_in()
    assert rig.machine.crashed == extra
    assert set(rig.machine.stack()) == set(deck)


# -- people, doors ---------------------------------------------------------------------------------


def test_cards_go_from_hand_to_hand_and_are_never_twice() -> None:
    rig = Rig()
    deck = rig.in_shoe()
    rig.deal(3)
    taken = rig.machine.take_exit()
    assert rig.machine.handed_out == taken == deck[:3]
    rig.machine.put_into_exit(taken[:1])
    rig.whole(5)
    rig.machine.take_exit()
    rig.machine.load(rig.machine.handed_out)
    assert rig.machine.level(TRAY)
    rig.whole(5)
    assert len(rig.machine.take_tray()) == 3
    assert not rig.machine.level(TRAY)
    rig.whole(5)


def test_cards_laid_into_the_tray_under_a_turning_roller_are_drawn() -> None:
    rig = Rig()
    rig.machine.run(FEED, FORWARD)
    rig.wait(SECOND)
    rig.load(1)
    assert rig.until(ENTRY, 1, 50 * MS)


def test_an_open_door_cuts_the_motors_of_its_half_only() -> None:
    for door, dead, alive in ((SHOE_DOOR, (DEAL,), (FEED, INSERT)), (SHUFFLER_DOOR, (FEED, INSERT), (DEAL,))):
        rig = Rig()
        for roller in (FEED, INSERT, DEAL):
            rig.machine.run(roller, FORWARD)
        rig.machine.open_door(door)
        assert [rig.machine._rollers[roller].direction for roller in dead] == [0] * len(dead)
        assert [rig.machine._rollers[roller].direction for roller in alive] == [1] * len(alive)
        rig.machine.close_door(door)
        assert [rig.machine._rollers[roller].direction for roller in dead] == [0] * len(dead)


def test_an_elevator_cut_in_its_move_stands_somewhere_until_it_is_homed() -> None:
    rig = Rig()
    rig.machine.elevate(20_000)
    rig.wait(machine_constants.travel_us(20_000) // 2)
    rig.machine.open_door(SHUFFLER_DOOR)
    assert not rig.until(ELEVATOR, 1)
    stands_um = rig.machine.elevator.platform_um
    assert 0 < stands_um < 20_000
    rig.machine.elevate(0)
    rig.machine.home()
    assert not rig.until(ELEVATOR, 1)
    assert rig.machine.elevator.platform_um == stands_um
    rig.machine.close_door(SHUFFLER_DOOR)
    assert not rig.until(ELEVATOR, 1)
    rig.machine.elevate(10_000)
    assert rig.until(ELEVATOR, 1)
    assert rig.machine.elevator.platform_um != 10_000
    rig.machine.home()
    assert rig.until(ELEVATOR_HOME, 1)
    rig.machine.elevate(10_000)
    assert rig.until(ELEVATOR, 1)
    assert rig.machine.elevator.platform_um == 10_000


def test_a_gripper_cut_in_its_move_stays_as_it_was() -> None:
    rig = Rig()
    rig.load(3)
    rig.shuffle(3)
    rig.machine.grip(True)
    rig.machine.open_door(SHUFFLER_DOOR)
    assert not rig.until(GRIPPER, 1)
    assert len(rig.machine.chamber) == 3
    rig.machine.close_door(SHUFFLER_DOOR)
    rig.open(1)
    rig.machine.grip(False)
    rig.machine.open_door(SHUFFLER_DOOR)
    assert not rig.until(GRIPPER, 0)
    assert len(rig.machine.chamber) == 1  # the blades still hold the others
    rig.machine.close_door(SHUFFLER_DOOR)
    rig.close()
    assert len(rig.machine.chamber) == 3


def test_a_shelf_cut_in_its_move_leaves_the_stack_in_the_chamber() -> None:
    rig = Rig()
    deck = rig.load(3)
    rig.shuffle(3)
    rig.machine.shelve(True)
    rig.wait(400 * MS)
    rig.machine.open_door(SHUFFLER_DOOR)
    assert not rig.until(SHELF, 1)
    assert set(rig.machine.stack()) == set(deck)
    rig.machine.close_door(SHUFFLER_DOOR)
    rig.machine.home()
    rig.until(ELEVATOR_HOME, 1)
    deck += rig.load(1)
    rig.shuffle(1)
    assert set(rig.machine.stack()) == set(deck)  # there it can still be added to
    rig.machine.shelve(True)
    assert rig.until(SHELF, 1)
    assert set(rig.machine.store) == set(deck)
    rig.machine.shelve(False)
    rig.wait(400 * MS)
    rig.machine.open_door(SHUFFLER_DOOR)
    rig.machine.close_door(SHUFFLER_DOOR)
    assert not rig.until(SHELF, 0)
    rig.machine.shelve(False)
    assert rig.until(SHELF, 0)


def test_a_pusher_cut_in_its_move_leaves_the_stack_in_the_store() -> None:
    rig = Rig()
    stack = rig.stored()
    rig.machine.push(True)
    rig.wait(300 * MS)
    rig.machine.open_door(SHUFFLER_DOOR)  # not its door
    rig.wait(100 * MS)
    rig.machine.open_door(SHOE_DOOR)
    assert not rig.until(PUSHER_END, 1)
    assert (rig.machine.store, rig.machine.shoe) == (stack, [])
    assert not rig.machine.level(PUSHER_HOME)
    rig.machine.push(False)
    assert not rig.until(PUSHER_HOME, 1)
    rig.machine.close_door(SHOE_DOOR)
    assert rig.push()
    assert (rig.machine.store, rig.machine.shoe) == ([], stack)


def test_a_stack_that_comes_down_on_the_pusher_crashes() -> None:
    rig = Rig()
    deck = rig.load(2)
    rig.shuffle(2)
    rig.machine.push(True)
    rig.machine.shelve(True)
    assert rig.until(SHELF, 1)
    assert set(rig.machine.crashed) == set(deck)
    assert rig.machine.store == []
    rig.whole(2)


def test_hands_reach_in_through_open_doors_only_and_take_everything() -> None:
    rig = Rig("stuck@insertion:4", "stuck@exit:2")
    rig.load(8)
    rig.shuffle(3)
    rig.stage()
    rig.machine.run(INSERT, FORWARD)
    rig.in_shoe()
    rig.machine.run(DEAL, FORWARD)
    rig.wait(SECOND)
    rig.machine.grip(True)
    rig.wait(SECOND)
    for door in (SHUFFLER_DOOR, SHOE_DOOR):
        with pytest.raises(AssertionError, match="closed"):
            rig.machine.empty_by_hand(door)
    with pytest.raises(AssertionError, match="closed"):
        rig.machine.load_shoe([])
    rig.machine.open_door(SHUFFLER_DOOR)
    rig.machine.open_door(SHOE_DOOR)
    assert len(rig.machine.empty_by_hand(SHUFFLER_DOOR)) == 4
    assert len(rig.machine.empty_by_hand(SHOE_DOOR)) == 5
    sensors = (ENTRY, INSERTION, EXIT, CHAMBER, STORE, SHOE, EXIT_TRAY, GRIPPER)
    assert [rig.machine.level(sensor) for sensor in sensors] == [0] * len(sensors)
    rig.whole(13)


# -- power -----------------------------------------------------------------------------------------


def test_a_power_cut_stops_everything_and_loses_no_card() -> None:
    rig = Rig()
    deck = rig.load(10)
    rig.shuffle(6)
    rig.stage()
    rig.open(3)
    machine = rig.machine
    machine.run(INSERT, FORWARD)
    machine.run(FEED, FORWARD)
    machine.elevate(machine_constants.BLADE_UM)
    machine.measure()
    rig.wait(20 * MS)
    machine.show("a", "b")
    machine.power_off()
    machine.power_off()  # off is off
    rig.edges.clear()
    before = machine.truth()
    assert len(before["chamber"]) == len(machine.chamber) == 6  # the packets have fallen together
    assert len(before["path"]) == 1
    machine.run(FEED, FORWARD)
    machine.elevate(0)
    machine.home()
    machine.grip(True)
    machine.shelve(True)
    machine.push(True)
    machine.measure()
    rig.wait(5 * SECOND)
    machine.open_door(SHUFFLER_DOOR)
    machine.close_door(SHUFFLER_DOOR)
    assert machine.truth() == before
    assert rig.edges == []
    assert machine.display == ("", "")
    machine.power_on()
    rig.wait(SECOND)
    assert rig.edges == []
    levels = {sensor: machine.level(sensor) for sensor in range(hardware.SENSORS)}
    on = {INSERTION, ENTRY, TRAY, CHAMBER, PUSHER_HOME, SHUFFLER_DOOR, SHOE_DOOR}
    assert {sensor for sensor, level in levels.items() if level} == on
    assert machine.travelled_um(INSERT) == 0
    machine.home()
    assert rig.until(ELEVATOR_HOME, 1)
    rig.open(3)
    rig.let_in()
    rig.close()
    assert set(machine.stack()) == set(deck[:7])
    assert machine.stack()[3] is deck[6]
    rig.whole(10)


def test_what_was_begun_before_a_power_cut_does_not_end_after_it() -> None:
    rig = Rig()
    rig.machine.elevate(10_000)
    rig.until(ELEVATOR, 1)
    rig.machine.measure()
    rig.machine.grip(True)
    rig.machine.push(True)
    rig.machine.power_off()
    rig.machine.open_door(SHOE_DOOR)
    rig.machine.close_door(SHOE_DOOR)
    rig.machine.run(DEAL, FORWARD)
    assert rig.machine._rollers[DEAL].direction == 0
    rig.machine.power_on()
    rig.edges.clear()
    rig.wait(SECOND)
    assert rig.edges == []
    assert not rig.machine.level(ELEVATOR)  # where it stands it was not sent
    assert rig.machine.elevator.platform_um == 10_000


def test_a_card_that_no_roller_holds_lands_without_power() -> None:
    rig = Rig()
    deck = rig.in_shoe()
    rig.machine.run(DEAL, FORWARD)
    rig.wait(110 * MS)
    rig.machine.power_off()
    rig.wait(SECOND)
    assert rig.machine.exit_tray == deck[:1]
    assert rig.machine.deal_track.cards() == deck[1:2]
    rig.machine.power_on()
    assert rig.machine.level(EXIT_TRAY) == 1
    rig.whole(5)


# -- the truth -------------------------------------------------------------------------------------


def test_a_zone_is_counted_by_backs_as_the_truth_has_it() -> None:
    rig = Rig("other_deck_card@tray:2", "stuck@insertion:4", "missing_card@shoe")
    rig.load(6)
    rig.shuffle(3)
    rig.stage()
    rig.machine.run(INSERT, FORWARD)
    rig.in_shoe()
    rig.deal(2)
    truth = rig.machine.truth()
    for zone, cards in truth.items():
        for back in (RED, BLUE):
            assert rig.machine.count(zone, back) == sum(card.back == back for card in cards), zone
        assert rig.machine.count(zone) == len(cards)
    assert rig.machine.count("chamber", BLUE) == 1


def test_the_same_seed_gives_the_same_edges() -> None:
    faults = ("slip@tray~0.2", "bent_card@tray", "chattering_sensor@entry:3", "door_opened@shoe+1")
    runs = []
    for _ in range(2):
        rig = Rig(*faults, seed=7)
        rig.load(20)
        rig.machine.run(INSERT, FORWARD)
        rig.machine.run(FEED, FORWARD)
        rig.wait(5 * SECOND)
        runs.append((rig.edges, rig.happened()))
    assert runs[0] == runs[1]


def every_fault() -> Iterator[str]:
    for kind, (_, places) in KINDS.items():
        for place in places:
            yield f"{kind}@{place}"


class Monkey(Rig):
    """Gives random orders, lends random hands, lets random faults strike."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed=seed, capacity=("deck", "batch")[seed % 2])
        self.machine.on_power_cut = lambda: None
        self.faults = list(every_fault())
        self.known: set[PhysicalCard] = set()

    def act(self) -> None:
        machine, random = self.machine, self.random
        door = random.choice((SHUFFLER_DOOR, SHOE_DOOR))
        yes = random.random() < 0.5
        orders: list[Callable[[], object]] = [
            lambda: machine.run(random.randrange(3), random.choice((BACK, STOP, FORWARD, FORWARD))),
            lambda: machine.elevate(random.randrange(25_000)),
            machine.home,
            machine.measure,
            lambda: machine.grip(yes),
            lambda: machine.shelve(yes),
            lambda: machine.push(yes),
            self.insert,
            self.insert,
            self.insert,
            self.shelve,
            self.push,
            lambda: self.deal(3),
            lambda: self.deal(3),
        ]
        people: list[Callable[[], object]] = [
            lambda: self.load(random.randrange(30)),
            lambda: machine.load(random.sample(machine.handed_out, len(machine.handed_out) // 2)),
            machine.take_exit,
            machine.take_tray,
            lambda: machine.put_into_exit(machine.handed_out[:2]),
            lambda: machine.open_door(door),
            lambda: machine.level(door) or machine.empty_by_hand(door),
            self.fill_shoe,
        ]
        what = random.choice((orders, orders, orders, orders, people, [self.misfortune], [self.order_again]))
        random.choice(what)()

    def insert(self) -> None:
        if self.stage():
            self.open(self.random.randrange(len(self.machine.chamber) + 1))
            self.let_in()
            self.close()

    def fill_shoe(self) -> None:
        self.machine.open_door(SHOE_DOOR)
        self.machine.load_shoe(self.machine.handed_out[:20])
        self.machine.close_door(SHOE_DOOR)

    def misfortune(self) -> None:
        if self.random.random() < 0.1:
            self.machine.power_off()
        else:
            self.machine.strike(self.random.choice(self.faults))

    def order_again(self) -> None:
        """Everything is as it should be, for a while."""
        machine = self.machine
        machine.power_on()
        for door, used in (
            (SHUFFLER_DOOR, machine.feed_track.bodies),
            (SHOE_DOOR, machine.deal_track.bodies),
        ):
            machine.open_door(door)
            if used or machine.crashed:
                machine.empty_by_hand(door)
            machine.close_door(door)
        machine.home()
        machine.push(False)
        machine.shelve(False)
        self.wait(SECOND)
        machine.take_exit()
        self.fill_shoe()
        machine.load(machine.handed_out[:30])

    def look(self) -> None:
        machine = self.machine
        held = [card for zone in machine.truth().values() for card in zone]
        assert len(held) == len(set(held))
        assert self.known <= set(held)
        self.known = set(held)
        machine.repair()  # so that no sensor lies about what it sees
        for sensor, there in (
            (TRAY, machine.tray),
            (CHAMBER, machine.stack()),
            (STORE, machine.store),
            (SHOE, machine.shoe),
            (EXIT_TRAY, machine.exit_tray),
            (ENTRY, machine.feed_track.at(ENTRY)),
            (INSERTION, machine.feed_track.at(INSERTION)),
            (EXIT, machine.deal_track.at(EXIT)),
        ):
            assert machine.level(sensor) == bool(there)


@pytest.mark.sweep(every=4)
@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_every_card_is_in_one_place(seed: int) -> None:
    monkey = Monkey(seed)
    for _ in range(1000):
        monkey.act()
        monkey.look()
        monkey.wait(monkey.random.choice((0, 100, 10 * MS, 300 * MS)))
        monkey.look()
    passed = monkey.machine.faults.cards
    assert min(passed["tray"], passed["chamber"], passed["shoe"], passed["exit_tray"]) > 20
    assert len(monkey.machine.faults.happened) > 50


def test_time_runs_to_what_can_be_noticed() -> None:
    rig = Rig()
    agenda = rig.machine.agenda
    assert not agenda.run(None)
    rig.in_shoe(2)
    rig.edges.clear()
    rig.machine.run(DEAL, FORWARD)
    rig.edges.clear()
    assert agenda.run(10 * MS)
    assert (agenda.now_us, rig.edges) == (10 * MS, [])
    stops = []
    while agenda.run(None):
        stops.append(agenda.now_us)
    assert sorted(set(stops)) == stops == sorted({at_us for _, _, at_us in rig.edges})
    assert rig.seen(EXIT) == [1, 0, 1, 0]
