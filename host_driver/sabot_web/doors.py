"""Who sends a request: a browser that was let in, or a program of this computer. How refusals are told."""

import time
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sabot_web import access
from sabot_web.access import Access, Browser
from sabot_web.errors import Refused
from sabot_web.requests import EnterRequest, read_body
from sabot_web.web_guard import log_refusal, refusal

COOKIE = "sabot"
CSRF_HEADER = "x-sabot-csrf"

Answer = Callable[[Request], Awaitable[Any]]


class Doors:
    """The doors of one service. ``hosts`` are its names with port."""

    def __init__(self, access: Access, hosts: Collection[str], scheme: str) -> None:
        self.access = access
        self._secure = scheme == "https"
        self._cookie = f"{COOKIE}_{_port(hosts)}"  # cookies are shared by all ports of a host
        self._programs = Browser("", 0.0)  # all programs of this computer: their guesses count together

    def routes(self, told: "Callable[[Answer], Answer]") -> list[Route]:
        """Entering with a token, and asking for one; ``told`` tells refusals."""
        return [
            Route("/api/enter", told(self._enter), methods=["POST"]),
            Route("/api/invite", told(self._invite), methods=["POST"]),
        ]

    def browser(self, request: Request) -> Browser | None:
        """The browser that sent a request; None if it was not let in."""
        return self.access.browser(request.cookies.get(self._cookie, ""), time.time())

    def is_local(self, request: Request) -> bool:
        """Whether a program of this computer sent it."""
        return self.access.is_local(request.headers.get("authorization", ""))

    def reader(self, request: Request) -> Callable[[], bool]:
        """Whether who asks may still look; `Refused` if not even now."""
        if self.is_local(request):
            return lambda: True
        if self.browser(request) is None:
            raise not_let_in()
        return lambda: self.browser(request) is not None

    def actor(self, request: Request) -> Browser:
        """The browser that sent a POST, with its CSRF token; a local program is one without a person."""
        if self.is_local(request):
            return self._programs
        browser = self.browser(request)
        if browser is None:
            raise not_let_in()
        access.check_csrf(browser, request.headers.get(CSRF_HEADER, ""))
        self.access.touch(browser, time.time())
        return browser

    def page(self, request: Request) -> Browser:
        """The browser that sent a POST, for what is kept with a page; `Refused` for a local program.

        All local programs show the same token. If one of them could sign a person in, all could act as that
        person.
        """
        if self.is_local(request):
            raise Refused(
                403,
                "no_page",
                "nobody signs in by the token of local programs",
                "Enter with a one-time token first, or show a credential with each act.",
            )
        return self.actor(request)

    async def _enter(self, request: Request) -> Response:
        body = await read_body(request, EnterRequest)
        cookie, browser = self.access.enter(body.token, time.time(), self.is_local(request))
        answer = JSONResponse({"entered": True, "csrf": browser.csrf})
        answer.set_cookie(
            self._cookie,
            cookie,
            max_age=access.BROWSER_S,
            httponly=True,
            samesite="strict",
            secure=self._secure,
        )
        return answer

    async def _invite(self, request: Request) -> Response:
        if not self.is_local(request):
            raise Refused(403, "not_local", "only a program of this computer may ask for a token")
        return JSONResponse({"token": self.access.invite(time.time())})


def telling(
    known: tuple[type[Exception], ...], told: Callable[[Exception], Refused]
) -> Callable[[Answer], Answer]:
    """What makes a route answer refusals, and ``known`` errors by way of ``told``, as JSON."""

    def of(route: Answer) -> Answer:
        async def answer(request: Request) -> Any:
            try:
                return await route(request)
            except Refused as refused:
                found = refused
            except known as error:
                found = told(error)
            log_refusal(request.method, request.url.path, found)
            return refusal(found)

        return answer

    return of


def not_let_in() -> Refused:
    """The refusal of a browser that has not entered."""
    advice = "Open the address with a new token."
    return Refused(401, "not_let_in", "this browser was not let in, or too long ago", advice)


def _port(hosts: Collection[str]) -> str:
    return next(iter(hosts)).rpartition(":")[2]
