"""Answer times on the board: the alarm keeps its instants, and a leak on purpose is found."""

from pathlib import Path

from tests.board.answer_times import PLANTED, attack

from sabot_simulators.fairness.answer_times import STRONGEST, judge

JITTER_US = 100.0
DECKS = 5


def test_what_is_sent_leaves_at_its_instant_whatever_else_happens(image: Path, tmp_path: Path) -> None:
    """Edges, orders and collections coincide with ticks; when the loop made these, answers came 2.4 ms late.

    Times are those of the emulated chip, so they are the same on every computer.
    """
    found = judge(attack(STRONGEST, 2, 1, tmp_path))
    assert found.samples > 200
    assert found.jitter_us < JITTER_US


def test_a_planted_leak_is_found_in_five_decks(image: Path, tmp_path: Path) -> None:
    """A processor that nothing interrupts for 2 ms at each order to a mover."""
    assert judge(attack(PLANTED, DECKS, 1, tmp_path)).leaks
