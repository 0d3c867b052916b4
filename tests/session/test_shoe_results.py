"""The results of the shoe in play: what the roads are drawn from."""

from pathlib import Path
from typing import Any

import pytest
from tests.session.simulated_table import simulated_table

from sabot_session.shoe_results import MOST, ShoeResults, forget_if_over, note, result_of
from sabot_table.procedure.memory import PackState, RoundState, TableMemory
from sabot_table.rule_texts import DealingMethod


def settled(round_id: int, pack_id: int = 1, *, player: str = "9S KH", banker: str = "2D 3C") -> RoundState:
    return RoundState(round_id, pack_id, "automated-shoe", player=player.split(), banker=banker.split())


@pytest.mark.parametrize(
    ("player", "banker", "result"),
    [("9S KH", "2D 3C", "player"), ("2D 3C", "9S KH", "banker"), ("5S 5H", "KD 10C", "tie")],
)
def test_the_higher_hand_wins(player: str, banker: str, result: str) -> None:
    assert result_of(player.split(), banker.split()) == result


def test_void_and_simulated_rounds_have_no_result() -> None:
    found = ShoeResults()
    void, simulated, unknown = settled(1), settled(2), settled(3)
    void.void_clause, simulated.simulated, unknown.player = "MDM 13", True, []
    for each in (void, simulated, unknown):
        note(found, each)
    assert found.by_round == {}


def test_another_shoe_begins_anew_and_a_round_counts_once() -> None:
    found = ShoeResults()
    for each in (settled(1), settled(2), settled(2)):
        note(found, each)
    assert found.by_round == {1: "player", 2: "player"}
    note(found, settled(3, 2, player="2S 2H"))
    assert (found.pack_id, found.by_round) == (2, {3: "banker"})


def test_a_pack_that_left_the_shoe_has_no_roads() -> None:
    found = ShoeResults()
    note(found, settled(1))
    memory = TableMemory("", packs=[PackState(1, "red", 0, state="playing")])
    forget_if_over(found, memory)
    assert found.by_round == {1: "player"}
    memory.packs[0].state = "discards"
    forget_if_over(found, memory)
    assert (found.pack_id, found.by_round) == (0, {})


def test_there_is_a_bound() -> None:
    found = ShoeResults()
    for round_id in range(1, MOST + 5):
        note(found, settled(round_id))
    assert len(found.by_round) == MOST


def points(names: list[str]) -> int:
    """What a hand counts, written once more: 10 and faces nothing, an ace one."""
    values = {"A": 1, "10": 0, "J": 0, "Q": 0, "K": 0, **{str(each): each for each in range(2, 10)}}
    return sum(values[each[:-1]] for each in names) % 10


@pytest.mark.slow
def test_a_played_shoe_tells_its_results(tmp_path: Path) -> None:
    with simulated_table(
        tmp_path, "seed=1&capacity=batch", rules="md-mini-baccarat", method=DealingMethod.AUTOMATED_SHOE
    ) as table:
        table.play(lambda now: len(now.rows("settle")) >= 3)
        shown = table.run.read(lambda session: session.snapshot())
        told: list[Any] = [each.row.data["hands"] for each in table.rows("coup_complete")]
    wins = []
    for hands in told[: len(shown["results"])]:
        player, banker = (
            next(points(one["cards"]) for one in hands if one["of"] == of) for of in ("player", "banker")
        )
        wins.append("tie" if player == banker else "player" if player > banker else "banker")
    assert len(wins) >= 3
    assert shown["results"] == wins
    assert shown["meters"] == {}
