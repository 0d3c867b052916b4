"""MicroPython's raw REPL on a port, by mpremote, with typed errors and bounded waits."""

import base64
import contextlib
import io
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from sabot_driver.errors import NoDevice
from sabot_driver.transports import opening_error
from sabot_flash.errors import FlashError, MpremoteMissing, NoPrompt, NotWritten

BAUD = 115200
READ_S = 5.0
ENTER_S = 5.0
AGAIN_S = 0.3
QUIET_S = (0.2, 1.0, 3.0)  # a board that has said nothing for so long has said all; tried in turn
SETTLE_S = 10.0
CHUNK = 512
HELD_MARK = 0x4005800C  # as firmware/sabot_firmware/boards/rp2040/loader.py has it

Progress = Callable[[int], None]
"""Told how many more bytes have gone over."""


@dataclass(frozen=True, slots=True)
class BoardInfo:
    """The board and its MicroPython."""

    platform: str
    machine: str
    version: tuple[int, ...]
    byte_code: int


@dataclass(frozen=True, slots=True)
class SlotLayout:
    """The slots of a board for an application, and their size in bytes."""

    block: int
    size: int
    names: tuple[str, ...]


class RawRepl:
    """A board in the raw REPL. Only these calls write to its file system."""

    def __init__(self, port: str, seconds: float = 0.0) -> None:
        """``seconds`` is how long to wait for a board that restarts."""
        try:
            from mpremote.transport import TransportError
            from mpremote.transport_serial import SerialTransport
        except ImportError:
            raise MpremoteMissing("flashing a board by its port takes the package mpremote") from None
        self.port = port
        self._seconds = seconds
        self._failed: type[Exception] = TransportError
        self._way: Any = None
        self._opens = SerialTransport

    def __enter__(self) -> "RawRepl":
        ends = time.monotonic() + self._seconds
        while True:
            try:
                self._enter()
            except (NoPrompt, NoDevice):
                if time.monotonic() >= ends:
                    raise
                time.sleep(AGAIN_S)
            else:
                return self

    def _enter(self) -> None:
        import serial

        try:
            with _quietly():
                self._way = self._opens(self.port, BAUD, timeout=READ_S)
        except (serial.SerialException, OSError, ValueError) as error:
            raise opening_error(self.port, error) from error
        except self._failed:
            raise _why_closed(self.port) from None
        try:
            with _quietly():
                for quiet_s in QUIET_S:
                    self._settle(quiet_s)
                    self._way.enter_raw_repl(soft_reset=False, timeout_overall=ENTER_S)
                    if self._understands():
                        return
            raise self._failed("its answers do not fit the questions")
        except (self._failed, OSError) as error:
            self.close()
            raise NoPrompt(f"{self.port}: MicroPython's prompt does not answer ({error})") from error
        except BaseException:
            self.close()
            raise

    def _settle(self, quiet_s: float) -> None:
        """Read what the board still sends, or it would be taken for the answer to a later command."""
        port = self._way.serial
        port.timeout = quiet_s
        ends = time.monotonic() + SETTLE_S
        while port.read(CHUNK) and time.monotonic() < ends:
            pass
        port.timeout = READ_S

    def _understands(self) -> bool:
        """Whether the board's answer matches the command."""
        self._way.use_raw_paste = True
        asked = int.from_bytes(os.urandom(4), "big")
        try:
            return bool(self._way.eval(f"{asked} + 1") == asked + 1)
        except (self._failed, ValueError, SyntaxError):
            return False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the port; the board stays at its prompt."""
        way, self._way = self._way, None
        if way is not None:
            with contextlib.suppress(OSError, self._failed):
                if way.in_raw_repl:
                    way.exit_raw_repl()
            with contextlib.suppress(OSError):
                way.close()

    # -- what it is -----------------------------------------------------------------------------

    def board_info(self) -> BoardInfo:
        """What kind of board this is."""
        with self._doing("asking what it is"):
            self._way.exec("import sys")
            platform, machine, version, code = self._way.eval(
                "(sys.platform, getattr(sys.implementation, '_machine', ''),"
                " tuple(sys.implementation.version[:3]), getattr(sys.implementation, '_mpy', 0) & 0xff)"
            )
        return BoardInfo(platform, machine, tuple(version), code)

    # -- files ----------------------------------------------------------------------------------

    def read(self, path: str) -> bytes | None:
        """A file's bytes; None if there is no such file."""
        with self._doing(f"reading {path}"):
            if not self._way.fs_exists(path):
                return None
            return bytes(self._way.fs_readfile(path, CHUNK))

    def write(self, path: str, data: bytes) -> None:
        """Write a file."""
        with self._doing(f"writing {path}"):
            self._way.fs_writefile(path, data, CHUNK)

    def rename(self, before: str, after: str) -> None:
        """Give a file another's name, in one step; the other is gone."""
        with self._doing(f"renaming {before}"):
            self._way.exec(f"import os\nos.rename({before!r}, {after!r})")

    # -- slots for an application ---------------------------------------------------------------

    def slots(self) -> SlotLayout | None:
        """The board's slots for an application; None if its MicroPython has none."""
        with self._doing("asking for slots"):
            self._way.exec("try:\n import sabot_slots\nexcept ImportError:\n sabot_slots = None")
            told = self._way.eval(
                "sabot_slots and (sabot_slots.BLOCK, sabot_slots.SIZE, sorted(sabot_slots.PLACES))"
            )
        return None if told is None else SlotLayout(told[0], told[1], tuple(told[2]))

    def write_block(self, slot: str, block: int, data: bytes) -> None:
        """Erase one block of a slot and write it."""
        text = base64.b64encode(data).decode()
        with self._doing(f"writing block {block} of slot {slot}"):
            self._way.exec(
                "import binascii, sabot_slots\n"
                f"sabot_slots.write({slot!r}, {block}, binascii.a2b_base64({text!r}))"
            )

    def digest(self, slot: str, size: int) -> bytes:
        """SHA-256 of the first bytes of a slot, as the board's processor reads them."""
        with self._doing(f"reading back slot {slot}"):
            self._way.exec("import sabot_slots")
            return bytes(self._way.eval(f"sabot_slots.digest({slot!r}, {size})"))

    # -- the end --------------------------------------------------------------------------------

    def restart(self) -> None:
        """Start the board anew; its port may vanish for a while.

        The mark of an application that was to leave the prompt alone is cleared: our own Ctrl-C may have come
        before it was looked at.
        """
        with self._doing("restarting"):
            self._way.exec_raw_no_follow(
                f"import time, machine\nmachine.mem32[{HELD_MARK:#x}] = 0\n"
                "time.sleep_ms(100)\nmachine.reset()"
            )
            self._way.in_raw_repl = False
        self.close()

    @contextlib.contextmanager
    def _doing(self, what: str) -> Iterator[None]:
        if self._way is None:
            raise FlashError(f"{self.port}: closed")
        try:
            yield
        except (self._failed, OSError, ValueError, SyntaxError) as error:
            if isinstance(error, FlashError):
                raise
            last = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            raise NotWritten(f"{self.port}: {what} failed: {last}") from error


def _why_closed(port: str) -> Exception:
    """Mpremote does not say why it could not open a port: see for ourselves."""
    import serial

    try:
        serial.serial_for_url(port, BAUD, exclusive=True).close()
    except (serial.SerialException, OSError, ValueError) as error:
        return opening_error(port, error)
    return NoPrompt(f"{port}: it could not be opened")


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Mpremote prints what it did not expect of a prompt; our output is no place for that."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
