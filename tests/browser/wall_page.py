"""The wall in a browser, as a person uses it."""

from pathlib import Path
from typing import Any

from tests.wall.served_wall import PEOPLE, ServedWall

HARMLESS = ("Failed to load resource", "net::ERR")  # a refusal, or a service that is stopped on purpose


class WallPage:
    """One browser at the wall."""

    def __init__(self, wall: ServedWall, page: Any, screens: Path) -> None:
        self.wall = wall
        self.page = page
        self._screens = screens
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._told)

    def _told(self, message: Any) -> None:
        if message.type == "error" and not message.text.startswith(HARMLESS):
            self.errors.append(message.text)

    def enter(self) -> "WallPage":
        """Open the printed address."""
        self.page.goto(self.wall.enter_url())
        self.page.wait_for_url("**/wall")
        self.wait("body:not(.waiting)")
        return self

    def wait(self, selector: str, **state: Any) -> Any:
        return self.page.wait_for_selector(selector, **state)

    def text(self, selector: str) -> str:
        return str(self.page.inner_text(selector))

    def order(self) -> list[str]:
        """The tables as they are shown."""
        found: list[str] = self.page.evaluate(
            "() => [...document.querySelectorAll('#tables > li')].map((each) => each.dataset.key)"
        )
        return found

    def wait_first(self, *names: str) -> None:
        """Wait until these tables are shown first, in this order."""
        self.page.wait_for_function(
            """(names) => names.every((name, at) =>
              document.querySelectorAll('#tables > li')[at]?.dataset.key === name)""",
            arg=list(names),
        )

    def sign_in(self, person: str) -> "WallPage":
        """A person of the floor signs in."""
        badge, pin = PEOPLE[person]
        self.page.click("#sign")
        self.page.fill("#ask-badge", badge)
        self.page.fill("#ask-pin", pin)
        self.page.click("#ask-ok")
        self.wait("#ask", state="hidden")
        self.wait(f'#who:text-is("You are {person}")')
        return self

    def take(self, table: str) -> str:
        """The selector of a table's button."""
        return f'#tables > li[data-key="{table}"] button.take'

    def shot(self, name: str) -> None:
        """A picture at each size; nothing is wider than the screen."""
        for width, height in ((1280, 800), (1920, 1080)):
            self.page.set_viewport_size({"width": width, "height": height})
            self.page.wait_for_timeout(80)
            self.page.screenshot(path=self._screens / f"wall-{name}-{width}.png")
            wide = self.page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
            assert wide[0] <= wide[1], f"{name} at {width}: the page is wider than the screen"
        self.page.set_viewport_size({"width": 1280, "height": 800})
        assert self.errors == []
