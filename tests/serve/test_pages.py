"""What the pages are made of: small, no foreign host, every word of a script can be translated."""

import re
from pathlib import Path

import pytest
from tests.serve.page_client import PageClient

import sabot_serve
from sabot_serve.page_words import DEALER, ROUND

HERE = Path(sabot_serve.__file__).parent
MOST_BYTES = 150_000
SCRIPTS = sorted((HERE / "static").glob("*.js"))


@pytest.mark.slow
def test_the_dealers_page_weighs_little(page: PageClient) -> None:
    text = page.http.get("/dealer").text
    parts = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', text))
    parts |= {found for path in SCRIPTS for found in re.findall(r'from "(/static/[^"]+)"', path.read_text())}
    assert {"/static/live.js", "/static/dealer.js", "/static/pages.css"} <= parts
    sizes = [len(page.http.get(each).raise_for_status().content) for each in sorted(parts)]
    assert len(text.encode()) + sum(sizes) < MOST_BYTES


@pytest.mark.parametrize("path", sorted(HERE.glob("[st]*/*")), ids=lambda path: path.name)
def test_nothing_comes_from_another_host(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", text)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_script_makes_html_or_code_of_text(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text)


def test_the_words_of_the_script_are_those_that_the_page_carries() -> None:
    named, near = set(), {"clear", "erase"}
    for path in [*HERE.glob("*.py"), *HERE.with_name("sabot_web").glob("*.py")]:  # what it refuses with
        near |= {f"refused_{each}" for each in re.findall(r'Refused\(\s*\d+, "(\w+)"', path.read_text())}
    for path in SCRIPTS:
        for line in path.read_text(encoding="utf-8").splitlines():
            named |= set(re.findall(r'\bsay\("(\w+)"', line))
            near |= set(re.findall(r'"(\w+)"', line)) if "say(" in line else set()
    assert named <= {*DEALER, *ROUND}
    assert set(DEALER) <= near
    shown = (HERE / "static" / "round.js").read_text(encoding="utf-8")
    for word in set(ROUND) - {"table"}:  # that one is the wall's
        assert f'"{word.removeprefix("round_")}"' in shown or f'"{word}"' in shown, word
