"""What a host may order: hands corrected, stop, a call for the floor, a jog as a lease, hours of a deck."""

from itertools import pairwise
from typing import Any

import pytest
from tests.machine.tables import BLUE, RED, Table, fault, void_reason

from sabot_firmware import hardware, shoe, shuffler
from sabot_firmware.controller import UnhandledSensor
from sabot_firmware.half import UnreportedChanges
from sabot_protocol import schema
from sabot_protocol.codec import CODEC, enum_number
from sabot_protocol.errors import FieldError
from sabot_simulators.emulated_device import OPENING_UTC_S

TABLE_PC: Any = b"TABLE-PC"
NOBODY = 0
PART = {name: enum_number("Part", name) for name in ("feed", "insert", "deal", "elevator")}
AMBER, GREEN, RED_LIGHT = hardware.AMBER, hardware.GREEN, hardware.RED_LIGHT


def opened(seed: int, hands: int = 7) -> Table:
    """A table whose first round is open."""
    table = Table(seed, hands=hands)
    table.open_table()
    table.device.command("open_round", 1, 1)
    return table


def deal(table: Table, stack: int) -> None:
    table.device.command("dispense_stack", 1, stack)
    table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
    table.take_stack()


# -- hands ------------------------------------------------------------------------------------------


def test_hands_come_with_the_end_of_bets_and_may_be_corrected_until_the_dealer_has_cards() -> None:
    table = opened(1)
    table.device.command("close_bets", 1, 4)
    assert table.named("bets_closed") == [(1, 4)]
    deal(table, 1)
    table.device.command("close_bets", 1, 3)  # somebody's wager was no wager
    assert table.named("hands_changed") == [(1, 4, 3, TABLE_PC, NOBODY)]
    deal(table, 2)
    assert table.refused("close_bets", 1, 2) == "hands_fixed"  # the dealer's stack is still to come
    table.device.command("dispense_stack", 1, 3)
    table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
    assert table.refused("close_bets", 1, 4) == "hands_fixed"
    table.device.command("close_bets", 1, 3)  # again: nothing happens
    table.take_stack()
    assert table.refused("dispense_stack", 1, 4) == "stale"
    table.device.command("end_round", 1)
    table.wait(lambda: table.shoe_state == shoe.STUB_WAITING)
    assert table.named("round_ended") == [(1, 1, 43, 52)]
    assert len(table.named("hands_changed")) == len(table.named("bets_closed")) == 1


def test_more_hands_than_were_counted_get_their_stacks() -> None:
    table = opened(2)
    table.device.command("close_bets", 1, 2)
    deal(table, 1)
    table.device.command("close_bets", 1, 3)
    assert table.refused("end_round", 1) == "stacks_missing"
    assert table.refused("close_bets", 1, 18) == "too_many"
    deal(table, 2)
    deal(table, 3)
    table.device.command("end_round", 1)


def test_a_round_whose_bets_were_not_closed_is_not_ended() -> None:
    assert opened(3).refused("end_round", 1) == "stacks_missing"


# -- stop -------------------------------------------------------------------------------------------


def test_stop_halts_both_halves_and_voids_the_round_and_both_are_cleared_as_after_an_open_door() -> None:
    table = opened(4)
    table.device.command("close_bets", 1, 7)
    table.device.command("dispense_stack", 1, 1)
    table.device.run_for(150_000)
    table.device.command("stop")
    assert table.named("stopped") == [(TABLE_PC, NOBODY)]
    assert table.named("round_voided") == [(1, void_reason("stopped"))]
    assert (table.shuffler_state, table.shoe_state) == (shuffler.JAMMED, shoe.JAMMED)
    before = table.machine.travelled_um(hardware.DEAL)
    table.device.run_for(2_000_000)
    assert table.machine.travelled_um(hardware.DEAL) == before
    assert table.refused("clear_fault", fault("stopped")) == "not_cleared"  # no door was opened
    table.recover()
    assert table.play_round()


def test_stop_leaves_what_rests_where_it_is() -> None:
    table = Table(5)
    table.device.run_until_idle()
    table.device.command("stop")
    assert (table.shuffler_state, table.shoe_state) == (shuffler.IDLE, shoe.EMPTY)
    assert table.open_table()


def test_the_table_voids_a_round_and_clears_what_needs_no_tool() -> None:
    table = opened(6)
    table.device.command("void_round", 1, void_reason("floor_order"))
    assert table.named("round_voided") == [(1, void_reason("floor_order"))]
    for name in ("void_round", "clear_fault", "stop"):
        roles = next(row[4] for row in schema.MESSAGES if row[1] == name)
        assert "table" in roles.split()


# -- the floor is called ----------------------------------------------------------------------------


def test_a_call_for_the_floor_is_shown_until_it_ends() -> None:
    table = Table(7)
    table.device.run_until_idle()
    assert table.machine.lamp == GREEN
    table.device.command("call_floor", 1)
    table.device.command("call_floor", 1)
    assert (table.machine.lamp, table.machine.display[1]) == (RED_LIGHT, "FLOOR CALLED")
    table.device.command("call_floor", 0)
    assert table.machine.lamp == GREEN
    assert table.named("floor_called") == [(1, TABLE_PC, NOBODY), (0, TABLE_PC, NOBODY)]


def test_a_call_does_not_hide_a_fault() -> None:
    table = opened(8)
    table.device.command("call_floor", 1)
    table.device.command("stop")
    assert table.machine.lamp == RED_LIGHT
    assert table.machine.display == ("SHOE", "STOPPED")


# -- jog --------------------------------------------------------------------------------------------


def in_service(seed: int) -> Table:
    table = Table(seed)
    table.device.run_until_idle()
    table.device.command("service_mode", 1, role="service")
    return table


def travelled_for(table: Table, us: int) -> int:
    before = table.machine.travelled_um(hardware.FEED)
    table.device.run_for(us)
    return table.machine.travelled_um(hardware.FEED) - before


def test_a_jog_ends_250_ms_after_its_last_renewal() -> None:
    table = in_service(9)
    table.device.command("jog", PART["feed"], 1, role="service")
    assert travelled_for(table, 200_000) > 180_000
    for _ in range(3):
        table.device.command("jog", PART["feed"], 1)  # the owner renews without another proof
        assert travelled_for(table, 200_000) > 180_000
    assert 40_000 < travelled_for(table, 1_000_000) < 60_000
    assert table.refused("jog", PART["feed"], 1) == "wrong_role"  # nothing to renew: that is a new one
    assert table.refused("jog", PART["feed"], 300, role="service") == "bad_field"


def test_a_jog_ends_at_once_when_told_so() -> None:
    table = in_service(10)
    table.device.command("jog", PART["feed"], -1, role="service")
    table.device.run_for(50_000)
    assert table.refused("jog", PART["feed"], 1) == "wrong_role"  # the other way is no renewal
    table.device.command("jog", PART["feed"], 0)
    assert travelled_for(table, 500_000) == 0


def test_nothing_delays_the_end_of_a_jog() -> None:
    """While ``locate`` was in its last second the deadline was skipped: 50 ms became 1,000 ms."""
    table = in_service(11)
    table.device.command("locate", 1)
    table.device.run_for(100_000)
    table.device.command("jog", PART["feed"], 1, role="service")
    assert 230_000 < travelled_for(table, 800_000) < 270_000


def test_a_door_ends_a_jog_and_closing_it_does_not_begin_it_again() -> None:
    table = in_service(12)
    table.device.command("jog", PART["feed"], 1, role="service")
    table.device.run_for(50_000)
    table.machine.open_door(hardware.SHUFFLER_DOOR)
    table.device.run_for(10_000)
    assert table.device.controller.service.jogged < 0
    table.machine.close_door(hardware.SHUFFLER_DOOR)
    table.device.run_for(10_000)
    assert table.refused("jog", PART["feed"], 1) == "wrong_role"  # there is nothing to renew
    assert travelled_for(table, 500_000) == 0


def test_a_jog_of_another_roller_ends_the_one_before() -> None:
    """Only one lease is kept: a roller whose lease nobody looks at would turn for ever."""
    table = in_service(15)
    table.device.command("jog", PART["feed"], 1, role="service")
    table.device.run_for(50_000)
    table.device.command("jog", PART["insert"], 1, role="service")
    assert travelled_for(table, 1_000_000) == 0


# -- settings ---------------------------------------------------------------------------------------


def test_settings_decks_and_calibrations_are_events() -> None:
    table = Table(13)
    table.device.run_until_idle()
    table.device.command("set_game", "wa-three-card-baccarat", 0, 1, 3, 0xFFFF, role="floor")
    table.device.command("play_one_deck", 1, role="floor")
    game = ("wa-three-card-baccarat", 0, 1, 3, 0xFFFF)
    assert table.named("game_changed") == [(*game, each, TABLE_PC, NOBODY) for each in (0, 1)]
    assert table.device.command("game") == (*game, 1)
    opened_s = OPENING_UTC_S
    table.device.command("register_deck", 1, RED, opened_s, role="floor")
    assert table.named("deck_registered") == [(1, RED, opened_s, TABLE_PC, NOBODY)]
    table.device.command("service_mode", 1, role="service")
    table.device.command("calibrate", 1, 20, role="service")
    assert table.named("calibrated") == [(1, 20, TABLE_PC, NOBODY)]


@pytest.mark.rule("MD3 3.C", "WA3 sets")
def test_how_long_a_deck_may_be_used_is_the_games_business() -> None:
    table = Table(14)
    table.device.run_until_idle()
    for hours, left in ((4, 4 * 3600), (24, 24 * 3600), (0xFFFF, 0x7FFFFFFF)):
        table.device.command("set_game", "x", 0, 1, 3, hours, role="floor")
        if hours != 0xFFFF:
            table.new_deck(RED if hours == 4 else BLUE)
        assert max(table.device.command("decks")[2]) == left
    table.device.reboot()
    assert table.device.command("game")[4] == 0xFFFF
    with pytest.raises(FieldError):  # none at all is no game
        CODEC.pack("set_game", "x", 0, 1, 3, 0)


# -- sensors ----------------------------------------------------------------------------------------


def test_every_sensor_is_in_one_table() -> None:
    names = [name for name, _ in next(members for enum, members in schema.ENUMS if enum == "Sensor")]
    assert names == [row[0] for row in schema.SENSORS]
    for number, name in enumerate(names):
        assert getattr(hardware, name.upper()) == number
    assert len(hardware.SENSOR_HALVES) == hardware.SENSORS == len(names)
    assert hardware.SENSOR_HALVES[hardware.STORE] == hardware.SHUFFLER_HALF | hardware.SHOE_HALF
    assert hardware.SENSOR_HALVES[hardware.SHOE_DOOR] == 0
    assert hardware.SECRET_SENSORS >> hardware.ELEVATOR & 1
    assert not hardware.SECRET_SENSORS >> hardware.STORE & 1
    clear = [name for _, _, name in hardware.clear_levels("shoe")]
    assert clear == ["exit", "shoe", "exit_tray", "shoe_door"]
    assert (hardware.SHUFFLER_DOOR, 1, "shuffler_door") in hardware.clear_levels("shuffler")


@pytest.mark.looks_inside
def test_a_sensor_that_nothing_handles_is_no_button() -> None:
    table = Table(20)
    table.device.run_until_idle()
    handled = (
        hardware.SHUFFLER_DOOR, hardware.SHOE_DOOR, hardware.SUPPLY_LOW, hardware.HOT,
        hardware.LEFT_BUTTON, hardware.RIGHT_BUTTON,
    )  # fmt: skip
    of_no_half = [sensor for sensor in range(hardware.SENSORS) if not hardware.SENSOR_HALVES[sensor]]
    assert sorted(handled) == of_no_half
    for level in (0, 1):
        with pytest.raises(UnhandledSensor):
            table.device.controller._handle_input(hardware.TRAY, level)
    assert table.named("buttons") == []


@pytest.mark.looks_inside
def test_changes_that_wait_for_their_report_are_coalesced_or_refused_but_never_lost() -> None:
    """A board that talks reports later. Its queue has eight places; what a door alone does needs fewer."""
    table = Table(21)
    table.device.run_until_idle()
    half = table.device.controller.shoe
    for state in (shoe.DOOR_OPEN, shoe.EMPTY) * 20:
        half.enter(state)
        waiting = [half._entered[at] for at in range(half.unreported)]
        assert waiting[-1] == half.state
        assert all(a != b for a, b in pairwise(waiting))
    while half.unreported:
        half.next_unreported()
    half.enter(shoe.DOOR_OPEN)
    half.enter(shoe.EMPTY)
    played = (shoe.LOADING, shoe.READY, shoe.ROUND_OPEN, shoe.DISPENSING, shoe.STACK_WAITING, shoe.ROUND_OPEN)
    for state in played:
        half.enter(state)
    with pytest.raises(UnreportedChanges):
        half.enter(shoe.EJECTING)
    assert half.state == shoe.ROUND_OPEN
    assert [half.next_unreported() for _ in range(8)] == [shoe.DOOR_OPEN, shoe.EMPTY, *played]


# -- what people repeat -----------------------------------------------------------------------------


def test_a_door_that_is_moved_again_and_again_is_reported_once_and_as_it_ends() -> None:
    table = Table(15)
    table.device.run_until_idle()
    begun = len(table.named("shuffler_changed"))
    for _ in range(20):
        table.machine.open_door(hardware.SHUFFLER_DOOR)
        table.device.run_for(10_000)
        assert table.shuffler_state == shuffler.DOOR_OPEN  # the machine itself knows at once
        table.machine.close_door(hardware.SHUFFLER_DOOR)
        table.device.run_for(10_000)
    table.machine.open_door(hardware.SHUFFLER_DOOR)
    table.device.run_for(2_000_000)
    states = [values[0] for values in table.named("shuffler_changed")[begun:]]
    assert states == [shuffler.DOOR_OPEN, shuffler.IDLE, shuffler.DOOR_OPEN]
    table.machine.close_door(hardware.SHUFFLER_DOOR)
    table.device.run_for(10_000)
    assert table.named("shuffler_changed")[-1][0] == shuffler.IDLE


def test_what_was_folded_is_told_before_what_follows_from_it() -> None:
    """Else the host would see a step that the table of steps does not have."""
    table = Table(16)
    table.device.run_until_idle()
    deck_id = table.new_deck(RED)
    begun = len(table.named("shuffler_changed"))
    for _ in range(2):
        table.machine.open_door(hardware.SHUFFLER_DOOR)
        table.device.run_for(10_000)
        table.machine.close_door(hardware.SHUFFLER_DOOR)
        table.device.run_for(10_000)
    table.machine.open_door(hardware.SHUFFLER_DOOR)
    table.device.run_for(1_100_000)  # so that the open door is told
    table.machine.close_door(hardware.SHUFFLER_DOOR)
    table.feed(deck_id)
    states = [values[0] for values in table.named("shuffler_changed")[begun:]]
    assert states[-3:] == [shuffler.DOOR_OPEN, shuffler.IDLE, shuffler.FEEDING]


def test_a_folded_idle_is_told_before_the_first_card_moves() -> None:
    """It was told when a card was on its way already: that the half is empty was not so any more."""
    table = Table(16)
    table.device.run_until_idle()
    deck_id = table.new_deck(RED)
    inside: list[int] = []

    def heard(name: str, values: tuple[int | str, ...]) -> None:
        if name == "shuffler_changed" and values[0] == shuffler.IDLE:
            inside.append(table.machine.count("path"))

    table.machine.open_door(hardware.SHUFFLER_DOOR)
    table.device.run_for(2_000_000)
    table.device.on_report = heard
    table.machine.close_door(hardware.SHUFFLER_DOOR)
    table.device.run_until(lambda: True)
    table.machine.open_door(hardware.SHUFFLER_DOOR)
    table.device.run_until(lambda: True)
    table.machine.close_door(hardware.SHUFFLER_DOOR)
    table.feed(deck_id)
    assert inside == [0, 0]


def test_a_button_that_is_hammered_is_one_press_a_second() -> None:
    table = Table(17)
    table.device.run_until_idle()
    for _ in range(40):
        table.machine.press(hardware.LEFT_BUTTON)
        table.device.run_for(25_000)
        table.machine.release(hardware.LEFT_BUTTON)
        table.device.run_for(25_000)
    table.machine.press(hardware.RIGHT_BUTTON)
    table.device.run_for(25_000)
    pressed = [values[0] for values in table.named("buttons")]
    assert pressed in ([1, 1, 2], [1, 2])


# -- wear -------------------------------------------------------------------------------------------


def test_times_of_each_roller_are_summed_for_every_shuffle() -> None:
    table = Table(18)
    table.open_table()
    assert table.play_round()
    told: list[Any] = table.named("roller_times")
    assert [each[0] for each in told] == [1, 2, 3]
    assert [each[1] for each in told] == [(52, 52, 0), (52, 52, 0), (52, 52, 52)]
    for _, counts, sums, squares in told:
        for roller, nominal in ((0, 500), (1, 889), (2, 889)):
            if counts[roller]:
                mean = sums[roller] / counts[roller]
                assert 0.94 * nominal < mean < 1.08 * nominal
                assert 0 <= squares[roller] / counts[roller] - mean * mean < 25


@pytest.mark.looks_inside
def test_times_of_many_shuffles_that_failed_fit_the_report_of_the_one_that_did_not() -> None:
    """Thirteen batches that failed at their end were too much for the event: the device restarted."""
    table = Table(20)
    for _ in range(13 * 416):
        table.device.controller.shuffler.time_card(hardware.INSERT, 88_900)
    table.shuffle()
    (told,) = table.named("roller_times")
    assert CODEC.named("roller_times").pack(told)
    times: Any = told
    assert max(times[3]) < 1 << 30


def test_a_card_that_needed_help_is_not_timed() -> None:
    table = Table(19, "snag@entry:7")
    table.shuffle()
    counts: Any = table.named("roller_times")[0][1]
    assert counts[0] < 52
