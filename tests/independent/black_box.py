"""The device as a black box at the end of a pseudo-terminal, and a host that talks to it."""

from __future__ import annotations

import os
import pty
import random
import select
import subprocess
import time
import tty
from collections.abc import Callable
from pathlib import Path

from tests.independent.page import COUNTERS, IDS, SCHEMA
from tests.independent.peer import Asked, Event, Host, Record, SabotError
from tests.independent.wire import ANSWER, EVENT, SEALED_TO_HOST, FrameDecoder, Packet, Value, Values
from tests.warm_start import WarmPopen

ROOT = Path(__file__).parents[2]
KEY = bytes(range(32))
PATIENCE_S = 120.0  # for what takes milliseconds on a machine that has nothing else to do


class Device:
    """The project's device program, on the other end of a pseudo-terminal."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self.master, False)
        self.memory = folder / "memory"
        self._line = [os.ttyname(self._slave), str(self.memory), *options]
        self._process: WarmPopen | None = None
        self.start()

    def start(self) -> None:
        """Switch it on, and wait until it is at the cable, however busy this computer is."""
        self._process = WarmPopen(
            self._line, program="sabot_simulators.tty_device", cwd=ROOT, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def kill(self) -> None:
        """Cut its power."""
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def close(self) -> None:
        """End it all."""
        self.kill()
        os.close(self.master)
        os.close(self._slave)


class Driver:
    """Moves bytes between a host and a descriptor; may lose some of them, to show what then happens."""

    def __init__(self, host: Host, fd: int) -> None:
        self.host = host
        self.deaf = False
        self.lost = bytearray()
        self.sent = bytearray()
        self.dropped: Callable[[], bool] = lambda: False  # whether the next frame is lost on its way out
        self._fd = fd
        self._rest = b""
        host.now = self.now()

    @staticmethod
    def now() -> float:
        """The time in milliseconds."""
        return time.monotonic() * 1000

    def step(self, limit_ms: float = 50.0) -> None:
        """Send what is due, and wait a little for bytes."""
        self.host.tick(self.now())
        for frame in self.host.take_out().split(b"\0")[:-1]:
            if not self.dropped():
                self.sent += frame + b"\0"
                self._rest += frame + b"\0"
        wait = max(0.0, min(limit_ms, self.host.deadline() - self.now()))
        readable, writable, _ = select.select([self._fd], [self._fd] if self._rest else [], [], wait / 1000)
        if writable:
            self._rest = self._rest[os.write(self._fd, self._rest) :]
        if readable:
            chunk = os.read(self._fd, 4096)
            if self.deaf:
                self.lost += chunk
            else:
                self.host.receive(chunk, self.now())
        self.host.now = self.now()

    def write(self, data: bytes) -> None:
        """Put any bytes on the line."""
        self._rest += data
        while self._rest:
            self.step(5.0)

    def rest(self, milliseconds: float) -> None:
        """Let time pass."""
        end = self.now() + milliseconds
        while self.now() < end:
            self.step(end - self.now())

    def wait(self, until: Callable[[], object]) -> None:
        """Run until something is true; SabotError tells how an attempt failed, or that the time is over."""
        end = time.monotonic() + PATIENCE_S
        while not until():
            if self.host.failed:
                name, self.host.failed = self.host.failed, ""
                raise SabotError(name)
            if time.monotonic() > end:
                raise SabotError("timeout")
            self.step()

    def result(self, asked: Asked) -> Values:
        """Run until a request has ended, and return its answer or raise its error."""
        self.wait(lambda: asked.done)
        return asked.result()

    def lost_packets(self) -> list[Packet]:
        """The sealed packets that were lost on their way in."""
        payloads = FrameDecoder().feed(bytes(self.lost))
        return [Packet.read(payload) for payload in payloads if payload[0] == SEALED_TO_HOST]


class Bench:
    """A device, and a host that talks to it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.new_host()

    def new_host(
        self,
        key: bytes = KEY,
        record: Record | None = None,
        serial: bytes | None = None,
        schema: bytes = SCHEMA,
        window: int = 16,
        slot: int = 0,
    ) -> None:
        """Put another host on the cable."""
        record = record or Record(os.urandom(8))
        self.host = Host(record, key, serial, window=window, schema=schema, slot=slot)
        self.driver = Driver(self.host, self.device.master)

    def identify(self) -> Values:
        """Ask who is there."""
        self.host.identify()
        self.driver.wait(lambda: self.host.identity)
        assert self.host.identity is not None
        return self.host.identity

    def provision(self, key: bytes = KEY) -> bytes:
        """Give the device its key; return its proof."""
        self.host.provision(key)
        self.driver.wait(lambda: self.host.provisioned)
        assert self.host.provisioned is not None
        return self.host.provisioned

    def reset(self, proof: bytes = b"") -> Values:
        """Show a reset statement, or ask; return what the device says of its house."""
        self.host.reset(proof)
        self.driver.wait(lambda: self.host.reset_state)
        assert self.host.reset_state is not None
        return self.host.reset_state

    def connect(self) -> None:
        """Make a session, in place of the one that there is."""
        before = self.host.counters["sessions"]
        self.host.connect()
        self.driver.wait(lambda: self.host.counters["sessions"] > before)

    def attach(self, mode: int = 1) -> Values:
        """Make a session and attach in it."""
        self.connect()
        return self.driver.result(self.host.attach(mode))

    def own(self) -> None:
        """Make an owner's session from nothing."""
        self.provision()
        self.attach()
        self.events("host_started", 1)

    def do(self, name: str, **fields: Value) -> Values:
        """Make a request and return its answer."""
        return self.driver.result(self.host.ask(name, **fields))

    def give(self, number: int, name: str, body: bytes) -> str:
        """Give a command under any number; return what came of it."""
        return self.outcome(self.host.ask_raw(IDS[name], body, command=True, number=number))

    def outcome(self, asked: Asked) -> str:
        """Wait for the end of a request; return the name of its answer or error."""
        self.driver.wait(lambda: asked.done)
        return asked.outcome

    def refused(self, asked: Asked) -> tuple[str, Values]:
        """Wait for a refusal; return the error's name and its details."""
        outcome = self.outcome(asked)
        assert asked.error, outcome
        return outcome, Values(asked.error.details)

    def named(self, name: str) -> list[Event]:
        """The events of a name that have come."""
        return [event for event in self.host.events if event.name == name]

    def events(self, name: str, count: int) -> list[Event]:
        """Wait until so many events of a name are there, and a little longer; return them."""
        self.driver.wait(lambda: len(self.named(name)) >= count)
        self.driver.rest(60)
        return self.named(name)

    def counter(self, name: str) -> int:
        """Ask for one of the device's counters."""
        values = self.do("counters")["values"]
        assert isinstance(values, tuple)
        return values[COUNTERS.index(name)]

    def deafly(self, name: str, **fields: Value) -> Asked:
        """Send a command and lose what the device says to it: the answer and an event."""
        self.driver.deaf = True
        self.driver.lost.clear()
        asked = self.host.ask(name, **fields)
        self.driver.wait(lambda: {ANSWER, EVENT} <= {packet.kind for packet in self.driver.lost_packets()})
        return asked


def dice(seed: int, chance: float) -> Callable[[], bool]:
    """Something that is true by chance, the same with every run."""
    rng = random.Random(seed)
    return lambda: rng.random() < chance
