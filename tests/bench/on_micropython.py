"""Starts ``micropython_bench`` on MicroPython, with a heap of a board's kind, and reads what it prints."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.bench.measure import Figure

from sabot_simulators.micropython import find_micropython

ROOT = Path(__file__).parent.parent.parent
HEAP = "1m"
ALLOWED = 1024  # bytes for an authenticated frame, in each direction
NORMAL = 40  # bytes of fields up to which a frame is an ordinary one; a longer one is only shown

NAMES = {
    "encode": "encoded",
    "decode": "decoded",
    "send": "sent",
    "receive": "received",
    "exchange": "through both ends",
}


def figures(frames: int) -> Iterator[Figure]:
    """Frames a second and bytes allocated a frame; nothing where there is no MicroPython."""
    micropython = find_micropython()
    if micropython is None:
        return
    ran = subprocess.run(
        [micropython, "-X", f"heapsize={HEAP}", "tests/bench/micropython_bench.py", str(frames)],
        cwd=ROOT,
        env={**os.environ, "MICROPYPATH": os.pathsep.join(["protocol", ".frozen"])},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    for line in ran.stdout.splitlines():
        name, message, size, rate, allocated = line.split()
        is_limited = name in ("send", "receive") and int(size) <= NORMAL
        yield Figure(
            "on MicroPython",
            f"{message} ({size} B) {NAMES[name]}",
            float(rate),
            allocated=float(allocated),
            allowed=ALLOWED if is_limited else None,
        )
