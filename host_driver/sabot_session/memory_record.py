"""A record in memory, for tests and for emulated devices that are gone with the program."""

import secrets
from collections.abc import Sequence

from sabot_session.errors import ActRepeated
from sabot_session.row_kinds import check_row
from sabot_session.rows import NumberedRow, Row, SavedSession


class MemoryRecord:
    """Rows and saved session in memory; it promises what `Record` does, except the disk."""

    def __init__(self) -> None:
        self.record_id = secrets.token_hex(8)
        self.kept: list[NumberedRow] = []
        self.saved: SavedSession | None = None

    def load(self) -> SavedSession | None:
        """The newest saved session; None in a new record."""
        return self.saved

    def commit(self, rows: Sequence[Row], saved: SavedSession) -> int:
        """Append rows and replace the saved session; the number of the newest row."""
        checked = [check_row(each) for each in rows]
        for row in checked:
            before = self.act(row.act_id) if row.act_id else None
            if before is not None:
                raise ActRepeated(row.act_id, before.number)
        self.kept += [NumberedRow(len(self.kept) + at, row) for at, row in enumerate(checked, 1)]
        self.saved = saved
        return len(self.kept)

    def act(self, act_id: str) -> NumberedRow | None:
        """The row of an act that was accepted before; None if there is none."""
        return next((each for each in self.kept if each.row.act_id == act_id), None)

    def rows(self, after: int = 0, most: int = 1000) -> Sequence[NumberedRow]:
        """Rows with higher numbers than ``after``, oldest first."""
        return self.kept[after : after + most]

    def round_rows(self, round_id: int) -> Sequence[NumberedRow]:
        """All rows of one round, oldest first."""
        return [each for each in self.kept if each.row.round_id == round_id]
