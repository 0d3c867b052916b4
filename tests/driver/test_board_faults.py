"""Faults of the board's power, records and clock, as whoever plays on an emulated device sees them."""

import pytest
from tests.driver.command import Sabot

from sabot_simulators.device_settings import BadSetting, DeviceSettings

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.slow]

PLAY = ("play", "--device", "sim://", "--json", "--rounds", 3)


@pytest.mark.parametrize("fault", ["power_cut+45", "torn_record+45"])
def test_a_device_that_starts_again_is_told_and_play_goes_on(sabot: Sabot, fault: str) -> None:
    ran = sabot(*PLAY, "--seed", 2, "--fault", fault)
    assert ran.code == 0, ran.err
    assert [each["reason"] for each in ran.of("booted")] == ["power"]
    assert len(ran.of("round")) == 3
    assert all(each["count"] == 52 for each in ran.of("round") if not each["void"])


def test_a_damaged_record_puts_the_machine_out_of_order_and_play_goes_on_by_hand(sabot: Sabot) -> None:
    ran = sabot(*PLAY, "--seed", 1, "--fault", "corrupted_record+45")
    assert ran.code == 0, ran.err
    assert "memory_damaged" in [each["fault"] for each in ran.of("fault")]
    first, *others = ran.of("round")
    assert first["void"]
    assert [(each["void"], each["card_source"]) for each in others] == [(False, "typed")] * 2


@pytest.mark.parametrize("fault", ["wrong_clock+45", "unknown_clock+45"])
def test_a_clock_that_is_not_right_is_set_again(sabot: Sabot, fault: str) -> None:
    ran = sabot(*PLAY, "--seed", 2, "--fault", fault)
    assert ran.code == 0, ran.err
    assert len(ran.of("clock_set")) == 1
    assert len(ran.of("round")) == 3


def test_what_is_out_of_reach_is_refused() -> None:
    with pytest.raises(BadSetting, match="firmware=python only"):
        DeviceSettings.from_url("sim://?firmware=micropython&fault=torn_record%2B3")
