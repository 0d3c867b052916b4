"""Installs an application so that a power cut leaves the old one, the new one, or (on a new board) none.

A development board has two slots for an application in its flash. ``/main.py``, which MicroPython starts, is
only a pointer to one of them, with the hash of its contents. The new application is written into the other
slot and read back. Then the new pointer is renamed over the old one, which the board's file system does in
one step. A power cut before that step leaves the old application, a cut after it the new one. The board does
not start a slot whose hash differs from its pointer's.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from sabot_flash.application import Application
from sabot_flash.errors import NoRoom, NotWritten, WrongBoard
from sabot_flash.raw_repl import BoardInfo, RawRepl

POINTER = "/main.py"
NEW_POINTER = "/main.new"

_TEXT = '''"""Which application this board runs. Written by sabot flash: flash again to change it."""

import sabot_slots

sabot_slots.start("{slot}", {size}, "{digest}")
'''
_CALL = re.compile(rb'^sabot_slots\.start\("([a-z])", (\d+), "([0-9a-f]{64})"\)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class BoardType:
    """A kind of board."""

    name: str
    platform: str
    machine: str
    """Stands in the name that MicroPython gives the board."""
    oldest: tuple[int, int]
    """The oldest MicroPython that will do."""
    byte_code: int
    """The version of byte code that its MicroPython runs."""


RP2040 = BoardType("RP2040", "rp2", "RP2040", (1, 25), 6)


@dataclass(frozen=True, slots=True)
class Pointer:
    """What a board starts: a slot, the number of its bytes, and their SHA-256."""

    slot: str
    size: int
    sha256: bytes

    def text(self) -> bytes:
        """As a program of the board."""
        return _TEXT.format(slot=self.slot, size=self.size, digest=self.sha256.hex()).encode()

    @classmethod
    def read(cls, text: bytes | None) -> "Pointer | None":
        """The pointer that a program is; None if it is none of ours."""
        found = None if text is None else _CALL.search(text)
        if found is None:
            return None
        made = cls(found.group(1).decode(), int(found.group(2)), bytes.fromhex(found.group(3).decode()))
        return made if made.text() == text else None


@dataclass(frozen=True, slots=True)
class InstallProgress:
    """How far an installation has come: bytes done and in all, and what is done now."""

    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class InstallResult:
    """What an installation has done."""

    pointer: Pointer
    before: Pointer | None
    """What the board started before."""
    written: int
    """Bytes; 0 if the application was there already."""


def check_board(board_info: BoardInfo, kind: BoardType = RP2040) -> None:
    """WrongBoard if the application is not for this board."""
    if board_info.platform != kind.platform or kind.machine not in board_info.machine:
        raise WrongBoard(f"this is a {board_info.machine or board_info.platform}, not an {kind.name}")
    if board_info.version[:2] < kind.oldest or board_info.byte_code != kind.byte_code:
        told = ".".join(map(str, board_info.version))
        raise WrongBoard(
            f"the board has MicroPython {told} with byte code {board_info.byte_code}; "
            f"{kind.oldest[0]}.{kind.oldest[1]} or newer with byte code {kind.byte_code} is needed"
        )


def install(
    board: RawRepl,
    application: Application,
    tell: Callable[[InstallProgress], None],
    kind: BoardType = RP2040,
) -> InstallResult:
    """Write, read back and switch; the board is not restarted. After a failure the old pointer stays."""
    check_board(board.board_info(), kind)
    slots = board.slots()
    if slots is None:
        raise WrongBoard(
            "this MicroPython has no slots for an application",
            "Flash the one of 'make firmware' first: micropython-rp2040.uf2, with the BOOTSEL button.",
        )
    size = len(application.data)
    if size > slots.size:
        raise NoRoom(f"the application has {size} bytes; a slot on the board has {slots.size}")
    before = Pointer.read(board.read(POINTER))
    tell(InstallProgress("looking", 0, size))
    if before is not None and _is_there(board, before, application):
        tell(InstallProgress("it is there already", size, size))
        return InstallResult(before, before, 0)
    free = [name for name in slots.names if before is None or name != before.slot]
    new = Pointer(free[0], size, application.sha256)
    for at in range(0, size, slots.block):
        data = application.data[at : at + slots.block].ljust(slots.block, b"\xff")
        board.write_block(new.slot, at // slots.block, data)
        tell(InstallProgress("writing", min(at + slots.block, size), size))
    tell(InstallProgress("reading back", size, size))
    if board.digest(new.slot, size) != new.sha256:
        raise NotWritten(f"slot {new.slot}: the bytes read back differ from those written")
    _switch(board, new)
    return InstallResult(new, before, size)


def _is_there(board: RawRepl, before: Pointer, application: Application) -> bool:
    size, sha256 = len(application.data), application.sha256
    return (before.size, before.sha256) == (size, sha256) and board.digest(before.slot, size) == sha256


def _switch(board: RawRepl, new: Pointer) -> None:
    board.write(NEW_POINTER, new.text())
    if board.read(NEW_POINTER) != new.text():
        raise NotWritten("the new pointer read back differs from the one written")
    board.rename(NEW_POINTER, POINTER)
    if board.read(POINTER) != new.text():
        raise NotWritten("the board does not point to the new application")
