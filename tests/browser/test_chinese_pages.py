"""The dealer's page and the players' display in Chinese: a round, a jam, a wrong count, and the switch."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.browser.dealers_page import SIZES
from tests.serve.served_table import EVERYBODY

from sabot_serve.languages import say_in
from sabot_session.needs import NeedKind

Serve = Callable[..., Any]
OpenPage = Callable[..., Any]


@pytest.mark.parametrize(("language", "region"), [("zh-Hans", "zh-CN"), ("zh-Hant", "zh-TW")])
def test_a_round_with_a_wrong_count(
    serve: Serve, open_page: OpenPage, check: Callable[[Any], None], language: str, region: str
) -> None:
    say = say_in(language)
    with serve("seed=1&fault=missing_card@shoe:30", leave=[NeedKind.DETERMINE]) as table:
        page = open_page(table, locale=region).enter()
        assert page.page.get_attribute("html", "lang") == language
        page.wait_word(say("SIGN IN"))
        page.touch("#sign")
        page.fill(person="dealer", pin="0001")
        page.touch("#ask-ok")
        page.wait(f'#ask-message:text-is("{say("Wrong badge, id or PIN. Enter it again.")}")')
        page.shot(f"{language}-sign-in")
        page.fill(person="dealer", pin=table.pin("dealer"))
        page.touch("#ask-ok")
        page.wait("#ask", state="hidden")
        page.prepare(say("BETS"), lambda act: say(PREPARED[act]))
        page.shot(f"{language}-bets")
        check(page.page)
        page.bet(1, 2)
        page.act(say("No more bets"))
        page.wait_word(say("%(count)s SEEN \u2013 COUNT THE HANDS") % {"count": 51}, "act")
        labels = [each.inner_text() for each in page.page.locator("#buttons .label").all()]
        assert labels == [say("Misdealt"), say("Not misdealt")]
        page.shot(f"{language}-wrong-count-stub")
        page.act(say("Not misdealt"))
        table.wait(lambda found: bool(found.rows("determine")))
        page.page.tap("#language")
        other = {"zh-Hans": "zh-Hant", "zh-Hant": "en"}[language]
        page.wait(f'html[lang="{other}"] body:not(.waiting)')
        assert page.page.url.endswith(f"?lang={other}")


PREPARED = {
    "inspect": "Inspected",
    "spread": "Spread",
    "wash": "Washed",
    "stack": "Stacked",
}


def test_a_jam_with_its_steps(serve: Serve, open_page: OpenPage) -> None:
    say = say_in("zh-Hans")
    with serve("seed=1&fault=stuck@exit:5", leave=[NeedKind.CLEAR_FAULT]) as table:
        page = open_page(table, locale="zh-CN").enter().sign_in()
        page.prepare(say("BETS"), lambda act: say(PREPARED[act]))
        page.bet(1, 2)
        page.act(say("No more bets"))
        page.wait('body[data-tone="stop"] #path g.fault[data-place]')
        steps = [each.inner_text() for each in page.page.locator("#steps li").all()]
        expected = ["open the %(unit)s door", "take out every card", "close it"]
        assert steps == [say(each).replace("%(unit)s", say("Shoe")) for each in expected]
        page.shot("zh-Hans-jam")


def test_the_players_display(
    serve: Serve, chromium: Any, screens: Path, check: Callable[[Any], None]
) -> None:
    say = say_in("zh-Hant")
    with serve(simulated=EVERYBODY, pace_s=0.2, seats=3) as table:
        page = chromium.new_page(viewport={"width": SIZES[0][0], "height": SIZES[0][1]})
        page.goto(f"{table.service.players_address}/?lang=zh-Hant")
        table.wait(lambda found: bool(found.rows("settle")))
        table.staff.close()
        page.wait_for_selector(f'#phase:text-is("{say("RESULT")}")')
        page.wait_for_selector(f'.hand .name:text-is("{say("Dealer")}")')
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            page.screenshot(path=screens / f"zh-Hant-players-{width}.png")
        check(page)
        page.close()
