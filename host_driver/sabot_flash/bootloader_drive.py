"""The drive that a Pico in its boot loader is: a file copied there is written to its flash."""

import os
import re
import string
import time
from dataclasses import dataclass
from pathlib import Path

from sabot_driver.errors import AmbiguousDevice
from sabot_flash.errors import NoDrive, NotWritten, WrongBoard
from sabot_flash.raw_repl import Progress

ABOUT = "INFO_UF2.TXT"
LABEL = "RPI-RP2"
BOARD = "RPI-RP2"
TARGET = "sabot.uf2"
CHUNK = 16 * 1024
LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class BootloaderDrive:
    """A drive of the boot loader."""

    folder: Path
    model: str
    board: str

    @classmethod
    def at(cls, folder: Path) -> "BootloaderDrive | None":
        """The drive at a folder; None if it is none."""
        try:
            text = (folder / ABOUT).read_text(encoding="ascii", errors="replace")
        except OSError:
            return None
        told = dict(re.findall(r"^([A-Za-z-]+): *(.*?)\s*$", text, re.MULTILINE))
        if "Board-ID" not in told:
            return None
        return cls(folder, told.get("Model", ""), told["Board-ID"])

    def check(self) -> None:
        """WrongBoard if it is not an RP2040's."""
        if self.board != BOARD:
            raise WrongBoard(f"{self.folder} is a {self.model or self.board}, not an RP2040")

    def write(self, data: bytes, progress: Progress) -> None:
        """Copy an image; the board starts it as soon as it has all of it, and the drive is gone."""
        left = len(data)
        try:
            with (self.folder / TARGET).open("wb") as file:
                for at in range(0, len(data), CHUNK):
                    piece = data[at : at + CHUNK]
                    file.write(piece)
                    file.flush()
                    os.fsync(file.fileno())
                    left -= len(piece)
                    progress(len(piece))
        except OSError as error:
            # A board that has the last block restarts before the computer has closed the file.
            if left and not self.gone():
                raise NotWritten(f"{self.folder}: {error}") from error
            if left > CHUNK:
                raise NotWritten(f"{self.folder}: the drive went away with {left} bytes to go") from error

    def gone(self) -> bool:
        """Whether the drive has vanished: the board has started its program."""
        return not (self.folder / ABOUT).exists()

    def wait_gone(self, seconds: float) -> None:
        """Wait until the board starts its program; NotWritten if it does not."""
        ends = time.monotonic() + seconds
        while not self.gone():
            if time.monotonic() > ends:
                raise NotWritten(f"{self.folder}: the board has the image but does not start it")
            time.sleep(LOOK_S)


def mount_points() -> list[Path]:
    """Where such a drive may be mounted on this computer."""
    if os.name == "nt":
        return [Path(f"{letter}:\\") for letter in string.ascii_uppercase]
    user = os.environ.get("USER", "")
    roots = [Path("/media") / user, Path("/run/media") / user, Path("/media"), Path("/mnt"), Path("/Volumes")]
    found = [root / LABEL for root in roots]
    mounts = Path("/proc/mounts")
    if mounts.exists():
        for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines():
            words = line.split(" ")
            if len(words) > 2 and words[2] in ("vfat", "msdos"):
                found.append(Path(words[1].replace("\\040", " ")))
    return list(dict.fromkeys(found))


def find_drive(folder: Path | None, seconds: float) -> BootloaderDrive:
    """The drive: in a folder that was named, or the only one there is; NoDrive after a while."""
    ends = time.monotonic() + seconds
    while True:
        found = [
            drive for each in ([folder] if folder else mount_points()) if (drive := BootloaderDrive.at(each))
        ]
        if len(found) > 1:
            raise AmbiguousDevice([str(each.folder) for each in found])
        if found:
            found[0].check()
            return found[0]
        if time.monotonic() > ends:
            raise NoDrive(f"no drive of a boot loader {f'at {folder}' if folder else 'is mounted'}")
        time.sleep(LOOK_S)
