"""An owner at a device over a perfect cable, whose acknowledgements come only when told to."""

import random
from typing import Any

from sabot_protocol.codec import CODEC
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import Caller, DeviceIdentity, DeviceProtocol, Executor
from sabot_protocol.host_protocol import HostProtocol
from sabot_protocol.key_store import KeyStore
from sabot_protocol.notifications import EventGap, EventReceived, RequestAnswered
from sabot_protocol.record_store import RecordStore
from sabot_protocol.wire_constants import DEVICE

KEY = b"device key of thirty-two bytes!!"
SERIAL = b"SERIAL01"


class Noted(Executor):
    """Does whatever it is told, and keeps a note of it."""

    def __init__(self) -> None:
        self.done: list[tuple[str, tuple[Any, ...]]] = []

    def execute(self, name: str, values: Any, caller: Caller) -> tuple[Any, ...]:
        """Note it."""
        self.done.append((name, tuple(values)))
        return (1, 1, []) if name == "faces" else ()


class Owner:
    """Both ends, and what the host has heard."""

    def __init__(self, attached: bool = True) -> None:
        source = random.Random(1)
        memory = RecordStore()
        KeyStore(memory).set(DEVICE, KEY)
        self.now = 1000
        self.core = Noted()
        identity = DeviceIdentity(SERIAL, "Sabot test", "0.0", 2)
        self.device = DeviceProtocol(identity, memory, self.core, source.randbytes, self.now)
        self.port = DevicePort(self.device)
        self.host_id = b"HOST-ONE"
        self.host = HostProtocol(KEY, CommandNumbers(self.host_id), source.randbytes, SERIAL)
        self._heard: list[Any] = []
        if attached:
            self.reconnect()
            self.acknowledge()
            self.settle()

    @property
    def done(self) -> list[tuple[str, tuple[Any, ...]]]:
        """What the core was told to do."""
        return self.core.done

    def reconnect(self) -> None:
        """A new session."""
        self.host.connect(self.now)
        self.settle()

    def request(self, name: str, *values: Any, by: tuple[int, bytes] | None = None) -> int:
        """Ask, authorised by the person of a slot if that is given; the number of the request."""
        message = CODEC.named(name)
        return self.host.request(message.id, message.pack(values), self.now, by=by)

    def acknowledge(self) -> None:
        """Everything that has come is on disk."""
        self.host.acknowledge(*self.host.position)

    def wait(self, ms: int) -> None:
        """Let time pass."""
        for _ in range(0, ms, 10):
            self.now += 10
            self.settle()

    def settle(self) -> None:
        """Carry bytes both ways until neither end has more to say."""
        for _ in range(100):
            out = self.host.poll(self.now)
            if out:
                self.port.receive(out, self.now)
            back = self.port.poll(self.now)
            if back:
                self.host.receive(back, self.now)
            if not out and not back:
                break
        self._heard += self.host.take_notifications()

    def answered(self, number: int) -> str | None:
        """What a request was answered with: ok or the error's name; None if it was not."""
        for each in self._heard:
            if isinstance(each, RequestAnswered) and each.request_id == number:
                error = CODEC.error(each.status) if each.status else None
                return "ok" if error is None else error.name
        return None

    def events(self) -> list[int]:
        """The numbers of the events that came."""
        return [each.n for each in self._heard if isinstance(each, EventReceived)]

    def gaps(self) -> list[tuple[int | None, int, int]]:
        """Size of each gap, the number before it, and the first number after it."""
        return [
            (each.size, each.after[1], each.before[1]) for each in self._heard if isinstance(each, EventGap)
        ]
