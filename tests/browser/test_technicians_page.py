"""The technician's page in a real browser: a roller turns only while its button is held on a visible page.

A roller turns one millimetre in a millisecond of the emulated machine, so its encoder counts emulated time.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.browser.dealers_page import SIZES
from tests.serve.served_table import EVERYBODY, ServedTable

from sabot_driver.jogging import LEASE_S, read_sensors

Serve = Callable[..., Any]
OpenPage = Callable[..., Any]
LEASE_UM = int(LEASE_S * 1_000_000)
LATEST_UM = int(LEASE_UM * 1.06) + 20_000  # the fastest roller, and the time in which its order arrives
SLOW = "seed=1&speed=0.2"  # a slow machine: the page renews in time on any computer
FORWARD = '.hold-jog[data-direction="1"]'
HIDE = """
() => {
  Object.defineProperty(document, "hidden", { value: true, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}
"""


def feed_um(table: ServedTable) -> int:
    return read_sensors(table.client, 20.0).rollers_um[0] or 0


def emulated_us(table: ServedTable) -> int:
    port: Any = table.client.loop.transport
    served = port.port.bench.served
    return int(served.call(lambda: served.device.machine.agenda.now_us))


def pass_time(table: ServedTable, ms: int) -> None:
    ends = emulated_us(table) + ms * 1000
    table.wait(lambda found: emulated_us(found) >= ends)


def in_service(table: ServedTable, opened: Any) -> Any:
    """The technician's page of a machine in service, with a permit for the feed roller."""
    opened.enter()
    page = opened.page
    page.goto(f"{table.address}/service")
    page.wait_for_selector("body:not(.waiting)")
    page.click('button[data-act="begin_service"]')
    shown(opened, table)
    page.wait_for_selector('body[data-service="true"]')
    page.click('button[data-part="feed"]')
    shown(opened, table)
    page.wait_for_selector(FORWARD)
    return page


def shown(opened: Any, table: ServedTable, pin: str = "") -> None:
    opened.fill(badge=table.badge("service"), pin=pin or table.pin("service"))
    opened.page.click("#ask-ok")
    opened.page.wait_for_selector("#ask", state="hidden")


def turning(table: ServedTable, page: Any) -> None:
    """Hold the button until the roller has turned for longer than one lease."""
    before = feed_um(table)
    page.locator(FORWARD).scroll_into_view_if_needed()
    box = page.locator(FORWARD).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.wait_for_selector(".hold-jog.turning")
    table.wait(lambda found: (page.wait_for_timeout(20), feed_um(found) - before > LEASE_UM)[1])


@pytest.mark.parametrize("how", ["released", "hidden", "closed", "lost link", "left by keyboard"])
def test_the_roller_stops(serve: Serve, open_page: OpenPage, how: str) -> None:
    with serve(SLOW, simulated=()) as table:
        opened = open_page(table)
        page = in_service(table, opened)
        turning(table, page)
        if how == "released":
            page.mouse.up()
            page.wait_for_selector(".hold-jog:not(.turning)")
        elif how == "hidden":
            page.evaluate(HIDE)
        elif how == "closed":
            page.close()
        elif how == "lost link":
            page.context.set_offline(True)
        else:
            page.keyboard.press("Tab")
        last = feed_um(table)
        pass_time(table, 700)
        stands = feed_um(table)
        assert 0 <= stands - last <= LATEST_UM
        pass_time(table, 300)
        assert feed_um(table) == stands, "it stands, although nobody let go of the mouse"
        (row,) = table.rows("jog")
        assert (row.row.actor.person, row.row.data["part"]) == ("service", "feed")


def test_a_key_that_is_held_turns_it_too(serve: Serve, open_page: OpenPage) -> None:
    with serve(SLOW, simulated=()) as table:
        page = in_service(table, open_page(table))
        before = feed_um(table)
        page.focus(FORWARD)
        page.keyboard.down("Space")
        table.wait(lambda found: (page.wait_for_timeout(20), feed_um(found) - before > LEASE_UM)[1])
        page.keyboard.up("Space")
        page.wait_for_selector(".hold-jog:not(.turning)")
        pass_time(table, 500)
        stands = feed_um(table)
        pass_time(table, 300)
        assert feed_um(table) == stands


def test_sensors_calibration_wear_and_faults(
    serve: Serve, open_page: OpenPage, screens: Path, check: Callable[[Any], None]
) -> None:
    with serve("seed=1&fault=stuck@exit:60", simulated=EVERYBODY) as table:
        table.wait(lambda found: len(found.rows("settle")) >= 3 and bool(found.rows("fault_cleared")))
        opened = open_page(table).enter()
        page = opened.page
        page.goto(f"{table.address}/service")
        page.wait_for_selector('#places li[data-place="tray"] .dot[data-level]')
        page.wait_for_selector("#faults tr")
        page.wait_for_selector(".trend svg path.mean", state="attached")
        page.wait_for_selector('.trend figcaption:text-matches("experimental")')
        page.wait_for_selector("#wear tr")
        assert page.locator("#places .dot").count() == 24
        pictures(page, screens, "service-playing")
        check(page)
        assert opened.errors == []


def test_a_calibration_is_set_and_undone(
    serve: Serve, open_page: OpenPage, screens: Path, check: Callable[[Any], None]
) -> None:
    with serve(simulated=()) as table:
        opened = open_page(table)
        page = in_service(table, opened)
        pictures(page, screens, "service-jog")
        check(page)
        card = '.calibration:has(.now:text-matches("270 to 330"))'
        page.wait_for_selector(f"{card} .undo:disabled")
        page.click(f"{card} .set:enabled")
        opened.fill(value="303")
        shown(opened, table)
        page.wait_for_selector(f'{card} .now:text-matches("^303 um .set .* before: 300 um")')
        page.click(f"{card} .undo:enabled")
        shown(opened, table)
        page.wait_for_selector(f'{card} .now:text-matches("^300 um .set .* before: 303 um")')
        page.click('button[data-act="end_service"]')
        shown(opened, table)
        page.wait_for_selector('#tested:text-matches("shuffler half passed, shoe half passed")')
        page.wait_for_selector('button[data-part="feed"]:disabled')
        assert opened.errors == []


def test_a_wrong_pin_allows_nothing(serve: Serve, open_page: OpenPage) -> None:
    with serve(simulated=()) as table:
        opened = open_page(table).enter()
        page = opened.page
        page.goto(f"{table.address}/service")
        page.click('button[data-act="begin_service"]')
        opened.fill(badge=table.badge("service"), pin="0001")
        page.click("#ask-ok")
        page.wait_for_selector('#ask-message:text-matches("^Wrong PIN")')
        assert not table.rows("begin_service")


def pictures(page: Any, screens: Path, name: str) -> None:
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(60)
        page.screenshot(path=screens / f"{name}-{width}.png")
    page.set_viewport_size({"width": SIZES[0][0], "height": SIZES[0][1]})
