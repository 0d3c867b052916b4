"""The routes of the wall's service. A page takes alarms and sends notes to tables' screens, nothing else."""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, select_autoescape
from pydantic import Field
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import sabot_serve
from sabot_driver.errors import SabotError
from sabot_floor.errors import ArchiveFailed
from sabot_floor.wall.alarm_book import AlarmRefused
from sabot_floor.wall.archive_reader import ArchiveReader
from sabot_floor.wall.history_routes import HistoryRoutes
from sabot_floor.wall.note_desk import NoteNotShown, NoteUnanswered
from sabot_floor.wall.wall_feed import NotConnected, WallFeed
from sabot_floor.wall.wall_model import JudgedFloor
from sabot_floor.wall.wall_view import table_view, wall_view
from sabot_floor.wall.wall_words import words
from sabot_session.errors import NotAuthenticated, PersonUnknown, PinDelayed
from sabot_session.notes import LONGEST_TEXT, Note, NotesNotAllowed, NoteUnfit
from sabot_session.people import PeopleRegister
from sabot_table.procedure import TableRole
from sabot_web import access
from sabot_web.access import Access, Browser
from sabot_web.doors import Doors, telling
from sabot_web.errors import Refused
from sabot_web.requests import Part, Short, ShownCredential, read_body
from sabot_web.view_channels import EventResponse, ViewChannels
from sabot_web.web_guard import WebGuard

HERE = Path(__file__).parent
PAGES = Path(sabot_serve.__file__).parent
"""The table's pages: the wall has their style sheet, their stream and their dialogue."""
ADVICE = "Ask for a new one: run 'sabot floor serve' again."
WALL = "wall"
FLOOR = "floor"
LONGEST_CURSOR = 64
MAY_TAKE = (TableRole.FLOOR, TableRole.SERVICE)
CLOCK_S = 2.0


class AlarmRequest(Part):
    """Which alarm, as the person saw it."""

    table: Short
    kind: Short
    revision: Annotated[int, Field(ge=1, lt=2**53)]


class NoteRequest(Part):
    """A note for a table's screen; the page repeats the id if it sends the same note again."""

    table: Short
    note_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16,32}$")]
    text: Annotated[str, Field(max_length=LONGEST_TEXT)]


@dataclass(frozen=True)
class ServedWall:
    """What the wall's service serves, and under which names."""

    feed: WallFeed
    site: str
    people: PeopleRegister
    archive: ArchiveReader | None
    hosts: Collection[str]
    scheme: str = "http"
    browsers: Path | None = None
    """The file that keeps the browsers that were let in."""


class WallApp:
    """The web application of one wall."""

    def __init__(self, served: ServedWall) -> None:
        self._served = served
        self.access = Access(served.browsers, ADVICE)
        self._doors = Doors(self.access, served.hosts, served.scheme)
        self.views = ViewChannels()
        self.views.channel(WALL, lambda told: wall_view(told[FLOOR], served.site, self._utc))
        self._offset_s = time.time() - time.monotonic()
        loader = ChoiceLoader([FileSystemLoader(HERE / "templates"), FileSystemLoader(PAGES / "templates")])
        self._pages = Environment(loader=loader, autoescape=select_autoescape())
        self.history = None if served.archive is None else HistoryRoutes(served.archive, self._doors)
        self.asgi = Starlette(
            routes=[
                Route("/", self._home),
                Route("/enter", self._enter_page),
                Route("/wall", partial(self._page, "wall.html")),
                Route("/table/{table}", partial(self._page, "table.html")),
                Route("/history", partial(self._page, "history.html")),
                Route("/evidence", partial(self._page, "evidence.html")),
                *self._doors.routes(_json),
                *([] if self.history is None else self.history.routes(_json)),
                Route("/api/sign-in", _json(self._sign_in), methods=["POST"]),
                Route("/api/sign-out", _json(self._sign_out), methods=["POST"]),
                Route("/api/alarms/take", _json(self._take), methods=["POST"]),
                Route("/api/alarms/give-back", _json(self._give_back), methods=["POST"]),
                Route("/api/notes", _json(self._note), methods=["POST"]),
                Route("/api/snapshot", _json(self._snapshot)),
                Route("/api/events/wall", _json(self._wall_events)),
                Route("/api/events/table/{table}", _json(self._table_events)),
                Mount("/static_wall", StaticFiles(directory=HERE / "static_wall")),
                Mount("/static", StaticFiles(directory=PAGES / "static")),
            ],
            middleware=[Middleware(WebGuard, hosts=served.hosts, scheme=served.scheme)],
            lifespan=self._lifespan,
        )
        self.asgi.router.redirect_slashes = False

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        follows = asyncio.create_task(self._served.feed.run())
        try:
            yield
        finally:
            follows.cancel()
            with suppress(asyncio.CancelledError):
                await follows
            if self.history is not None:
                await self.history.end()

    def shown(self, floor: JudgedFloor) -> None:
        """Take what the feed has judged; its task calls this."""
        self.views.heard()
        self.views.publish({FLOOR: floor})

    def _utc(self, at_s: float) -> int:
        """UTC of a time of the monotonic clock; it changes only when the clock was set."""
        offset_s = time.time() - time.monotonic()
        if abs(offset_s - self._offset_s) > CLOCK_S:
            self._offset_s = offset_s
        return int(self._offset_s + at_s)

    # -- pages ----------------------------------------------------------------------------------

    async def _home(self, request: Request) -> Response:
        return RedirectResponse("/enter" if self._doors.browser(request) is None else "/wall", 303)

    async def _enter_page(self, request: Request) -> Response:
        return self._rendered("enter.html", home="/wall", title="The floor's pages")

    async def _page(self, name: str, request: Request) -> Response:
        browser = self._doors.browser(request)
        if browser is None:
            return RedirectResponse("/enter", 303)
        return self._rendered(
            name,
            csrf=browser.csrf,
            person=browser.person,
            site=self._served.site,
            table=request.path_params.get("table", "")[:32],
            archive=self._served.archive is not None,
        )

    def _rendered(self, name: str, **values: Any) -> HTMLResponse:
        page = self._pages.get_template(name)
        return HTMLResponse(page.render(language="en", _=str, words=words(), **values))

    # -- reading --------------------------------------------------------------------------------

    async def _wall_events(self, request: Request) -> EventResponse:
        return self._events(request, WALL)

    async def _table_events(self, request: Request) -> EventResponse:
        name = request.path_params["table"]
        floor = self.views.snapshot.get(FLOOR)
        if floor is None or all(each.name != name for each in floor.tables):
            raise Refused(404, "no_such_table", "the floor has no table of this name")
        channel = f"table.{name}"
        self.views.channel(channel, partial(self._one_table, name))
        return self._events(request, channel)

    def _one_table(self, name: str, told: Mapping[str, Any]) -> dict[str, Any]:
        return table_view(told[FLOOR], name, self._served.site, self._utc)

    def _events(self, request: Request, channel: str) -> EventResponse:
        allowed = self._doors.reader(request)
        after = request.headers.get("last-event-id") or request.query_params.get("after") or ""
        return self.views.response(channel, after[:LONGEST_CURSOR] or None, allowed)

    async def _snapshot(self, request: Request) -> Response:
        self._doors.reader(request)
        floor = self._served.feed.judged
        return JSONResponse(wall_view(floor, self._served.site, self._utc))

    # -- people ---------------------------------------------------------------------------------

    async def _sign_in(self, request: Request) -> Response:
        browser = self._doors.page(request)
        presented = (await read_body(request, ShownCredential)).presented()
        with access.guess(browser, time.time()):
            who = await asyncio.to_thread(self._served.people.authenticate, presented, int(time.time()))
        if not any(each in who.roles for each in MAY_TAKE):
            advice = "Floor or service sign in here, with badge or key file and PIN."
            raise Refused(403, "no_floor", f"{who.person} is neither floor nor service", advice)
        self.access.signed(browser, who.person, time.time())
        return JSONResponse({"person": who.person})

    async def _sign_out(self, request: Request) -> Response:
        self.access.signed(self._doors.page(request), "", time.time())
        return JSONResponse({"person": ""})

    async def _take(self, request: Request) -> Response:
        browser = self._doors.actor(request)
        body = await read_body(request, AlarmRequest)
        person = self._person(browser)
        await self._served.feed.take(body.table, body.kind, body.revision, person)
        return JSONResponse({"taken_by": person})

    async def _give_back(self, request: Request) -> Response:
        browser = self._doors.actor(request)
        body = await read_body(request, AlarmRequest)
        await self._served.feed.give_back(body.table, body.kind, body.revision, self._person(browser))
        return JSONResponse({"taken_by": None})

    async def _note(self, request: Request) -> Response:
        """A person who is signed in sends a note to one table's screen."""
        browser = self._doors.actor(request)
        body = await read_body(request, NoteRequest)
        person = self._person(browser)
        floor = self._served.feed.judged
        table = next((each for each in floor.tables if each.name == body.table), None)
        if table is None:
            raise Refused(404, "no_such_table", "the floor has no table of this name")
        if table.state is None or not table.state.takes_notes:
            words = f"table {body.table} lets no note in: its rule text or its house says so"
            raise Refused(409, "not_allowed", words, NotesNotAllowed.advice)
        note = Note(body.note_id, person, body.text, int(time.time()))
        await self._served.feed.send_note(body.table, note)
        return JSONResponse({"shown": True})

    def _person(self, browser: Browser) -> str:
        """Who is signed in at the page; `Refused` for nobody, and for a person who was removed meanwhile."""
        if not browser.person:
            raise Refused(401, "not_signed_in", "nobody is signed in at this page", "Sign in first.")
        if self._served.people.find(browser.person).removed:
            removed = f"{browser.person} was removed from the register of people"
            self.access.signed(browser, "", time.time())
            raise Refused(401, "not_signed_in", removed, "Another person takes the alarm.")
        return browser.person


def _told(error: Exception) -> Refused:
    """An error as HTTP tells it."""
    advice = str(getattr(error, "advice", "") or "")
    if isinstance(error, PinDelayed):
        return Refused(429, "pin_delayed", str(error), advice)
    if isinstance(error, NotAuthenticated | PersonUnknown):
        return Refused(401, "not_authenticated", str(error), advice)
    if isinstance(error, AlarmRefused):
        return Refused(409, "alarm", str(error), advice)
    if isinstance(error, NoteUnfit):
        return Refused(400, "note_unfit", str(error), advice)
    if isinstance(error, NoteUnanswered):
        return Refused(504, "note_unanswered", str(error), advice)
    if isinstance(error, NoteNotShown):
        return Refused(409, "note_not_shown", str(error), advice)
    if isinstance(error, NotConnected):
        return Refused(503, "blind", str(error), advice)
    if isinstance(error, ArchiveFailed):
        return Refused(503, "archive", str(error), advice)
    return Refused(500, type(error).__name__, str(error), advice)


_json = telling((SabotError,), _told)
"""A route whose refusals and errors are told as JSON."""
