"""What every request must pass before any route sees it: host, origin, size. And headers for every answer.

A page of another site can make a browser send requests here, and can let its own name point to this address
(DNS rebinding). Both are refused here: the ``Host`` must be one of ours, and a request that could change
something must name one of our origins.
"""

import asyncio
import logging
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sabot_web.errors import Refused

log = logging.getLogger("sabot.serve")

LARGEST_BODY = 16 * 1024
BODY_S = 10.0
LONGEST_LINE = 300  # of the log
SAFE = ("GET", "HEAD")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


def log_refusal(method: str, path: str, refused: Refused) -> None:
    """Note a refused request in one printable line: path and words may come from an attacker."""
    words = f"refused {method} {path}: {refused}"[:LONGEST_LINE]
    log.warning("%s", "".join(each if each.isprintable() else "?" for each in words))


def refusal(refused: Refused) -> JSONResponse:
    """A refusal as every route answers it."""
    told = {"error": refused.reason, "message": str(refused), "advice": refused.advice}
    return JSONResponse(told, refused.status)


class WebGuard:
    """ASGI middleware; ``hosts`` are our names with port, ``scheme`` is http or https."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], scheme: str) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._origins = frozenset(f"{scheme}://{each}" for each in hosts)
        self._secure = scheme == "https"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # a WebSocket: uvicorn refuses the handshake

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
                if self._secure:
                    headers["strict-transport-security"] = "max-age=31536000"
            await send(message)

        try:
            self._check(scope)
            body = _Bounded(receive, scope["method"] not in SAFE)
            await self._app(scope, body, with_headers)
        except Refused as refused:
            log_refusal(scope["method"], scope["path"], refused)
            await refusal(refused)(scope, receive, with_headers)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self._hosts or len(headers.getlist("host")) != 1:
            advice = "Use the address that it printed."
            raise Refused(421, "wrong_host", "this service has another name", advice)
        site = headers.get("sec-fetch-site")
        if site not in (None, "none", "same-origin") and not _is_navigation(scope, headers):
            raise Refused(403, "foreign_origin", "a page of another site sent this request")
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            raise Refused(403, "foreign_origin", "a page of another site sent this request")
        if scope["method"] not in SAFE:
            local = headers.get("authorization", "").lower().startswith("bearer ")
            if origin is None and not local:
                raise Refused(403, "no_origin", "the request does not say which page sent it")
            length = headers.get("content-length", "0")
            if not (length.isascii() and length.isdigit()) or int(length) > LARGEST_BODY:
                raise Refused(413, "too_large", f"a request has {LARGEST_BODY} bytes at most")


def _is_navigation(scope: Scope, headers: Headers) -> bool:
    """Whether a person followed a link to a page: that changes nothing, and shows no other site anything."""
    return scope["method"] in SAFE and headers.get("sec-fetch-mode") == "navigate"


class _Bounded:
    """The body of a request: shorter than it says perhaps, never longer than is allowed, and soon."""

    def __init__(self, receive: Receive, has_body: bool) -> None:
        self._receive = receive
        self._read = 0
        self._more = has_body

    async def __call__(self) -> Message:
        if not self._more:
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), BODY_S)
        except TimeoutError:
            raise Refused(408, "too_slow", f"a request comes whole within {BODY_S:.0f} s") from None
        self._more = bool(message.get("more_body", False))
        self._read += len(message.get("body", b""))
        if self._read > LARGEST_BODY:
            raise Refused(413, "too_large", f"a request has {LARGEST_BODY} bytes at most")
        return message
