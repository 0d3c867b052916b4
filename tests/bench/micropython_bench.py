"""Frames a second and bytes allocated a frame, on MicroPython and on CPython.

``micropython tests/bench/micropython_bench.py FRAMES`` prints a line for each thing measured: its name, the
message and the size of its fields, frames a second, bytes allocated a frame (``-`` where nobody counts them).
Nothing is collected while it counts, so what is allocated and dropped at once is in the figure too.
"""

import gc
import sys
import time

from sabot_protocol import frame
from sabot_protocol.codec import Codec
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import DeviceIdentity, DeviceProtocol, Executor
from sabot_protocol.host_protocol import HostProtocol
from sabot_protocol.key_store import KeyStore
from sabot_protocol.notifications import RequestAnswered
from sabot_protocol.record_store import RecordStore
from sabot_protocol.schema import MESSAGES
from sabot_protocol.session import Session
from sabot_protocol.wire_constants import DEVICE, REQUEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

KEY = bytes(range(32))
TRANSCRIPT = bytes(range(100, 132))
SERIAL = b"SABOT001"
SIZES = (32, 200)
WINDOW = 16
COUNTED = 5  # steps over which allocations are counted; they are alike


def probe(id: int, name: str, answer: str, kind: str, size: int) -> "tuple[object, ...]":
    """A message like ``set_key``: a number and bytes of fixed size, ``size`` bytes in all."""
    fields = (("slot", "u32", 0, 0xFFFFFFFF), ("wrapped", "bytes", size - 4))
    return (id, name, kind, answer, "any", fields)


# The schema has no message of just these sizes, so this codec has them besides.
CODEC = Codec(
    MESSAGES
    + (
        probe(0x7B, "probe_32", "probed_32", "query", 32),
        probe(0x7C, "probed_32", "", "answer", 32),
        probe(0x7D, "probe_200", "probed_200", "query", 200),
        probe(0x7E, "probed_200", "", "answer", 200),
    )
)


def probe_values(size: int) -> "tuple[int, bytes]":
    """Values that take ``size`` bytes, with zeros among them as real messages have."""
    return 123456, bytes([index * 7 & 255 for index in range(size - 4)])


# Authenticated: made-up messages of both sizes, and real ones, because what a message allocates depends on
# its fields as much as on its size: text, blobs and arrays cost more than numbers.
AUTHENTICATED = (
    ("probe_32", probe_values(32)),
    ("status_report", (60, 1800000000, 1, 1, 3, 0, 1, 77, 2)),
    ("set_key", (5, 4, 4711, bytes(range(32)))),
    ("log_is", (1, 2, bytes(range(23)))),
    ("counters_are", ((0, 1, 60000, 4, 5, 6, 7),)),
    ("fault_raised", (3, 3, 2, "Open the shuffler door. ")),
    ("probe_200", probe_values(200)),
)


class Echo(Executor):
    """Answers a probe with its own values."""

    def execute(self, name: str, values: tuple, caller: object) -> tuple:  # type: ignore[type-arg]
        return values


def measure(step: "Callable[[], object]", steps: int, frames_a_step: int = 1) -> "tuple[float, float | None]":
    """Frames a second over so many steps, garbage collected as usual; and bytes a frame, over a few."""
    step()  # what is prepared once is not counted
    allocated = None
    few = min(steps, max(1, COUNTED // frames_a_step))
    if hasattr(gc, "mem_alloc"):
        gc.collect()
        gc.disable()
        before = gc.mem_alloc()
        for _ in range(few):
            step()
        allocated = (gc.mem_alloc() - before) / (few * frames_a_step)
        gc.enable()
    began = time.time_ns()
    for _ in range(steps - few):
        step()
    took_ns = time.time_ns() - began
    return (steps - few) * frames_a_step * 1e9 / max(took_ns, 1), allocated


class Bench:
    """Everything measured for one message."""

    def __init__(self, name: str, values: "tuple[object, ...]") -> None:
        self.probe = CODEC.named(name)
        self.values = values
        self.body = self.probe.pack(self.values)
        self.host = Session(KEY, TRANSCRIPT, True)
        self.device = Session(KEY, TRANSCRIPT, False)
        self.decoder = frame.Decoder()
        self.frame = bytes(frame.encode(self.body))
        self.sealed = bytes(self.send())

    def encode(self) -> None:
        """Fields to a frame, not authenticated."""
        frame.encode(self.body)

    def decode(self) -> None:
        """A frame to fields, not authenticated."""
        self.decoder.append(self.frame)
        while self.decoder.next_frame():
            pass

    def send(self) -> "bytes | bytearray":
        """Values to an authenticated frame."""
        body = self.probe.pack(self.values)
        return frame.encode(self.host.seal(1, 2, 0, REQUEST, self.probe.id, 0, 1000, body))

    def receive(self) -> None:
        """An authenticated frame to values."""
        decoder = self.decoder
        decoder.append(self.sealed)
        self.device.received = 0  # or it would be refused as a repetition
        while decoder.next_frame():
            assert self.device.open(decoder.payload)
            self.probe.unpack(self.device.body)


class Ends:
    """A host and a device with a session, and a full window of requests between them."""

    def __init__(self, size: int) -> None:
        self.probe = CODEC.named("probe_%d" % size)
        self.probed = CODEC.named("probed_%d" % size)
        self.body = self.probe.pack(probe_values(size))
        memory = RecordStore()
        KeyStore(memory).set(DEVICE, KEY)
        identity = DeviceIdentity(SERIAL, "Sabot bench", "0")
        self.port = DevicePort(
            DeviceProtocol(identity, memory, Echo(), some_bytes, 0, window=WINDOW, codec=CODEC)
        )
        self.host = HostProtocol(KEY, CommandNumbers(b"TABLE-PC"), some_bytes, SERIAL, codec=CODEC)
        self.host.connect(0)
        while not self.host.up:
            self.exchange()

    def exchange(self) -> int:
        """What each has to say, and how many requests that answered."""
        self.port.receive(self.host.poll(0), 0)
        self.host.receive(self.port.poll(0), 0)
        answered = 0
        for happening in self.host.take_notifications():
            if isinstance(happening, RequestAnswered):
                self.probed.unpack(happening.body)
                answered += 1
        return answered

    def window_full(self) -> None:
        """A window of requests, and their answers."""
        for _ in range(WINDOW):
            self.host.request(self.probe.id, self.body, 0)
        answered = 0
        while answered < WINDOW:
            answered += self.exchange()


def some_bytes(size: int) -> bytes:
    """Nonces need not be random here."""
    return bytes([index * 37 + size & 255 for index in range(size)])


def say(name: str, message: str, size: int, figures: "tuple[float, float | None]") -> None:
    """Print one figure."""
    rate, allocated = figures
    shown = "-" if allocated is None else "%.0f" % allocated
    sys.stdout.write("%s %s %d %.0f %s\n" % (name, message, size, rate, shown))


def main(frames: int) -> None:
    """Measure everything, with so many frames each."""
    for size in SIZES:
        name = "probe_%d" % size
        bench = Bench(name, probe_values(size))
        say("encode", name, size, measure(bench.encode, frames))
        say("decode", name, size, measure(bench.decode, frames))
        ends = Ends(size)
        windows = max(2, frames // (2 * WINDOW))
        say("exchange", name, size, measure(ends.window_full, windows, 2 * WINDOW))
    for name, values in AUTHENTICATED:
        bench = Bench(name, values)
        say("send", name, len(bench.body), measure(bench.send, frames))
        say("receive", name, len(bench.body), measure(bench.receive, frames))


if __name__ == "__main__":
    main(int(sys.argv[1]))
