"""One program at a time: a lock beside a file, and the name of the program that has it.

The lock is a SQLite file ``….lock`` in an exclusive transaction. The system releases it when the program
dies, however it dies. ``….holder`` says which program it is, for the error of the next one.
"""

import contextlib
import os
import sqlite3
import sys
from pathlib import Path

from sabot_driver.private_files import open_new, prepare_database


class FileHeld(Exception):
    """Another program has the file; its name is the message."""


def hold(path: Path) -> sqlite3.Connection:
    """Take the lock beside a file; closing the connection releases it.

    `FileHeld` says which program has it; `sqlite3.Error` and `OSError` if the lock cannot be used.
    """
    lock = path.with_name(path.name + ".lock")
    holder = path.with_name(path.name + ".holder")
    prepare_database(lock)
    held = sqlite3.connect(lock, isolation_level=None, timeout=0, check_same_thread=False)
    try:
        held.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        held.close()
        if "locked" not in str(error):
            raise
        try:
            who = holder.read_text(encoding="utf-8").strip()
        except OSError:
            who = "another program"
        raise FileHeld(who) from error
    program = Path(sys.argv[0] or "python").name
    # an OSError: only the name would be missing from the next program's error
    with contextlib.suppress(OSError), open_new(holder) as file:
        file.write(f"process {os.getpid()} ({program})\n".encode())
    return held
