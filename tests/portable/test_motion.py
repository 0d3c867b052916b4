"""Motions: woken by their edge, told when it is late, and no memory allocated from edge to order."""

from sabot_firmware import hardware as hw
from sabot_firmware import shuffler
from sabot_firmware.motion import Scheduler, Wait
from sabot_firmware.shuffler import Shuffler
from sabot_protocol import ticks

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

    def run(self, roller, direction):
        self.directions[roller] = direction

    def travelled_um(self, roller):
        return self.sent_um

    def elevate(self, position_um):
        self.sent_um = position_um

    def grip(self, closed):
        self.closed = closed

    def measure(self):
        self.measured += 1

    def height_um(self):
        return 0

    def colour(self, sensor):
        return hw.RED

    def level(self, sensor):
        return self.levels[sensor]


def test_from_edge_to_order_nothing_is_allocated():
    bench = Bench()
    half = Shuffler(bench, lambda bound: 0)
    half.state = shuffler.IDLE
    half.shuffle(1, hw.RED, 52, 1000)
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
