"""An application goes onto a board by mpremote's own machinery: real MicroPython, real littlefs.

A power cut is looked at after every single write and erasure of the flash, and in the midst of each: the
board boots the old application, the new one, or says that it has none, and never anything else.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.flash.board import BLOCK, BLOCKS, UNIX, Operation, UnixBoard, files_of

from sabot_driver.errors import NoDevice
from sabot_flash import install as installing
from sabot_flash.application import Application
from sabot_flash.errors import BadImage, NoApplication, NoPrompt, NoRoom, NotWritten, WrongBoard
from sabot_flash.install import POINTER, RP2040, Installed, Step, install, pointed, pointer
from sabot_flash.prompt import About, Prompt

MAIN = b"import first\nimport more.second\nprint('application', first.NAME, more.second.NAME)\n"


def application(name: str, extra: int = 0) -> Application:
    """A small application whose files all say which one they are of."""
    text = f"NAME = {name!r}\n".encode()
    files = {
        "main.py": MAIN,
        "first.py": text + b"#" * 5000,
        "more/__init__.py": b"",
        "more/second.py": text + b"#" * 700,
    }
    for number in range(extra):
        files[f"more/deep/extra{number}.py"] = text * 40
    return Application(files)


OLD, NEW = application("old", 2), application("new", 1)


@pytest.fixture
def board(micropython: str, tmp_path: Path) -> Iterator[UnixBoard]:
    with UnixBoard(micropython, tmp_path) as made:
        yield made


def flash(board: UnixBoard, what: Application, steps: list[Step] | None = None) -> Installed:
    """Install and restart."""
    with Prompt(board.port) as prompt:
        done = install(prompt, what, (steps if steps is not None else []).append, UNIX)
        prompt.restart()
    return done


def boots(board: UnixBoard) -> bytes:
    """What the board says after a start, before its prompt."""
    return board.wait_for(b">>> ").split(b"MicroPython")[0].strip()


# -- what it does -------------------------------------------------------------------------------------


def test_an_application_is_written_read_back_switched_to_and_started(board: UnixBoard) -> None:
    steps: list[Step] = []
    done = flash(board, OLD, steps)
    assert boots(board) == b"application old old"
    assert done == Installed(OLD.slot, None, OLD.size)
    files = files_of(board.image.read_bytes())
    assert files == {f"/{OLD.slot}/{name}": data for name, data in OLD.files.items()} | {
        POINTER: pointer(OLD.slot)
    }
    assert [each.done for each in steps] == sorted(each.done for each in steps)
    assert steps[-1].done == steps[-1].total == 2 * OLD.size


def test_the_one_before_stays_until_the_next_and_leftovers_go(board: UnixBoard) -> None:
    flash(board, OLD)
    boots(board)
    assert flash(board, NEW).before == OLD.slot
    assert boots(board) == b"application new new"
    third = application("third")
    flash(board, third)
    assert boots(board) == b"application third third"
    slots = {path.split("/")[1] for path in files_of(board.image.read_bytes())}
    assert slots == {"main.py", NEW.slot, third.slot}


def test_what_is_there_already_is_not_written_again(board: UnixBoard) -> None:
    flash(board, OLD)
    boots(board)
    board.operations()
    assert flash(board, OLD) == Installed(OLD.slot, OLD.slot, 0)
    assert board.operations() == []


def test_what_is_there_but_damaged_is_replaced(board: UnixBoard) -> None:
    flash(board, OLD)
    boots(board)
    with Prompt(board.port) as prompt:
        prompt.write(f"/{OLD.slot}/more/second.py", b"NAME = 'other'\n")
    done = flash(board, OLD)
    assert done.slot != OLD.slot
    assert boots(board) == b"application old old"
    flash(board, NEW)
    assert boots(board) == b"application new new"


def test_files_of_a_file_system_image_give_way(board: UnixBoard) -> None:
    with Prompt(board.port) as prompt:
        prompt.make_folder("/sabot_firmware")
        prompt.write("/sabot_firmware/first.py", b"NAME = 'image'\n")
        prompt.write("/main.py", b"import sabot_firmware.first as first\nprint(first.NAME)\n")
    assert b"image" in board.power_cycle()
    flash(board, OLD)
    assert boots(board) == b"application old old"
    flash(board, NEW)
    assert boots(board) == b"application new new"
    assert not [path for path in files_of(board.image.read_bytes()) if "sabot_firmware" in path]


# -- what it refuses ------------------------------------------------------------------------------------


def test_another_kind_of_board_is_refused_before_anything_is_written(board: UnixBoard) -> None:
    with Prompt(board.port) as prompt, pytest.raises(WrongBoard, match="not an RP2040"):
        install(prompt, NEW, lambda step: None)
    assert board.operations() == []


@pytest.mark.parametrize(
    ("about", "why"),
    [
        (About("rp2", "Raspberry Pi Pico 2 with RP2350", (1, 25, 0), 6), "not an RP2040"),
        (About("esp32", "Generic with RP2040", (1, 25, 0), 6), "not an RP2040"),
        (About("rp2", "Raspberry Pi Pico with RP2040", (1, 24, 1), 6), "1.24.1; 1.25 is needed"),
        (About("rp2", "Raspberry Pi Pico with RP2040", (1, 25, 0), 5), "byte code 5"),
    ],
)
def test_what_the_application_is_not_for(about: About, why: str) -> None:
    compiled = Application({"main.py": b"", "one.mpy": b"M\x06\x00\x1f"})
    with pytest.raises(WrongBoard, match=why):
        installing.check_kind(about, compiled, RP2040)
    installing.check_kind(About("rp2", "Raspberry Pi Pico with RP2040", (1, 26, 0), 6), compiled, RP2040)


def test_an_application_that_has_no_room_is_refused_before_it_is_written(board: UnixBoard) -> None:
    flash(board, OLD)
    boots(board)
    board.operations()
    large = Application({"main.py": b"#" * (BLOCKS * BLOCK)})
    with Prompt(board.port) as prompt, pytest.raises(NoRoom):
        install(prompt, large, lambda step: None, UNIX)
    assert board.operations() == []
    assert b"application old old" in board.power_cycle()


def test_what_is_read_back_otherwise_is_not_switched_to(
    board: UnixBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    flash(board, OLD)
    boots(board)
    write = Prompt.write

    def spoil(self: Prompt, path: str, data: bytes, progress: object = None) -> None:
        write(self, path, data.replace(b"NAME", b"NONE") if path.endswith("second.py") else data)

    monkeypatch.setattr(Prompt, "write", spoil)
    with Prompt(board.port) as prompt, pytest.raises(NotWritten, match=r"second\.py"):
        install(prompt, NEW, lambda step: None, UNIX)
    assert b"application old old" in board.power_cycle()


def test_a_port_with_nobody_on_it(tmp_path: Path) -> None:
    with pytest.raises(NoDevice):
        Prompt(str(tmp_path / "no-port")).__enter__()


def test_a_port_with_no_prompt_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import tty

    from sabot_flash import prompt

    monkeypatch.setattr(prompt, "ENTER_S", 0.2)
    monkeypatch.setattr(prompt, "READ_S", 0.1)
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    try:
        with pytest.raises(NoPrompt):
            Prompt(os.ttyname(theirs)).__enter__()
    finally:
        os.close(ours)
        os.close(theirs)


def test_what_is_no_application(tmp_path: Path) -> None:
    with pytest.raises(NoApplication):
        Application.read(tmp_path / "none")
    with pytest.raises(NoApplication, match=r"main\.py"):
        Application.read(tmp_path)
    (tmp_path / "main.py").write_bytes(b"")
    (tmp_path / "one.mpy").write_bytes(b"M\x06\x00\x1f")
    assert Application.read(tmp_path).byte_codes == {6}
    (tmp_path / "two.mpy").write_bytes(b"M\x05\x00\x1f")
    with pytest.raises(BadImage, match="different versions"):
        Application.read(tmp_path)
    (tmp_path / "two.mpy").write_bytes(b"text")
    with pytest.raises(BadImage, match="no byte code"):
        Application.read(tmp_path)


# -- power cuts -----------------------------------------------------------------------------------------


def what_boots(image: bytes) -> str:
    """What a board with this flash would start: told from the pointer and every byte it leads to."""
    files = files_of(image)
    if POINTER not in files:
        return "none"
    slot = pointed(files[POINTER])
    there = {path[len(f"/{slot}/") :]: data for path, data in files.items() if path.startswith(f"/{slot}/")}
    for name, each in (("old", OLD), ("new", NEW)):
        if there == each.files:
            return name
    return f"a mixture: {sorted(there)}"


def cuts(before: bytes, operations: list[Operation]) -> Iterator[tuple[int, bytes]]:
    """The flash after each operation, and torn in the midst of it at two places."""
    image = bytearray(before)
    yield 0, bytes(image)
    for number, each in enumerate(operations, 1):
        for part in (len(each.data) // 3, len(each.data) - 1):
            torn = bytearray(image)
            torn[each.at : each.at + part] = each.data[:part]
            yield number, bytes(torn)
        image[each.at : each.at + len(each.data)] = each.data
        yield number, bytes(image)


@pytest.mark.parametrize("on_top", [False, True], ids=["a new board", "over the old one"])
def test_a_power_cut_at_any_write_leaves_the_old_one_the_new_one_or_none(
    board: UnixBoard, on_top: bool, record_property: object
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
    assert len(seen) > 60
    assert callable(record_property)
    record_property("figure", f"power cuts while flashing: {len(seen)}, {switched} before the switch")


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
