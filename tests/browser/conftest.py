"""Chromium, the dealer's page at a served table, and what every state of a page must fulfil.

These tests run with ``make test-browser``, which sets SABOT_BROWSER.
"""

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.browser.wall_page import WallPage
from tests.serve.served_table import ServedTable, served_table
from tests.wall.archived_day import archive_rows, play
from tests.wall.served_wall import ServedWall, served_wall
from tests.wall.spoken_floor import SpokenFloor

from sabot_floor.connection import Servers
from sabot_floor.wall.archive_reader import ArchiveReader
from sabot_session import pin_hash
from sabot_simulators.floor.servers import Site

collect_ignore_glob = [] if os.environ.get("SABOT_BROWSER") else ["test_*.py"]

_numbers = itertools.count(1)
RUN = """
() => axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
  .then((found) => found.violations.map((each) => [each.id, each.help, each.nodes.map((node) => node.html)]))
"""


@pytest.fixture(autouse=True)
def _quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrypt with little work: the register keeps the parameters beside each hash."""
    monkeypatch.setattr(pin_hash, "LOG2_N", 4)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One browser for all tests of a worker."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def screens(root: Path) -> Path:
    """Where pictures go."""
    folder = root / "build" / "screens"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def serve(tmp_path: Path) -> Callable[..., AbstractContextManager[ServedTable]]:
    """Serve a table on an emulated device; arguments as `served_table` has them."""
    return lambda *args, **named: served_table(tmp_path, *args, **named)


@pytest.fixture
def open_page(chromium: Any, screens: Path) -> Iterator[Callable[..., Any]]:
    """Open the dealer's page of a table in a browser of its own."""
    from tests.browser.dealers_page import DealersPage

    opened: list[Any] = []

    def make(table: ServedTable, **options: Any) -> DealersPage:
        context = chromium.new_context(viewport={"width": 1280, "height": 800}, has_touch=True, **options)
        context.set_default_timeout(20_000)
        opened.append(context)
        return DealersPage(table, context.new_page(), screens)

    yield make
    for context in opened:
        context.close()


@pytest.fixture(scope="session")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A NATS server for the wall."""
    with Site(tmp_path_factory.mktemp("nats"), sync="1m") as site:
        yield site


@pytest.fixture
def spoken(nats: Site) -> Iterator[SpokenFloor]:
    """A site whose tables the test speaks for."""
    with SpokenFloor(Servers(nats.urls), f"b{os.getpid()}-{next(_numbers)}") as floor:
        yield floor


@pytest.fixture
def served(spoken: SpokenFloor) -> Iterator[ServedWall]:
    """A served wall without an archive."""
    with served_wall(spoken) as found:
        yield found


@pytest.fixture
def served_archive(spoken: SpokenFloor, tmp_path: Path) -> Iterator[ServedWall]:
    """A served wall with the archive of a table that was played."""
    archive_rows(tmp_path / "archive.db", play(tmp_path / "day"))
    archive = ArchiveReader(str(tmp_path / "archive.db"))
    with served_wall(spoken, archive) as found:
        yield found
    archive.close()


@pytest.fixture
def open_wall(chromium: Any, screens: Path) -> Iterator[Callable[..., WallPage]]:
    """Open the wall in a browser of its own."""
    opened: list[Any] = []

    def make(wall: ServedWall, **options: Any) -> WallPage:
        context = chromium.new_context(viewport={"width": 1280, "height": 800}, **options)
        context.set_default_timeout(30_000)
        opened.append(context)
        return WallPage(wall, context.new_page(), screens)

    yield make
    for context in opened:
        context.close()


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
