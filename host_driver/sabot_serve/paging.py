"""Pages in the reader's language: templates with their words, and the name of each language's stream."""

from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import Environment
from starlette.requests import Request

from sabot_serve.languages import LANGUAGES, language_of, next_language, say_in
from sabot_serve.phrases import Say


def channel_name(page: str, language: str) -> str:
    """The stream of a page in a language."""
    return f"{page}.{language}"


def render_page(
    pages: Environment,
    name: str,
    request: Request,
    table: str,
    words: Callable[[Say], Mapping[str, str]],
    **values: Any,
) -> str:
    """A page as HTML; its address or its reader's browser says in which language."""
    language = language_of(request.query_params.get("lang", ""), request.headers.get("accept-language", ""))
    say, other = say_in(language), next_language(language)
    return pages.get_template(name).render(
        table=table,
        language=language,
        other_language=other,
        other_name=LANGUAGES[other],
        _=say,
        words=words(say),
        **values,
    )
