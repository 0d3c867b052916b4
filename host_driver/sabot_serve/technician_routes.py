"""The routes of the technician's page: a permit to jog, and the held button."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sabot_serve.jog_desk import JogDesk
from sabot_serve.machine_watch import PARTS
from sabot_serve.requests import ActId
from sabot_serve.table_people import Register
from sabot_session.asyncio_session import AsyncSession
from sabot_session.service_acts import JogPart, PartName
from sabot_web import access
from sabot_web.access import Browser
from sabot_web.errors import Refused
from sabot_web.requests import Part, Short, ShownCredential, read_body

Handler = Callable[[Request], Awaitable[Any]]


class PermitRequest(Part):
    """A technician asks to jog one part."""

    act_id: ActId
    seen: Annotated[int, Field(ge=0, lt=2**53)]
    part: PartName
    credential: ShownCredential


class PressRequest(Part):
    """The button of a roller is pressed."""

    permit: Short
    direction: Literal[1, -1]


class RenewRequest(Part):
    """It is still held; the token is that of the answer before."""

    permit: Short
    token: Short


class ReleaseRequest(Part):
    """It is released, or the page is hidden."""

    permit: Short


class MoveRequest(Part):
    """One step of an axis."""

    permit: Short
    amount: Annotated[int, Field(ge=0, le=200_000)]


class TechnicianRoutes:
    """Joins the jog desk to requests. ``actor`` tells the browser that sent one, with its CSRF token."""

    def __init__(
        self,
        desk: JogDesk,
        session: AsyncSession,
        people: Register,
        actor: Callable[[Request], Browser],
    ) -> None:
        self._desk = desk
        self._session = session
        self._people = people
        self._actor = actor

    def routes(self, answered: Callable[[Handler], Handler]) -> list[Route]:
        """The routes; ``answered`` makes refusals into answers."""
        found = {
            "permit": self._permit,
            "press": self._press,
            "renew": self._renew,
            "release": self._release,
            "move": self._move,
        }
        return [Route(f"/api/jog/{name}", answered(each), methods=["POST"]) for name, each in found.items()]

    async def _permit(self, request: Request) -> Response:
        browser = self._actor(request)
        body = await read_body(request, PermitRequest)
        shown = body.credential.presented()
        with access.guess(browser, time.time()):
            await self._session.act(body.act_id, None, body.seen, shown, JogPart(body.part))
            who = await asyncio.to_thread(self._people.authenticate, shown, int(time.time()))
        if who.key is None:
            raise Refused(403, "no_key", f"{who.person} has no key on this machine", "Use your key file.")
        permit = await asyncio.to_thread(self._desk.allow, browser.csrf, PARTS[body.part], who.key)
        return JSONResponse({"permit": permit})

    async def _press(self, request: Request) -> Response:
        browser, body = self._actor(request), await read_body(request, PressRequest)
        token = await asyncio.to_thread(self._desk.press, browser.csrf, body.permit, body.direction)
        return JSONResponse({"token": token})

    async def _renew(self, request: Request) -> Response:
        browser, body = self._actor(request), await read_body(request, RenewRequest)
        token = await asyncio.to_thread(self._desk.renew, browser.csrf, body.permit, body.token)
        return JSONResponse({"token": token})

    async def _release(self, request: Request) -> Response:
        browser, body = self._actor(request), await read_body(request, ReleaseRequest)
        await asyncio.to_thread(self._desk.release, browser.csrf, body.permit)
        return JSONResponse({"released": True})

    async def _move(self, request: Request) -> Response:
        browser, body = self._actor(request), await read_body(request, MoveRequest)
        await asyncio.to_thread(self._desk.move, browser.csrf, body.permit, body.amount)
        return JSONResponse({"moved": True})
