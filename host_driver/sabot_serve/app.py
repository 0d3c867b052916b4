"""The routes of a table's service. What changes something is a POST with a CSRF token or a local token."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, select_autoescape
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from sabot_driver.errors import SabotError
from sabot_serve.api_description import description
from sabot_serve.dealer_view import dealer_view
from sabot_serve.floor_view import floor_view
from sabot_serve.jog_desk import JogDesk
from sabot_serve.languages import ENGLISH, LANGUAGES, say_in
from sabot_serve.local_api import LocalApi, Owned
from sabot_serve.machine_watch import PART, MachineWatch
from sabot_serve.page_words import dealer_words, floor_words
from sabot_serve.paging import channel_name, render_page
from sabot_serve.phrases import Say
from sabot_serve.requests import ActRequest
from sabot_serve.table_people import AtPage, Register
from sabot_serve.technician_routes import TechnicianRoutes
from sabot_serve.technician_view import SERVICE, technician_view
from sabot_serve.view_stream import ViewStream
from sabot_session import acts
from sabot_session.acts import NotAnAct, parse_act
from sabot_session.asyncio_session import AsyncSession
from sabot_session.errors import NotAuthenticated, PersonUnknown, PinDelayed, RecordFailed
from sabot_session.outcomes import ActRefused, NeedGone, NotYours
from sabot_session.round_export import round_json
from sabot_session.round_history import build_round
from sabot_session.rows import NumberedRow, Record
from sabot_table.errors import RuleViolation, TableError
from sabot_table.procedure import TableRole
from sabot_web import access
from sabot_web.access import Access, Browser
from sabot_web.doors import Doors, telling
from sabot_web.errors import Refused
from sabot_web.request_counts import CountedRequests, RequestCounts
from sabot_web.requests import ShownCredential, read_body, read_number
from sabot_web.view_channels import EventResponse
from sabot_web.web_guard import WebGuard

log = logging.getLogger("sabot.serve")
HERE = Path(__file__).parent
LONGEST_CURSOR = 64
MOST_ROWS = 500
PLAYERS = "players"
"""Channels whose names begin so belong to the players' listener."""


@dataclass(frozen=True)
class Served:
    """What a service serves, and under which names."""

    session: AsyncSession
    people: Register
    record: Record
    hosts: Collection[str]
    scheme: str = "http"
    browsers: Path | None = None
    """The file that keeps the browsers that were let in."""
    stopped: Callable[[], None] = lambda: None
    """Called when the session has stopped: the service ends then too."""
    owned: Owned | None = None
    """What programs of this computer may ask about the table; None if they may not."""
    simulated: Callable[[TableRole], object] | None = None
    """The simulated person of a role, where somebody at a terminal may act as one."""


class TableApp:
    """The web application of one table."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.requests = RequestCounts()
        self.access = Access(served.browsers)
        self._doors = Doors(self.access, served.hosts, served.scheme)
        self.views = ViewStream(served.session)
        for language in LANGUAGES:
            self.views.channel(channel_name("dealer", language), partial(dealer_view, say=say_in(language)))
        self.views.channel("floor", floor_view)
        self.views.channel("table", _of_session)
        self._pages = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape())
        owned = served.owned
        service_routes: list[Route] = []
        if owned is not None:
            self.views.channel(SERVICE, technician_view)
            self.desk = JogDesk(owned.client)
            technician = TechnicianRoutes(self.desk, served.session, served.people, self._doors.actor)
            service_routes = [Route("/service", self._service_page), *technician.routes(_json)]
        local = (
            None if owned is None else LocalApi(served.session, served.record, owned, self._doors.is_local)
        )
        self.asgi = Starlette(
            routes=[
                *([] if local is None else local.routes(_json)),
                *service_routes,
                Route("/", self._home),
                Route("/enter", self._enter_page),
                Route("/dealer", self._dealer_page),
                Route("/floor", self._floor_page),
                *self._doors.routes(_json),
                Route("/api/sign-in", _json(self._sign_in), methods=["POST"]),
                Route("/api/sign-out", _json(self._sign_out), methods=["POST"]),
                Route("/api/acts", _json(self._act), methods=["POST"]),
                Route("/api/snapshot", _json(self._snapshot)),
                Route("/api/description", _json(self._description)),
                Route("/api/rows", _json(self._rows)),
                Route("/api/rounds/{round_id}", _json(self._round)),
                Route("/api/events/{channel}", _json(self._events)),
                Mount("/static", StaticFiles(directory=HERE / "static")),
            ],
            middleware=[
                Middleware(CountedRequests, counts=self.requests),
                Middleware(WebGuard, hosts=served.hosts, scheme=served.scheme),
            ],
            lifespan=self._lifespan,
        )
        self.asgi.router.redirect_slashes = False

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        follows = asyncio.create_task(self.views.run())
        follows.add_done_callback(self._ended)
        tasks = [follows]
        if self._served.owned is not None:
            watch = MachineWatch(self._served.owned.client)
            looked_at = lambda: self.views.readers(SERVICE) > 0  # noqa: E731
            tasks.append(asyncio.create_task(watch.run(looked_at, self.views.add)))
        try:
            yield
        finally:
            for each in tasks:
                each.cancel()
            for each in tasks:
                with suppress(asyncio.CancelledError, BaseExceptionGroup):
                    await each

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled():
            log.error("the table's session has stopped: %s", task.exception())
            self._served.stopped()

    # -- pages ----------------------------------------------------------------------------------

    async def _home(self, request: Request) -> Response:
        return RedirectResponse("/enter" if self._doors.browser(request) is None else "/dealer", 303)

    async def _enter_page(self, request: Request) -> Response:
        return self._page("enter.html", request)

    async def _dealer_page(self, request: Request) -> Response:
        browser = self._doors.browser(request)
        if browser is None:
            return RedirectResponse("/enter", 303)
        return self._page("dealer.html", request, csrf=browser.csrf, person=browser.person)

    async def _floor_page(self, request: Request) -> Response:
        browser = self._doors.browser(request)
        if browser is None:
            return RedirectResponse("/enter", 303)
        return self._page("floor.html", request, floor_words, csrf=browser.csrf)

    async def _service_page(self, request: Request) -> Response:
        browser = self._doors.browser(request)
        if browser is None:
            return RedirectResponse("/enter", 303)
        return self._page("service.html", request, csrf=browser.csrf)

    def _page(
        self,
        name: str,
        request: Request,
        words: Callable[[Say], dict[str, str]] = dealer_words,
        **values: Any,
    ) -> HTMLResponse:
        table = self.views.snapshot.get("table", {}).get("name", "")
        return HTMLResponse(render_page(self._pages, name, request, table, words, **values))

    # -- reading --------------------------------------------------------------------------------

    async def _events(self, request: Request) -> "Response | EventResponse":
        allowed = self._doors.reader(request)
        name = request.path_params["channel"]
        if name == "dealer":
            name = channel_name(name, request.query_params.get("lang", ENGLISH))
        if not self.views.has(name) or name.startswith(PLAYERS):
            raise Refused(404, "no_such_channel", "there is no such stream")
        after = request.headers.get("last-event-id") or request.query_params.get("after") or ""
        return self.views.response(name, after[:LONGEST_CURSOR] or None, allowed)

    async def _snapshot(self, request: Request) -> Response:
        self._doors.reader(request)
        return JSONResponse(await self._served.session.read(lambda session: session.snapshot()))

    async def _rows(self, request: Request) -> Response:
        """Rows of the record after a number, 500 at most."""
        self._doors.reader(request)
        after = read_number("after", request.query_params.get("after", "0"))
        found = await self._served.session.read(lambda _: self._served.record.rows(after, MOST_ROWS))
        return JSONResponse({"rows": [_row(each) for each in found]})

    async def _round(self, request: Request) -> Response:
        """A round as the record tells it."""
        self._doors.reader(request)
        wanted = read_number("round", request.path_params["round_id"])
        found = await self._served.session.read(lambda _: self._served.record.round_rows(wanted))
        if not found:
            raise Refused(404, "no_such_round", f"the record has no round {wanted}")
        return JSONResponse(round_json(build_round(found)))

    async def _description(self, request: Request) -> Response:
        self._doors.reader(request)
        return JSONResponse(description())

    # -- people ---------------------------------------------------------------------------------

    async def _sign_in(self, request: Request) -> Response:
        browser = self._doors.page(request)
        body = await read_body(request, ShownCredential)
        presented = body.presented()
        with access.guess(browser, time.time()):
            who = await asyncio.to_thread(self._served.people.authenticate, presented, int(time.time()))
        if TableRole.DEALER not in who.roles:
            advice = "Floor and service show who they are at each act."
            raise Refused(403, "no_dealer", f"{who.person} is no dealer", advice)
        told = {"person": who.person, "deals": True, "message": ""}
        table = await self._served.session.read(lambda session: session.snapshot()["table"])
        if table["dealer"] != who.person:
            try:
                act_id = f"sign-in-{secrets.token_hex(8)}"
                await self._served.session.act(act_id, None, 0, presented, acts.SignIn())
            except (ActRefused, RuleViolation) as error:
                told = {**told, "deals": False, "message": str(error)}
        self.access.signed(browser, who.person, time.time())
        return JSONResponse(told)

    async def _sign_out(self, request: Request) -> Response:
        browser = self._doors.page(request)
        person = browser.person
        table = await self._served.session.read(lambda session: session.snapshot()["table"])
        if person and table["dealer"] == person:
            # A dealer stays until the round is over: a refusal leaves the person signed in.
            act_id = f"sign-out-{secrets.token_hex(8)}"
            await self._served.session.act(act_id, None, 0, AtPage(person), acts.SignOut())
        self.access.signed(browser, "", time.time())
        return JSONResponse({"person": ""})

    async def _act(self, request: Request) -> Response:
        browser = self._doors.actor(request)
        body = await read_body(request, ActRequest)
        act = parse_act(body.act, body.data)
        shown = self._shown(browser, body.credential)
        with access.guess(browser, time.time()):
            done = await self._served.session.act(body.act_id, body.need, body.seen, shown, act)
        return JSONResponse({"row": done.row, "repeated": done.repeated})

    def _shown(self, browser: Browser, credential: ShownCredential | None) -> object:
        """What the person who acts shows to the session."""
        if credential is None:
            return AtPage(browser.person)
        if not credential.simulated:
            return credential.presented()
        if self._served.simulated is None:
            raise Refused(403, "not_simulated", "nobody acts as simulated people here")
        return self._served.simulated(TableRole(credential.simulated))


def _of_session(snapshot: Mapping[str, Any]) -> Mapping[str, Any]:
    """The session's snapshot alone."""
    return {name: part for name, part in snapshot.items() if name != PART}


def _row(each: NumberedRow) -> dict[str, Any]:
    """A row for a page: who did what when. What it says in detail is with its round."""
    row = each.row
    return {
        "number": each.number,
        "kind": row.kind,
        "at_s": row.at_s,
        "person": row.actor.person,
        "role": row.actor.role,
        "how": row.actor.how,
        "round": row.round_id,
        "clause": row.clause,
    }


def _told(error: Exception) -> Refused:
    """An error of the session as HTTP tells it."""
    name, advice = type(error).__name__, str(getattr(error, "advice", "") or "")
    if isinstance(error, NotAnAct):
        return Refused(400, "not_an_act", str(error), advice)
    if isinstance(error, PinDelayed):
        return Refused(429, "pin_delayed", str(error), advice)
    if isinstance(error, NotAuthenticated | PersonUnknown):
        return Refused(401, "not_authenticated", str(error), advice)
    if isinstance(error, NotYours):
        return Refused(403, "not_yours", str(error), advice)
    if isinstance(error, NeedGone):
        return Refused(409, "need_gone", str(error), advice)
    if isinstance(error, ActRefused):
        return Refused(409, "refused", str(error), advice)
    if isinstance(error, RuleViolation | TableError):
        return Refused(422, "rule", str(error), advice)
    if isinstance(error, RecordFailed):
        return Refused(503, "record", str(error), advice)
    return Refused(500, name, str(error), advice)


_json = telling((SabotError, TableError, NotAnAct), _told)
"""A route whose refusals and errors are told as JSON."""
