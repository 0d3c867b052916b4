"""Axe-core finds nothing against WCAG 2.2 AA on any page, in any state that differs in its elements."""

from collections.abc import Callable
from typing import Any


def test_axe_finds_nothing(
    serve: Callable[..., Any], open_page: Callable[..., Any], check: Callable[[Any], None]
) -> None:
    with serve("seed=1&fault=stuck@exit:60") as table:
        page = open_page(table)
        page.page.goto(f"{table.address}/enter")
        check(page.page)
        page.enter()
        check(page.page)
        page.touch("#sign")
        check(page.page)
        page.page.keyboard.press("Escape")
        page.sign_in().prepare()
        check(page.page)
        page.bet(1, 2)
        page.act("No more bets")
        page.wait_word("EXPOSE")
        check(page.page)
        page.touch("#more")
        check(page.page)
        page.page.keyboard.press("Escape")
        page.act("Exposed, settled")
        page.wait(".card")
        check(page.page)
        page.act("No more bets")
        page.wait("#path g.fault")
        check(page.page)
        table.stop()
        page.wait("body.stale")
        check(page.page)
