"""The order leaks through answer times, as ``sabot_simulators.fairness.answer_times`` measures them."""

import pytest
from tests.sweeps import Amount

from sabot_simulators.fairness.answer_times import MODES, PLANTED, Mode, attack, judge


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_answer_times_tell_nothing_of_the_slots(mode: Mode, amount: Amount) -> None:
    """Answers were 2.4 ms late beside an edge, and rests that polling provoked marked the platform's starts.

    That told 122 to 142 of the 225.6 bits of an order, without a key. Now every answer comes at its tick.
    """
    decks = amount(2, full=6)
    found = judge([attack(mode, seed) for seed in range(decks)])
    assert found.samples > decks * 50
    assert (found.differing, found.jitter_us, found.leaks) == (0, 0.0, False)


@pytest.mark.slow
def test_an_answer_that_is_late_beside_an_edge_is_noticed() -> None:
    """The old firmware's leak, planted: without the grid the statistics find it in as few decks."""
    assert judge([attack(PLANTED, seed) for seed in range(6)]).leaks
