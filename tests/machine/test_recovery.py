"""A jam is cleared by hand, believed only when door and sensors say so, and play goes on with every card."""

from collections.abc import Callable

import pytest
from tests.machine.tables import BLUE, Table, fault, void_reason

from sabot_firmware import hardware, shoe, shuffler
from sabot_protocol.codec import enum_name
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine

pytestmark = pytest.mark.both_kinds


@pytest.mark.rule("MD3 13.D")
@pytest.mark.parametrize(
    "planned",
    ["stuck@exit:30", "stuck@deal:9", "double_feed@shoe:14", "misfeed@shoe:40", "slip@shoe:5"],
)
def test_a_shoe_that_failed_is_emptied_and_the_other_deck_plays_next(planned: str) -> None:
    table = Table(1, planned)
    assert table.open_table()
    assert not table.play_round()
    table.recover()
    assert table.backs[table.device.view().shoe_deck] == BLUE  # RED has used its turn
    assert len(table.all_cards()) == 104
    for _ in range(4):
        assert table.play_round()
    assert len(table.all_cards()) == 104
    assert [values[1:] for values in table.named("round_ended")] == [(1, 31, 52)] * 4


@pytest.mark.parametrize(
    "planned",
    [
        "stuck@entry:110",
        "stuck@insertion:130",
        "stuck@chamber:130",
        "double_feed@tray:120",
        "aligned_double@tray:120",
        "grip_slip@chamber:30",
        "motor_stall@insert:130",
        "missed_switch@shelf",
    ],
)
def test_a_shuffler_that_failed_is_emptied_and_shuffles_again(planned: str) -> None:
    table = Table(2, planned)
    if table.open_table():
        assert not table.play_round()
    assert len(table.named("fault_raised")) == 1
    table.recover()
    for _ in range(4):
        assert table.play_round()
    assert len(table.all_cards()) == 104


def jammed(table: Table) -> str:
    assert table.open_table()
    assert not table.play_round()
    return enum_name("Fault", table.device.view().shoe_fault)


def the_door_was_moved(machine: SimulatedMachine) -> None:
    machine.open_door(hardware.SHOE_DOOR)
    machine.close_door(hardware.SHOE_DOOR)


@pytest.mark.parametrize(
    "do",
    [
        pytest.param(lambda machine: None, id="nothing was done"),
        pytest.param(lambda machine: machine.open_door(hardware.SHOE_DOOR), id="the door is still open"),
        pytest.param(the_door_was_moved, id="cards are left in the shoe"),
    ],
)
def test_clearing_is_not_believed_without_door_and_sensors(do: Callable[[SimulatedMachine], object]) -> None:
    table = Table(3, "stuck@exit:30")
    cause = jammed(table)
    do(table.machine)
    table.device.run_until(lambda: True)
    assert table.refused("clear_fault", fault(cause), role="floor") == "not_cleared"
    assert table.shoe_state == shoe.JAMMED


def test_a_half_without_cards_is_not_cleared_before_its_door_was_opened() -> None:
    """No sensor sees a card, but a card may lie where no sensor looks."""
    table = Table(3)
    table.device.run_until_idle()
    table.machine.strike("brown_out")
    table.device.run_until(lambda: True)
    assert table.faults() == [("controller", "supply_low")] * 2
    assert table.refused("clear_fault", fault("supply_low"), role="service") == "not_cleared"
    table.recover()


def test_another_fault_than_the_one_there_is_cannot_be_cleared() -> None:
    table = Table(3, "stuck@exit:30")
    jammed(table)
    assert table.refused("clear_fault", fault("wrong_deck"), role="floor") == "no_such_fault"


def test_what_is_broken_only_service_clears() -> None:
    table = Table(3, "motor_stall@deal:30")
    assert jammed(table) == "motor_stall"
    table.machine.open_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    table.machine.empty_by_hand(hardware.SHOE_DOOR)
    table.machine.close_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    assert table.refused("clear_fault", fault("motor_stall"), role="floor") == "service_only"
    table.device.command("clear_fault", fault("motor_stall"), role="service")
    assert not table.device.view().shoe_fault


def test_a_fault_says_where_it_is_and_what_to_do_in_three_steps() -> None:
    for planned in ("stuck@exit:30", "motor_stall@deal:9", "stuck@entry:20", "face_up_card@tray:4"):
        table = Table(3, planned)
        if table.open_table():
            table.play_round()
        steps = str(table.named("fault_raised")[0][3])
        assert steps.startswith("1 ")
        assert " 3 " in steps
        assert " 4 " not in steps


@pytest.mark.rule("MD3 13.D")
@pytest.mark.parametrize(("door", "voided"), [(hardware.SHUFFLER_DOOR, 0), (hardware.SHOE_DOOR, 1)])
def test_the_shoe_door_voids_the_round_and_the_shuffler_door_does_not(door: int, voided: int) -> None:
    table = Table(4)
    assert table.open_table()
    device = table.device
    device.command("open_round", 1, 1)
    device.command("close_bets", 1, 7)
    device.command("dispense_stack", 1, 1)
    device.machine.open_door(door)
    table.wait(lambda: table.shoe_state in (shoe.STACK_WAITING, shoe.JAMMED))
    assert len(table.named("round_voided")) == voided
    assert (device.view().open_round == 0) == bool(voided)
    assert device.view().proved(2) == bool(voided)  # behind the open door nothing is proved


def test_a_door_opened_on_an_empty_half_is_no_fault() -> None:
    table = Table(5)
    table.device.run_until_idle()
    for door in (hardware.SHUFFLER_DOOR, hardware.SHOE_DOOR):
        table.machine.open_door(door)
        table.device.run_until(lambda: True)
    assert (table.shuffler_state, table.shoe_state) == (shuffler.DOOR_OPEN, shoe.DOOR_OPEN)
    for door in (hardware.SHUFFLER_DOOR, hardware.SHOE_DOOR):
        table.machine.close_door(door)
        table.device.run_until(lambda: True)
    assert (table.shuffler_state, table.shoe_state) == (shuffler.IDLE, shoe.EMPTY)
    assert table.faults() == []


def test_a_failing_supply_stops_both_halves_and_voids_the_round() -> None:
    table = Table(6)
    table.open_table()
    table.device.command("open_round", 1, 1)
    table.machine.strike("brown_out")
    table.device.run_until(lambda: True)
    assert table.faults() == [("controller", "supply_low")] * 2
    assert table.named("round_voided") == [(1, void_reason("power_cut"))]
    table.recover()
    assert table.play_round()


def test_heat_stops_the_shuffler_lets_the_round_end_and_refuses_the_next() -> None:
    table = Table(7)
    table.open_table()
    assert table.device.view().shoe_deck == 1
    table.machine.strike("over_temperature")
    table.device.run_until(lambda: True)
    assert table.faults() == [("controller", "over_temperature")]
    assert table.refused("open_round", 1, 1) == "too_hot"
    table.device.run_for(70_000_000)
    table.device.command("open_round", 1, 1)


# -- every state has a way out -------------------------------------------------------------------------


def test_a_half_that_lost_its_power_with_the_door_open_is_cleared_like_any_other() -> None:
    """It became `unproved`; `empty_machine` brought nothing out, and a card in the path stayed there."""
    table = Table(5, "door_opened@shuffler:70")
    assert not table.open_table()
    table.device.reboot()
    table.device.run_until_idle()
    assert table.shuffler_state == shuffler.JAMMED
    assert table.faults()[-1] == ("chamber", "power_lost")
    assert table.refused("clear_fault", fault("power_lost"), role="floor") == "not_cleared"
    table.machine.empty_by_hand(hardware.SHUFFLER_DOOR)
    table.machine.close_door(hardware.SHUFFLER_DOOR)
    table.device.run_until(lambda: True)
    table.device.command("clear_fault", fault("power_lost"), role="floor")
    table.device.run_until_idle()
    assert table.shuffler_state == shuffler.IDLE
    table.machine.take_tray()
    table.collect()
    table.recover()
    assert table.play_round()


def test_a_dead_tray_sensor_is_mended_and_the_deck_stays() -> None:
    """The device says `tray_empty` of a full tray: service mends the sensor, and no deck leaves the table."""
    table = Table(6)
    table.device.run_until_idle()
    table.machine.sensors.freeze(hardware.TRAY, 0)
    for back in (hardware.RED, BLUE):
        table.new_deck(back)
    table.recover()
    assert table.named("deck_removed") == []
    assert table.play_round()


def test_a_machine_that_is_too_hot_is_left_to_cool_and_the_decks_stay() -> None:
    """A shuffle is refused as `too_hot`, and no fault says so if the machine was switched on hot."""
    table = Table(6)
    table.device.run_until_idle()
    table.machine.strike("over_temperature@controller")
    table.device.reboot()
    for back in (hardware.RED, BLUE):
        table.new_deck(back)
    table.recover()
    assert table.named("deck_removed") == []
    assert table.play_round()


def test_a_dead_sensor_of_the_exit_tray_does_not_keep_the_machine_from_being_emptied() -> None:
    """The device waits for cards that were taken: the door is opened, and the shoe is cleared."""
    table = Table(7, "dead_sensor@exit_tray:52")  # it dies as the cards are taken
    assert table.open_table()
    table.device.reboot()
    table.recover()
    assert table.play_round()


def test_a_dead_sensor_of_the_exit_tray_found_at_power_up_is_mended() -> None:
    """No fault is raised: the device waits for cards to be taken before it brings any out."""
    table = Table(7)
    assert table.open_table()
    assert table.deal_round()
    table.machine.sensors.freeze(hardware.EXIT_TRAY, 1)
    table.machine.take_exit()
    table.collect()
    table.device.reboot()
    table.recover()
    assert table.play_round()


def test_cards_left_in_the_exit_tray_are_taken_before_the_machine_is_emptied() -> None:
    table = Table(8, "stack_not_taken@exit_tray")
    assert table.open_table()
    table.machine.put_into_exit([table.machine.shoe.pop()])
    table.device.reboot()
    table.recover()
    assert table.play_round()


def test_a_shoe_blocked_for_an_unknown_deck_is_inspected() -> None:
    """No deck that is fed accounts for the card, and the purge brings nothing: the floor looks."""
    table = Table(9, "stuck@deal:104")
    assert table.open_table()
    assert table.play_round()
    table.device.reboot()
    table.device.run_until_idle()
    table.device.command("empty_machine", role="floor")
    table.wait(lambda: table.shoe_state == shoe.STUB_WAITING)
    table._take()
    table.device.run_until_idle()
    assert table.shoe_state == shoe.BLOCKED
    table.recover()
    assert len(table.named("path_inspected_by")) == 1
    assert table.play_round()
