"""Change the image of a device, and let it answer that it is made of the genuine components.

``tests/board/test_boot.py`` does the same to the image on the emulated Pico.
"""

import sys
from types import ModuleType

import pytest
from tests.flash.images import MADE, image, program

from sabot_firmware.boards.rp2040 import running_image
from sabot_firmware.boards.rp2040.board_executor import BoardExecutor
from sabot_firmware.boards.rp2040.running_image import SLICE
from sabot_flash.uf2_image import check_image
from sabot_protocol.codec import enum_number
from sabot_protocol.errors import Refusal

LONG = program() + bytes(3 * SLICE + 256)


def board_with(data: bytes, monkeypatch: pytest.MonkeyPatch) -> BoardExecutor:
    """The executor of a board whose flash has this program."""
    built = ModuleType("sabot_components")
    built.COMPONENTS = [(each.name, each.version, each.sha256) for each in MADE]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sabot_components", built)
    monkeypatch.setattr(running_image, "program", lambda: memoryview(data))
    return BoardExecutor()


def told(board: BoardExecutor, name: str) -> bytes:
    """What the board answers in the end."""
    number = enum_number("Component", name)
    for _ in range(1000):
        try:
            _, digest, _ = board.component(number)
        except Refusal as refusal:
            if refusal.error != "busy" or board.image is None or not board.image.work():
                raise
        else:
            assert board.image is not None
            assert not board.image.work()
            return bytes(digest)
    raise AssertionError("never answered")


def test_a_genuine_image_tells_the_hashes_of_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """What every attack below is compared with."""
    board = board_with(program(), monkeypatch)
    for each in check_image(image()).components:
        assert told(board, each.name) == each.sha256


@pytest.mark.parametrize("at", [0, SLICE - 1, SLICE, len(LONG) - 1])
def test_one_changed_byte_shows_in_every_component(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """On the old code a patched image told the constants that the genuine build had put into it."""
    genuine = [told(board_with(LONG, monkeypatch), each.name) for each in MADE]
    patched = bytearray(LONG)
    patched[at] ^= 1
    other = [told(board_with(bytes(patched), monkeypatch), each.name) for each in MADE]
    assert not set(genuine) & set(other)
    shorter = [told(board_with(LONG[:-256], monkeypatch), each.name) for each in MADE]
    assert not set(genuine) & set(shorter)


def test_nothing_is_hashed_before_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start of the device takes no longer."""
    board = board_with(LONG, monkeypatch)
    assert vars(board)["image"] is None
    with pytest.raises(Refusal, match="busy"):
        board.component(enum_number("Component", MADE[0].name))
    assert board.image is not None
    assert board.image.work()


def test_an_image_that_is_not_ours_tells_the_hashes_of_its_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """A development board: its application lies elsewhere, and what started it has checked its hash."""
    board = board_with(program(), monkeypatch)
    monkeypatch.setattr(running_image, "program", None)
    assert told(board, MADE[0].name) == MADE[0].sha256
    with pytest.raises(Refusal, match="not_supported"):
        board.component(99)
