"""The floor's page in a real browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.browser.dealers_page import SIZES

from sabot_session.needs import NeedKind


def test_the_floor_acts_with_a_credential_and_looks_up_a_round(
    serve: Callable[..., Any], open_page: Callable[..., Any], screens: Path, check: Callable[[Any], None]
) -> None:
    with serve(leave=[NeedKind.COUNTERSIGN]) as table:
        dealer = open_page(table).enter().sign_in().prepare().bet(1, 2)
        dealer.act("No more bets")
        dealer.wait_word("EXPOSE")
        floor = open_page(table).enter()
        page = floor.page
        page.goto(f"{table.address}/floor")
        page.wait_for_selector('#word:text-is("EXPOSE")')
        page.click('#offers button.act:has(.label:text-is("Floor: Void the round"))')
        floor.fill(why="a card was seen")
        floor.floor(pin="0001")
        page.wait_for_selector('#ask-message:text-matches("^Wrong PIN")')
        assert not table.rows("void")
        floor.floor()
        page.wait_for_selector("#ask", state="hidden")
        table.wait(lambda found: bool(found.rows("void")))
        dealer.wait('#void:text-matches("is void")')
        page.wait_for_selector('#log td:text-is("void")')
        page.fill("#round", "1")
        page.click("#find button")
        page.wait_for_selector('#found dt:text-is("Void")')
        assert "a card was seen" in page.inner_text("#found .pairs")
        assert page.is_visible('#found td:text-is("no more bets")')
        assert not page.is_visible("#found pre")
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            page.screenshot(path=screens / f"floor-{width}.png")
        check(page)
        assert floor.errors == []
