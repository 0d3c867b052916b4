"""A board on this computer: MicroPython for unix at its prompt on a pty, littlefs in its flash."""

import os
import select
import subprocess
import threading
import tty
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from littlefs import LittleFS

from sabot_flash.install import Kind

UNIX = Kind("MicroPython for unix", "linux", "linux", (1, 25))
SCRIPT = Path(__file__).parent / "on_unix.py"
BLOCK = 4096
BLOCKS = 64


def file_system(image: bytes | None = None, blocks: int = BLOCKS) -> LittleFS:
    """A file system as the board has it: new, or what an image holds."""
    made = LittleFS(
        block_size=BLOCK,
        block_count=blocks,
        prog_size=256,
        read_size=256,
        mount=image is None,
    )
    if image is not None:
        made.context.buffer = bytearray(image)
        made.mount()
    return made


def files_of(image: bytes) -> dict[str, bytes]:
    """Every file of an image, by its path."""
    system = file_system(image)
    found = {}
    for folder, _, names in system.walk("/"):
        for name in names:
            path = f"{folder.rstrip('/')}/{name}"
            with system.open(path, "rb") as file:
                found[path] = file.read()
    return found


@dataclass(frozen=True)
class Operation:
    """One write to the flash, or one erasure."""

    at: int
    data: bytes


class UnixBoard:
    """A MicroPython that begins again whenever it ends, as a board does; the port is its terminal."""

    def __init__(self, micropython: str, folder: Path, blocks: int = BLOCKS) -> None:
        self.image = folder / "flash.bin"
        self.image.write_bytes(bytes(file_system(blocks=blocks).context.buffer))
        self._log = Path(f"{self.image}.log")
        self._python = micropython
        self._ours, self._theirs = os.openpty()
        tty.setraw(self._theirs)
        self.port = os.ttyname(self._theirs)
        self._process: subprocess.Popen[bytes] | None = None
        self._going = True
        self.starts = 0
        self.on_restart: Callable[[], None] = lambda: None
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
            self.starts += 1
            self._process = subprocess.Popen(
                [self._python, "-X", "heapsize=192k", "-i", str(SCRIPT)],
                env={**os.environ, "FLASH": str(self.image)},
                stdin=self._ours,
                stdout=self._ours,
                stderr=self._ours,
            )
            self._process.wait()
            if self._going:
                self.on_restart()

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
        self._process.kill()
        return self.wait_for(b">>> ")

    def operations(self) -> list[Operation]:
        """Every write and erasure since the last time this was asked for."""
        text = self._log.read_bytes()
        self._log.write_bytes(b"")
        found = []
        at = 0
        while at < len(text):
            address = int.from_bytes(text[at + 1 : at + 5], "little")
            size = int.from_bytes(text[at + 5 : at + 9], "little")
            found.append(Operation(address, text[at + 9 : at + 9 + size]))
            at += 9 + size
        return found
