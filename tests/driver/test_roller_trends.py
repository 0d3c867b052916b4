"""The forecast of a roller's drift: a straight line to the limit, and nothing where there is none."""

from sabot_driver.roller_trends import LEAST_SHUFFLES, rounds_until


def test_a_line_reaches_its_limit_on_either_side() -> None:
    up = [100.0 + 0.1 * at for at in range(11)]  # 101 now, the limit is 105
    down = [100.0 - 0.1 * at for at in range(11)]
    assert rounds_until(up, 0.05) in (39, 40)
    assert rounds_until(down, 0.05) in (39, 40)
    assert rounds_until([100.0 + each for each in range(11)], 0.05) == 0


def test_too_few_or_level_means_have_no_forecast() -> None:
    assert rounds_until([100.0 + each for each in range(LEAST_SHUFFLES - 1)], 0.05) is None
    assert rounds_until([100.0] * 20, 0.05) is None
