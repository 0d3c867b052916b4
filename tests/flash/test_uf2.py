"""UF2 files and the drive of the boot loader: what is damaged or for another chip is not copied."""

import hashlib
import struct
from pathlib import Path

import pytest
from tests.flash.images import INFO, image, program

from sabot_driver.errors import AmbiguousDevice
from sabot_flash import bootloader_drive as drives
from sabot_flash.bootloader_drive import ABOUT, TARGET, BootloaderDrive, find_drive
from sabot_flash.errors import BadImage, NoApplication, NoDrive, NotWritten, WrongBoard
from sabot_flash.image_components import ImageComponent, components_in
from sabot_flash.uf2_image import BLOCK, PAGE, check_image, read_image
from sabot_image_build import modules
from sabot_image_build.uf2_image import to_uf2


def test_an_image_is_what_its_build_put_into_it() -> None:
    read = check_image(image())
    assert read.program == program()
    assert read.sha256 == hashlib.sha256(program()).digest()
    assert components_in(read.program) == (
        ImageComponent("controller", "1.2.3", bytes(range(32))),
        ImageComponent("rng", "1.2.4", bytes(32)),
    )
    assert [(each.name, each.version, each.sha256) for each in read.components] == [
        ("controller", "1.2.3", hashlib.sha256(bytes(range(32)) + read.sha256).digest()),
        ("rng", "1.2.4", hashlib.sha256(bytes(32) + read.sha256).digest()),
    ]
    assert read.version == "1.2.3"


def changed(at: int, new: bytes) -> bytes:
    whole = bytearray(image())
    whole[at : at + len(new)] = new
    return bytes(whole)


SECOND = 2 * BLOCK
DAMAGED = {
    "nothing": (b"", "not made of blocks"),
    "half a block": (image()[:-100], "not made of blocks"),
    "another file": (b"\x7fELF".ljust(1024, b"\0"), "another beginning"),
    "the first magic": (changed(SECOND, b"x"), "block 2 has another beginning"),
    "the second magic": (changed(SECOND + 4, b"x"), "block 2 has another beginning"),
    "the last magic": (changed(3 * BLOCK - 1, b"x"), "block 2 has another beginning or end"),
    "another chip": (changed(SECOND + 28, struct.pack("<I", 0xE48BFF59)), "not for the RP2040"),
    "no chip": (changed(SECOND + 8, struct.pack("<I", 0)), "not for the RP2040"),
    "not for the flash": (changed(SECOND + 8, struct.pack("<I", 0x2001)), "not for the flash"),
    "a block lost": (image()[:SECOND] + image()[SECOND + BLOCK :], "it is not whole"),
    "the last block lost": (image()[:-BLOCK], "it is not whole"),
    "blocks swapped": (
        image()[:BLOCK]
        + image()[SECOND : SECOND + BLOCK]
        + image()[BLOCK:SECOND]
        + image()[SECOND + BLOCK :],
        "it is not whole",
    ),
    "a short page": (changed(SECOND + 16, struct.pack("<I", 255)), "not a page"),
    "another address": (changed(SECOND + 12, struct.pack("<I", 0x20000000)), "goes to 0x20000000"),
    "a page again": (changed(SECOND + 12, struct.pack("<I", 0x10000100)), "goes to 0x10000100"),
    "a byte of the boot": (changed(32 + 100, b"\xff"), "checksum"),
    "a byte of the program": (changed(7 * BLOCK + 40, b"\x00"), "it is damaged"),
    "its hash": (changed(32 + PAGE + 4 + 5, b"\xff"), "it is damaged"),
    "no hash": (changed(8, struct.pack("<I", 0x2000)), "does not carry the hash"),
    "a file system": (to_uf2([(0xA0000, program())]), "goes to 0x100a0000"),
    "too large": (image(program().ljust((2 << 20) + PAGE, b"\0")), "do not fit"),
    "no components": (image(program().replace(b"sabot-image 1", b"sabot-image 2")), "what it is made of"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_what_is_damaged_or_for_another_chip_is_refused(damage: str) -> None:
    data, why = DAMAGED[damage]
    with pytest.raises(BadImage, match=why):
        check_image(data)


def test_an_image_that_names_two_makes_is_refused() -> None:
    other = [modules.ImageComponent("controller", "9.9.9", bytes(32))]
    with pytest.raises(BadImage, match="twice"):
        components_in(program() + program(other))
    assert components_in(program() + program())[0].version == "1.2.3"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoApplication):
        read_image(tmp_path / "none.uf2")


# -- the drive ------------------------------------------------------------------------------------------


def test_a_drive_is_found_by_its_file(mounted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drives, "mount_points", lambda: [mounted / "none", mounted])
    found = find_drive(None, 0)
    assert found == BootloaderDrive(mounted, "Raspberry Pi RP2", "RPI-RP2")
    assert find_drive(mounted, 0) == found


def test_no_drive_two_drives_and_another_board(
    mounted: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("other")
    with pytest.raises(NoDrive):
        find_drive(other, 0)
    (other / ABOUT).write_text("no drive of ours")
    with pytest.raises(NoDrive):
        find_drive(other, 0)
    (other / ABOUT).write_text(INFO.replace("RPI-RP2", "RP2350").replace("RP2\r", "RP2350\r"))
    with pytest.raises(WrongBoard, match="RP2350"):
        find_drive(other, 0)
    monkeypatch.setattr(drives, "mount_points", lambda: [mounted, other])
    with pytest.raises(AmbiguousDevice):
        find_drive(None, 0)


def test_an_image_is_copied_and_the_drive_is_waited_for(mounted: Path) -> None:
    drive = find_drive(mounted, 0)
    told: list[int] = []
    drive.write(image(), told.append)
    assert (mounted / TARGET).read_bytes() == image()
    assert sum(told) == len(image())
    with pytest.raises(NotWritten, match="does not start"):
        drive.wait_gone(0)
    (mounted / ABOUT).unlink()
    drive.wait_gone(0)


def test_a_drive_that_cannot_be_written(mounted: Path) -> None:
    (mounted / TARGET).mkdir()
    with pytest.raises(NotWritten):
        find_drive(mounted, 0).write(image(), lambda written: None)
