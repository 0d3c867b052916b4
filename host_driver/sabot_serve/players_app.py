"""The players' display: a listener of its own that only reads. It has no sign-in and no act."""

from collections.abc import Collection
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, select_autoescape
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from sabot_serve.players_view import players_view
from sabot_serve.view_stream import EventResponse, ViewStream
from sabot_serve.web_guard import WebGuard

HERE = Path(__file__).parent
CHANNEL = "players"
LONGEST_CURSOR = 64


def players_app(views: ViewStream, hosts: Collection[str], scheme: str) -> Starlette:
    """The application; ``views`` are those of the table's service."""
    views.channel(CHANNEL, players_view)
    pages = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape())
    template = pages.get_template("players.html")

    async def page(request: Request) -> HTMLResponse:
        table = views.snapshot.get("table", {}).get("name", "")
        return HTMLResponse(template.render(table=table, language="en", _=str))

    async def events(request: Request) -> EventResponse:
        after = request.headers.get("last-event-id") or ""
        return views.response(CHANNEL, after[:LONGEST_CURSOR] or None, _always)

    app = Starlette(
        routes=[
            Route("/", page),
            Route("/events", events),
            Mount("/static_players", StaticFiles(directory=HERE / "static_players")),
        ],
        middleware=[Middleware(WebGuard, hosts=hosts, scheme=scheme)],
    )
    app.router.redirect_slashes = False
    return app


def _always() -> bool:
    return True
