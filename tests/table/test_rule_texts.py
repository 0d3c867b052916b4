"""Rule texts are files: what is wrong with one is told by its place, and another one needs no code."""

import re
from pathlib import Path

import pytest

from sabot_table.errors import RuleSetError, RuleTextError, UnknownRuleText
from sabot_table.rule_text_files import RuleText, add_file, packaged, parse_text, rule_text
from sabot_table.ruleset import load

TEXTS = Path(__file__).parent.parent.parent / "host_driver" / "sabot_table" / "texts"


def source(key: str) -> str:
    """The file of a packaged text."""
    return (TEXTS / f"{key}.toml").read_text(encoding="utf-8")


def without(key: str, line: str) -> str:
    """A packaged text without one line."""
    text = source(key)
    changed = re.sub(rf"^{re.escape(line)}.*\n", "", text, count=1, flags=re.MULTILINE)
    assert changed != text
    return changed


def changed(key: str, old: str, new: str) -> str:
    """A packaged text with a few words changed."""
    text = source(key)
    assert old in text
    return text.replace(old, new, 1)


def test_the_four_texts_are_packaged_and_each_file_is_named_by_its_key() -> None:
    assert packaged() == ("BAC", "MD3", "MDM", "WA3")
    assert [rule_text(key).key for key in packaged()] == list(packaged())
    with pytest.raises(UnknownRuleText, match="give one of BAC, MD3, MDM, WA3"):
        rule_text("NJ3")


FAULTS = [
    (without("MD3", "bets_closed"), "clauses.bets_closed", "is missing", "no more bets"),
    (without("MD3", 'shoe_failed = "13.D"'), "voids.shoe_failed", "is missing", "jammed"),
    (without("MDM", "third_card_rules"), "clauses.third_card_rules", "is missing", "third card"),
    (without("MD3", "wrong_count"), "removal.wrong_count", "is missing", "never stays"),
    (without("MD3", "title"), "title", "is missing", "add it"),
    (without("MD3", "count_every"), "stub.count_every", "is missing", "add it"),
    (changed("MD3", "[cut]", "[cuts]"), "cuts", "is not a key of this file", "spelling"),
    (
        changed("MD3", 'who = "floor", clause = "4.A"', 'who = "boss", clause = "4.A"'),
        "acts.open_table.who.0",
        "is 'boss'",
        "correct",
    ),
    (
        changed("MD3", 'who = "floor", clause = "4.A"', 'who = "", clause = "4.A"'),
        "acts.open_table.who",
        "at least 1",
        "correct",
    ),
    (
        changed("MD3", 'to = "between", who = "floor"', 'to = "lunch", who = "floor"'),
        "acts.open_table",
        "names 'lunch'",
        "between",
    ),
    (
        changed("MD3", 'from = "counting", to = "revealing"', 'from = "drawing", to = "revealing"'),
        "acts.count_stub",
        "names 'drawing'",
        "counting",
    ),
    (changed("MD3", "open_table =", "unlock ="), "acts.unlock", "is not known here", "open_table"),
    (changed("MDM", "[cover]\nabove_bottom = 14\n", ""), "cover", "pack_acts.place_cover", "both or neither"),
    (without("MDM", "announce_last_hand"), "acts.announce_last_hand", "acts.cover_card", "both or neither"),
    (without("MDM", "burn"), "pack_acts.burn", "every-shoe", "both or neither"),
    (without("MD3", "hands_dealt"), "acts.count_stub", "begins in 'counting'", "no act leads there"),
    (changed("MD3", "decks = [1, 1]", "decks = [2, 1]"), "cards.decks", "is 2 to 1", "smaller number first"),
    (changed("MD3", "least = 6", "least = 7"), "seats.least", "is 7", "give 6 at most"),
    (
        changed("MD3", "shuffled loaded discards", "shuffled eaten loaded"),
        "idle.kept_in.eaten",
        "is not known",
        "give some of",
    ),
    (
        changed("WA3", "shuffled = ", "hours_hand = 4\nshuffled = "),
        "cards.hours_hand",
        "without the method",
        "remove",
    ),
    (
        changed("MD3", "[absent]\n", '[absent]\nopen_table = "1"\n'),
        "absent.open_table",
        "is not known here",
        "give",
    ),
]


@pytest.mark.parametrize(("text", "where", "what", "do"), FAULTS)
def test_a_fault_is_told_by_file_key_and_what_to_do(text: str, where: str, what: str, do: str) -> None:
    with pytest.raises(RuleTextError) as refused:
        parse_text(text, "nevada.toml")
    assert refused.value.source == "nevada.toml"
    found = {each.where: each for each in refused.value.problems}
    assert where in found, found
    assert what in found[where].what
    assert do in found[where].do


def test_a_file_that_is_no_toml_or_no_text_is_told_by_its_place(tmp_path: Path) -> None:
    with pytest.raises(RuleTextError, match="TOML"):
        parse_text("key = ", "nevada.toml")
    path = tmp_path / "nevada.toml"
    path.write_bytes(b'key = "\xff"')
    with pytest.raises(RuleTextError, match="is not UTF-8"):
        add_file(path)
    with pytest.raises(UnknownRuleText, match="no rule text is at"):
        add_file(tmp_path / "none.toml")


def test_a_file_cannot_take_the_key_of_a_packaged_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(source("MD3"), encoding="utf-8")
    with pytest.raises(RuleTextError, match="a key of its own"):
        add_file(path)


def test_a_rule_set_names_its_text_or_brings_the_file(tmp_path: Path) -> None:
    rules = tmp_path / "pit.toml"
    for given, match in (
        ('text_file = "none.toml"', "no rule text is at"),
        ("text_file = 3", "give the path"),
        ('text_file = "none.toml"\ntext = "MD3"', "give one of the two"),
    ):
        rules.write_text(f'extends = "md-three-card-baccarat"\nname = "pit"\n{given}\n', encoding="utf-8")
        with pytest.raises(RuleSetError, match=match):
            load(rules)


@pytest.mark.parametrize("key", packaged())
def test_what_the_text_says_decides_the_hash_of_a_rule_set(key: str) -> None:
    text = rule_text(key)
    other: RuleText = parse_text(source(key).replace('who = "floor"', 'who = "floor dealer"', 1), "x")
    assert text.sha256 != other.sha256
    assert text.sha256 == parse_text(source(key) + "\n# a remark\n", "x").sha256
