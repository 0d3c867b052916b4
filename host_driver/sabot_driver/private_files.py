"""Files that only their owner can read: keys, journals, records, captures.

A file is made with mode 0600 whatever the umask says, and one that others could read is tightened when it is
opened. On Windows the folder's access list does this; the modes mean nothing there.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

MODE = 0o600
FOLDER_MODE = 0o700
OTHERS = stat.S_IRWXG | stat.S_IRWXO
BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a database


def make_folder(folder: Path) -> None:
    """A folder for private files, with those above it; one that is there keeps its mode."""
    folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)


def tighten(path: Path) -> None:
    """Remove the rights of group and others, if the file exists and is ours."""
    if os.name != "posix":
        return
    with contextlib.suppress(FileNotFoundError, PermissionError):
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and mode & OTHERS:  # /dev/null stays as it is
            path.chmod(MODE)


def prepare(path: Path) -> None:
    """Create a file as private, or make it private, before a library opens it with other rights."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE))
        return
    tighten(path)


def _check_ours(path: Path, about: os.stat_result) -> None:
    """PermissionError for a regular file of another user, who could read what is written into it."""
    if os.name == "posix" and stat.S_ISREG(about.st_mode) and about.st_uid != os.geteuid():
        raise PermissionError(errno.EACCES, "the file is another user's", str(path))


def prepare_database(path: Path) -> None:
    """The same for a database. SQLite gives the files beside it the database's own mode."""
    prepare(path)
    for end in BESIDE:
        tighten(path.with_name(path.name + end))


def open_new(path: Path) -> BinaryIO:
    """Open a file for writing from its beginning; OSError as ``open`` has it, and for another user's file."""
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)
    file = os.fdopen(os.open(path, flags, MODE), "wb")
    try:
        _check_ours(path, os.fstat(file.fileno()))
        tighten(path)
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.truncate()
    except BaseException:
        file.close()
        raise
    return file


def write_synced(path: Path, content: bytes) -> None:
    """Write a whole file: after a power cut it has its old content or the new, and is on disk."""
    new = path.with_name(path.name + ".new")
    with open_new(new) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have a folder's entries on disk, so that a file renamed into it is there after a power cut."""
    if os.name != "posix":  # Windows cannot open a folder; NTFS keeps its own journal of names
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
