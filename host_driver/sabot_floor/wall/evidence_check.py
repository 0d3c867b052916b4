"""The evidence over the whole floor, for a page: every chain of the archive, and what it kept apart."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine, func, select
from sqlalchemy.exc import SQLAlchemyError

from sabot_floor.archive_files import SourceChecked, check_chains
from sabot_floor.archive_tables import conflicts, quarantine
from sabot_floor.errors import ArchiveFailed


@dataclass(frozen=True, slots=True)
class CheckedFloor:
    """Every source, the rows that came again with another hash, and the messages that could not be read."""

    sources: tuple[SourceChecked, ...]
    conflicts: int
    quarantined: int

    @property
    def wrong(self) -> int:
        """Sources in which something does not fit."""
        return sum(bool(each.wrong) for each in self.sources)

    def to_json(self) -> dict[str, Any]:
        """For a page."""
        return {
            "sources": [asdict(each) for each in self.sources],
            "rows": sum(each.rows for each in self.sources),
            "wrong": self.wrong,
            "conflicts": self.conflicts,
            "quarantined": self.quarantined,
        }


def check_floor(engine: Engine, heard: Callable[[int], None] = lambda _: None) -> CheckedFloor:
    """Compute every hash again; `ArchiveFailed` if the archive cannot be read. ``heard`` hears rows."""
    try:
        with engine.connect() as db:
            differing = db.execute(select(func.count()).select_from(conflicts)).scalar_one()
            unread = db.execute(select(func.count()).select_from(quarantine)).scalar_one()
        return CheckedFloor(tuple(check_chains(engine, heard)), int(differing), int(unread))
    except SQLAlchemyError as error:
        raise ArchiveFailed(f"the archive cannot be read: {error}") from error
