"""Tokens, browsers and people at pages: what ends when, and what is bounded."""

import stat
from contextlib import ExitStack
from pathlib import Path

import pytest

from sabot_session.errors import NotAuthenticated
from sabot_web import access
from sabot_web.access import (
    BROWSER_S,
    FAILURES,
    IDLE_S,
    MOST_BROWSERS,
    MOST_TOKENS,
    TOKEN_S,
    WATCH_S,
    Access,
)
from sabot_web.errors import Refused


def test_a_token_lets_one_browser_in_once() -> None:
    doors = Access()
    token = doors.invite(0.0)
    cookie, browser = doors.enter(token, 1.0)
    assert doors.browser(cookie, 2.0) is browser
    with pytest.raises(Refused, match="used"):
        doors.enter(token, 2.0)


def test_a_token_ends_after_its_time() -> None:
    doors = Access()
    token, other = doors.invite(0.0), doors.invite(0.0)
    doors.enter(token, TOKEN_S)
    with pytest.raises(Refused):
        doors.enter(other, TOKEN_S + 0.1)


def test_a_browser_must_enter_again_after_its_time() -> None:
    doors = Access()
    cookie, _ = doors.enter(doors.invite(0.0), 0.0)
    assert doors.browser(cookie, BROWSER_S) is not None
    assert doors.browser(cookie, BROWSER_S + 0.1) is None
    assert doors.browser(cookie, 0.0) is None


@pytest.mark.parametrize("cookie", ["", "x", "0" * 43])
def test_a_cookie_that_is_none_of_ours_is_nobody(cookie: str) -> None:
    assert Access().browser(cookie, 0.0) is None


def test_a_person_at_an_idle_page_is_signed_out() -> None:
    doors = Access()
    cookie, browser = doors.enter(doors.invite(0.0), 0.0)
    browser.person = "dana"
    doors.touch(browser, 100.0)
    found = doors.browser(cookie, 100.0 + IDLE_S)
    assert found is not None
    assert found.person == "dana"
    found = doors.browser(cookie, 100.1 + IDLE_S)
    assert found is not None
    assert found.person == ""


def test_tokens_and_browsers_are_bounded() -> None:
    doors = Access()
    first = doors.invite(0.0)
    newest = [doors.invite(0.0) for _ in range(MOST_TOKENS)]
    with pytest.raises(Refused):
        doors.enter(first, 0.0)
    cookie, _ = doors.enter(newest[-1], 0.0)
    for _ in range(MOST_BROWSERS):
        doors.enter(doors.invite(0.0), 0.0)
    assert doors.browser(cookie, 0.0) is None


def test_the_local_token_is_one_header_only() -> None:
    doors = Access()
    assert doors.is_local(f"Bearer {doors.local_token}")
    for wrong in (
        "",
        "Bearer ",
        doors.local_token,
        f"Basic {doors.local_token}",
        f"Bearer {doors.local_token}x",
    ):
        assert not doors.is_local(wrong)


def test_a_page_waits_after_wrong_credentials() -> None:
    doors = Access()
    _, browser = doors.enter(doors.invite(0.0), 0.0)
    for second in range(FAILURES):
        with pytest.raises(NotAuthenticated), access.guess(browser, float(second)):
            raise NotAuthenticated("a wrong PIN")
    with pytest.raises(Refused) as refused:
        access.check_guesses(browser, WATCH_S - 1.0)
    assert refused.value.status == 429
    access.check_guesses(browser, WATCH_S + 0.0)


def test_browsers_go_on_after_a_restart_and_secrets_are_in_no_file(tmp_path: Path) -> None:
    file = tmp_path / "browsers.json"
    doors = Access(file)
    cookie, browser = doors.enter(doors.invite(0.0), 0.0)
    gone, _ = doors.enter(doors.invite(0.0), 0.0)
    doors.signed(browser, "dana", 1.0)
    doors.leave(gone)
    again = Access(file)
    assert again.browser(cookie, 2.0) == browser
    assert again.browser(gone, 2.0) is None
    assert cookie not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert again.local_token != doors.local_token


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', "x"])
def test_a_damaged_file_of_browsers_lets_nobody_in(tmp_path: Path, text: str) -> None:
    file = tmp_path / "browsers.json"
    file.write_text(text)
    assert Access(file).browser("a", 0.0) is None


def test_a_clock_that_is_set_back_ends_what_it_would_lengthen() -> None:
    doors = Access()
    cookie, browser = doors.enter(doors.invite(100_000.0), 100_000.0)
    doors.signed(browser, "dana", 100_000.0)
    assert doors.browser(cookie, 90_000.0) is None


def test_credentials_at_the_same_time_are_counted_before_they_are_looked_at() -> None:
    doors = Access()
    _, browser = doors.enter(doors.invite(0.0), 0.0)
    with ExitStack() as open_at_once:
        for _ in range(FAILURES):
            open_at_once.enter_context(access.guess(browser, 1.0))
        with pytest.raises(Refused), access.guess(browser, 1.0):
            raise AssertionError("one more was let through")
    with access.guess(browser, 1.0):  # they proved right, so they count no more
        pass
    with pytest.raises(KeyError), access.guess(browser, 1.0):
        raise KeyError("another trouble is no wrong credential")
    assert browser.failures == []
