"""Service, the out-of-order latch, display and lamp, wear, and the log in flash."""

import pytest
from tests.machine.tables import Table, void_reason

from sabot_firmware import hardware, shoe, shuffler
from sabot_firmware.event_log import EventLog
from sabot_firmware.wear import WearCounters
from sabot_protocol import ticks
from sabot_protocol.codec import CODEC, enum_number
from sabot_protocol.device_protocol import EVIDENCE
from sabot_protocol.record_store import RecordStore
from sabot_protocol.schema import WEAR
from sabot_simulators.chips import SimFlash
from sabot_simulators.emulated_device import OPENING_UTC_S
from sabot_simulators.hosted_device import HostedDevice

pytestmark = pytest.mark.both_kinds

PART = {name: enum_number("Part", name) for name in ("feed", "deal", "elevator", "gripper")}
BLADE, CARD = enum_number("Calibration", "blade_um"), enum_number("Calibration", "card_um")


# -- out of order -------------------------------------------------------------------------------------


@pytest.mark.rule("MD3 13.E")
def test_out_of_order_latches_through_a_power_cut_until_service_acts() -> None:
    table = Table(1)
    table.device.run_until_idle()
    table.device.command("mark_out_of_order", role="floor")
    for _ in range(2):
        assert (table.shuffler_state, table.shoe_state) == (shuffler.OUT_OF_ORDER, shoe.OUT_OF_ORDER)
        assert table.machine.display[0] == "OUT OF ORDER"
        assert table.machine.lamp == hardware.RED_LIGHT
        assert table.refused("shuffle", 1) == "wrong_state"
        assert table.refused("clear_fault", 1, role="floor") == "no_such_fault"
        table.device.reboot()
        table.device.run_until_idle()
    table.device.command("return_to_service", role="service")
    table.device.run_until_idle()
    assert (table.shuffler_state, table.shoe_state) == (shuffler.IDLE, shoe.EMPTY)
    assert [values[0] for values in table.named("out_of_order_changed")] == [1, 0]
    assert table.open_table()


@pytest.mark.rule("MD3 13.E")
def test_a_machine_that_is_marked_out_of_order_goes_on_with_nothing_and_vouches_for_nothing() -> None:
    table = Table(1, "stuck@deal:52")
    assert table.open_table()
    assert table.deal_round()
    table._take()
    table.device.run_for(3_000_000)
    assert table.shoe_state == shoe.BLOCKED
    assert table.device.view().proved(2)  # it lies on the shelf
    table.machine.sensors.set(hardware.HOT, 1)
    table.device.run_until_idle()
    table.device.command("mark_out_of_order", role="floor")
    assert not table.device.view().proved(2)
    waits = Table(8)
    assert waits.open_table()
    waits.machine.put_into_exit([waits.machine.shoe.pop()])
    waits.device.reboot()
    waits.device.run_until_idle()
    waits.device.command("empty_machine", role="floor")  # as soon as the exit tray is free
    assert waits.device.view().emptying
    waits.device.command("mark_out_of_order", role="floor")
    assert not waits.device.view().emptying


def test_the_machine_is_not_marked_out_of_order_in_a_round() -> None:
    table = Table(2)
    table.open_table()
    table.device.command("open_round", 1, 1)
    assert table.refused("mark_out_of_order", role="floor") == "wrong_state"


# -- service ------------------------------------------------------------------------------------------


def test_service_is_not_begun_during_a_round_nor_with_a_proved_deck() -> None:
    table = Table(3)
    table.open_table()
    assert table.refused("service_mode", 1, role="service") == "wrong_state"
    table.device.command("open_round", 1, 1)
    assert table.refused("service_mode", 1, role="service") == "wrong_state"
    assert table.refused("jog", PART["feed"], 1, role="service") == "wrong_state"


def test_parts_are_jogged_in_service_and_all_is_tested_when_it_ends() -> None:
    table = Table(4)
    table.device.run_until_idle()
    device = table.device
    device.command("service_mode", 1, role="service")
    before = table.machine.travelled_um(hardware.FEED)
    device.command("jog", PART["feed"], 1, role="service")
    device.run_for(1_000_000)
    moved = table.machine.travelled_um(hardware.FEED) - before
    assert 230_000 < moved < 270_000  # its lease
    device.command("jog", PART["deal"], -1, role="service")
    device.run_for(1_000_000)
    assert ticks.diff(table.machine.travelled_um(hardware.DEAL), 0) < 0
    device.command("jog", PART["elevator"], 5000, role="service")
    device.command("jog", PART["gripper"], 1, role="service")
    device.run_for(1_000_000)
    assert table.machine.level(hardware.GRIPPER) == 1
    assert table.refused("jog", PART["gripper"], 7, role="service") == "bad_field"
    assert table.refused("jog", PART["elevator"], 30_000, role="service") == "bad_field"
    levels = device.command("sensors")[0]
    assert levels >> hardware.GRIPPER & 1
    assert not levels >> hardware.ELEVATOR_HOME & 1
    device.command("service_mode", 0, role="service")
    device.run_until_idle()
    assert table.machine.level(hardware.GRIPPER) == 0
    assert table.machine.level(hardware.ELEVATOR_HOME) == 1
    assert table.shuffler_state == shuffler.IDLE
    assert table.named("self_tested")[-2:] in ([(2, 1), (1, 1)], [(1, 1), (2, 1)])


@pytest.mark.parametrize("switch", ["elevator", "gripper", "shelf", "pusher"])
def test_a_switch_that_does_not_answer_is_found_and_service_clears_it(switch: str) -> None:
    table = Table(5, f"missed_switch@{switch}")
    table.open_table()
    assert [cause for _, cause in table.faults()][:1] in (["switch_missed"], ["axis_lost"])
    table.recover()
    assert table.play_round()


def test_a_self_test_is_run_on_demand_and_finds_a_dead_axis() -> None:
    table = Table(6)
    table.device.run_until_idle()
    table.device.command("self_test", role="service")
    table.device.run_until_idle()
    assert table.shuffler_state == shuffler.IDLE
    table.device.command("service_mode", 1, role="service")
    table.device.command("jog", PART["elevator"], 5000, role="service")
    table.device.run_for(1_000_000)
    table.machine.strike("missed_switch@elevator")
    table.device.command("service_mode", 0, role="service")
    table.device.run_until_idle()
    assert table.faults() == [("chamber", "switch_missed")]
    assert (1, 0) in table.named("self_tested")


@pytest.mark.looks_inside
def test_calibrations_are_kept_with_their_date() -> None:
    table = Table(7)
    table.device.run_until_idle()
    assert table.device.command("calibration", CARD) == (CARD, 300, 0)
    table.device.command("service_mode", 1, role="service")
    table.device.command("calibrate", CARD, 305, role="service")
    table.device.command("calibrate", BLADE, -50, role="service")
    assert table.refused("calibrate", CARD, 900, role="service") == "bad_field"
    table.device.reboot()
    table.device.run_until_idle()
    what, value, set_s = table.device.command("calibration", CARD)
    assert (what, value) == (CARD, 305)
    assert set_s >= OPENING_UTC_S
    assert table.device.controller.shuffler.card_um == 305
    assert table.device.command("calibration", BLADE)[1] == -50


def test_emptying_brings_every_card_out_and_vouches_for_none() -> None:
    table = Table(8)
    table.open_table()
    table.device.command("empty_machine", role="floor")
    table.wait(table._emptied)
    assert table.named("emptied") == [(104,)]
    assert len(table.machine.handed_out) == 104
    assert (table.shuffler_state, table.shoe_state) == (shuffler.IDLE, shoe.EMPTY)
    table.collect()
    table.recover()
    assert table.play_round()


@pytest.mark.looks_inside
def test_a_wear_counter_ends_at_its_highest_value() -> None:
    """It began anew at 2**32 ms, after some years of play, as if the roller had been replaced."""
    memory = RecordStore()
    wear = WearCounters(memory)
    wear.add("feed_ms", 0xFFFFFFFF)
    wear.add("feed_ms", 8000)
    wear.save()
    assert WearCounters(memory).values[WEAR.index("feed_ms")] == 0xFFFFFFFF


def test_wear_is_counted_and_outlives_the_power() -> None:
    table = Table(9, "misfeed@tray:20", "stuck@exit:80")
    table.open_table()
    for _ in range(3):
        if not table.play_round():
            table.recover()
    wear = dict(zip(WEAR, table.device.command("wear")[0], strict=True))
    assert wear["shuffles"] >= 5
    assert wear["rounds"] == 3
    assert wear["cards_fed"] == 52 * len(table.named("deck_counted"))
    assert wear["faults"] == wear["jams_exit"] == 1
    assert wear["retries"] == len(table.named("retried")) > 0
    assert wear["feed_ms"] > 1000
    assert wear["insert_ms"] > 1000
    assert wear["deal_ms"] > 1000
    assert 900 < wear["feed_permille"] < 1100
    assert 900 < wear["deal_permille"] < 1100
    table.device.reboot()
    again = dict(zip(WEAR, table.device.command("wear")[0], strict=True))
    assert again["shuffles"] == wear["shuffles"]


# -- display, lamp, buttons ---------------------------------------------------------------------------


@pytest.mark.rule("MD3 5.B")
def test_the_display_shows_the_count_and_the_shoe_speaks_first() -> None:
    table = Table(10)
    shown = set()
    table.device.on_step = lambda: shown.add(table.machine.display)
    table.open_table()
    assert any(second.startswith("52 OF 52") for _, second in shown)
    assert table.machine.display[0] == "READY"
    assert table.machine.lamp == hardware.GREEN
    table.machine.strike("stuck@exit")
    table.play_round()
    assert table.machine.display == ("EXIT", "DOUBLE FEED")
    assert table.machine.lamp == hardware.RED_LIGHT
    assert all(len(line) <= 20 for lines in shown for line in lines)


def test_a_shuffler_fault_leaves_the_first_line_to_the_shoe() -> None:
    table = Table(11, "stuck@entry:60")
    assert not table.open_table()
    table.wait(lambda: table.shoe_state == shoe.READY)
    assert table.machine.display[0] == "READY"
    assert table.machine.display[1].startswith("ENTRY")
    assert table.machine.lamp == hardware.AMBER


def test_buttons_are_told_and_a_device_shows_itself() -> None:
    table = Table(12)
    table.device.run_until_idle()
    table.machine.press(hardware.RIGHT_BUTTON)
    table.device.run_until(lambda: True)
    assert table.named("buttons") == [(2,)]
    table.device.command("locate", 3)
    assert table.machine.display[1] == "I AM HERE"
    table.device.run_for(4_000_000)
    assert table.machine.display[1] != "I AM HERE"


# -- the log ------------------------------------------------------------------------------------------


@pytest.mark.looks_inside
def test_every_event_is_in_the_log_after_a_reboot_and_is_read_over_the_wire() -> None:
    flash = SimFlash()
    table = Table(13, log=EventLog(flash))
    device = table.device
    assert isinstance(device, HostedDevice)
    assert table.open_table()
    assert table.play_round()
    device.run_until_idle()
    reports = list(device.reports)
    device._log = EventLog(flash)
    device.reboot()
    rows = []
    n = 1
    while True:
        n, newest, row = device.ask("log", n)
        if not n:
            break
        rows.append(bytes(row))
        n += 1
    assert newest >= len(reports)
    told = []
    for each in rows:
        message = CODEC.find(each[0])
        assert message is not None
        told.append((message.name, message.unpack(each[16:])))
    core_names = {name for name, _ in reports}
    assert [each for each in told if each[0] in core_names][: len(reports)] == reports


@pytest.mark.looks_inside
def test_evidence_of_a_round_is_read_over_the_wire() -> None:
    flash, second = SimFlash(), SimFlash()
    table = Table(13, log=EventLog(flash, evidence=EventLog(second)))
    device = table.device
    assert isinstance(device, HostedDevice)
    assert table.open_table()
    assert table.play_round()
    device.run_until_idle()
    device._log = EventLog(flash, evidence=EventLog(second))
    device.reboot()
    names = []
    n, newest, row = device.ask("evidence", 0)
    while n:
        message = CODEC.find(row[0])
        assert message is not None
        names.append(message.name)
        n, newest, row = device.ask("evidence", n + 1)
    assert len(names) == newest
    assert {"deck_registered", "deck_counted", "round_ended", "elevation_used"} <= set(names)
    assert set(names) <= set(EVIDENCE)


def moved(table: Table, door: int) -> None:
    """Somebody opens a door and closes it."""
    table.machine.open_door(door)
    table.device.run_until(lambda: True)
    table.machine.close_door(door)
    table.device.run_until(lambda: True)


def heated(seed: int) -> Table:
    """A machine whose empty shuffler half was too hot; its door was moved before, not since."""
    table = Table(seed)
    table.device.run_until_idle()
    moved(table, hardware.SHUFFLER_DOOR)
    table.machine.strike("over_temperature")
    table.device.run_for(70_000_000)
    assert table.shuffler_state == shuffler.JAMMED
    return table


HEAT = enum_number("Fault", "over_temperature")


def test_a_door_that_was_opened_before_a_fault_clears_nothing() -> None:
    table = heated(16)
    assert table.refused("clear_fault", HEAT, role="floor") == "not_cleared"
    moved(table, hardware.SHUFFLER_DOOR)
    table.device.command("clear_fault", HEAT, role="floor")
    table.device.run_until_idle()
    assert table.shuffler_state == shuffler.IDLE


def test_clearing_a_fault_ends_neither_service_nor_an_out_of_order_machine() -> None:
    table = heated(17)
    moved(table, hardware.SHUFFLER_DOOR)
    table.device.command("service_mode", 1, role="service")
    assert table.refused("clear_fault", HEAT, role="service") == "no_such_fault"
    assert (table.shuffler_state, table.shoe_state) == (shuffler.SERVICE, shoe.SERVICE)
    table = heated(18)
    moved(table, hardware.SHUFFLER_DOOR)
    table.device.command("mark_out_of_order", role="floor")
    assert table.refused("clear_fault", HEAT, role="service") == "no_such_fault"
    assert table.shuffler_state == shuffler.OUT_OF_ORDER


def cards_in_the_chamber(seed: int) -> Table:
    """A table at rest whose second deck lies unproved in the chamber, and its first one in the shoe."""
    table = Table(seed)
    table.device.run_until_idle()
    table.shuffle(back=hardware.RED)
    table.wait(lambda: table.shoe_state == shoe.READY)
    table.feed(table.new_deck(hardware.BLUE))
    table.wait(lambda: table.machine.count("chamber") == 52)
    table.device.reboot()
    table.device.run_until_idle()
    for on in (1, 0):  # service takes nothing out
        table.device.command("service_mode", on, role="service")
        table.device.run_until_idle()
    assert (table.shuffler_state, table.machine.count("chamber")) == (shuffler.UNPROVED, 52)
    return table


def test_a_chamber_whose_sensor_was_dead_in_service_is_emptied_when_it_is_repaired() -> None:
    """The half was called idle, its sensor then showed cards, and emptying ended in an illegal transition."""
    table = cards_in_the_chamber(5)
    table.device.command("service_mode", 1, role="service")
    table.machine.sensors.set(hardware.CHAMBER, 0)  # the sensor fails
    table.device.command("service_mode", 0, role="service")
    table.device.run_until_idle()
    assert table.shuffler_state == shuffler.IDLE
    table.machine.presence()  # repaired
    table.device.run_until_idle()
    table.device.command("empty_machine", role="floor")
    table._wait_emptied()
    assert table.named("emptied")[-1][0] == 104
    assert table.machine.count("chamber") == 0


def test_emptying_waits_while_the_door_of_the_shuffler_is_open() -> None:
    """The stack in the exit tray was taken meanwhile, and the carriage was ordered behind an open door."""
    table = cards_in_the_chamber(6)
    table.device.command("empty_machine", role="floor")
    table.wait(lambda: table.shoe_state == shoe.STUB_WAITING)
    table.machine.open_door(hardware.SHUFFLER_DOOR)
    table.device.run_until_idle()
    table.machine.take_exit()
    table.device.run_until_idle()
    assert (table.shuffler_state, table.machine.count("chamber")) == (shuffler.DOOR_OPEN, 52)
    table.machine.close_door(hardware.SHUFFLER_DOOR)
    table._wait_emptied()
    assert table.named("emptied")[-1][0] == 104


def test_stop_ends_the_emptying_of_the_machine() -> None:
    """The exit tray is covered, so emptying waits. After the stop it does not go on when the tray is free."""
    table = Table(19)
    assert table.open_table()
    table.device.reboot()  # nothing is proved any more
    table.device.run_until_idle()
    table.machine.meddle_with_exit()
    table.device.run_until(lambda: True)
    table.device.command("empty_machine", role="floor")
    table.device.command("stop")
    table.machine.snatch_exit()
    table.device.run_for(5_000_000)
    assert table.shoe_state == shoe.UNPROVED
    assert table.machine.count("shoe") == 52
    assert table.named("emptied") == []


def test_a_hot_machine_is_not_cleared_before_it_is_cool() -> None:
    table = Table(14)
    table.device.run_until_idle()
    table.machine.strike("over_temperature")
    table.device.run_until(lambda: True)
    table.machine.open_door(hardware.SHUFFLER_DOOR)
    table.machine.close_door(hardware.SHUFFLER_DOOR)
    table.device.run_until(lambda: True)
    number = enum_number("Fault", "over_temperature")
    assert table.refused("clear_fault", number, role="floor") == "too_hot"
    table.device.run_for(70_000_000)
    table.device.command("clear_fault", number, role="floor")
    assert void_reason("power_cut") not in [values[1] for values in table.named("round_voided")]
