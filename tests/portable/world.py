"""Two ends of the wire and a bad channel between them, in virtual time, from one seed.

Everything here runs on MicroPython too. The world knows the truth (which commands were executed, which
events the device made) and compares it with what the host was told.
"""

import os
import struct
import sys

from sabot_protocol import ticks
from sabot_protocol.codec import CODEC
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import DeviceIdentity, DeviceProtocol, Executor
from sabot_protocol.errors import MemoryFailed
from sabot_protocol.host_protocol import CABLE_LOST, DEVICE_REBOOTED, HostProtocol
from sabot_protocol.key_store import KeyStore
from sabot_protocol.notifications import (
    EventGap,
    EventReceived,
    RequestAnswered,
    RequestFailed,
    SessionDown,
    SessionUp,
)
from sabot_protocol.record_store import RecordStore
from sabot_protocol.wire_constants import DEVICE

KEY = bytes(range(32))
SERIAL = b"SABOT001"
HOST_ID = b"TABLE-PC"

# Of hundreds of power cuts a sample meets every 7th, on MicroPython, which is slow, every 41st.
SAMPLE_EVERY = 41 if sys.implementation.name == "micropython" else 7
FULL_EVERY = 3 if sys.implementation.name == "micropython" else 1
CUT_EVERY = {"sample": SAMPLE_EVERY, "campaign": 1}.get(os.getenv("SABOT_SWEEPS", "sample"), FULL_EVERY)
CUT_EVERY_DEARLY = 1 if CUT_EVERY == 1 else 3 * CUT_EVERY  # where each cut costs a signature

DISPENSE = CODEC.named("dispense_stack")


class Rng:
    """Small, the same on every Python (xorshift of 32 bits)."""

    def __init__(self, seed: int) -> None:
        self._state = (seed * 2654435761 + 0x9E3779B9) & 0xFFFFFFFF or 1
        for _ in range(4):
            self.next()

    def next(self) -> int:
        state = self._state
        state ^= (state << 13) & 0xFFFFFFFF
        state ^= state >> 17
        state ^= (state << 5) & 0xFFFFFFFF
        self._state = state
        return state

    def below(self, bound: int) -> int:
        return self.next() % bound

    def chance(self, per_million: int) -> bool:
        return self.next() % 1000000 < per_million

    def bytes(self, size: int) -> bytes:
        return bytes([self.next() >> 8 & 255 for _ in range(size)])


class PowerCut(BaseException):
    """The device lost its power at this very instruction."""


class CutMemory(RecordStore):
    """Critical memory whose power may go just before or just after a write."""

    def __init__(self) -> None:
        super().__init__()
        self.cut_in: int | None = None  # writes until the cut
        self.cut_after = False
        self.failing = 0  # writes of commands that will fail, power or not

    def save(self, name: str, data: bytes) -> None:
        if self.failing and name.startswith("command"):
            self.failing -= 1
            raise MemoryFailed(name)
        if self.cut_in is not None:
            self.cut_in -= 1
            if self.cut_in <= 0:
                self.cut_in = None
                if self.cut_after:
                    super().save(name, data)
                raise PowerCut
        super().save(name, data)


class Wire:
    """One direction: loses, repeats, delays, splits and corrupts frames, in millionths."""

    def __init__(self, rng: Rng, loss: int, repeat: int, bit_error: int, delay_ms: int) -> None:
        self.rng = rng
        self.loss = loss
        self.repeat = repeat
        self.bit_error = bit_error
        self.delay_ms = delay_ms
        self.under_way: list[tuple[int, int, bytes]] = []
        self._order = 0

    def put(self, data: bytes, now: int) -> None:
        start = 0
        while start < len(data):
            end = data.find(b"\x00", start) + 1 or len(data)
            one = data[start:end]
            start = end
            if self.rng.chance(self.loss):
                continue
            for _ in range(2 if self.rng.chance(self.repeat) else 1):
                at = now + (self.rng.below(self.delay_ms + 1) if self.delay_ms else 0)
                self._order += 1
                self.under_way.append((at, self._order, self._corrupted(one)))

    def _corrupted(self, one: bytes) -> bytes:
        if not self.rng.chance(self.bit_error * 8 * len(one)):  # about: at most one bit a frame
            return one
        spoilt = bytearray(one)
        spoilt[self.rng.below(len(one))] ^= 1 << self.rng.below(8)
        return bytes(spoilt)

    def next_at(self) -> int | None:
        return min([each[0] for each in self.under_way]) if self.under_way else None

    def due(self, now: int) -> "list[bytes]":
        """What arrives now, in chunks of any size."""
        ready = sorted([each for each in self.under_way if each[0] <= now])
        if not ready:
            return []
        self.under_way = [each for each in self.under_way if each[0] > now]
        chunks = []
        for _, _, one in ready:
            if len(one) > 1 and self.rng.below(4) == 0:
                at = 1 + self.rng.below(len(one) - 1)
                chunks.append(one[:at])
                chunks.append(one[at:])
            else:
                chunks.append(one)
        return chunks


class Shoe(Executor):
    """Counts what was dispensed for each task (its round id); may lose power while doing it."""

    def __init__(self, world: "World") -> None:
        self.world = world

    def execute(self, name: str, values: tuple, caller: object) -> tuple:  # type: ignore[type-arg]
        world = self.world
        task = values[0]
        if world.cut_in_execute and world.rng.below(2):
            world.cut_in_execute = False
            raise PowerCut
        world.executed[task] = world.executed.get(task, 0) + 1
        if world.cut_in_execute:
            world.cut_in_execute = False
            raise PowerCut
        world.emit()
        return ()


class World:
    """A host that wants each of its tasks done once, a device that does them, and a bad cable."""

    def __init__(
        self,
        seed: int,
        loss: int = 0,
        repeat: int = 0,
        bit_error: int = 0,
        delay_ms: int = 0,
        host_window: int = 16,
        device_window: int = 16,
        capacity: int = 64,
        start_ms: int = 0,
    ) -> None:
        self.rng = Rng(seed)
        self.now = start_ms  # does not wrap here; both ends see it as ticks
        self.to_device = Wire(self.rng, loss, repeat, bit_error, delay_ms)
        self.to_host = Wire(self.rng, loss, repeat, bit_error, delay_ms)
        self.host_window = host_window
        self.device_window = device_window
        self.capacity = capacity
        self.memory = CutMemory()
        KeyStore(self.memory).set(DEVICE, KEY)
        self.executed: dict[int, int] = {}
        self.cut_in_execute = False
        self.made: dict[tuple[int, int], bool] = {}  # every event number ever given: (boot, n)
        self.tags = 0
        self.device: DeviceProtocol | None = None
        self.port: DevicePort | None = None
        self.reboots = 0
        self._boot()
        self.numbers = CommandNumbers(HOST_ID)
        self.host = self._new_host()
        self.journal: list[tuple[int, int, int]] = []  # events on the host's disk
        self.gaps: list[EventGap] = []
        self.disk_position: tuple[bytes, int, int] | None = None
        self.outstanding: dict[int, int] = {}  # number -> task
        self.outcomes: dict[int, str] = {}
        self.downs: list[str] = []
        self.reconnect_at: int | None = self.now
        self.reconnects = True
        self.steps = 0

    # -- the device -----------------------------------------------------------------------------

    def _boot(self) -> None:
        """Power on; a cut during start-up means trying again."""
        self.to_device.under_way = []
        while True:
            try:
                self.device = DeviceProtocol(
                    DeviceIdentity(SERIAL, "Sabot test", "0", 0),
                    self.memory,
                    Shoe(self),
                    self.rng.bytes,
                    ticks.add(self.now, 0),
                    window=self.device_window,
                    event_capacity=self.capacity,
                )
                break
            except PowerCut:
                self._numbers_used()
        self._numbers_used()
        self.port = DevicePort(self.device)

    def _numbers_used(self) -> None:
        """Take every event number that critical memory says was given into the list of truth."""
        rows = (self.memory.load("events") or b"") + (self.memory.load("chain") or bytes(12))[4:12]
        for at in range(0, len(rows), 8):
            boot, last = struct.unpack_from("<II", rows, at)
            for n in range(1, last + 1):
                self.made[(boot, n)] = True

    def emit(self) -> None:
        """The device reports something with a tag of its own."""
        assert self.device is not None
        self.tags += 1
        self.device.emit("located", 1 + self.tags % 60)

    def reboot(self) -> None:
        """The device loses its power and starts again."""
        self.reboots += 1
        self._numbers_used()
        self._boot()

    # -- the host -------------------------------------------------------------------------------

    def _new_host(self) -> HostProtocol:
        return HostProtocol(KEY, self.numbers, self.rng.bytes, SERIAL, window=self.host_window)

    def ask(self, task: int) -> None:
        """Want a task done."""
        number = self.host.request(DISPENSE.id, DISPENSE.pack((task, 1)), ticks.add(self.now, 0))
        self.outstanding[number] = task

    def cut_cable(self) -> None:
        """The cable is pulled, and put back later."""
        self.to_device.under_way = []
        self.to_host.under_way = []
        assert self.port is not None
        assert self.device is not None
        try:
            self.port.close()
            self.port = DevicePort(self.device)
        except PowerCut:
            self.reboot()
        self.host.disconnect(CABLE_LOST)
        self._collect()

    def crash_host(self) -> None:
        """The host process dies and starts again with what was on its disk."""
        self.to_host.under_way = []
        old = self.outstanding
        self.outstanding = {}
        memory_id = self.host.memory_id
        self.host = self._new_host()
        if self.disk_position is not None:
            self.host.resume_from(*self.disk_position)
        for number in sorted(old):
            if memory_id:
                self.host.resolve(number, DISPENSE.id, memory_id, ticks.add(self.now, 0))
                self.outstanding[number] = old[number]
            else:
                self.ask(old[number])  # there never was a session: it was not sent
        self.reconnect_at = self.now + self.rng.below(300)

    def _collect(self) -> None:
        for each in self.host.take_notifications():
            if isinstance(each, RequestAnswered):
                self._ended(each.request_id, self._outcome(each))
            elif isinstance(each, RequestFailed):
                self._ended(
                    each.request_id, "not_executed" if each.reason == DEVICE_REBOOTED else each.reason
                )
            elif isinstance(each, EventReceived):
                self.journal.append((each.boot_id, each.n, each.message))
                self.disk_position = (self.host.memory_id, each.boot_id, each.n)
                self.host.acknowledge(each.boot_id, each.n)
            elif isinstance(each, EventGap):
                self.gaps.append(each)
                self.disk_position = (self.host.memory_id, each.before[0], each.before[1] - 1)
            elif isinstance(each, SessionDown):
                self.downs.append(each.reason)
                if self.reconnects:
                    self.reconnect_at = self.now + 10 + self.rng.below(500)
            elif isinstance(each, SessionUp):
                assert each.serial == SERIAL

    def _outcome(self, answered: RequestAnswered) -> str:
        if answered.status == 0:
            return "done"
        error = CODEC.error(answered.status)
        assert error is not None
        return error.name

    def _ended(self, number: int, outcome: str) -> None:
        task = self.outstanding.pop(number)
        if outcome in ("not_executed", "memory_failed"):
            self.ask(task)  # proved: it may be asked anew
        else:
            assert task not in self.outcomes, "task %d ended twice" % task
            self.outcomes[task] = outcome

    # -- time -----------------------------------------------------------------------------------

    def step(self, until: int) -> None:
        """Let everything happen that is due now, then go on to the next moment something is."""
        self.steps += 1
        now = ticks.add(self.now, 0)
        if self.reconnect_at is not None and self.now >= self.reconnect_at:
            self.reconnect_at = None
            self.host.connect(now)
        try:
            self._device_turn(now)
        except PowerCut:
            self.reboot()
        for chunk in self.to_host.due(self.now):
            self.host.receive(chunk, now)
        self._collect()
        out = self.host.poll(now)
        self._collect()
        if out:
            self.to_device.put(out, self.now)
        self.now = self._next(until)

    def _device_turn(self, now: int) -> None:
        assert self.port is not None
        for chunk in self.to_device.due(self.now):
            self.port.receive(chunk, now)
        out = self.port.poll(now)
        if out:
            self.to_host.put(out, self.now)

    def _next(self, until: int) -> int:
        assert self.port is not None
        times = [until]
        for due in (self.host.deadline(), self.port.deadline()):
            if due is not None:
                times.append(self.now + max(ticks.diff(due, ticks.add(self.now, 0)), 0))
        for at in (self.to_device.next_at(), self.to_host.next_at(), self.reconnect_at):
            if at is not None:
                times.append(at)
        return max(min(times), self.now + (1 if self.steps % 50 == 0 else 0))

    def run(self, ms: int) -> None:
        """Let this much time pass."""
        end = self.now + ms
        while self.now < end:
            self.step(end)

    def settle(self, limit_ms: int = 600000) -> None:
        """Run until every task has ended and every event is accounted for."""
        end = self.now + limit_ms
        while self.outstanding or not self.events_accounted():
            assert self.now < end, "not settled after %d ms: %r" % (limit_ms, self.downs[-3:])
            self.step(min(end, self.now + 1000))

    def events_accounted(self) -> bool:
        """Whether the host's position is the device's last event."""
        assert self.device is not None
        return self.host.position == (self.device.boot_id, self.device.events.last)

    # -- the verdict ----------------------------------------------------------------------------

    def check(self, tasks: int) -> None:
        """Every task once, every event once and in order or named in a gap of the right size."""
        for task in range(1, tasks + 1):
            times = self.executed.get(task, 0)
            outcome = self.outcomes[task]
            if outcome == "done":
                assert times == 1, "task %d done %d times" % (task, times)
            else:
                assert outcome == "interrupted", "task %d ended as %s" % (task, outcome)
                assert times <= 1, "interrupted task %d executed %d times" % (task, times)
        names = [(boot, n) for boot, n, _ in self.journal]
        assert names == sorted(names), "events out of order"
        got = {}
        for name in names:
            assert name not in got, "event %r twice" % (name,)
            got[name] = True
        self._numbers_used()
        missing = [name for name in self.made if name not in got]
        for name in missing:
            inside = [gap for gap in self.gaps if gap.after < name < gap.before]
            assert inside, "event %r lost without a word" % (name,)
        for gap in self.gaps:
            lost = [name for name in missing if gap.after < name < gap.before]
            if gap.size is not None:
                assert gap.size == len(lost), "gap says %d, lost %d" % (gap.size, len(lost))


def scenario(seed: int) -> World:
    """One seeded run: losses of up to 10 %, bit errors up to 1e-4, pulled cables, reboots, crashes."""
    rng = Rng(seed + 7)
    world = World(
        seed,
        loss=rng.below(100001),
        repeat=rng.below(100001),
        bit_error=rng.below(101),
        delay_ms=(0, 2, 30)[rng.below(3)],
        host_window=(1, 2, 4, 16)[rng.below(4)],
        device_window=(1, 2, 4, 16)[rng.below(4)],
        capacity=(4, 16, 64)[rng.below(3)],
        start_ms=(0, ticks.MASK - 2000)[rng.below(2)],
    )
    tasks = 4 + rng.below(16)
    asked = 0
    trouble = rng.below(5)
    while asked < tasks:
        what = rng.below(12)
        if what < 7:
            for _ in range(1 + rng.below(4)):
                if asked < tasks:
                    asked += 1
                    world.ask(asked)
        elif what < 9:
            for _ in range(1 + rng.below(5)):
                try:
                    world.emit()
                except PowerCut:
                    world.reboot()
        elif trouble:
            trouble -= 1
            kind = rng.below(6)
            if kind == 0:
                world.cut_cable()
            elif kind == 1:
                world.reboot()
            elif kind == 2:
                world.crash_host()
            elif kind == 3:
                world.cut_in_execute = True
            elif kind == 4:
                world.memory.failing = 1 + rng.below(3)
            else:
                world.memory.cut_in = 1 + rng.below(6)
                world.memory.cut_after = rng.below(2) == 1
        world.run(rng.below(400))
    world.cut_in_execute = False
    world.memory.cut_in = None
    world.memory.failing = 0
    world.settle()
    world.check(tasks)
    return world
