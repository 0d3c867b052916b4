"""``make serve-memory``: memory of the service over hours of a served table, in its machine's time.

Dealer and floor act at one page as fast as the machine goes; twenty readers follow. Device and pages are in
this process, the service is alone in its own. Readers but one only take what is sent.
"""

import argparse
import selectors
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.serve.acting_page import ActingPage, LookingPage
from tests.serve.memory_slope import slope
from tests.serve.served_process import ServedProcess

from sabot_serve.service_file import find_service
from sabot_table.ruleset import load
from sabot_table.wager_acceptance import every_wager

READERS = 20
SAMPLES_AN_HOUR = 12
MOST_KB_AN_HOUR = 128.0  # 1 MB in a shift of eight hours
PATIENCE_S = 600.0


def resident_kb(pid: int) -> int:
    """The memory that a process has."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise ValueError("this system does not tell")


class DrainingReaders:
    """Streams that a thread reads and throws away."""

    def __init__(self, port: int, token: str, count: int) -> None:
        self._select = selectors.DefaultSelector()
        head = (
            f"GET /api/events/table HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Authorization: Bearer {token}\r\n\r\n"
        )
        for _ in range(count):
            to = socket.create_connection(("127.0.0.1", port))
            to.sendall(head.encode())
            self._select.register(to, selectors.EVENT_READ)
        self.open = count
        self._closing = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._closing:
            for key, _ in self._select.select(0.5):
                to = key.fileobj
                assert isinstance(to, socket.socket)
                if not to.recv(65536):
                    self._select.unregister(to)
                    to.close()
                    self.open -= 1

    def close(self) -> None:
        self._closing = True
        self._thread.join()
        for key in list(self._select.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._select.close()


def run(
    home: Path, hours: float, samples_an_hour: int, told: Callable[[float, float], None]
) -> tuple[list[tuple[float, float]], int]:
    """Serve so many hours of the device's time; memory in kB by hours, and how many rounds were played."""
    samples: list[tuple[float, float]] = []
    with ServedProcess(home) as served:
        served.start()
        served.wait_up()
        assert served.process is not None
        found = find_service(served.files.table_folder(served.url))
        assert found is not None
        page = LookingPage(served)
        readers = DrainingReaders(served.port, found.token, READERS - 1)
        wagers = {
            seat: made for seat, made in every_wager(load("md-three-card-baccarat")).items() if seat < 7
        }
        acting = ActingPage(page, wagers)
        try:
            began_us, moved = served.device.now_us, time.monotonic()
            while not samples or samples[-1][0] < hours:
                time.sleep(0.2)
                for each in (acting, page):
                    if each.problem is not None:
                        raise AssertionError("a page failed") from each.problem
                assert readers.open == READERS - 1, "a reader was dropped"
                at = (served.device.now_us - began_us) / 3.6e9  # hours that the machine has worked
                if not samples or at >= samples[-1][0] + 1 / samples_an_hour:
                    samples.append((at, float(resident_kb(served.process.pid))))
                    told(*samples[-1])
                    moved = time.monotonic()
                assert time.monotonic() < moved + PATIENCE_S, "the table stands"
        finally:
            acting.close()
            readers.close()
            page.close()
        return samples, max(page.rounds, default=0)


def _tell(hours: float, kb: float) -> None:
    sys.stdout.write(f"{hours:5.2f} h  {kb / 1024:6.2f} MB\n")
    sys.stdout.flush()


def main() -> None:
    """Run, print, and fail if memory grows."""
    parser = argparse.ArgumentParser(prog="python -m tests.serve.memory_hours", description=__doc__)
    parser.add_argument("--hours", type=float, default=8.0)
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        samples, rounds = run(Path(folder), given.hours, SAMPLES_AN_HOUR, _tell)
    found = slope(samples)
    sys.stdout.write(
        f"{samples[-1][0]:.1f} hours of the device, {rounds} rounds, {READERS} readers, "
        f"{time.monotonic() - began:.0f} s: {samples[0][1] / 1024:.1f} MB at the beginning, "
        f"{samples[-1][1] / 1024:.1f} MB at the end, {found:.0f} kB an hour (allowed {MOST_KB_AN_HOUR:.0f})\n"
    )
    sys.exit(found > MOST_KB_AN_HOUR)


if __name__ == "__main__":
    main()
