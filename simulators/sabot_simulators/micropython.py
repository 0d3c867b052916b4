"""Where MicroPython is on this computer."""

import os
import shutil
import sys
from pathlib import Path


def find_micropython() -> str | None:
    """MicroPython: named by MICROPYTHON, beside this Python, or on PATH; None if there is none."""
    beside = Path(sys.executable).parent / "micropython"
    return os.environ.get("MICROPYTHON") or (str(beside) if beside.exists() else shutil.which("micropython"))
