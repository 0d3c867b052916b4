"""Who may use a service's pages: one-time tokens, browsers that were let in, and the people signed in there.

A browser is let in by a one-time token. It may then look. To act, a person signs in there, and that ends when
nobody touches the page for a while. Authority of floor and service is never kept: each of their acts carries
its own credential. Everything is bounded. Tokens are in memory only; browsers are also in a private file, so
that pages go on after a restart of the service. Of cookies and tokens only hashes are kept.
"""

import hashlib
import hmac
import json
import logging
import secrets
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from sabot_driver.private_files import open_new
from sabot_session.errors import NotAuthenticated, PersonUnknown
from sabot_web.errors import Refused

log = logging.getLogger("sabot.serve")

TOKEN_S = 15 * 60
BROWSER_S = 12 * 3600  # a shift and a half; then a new token
IDLE_S = 15 * 60  # without a touch a person is signed out of the page
MOST_TOKENS = 16
MOST_BROWSERS = 64
FAILURES = 5  # wrong credentials of one browser within WATCH_S, then it must wait
WATCH_S = 60
CLOCK_S = 60  # a clock may be set back by so much without ending anything
SERVE_AGAIN = "Ask for a new one: run 'sabot serve' for this table again."
SAVE_S = 60  # a touch is written so often at most


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


@dataclass
class Browser:
    """A browser that was let in."""

    csrf: str
    until_s: float
    person: str = ""
    """Who is signed in at this page; "" for nobody."""
    touched_s: float = 0.0
    failures: list[float] = field(default_factory=list)
    program: bool = False
    """Whether it is a program of this computer, which comes for one command and does not say when it goes."""


KEPT = TypeAdapter(dict[str, Browser])


class Access:
    """The tokens and browsers of one service. Times are UTC seconds."""

    def __init__(self, file: Path | None = None, advice: str = SERVE_AGAIN) -> None:
        """``file`` keeps the browsers over a restart; one that is damaged counts as empty.

        ``advice`` says how a person gets a new token.
        """
        self._file = file
        self._advice = advice
        self._tokens: OrderedDict[str, float] = OrderedDict()
        self._browsers: OrderedDict[str, Browser] = OrderedDict(_kept(file))
        self.local_token = secrets.token_urlsafe(32)
        """What lets programs of this computer in; it is in ``service.json``."""

    def invite(self, now_s: float) -> str:
        """A token that lets one browser in, once."""
        token = secrets.token_urlsafe(18)
        self._tokens[_hash(token)] = now_s + TOKEN_S
        while len(self._tokens) > MOST_TOKENS:
            self._tokens.popitem(last=False)
        return token

    def enter(self, token: str, now_s: float, program: bool = False) -> tuple[str, Browser]:
        """Let a browser in: its cookie. `Refused` for a token that is unknown, used or too old.

        If there are too many, one is no longer let in: first a program, then a page where nobody is signed
        in, and of several the one that was used least recently.
        """
        until_s = self._tokens.pop(_hash(token), None)
        if until_s is None or until_s < now_s:
            raise Refused(
                403,
                "token_refused",
                "this token is unknown, used, or older than 15 minutes",
                self._advice,
            )
        cookie = secrets.token_urlsafe(32)
        browser = Browser(secrets.token_urlsafe(24), now_s + BROWSER_S, touched_s=now_s, program=program)
        while len(self._browsers) >= MOST_BROWSERS:
            del self._browsers[min(self._browsers, key=self._worth)]
        self._browsers[_hash(cookie)] = browser
        self.keep()
        return cookie, browser

    def _worth(self, name: str) -> tuple[bool, bool, float]:
        """How much a browser that was let in is worth keeping."""
        found = self._browsers[name]
        return not found.program, bool(found.person), found.touched_s

    def browser(self, cookie: str, now_s: float) -> Browser | None:
        """The browser of a cookie; None if it was not let in, or too long ago. Idle people are signed out."""
        found = self._browsers.get(_hash(cookie)) if cookie else None
        if found is None:
            return None
        if found.until_s < now_s or found.touched_s > now_s + CLOCK_S:  # the clock was set back
            del self._browsers[_hash(cookie)]
            return None
        if found.person and now_s - found.touched_s > IDLE_S:
            found.person = ""
        return found

    def leave(self, cookie: str) -> None:
        """A browser is no longer let in."""
        self._browsers.pop(_hash(cookie), None)
        self.keep()

    def signed(self, browser: Browser, person: str, now_s: float) -> None:
        """A person signs in at a page; "" signs out."""
        browser.person, browser.touched_s = person, now_s
        self.keep()

    def keep(self) -> None:
        """Write the browsers to the file. If that fails, pages need a new token after a restart, no more."""
        if self._file is None:
            return
        new = self._file.with_name(self._file.name + ".new")
        try:
            with open_new(new) as file:
                file.write(json.dumps({name: asdict(each) for name, each in self._browsers.items()}).encode())
            new.replace(self._file)
        except OSError as error:
            log.warning("%s: %s; pages must enter again after a restart", self._file, error)

    def touch(self, browser: Browser, now_s: float) -> None:
        """Somebody used a page."""
        due = now_s - browser.touched_s > SAVE_S
        browser.touched_s = now_s
        if due:
            self.keep()

    def is_local(self, authorization: str) -> bool:
        """Whether a header proves a program of this computer."""
        kind, _, token = authorization.partition(" ")
        right = hmac.compare_digest(token.encode(), self.local_token.encode())
        return right and kind.lower() == "bearer"


def _kept(file: Path | None) -> dict[str, Browser]:
    if file is None or not file.exists():
        return {}
    try:
        return KEPT.validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        log.warning("%s cannot be used: pages must enter again: %s", file, error)
        return {}


def check_csrf(browser: Browser, shown: str) -> None:
    """`Refused` if a request does not show the browser's own CSRF token."""
    if not hmac.compare_digest(shown.encode(), browser.csrf.encode()):
        raise Refused(
            403, "csrf", "the request does not come from a page of this service", "Load the page again."
        )


def check_guesses(browser: Browser, now_s: float) -> None:
    """`Refused` while a browser must wait after wrong credentials."""
    browser.failures = [each for each in browser.failures if now_s - each < WATCH_S]
    if len(browser.failures) >= FAILURES:
        wait_s = int(WATCH_S - (now_s - browser.failures[0])) + 1
        raise Refused(
            429, "too_many_failures", f"too many wrong credentials at this page; wait {wait_s} s", "Wait."
        )


@contextmanager
def guess(browser: Browser, now_s: float) -> Iterator[None]:
    """One credential that a browser shows: it counts as wrong from the beginning until it has proved right.

    So requests at the same time cannot try more than so many. `Refused` while the browser must wait.
    """
    check_guesses(browser, now_s)
    browser.failures.append(now_s)
    try:
        yield
    except (NotAuthenticated, PersonUnknown):
        raise
    except BaseException:
        _forget(browser, now_s)
        raise
    _forget(browser, now_s)


def _forget(browser: Browser, at_s: float) -> None:
    if at_s in browser.failures:  # or it is older than what is watched
        browser.failures.remove(at_s)
