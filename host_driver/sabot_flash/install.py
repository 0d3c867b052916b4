"""Writing an application onto a board so that it is always the old one, the new one, or none.

Each application has a folder of its own. ``/main.py``, which MicroPython starts, is only a pointer to one of
them. The new one is written beside the old one and read back; then a new pointer takes the old one's name in
one step, which the board's file system does wholly or not at all. A cut before that leaves the old one (or
none, on a new board), a cut after it the new one.
"""

import hashlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from sabot_flash.application import SLOT, Application
from sabot_flash.errors import NoRoom, NotWritten, WrongBoard
from sabot_flash.prompt import About, Prompt

POINTER = "/main.py"
NEW_POINTER = "/main.new"
FORMER = ("sabot_firmware", "sabot_protocol")  # where a file-system image lays them
ROOM_BESIDE = 8  # blocks for folders and the pointer

_TEXT = '''"""Which application this board runs. Written by sabot flash: flash again to change it."""

import sys

sys.path.clear()
sys.path.extend(["/{slot}", ".frozen"])
import main
'''
Tell = Callable[[str, int], None]
"""Told which file is at work, and how many bytes are done."""

_SLOT = re.compile(rf'"/({SLOT}[0-9a-f-]+)"')


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of board."""

    name: str
    platform: str
    machine: str
    """Stands in the name that MicroPython gives the board."""
    oldest: tuple[int, int]
    """The oldest MicroPython that will do."""


RP2040 = Kind("RP2040", "rp2", "RP2040", (1, 25))


@dataclass(frozen=True, slots=True)
class Step:
    """How far an installation has come: bytes done and in all, and what is done now."""

    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Installed:
    """What an installation has done."""

    slot: str
    before: str | None
    """The folder of the application that ran before."""
    written: int
    """Bytes; 0 if the application was there already."""


def pointer(slot: str) -> bytes:
    """The text of a pointer."""
    return _TEXT.format(slot=slot).encode()


def pointed(text: bytes | None) -> str | None:
    """The folder that a pointer names; None if it is none of ours."""
    if text is None:
        return None
    found = _SLOT.search(text.decode("utf-8", "replace"))
    return found.group(1) if found is not None and text == pointer(found.group(1)) else None


def check_kind(about: About, application: Application, kind: Kind = RP2040) -> None:
    """WrongBoard if the application is not for this board."""
    if about.platform != kind.platform or kind.machine not in about.machine:
        raise WrongBoard(f"this is a {about.machine or about.platform}, not an {kind.name}")
    if about.version[:2] < kind.oldest:
        told = ".".join(map(str, about.version))
        raise WrongBoard(f"the board has MicroPython {told}; {kind.oldest[0]}.{kind.oldest[1]} is needed")
    if application.byte_codes - {about.byte_code}:
        made = ", ".join(map(str, sorted(application.byte_codes)))
        raise WrongBoard(f"the board reads byte code {about.byte_code}; the application is byte code {made}")


def install(
    board: Prompt, application: Application, tell: Callable[[Step], None], kind: Kind = RP2040
) -> Installed:
    """Write, read back and switch; the board is not restarted. Whatever fails leaves the old pointer."""
    check_kind(board.about(), application, kind)
    total = 2 * application.size
    before = pointed(board.read(POINTER))
    tell(Step("looking", 0, total))
    _tidy(board, before)
    slot = application.slot
    if before == slot:
        if _is_whole(board, slot, application):
            tell(Step("it is there already", total, total))
            return Installed(slot, before, 0)
        slot += "-2"  # what is there is damaged, and stays until the new one is whole
    _check_room(board, application)
    _write(board, slot, application, lambda name, done: tell(Step(f"writing {name}", done, total)))
    wrong = _differences(
        board,
        slot,
        application,
        lambda name, done: tell(Step(f"reading back {name}", application.size + done, total)),
    )
    if wrong:
        raise NotWritten(f"{wrong[0]} was read back otherwise than it was written")
    tell(Step("switching", total, total))
    _switch(board, slot)
    return Installed(slot, before, application.size)


def _tidy(board: Prompt, current: str | None) -> None:
    """Remove what earlier flashings left and nothing points to."""
    for name in board.listing("/"):
        left_over = name.startswith(SLOT) and name != current
        if left_over or "/" + name == NEW_POINTER or (current is not None and name in FORMER):
            board.remove("/" + name)


def _check_room(board: Prompt, application: Application) -> None:
    block, free = board.room()
    needed = sum(math.ceil(len(data) / block) for data in application.files.values())
    needed += 2 * (len(application.folders) + 1) + ROOM_BESIDE
    if needed > free:
        raise NoRoom(f"the application takes {needed} blocks of {block} bytes; {free} are free")


def _write(board: Prompt, slot: str, application: Application, tell: Tell) -> None:
    board.make_folder(f"/{slot}")
    for folder in application.folders:
        board.make_folder(f"/{slot}/{folder}")
    done = 0
    for name, data in sorted(application.files.items()):

        def more(written: int, name: str = name) -> None:
            nonlocal done
            done += written
            tell(name, done)

        board.write(f"/{slot}/{name}", data, more)


def _is_whole(board: Prompt, slot: str, application: Application) -> bool:
    """Whether a folder holds this application and nothing else."""
    return not _differences(board, slot, application, lambda name, done: None)


def _switch(board: Prompt, slot: str) -> None:
    text = pointer(slot)
    board.write(NEW_POINTER, text)
    if board.read(NEW_POINTER) != text:
        raise NotWritten("the new pointer was read back otherwise than it was written")
    board.rename(NEW_POINTER, POINTER)
    if board.read(POINTER) != text:
        raise NotWritten("the board does not point to the new application")


def _differences(board: Prompt, slot: str, application: Application, tell: Tell) -> list[str]:
    """The names of files that are not as they should be, by listing the folder and hashing each."""
    there = _all_files(board, slot)
    if there is None:
        return [slot]
    wanted = application.files
    wrong = sorted(there.keys() ^ wanted.keys())
    done = 0
    for name, data in sorted(wanted.items()):
        if name not in there:
            continue
        digest = hashlib.sha256(data).digest()
        if there[name] != len(data) or board.digest(f"/{slot}/{name}") != digest:
            wrong.append(name)
        done += len(data)
        tell(name, done)
    return wrong


def _all_files(board: Prompt, slot: str) -> dict[str, int] | None:
    """Every file below a folder with its size; None if there is no such folder."""
    if board.listing("/").get(slot, 0) is not None:
        return None
    found: dict[str, int] = {}
    folders = [""]
    while folders:
        below = folders.pop()
        for name, size in board.listing(f"/{slot}/{below}".rstrip("/")).items():
            if size is None:
                folders.append(f"{below}{name}/")
            else:
                found[below + name] = size
    return found
