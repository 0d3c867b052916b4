"""Every wager by every paytable: each named outcome, settled with the code that pays."""

from collections.abc import Iterator
from fractions import Fraction

import pytest
from tests.table import outcomes

from sabot_table import paytables
from sabot_table.coup import Coup
from sabot_table.ruleset import RuleSet, load, names, parse
from sabot_table.settlement import DealtHands, SettlementLine, WagerOutcome, settle

STAKE = 2_000


def by_letter(rules: RuleSet, wager: str, letter: str | None) -> RuleSet:
    """The rule set with another of the text's paytables chosen."""
    data = rules.model_dump(mode="json")
    data["wagers"][wager]["paytable"] = letter
    return parse(data)


def examples(rules: RuleSet, wager: str) -> dict[str, list[DealtHands]] | dict[str, list[Coup]]:
    """The examples of a wager in this game."""
    if rules.game == "three-card":
        return outcomes.THREE_CARD_EXAMPLES[wager]
    return outcomes.MINI_EXAMPLES[wager]


def settled(rules: RuleSet, wager: str, play: DealtHands | Coup) -> SettlementLine:
    """The line of one wager, made with the main wager it may need."""
    made = {wager: STAKE}
    if rules.game == "three-card":
        made = {"ante": STAKE, **made}
    return next(line for line in settle(rules, {1: made}, play).lines if line.wager == wager)


def cases() -> Iterator[tuple[str, str, str | None]]:
    for name, tables in outcomes.BY_RULE_SET.items():
        for wager, letter in tables:
            yield name, wager, letter


def test_every_rule_set_wager_and_paytable_is_here() -> None:
    assert set(outcomes.BY_RULE_SET) == set(names())
    for name, tables in outcomes.BY_RULE_SET.items():
        rules = load(name)
        offered = {(wager, each.letter) for wager in rules.offered for each in rules.paytables(wager)}
        assert offered == set(tables)
    known = {
        (each.text, each.wager, each.letter) for each in paytables.all_paytables() if each.wager != "royal-9"
    }
    assert known == {(load(name).text, wager, letter) for name, wager, letter in cases()}


@pytest.mark.rule("MD3 7.E")
@pytest.mark.rule("MD3 11.B")
@pytest.mark.rule("MD3 12.A")
@pytest.mark.rule("MD3 12.B-kings")
@pytest.mark.rule("MD3 12.B-tie")
@pytest.mark.rule("MD3 12.E")
@pytest.mark.rule("WA3 ante")
@pytest.mark.rule("WA3 three-kings")
@pytest.mark.rule("WA3 tie")
@pytest.mark.rule("WA3 dragon-bonus")
@pytest.mark.rule("WA3 paytable")
@pytest.mark.rule("MDM 7.A(1)")
@pytest.mark.rule("MDM 7.A(2)")
@pytest.mark.rule("MDM 7.A(3)")
@pytest.mark.rule("MDM 7.A(4)")
@pytest.mark.rule("MDM 7.A(5)")
@pytest.mark.rule("MDM 7.A(6)")
@pytest.mark.rule("MDM 7.A(7)")
@pytest.mark.rule("MDM 7.A(8)")
@pytest.mark.rule("MDM 7.A(10)")
@pytest.mark.rule("MDM 7.A(11)")
@pytest.mark.rule("MDM 7.A(12)")
@pytest.mark.rule("MDM 7.A(13)")
@pytest.mark.rule("MDM 7.A(14)")
@pytest.mark.rule("MDM 7.A(15)")
@pytest.mark.rule("MDM 7.A(16)")
@pytest.mark.rule("MDM 7.A(17)")
@pytest.mark.rule("MDM 7.A(18)")
@pytest.mark.rule("MDM 12.A")
@pytest.mark.rule("MDM 12.B")
@pytest.mark.rule("MDM 12.C")
@pytest.mark.rule("MDM 12.F")
@pytest.mark.rule("MDM 12.G")
@pytest.mark.rule("MDM 12.H")
@pytest.mark.rule("MDM 12.I")
@pytest.mark.rule("MDM 12.J")
@pytest.mark.rule("MDM 12.M")
@pytest.mark.rule("MDM 12.P")
@pytest.mark.rule("MDM 12.Q")
@pytest.mark.rule("MDM 12.R")
@pytest.mark.rule("MDM 12.S")
@pytest.mark.rule("MDM 12.T")
@pytest.mark.rule("BAC wagers")
@pytest.mark.rule("BAC payouts")
@pytest.mark.parametrize(("name", "wager", "letter"), list(cases()))
def test_each_outcome_pays_what_the_text_says(name: str, wager: str, letter: str | None) -> None:
    rules = by_letter(load(name), wager, letter)
    pays = outcomes.BY_RULE_SET[name][wager, letter]
    shown = examples(rules, wager)
    assert set(pays) <= set(shown), "every line has an example"
    for line, plays in shown.items():
        for play in plays:
            got = settled(rules, wager, play)
            if line in pays:
                assert (got.line, got.pays_cents) == (line, int(Fraction(pays[line]) * STAKE))
                assert got.outcome == (WagerOutcome.WIN if pays[line] else WagerOutcome.PUSH)
            elif line == "lose" or not any(each in pays for each in fallback(wager, line)):
                assert (got.outcome, got.pays_cents, got.net_cents) == (WagerOutcome.LOSE, 0, -STAKE)
            else:
                assert got.line == next(each for each in fallback(wager, line) if each in pays)


def fallback(wager: str, line: str) -> tuple[str, ...]:
    """The coarser lines that a paytable without this line may still list."""
    return {
        ("ante", "more faces"): ("win",),
        ("banker", "dragon 7"): ("fortune 7", "win"),
        ("banker", "fortune 7"): ("dragon 7", "win"),
        ("banker", "win with 6"): ("win",),
        ("tie", "three card copy"): ("point and face tie", "tie"),
        ("tie", "point and face tie"): ("tie",),
    }.get((wager, line), ())


@pytest.mark.rule("MDM 12.C")
@pytest.mark.rule("MDM 12.E")
@pytest.mark.rule("MD3 12.A")
def test_vigorish_is_taken_from_ante_and_banker_and_nothing_else() -> None:
    taking = set()
    for name, wager, letter in cases():
        rules = by_letter(load(name), wager, letter)
        for plays in examples(rules, wager).values():
            if any(settled(rules, wager, play).vig_cents for play in plays):
                taking.add((name, wager))
    assert taking == {
        ("md-three-card-baccarat", "ante"), ("wa-three-card-baccarat", "ante"),
        ("md-mini-baccarat", "banker"), ("md-five-treasures-baccarat", "banker"),
        ("baccarat-six-deck", "banker"),
    }  # fmt: skip


@pytest.mark.rule("MDM 12.B")
def test_the_tie_pays_what_the_operator_chose() -> None:
    data = load("md-mini-baccarat").model_dump(mode="json")
    data["wagers"]["tie"]["pays"] = 9
    assert settled(parse(data), "tie", outcomes.coup("9H KD", "9S KC")).pays_cents == 9 * STAKE
