"""What only programs of this computer may ask: whole rows of the record, and the device by its driver.

A terminal that attaches to a running table needs them, and so do ``sabot watch`` and ``sabot status``. Each
request shows the local token, so whoever asks could read the same files.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sabot_driver import Client
from sabot_driver.journal import JournalEntry
from sabot_driver.link_state import LinkState
from sabot_driver.serial_numbers import format_serial
from sabot_session.asyncio_session import AsyncSession
from sabot_session.canonical import row_bytes
from sabot_session.round_history import build_round
from sabot_session.row_kinds import BY_NAME
from sabot_session.rows import NumberedRow, Record
from sabot_session.settlement_preview import with_preview
from sabot_web.errors import Refused
from sabot_web.requests import read_number

MOST_ROWS = 500
MOST_EVENTS = 500
ASK_S = 5.0
VERSION = 1
"""Of what programs of this computer read here; one that knows another version does not attach."""


@dataclass(frozen=True)
class Owned:
    """What the process that runs a table can tell programs of this computer about it."""

    client: Client
    simulated_people: bool
    """Whether somebody at a terminal acts as simulated people here."""
    pages: bool
    """Whether browsers find pages here."""
    checkpoints: Callable[[], list[str]] = list
    """The newest signed checkpoints of record and journal, as lines."""


Route_ = Callable[[Callable[[Request], Any]], Callable[[Request], Any]]


class LocalApi:
    """The routes for programs of this computer."""

    def __init__(
        self, session: AsyncSession, record: Record, owned: Owned, is_local: Callable[[Request], bool]
    ) -> None:
        self._session = session
        self._record = record
        self._owned = owned
        self._is_local = is_local

    def routes(self, json: Route_) -> list[Route]:
        """The routes; ``json`` makes a route's refusals JSON."""
        return [
            Route("/api/local/about", json(self._about)),
            Route("/api/local/rows", json(self._rows)),
            Route("/api/local/rounds/{round_id}", json(self._round)),
            Route("/api/local/checkpoints", json(self._checkpoints)),
            Route("/api/local/status", json(self._status)),
            Route("/api/local/device-events", json(self._events)),
        ]

    def _check(self, request: Request) -> None:
        if not self._is_local(request):
            raise Refused(403, "not_local", "only a program of this computer may ask this")

    async def _about(self, request: Request) -> Response:
        self._check(request)
        client = self._owned.client
        about = client.identity
        table = await self._session.read(lambda session: session.snapshot()["table"])
        return JSONResponse(
            {
                "version": VERSION,
                "table": table["name"],
                "ruleset": table["ruleset"],
                "serial": format_serial(about.serial),
                "model": about.model,
                "firmware": about.version,
                "url": client.url,
                "simulator": client.simulator,
                "boot_id": 0 if client.peer is None else client.peer.boot_id,
                "kept": client.journal.path is not None,
                "simulated_people": self._owned.simulated_people,
                "pages": self._owned.pages,
            }
        )

    async def _rows(self, request: Request) -> Response:
        """Whole rows after a number, 500 at most, of some kinds or of all."""
        self._check(request)
        after = read_number("after", request.query_params.get("after", "0"))
        kinds = frozenset(filter(None, request.query_params.get("kinds", "").split(",")))
        strange = kinds - BY_NAME.keys()
        if strange:
            raise Refused(400, "bad_request", f"kinds: the record has no {min(strange)}")

        def look(_: object) -> tuple[list[str], int]:
            found = self._record.rows(after, MOST_ROWS)
            last = found[-1].number if found else after
            return [_text(each) for each in found if not kinds or each.row.kind in kinds], last

        rows, last = await self._session.read(look)
        return JSONResponse({"rows": rows, "last": last})

    async def _round(self, request: Request) -> Response:
        """The rows of a round, and what its wagers pay if they are not settled yet."""
        self._check(request)
        wanted = read_number("round", request.path_params["round_id"])

        def look(session: Any) -> dict[str, Any]:
            rows = self._record.round_rows(wanted)
            if not rows:
                raise Refused(404, "no_such_round", f"the record has no round {wanted}")
            told = build_round(rows)
            shown = with_preview(session, told).facts.settled
            preview = None if told.facts.settled is not None or shown is None else shown.to_json()
            return {"rows": [_text(each) for each in rows], "preview": preview}

        return JSONResponse(await self._session.read(look))

    async def _checkpoints(self, request: Request) -> Response:
        """The newest signed checkpoints, which the floor keeps."""
        self._check(request)
        return JSONResponse({"lines": await asyncio.to_thread(self._owned.checkpoints)})

    async def _status(self, request: Request) -> Response:
        """The device's state, as the device answers now."""
        self._check(request)
        report = await asyncio.to_thread(self._owned.client.status, ASK_S)
        return JSONResponse({"body": report.pack().hex()})

    async def _events(self, request: Request) -> Response:
        """Events of the device after a row of its journal, 500 at most, and whether it has a link."""
        self._check(request)
        client = self._owned.client
        newest = client.loop.rows
        after = read_number("after", request.query_params.get("after", str(newest)))
        found = await asyncio.to_thread(client.journal.after, after, MOST_EVENTS) if after < newest else []
        up = client.link is LinkState.UP
        return JSONResponse({"events": [_entry(each) for each in found], "newest": newest, "up": up})


def _text(each: NumberedRow) -> str:
    """A row as its canonical text: who reads it checks that it is whole."""
    return row_bytes(each).decode()


def _entry(each: JournalEntry) -> dict[str, Any]:
    return {
        "id": each.id,
        "memory_id": each.memory_id.hex(),
        "boot_id": each.boot_id,
        "n": each.n,
        "is_gap": each.is_gap,
        "ticks_ms": each.ticks_ms,
        "utc_ms": each.utc_ms,
        "quality": each.quality,
        "message": each.message,
        "body": each.body.hex(),
        "gap_size": each.gap_size,
        "gap_from": each.gap_from,
        "at_us": each.at_us,
    }
