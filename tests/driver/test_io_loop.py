"""The IO loop in virtual time: port, disk and clock belong to the test, and one seed replays everything."""

import heapq
import itertools
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from random import Random
from typing import Any

import pytest
from tests.driver.connection_ends import Ends

from sabot_driver.errors import JournalError, JournalFull, LinkLost
from sabot_driver.io_loop import RETRY_DISK_MS, BatchResult, IoLoop, PortLost, PortOpened
from sabot_driver.journal import JournalBatch
from sabot_driver.link_state import LinkState
from sabot_protocol import ticks
from sabot_protocol.device_port import DevicePort
from sabot_protocol.host.messages import CallFloor, Locate

pytestmark = pytest.mark.slow

MINUTE_MS = 60_000


class Virtual(Ends):
    """A device behind a slow cable that is pulled at times, and a disk that is slow and fails at times."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = Random(seed)
        self._order = itertools.count()
        self.agenda: list[tuple[int, int, Callable[[], object]]] = []
        self.trace: list[tuple[int, str]] = []
        self.futures: list[Future[Any]] = []
        self.opening = 0
        self.is_open = False
        self.inputs: list[bytes | PortOpened | PortLost] = []
        self.loop = IoLoop(self.connection, _Port(self), _Disk(self), lambda due: None)

    def at(self, delay_ms: int, what: Callable[[], object]) -> None:
        heapq.heappush(self.agenda, (self.now + delay_ms, next(self._order), what))

    # -- the port

    def start_open(self) -> None:
        self.opening += 1
        self.trace.append((self.now, "open"))
        self.at(self.random.randint(1, 300), partial(self._opened, self.opening))

    def _opened(self, opening: int) -> None:
        if opening != self.opening:
            return
        if self.random.random() < 0.1:
            self.inputs.append(PortLost(LinkLost("no port")))
            return
        self.port = DevicePort(self.device)
        self.is_open = True
        self.inputs.append(PortOpened())

    def start_close(self) -> None:
        self.trace.append((self.now, "close"))
        self.opening += 1
        self.inputs.clear()
        if self.is_open:
            self.is_open = False
            self.port.close()

    def pull(self) -> None:
        if self.is_open:
            self.inputs.append(PortLost(LinkLost("pulled")))

    def send(self, data: bytes) -> None:
        self.trace.append((self.now, data.hex()))
        if not self.is_open:
            raise LinkLost("closed")
        self.at(self.random.randint(1, 15), partial(self._deliver, self.opening, data))

    def _deliver(self, opening: int, data: bytes) -> None:
        if opening == self.opening and self.is_open:
            self.port.receive(data, self.now)

    # -- running

    def run(self, until: int) -> None:
        while self.now < until:
            due = self.loop.step(self.now)
            if self.is_open:
                back = self.port.poll(self.now)
                if back:
                    self.trace.append((self.now, bytes(back).hex()))
                    self.at(self.random.randint(1, 15), partial(self._back, self.opening, bytes(back)))
            acknowledged = self.device.events.last - self.device.events.unacknowledged()
            assert acknowledged <= self.journal.last_id(), "an event was acknowledged before it was on disk"
            while self.connection.completions:
                end = self.connection.completions.popleft()
                self.trace.append((self.now, f"{end.answer} {end.error!r}"))
                if end.error is None:
                    end.future.set_result(end.answer)
                else:
                    end.future.set_exception(end.error)
            times = [self.now + 10 if due is None else max(due, self.now + 1), self.now + 10]
            if self.agenda:
                times.append(max(self.agenda[0][0], self.now + 1))
            self.now = min(times)
            while self.agenda and self.agenda[0][0] <= self.now:
                heapq.heappop(self.agenda)[2]()

    def _back(self, opening: int, data: bytes) -> None:
        if opening == self.opening and self.is_open:
            self.inputs.append(data)


class _Port:
    def __init__(self, world: Virtual) -> None:
        self.start_open, self.start_close, self.write = world.start_open, world.start_close, world.send
        self._world = world

    def take(self) -> list[bytes | PortOpened | PortLost]:
        taken, self._world.inputs = self._world.inputs, []
        return taken


class _Disk:
    def __init__(self, world: Virtual) -> None:
        self._world = world
        self._result: BatchResult | None = None

    def start(self, batch: JournalBatch) -> None:
        self._world.at(self._world.random.choice((0, 1, 5, 400)), partial(self._end, batch))

    def _end(self, batch: JournalBatch) -> None:
        error: JournalError | None = JournalFull("full") if self._world.random.random() < 0.05 else None
        newest = None if error else self._world.journal.write(batch, self._world.now)
        self._result = BatchResult(batch, newest, error)

    def take(self) -> BatchResult | None:
        result, self._result = self._result, None
        return result


def life(seed: int) -> Virtual:
    """Two minutes with requests, events, pulled cables and a bad disk, then one without trouble."""
    world = Virtual(seed)
    random = world.random

    def ask() -> None:
        request = random.choice((CallFloor(1), CallFloor(0), Locate(3)))
        _, future = world.loop.call(world.now, world.connection.request, request, random.randint(50, 20_000))
        world.futures.append(future)

    for _ in range(40):
        world.at(random.randrange(2 * MINUTE_MS), ask)
        world.at(random.randrange(2 * MINUTE_MS), lambda: world.device.emit("located", 1))
    for _ in range(6):
        world.at(random.randrange(2 * MINUTE_MS), world.pull)
    world.run(3 * MINUTE_MS)
    return world


@pytest.mark.sweep(every=6)
@pytest.mark.parametrize("seed", range(12))
def test_one_seed_replays_everything_and_the_journal_is_ahead_of_the_wire(seed: int) -> None:
    world = life(seed)
    assert all(future.done() for future in world.futures), "no request is left without an end"
    rows = [(each.boot_id, each.n) for each in world.journal.entries() if not each.is_gap]
    assert rows == [(1, n) for n in range(1, world.device.events.last + 1)], "each event once, in order"
    assert world.connection.link is LinkState.UP
    answered = sum(future.exception() is None for future in world.futures)
    assert answered <= len([name for name, _ in world.done if name != "set_clock"]) <= len(world.futures)
    if seed < 6:
        assert life(seed).trace == world.trace


class _FullDisk:
    def __init__(self) -> None:
        self._result: BatchResult | None = None

    def start(self, batch: JournalBatch) -> None:
        self._result = BatchResult(batch, None, JournalFull("full"))

    def take(self) -> BatchResult | None:
        result, self._result = self._result, None
        return result


def test_a_disk_that_is_tried_again_at_tick_0_is_waited_for() -> None:
    """Tick 0 was taken for no tick: the loop ran without a pause until the ticks had wrapped."""
    world = Virtual(1)
    loop = IoLoop(world.connection, _Port(world), _FullDisk(), lambda due: None)
    now = ticks.add(0, -RETRY_DISK_MS)
    loop.step(now)
    assert loop.step(now) == 0
    assert isinstance(world.connection.write_ahead.error, JournalFull)


class _FailingOnce(_FullDisk):
    """A disk worker with a mistake the first time, and a disk that works."""

    failed = False

    def start(self, batch: JournalBatch) -> None:
        if not self.failed:
            self.failed = True
            raise RuntimeError("a mistake")
        self._result = BatchResult(batch)


def test_a_batch_that_could_not_be_given_to_the_disk_is_given_again() -> None:
    world = Virtual(1)
    disk = _FailingOnce()
    loop = IoLoop(world.connection, _Port(world), disk, lambda due: None)
    assert world.connection.write_ahead.has_batch()
    with pytest.raises(RuntimeError) as mistake:
        loop.step(world.now)
    loop.fail(world.now, mistake.value)
    for _ in range(2):
        loop.step(world.now)
    assert disk.failed
    assert loop.idle()


class _Mistaken(_FullDisk):
    """A disk worker whose every batch ends in a mistake."""

    def start(self, batch: JournalBatch) -> None:
        self._result = BatchResult(batch, error=RuntimeError("a mistake"))


def test_a_disk_worker_with_a_mistake_is_tried_once_a_second() -> None:
    world = Virtual(1)
    loop = IoLoop(world.connection, _Port(world), _Mistaken(), lambda due: None)
    loop.step(world.now)
    with pytest.raises(RuntimeError) as mistake:
        loop.step(world.now)
    loop.fail(world.now, mistake.value)
    assert not loop.can_write(world.now + RETRY_DISK_MS - 1)
    assert loop.can_write(world.now + RETRY_DISK_MS)


class _WorksAgain(_FullDisk):
    """A disk that is full the first time."""

    full = True

    def start(self, batch: JournalBatch) -> None:
        self._result = BatchResult(batch, None, JournalFull("full") if self.full else None)
        self.full = False


def test_a_disk_that_works_again_is_not_waited_for_when_the_ticks_have_wrapped() -> None:
    """Six days after a failure its tick lies ahead again: the driver would write nothing for six days."""
    world = Virtual(1)
    loop = IoLoop(world.connection, _Port(world), _WorksAgain(), lambda due: None)
    for later in (0, 0, RETRY_DISK_MS, RETRY_DISK_MS):
        loop.step(world.now + later)
    assert world.connection.write_ahead.error is None
    world.connection.write_ahead.add_outcome(1, "done")
    for days in range(14):
        assert loop.can_write(ticks.add(world.now, RETRY_DISK_MS + days * 86_400_000))
