"""A database whose n-th statement fails once."""

import sqlite3
from typing import Any


class Failing(sqlite3.Connection):
    """Counts its statements; the one that brings ``left`` to 0 fails before anything is done."""

    left = 0

    def _count(self) -> None:
        kind = Failing
        kind.left -= 1
        if kind.left == 0:
            error = sqlite3.OperationalError("injected")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Execute, or fail."""
        self._count()
        return super().execute(sql, *values)

    def executemany(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Execute, or fail."""
        self._count()
        return super().executemany(sql, *values)
