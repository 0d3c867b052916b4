"""Makes MicroPython for unix a board: littlefs in a file, main.py at the start, then the prompt.

The file beside it takes down every write and erasure, so that each power cut there could have been can be
looked at afterwards. ``machine.reset`` ends the process; whoever started it starts it again.
"""

import os
import sys

import vfs

BLOCK = 4096


class Flash:
    """A flash chip in a file of the computer."""

    def __init__(self, path, log):
        self.file = open(path, "r+b")
        self.log = open(log, "ab")
        self.file.seek(0, 2)
        self.blocks = self.file.tell() // BLOCK

    def readblocks(self, block, buffer, offset=0):
        self.file.seek(block * BLOCK + offset)
        self.file.readinto(buffer)

    def writeblocks(self, block, buffer, offset=0):
        self.keep(b"w", block * BLOCK + offset, bytes(buffer))

    def keep(self, kind, at, data):
        self.log.write(kind + at.to_bytes(4, "little") + len(data).to_bytes(4, "little") + data)
        self.log.flush()
        self.file.seek(at)
        self.file.write(data)
        self.file.flush()

    def ioctl(self, what, argument):
        if what == 4:
            return self.blocks
        if what == 5:
            return BLOCK
        if what == 6:
            self.keep(b"e", argument * BLOCK, b"\xff" * BLOCK)
        return 0


class Machine:
    """What of the board's own module is asked for."""

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


flash = Flash(os.getenv("FLASH"), os.getenv("FLASH") + ".log")
sys.modules["machine"] = Machine()
vfs.umount("/")
vfs.mount(vfs.VfsLfs2(flash, progsize=256, readsize=256), "/")
os.chdir("/")
sys.path.clear()
sys.path.extend(["", ".frozen", "/lib"])
run_main()
