"""The dealer's page in a browser, as a person uses it: by touch, by keyboard, by looking."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.serve.served_table import ServedTable

from sabot_session.needs import NeedKind

SIZES = ((1280, 800), (1920, 1080))
LEAST_TARGET, LEAST_TEXT = 88, 47  # pixels at 1280 x 800
TAP_MS = 2000.0
HARMLESS = ("Failed to load resource", "net::ERR")  # a service that is stopped on purpose

LOOK = """
() => {
  const shown = (each) => each.offsetParent !== null && getComputedStyle(each).visibility !== "hidden";
  const open = document.querySelector("dialog[open]");
  const size = (each) => { const box = each.getBoundingClientRect(); return [box.width, box.height]; };
  const name = (each) => each.id || each.innerText.slice(0, 30);
  const buttons = [...(open ?? document).querySelectorAll("button, a.big")].filter(shown);
  const main = ["word", "sentence"].map((id) => document.getElementById(id));
  const labels = document.querySelectorAll("#buttons .label");
  const texts = [...main, ...labels].filter((each) => each && shown(each));
  const cut = (each) => each.scrollWidth > each.clientWidth + 1;
  const page = document.documentElement;
  return {
    small: buttons.filter((each) => Math.min(...size(each)) < LEAST - 0.5)
      .map((each) => [name(each), size(each)]),
    texts: texts.map((each) => [name(each), parseFloat(getComputedStyle(each).fontSize)]),
    cut: texts.filter(cut).map(name),
    page: [page.scrollWidth, page.scrollHeight],
    window: [innerWidth, innerHeight],
  };
}
"""


class DealersPage:
    """One browser at the dealer's page."""

    def __init__(self, table: ServedTable, page: Any, screens: Path) -> None:
        self.table = table
        self.page = page
        self._screens = screens
        self.touches = 0
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._told)

    def _told(self, message: Any) -> None:
        if message.type == "error" and not message.text.startswith(HARMLESS):
            self.errors.append(message.text)

    # -- looking --------------------------------------------------------------------------------

    def text(self, selector: str) -> str:
        return str(self.page.inner_text(selector))

    def wait(self, selector: str, **state: Any) -> Any:
        return self.page.wait_for_selector(selector, **state)

    def wait_word(self, word: str, tone: str = "") -> None:
        """Wait until the page shows this word, in this tone."""
        body = f'body[data-tone="{tone}"]' if tone else "body"
        self.wait(f'{body} #word:text-is("{word}")')

    def shot(self, name: str) -> None:
        """A picture at each size; the state fits the screen, is large enough to read and to touch."""
        try:
            for width, height in SIZES:
                self.page.set_viewport_size({"width": width, "height": height})
                self.page.wait_for_timeout(60)
                self.page.screenshot(path=self._screens / f"{name}-{width}.png")
                scale = 1.0 if width == SIZES[0][0] else 1.3
                seen = self.page.evaluate(LOOK.replace("LEAST", str(LEAST_TARGET * scale)))
                assert seen["small"] == [], f"{name} at {width}: targets under 15 mm"
                small = [each for each in seen["texts"] if each[1] < LEAST_TEXT * scale]
                assert small == [], f"{name} at {width}: main text under 8 mm"
                assert seen["cut"] == [], f"{name} at {width}: text is cut off"
                assert seen["page"] == seen["window"], f"{name} at {width}: the page does not fit"
        finally:
            self.page.set_viewport_size({"width": SIZES[0][0], "height": SIZES[0][1]})
        assert self.errors == []

    # -- touching -------------------------------------------------------------------------------

    def enter(self) -> "DealersPage":
        """Open the printed address."""
        self.page.goto(self.table.enter_url())
        self.page.wait_for_url("**/dealer")
        self.wait("body:not(.waiting)")
        return self

    def touch(self, selector: str) -> None:
        """Touch something that is enabled."""
        self.page.tap(f"{selector}:enabled" if "button" in selector or "#" in selector else selector)
        self.touches += 1

    def act(self, label: str, where: str = "#buttons") -> None:
        """Touch the button of an act."""
        self.touch(f'{where} button.act:has(.label:text-is("{label}"))')

    def fill(self, **values: str) -> None:
        for name, value in values.items():
            self.page.fill(f"#ask-{name}", value)

    def sign_in(self, person: str = "dealer") -> "DealersPage":
        """Sign in as a dealer, and wait until the table says so."""
        self.touch("#sign")
        self.fill(person=person, pin=self.table.pin(person))
        self.touch("#ask-ok")
        self.wait("#ask", state="hidden")
        self.wait(f'#who:text-matches("[:\uff1a] ?{person}$")')
        return self

    def floor(self, badge: str = "", pin: str = "") -> None:
        """The floor shows badge and PIN in the open dialogue."""
        self.fill(badge=badge or self.table.badge("floor"), pin=pin or self.table.pin("floor"))
        self.touch("#ask-ok")

    def hold(self, selector: str, ms: int) -> None:
        """Press a button for so long."""
        self.page.locator(selector).scroll_into_view_if_needed()
        box = self.page.locator(selector).bounding_box()
        self.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self.page.mouse.down()
        self.page.wait_for_timeout(ms)
        self.page.mouse.up()

    def prepare(
        self, bets: str = "BETS", named: Callable[[str], str] = lambda act: act[:5].capitalize()
    ) -> "DealersPage":
        """Prepare both packs until only bets are needed; ``named`` tells what an act's button says."""
        from playwright.sync_api import TimeoutError as TouchTimeout

        def ready(table: ServedTable) -> bool:
            needs = table.needs()
            mine = [each for each in needs if each.kind is NeedKind.PREPARE_PACK and "dealer" in each.roles]
            for need in mine[:1]:
                button = self.page.locator("#buttons button.act, #also button.act").filter(
                    has_text=named(str(need.acts[0]))
                )
                if button.count() and button.first.is_enabled():
                    with suppress(TouchTimeout):  # the page may just have drawn the next need
                        button.first.tap(timeout=TAP_MS)
                    self.page.wait_for_timeout(50)
            return [each.kind for each in needs] == [NeedKind.BETS]

        self.table.wait(ready)
        self.wait_word(bets, "play")
        return self

    def bet(self, *seats: int) -> "DealersPage":
        """These seats bet."""
        for seat in seats:
            self.touch(f'button.seat[data-key="{seat}"]')
        return self
