"""A thread that runs an emulated device: it lets time pass and moves bytes over the cables."""

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

from sabot_protocol import ticks
from sabot_simulators.chips import PowerCut
from sabot_simulators.device_settings import UNLIMITED_SPEED
from sabot_simulators.emulated_device import CablePort, EmulatedDevice, PlugInUse

TAKE_BYTES = 1024  # of one cable, before the others and the clock are looked at
HELD_BYTES = 16384  # on their way over an in-process cable, each way
MOST_CABLES = 16
STEPS_AT_ONCE = 200  # of the mechanism, before cables are looked at again
MAX_WAIT_S = 1.0
JOIN_S = 10.0
IDLE_S = 0.01  # the time of a machine at rest passes in pieces of at least this

T = TypeVar("T")


def wire_ms(rate: float = 1.0) -> int:
    """The wire's clock, the same for all devices of this process; ``rate`` makes it run faster."""
    return int(time.monotonic() * 1000 * rate) & ticks.MASK


class Unplugged(Exception):
    """The other end of a cable is closed."""


class HostCable(Protocol):
    """The device's side of one cable. Its methods never wait."""

    def fileno(self) -> int | None:
        """The descriptor to wait for; None for a cable that wakes the thread itself."""

    def take(self, most: int) -> bytes:
        """Up to ``most`` bytes that arrived from the host; Unplugged when the host has closed the cable."""

    def give(self, data: bytes) -> int:
        """Send bytes to the host; how many of them there was room for."""

    def close(self) -> None:
        """Close the cable."""


class HostListener(Protocol):
    """Accepts hosts, as a listening socket does."""

    def fileno(self) -> int:
        """The descriptor to wait for."""

    def accept(self) -> HostCable | None:
        """The cable of a host that has connected, or None."""

    def close(self) -> None:
        """Accept no more hosts."""


class TooManyCables(Exception):
    """The device has no place for one more cable."""


class PluggedCable:
    """A cable's port at the device, and the bytes of one poll that its host has not taken yet."""

    def __init__(self, port: CablePort) -> None:
        self.port = port
        self.unsent = b""

    def exchange(self, cable: HostCable, now: int) -> None:
        """Send the host what is left of the last poll, then the next poll's bytes."""
        if self.unsent:
            self.unsent = self.unsent[cable.give(self.unsent) :]
        if self.unsent:
            self.port.poll(now, False)
            return
        said = self.port.poll(now)
        if said:
            self.unsent = said[cable.give(said) :]


class DeviceServer:
    """An emulated device with a thread of its own.

    Everything that touches the device runs on that thread; ``call`` puts something there. Speed 0 lets
    machine time pass as fast as it can be computed. ``clock_rate`` makes the wire's timers run faster,
    for tests in which both ends do so.
    """

    def __init__(self, device: EmulatedDevice, clock_rate: float = 1.0) -> None:
        self.device = device
        self._rate = clock_rate
        self._began = time.monotonic()  # for the mechanism
        self._began_us = device.now_us
        self._boots = device.boots
        self._cables: dict[HostCable, PluggedCable] = {}
        self._listeners: list[HostListener] = []
        self._calls: list[tuple[Future[object], Callable[[], object]]] = []
        self._lock = threading.Lock()
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._stopping = False
        self._idle_since: float | None = None  # with no work for a machine that is as fast as it goes
        self.failure: BaseException | None = None
        """The exception that ended the thread, if one did."""
        self._thread = threading.Thread(target=self._live, name="emulated-device", daemon=True)
        self._thread.start()

    # -- for other threads ----------------------------------------------------------------------

    def close(self) -> None:
        """End the thread; every cable is unplugged. The device itself stays as it is."""
        self._stopping = True
        self.wake()
        self._thread.join(JOIN_S)
        with self._lock:
            left, self._calls = self._calls, []
        for future, _ in left:
            future.cancel()

    def wake(self) -> None:
        """Wake the thread."""
        with contextlib.suppress(BlockingIOError, OSError):  # a full pipe wakes as well
            self._wake_write.send(b"x")

    def call(self, what: Callable[[], T]) -> T:
        """Run something on the device's thread and wait for what it returns."""
        future: Future[object] = Future()
        with self._lock:
            self._calls.append((future, what))
        self.wake()
        return future.result(JOIN_S)  # type: ignore[return-value]

    def plug(self, cable: HostCable) -> None:
        """Plug a cable in."""
        self.call(lambda: self._plug(cable))

    def unplug(self, cable: HostCable) -> None:
        """Pull a cable out."""
        self.call(lambda: self._unplug(cable))

    def listen(self, listener: HostListener) -> None:
        """Accept hosts from a listener."""
        self.call(lambda: self._listen(listener))

    def pull_all(self) -> int:
        """Pull every cable; how many there were."""
        return self.call(self._pull_all)

    def reboot(self) -> None:
        """Cut the power and give it back; cables stay plugged in."""
        self.call(self._reboot)

    def now_ms(self) -> int:
        """The wire's clock."""
        return wire_ms(self._rate)

    # -- on the device's thread -----------------------------------------------------------------

    def _plug(self, cable: HostCable) -> None:
        if len(self._cables) >= MOST_CABLES:
            raise TooManyCables(f"{MOST_CABLES} cables are plugged in already")
        self._cables[cable] = PluggedCable(self.device.plug())
        fileno = cable.fileno()
        if fileno is not None:
            self._selector.register(fileno, selectors.EVENT_READ, cable)

    def _accept(self, listener: HostListener) -> None:
        """Let in the host that has come; turn it away where there is no place for its cable."""
        cable = listener.accept()
        if cable is None:
            return
        try:
            self._plug(cable)
        except (TooManyCables, PlugInUse):
            cable.close()

    def _unplug(self, cable: HostCable) -> None:
        plug = self._cables.pop(cable, None)
        if plug is None:
            return
        fileno = cable.fileno()
        if fileno is not None:
            self._selector.unregister(fileno)
        self.device.unplug(plug.port)
        cable.close()

    def _pull_all(self) -> int:
        cables = list(self._cables)
        for cable in cables:
            self._unplug(cable)
        return len(cables)

    def _listen(self, listener: HostListener) -> None:
        self._listeners.append(listener)
        self._selector.register(listener.fileno(), selectors.EVENT_READ, listener)

    def _reboot(self) -> None:
        self.device.reboot(self.now_ms())
        self._replug()

    def _replug(self) -> None:
        """The device has been switched off and on: its ports are new, the cables are not."""
        self._boots = self.device.boots
        for cable in self._cables:
            self._cables[cable] = PluggedCable(self.device.plug())

    def _live(self) -> None:
        try:
            while not self._stopping:
                wait = self._once()
                for key, _ in self._selector.select(wait):
                    if key.data is None:
                        self._drain_wakes()
        except Exception as error:  # noqa: BLE001 - kept, so that a caller can see why the device is silent
            self.failure = error
        finally:
            self._let_go()

    def _let_go(self) -> None:
        self._pull_all()
        for listener in self._listeners:
            self._selector.unregister(listener.fileno())
            listener.close()
        self._selector.close()
        self._wake_read.close()
        self._wake_write.close()

    def _once(self) -> float:
        """Do what is due; how long nothing will be, in seconds."""
        if self._calls:
            self._do_calls()
        for listener in self._listeners:
            self._accept(listener)
        now = self.now_ms()
        try:
            self._hear(now)
            self.device.tick(now)
            busy, wait = self._pass_time()
        except PowerCut:  # in the midst of a record
            self.device.reboot(now)
            busy, wait = True, 0.0
        if self.device.boots != self._boots:
            self._replug()
        for cable, plug in self._cables.items():
            before = bool(plug.unsent)
            plug.exchange(cable, now)
            if bool(plug.unsent) != before:
                self._watch(cable, bool(plug.unsent))
            due = plug.port.deadline()
            if due is not None:
                wait = min(wait, max(ticks.diff(due, now), 0) / 1000 / self._rate)
        return 0.0 if busy else wait

    def _watch(self, cable: HostCable, writes: bool) -> None:
        """Wake up when the cable brings bytes; also when it has room again, if something waits for that."""
        fileno = cable.fileno()
        if fileno is not None:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if writes else 0)
            self._selector.modify(fileno, events, cable)

    def _hear(self, now: int) -> None:
        """What the cables have brought, a piece of each."""
        for cable, plug in list(self._cables.items()):
            try:
                data = cable.take(TAKE_BYTES)
            except Unplugged:
                self._unplug(cable)
                continue
            if data:
                plug.port.receive(data, now)

    def _pass_time(self) -> tuple[bool, float]:
        """Let the mechanism move: whether there is more to do at once, and how long it can wait."""
        device = self.device
        speed = device.settings.speed
        if speed == UNLIMITED_SPEED:
            if device.run(STEPS_AT_ONCE):
                self._idle_since = None
                return True, 0.0
            return False, self._pass_idle_time()
        to_us = self._began_us + int((time.monotonic() - self._began) * 1e6 * speed)
        if not device.advance(max(to_us, device.now_us), STEPS_AT_ONCE):
            return True, 0.0
        next_us = device.next_us()
        if next_us is None:
            return False, MAX_WAIT_S
        return False, min(max(next_us - to_us, 0) / 1e6 / speed, MAX_WAIT_S)

    def _pass_idle_time(self) -> float:
        """Nothing moves: time passes as it does for everybody; how long it can wait."""
        now = time.monotonic()
        if self._idle_since is None:
            self._idle_since = now
        elif now - self._idle_since >= IDLE_S:
            since, self._idle_since = self._idle_since, now
            self.device.advance(self.device.now_us + int((now - since) * 1e6), STEPS_AT_ONCE)
        return MAX_WAIT_S

    def _drain_wakes(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake_read.recv(4096)

    def _do_calls(self) -> None:
        with self._lock:
            calls, self._calls = self._calls, []
        for future, what in calls:
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(what())
            except Exception as error:  # noqa: BLE001 - it belongs to who asked
                future.set_exception(error)


class InProcessCable:
    """A cable whose host is in this process; both sides are safe to use from any thread.

    It holds HELD_BYTES each way: a host that writes more waits for the device, and the device keeps what a
    host does not read.
    """

    def __init__(self, served: DeviceServer) -> None:
        self._served = served
        self._changed = threading.Condition()
        self._to_device = bytearray()
        self._to_host = bytearray()
        self._gone = False
        self._interrupted = False
        self._full = False  # the device has more for the host than there was room for

    # -- the host's side ------------------------------------------------------------------------

    def write(self, data: bytes, timeout_s: float | None = None) -> int:
        """Bytes for the device: how many it took, which is fewer only when time is up.

        Unplugged when the cable is gone.
        """
        written = 0
        while True:
            with self._changed:
                if written < len(data):
                    self._changed.wait_for(lambda: self._gone or self._room(), timeout_s)
                if self._gone:
                    raise Unplugged("the cable is unplugged")
                piece = data[written : written + self._room()]
                self._to_device += piece
            self._served.wake()
            written += len(piece)
            if not piece or written == len(data):
                return written

    def _room(self) -> int:
        return HELD_BYTES - len(self._to_device)

    def read(self, size: int, timeout_s: float | None) -> bytes:
        """Up to ``size`` bytes, as soon as there are any; none when time is up or somebody interrupts."""
        with self._changed:
            self._changed.wait_for(lambda: self._to_host or self._gone or self._interrupted, timeout_s)
            self._interrupted = False
            if self._to_host:
                data = bytes(self._to_host[:size])
                del self._to_host[:size]
                self._make_room()
                return data
            if self._gone:
                raise Unplugged("the cable is unplugged")
            return b""

    def _make_room(self) -> None:
        if self._full:
            self._full = False
            self._served.wake()

    def waiting(self) -> int:
        """Bytes that can be read at once."""
        with self._changed:
            return len(self._to_host)

    def interrupt(self) -> None:
        """End a read that waits."""
        with self._changed:
            self._interrupted = True
            self._changed.notify_all()

    def clear(self) -> None:
        """Discard the bytes that arrived and were not read."""
        with self._changed:
            self._to_host.clear()
            self._make_room()

    # -- the device's side ----------------------------------------------------------------------

    def fileno(self) -> int | None:
        """None: this cable wakes the thread itself."""
        return None

    def take(self, most: int) -> bytes:
        """Up to ``most`` bytes that the host wrote; it wakes the thread again if more are left."""
        with self._changed:
            data = bytes(self._to_device[:most])
            del self._to_device[:most]
            if data:
                self._changed.notify_all()
            if self._to_device:
                self._served.wake()
            return data

    def give(self, data: bytes) -> int:
        """Send bytes to the host; how many of them there was room for."""
        with self._changed:
            taken = min(len(data), HELD_BYTES - len(self._to_host))
            self._to_host += data[:taken]
            self._full = taken < len(data)
            self._changed.notify_all()
            return taken

    def close(self) -> None:
        """Unplug the cable."""
        with self._changed:
            self._gone = True
            self._changed.notify_all()
