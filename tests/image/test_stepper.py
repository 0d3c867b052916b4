"""Steps on the RP2040: as many as asked for, each at its time, and the position kept."""

from array import array
from itertools import pairwise

import pytest
from tests.image.stand_ins import Slice, micropython

from sabot_firmware import machine_constants

PIN = 12
LONGEST = machine_constants.ELEVATOR_TRAVEL_BATCH_UM // machine_constants.ELEVATOR_STEP_UM
MOVES = [*range(1, 40), 119, 120, 121, 311, 312, 313, 314, 500, LONGEST]


@pytest.mark.parametrize("steps", MOVES)
def test_a_move_makes_so_many_steps_in_the_time_of_the_figures(steps: int) -> None:
    with micropython() as registers:
        from sabot_firmware.boards.rp2040.stepper import Stepper, ramp_periods

        ended = []
        ramp = ramp_periods(
            machine_constants.ELEVATOR_STEP_UM,
            machine_constants.ELEVATOR_ACCELERATION_UM_S2,
            machine_constants.ELEVATOR_SPEED_UM_S,
        )
        stepper = Stepper(PIN, ramp, lambda: ended.append(True))
        for direction in (1, -1):
            stepper.move(direction * steps)
            pulses = Slice(registers, PIN).run()
            assert len(pulses) == steps
            assert not stepper.moving
            expected_us = machine_constants.travel_us(steps * machine_constants.ELEVATOR_STEP_UM)
            slow_us = ramp[0] if steps < 4 else 0  # a step or two cannot be quicker than the first
            assert abs(pulses[-1] - expected_us) <= 0.03 * expected_us + 2 * slow_us + 400
            periods = [after - before for before, after in pairwise([0, *pulses])]
            middle = len(periods) // 2
            assert all(after <= before + 1 for before, after in pairwise(periods[:middle]))
            assert all(after >= before - 1 for before, after in pairwise(periods[middle:]))
        assert stepper.position == 0
        assert len(ended) == 2


@pytest.mark.parametrize("made", [0, 1, 2, 5, 60, 119, 200, 311])
def test_a_move_that_is_stopped_knows_how_far_it_came(made: int) -> None:
    with micropython() as registers:
        from sabot_firmware.boards.rp2040.stepper import Stepper, ramp_periods

        stepper = Stepper(PIN, ramp_periods(50, 4000000, 250000), lambda: None)
        stepper.move(-400)
        if made:
            Slice(registers, PIN).run(after=made)
        stepper.stop()
        assert stepper.position == -made
        assert Slice(registers, PIN).run() == []


def test_even_steps_at_one_pace() -> None:
    with micropython() as registers:
        from sabot_firmware.boards.rp2040.stepper import Stepper

        stepper = Stepper(PIN, array("I", [980]), lambda: None)
        stepper.move(700)
        pulses = Slice(registers, PIN).run()
        assert pulses == [980 * (n + 1) for n in range(700)]
