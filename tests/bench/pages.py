"""How soon pages show what the machine tells: from an event on the wire to 20 readers, and to pixels.

The device is in this process and emits 50 events a second, each with a number that the snapshot carries. The
service runs in a process of its own. The reference is a bare Starlette stream that gets the same numbers over
a pipe. Both run at the same time, with the same readers, so that a busy moment slows both.
"""

import re
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.measure import Figure
from tests.serve.served_process import ServedProcess

from sabot_protocol.host.messages import ShoeState, ShufflerState
from sabot_serve.service_client import ServiceClient
from sabot_serve.service_file import find_service
from sabot_simulators.free_port import free_port

READERS = 20
EVENTS_S = 50
SECTION = "pages"
GOAL_US = 100_000.0
MARK_EVERY = 5  # events between two that the dealer's page shows: 300 of them, p99 is not just the worst
OURS = re.compile(rb'"in_shoe":(\d+)')
ECHO = re.compile(rb'"number": (\d+)')
ECHO_PROGRAM = Path(__file__).with_name("sse_echo.py")
LAST_WAIT_S = 5.0
WATCH = """
() => {
  window.marks = [];
  let before = null;
  const look = () => {
    const found = document.querySelector('[data-key="feed"], [data-place="feed"]');
    const now = document.getElementById("path").innerHTML;
    if (now === before) return;
    before = now;
    requestAnimationFrame(() => {  // just before the frame is drawn; the message comes after it
      const drawn = new MessageChannel();
      drawn.port1.onmessage = () => window.marks.push(performance.timeOrigin + performance.now());
      drawn.port2.postMessage(null);
    });
  };
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true, attributes: true});
}
"""


class Readers:
    """Streams of one server; a thread notes when each reader had each number."""

    def __init__(self, port: int, path: str, headers: str, number: "re.Pattern[bytes]") -> None:
        self._select = selectors.DefaultSelector()
        self._number = number
        self.had_s: list[dict[int, float]] = [{} for _ in range(READERS)]
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}\r\n".encode()
        for at in range(READERS):
            to = socket.create_connection(("127.0.0.1", port))
            to.sendall(head)
            self._select.register(to, selectors.EVENT_READ, at)
        self._closing = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._closing:
            for key, _ in self._select.select(0.2):
                to, at = key.fileobj, key.data
                assert isinstance(to, socket.socket)
                data, now = to.recv(262_144), time.monotonic()
                for found in self._number.findall(data):
                    self.had_s[at].setdefault(int(found), now)

    def close(self) -> None:
        self._closing = True
        self._thread.join()
        for key in list(self._select.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._select.close()

    def delays_us(self, sent_s: dict[int, float]) -> list[float]:
        """For each number and reader: until the reader had it, or a newer one."""
        found = []
        for had in self.had_s:
            newest = sorted(had.items())
            at = 0
            for number, sent in sorted(sent_s.items()):
                while at < len(newest) and newest[at][0] < number:
                    at += 1
                if at == len(newest):
                    raise AssertionError(f"a reader never got number {number}")
                found.append((newest[at][1] - sent) * 1e6)
        return found


def emit(served: ServedProcess, name: str, *values: int) -> None:
    """Let the emulated device tell something."""
    device: Any = served.device
    served.on_device(lambda: device._report(name, *values))


def figures(count: int) -> Iterator[Figure]:
    """Delays of so many events: ours, the reference's, and until pixels where a browser is installed."""
    with tempfile.TemporaryDirectory() as folder, ServedProcess(Path(folder)) as served:
        served.start()
        served.wait_up()
        found = find_service(served.files.table_folder(served.url))
        assert found is not None
        local = f"Authorization: Bearer {found.token}\r\n"
        port = free_port()
        echo = subprocess.Popen([sys.executable, str(ECHO_PROGRAM), str(port)], stdin=subprocess.PIPE)
        try:
            _wait_listening(port)
            ours = Readers(served.port, "/api/events/table", local, OURS)
            bare = Readers(port, "/events", "", ECHO)
            with _browser(served, ServiceClient(found).invite()) as page:
                sent_ours, sent_bare, marks = _send(served, echo, count)
                time.sleep(LAST_WAIT_S if count > 100 else 1.0)
                pixels = [] if page is None else page.evaluate("() => window.marks")
            ours.close()
            bare.close()
        finally:
            assert echo.stdin is not None
            echo.stdin.close()
            echo.wait(30)
        yield from _judged(ours.delays_us(sent_ours), bare.delays_us(sent_bare), marks, pixels)


def _judged(
    ours: list[float], bare: list[float], marks: list[float], pixels: list[float]
) -> Iterator[Figure]:
    p50, p99, bare50, bare99 = median(ours), _p99(ours), median(bare), _p99(bare)
    name = f"event to {READERS} readers, {EVENTS_S} a second"
    yield Figure(
        SECTION, name, 1e6 / p50, "bare Starlette SSE echo", 1e6 / bare50, p50 / bare50,
        p50_us=p50, p99_us=p99, latest_us=GOAL_US,
    )  # fmt: skip
    yield Figure(SECTION, "bare Starlette SSE echo", 1e6 / bare50, p50_us=bare50, p99_us=bare99)
    if pixels:
        shown = [
            min((at - mark) * 1000 for at in pixels if at >= mark) for mark in marks if mark <= pixels[-1]
        ]
        p50, p99 = median(shown), _p99(shown)
        name = "event to pixels of the dealer's page"
        yield Figure(
            SECTION, name, 1e6 / p50, "bare Starlette SSE echo", 1e6 / bare50, p50 / bare50,
            p50_us=p50, p99_us=p99, latest_us=GOAL_US,
        )  # fmt: skip


def _p99(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]


def _send(
    served: ServedProcess, echo: "subprocess.Popen[bytes]", count: int
) -> tuple[dict[int, float], dict[int, float], list[float]]:
    """Emit events at their pace; when each was sent, and the marks (UTC in milliseconds) for pixels."""
    assert echo.stdin is not None
    ours: dict[int, float] = {}
    bare: dict[int, float] = {}
    marks: list[float] = []
    began = time.monotonic()
    for number in range(1, count + 1):
        time.sleep(max(0.0, began + number / EVENTS_S - time.monotonic()))
        bare[number] = time.monotonic()
        echo.stdin.write(b"%d\n" % number)
        echo.stdin.flush()
        ours[number] = time.monotonic()
        emit(served, "shoe_changed", ShoeState.UNPROVED, number, 0)
        if number % MARK_EVERY == 0:
            busy = number // MARK_EVERY % 2
            marks.append(time.time() * 1000)
            state = ShufflerState.FEEDING if busy else ShufflerState.IDLE
            emit(served, "shuffler_changed", state, 0)
    return ours, bare, marks


def _wait_listening(port: int) -> None:
    ends = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.05)


class _browser:  # noqa: N801 - used as a function
    """The dealer's page in chromium while the context lasts; None where no browser is installed."""

    def __init__(self, served: ServedProcess, token: str) -> None:
        self._url = f"{served.address}/enter#{token}"
        self._close: Callable[[], None] = lambda: None

    def __enter__(self) -> Any:
        program = shutil.which("chromium")
        try:
            from playwright.sync_api import sync_playwright
        except ImportError:
            return None
        if program is None:
            return None
        playing = sync_playwright().start()
        chromium = playing.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )

        def close() -> None:
            chromium.close()
            playing.stop()

        self._close = close
        page = chromium.new_page(viewport={"width": 1280, "height": 800})
        page.goto(self._url)
        page.wait_for_url("**/dealer")
        page.wait_for_selector("body:not(.waiting)")
        page.evaluate(WATCH)
        return page

    def __exit__(self, *_: object) -> None:
        self._close()
