"""What goes onto the board: complete, the same every time, and as the tables say."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from sabot_firmware import hardware
from sabot_firmware.boards.rp2040 import pins
from sabot_image_build import board_page, build, modules
from sabot_image_build.programs import BuildFailed, ToolMissing, need, run
from sabot_image_build.uf2_image import from_uf2, to_uf2

pytestmark = pytest.mark.slow


def test_every_module_that_the_board_imports_is_frozen() -> None:
    frozen = {each.name: each.path for each in modules.board_modules()}
    for name, path in frozen.items():
        tree = ast.parse(path.read_text())
        for_types = _only_for_types(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or node.lineno in for_types:
                continue
            place = (node.module or "").replace(".", "/")
            if place.startswith(("sabot_protocol", "sabot_firmware")):
                wanted = [f"{place}.py", f"{place}/__init__.py"]
                wanted += [f"{place}/{each.name}.py" for each in node.names]
                assert any(each in frozen for each in wanted), f"{name} imports {node.module}"


def _only_for_types(tree: ast.Module) -> set[int]:
    """The lines of statements that only a type checker reads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return {each.lineno for each in ast.walk(node) if isinstance(each, ast.stmt)}
    return set()


def test_nothing_of_the_host_is_frozen() -> None:
    names = [each.name for each in modules.board_modules()]
    assert not [name for name in names if "host" in name or "generate" in name or "piped" in name]
    assert not [name for name, times in Counter(names).items() if times > 1]


def test_components_have_a_hash_that_tells_every_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {each.name: each.sha256 for each in modules.components("1", "1.25")}
    assert list(before) == ["controller", "card_recognition", "rng"]
    changed = tmp_path / "noise.py"
    real = modules.board_modules()
    changed.write_text("another one")
    with monkeypatch.context() as patch:
        patch.setattr(
            modules,
            "board_modules",
            lambda: [
                modules.Module(changed, each.name) if each.name in modules.RNG else each for each in real
            ],
        )
        after = {each.name: each.sha256 for each in modules.components("1", "1.25")}
    assert [name for name in before if before[name] != after[name]] == ["rng"]
    assert modules.components("1", "1.26")[0].sha256 != before["controller"]


def test_byte_code_and_its_file_system_are_the_same_every_time(tmp_path: Path) -> None:
    first = build.build_mpy(tmp_path / "first")
    second = build.build_mpy(tmp_path / "second")
    assert first == second
    assert "sabot_firmware/controller.mpy" in first
    assert build.build_file_system(first) == build.build_file_system(second)


def test_a_uf2_holds_what_was_put_into_it() -> None:
    data = bytes(range(256)) * 3 + b"end"
    image = to_uf2([(0x1000, data)])
    pages = from_uf2(image)
    assert b"".join(pages[at] for at in sorted(pages)) == data.ljust(1024, b"\0")
    assert min(pages) == 0x1000


@pytest.mark.parametrize("spoil", [0, 8, 28, 508])
def test_what_is_not_for_this_chip_is_no_image(spoil: int) -> None:
    image = bytearray(to_uf2([(0, bytes(256))]))
    image[spoil] ^= 0xFF
    image[spoil + 1] ^= 0xFF
    with pytest.raises(BuildFailed):
        from_uf2(bytes(image))
    with pytest.raises(BuildFailed):
        from_uf2(b"")


def test_a_missing_tool_and_a_failing_one_are_named(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match="apt-get install nothing"):
        need("no-such-program", "nothing")
    with pytest.raises(BuildFailed, match="the error it made"):
        run(["sh", "-c", "echo the error it made; exit 3"], tmp_path / "log")


# -- the table of pins -----------------------------------------------------------------------------------


def test_every_pin_of_the_pico_has_one_use() -> None:
    used = [pin for pin, _, _, _ in board_page.pins_of_the_pico()]
    assert sorted(used) == [*range(23), 26, 27, 28]


def test_pulses_are_counted_and_made_by_slices_of_their_own() -> None:
    assert all(encoder & 1 for _, _, encoder in pins.ROLLERS), "an encoder must be on the B input of a slice"
    slices = [encoder >> 1 & 7 for _, _, encoder in pins.ROLLERS]
    slices += [pins.ELEVATOR_STEP >> 1 & 7, pins.PUSHER_STEP >> 1 & 7]
    assert len(set(slices)) == len(slices)


def test_every_sensor_is_on_a_pin_or_an_expander_and_on_one_only() -> None:
    made_by_the_board = {hardware.ELEVATOR, hardware.HEIGHT}
    connected = [sensor for sensor, *_ in pins.EDGES] + [sensor for sensor, *_ in pins.INPUTS]
    assert sorted([*connected, *made_by_the_board]) == list(range(hardware.SENSORS))
    places = [(chip, bit) for _, chip, bit, _ in pins.INPUTS]
    outputs = [
        pins.FEED_BACK_BIT,
        pins.INSERT_BACK_BIT,
        pins.DEAL_BACK_BIT,
        pins.PUSHER_FORWARD_BIT,
        pins.SHELF_DOWN_BIT,
        pins.SHELF_UP_BIT,
    ]
    lamp = [pins.LAMP_BIT, pins.LAMP_BIT + 1, pins.LAMP_BIT + 2]
    places += [(pins.OUTPUT_CHIP, bit) for bit in outputs + lamp]
    places.append(pins.PRESENCE_CONTACT[:2])
    assert len(set(places)) == len(places)
    assert sorted(outputs) == list(range(8, 14))


def test_the_page_of_the_board_is_made_from_the_table() -> None:
    assert (modules.ROOT / "docs" / "board.md").read_text() == board_page.page()
