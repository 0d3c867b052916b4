"""The pages speak of what there is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("protocol", "firmware", "host_driver", "simulators", "tests", "docs")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
PAGES = [page for page in PAGES if "node_modules" not in page.parts]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


RESULTS = ROOT / "docs" / "campaigns"  # dated results, as programs wrote them


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_is_longer_than_120_characters(page: Path) -> None:
    if page.parent != RESULTS or page.name == "README.md":
        lines = enumerate(page.read_text(encoding="utf-8").split("\n"), 1)
        assert [number for number, line in lines if len(line) > 120] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_says_what_lives_there(folder: str) -> None:
    assert (ROOT / folder / "README.md").is_file()


def test_the_list_of_docs_is_complete() -> None:
    listed = set(LINK.findall((ROOT / "docs" / "README.md").read_text(encoding="utf-8")))
    there = {each.name for each in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert listed == there


@pytest.mark.parametrize("folder", ["protocol", "firmware"])
def test_folders_named_by_a_readme_exist(folder: str) -> None:
    text = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    for module in re.findall(r"^\| `([a-z_]+\.py)` \|", text, flags=re.MULTILINE):
        assert list((ROOT / folder).rglob(module)), f"{folder}/README.md names {module}"


def test_the_tests_readme_names_every_folder_of_tests() -> None:
    text = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    folders = {each.parent.name for each in (ROOT / "tests").glob("*/*.py")}
    named = set(re.findall(r"^\| `([a-z_]+)/` \|", text, flags=re.MULTILINE))
    assert folders == named
