"""docs/record.md is what the table of kinds says."""

from pathlib import Path

from sabot_session.record_page import page
from sabot_session.row_kinds import KINDS
from sabot_session.rows import Authentication


def test_the_page_is_not_stale(root: Path) -> None:
    assert (root / "docs/record.md").read_text(encoding="utf-8") == page(), "run make generate"


def test_the_page_names_every_kind_and_every_way_to_know_somebody() -> None:
    text = page()
    for name in [each.name for each in KINDS] + list(Authentication):
        assert f"| `{name}` |" in text
    assert max(map(len, text.splitlines())) <= 120
