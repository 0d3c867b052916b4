"""Axe-core finds nothing against WCAG 2.2 AA on any page, in any state that differs in its elements."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RUN = """
() => axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
  .then((found) => found.violations.map((each) => [each.id, each.help, each.nodes.map((node) => node.html)]))
"""


@pytest.fixture
def check(root: Path) -> Callable[[Any], None]:
    """Run axe-core in a page."""
    source = root / "build/axe/node_modules/axe-core/axe.min.js"
    if not source.exists():
        pytest.skip("axe-core is not installed: make test-browser does it")

    def run(page: Any) -> None:
        page.evaluate(source.read_text(encoding="utf-8"))
        assert page.evaluate(RUN) == []

    return run


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
