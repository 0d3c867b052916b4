"""A disk that can be made full: a tmpfs at a folder. Needs root, because it is mounted."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

LARGE = 4 * 1024**3  # a limit; a tmpfs takes memory only for what is in it


class SmallDisk:
    """A tmpfs at a folder, with what was in the folder. `leave` puts that back onto the disk below."""

    def __init__(self, folder: Path) -> None:
        """Mount it; no program may use the folder at this moment."""
        self._folder = folder
        below = folder.with_name(folder.name + ".below")
        folder.rename(below)
        folder.mkdir()
        try:
            _run("mount", "-t", "tmpfs", "-o", f"size={LARGE}", "tmpfs", str(folder))
        except subprocess.CalledProcessError:
            folder.rmdir()
            below.rename(folder)
            raise
        shutil.copytree(below, folder, dirs_exist_ok=True)
        shutil.rmtree(below)

    def fill(self, left: int = 0) -> None:
        """From now on only ``left`` more bytes fit."""
        there = os.statvfs(self._folder)
        used = (there.f_blocks - there.f_bfree) * there.f_frsize
        self._limit(used + left)

    def free(self) -> None:
        """There is room again."""
        self._limit(LARGE)

    def leave(self) -> None:
        """Unmount it; its content stays in the folder. No program may use the folder at this moment."""
        above = self._folder.with_name(self._folder.name + ".above")
        shutil.copytree(self._folder, above)
        _run("umount", str(self._folder))
        self._folder.rmdir()
        above.rename(self._folder)

    def _limit(self, size: int) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        rounded = max(page, -(-size // page) * page)  # a tmpfs of size 0 has no limit
        _run("mount", "-o", f"remount,size={rounded}", str(self._folder))


def can_mount() -> bool:
    """Whether this process may mount a tmpfs."""
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory(prefix="sabot-disk-") as name:
        folder = Path(name) / "tried"
        folder.mkdir()
        try:
            SmallDisk(folder).leave()
        except (OSError, subprocess.CalledProcessError):
            return False
    return True


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
