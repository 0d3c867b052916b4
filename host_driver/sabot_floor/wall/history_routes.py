"""Routes that read the archive: rounds, faults, wear, and the check of the evidence. They change nothing."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sabot_floor.errors import ArchiveFailed
from sabot_floor.wall.archive_reader import ArchiveReader, RoundSearch
from sabot_floor.wall.evidence_check import CheckedFloor, check_floor
from sabot_web.doors import Answer, Doors
from sabot_web.errors import Refused
from sabot_web.requests import read_number

LONGEST = 64
LAST_S = 2**43
MOST_AT_ONCE = 4
"""Searches of all pages together; the archive's database has other work."""


class HistoryRoutes:
    """What pages ask the archive."""

    def __init__(self, archive: ArchiveReader, doors: Doors) -> None:
        self._archive = archive
        self._doors = doors
        self._searches = asyncio.Semaphore(MOST_AT_ONCE)
        self._checking: asyncio.Task[None] | None = None
        self._rows = 0
        self._checked: tuple[int, CheckedFloor] | None = None
        self._failed = ""

    def routes(self, told: Callable[[Answer], Answer]) -> list[Route]:
        """The routes; ``told`` tells refusals."""
        return [
            Route("/api/rounds", told(self._rounds)),
            Route("/api/rounds/{table}/{source}/{round}", told(self._round)),
            Route("/api/faults", told(self._rates)),
            Route("/api/tables/{table}/history", told(self._table)),
            Route("/api/evidence", told(self._evidence)),
            Route("/api/evidence/check", told(self._check), methods=["POST"]),
        ]

    async def end(self) -> None:
        """End a check that runs."""
        if self._checking is not None:
            self._checking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._checking

    async def _ask(self, question: Callable[[], Any]) -> Any:
        async with self._searches:
            return await asyncio.to_thread(question)

    async def _rounds(self, request: Request) -> Response:
        self._doors.reader(request)
        wanted = RoundSearch(
            table=_text(request, "table"),
            from_s=_number(request, "from") or 0,
            until_s=_number(request, "until") or LAST_S,
            deck=_number(request, "deck"),
            seat=_number(request, "seat"),
            result=_text(request, "result"),
        )
        found = await self._ask(lambda: self._archive.rounds(wanted))
        return JSONResponse(
            {"rounds": [asdict(each) for each in found.rounds], "looked": found.looked, "more": found.more}
        )

    async def _round(self, request: Request) -> Response:
        self._doors.reader(request)
        table = request.path_params["table"][:LONGEST]
        source, number = (read_number(each, request.path_params[each]) for each in ("source", "round"))
        found = await self._ask(lambda: self._archive.round(table, source, number))
        if found is None:
            raise Refused(404, "no_such_round", f"the archive has no round {number} of this table")
        return JSONResponse(found)

    async def _rates(self, request: Request) -> Response:
        self._doors.reader(request)
        times = _number(request, "from") or 0, _number(request, "until") or LAST_S
        found = await self._ask(lambda: self._archive.fault_rates(*times))
        return JSONResponse(
            {"tables": [{**asdict(each), "per_thousand": each.per_thousand} for each in found]}
        )

    async def _table(self, request: Request) -> Response:
        """The newest rounds and faults of a table, and its rollers."""
        self._doors.reader(request)
        table = request.path_params["table"][:LONGEST]

        def read() -> dict[str, Any]:
            rounds = self._archive.rounds(RoundSearch(table=table))
            return {
                "rounds": [asdict(each) for each in rounds.rounds[:20]],
                "faults": self._archive.faults(table)[:20],
                "wear": self._archive.wear(table),
            }

        return JSONResponse(await self._ask(read))

    async def _evidence(self, request: Request) -> Response:
        self._doors.reader(request)
        return JSONResponse(self._progress())

    async def _check(self, request: Request) -> Response:
        """Check every chain again; one check at a time."""
        self._doors.actor(request)
        if self._checking is None or self._checking.done():
            self._rows, self._failed = 0, ""
            self._checking = asyncio.create_task(self._run_check())
        return JSONResponse(self._progress())

    async def _run_check(self) -> None:
        def heard(rows: int) -> None:
            self._rows = rows

        try:
            found = await asyncio.to_thread(check_floor, self._archive.engine, heard)
            self._checked = int(time.time()), found
        except ArchiveFailed as error:
            self._failed = str(error)

    def _progress(self) -> dict[str, Any]:
        running = self._checking is not None and not self._checking.done()
        told: dict[str, Any] = {"running": running, "rows_so_far": self._rows, "failed": self._failed}
        if self._checked is not None:
            told |= {"at_s": self._checked[0], "checked": self._checked[1].to_json()}
        return told


def _text(request: Request, name: str) -> str:
    return request.query_params.get(name, "").strip()[:LONGEST]


def _number(request: Request, name: str) -> int | None:
    given = _text(request, name)
    return read_number(name, given) if given else None
