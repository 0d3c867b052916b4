"""The players' display: a listener of its own that only reads. It has no sign-in and no act."""

from collections.abc import Collection
from functools import partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, select_autoescape
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from sabot_serve.languages import ENGLISH, LANGUAGES, say_in
from sabot_serve.page_words import players_words
from sabot_serve.paging import channel_name, render_page
from sabot_serve.players_view import players_view
from sabot_serve.view_stream import ViewStream
from sabot_web.view_channels import EventResponse
from sabot_web.web_guard import WebGuard

HERE = Path(__file__).parent
CHANNEL = "players"
LONGEST_CURSOR = 64


def players_app(views: ViewStream, hosts: Collection[str], scheme: str) -> Starlette:
    """The application; ``views`` are those of the table's service."""
    for language in LANGUAGES:
        views.channel(channel_name(CHANNEL, language), partial(players_view, say=say_in(language)))
    pages = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape())

    async def page(request: Request) -> HTMLResponse:
        table = views.snapshot.get("table", {}).get("name", "")
        return HTMLResponse(render_page(pages, "players.html", request, table, players_words))

    async def events(request: Request) -> EventResponse:
        after = request.headers.get("last-event-id") or ""
        asked = request.query_params.get("lang", ENGLISH)
        name = channel_name(CHANNEL, asked if asked in LANGUAGES else ENGLISH)
        return views.response(name, after[:LONGEST_CURSOR] or None, _always)

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
