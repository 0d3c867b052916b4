"""An application goes onto a board by mpremote's own machinery: real MicroPython, real littlefs.

A power cut is looked at after every single write and erasure of the flash, and in the midst of each: the
board boots the old application, the new one, or says that it has none, and never anything else.
"""

import hashlib
import os
import tty
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.flash.applications import NEW, OLD, application, boots
from tests.flash.board import PLACE, UNIX, Operation, UnixBoard, file_in, place_in

from sabot_driver.errors import NoDevice
from sabot_flash import install as installing
from sabot_flash import raw_repl as prompts
from sabot_flash.application import Application
from sabot_flash.errors import BadImage, NoApplication, NoPrompt, NoRoom, NotWritten, WrongBoard
from sabot_flash.install import NEW_POINTER, POINTER, RP2040, InstallProgress, InstallResult, Pointer, install
from sabot_flash.raw_repl import BoardInfo, RawRepl

pytestmark = pytest.mark.slow


def flash(board: UnixBoard, what: Application, steps: list[InstallProgress] | None = None) -> InstallResult:
    """Install and restart."""
    with RawRepl(board.port) as prompt:
        done = install(prompt, what, (steps if steps is not None else []).append, UNIX)
        prompt.restart()
    return done


# -- what it does -------------------------------------------------------------------------------------


def test_an_application_is_written_read_back_switched_to_and_started(board: UnixBoard) -> None:
    steps: list[InstallProgress] = []
    done = flash(board, OLD, steps)
    assert boots(board) == b"application old old"
    assert done == InstallResult(Pointer("a", len(OLD.data), OLD.sha256), None, len(OLD.data))
    image = board.image.read_bytes()
    assert file_in(image, POINTER) == done.pointer.text()
    assert file_in(image, NEW_POINTER) is None
    assert place_in(image, "a", len(OLD.data)) == OLD.data
    assert [each.done for each in steps] == sorted(each.done for each in steps)
    assert steps[-1].done == steps[-1].total == len(OLD.data)


def test_each_goes_into_the_place_that_is_not_in_use(board: UnixBoard) -> None:
    for number, each in enumerate((OLD, NEW, application("third"))):
        done = flash(board, each)
        name = each.components[0].version.encode()
        assert boots(board) == b"application %s %s" % (name, name)
        assert done.pointer.slot == "aba"[number]
        assert done.before is None or done.before.slot == "xab"[number]


def test_what_is_there_already_is_not_written_again(board: UnixBoard) -> None:
    flash(board, OLD)
    boots(board)
    board.operations()
    assert flash(board, OLD).written == 0
    assert board.operations() == []
    assert boots(board) == b"application old old"


def test_what_is_there_but_damaged_is_not_started_and_is_replaced(board: UnixBoard) -> None:
    flash(board, OLD)
    boots(board)
    image = bytearray(board.image.read_bytes())
    image[640 * 1024 + 9000] ^= 1
    board.image.write_bytes(image)
    assert b"no application" in board.power_cycle()
    assert flash(board, OLD).pointer.slot == "b"
    assert boots(board) == b"application old old"


def test_another_program_of_the_board_gives_way(board: UnixBoard) -> None:
    with RawRepl(board.port) as prompt:
        prompt.write("/main.py", b"print('something else')\n")
    assert b"something else" in board.power_cycle()
    assert flash(board, OLD).before is None
    assert boots(board) == b"application old old"


# -- what it refuses ------------------------------------------------------------------------------------


def test_another_kind_of_board_is_refused_before_anything_is_written(board: UnixBoard) -> None:
    with RawRepl(board.port) as prompt, pytest.raises(WrongBoard, match="not an RP2040"):
        install(prompt, NEW, lambda step: None)
    assert board.operations() == []


def test_a_micropython_without_places_is_refused(board: UnixBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    with RawRepl(board.port) as prompt:
        prompt._way.exec("import sys\ndel sys.modules['sabot_slots']")
        with pytest.raises(WrongBoard, match="no slots"):
            install(prompt, NEW, lambda step: None, UNIX)
    assert board.operations() == []


@pytest.mark.parametrize(
    ("about", "why"),
    [
        (BoardInfo("rp2", "Raspberry Pi Pico 2 with RP2350", (1, 25, 0), 6), "not an RP2040"),
        (BoardInfo("esp32", "Generic with RP2040", (1, 25, 0), 6), "not an RP2040"),
        (BoardInfo("rp2", "Raspberry Pi Pico with RP2040", (1, 24, 1), 6), "MicroPython 1.24.1"),
        (BoardInfo("rp2", "Raspberry Pi Pico with RP2040", (1, 25, 0), 5), "byte code 5"),
    ],
)
def test_what_the_application_is_not_for(about: BoardInfo, why: str) -> None:
    with pytest.raises(WrongBoard, match=why):
        installing.check_board(about, RP2040)
    installing.check_board(BoardInfo("rp2", "Raspberry Pi Pico with RP2040", (1, 26, 0), 6), RP2040)


def test_an_application_that_has_no_room_is_refused_before_it_is_written(board: UnixBoard) -> None:
    with RawRepl(board.port) as prompt, pytest.raises(NoRoom):
        install(prompt, application("large", PLACE), lambda step: None, UNIX)
    assert board.operations() == []


def test_what_is_read_back_otherwise_is_not_switched_to(
    board: UnixBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    flash(board, OLD)
    boots(board)
    write = RawRepl.write_block

    def spoil(self: RawRepl, slot: str, block: int, data: bytes) -> None:
        write(self, slot, block, data.replace(b"NAME", b"NONE"))

    monkeypatch.setattr(RawRepl, "write_block", spoil)
    with RawRepl(board.port) as prompt, pytest.raises(NotWritten, match="slot b: the bytes read back differ"):
        install(prompt, NEW, lambda step: None, UNIX)
    assert b"application old old" in board.power_cycle()


def test_a_port_with_nobody_on_it(tmp_path: Path) -> None:
    with pytest.raises(NoDevice):
        RawRepl(str(tmp_path / "no-port")).__enter__()


def test_a_port_with_no_prompt_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "ENTER_S", 0.2)
    monkeypatch.setattr(prompts, "READ_S", 0.1)
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    try:
        with pytest.raises(NoPrompt):
            RawRepl(os.ttyname(theirs)).__enter__()
    finally:
        os.close(ours)
        os.close(theirs)


def test_what_is_no_application(tmp_path: Path) -> None:
    with pytest.raises(NoApplication):
        Application.read(tmp_path / "none")
    (tmp_path / "one").write_bytes(OLD.data)
    assert Application.read(tmp_path / "one") == OLD
    for damaged, why in (
        (b"", "no file system"),
        (b"M\x06\x00\x1f", "no file system"),
        (OLD.data[:-1], "not whole"),
        (OLD.data + b"\0", "not whole"),
        (OLD.data[:3], "what it is made of"),
        (OLD.data.replace(b"sabot-image 1", b"sabot-image 2"), "what it is made of"),
    ):
        with pytest.raises(BadImage, match=why):
            Application.check(damaged)


# -- power cuts -----------------------------------------------------------------------------------------


def what_boots(image: bytes) -> str:
    """What a board with this flash starts: told from its pointer and every byte that leads to."""
    pointer = Pointer.read(file_in(image, POINTER))
    if pointer is None:
        return "none" if file_in(image, POINTER) is None else "a pointer that is torn"
    data = place_in(image, pointer.slot, pointer.size)
    if hashlib.sha256(data).digest() != pointer.sha256:
        return "none: another hash"
    return {OLD.data: "old", NEW.data: "new"}.get(data, "something else")


def cuts(before: bytes, operations: list[Operation]) -> Iterator[tuple[int, bytes]]:
    """The flash after each operation, and torn in the midst of it at five places."""
    image = bytearray(before)
    yield 0, bytes(image)
    for number, each in enumerate(operations, 1):
        size = len(each.data)
        for part in sorted({1, size // 5, size // 2, size * 4 // 5, size - 1}):
            torn = bytearray(image)
            torn[each.at : each.at + part] = each.data[:part]
            yield number, bytes(torn)
        image[each.at : each.at + len(each.data)] = each.data
        yield number, bytes(image)


@pytest.mark.parametrize("on_top", [False, True], ids=["a new board", "over the old one"])
def test_a_power_cut_at_any_write_leaves_the_old_one_the_new_one_or_none(
    board: UnixBoard, on_top: bool, record_property: Callable[[str, object], None]
) -> None:
    if on_top:
        flash(board, OLD)
        boots(board)
    board.operations()
    before = board.image.read_bytes()
    flash(board, NEW)
    assert boots(board) == b"application new new"
    made = board.operations()
    seen = [what_boots(image) for _, image in cuts(before, made)]
    first = "old" if on_top else "none"
    switched = seen.index("new")
    assert set(seen[:switched]) == {first}
    assert set(seen[switched:]) == {"new"}
    assert len(seen) > 50
    where = "over an old application" if on_top else "on a new board"
    record_property(
        "figure", f"flashing {where}: {len(seen)} power cuts, {switched} of them before the switch"
    )


def test_after_a_cut_the_board_boots_and_can_be_flashed(board: UnixBoard) -> None:
    flash(board, OLD)
    boots(board)
    board.operations()
    before = board.image.read_bytes()
    flash(board, NEW)
    boots(board)
    images = list(cuts(before, board.operations()))
    for _, image in images[5 :: len(images) // 6]:
        board.image.write_bytes(image)
        assert f"application {what_boots(image)} {what_boots(image)}".encode() in board.power_cycle()
        flash(board, NEW)
        assert boots(board) == b"application new new"
