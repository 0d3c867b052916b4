"""Two places for an application in a board's flash. It runs where it lies: in RAM it would not fit.

``/main.py``, which ``sabot flash`` writes, says which of the two is started and what its hash must be. What
has another hash is not started.
"""

import hashlib
import sys

import rp2
import uctypes
import vfs

BLOCK = 4096
SIZE = 256 * 1024  # of each place
FILES_SIZE = 640 * 1024
PLACES = {"a": FILES_SIZE, "b": FILES_SIZE + SIZE}  # after the files; the event log is at the very end
STORAGE = 0x100A0000  # where the processor sees what rp2.Flash begins with
MOUNTED = "/sabot"


def files():
    """The part of the flash that holds files."""
    return rp2.Flash(start=0, len=FILES_SIZE)


def write(slot, block, data):
    """Erase a block of a place and write it."""
    rp2.Flash(start=PLACES[slot], len=SIZE).writeblocks(block, data)


def digest(slot, size):
    """SHA-256 of what the processor sees there."""
    return hashlib.sha256(_memory(slot, size)).digest()


def start(slot, size, expected):
    """Start the application in a place, if its hash in hexadecimal digits is the expected one."""
    if digest(slot, size).hex() != expected:
        print("no application: what is in place %s is not what was flashed" % slot)
        return
    vfs.mount(vfs.VfsRom(_memory(slot, size)), MOUNTED)
    sys.path.clear()
    sys.path.extend([MOUNTED, ".frozen"])
    import main  # noqa: F401


def _memory(slot, size):
    return uctypes.bytearray_at(STORAGE + PLACES[slot], size)
