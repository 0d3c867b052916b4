"""The comparison of dealt rounds with the exact odds: right samples agree, wrong ones do not."""

from collections import Counter
from random import Random

import pytest
from tests.table.monte_carlo import SIGNIFICANT, Agreement, Tally, agreements, compare, least_p, play

from sabot_table import ruleset
from sabot_table.odds import WagerOdds, odds

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("odds")]

MINI = ruleset.load("md-mini-baccarat")
STAKE = 2_000
ROUNDS = 20_000


def drawn(
    exact: WagerOdds, seed: int, ways: dict[str, int] | None = None, rounds: int = ROUNDS
) -> Agreement:
    """A sample of an exact table, or of another one, compared with it."""
    outcomes = {each.name: each for each in exact.outcomes}
    chances = ways or {name: each.ways for name, each in outcomes.items()}
    names = Random(seed).choices(list(chances), list(chances.values()), k=rounds)
    won = sum(round(outcomes[name].pays * STAKE) for name in names)
    return compare(exact, Counter(names), won, STAKE * rounds)


def test_a_sample_of_the_odds_agrees_with_them() -> None:
    for exact in odds(MINI):
        assert least_p([drawn(exact, 1, rounds=1_000)]) > SIGNIFICANT, f"{exact.wager} {exact.paytable}"


def test_a_banker_who_wins_too_often_is_found() -> None:
    (exact,) = odds(MINI, wager="banker")
    ways = {each.name: each.ways for each in exact.outcomes}
    moved = ways["lose"] // 20
    ways["lose"] -= moved
    ways["win"] += moved
    assert least_p([drawn(exact, 1, ways)]) < SIGNIFICANT


def test_lines_that_change_places_at_the_same_edge_are_found() -> None:
    (exact,) = (each for each in odds(MINI, wager="dragon-bonus-player") if each.paytable == "A")
    lines = Counter({each.name: ROUNDS * each.ways // exact.total for each in exact.outcomes})
    lines["win by 9"], lines["win by 8"] = lines["win by 9"] // 4, lines["win by 8"] * 2
    staked = STAKE * sum(lines.values())
    found = compare(exact, lines, round(-float(exact.house_edge) * staked), staked)
    assert found.p_edge > 0.9
    assert found.p_lines < SIGNIFICANT


def test_a_line_the_odds_do_not_have_is_an_error() -> None:
    (exact,) = odds(MINI, wager="banker")
    with pytest.raises(ValueError, match="win by magic"):
        compare(exact, {"win by magic": 1}, 0, STAKE)


def test_rounds_as_play_tells_them_are_tallied() -> None:
    tally = Tally()
    for event in play(MINI.name, 2, 1):
        tally.add(event)
    assert tally.rounds == 2
    found = agreements(MINI, tally)
    assert {each.exact.wager for each in found} == set(MINI.offered)
    assert all(each.rounds == 2 for each in found)
