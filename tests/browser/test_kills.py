"""The service is killed ten times with a real page open: the page says so, and recovers by itself."""

from pathlib import Path
from typing import Any

from tests.serve.kill_serve import run
from tests.serve.served_process import ServedProcess

KILLS = 10
RECOVER_MS = 60_000


def test_a_page_in_a_browser_recovers_from_each_kill(chromium: Any, tmp_path: Path) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    seen: list[int] = []

    def look(served: ServedProcess) -> None:
        if not seen:
            page.goto(f"{served.address}/enter#{served.token}")
            page.wait_for_url("**/dealer")
        page.wait_for_selector("body:not(.waiting):not(.stale)", timeout=RECOVER_MS)
        newest = int(page.evaluate("async () => (await (await fetch('/api/snapshot')).json()).newest_row"))
        assert newest >= max(seen, default=0)
        seen.append(newest)

    try:
        survived = run(tmp_path, KILLS, 1, look)
    finally:
        context.close()
    assert survived.kills == KILLS
    assert len(seen) > 1
