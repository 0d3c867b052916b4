"""A device's answers as typed values: names of cards, states, sensors and wear; rows of its log."""

import struct
from random import Random

import pytest

from sabot_driver import connect
from sabot_driver.device_log import DamagedRow, DroppedRows, LogRow, parse_log_row, read_log
from sabot_driver.device_values import (
    card_name,
    card_names,
    face_number,
    meaning_of,
    parse_roller_times,
    parse_sensors,
    parse_status,
    parse_wear,
)
from sabot_firmware.event_log import gap_row
from sabot_protocol.host.messages import (
    ClockQuality,
    DeckCounted,
    Fault,
    Locate,
    LogIs,
    RollerTimes,
    Sensor,
    SensorsAre,
    ShoeState,
    ShufflerState,
    StatusReport,
    WearIs,
)
from sabot_protocol.schema import WEAR
from sabot_simulators.mechanism.physical_cards import new_deck


def test_cards_have_the_names_that_are_printed_on_them() -> None:
    deck = new_deck(1, Random(1))
    assert [card_name(card.number) for card in deck] == [card.name for card in deck]
    assert [face_number(card.name) for card in deck] == [card.number for card in deck]
    assert len(set(card_names(range(52)))) == 52
    assert card_names([0, 255, 52]) == ["AS", None, None]


@pytest.mark.parametrize("name", ["", "K", "1S", "KX", "10S", "ks"])
def test_what_is_no_card_has_no_number(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a card"):
        face_number(name)


def test_a_status_has_typed_states() -> None:
    now = parse_status(StatusReport(61, 1_800_000_000, 1, 4, 6, 3, 0x0005, 17, 2))
    assert (now.shuffler, now.shoe, now.fault) == (
        ShufflerState.STORED,
        ShoeState.STACK_WAITING,
        Fault.CARD_STUCK,
    )
    assert (now.round_id, now.stack, now.round_open, now.owned) == (17, 2, True, True)
    assert now.clock is ClockQuality.SET
    assert now.at is not None
    assert now.at.timestamp() == 1_800_000_000


def test_a_status_of_a_newer_device_keeps_its_numbers() -> None:
    now = parse_status(StatusReport(1, 0, 9, 99, 98, 97, 0, 0, 3))
    assert (now.shuffler, now.shoe, now.fault, now.clock) == (99, 98, 97, 9)
    assert (now.at, now.round_id, now.stack, now.round_open, now.owned) == (None, None, None, False, False)
    assert meaning_of(now.shuffler) == "99"


def test_sensors_have_names_and_a_level_at_rest() -> None:
    rest = [Sensor.ELEVATOR, Sensor.ELEVATOR_HOME, Sensor.PUSHER_HOME, Sensor.SHUFFLER_DOOR, Sensor.SHOE_DOOR]
    read = parse_sensors(SensorsAre(sum(1 << each for each in rest), 600, (1, 2, -3)), ShufflerState.IDLE)
    assert all(each.is_at_rest for each in read.sensors)
    assert [each.sensor for each in read.sensors if each.level] == rest
    assert (read.height_um, read.rollers_um) == (600, (1, 2, -3))
    assert read[Sensor.SHOE_DOOR].name == "shoe_door"
    assert read[Sensor.SHOE_DOOR].meaning == "the shoe's door is closed"
    opened = parse_sensors(SensorsAre(1 << Sensor.EXIT, 0, (0, 0, 0)), ShufflerState.IDLE)
    assert [each.sensor for each in opened.sensors if not each.is_at_rest] == sorted([*rest, Sensor.EXIT])


@pytest.mark.parametrize("state", [ShufflerState.FEEDING, ShufflerState.HOLDING, ShufflerState.STORING])
def test_what_the_device_hides_is_no_level(state: ShufflerState) -> None:
    read = parse_sensors(SensorsAre(0, 0, (0, 0, 77)), state)
    assert read[Sensor.GRIPPER].level is None
    assert not read[Sensor.GRIPPER].is_at_rest
    assert read[Sensor.SHOE_DOOR].level is False
    assert (read.height_um, read.rollers_um) == (None, (None, None, 77))


def test_wear_has_names_units_and_limits() -> None:
    read = {each.name: each for each in parse_wear(WearIs(tuple(range(len(WEAR)))))}
    assert [each.value for each in read.values()] == list(range(len(WEAR)))
    assert list(read) == list(WEAR)
    assert (read["jams_exit"].unit, read["feed_ms"].unit, read["deal_permille"].unit) == (
        "",
        "ms",
        "permille",
    )
    assert read["jams_exit"].meaning == "faults at the exit"
    assert read["jams_exit"].limit is None


@pytest.mark.parametrize(
    ("value", "drift", "within"),
    [(0, None, True), (949, -51, False), (950, -50, True), (1050, 50, True), (1051, 51, False)],
)
def test_drift_beyond_the_rollers_tolerance_is_outside_its_limit(
    value: int, drift: int | None, within: bool
) -> None:
    values = [0] * len(WEAR)
    values[WEAR.index("feed_permille")] = value
    read = next(each for each in parse_wear(WearIs(tuple(values))) if each.name == "feed_permille")
    assert (read.drift_permille, read.within_limit) == (drift, within)


def test_a_counter_that_a_newer_device_adds_is_not_lost() -> None:
    assert parse_wear(WearIs((*[0] * len(WEAR), 7)))[-1].value == 7


def test_roller_times_are_mean_and_deviation() -> None:
    feed, insert, deal = parse_roller_times(
        RollerTimes(1, (4, 1, 0), (2000, 1100, 0), (1_000_400, 1_210_000, 0))
    )
    assert (feed.roller, feed.cards, feed.mean_ms, feed.deviation_ms) == ("feed", 4, 50.0, 1.0)
    assert (insert.mean_ms, insert.deviation_ms) == (110.0, None)
    assert (deal.cards, deal.mean_ms, deal.deviation_ms) == (0, None, None)


def row_of(message: int, quality: int, body: bytes) -> bytes:
    return struct.pack("<BBIIIH", message, quality, 7, 1234, 1_800_000_000, 250) + body


def test_a_row_of_the_log_is_an_event() -> None:
    counted = DeckCounted(1, 2, 51, 52)
    row = parse_log_row(LogIs(9, 9, row_of(DeckCounted.ID, 1, counted.pack())))
    assert isinstance(row, LogRow)
    assert (row.n, row.name, row.message, row.boot_id, row.ticks_ms) == (9, "deck_counted", counted, 7, 1234)
    assert row.at is not None
    assert row.at.timestamp() == 1_800_000_000.25
    unset = parse_log_row(LogIs(9, 9, row_of(DeckCounted.ID, 0, counted.pack())))
    assert isinstance(unset, LogRow)
    assert (unset.at, unset.quality) == (None, ClockQuality.UNKNOWN)


def test_rows_that_are_no_event_say_so() -> None:
    assert parse_log_row(LogIs(3, 9, gap_row(12))) == DroppedRows(3, 12)
    assert parse_log_row(LogIs(4, 9, b"\x80")) == DamagedRow(4, b"\x80")
    newer = parse_log_row(LogIs(5, 9, row_of(0xBF, 1, b"??")))
    assert isinstance(newer, LogRow)
    assert (newer.message, newer.name) == (None, "event_0xbf")
    short = parse_log_row(LogIs(6, 9, row_of(DeckCounted.ID, 1, b"\x01")))
    assert isinstance(short, LogRow)
    assert (short.message, short.name) == (None, "deck_counted")


def test_the_log_of_a_device_is_read_row_by_row() -> None:
    with connect("sim://?seed=1") as shoe:
        shoe.ask(Locate(1))
        rows = list(read_log(shoe))
        rest = list(read_log(shoe, from_n=3))
    assert [row.n for row in rows] == list(range(1, len(rows) + 1))
    assert rows[0].name == "booted"
    assert rest[0] == rows[2]
