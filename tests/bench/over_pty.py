"""Requests and answers over a pty: Sabot's whole stack against bare pyserial, all on one core."""

import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import serial
from tests.bench import ends
from tests.bench.far_end import ANSWER, REQUEST, now_ms, open_port, read
from tests.bench.measure import Figure, Run, take_turns

from sabot_protocol import frame
from sabot_protocol.host.messages import Status, StatusReport
from sabot_protocol.host_protocol import HostProtocol
from sabot_protocol.notifications import RequestAnswered

ROOT = Path(__file__).parent.parent.parent
SECTION = "request and answer over a pty"


class Silent(Exception):
    """The far end stopped answering."""


@contextmanager
def far_end(kind: str, window: int) -> Iterator[serial.Serial]:
    """The near port of a pty whose other side a process of its own serves; both are gone afterwards."""
    master, slave = pty.openpty()
    path = os.ttyname(slave)
    port = open_port(path)
    os.close(slave)
    command = [sys.executable, "-m", "tests.bench.far_end", kind, str(window), str(master), path]
    process = subprocess.Popen(command, pass_fds=(master,), cwd=ROOT)
    os.close(master)
    try:
        yield port
    finally:
        port.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def hear(port: serial.Serial) -> bytes:
    """What has come; Silent if nothing does."""
    data = read(port)
    if not data:
        raise Silent("nothing came in %s s" % port.timeout)
    return data


@contextmanager
def bare_echo() -> Iterator[Run]:
    """Messages of the size of Sabot's answer, raw, one at a time, through a bare echo."""
    message = frame.encode(ANSWER)
    with far_end("echo", 1) as port:

        def run(count: int) -> float:
            began = time.perf_counter()
            for _ in range(count):
                port.write(message)
                left = len(message)
                while left:
                    left -= len(hear(port))
            return time.perf_counter() - began

        yield run


@contextmanager
def framed(outstanding: int) -> Iterator[Run]:
    """Bare framed pyserial: a frame as long as Sabot's request is answered by one as long as its answer."""
    with far_end("framed", 1) as port:

        def run(count: int) -> float:
            decoder = frame.Decoder()
            began = time.perf_counter()
            sent = min(outstanding, count)
            for _ in range(sent):
                port.write(frame.encode(REQUEST))
            answered = 0
            while answered < count:
                for payload, _ in decoder.feed(hear(port)):
                    if payload is None:
                        raise Silent("a frame was damaged")
                    answered += 1
                    if sent < count:
                        port.write(frame.encode(REQUEST))
                        sent += 1
            return time.perf_counter() - began

        yield run


@contextmanager
def framed_at_once(outstanding: int) -> Iterator[Run]:
    """The same, but each end puts all it has to say in one write, as Sabot does."""
    with far_end("framed, written at once", 1) as port:

        def run(count: int) -> float:
            decoder = frame.Decoder()
            began = time.perf_counter()
            sent = answered = 0
            while True:
                out = []
                while sent < count and sent - answered < outstanding:
                    out.append(frame.encode(REQUEST))
                    sent += 1
                if out:
                    port.write(b"".join(out))
                for payload, _ in decoder.feed(hear(port)):
                    if payload is None:
                        raise Silent("a frame was damaged")
                    answered += 1
                if answered == count:
                    return time.perf_counter() - began

        yield run


@contextmanager
def sabot(window: int) -> Iterator[Run]:
    """Sabot's whole stack: typed requests and answers through both ends; the device has this window."""
    with far_end("sabot", window) as port:
        host = ends.host_protocol()

        def run(count: int) -> float:
            start_session(host, port)
            began = time.perf_counter()
            now = now_ms()
            sent = answered = 0
            while True:
                for happening in host.take_notifications():
                    if isinstance(happening, RequestAnswered):
                        StatusReport.unpack(happening.body)
                        answered += 1
                if answered == count:
                    return time.perf_counter() - began
                while sent < count and sent - answered < window:
                    host.request(Status.ID, Status().pack(), now)
                    sent += 1
                out = host.poll(now)
                if out:
                    port.write(out)
                data = hear(port)
                now = now_ms()
                host.receive(data, now)

        yield run


def start_session(host: HostProtocol, port: serial.Serial) -> None:
    """A new session, because one that nobody polls ends by itself while another contender runs."""
    host.connect(now_ms())
    while not host.up:
        port.write(host.poll(now_ms()))
        host.receive(hear(port), now_ms())
    port.write(host.poll(now_ms()))


def figures(count: int, rounds: int) -> Iterator[Figure]:
    """Sabot with windows of 1 and 16 against itself and against what pyserial does with less around it."""
    parts = {
        "Sabot, window 1": sabot(1),
        "Sabot, window 16": sabot(16),
        "bare pyserial echo, one at a time": bare_echo(),
        "bare frames, 1 outstanding": framed(1),
        "bare frames, 16 outstanding": framed(16),
        "bare frames, 16 in one write": framed_at_once(16),
    }
    with ExitStack() as stack:
        rates = take_turns({name: stack.enter_context(part) for name, part in parts.items()}, count, rounds)
    yield rates.figure(SECTION, "Sabot, window 16", "Sabot, window 1", 4.0)
    yield rates.figure(SECTION, "Sabot, window 16", "bare frames, 16 outstanding", 0.6)
    yield rates.figure(SECTION, "Sabot, window 16", "bare frames, 16 in one write")
    yield rates.figure(SECTION, "Sabot, window 16", "bare pyserial echo, one at a time")
    yield rates.figure(SECTION, "Sabot, window 1", "bare frames, 1 outstanding")
    yield rates.figure(SECTION, "Sabot, window 1", "bare pyserial echo, one at a time")
