"""What processes of this computer use: processor time and memory, and flushes of the disk. Linux only."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Used:
    """What some processes have used up to now."""

    processor_s: float
    memory_mb: float
    """Their share of memory: pages that several of them have count for each in part."""


def used(pids: Iterable[int]) -> Used:
    """What processes have used; one that has ended counts nothing."""
    seconds = memory = 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            rolled = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        except OSError:
            continue
        seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        share = next(line for line in rolled.splitlines() if line.startswith("Pss:"))
        memory += int(share.split()[1]) / 1024
    return Used(seconds, memory)


def flushes(folder: Path) -> int | None:
    """How often the disk below a folder was flushed, by all programs; None if the system does not tell.

    A sync of a file flushes the disk once, or shares a flush with others.
    """
    device = os.stat(folder).st_dev
    try:
        lines = Path("/proc/diskstats").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        if (int(fields[0]), int(fields[1])) == (os.major(device), os.minor(device)) and len(fields) >= 20:
            return int(fields[18])
    return None
