"""What the floor countersigns is said in words that name the round, if it is of one."""

from collections.abc import Callable

import pytest

from sabot_session.countersigned_rows import act_in_words
from sabot_session.rows import Json, Row


@pytest.mark.parametrize(
    ("kind", "round_id", "data", "words"),
    [
        ("void", 7, {"why": "a card face up"}, "the void of round 7 by the machine: a card face up"),
        ("count_stub", 7, {}, "the stub of round 7, counted by the machine"),
        ("clear_fault", 7, {"fault": "card_stuck"}, "the fault cleared in round 7 by dealer d1: card stuck"),
        ("clear_fault", 0, {"fault": "card_stuck"}, "the fault cleared by dealer d1: card stuck"),
        ("empty_machine", 0, {}, "what dealer d1 did: empty machine"),
    ],
)
def test_an_act_that_is_countersigned_is_told_in_words(
    make_row: Callable[..., Row], kind: str, round_id: int, data: dict[str, Json], words: str
) -> None:
    assert act_in_words(make_row(kind, round_id, **data)) == words
