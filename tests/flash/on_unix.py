"""Makes MicroPython for unix a board in development: the same flash, the same modules, then the prompt.

The flash is a file; another beside it takes down every write and erasure, so that each power cut there could
have been can be looked at afterwards. ``machine.reset`` ends the process; whoever started it starts it again.
"""

import os
import sys

import vfs

BLOCK = 4096
STORAGE = 0x100A0000


class Chip:
    """The flash of the board, in a file of the computer."""

    def __init__(self, path):
        self.file = open(path, "r+b")
        self.log = open(path + ".log", "ab")

    def read(self, at, buffer):
        self.file.seek(at)
        self.file.readinto(buffer)

    def change(self, at, data):
        self.log.write(at.to_bytes(4, "little") + len(data).to_bytes(4, "little") + data)
        self.log.flush()
        self.file.seek(at)
        self.file.write(data)
        self.file.flush()


class Flash:
    """A part of it, as the port's own class of this name is."""

    def __init__(self, start, len):
        self.start = start
        self.blocks = len // BLOCK

    def readblocks(self, block, buffer, offset=0):
        chip.read(self.start + block * BLOCK + offset, buffer)

    def writeblocks(self, block, buffer, offset=None):
        at = self.start + block * BLOCK
        if offset is None:
            chip.change(at, b"\xff" * BLOCK)
        chip.change(at + (offset or 0), bytes(buffer))

    def ioctl(self, what, argument):
        if what == 4:
            return self.blocks
        if what == 5:
            return BLOCK
        if what == 6:
            chip.change(self.start + argument * BLOCK, b"\xff" * BLOCK)
        return 0


class Rp2:
    Flash = Flash


class Uctypes:
    """The processor sees the flash as it was when it looked."""

    def bytearray_at(self, address, size):
        data = bytearray(size)
        chip.read(address - STORAGE, data)
        return data


class Machine:
    def __init__(self):
        self.mem32 = {}

    def reset(self):
        os.system("kill -9 $PPID")


def run_main():
    try:
        with open("/main.py") as file:
            text = file.read()
    except OSError:
        print("no application")
        return
    try:
        exec(text, {"__name__": "__main__"})
    except Exception as error:
        sys.print_exception(error)


chip = Chip(os.getenv("FLASH"))
sys.modules["machine"] = Machine()
sys.modules["rp2"] = Rp2()
sys.modules["uctypes"] = Uctypes()
sys.path.insert(0, os.getenv("MODULES"))
import sabot_slots

vfs.umount("/")
vfs.mount(vfs.VfsLfs2(sabot_slots.files(), progsize=256), "/")
os.chdir("/")
sys.path.clear()
sys.path.extend(["", ".frozen", "/lib"])
run_main()
