"""SQLite's files on a ``SimulatedDisk``: a virtual file system, registered by ctypes.

Python's ``sqlite3`` may be built without loadable extensions, so the file system is registered with the same
library that ``_sqlite3`` uses. It is the default one while ``installed`` lasts. Paths below the folder of a
disk belong to that disk; all others go to the file system that was the default before.
"""

import _sqlite3
import ctypes
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_double, c_int, c_int64, c_void_p
from random import Random
from typing import Any

from sabot_simulators.whole_system.simulated_disk import DiskFailed, DiskFull, SimulatedDisk, SimulatedFile

OK, BUSY, NOT_FOUND, FULL, CANT_OPEN = 0, 5, 12, 13, 14
IO_ERROR = 10
SHORT_READ = IO_ERROR | 2 << 8
SHARED, RESERVED, PENDING, EXCLUSIVE = 1, 2, 3, 4
SHM_UNLOCK, SHM_SHARED = 1, 4
SHM_LOCKS = 8
WAL_WRITE_LOCK = 0
POWERSAFE_OVERWRITE = 0x1000  # as SQLite takes it for granted on Unix
SECTOR = 4096
NAME = b"sabot-simulated-disk"
ZERO_JULIAN_MS = 210866760000000  # 1970-01-01, as xCurrentTimeInt64 counts


class _File(ctypes.Structure):
    _fields_ = (("methods", c_void_p), ("handle", c_int64))


_F = POINTER(_File)


class _Methods(ctypes.Structure):
    _fields_ = (
        ("version", c_int),
        ("close", CFUNCTYPE(c_int, _F)),
        ("read", CFUNCTYPE(c_int, _F, c_void_p, c_int, c_int64)),
        ("write", CFUNCTYPE(c_int, _F, c_void_p, c_int, c_int64)),
        ("truncate", CFUNCTYPE(c_int, _F, c_int64)),
        ("sync", CFUNCTYPE(c_int, _F, c_int)),
        ("file_size", CFUNCTYPE(c_int, _F, POINTER(c_int64))),
        ("lock", CFUNCTYPE(c_int, _F, c_int)),
        ("unlock", CFUNCTYPE(c_int, _F, c_int)),
        ("check_reserved", CFUNCTYPE(c_int, _F, POINTER(c_int))),
        ("file_control", CFUNCTYPE(c_int, _F, c_int, c_void_p)),
        ("sector_size", CFUNCTYPE(c_int, _F)),
        ("characteristics", CFUNCTYPE(c_int, _F)),
        ("shm_map", CFUNCTYPE(c_int, _F, c_int, c_int, c_int, POINTER(c_void_p))),
        ("shm_lock", CFUNCTYPE(c_int, _F, c_int, c_int, c_int)),
        ("shm_barrier", CFUNCTYPE(None, _F)),
        ("shm_unmap", CFUNCTYPE(c_int, _F, c_int)),
    )


class _Vfs(ctypes.Structure):
    pass


_V = POINTER(_Vfs)
_Vfs._fields_ = (
    ("version", c_int),
    ("file_size", c_int),
    ("longest_path", c_int),
    ("next", c_void_p),
    ("name", c_char_p),
    ("data", c_void_p),
    ("open", CFUNCTYPE(c_int, _V, c_void_p, _F, c_int, POINTER(c_int))),
    ("delete", CFUNCTYPE(c_int, _V, c_char_p, c_int)),
    ("access", CFUNCTYPE(c_int, _V, c_char_p, c_int, POINTER(c_int))),
    ("full_path", CFUNCTYPE(c_int, _V, c_char_p, c_int, c_void_p)),
    ("dl_open", c_void_p),
    ("dl_error", c_void_p),
    ("dl_sym", c_void_p),
    ("dl_close", c_void_p),
    ("randomness", CFUNCTYPE(c_int, _V, c_int, c_void_p)),
    ("sleep", CFUNCTYPE(c_int, _V, c_int)),
    ("current_time", CFUNCTYPE(c_int, _V, POINTER(c_double))),
    ("last_error", CFUNCTYPE(c_int, _V, c_int, c_void_p)),
    ("current_time_ms", CFUNCTYPE(c_int, _V, POINTER(c_int64))),
)


class _Shared:
    """What all handles of one file share: locks, and the index of the write-ahead log."""

    def __init__(self) -> None:
        self.levels: dict[int, int] = {}
        self.regions: list[Any] = []
        self.shm: list[dict[int, bool]] = [{} for _ in range(SHM_LOCKS)]


class _Handle:
    """One open file."""

    def __init__(self, disk: SimulatedDisk, file: SimulatedFile, shared: _Shared) -> None:
        self.disk: SimulatedDisk | None = disk  # None: the file system is gone
        self.file = file
        self.shared = shared
        self.generation = disk.generation


class SimulatedFiles:
    """The file system: disks by the folder they stand for."""

    def __init__(self, random: Random) -> None:
        self.disks: dict[str, SimulatedDisk] = {}
        self.problems: list[str] = []
        self._random = random
        self._library = ctypes.CDLL(_sqlite3.__file__)  # finds the symbols of the SQLite it is linked to
        self._library.sqlite3_vfs_find.restype = _V
        self._library.sqlite3_vfs_find.argtypes = [c_char_p]
        self._before = self._library.sqlite3_vfs_find(None)
        self._handles: dict[int, _Handle] = {}
        self._numbers = itertools.count(1)
        self._shared: dict[tuple[int, str, int], _Shared] = {}
        self._kept: list[Any] = []  # regions that a connection may still point to
        self._methods = _Methods(
            2, *(self._guarded(kind, getattr(self, f"_{name}")) for name, kind in _Methods._fields_[1:])
        )
        fields: dict[str, Any] = {each[0]: each[1] for each in _Vfs._fields_}
        before = self._before.contents
        self._vfs = _Vfs(
            2, max(before.file_size, ctypes.sizeof(_File)), 1024, None, NAME, None,
            *(
                self._guarded(fields[name], getattr(self, f"_{name}"))
                for name in ("open", "delete", "access", "full_path")
            ),
            before.dl_open, before.dl_error, before.dl_sym, before.dl_close,
            self._guarded(fields["randomness"], self._randomness),
            self._guarded(fields["sleep"], self._sleep),
            before.current_time, before.last_error,
            self._guarded(fields["current_time_ms"], self._current_time_ms),
        )  # fmt: skip
        self._now: SimulatedDisk | None = None  # the disk that was used last: who sleeps

    def register(self) -> None:
        """Make this the default file system, and SQLite's random numbers follow from the seed."""
        self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1)
        self._library.sqlite3_randomness(0, None)

    def unregister(self) -> None:
        """Give the default back."""
        self._library.sqlite3_vfs_unregister(ctypes.byref(self._vfs))
        self._library.sqlite3_vfs_register(self._before, 1)
        self._library.sqlite3_randomness(0, None)

    def is_open(self) -> bool:
        """Whether SQLite has a file open: it calls this file system until it has closed it."""
        return bool(self._handles)

    def retire(self) -> None:
        """Let go of the disks. SQLite can close the files that it has open, and all else fails."""
        for handle in self._handles.values():
            handle.disk = None
        self.disks.clear()
        self._now = None

    def _guarded(self, kind: Any, function: Callable[..., Any]) -> Any:
        """An exception must not pass through SQLite: it is noted, and SQLite sees an error."""

        def call(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except DiskFull:
                return FULL
            except DiskFailed:
                return IO_ERROR
            except Exception as error:  # noqa: BLE001
                self.problems.append(f"the simulated disk failed: {error!r}")
                return IO_ERROR

        return kind(call)

    # -- the file system ------------------------------------------------------------------------

    def _disk(self, path: str) -> SimulatedDisk | None:
        for folder, disk in self.disks.items():
            if path.startswith(folder):
                self._now = disk
                return disk
        return None

    def _open(self, vfs: Any, name: int | None, file: Any, flags: int, out: Any) -> int:
        path = "" if not name else ctypes.string_at(name).decode()
        disk = self._disk(path) if path else None
        if disk is None:
            return int(self._before.contents.open(self._before, name, file, flags, out))
        file.contents.methods = None
        disk.check()
        number = next(self._numbers)
        found = disk.files.setdefault(path, SimulatedFile())
        shared = self._shared.setdefault((id(disk), path, disk.generation), _Shared())
        self._handles[number] = _Handle(disk, found, shared)
        file.contents.handle = number
        file.contents.methods = ctypes.addressof(self._methods)
        if out:
            out[0] = flags
        return OK

    def _delete(self, vfs: Any, name: bytes, sync: int) -> int:
        path = name.decode()
        disk = self._disk(path)
        if disk is None:
            return int(self._before.contents.delete(self._before, name, sync))
        disk.check()
        disk.files.pop(path, None)
        return OK

    def _access(self, vfs: Any, name: bytes, flags: int, out: Any) -> int:
        path = name.decode()
        disk = self._disk(path)
        if disk is None:
            return int(self._before.contents.access(self._before, name, flags, out))
        out[0] = int(path in disk.files)
        return OK

    def _full_path(self, vfs: Any, name: bytes, size: int, out: int) -> int:
        if self._disk(name.decode()) is None:
            return int(self._before.contents.full_path(self._before, name, size, out))
        if len(name) >= size:
            return CANT_OPEN
        ctypes.memmove(out, name + b"\0", len(name) + 1)
        return OK

    def _randomness(self, vfs: Any, size: int, out: int) -> int:
        ctypes.memmove(out, self._random.randbytes(size), size)
        return size

    def _sleep(self, vfs: Any, us: int) -> int:
        if self._now is not None:
            self._now.waited_us += us
        return us

    def _current_time_ms(self, vfs: Any, out: Any) -> int:
        out[0] = ZERO_JULIAN_MS
        return OK

    # -- one file -------------------------------------------------------------------------------

    def _handle(self, file: Any) -> _Handle:
        handle = self._handles[file.contents.handle]
        self._disk_of(handle)
        return handle

    def _disk_of(self, handle: _Handle) -> SimulatedDisk:
        disk = handle.disk
        if disk is None:
            raise DiskFailed
        self._now = disk
        disk.check()
        if handle.generation != disk.generation:
            raise DiskFailed
        return disk

    def _close(self, file: Any) -> int:
        number = file.contents.handle
        handle = self._handles.pop(number)
        handle.shared.levels.pop(number, None)
        for lock in handle.shared.shm:
            lock.pop(number, None)
        return OK

    def _read(self, file: Any, out: int, size: int, at: int) -> int:
        data = bytes(self._handle(file).file.data[at : at + size])
        if len(data) < size:
            ctypes.memmove(out, data + bytes(size - len(data)), size)
            return SHORT_READ
        ctypes.memmove(out, data, size)
        return OK

    def _write(self, file: Any, data: int, size: int, at: int) -> int:
        handle = self._handles[file.contents.handle]
        self._disk_of(handle).write(handle.file, at, ctypes.string_at(data, size))
        return OK

    def _truncate(self, file: Any, size: int) -> int:
        handle = self._handles[file.contents.handle]
        self._disk_of(handle).truncate(handle.file, size)
        return OK

    def _sync(self, file: Any, flags: int) -> int:
        handle = self._handles[file.contents.handle]
        self._disk_of(handle).sync(handle.file)
        return OK

    def _file_size(self, file: Any, out: Any) -> int:
        out[0] = len(self._handle(file).file.data)
        return OK

    def _lock(self, file: Any, level: int) -> int:
        handle, number = self._handle(file), file.contents.handle
        levels = handle.shared.levels
        others = [each for who, each in levels.items() if who != number]
        highest = max(others, default=0)
        limit = {SHARED: PENDING, RESERVED: RESERVED, PENDING: RESERVED, EXCLUSIVE: SHARED}[level]
        if highest >= limit:
            return BUSY
        levels[number] = max(levels.get(number, 0), level)
        return OK

    def _unlock(self, file: Any, level: int) -> int:
        handle = self._handles[file.contents.handle]
        if level:
            handle.shared.levels[file.contents.handle] = level
        else:
            handle.shared.levels.pop(file.contents.handle, None)
        return OK

    def _check_reserved(self, file: Any, out: Any) -> int:
        out[0] = int(any(level >= RESERVED for level in self._handle(file).shared.levels.values()))
        return OK

    def _file_control(self, file: Any, what: int, argument: int) -> int:
        return NOT_FOUND

    def _sector_size(self, file: Any) -> int:
        return SECTOR

    def _characteristics(self, file: Any) -> int:
        return POWERSAFE_OVERWRITE

    # -- the index of the write-ahead log, in shared memory -----------------------------------------

    def _shm_map(self, file: Any, region: int, size: int, extend: int, out: Any) -> int:
        regions = self._handle(file).shared.regions
        while extend and len(regions) <= region:
            regions.append(ctypes.create_string_buffer(size))
            self._kept.append(regions[-1])
        out[0] = ctypes.addressof(regions[region]) if region < len(regions) else None
        return OK

    def _shm_lock(self, file: Any, first: int, count: int, flags: int) -> int:
        number = file.contents.handle
        handle = self._handles[number]
        locks = handle.shared.shm[first : first + count]
        if flags & SHM_UNLOCK:
            for lock in locks:
                lock.pop(number, None)
            return OK
        disk = self._disk_of(handle)
        exclusive = not flags & SHM_SHARED
        for lock in locks:
            for who, other in lock.items():
                if who != number and (exclusive or other):
                    return BUSY
        if exclusive and first == WAL_WRITE_LOCK and disk.locked():
            return BUSY
        for lock in locks:
            lock[number] = exclusive
        return OK

    def _shm_barrier(self, file: Any) -> None:
        return None

    def _shm_unmap(self, file: Any, delete: int) -> int:
        return OK


_USED: list[SimulatedFiles] = []
"""File systems that SQLite may still call. A program that was killed leaves its connection open, and the
collection of garbage closes that at any later time. If the file system went with it, SQLite would call freed
memory."""


@contextmanager
def installed(random: Random) -> Iterator[SimulatedFiles]:
    """A file system that is the default one meanwhile. Connections that it leaves open are of no use then."""
    _USED[:] = [each for each in _USED if each.is_open()]
    files = SimulatedFiles(random)
    _USED.append(files)
    files.register()
    try:
        yield files
    finally:
        files.unregister()
        files.retire()
