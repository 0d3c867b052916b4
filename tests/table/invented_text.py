"""An invented fifth rule text, made of Maryland's by changes; and a rule set under it."""

import re
from pathlib import Path

import sabot_table
from sabot_table.ruleset import RuleSet, load

ROOT = Path(*sabot_table.__path__)
# The invented text, as what it says otherwise than Maryland's.
CHANGES = (
    ('key = "MD3"', 'key = "ZZ9"'),
    ('title = "Three Card Baccarat (Maryland)"', 'title = "Three Card Baccarat (nowhere)"'),
    ("hours_shoe = 8", "hours_shoe = 3"),
    ("least = 6\nmost = 6", "least = 2\nmost = 3"),
    ("from_top = 10", "from_top = 20"),
    ("count_every = 5", "count_every = 2"),
    ('order = "clockwise"', 'order = "counter-clockwise"'),
    ("[wagers]\n", "[wagers]\nmost_kinds = 1\n"),
    ('hours = "3.C"\nlimits', 'hours = "77"\nlimits'),
    ('face_up_card = "13.A"', 'face_up_card = "88"'),
)
# Acts that it gives to others, at other times, under other clauses; and those that it does not have.
ROWS = {
    "settle": 'from = "settling", to = "collecting", who = "floor", clause = "11.B"',
    "face_up_card": 'from = "dealing", to = "voided", who = "floor", clause = "13.A"',
    "open_bets": 'from = "between", to = "betting", who = "dealer", clause = "55"',
}
WITHOUT = ("forfeit", "abandon")
RULE_SET = """
extends = "md-three-card-baccarat"
name = "nowhere"
text_file = "zz9.toml"
[cards]
hours_shoe = 3
[seats]
count = 3
"""


def nowhere(tmp_path: Path) -> RuleSet:
    """A rule set under the invented text."""
    text = (ROOT / "texts" / "MD3.toml").read_text(encoding="utf-8")
    for old, new in CHANGES:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    for action in (*ROWS, *WITHOUT):
        row = f"{action} = {{ {ROWS[action]} }}\n" if action in ROWS else ""
        text, changed = re.subn(rf"^{action} = {{.*\n", row, text, flags=re.MULTILINE)
        assert changed == 1, action
    (tmp_path / "zz9.toml").write_text(text, encoding="utf-8")
    (tmp_path / "rules.toml").write_text(RULE_SET, encoding="utf-8")
    return load(tmp_path / "rules.toml")
