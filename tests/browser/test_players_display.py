"""The players' display in a real browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.browser.dealers_page import SIZES
from tests.serve.served_table import EVERYBODY

from sabot_session.needs import NeedKind


def test_the_roads_of_a_shoe(
    serve: Callable[..., Any], chromium: Any, screens: Path, check: Callable[[Any], None]
) -> None:
    query = "seed=1&capacity=batch"
    with serve(query, simulated=EVERYBODY, game="md-mini-baccarat") as table:
        page = chromium.new_page(viewport={"width": 1920, "height": 1080})
        page.goto(table.service.players_address)
        table.wait(lambda found: len(found.snapshot()["results"]) >= 24)
        table.staff.leave = frozenset({NeedKind.BETS})  # the hands of the last round stay
        table.wait_need(NeedKind.BETS)
        table.staff.close()
        results = table.snapshot()["results"]
        page.wait_for_function(
            "(count) => document.querySelectorAll('.bead_plate circle').length === count", arg=len(results)
        )
        assert page.locator(".bead_plate text").all_text_contents() == [each[0].upper() for each in results]
        assert page.locator(".road").count() == 5
        page.wait_for_selector('.hand .name:text-is("Banker")')
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(60)
            page.screenshot(path=screens / f"players-roads-{width}.png")
            assert page.evaluate("() => document.documentElement.scrollHeight <= innerHeight")
        check(page)
        page.close()


def test_players_see_hands_when_they_are_exposed(
    serve: Callable[..., Any], chromium: Any, screens: Path, check: Callable[[Any], None]
) -> None:
    with serve(simulated=EVERYBODY, pace_s=0.4, seats=6) as table:
        page = chromium.new_page(viewport={"width": 1920, "height": 1080})
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(table.service.players_address)
        page.wait_for_selector('#phase:text-is("NO MORE BETS")')
        assert page.locator(".card").count() == 0 or table.rows("settle")
        table.wait(lambda found: bool(found.rows("settle")))
        table.staff.close()
        page.wait_for_selector('#phase:text-is("RESULT")')
        page.wait_for_selector(".hand.win, .hand.lose, .hand.push")
        assert page.locator(".card").count() == 21
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(60)
            page.screenshot(path=screens / f"players-{width}.png")
            fits = page.evaluate("() => document.documentElement.scrollHeight <= innerHeight")
            assert fits
        check(page)
        assert errors == []
        table.stop()
        page.wait_for_selector("body.stale")
        page.close()
