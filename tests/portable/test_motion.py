"""Motions: woken by their edge, told when it is late, and no memory allocated from edge to order."""

from sabot_firmware import hardware as hw
from sabot_firmware import machine_constants, shoe, shuffler
from sabot_firmware.controller import Controller
from sabot_firmware.motion import Scheduler, Wait
from sabot_firmware.shuffler import Shuffler
from sabot_protocol import ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.executor import Caller
from sabot_protocol.record_store import RecordStore
from sabot_simulators.micropython_side.scripted_rng import ScriptedRng, ScriptedSlots

try:
    from micropython import heap_lock, heap_unlock
except ImportError:  # CPython has no heap to lock

    def heap_lock():
        """Nothing to lock."""

    def heap_unlock():
        """Nothing to unlock."""


def started(steps, wait, now=0):
    scheduler = Scheduler()
    motion = scheduler.start(steps, wait, now)
    return scheduler, motion


def test_an_edge_in_its_window_wakes_and_one_too_late_is_told():
    for late_by in (-1, 1):
        said = []
        wait = Wait()

        def steps(wait=wait, said=said):
            late = yield wait.edge(hw.ENTRY, 1, 1000)
            said.append((late, wait.at_us))

        scheduler, motion = started(steps(), wait, 500)
        assert scheduler.step(500) == 1000
        assert not scheduler.edge(hw.ENTRY, 0, 600, 600)
        assert not scheduler.edge(hw.EXIT, 1, 600, 600)
        now = 1500 + late_by
        if late_by < 0:
            assert scheduler.edge(hw.ENTRY, 1, now - 5, now)
            assert said == [(False, now - 5)]
        else:
            assert scheduler.step(now) is None
            assert said == [(True, now)]
        assert motion.done


def test_windows_reach_across_the_wrap_of_the_ticks():
    wait = Wait()

    def steps():
        yield wait.edge(hw.ENTRY, 1, 1000)

    start = ticks.MASK - 400
    scheduler, motion = started(steps(), wait, start)
    assert scheduler.step(ticks.add(start, 900)) == 100
    scheduler.step(ticks.add(start, 1000))
    assert motion.done


def test_one_motion_wakes_another():
    first, second = Wait(), Wait()
    order = []
    scheduler = Scheduler()

    def waits():
        yield second.signal()
        order.append("woken")

    def signals():
        yield first.time(10)
        order.append("signals")
        scheduler.signal()

    scheduler.start(waits(), second, 0)
    scheduler.start(signals(), first, 0)
    assert scheduler.step(5) == 5
    scheduler.step(10)
    assert order == ["signals", "woken"]


class Bench(hw.Hardware):
    """Takes orders and holds levels; allocates nothing itself."""

    def __init__(self):
        self.levels = bytearray(hw.SENSORS)
        self.levels[hw.TRAY] = 1
        self.directions = [0, 0, 0]
        self.sent_um = 0
        self.closed = 0
        self.measured = 0
        self.pushed = 0
        self.encoder_um = 0
        self.stack_um = 0

    def run(self, roller, direction):
        self.directions[roller] = direction

    def travelled_um(self, roller):
        return self.encoder_um

    def elevate(self, position_um):
        self.sent_um = position_um

    def grip(self, closed):
        self.closed = closed

    def measure(self):
        self.measured += 1

    def height_um(self):
        return self.stack_um

    def home(self):
        self.sent_um = 0

    def push(self, forward):
        self.pushed = forward

    def colour(self, sensor):
        return hw.RED

    def level(self, sensor):
        return self.levels[sensor]


def test_from_edge_to_order_nothing_is_allocated():
    bench = Bench()
    half = Shuffler(bench)
    half.state = shuffler.IDLE
    half.shuffle(1, hw.RED, 52, ScriptedSlots(lambda bound: 0), 1000)
    assert bench.directions[hw.FEED] == 1
    script = (
        (hw.ENTRY, 1, 32000),
        (hw.INSERTION, 1, 84000),  # the feed roller stops, the elevator is sent
        (hw.ELEVATOR, 1, 210000),  # the gripper closes
        (hw.GRIPPER, 1, 226000),  # the stack opens and the card is drawn in
        (hw.ELEVATOR, 1, 304000),  # the height is read
    )
    seen = []
    for sensor, level, at_us in script:
        bench.levels[sensor] = level
        heap_lock()
        try:
            half.edge(sensor, level, at_us, at_us + 20)
        finally:
            heap_unlock()
        seen.append((bench.directions[hw.FEED], bench.directions[hw.INSERT], bench.closed, bench.measured))
        if sensor == hw.ELEVATOR:
            bench.levels[sensor] = 0
    assert half.state == shuffler.FEEDING
    assert half.jam is None
    assert seen == [(1, 0, 0, 0), (0, 0, 0, 0), (0, 0, True, 0), (1, 1, True, 0), (1, 1, True, 1)]
    assert half.entered == 1


class Device:
    """A core on a bench; every edge and step is given with the heap locked, unless something is reported."""

    def __init__(self):
        self.bench = Bench()
        for switch in (hw.SHUFFLER_DOOR, hw.SHOE_DOOR, hw.ELEVATOR_HOME, hw.PUSHER_HOME):
            self.bench.levels[switch] = 1
        self.said = []
        self.now_us = 1000
        self.controller = Controller(
            self.bench, RecordStore(), ScriptedRng(lambda bound: 0), self.report, lambda: 1800000000
        )
        self.controller.start(self.now_us)
        self.wait(shoe.PURGE_WINDOW_US, quiet=False)  # the deal roller turns once: no card was overlooked
        assert self.controller.shoe.state == shoe.EMPTY
        self.command("register_deck", 1, hw.RED, 1800000000, role="floor")

    def report(self, name, *values):
        self.said.append(name)

    def command(self, name, *values, role="table"):
        self.controller.execute(name, values, Caller(b"TABLE-PC", enum_number("Role", role), True))
        self.controller.step(self.now_us)

    def edge(self, sensor, level, after_us, quiet=True):
        """An edge so much later; ``quiet`` if nothing is to be reported, so that nothing may be allocated."""
        controller, before = self.controller, len(self.said)
        self.now_us += after_us
        self.bench.levels[sensor] = level
        if quiet:
            heap_lock()
        try:
            controller.edge(sensor, level, self.now_us - 20, self.now_us)
            controller.step(self.now_us)
        finally:
            if quiet:
                heap_unlock()
        assert not quiet or len(self.said) == before, self.said

    def wait(self, us, quiet=True):
        """Time passes."""
        controller = self.controller
        self.now_us += us
        if quiet:
            heap_lock()
        try:
            controller.step(self.now_us)
        finally:
            if quiet:
                heap_unlock()


def test_a_card_goes_into_the_chamber_and_the_core_allocates_nothing():
    device = Device()
    bench, half = device.bench, device.controller.shuffler
    device.command("shuffle", 1)
    device.edge(hw.ENTRY, 1, 30000)
    device.edge(hw.INSERTION, 1, 50000)
    assert bench.directions[hw.FEED] == 0  # it waits until its slot is open
    for card in range(3):
        bench.levels[hw.ELEVATOR] = 0
        device.edge(hw.ELEVATOR, 1, 90000)
        device.edge(hw.GRIPPER, 1, 15000)
        assert bench.closed
        assert bench.directions[hw.FEED] == bench.directions[hw.INSERT] == 1
        bench.levels[hw.ELEVATOR] = 0
        device.edge(hw.ENTRY, 0, 38900)
        device.edge(hw.ENTRY, 1, 15000)  # the next one
        device.edge(hw.ELEVATOR, 1, 23600)
        device.edge(hw.HEIGHT, 1, 2000)  # of what is below: everything, as this one goes on top
        bench.levels[hw.HEIGHT] = 0
        bench.encoder_um += machine_constants.CARD_LENGTH_UM
        device.edge(hw.INSERTION, 0, 9400)
        device.edge(hw.INSERTION, 1, 15000)
        assert bench.directions[hw.FEED] == 0
        device.wait(shuffler.SEATED_US - 15000)
        assert bench.directions[hw.INSERT] == 0
        bench.levels[hw.ELEVATOR] = 0
        device.edge(hw.ELEVATOR, 1, 77500)
        device.edge(hw.GRIPPER, 0, 15000)
        assert not bench.closed
        bench.stack_um += machine_constants.CARD_THICKNESS_UM
        bench.levels[hw.ELEVATOR] = 0
        device.edge(hw.HEIGHT, 1, 2000)
        bench.levels[hw.HEIGHT] = 0
        assert half.jam is None, (half.jam.place, half.jam.cause)
        assert (half.entered, half.inserted, half.raised) == (card + 2, card + 1, card + 1)


def test_a_stack_is_dealt_and_the_core_allocates_nothing():
    device = Device()
    bench, controller = device.bench, device.controller
    bench.levels[hw.STORE] = 1
    controller.shoe.load(1, hw.RED, 52, device.now_us)
    assert bench.pushed
    device.edge(hw.PUSHER_HOME, 0, 1000, quiet=False)
    bench.levels[hw.SHOE], bench.levels[hw.STORE] = 1, 0
    device.edge(hw.PUSHER_END, 1, 599000)
    assert not bench.pushed
    device.edge(hw.PUSHER_END, 0, 1000)
    device.edge(hw.PUSHER_HOME, 1, 599000, quiet=False)
    assert controller.shoe.state == shoe.READY
    device.command("open_round", 1, 1)
    device.command("close_bets", 1, 7)
    for stack in range(1, 4):
        device.command("dispense_stack", 1, stack)
        assert bench.directions[hw.DEAL] == 1
        device.edge(hw.EXIT, 1, 40000)
        for card in range(3):
            bench.encoder_um += machine_constants.CARD_LENGTH_UM
            device.edge(hw.EXIT, 0, machine_constants.CARD_LENGTH_UM)
            if card < 2:
                device.edge(hw.EXIT, 1, machine_constants.GAP_UM)
            if card == 0:
                device.edge(hw.EXIT_TRAY, 1, 2000)
        assert bench.directions[hw.DEAL] == 0
        device.wait(shoe.LANDING_US, quiet=False)
        assert device.said[-1] == "stack_dispensed"
        device.edge(hw.EXIT_TRAY, 0, 500000, quiet=False)
        assert device.said[-1] == "stack_taken"
    assert controller.shoe.dealt == 9
