"""The first thing that runs on a board in development: mount its files, making them if there are none."""

import sabot_slots
import vfs

try:
    files = vfs.VfsLfs2(sabot_slots.files(), progsize=256)
except OSError:
    vfs.VfsLfs2.mkfs(sabot_slots.files(), progsize=256)
    files = vfs.VfsLfs2(sabot_slots.files(), progsize=256)
vfs.mount(files, "/")
