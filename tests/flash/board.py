"""A board on this computer: MicroPython for unix at its prompt on a pty, littlefs in its flash."""

import os
import select
import subprocess
import threading
import tty
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from littlefs import LittleFS

from sabot_flash.install import BoardType
from sabot_image_build.build import DEVELOPMENT_MODULES

UNIX = BoardType("MicroPython for unix", "linux", "linux", (1, 25), 6)
SCRIPT = Path(__file__).parent / "on_unix.py"
BLOCK = 4096
FILES = 640 * 1024
PLACE = 256 * 1024
PLACES = {"a": FILES, "b": FILES + PLACE}


def new_flash() -> bytes:
    """The flash of a new board: no files, nothing in its places."""
    return _file_system(None) + b"\xff" * (2 * PLACE)


def _mounted(image: bytes | None) -> LittleFS:
    made = LittleFS(
        block_size=BLOCK, block_count=FILES // BLOCK, prog_size=256, read_size=256, mount=image is None
    )
    if image is not None:
        made.context.buffer = bytearray(image[:FILES])
        made.mount()
    return made


def _file_system(image: bytes | None) -> bytes:
    return bytes(_mounted(image).context.buffer)


def file_in(image: bytes, path: str) -> bytes | None:
    """A file of a board's flash; None if there is none."""
    system = _mounted(image)
    try:
        with system.open(path, "rb") as file:
            return bytes(file.read())
    except FileNotFoundError:
        return None


def place_in(image: bytes, slot: str, size: int) -> bytes:
    """The first bytes of a place of a board's flash."""
    return image[PLACES[slot] : PLACES[slot] + size]


@dataclass(frozen=True)
class Operation:
    """One write to the flash, or one erasure."""

    at: int
    data: bytes


class UnixBoard:
    """A MicroPython that begins again whenever it ends, as a board does; the port is its terminal."""

    def __init__(self, micropython: str, folder: Path) -> None:
        self.image = folder / "flash.bin"
        self.image.write_bytes(new_flash())
        self._log = Path(f"{self.image}.log")
        self._python = micropython
        self._ours, self._theirs = os.openpty()
        tty.setraw(self._theirs)
        self.port = os.ttyname(self._theirs)
        self._process: subprocess.Popen[bytes] | None = None
        self._going = True
        self._power = threading.Event()
        self._power.set()
        self.starts = 0
        self._thread = threading.Thread(target=self._live, daemon=True)

    def __enter__(self) -> "UnixBoard":
        self._thread.start()
        self.wait_for(b">>> ")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._going = False
        if self._process is not None:
            self._process.kill()
        self._thread.join(10)
        os.close(self._theirs)
        os.close(self._ours)

    def _live(self) -> None:
        while self._going:
            self._power.wait()
            self.starts += 1
            self._process = subprocess.Popen(
                [self._python, "-X", "heapsize=192k", "-i", str(SCRIPT)],
                env={**os.environ, "FLASH": str(self.image), "MODULES": str(DEVELOPMENT_MODULES)},
                stdin=self._ours,
                stdout=self._ours,
                stderr=self._ours,
            )
            self._process.wait()

    def wait_for(self, text: bytes, seconds: float = 20.0) -> bytes:
        """What the board says up to a text; nobody else may have the port open."""
        said = b""
        while not said.endswith(text):
            if not select.select([self._theirs], [], [], seconds)[0]:
                raise TimeoutError(f"the board only said {said!r}")
            said += os.read(self._theirs, 1)
        return said

    def power_cycle(self) -> bytes:
        """Switch it off and on; what it says until its prompt is there."""
        assert self._process is not None
        self._power.clear()
        self._process.kill()
        self._process.wait()
        while select.select([self._theirs], [], [], 0)[0]:
            os.read(self._theirs, 1024)  # what it said before
        self._power.set()
        return self.wait_for(b">>> ")

    def operations(self) -> list[Operation]:
        """Every write and erasure since the last time this was asked for."""
        text = self._log.read_bytes()
        self._log.write_bytes(b"")
        found = []
        at = 0
        while at < len(text):
            address = int.from_bytes(text[at : at + 4], "little")
            size = int.from_bytes(text[at + 4 : at + 8], "little")
            found.append(Operation(address, text[at + 8 : at + 8 + size]))
            at += 8 + size
        return found
