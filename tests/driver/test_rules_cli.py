"""``sabot rules``, ``sabot odds`` and rounds that are settled, as a user types them."""

from pathlib import Path

import pytest
from tests.driver.command import Sabot

from sabot_table import ruleset

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.slow]


def test_every_packaged_rule_set_is_listed(sabot: Sabot) -> None:
    ran = sabot("rules", "--json")
    assert ran.code == 0
    assert {each["ruleset"] for each in ran.of("ruleset")} == set(ruleset.names())
    assert all(len(each["ruleset_sha256"]) == 64 for each in ran.of("ruleset"))


def test_clauses_come_with_the_tests_that_prove_them(sabot: Sabot) -> None:
    clauses = {each["clause"]: each for each in sabot("rules", "--clauses", "--json").of("clause")}
    assert clauses["MD3 5.B"]["tests"]
    assert all(each["tests"] for each in clauses.values() if each["duty"] != "people")


def test_odds_are_exact_and_add_up(sabot: Sabot) -> None:
    ran = sabot("odds", "md-mini-baccarat", "--wager", "banker", "--json")
    (banker,) = ran.of("odds")
    assert banker["paytable"] is None
    assert banker["decks"] == 8
    assert banker["house_edge"] == pytest.approx(0.010579, abs=1e-6)
    assert sum(each["ways"] for each in banker["outcomes"]) == banker["total"]
    assert {each["pays"] for each in banker["outcomes"]} >= {0, -1}


@pytest.mark.parametrize(
    "arguments",
    [("md-mini-baccarat", "--decks", "5"), ("md-mini-baccarat", "--wager", "moon"), ("no-such-rules",)],
)
def test_odds_that_cannot_be_are_usage(sabot: Sabot, arguments: tuple[str, ...]) -> None:
    assert sabot("odds", *arguments).code == 2


@pytest.mark.rule("MD3 12.A")
def test_each_round_is_settled_by_its_rule_set(sabot: Sabot) -> None:
    rules = ruleset.load("md-three-card-baccarat")
    ran = sabot("play", "--device", "sim://", "--seed", 1, "--rounds", 2, "--players", 3,
                "--rules", rules.name, "--json")  # fmt: skip
    assert ran.code == 0, ran.err
    assert ran.lines[0]["ruleset_sha256"] == rules.sha256
    for each in ran.of("round"):
        assert {line["seat"] for line in each["settlement"]} == {1, 2, 3}
        assert {line["wager"] for line in each["settlement"]} == set(rules.offered)
        assert all(line["clause"].startswith("MD3 ") for line in each["settlement"])


@pytest.mark.rule("MD3 13.D")
def test_a_void_round_gives_every_wager_back(sabot: Sabot) -> None:
    ran = sabot("play", "--device", "sim://", "--seed", 1, "--rounds", 1, "--players", 2,
                "--rules", "md-three-card-baccarat", "--fault", "stuck@exit:4", "--json")  # fmt: skip
    (void,) = ran.of("round")
    assert void["void_reason"] == "shoe_failed"
    assert {line["outcome"] for line in void["settlement"]} == {"returned"}
    assert {line["clause"] for line in void["settlement"]} == {"MD3 13.D"}


def test_clauses_of_one_rule_set_name_their_tests_and_how_to_run_them(sabot: Sabot) -> None:
    ran = sabot("rules", "--clauses", "wa-three-card-baccarat", "--json")
    assert ran.code == 0
    assert {each["clause"].split()[0] for each in ran.of("clause")} == {"WA3"}
    files = ran.of("run")[0]["files"]
    assert files
    assert all(Path(each).exists() for each in files)
    shown = sabot("rules", "--clauses", "wa-three-card-baccarat")
    assert "::test_" in shown.out
    assert "-m pytest tests/" in shown.out
    assert [each["ruleset"] for each in sabot("rules", "wa-three-card-baccarat", "--json").lines] == [
        "wa-three-card-baccarat"
    ]
    assert sabot("rules", "--clauses", "no-such-game").code == 2


def test_wagers_come_from_a_file(sabot: Sabot, tmp_path: Path) -> None:
    file = tmp_path / "wagers.toml"
    file.write_text("[2]\nante = 2500\n[5]\nante = 1000\ndragon-bonus = 500\n", encoding="utf-8")
    ran = sabot("play", "--device", "sim://", "--seed", 1, "--rounds", 1, "--rules", "wa-three-card-baccarat",
                "--wagers", file, "--json")  # fmt: skip
    assert ran.code == 0, ran.err
    (played,) = ran.of("round")
    assert sorted(seat for seat in played["seats"] if seat != "dealer") == [2, 5]
    assert len(played["settlement"]) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [("[9]\nante = 2500\n", "seat"), ("[1]\nante = -5\n", "amount"), ("[1]\ndragon-bonus = 500\n", "ante")],
)
def test_wagers_that_may_not_be_are_refused_and_nothing_is_dealt(
    sabot: Sabot, tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "wagers.toml"
    file.write_text(text, encoding="utf-8")
    ran = sabot("play", "--device", "sim://", "--rules", "md-three-card-baccarat", "--wagers", file, "--json")
    assert ran.code == 2
    assert words in ran.lines[-1]["message"]
    assert ran.of("round") == []
