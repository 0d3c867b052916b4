"""A day at an emulated table with a power cut: its journal and record, as snapshots that a test may edit."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.session.simulated_table import simulated_table

from sabot_evidence import chain
from sabot_evidence.export import read_newest, snapshots
from sabot_evidence.pc_key import PcKey
from sabot_session.record import SqliteRecord
from sabot_session.record_opening import join_chains

KEPT = 24  # rows between kept checkpoints, so that a short day has several
NAMES = ("journal.db", "record.db")


@dataclass(frozen=True)
class Day:
    """The files of a day: as they were in the middle, and at its end."""

    folder: Path
    middle: tuple[str, ...]
    """The floor's lines in the middle of the day."""
    end: tuple[str, ...]
    """The floor's lines at the end."""
    key: PcKey

    def copy(self, to: Path, moment: str = "end") -> list[Path]:
        """Copies of journal and record, to edit."""
        to.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copyfile(self.folder / moment / name, to / name)) for name in NAMES]


def play_day(folder: Path, rounds: int = 1) -> Day:
    """So many rounds before and after a power cut."""
    before, chain.KEEP_EVERY = chain.KEEP_EVERY, KEPT
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / name for name in NAMES]
    try:
        with (
            SqliteRecord(files[1]) as record,
            simulated_table(folder, "seed=3", record=record, journal=files[0]) as table,
        ):
            join_chains(record, table.client.journal)
            table.rounds(rounds)
            middle = snapshot(files, folder / "middle")
            table.cut_power()
            table.rounds(2 * rounds)
        end = snapshot(files, folder / "end")
    finally:
        chain.KEEP_EVERY = before
    return Day(folder, middle, end, PcKey(bytes.fromhex((folder / "pc.key").read_text())))


def snapshot(files: list[Path], to: Path) -> tuple[str, ...]:
    """Copies of both files as they are at this moment; their newest lines."""
    to.mkdir()
    lines = []
    for path, copy in zip(files, snapshots(files, to), strict=True):
        copy.rename(to / path.name)
        newest = read_newest(to / path.name)
        assert newest is not None
        lines.append(newest.head.line())
    return tuple(lines)
