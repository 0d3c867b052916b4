"""Which table comes first, and what the wall calls silent, behind and blind."""

import pytest
from tests.wall.floor_of_tables import FloorOfTables, beat_of, entry, names, need

from sabot_floor.payloads import Alarm, Archived
from sabot_floor.wall.alarm_book import AlarmChanged, AlarmGone, AlarmTaken
from sabot_floor.wall.table_state import TableState
from sabot_floor.wall.wall_model import MOST_TABLES, MOST_WISHES, Hearing, Rank, WallModel

FAULTY = {"serial": "S1", "up": True, "faults": [{"fault": "card_stuck", "place": "exit", "cards": 1}]}


def test_the_table_that_has_waited_longest_for_a_person_is_first() -> None:
    floor = FloorOfTables(*names(5))
    floor.tell("t4", number=2, needs=[need("release", "floor")])
    floor.pass_s(4)
    floor.tell("t2", number=2, called=True)
    floor.pass_s(4)
    floor.tell("t5", number=2, device=FAULTY)
    floor.pass_s(4)
    assert floor.order() == ["t4", "t2", "t5", "t1", "t3"]
    assert [each.rank for each in floor.floor().tables[:4]] == [Rank.WAITS] * 3 + [Rank.FINE]
    floor.tell("t4", number=3)
    assert floor.order() == ["t2", "t5", "t1", "t3", "t4"]


def test_numbers_in_names_are_compared_as_numbers() -> None:
    assert FloorOfTables(*names(12)).order() == [f"t{each}" for each in range(1, 13)]


@pytest.mark.parametrize(
    "told",
    [
        {"needs": [need("bets", "dealer")]},
        {"needs": [need("clear_fault", "dealer", "floor")]},
        {"needs": [need("countersign", "floor")]},
        {"needs": [need("controller")]},
        {"state": "closed", "round": 0, "needs": [need("release", "floor")]},
    ],
)
def test_what_the_dealer_does_and_what_can_wait_calls_nobody(told: dict[str, object]) -> None:
    floor = FloorOfTables("t1")
    floor.tell("t1", number=2, **told)
    floor.pass_s(10)
    assert floor.table("t1").attentions == ()
    assert floor.raised == []


def test_a_kind_of_need_that_this_version_does_not_know_is_shown_as_such() -> None:
    floor = FloorOfTables("t1")
    floor.tell("t1", number=2, needs=[need("polish_lamp", "service")])
    assert [each.words for each in floor.table("t1").attentions] == ["Service: polish lamp"]


def test_a_silent_table_is_told_alone_and_by_the_walls_clock() -> None:
    floor = FloorOfTables(*names(4))
    floor.mute = {"t3"}
    floor.pass_s(9)
    assert floor.table("t3").hearing is Hearing.LIVE
    floor.pass_s(4)
    assert floor.table("t3").hearing is Hearing.SILENT
    assert floor.order()[0] == "t3"
    assert floor.raised == [("t3", "table_silent")]
    assert floor.floor().blind is None
    floor.mute = set()
    floor.pass_s(2)
    assert floor.kinds("t3") == []
    assert floor.ended == [("t3", "table_silent")]


def test_a_table_that_was_closed_when_it_fell_silent_is_off() -> None:
    floor = FloorOfTables(*names(3))
    floor.tell("t2", number=2, state="closed", round=0)
    floor.mute = {"t2"}
    floor.pass_s(60)
    assert (floor.table("t2").hearing, floor.table("t2").rank) == (Hearing.OFF, Rank.CLOSED)
    assert floor.raised == []


def test_more_than_half_of_the_tables_silent_is_one_alarm_and_not_300() -> None:
    floor = FloorOfTables(*names(300))
    floor.mute = set(names(151))
    floor.pass_s(20)
    assert floor.raised == [("floor", "floor_blind")]
    blind = floor.floor().blind
    assert blind is not None
    assert blind.words == "151 of 300 tables are not heard at once"
    assert floor.table("t7").hearing is Hearing.UNKNOWN
    assert floor.table("t200").hearing is Hearing.LIVE
    floor.mute = set()
    floor.pass_s(2)
    assert floor.floor().blind is None
    assert floor.ended == [("floor", "floor_blind")]


def test_half_of_the_tables_silent_are_told_one_by_one() -> None:
    floor = FloorOfTables(*names(4))
    floor.mute = {"t1", "t2"}
    floor.pass_s(20)
    assert floor.floor().blind is None
    assert sorted(floor.raised) == [("t1", "table_silent"), ("t2", "table_silent")]


def test_two_tables_are_too_few_to_call_the_floor_blind() -> None:
    floor = FloorOfTables("t1", "t2")
    floor.mute = {"t1", "t2"}
    floor.pass_s(20)
    assert floor.floor().blind is None


def test_without_a_server_the_floor_is_blind_and_no_table_is_silent() -> None:
    floor = FloorOfTables(*names(20))
    floor.tell("t9", number=2, called=True)
    floor.pass_s(2)
    floor.raised.clear()
    floor.model.disconnected("No server answers", floor.now_s)
    floor.mute = set(names(20))
    floor.pass_s(600)
    told = floor.floor()
    assert told.blind is not None
    assert told.blind.words == "No server answers"
    assert floor.now_s - told.blind.since_s == 600
    assert {each.hearing for each in told.tables} == {Hearing.UNKNOWN}
    assert told.tables[0].name == "t9"  # what was known is still shown
    assert (floor.raised, floor.ended) == ([], [])
    floor.model.connected(floor.now_s)
    floor.pass_s(8)
    assert floor.floor().blind is None
    assert floor.raised == []  # silence counts from the new connection
    floor.mute = {"t4"}
    floor.pass_s(12)
    assert floor.raised == [("t4", "table_silent")]


def test_an_archive_that_falls_silent_is_an_alarm_until_it_is_heard() -> None:
    floor = FloorOfTables(*names(3))
    floor.pass_s(600)
    assert floor.raised == []  # a site without an archive
    floor.model.hear_archive(floor.now_s)
    floor.pass_s(29)
    assert floor.raised == []
    floor.pass_s(3)
    assert floor.raised == [("floor", "archive_silent")]
    since_s = floor.floor().archive_silent_s
    assert since_s is not None
    assert floor.now_s - since_s == 32
    assert [each.kind for each in floor.floor().alarms] == ["archive_silent"]
    floor.model.hear_archive(floor.now_s)
    assert floor.floor().alarms == ()
    floor.pass_s(2)
    assert floor.ended == [("floor", "archive_silent")]


def test_a_wall_that_starts_while_the_archive_is_down_says_so_if_it_ever_reported() -> None:
    floor = FloorOfTables(*names(3))
    floor.model.hear_archived(Archived(table="t1", at_us=1, chains={}))
    floor.pass_s(32)
    assert floor.raised == [("floor", "archive_silent")]
    floor.model.disconnected("No server answers", floor.now_s)
    floor.pass_s(60)
    assert [each.kind for each in floor.floor().alarms] == ["archive_silent"]  # nobody knows whether it ended
    assert floor.ended == []


def test_a_second_reason_of_blindness_does_not_begin_it_anew() -> None:
    model = WallModel(now_s=5.0)
    model.disconnected("refused", 9.0)
    blind = model.judge(20.0).blind
    assert blind is not None
    assert (blind.words, blind.since_s) == ("refused", 5.0)


def test_a_publisher_that_is_behind_says_rows_and_age_and_comes_after_tables_that_wait() -> None:
    floor = FloorOfTables(*names(3))
    floor.tell("t3", number=2, called=True)
    floor.look()
    floor.model.hear_beat(beat_of("t1", rows=500, published=80, waiting_s=31), floor.now_s)
    table = floor.table("t1")
    assert (table.behind.rows, table.behind.age_s) == (420, 31)
    assert [each.words for each in table.attentions] == ["420 rows are not published, the oldest for 31 s"]
    assert (table.hearing, table.rank) == (Hearing.LIVE, Rank.LATER)
    assert floor.order() == ["t3", "t1", "t2"]
    floor.model.hear_beat(beat_of("t1", rows=500, published=480, waiting_s=30), floor.now_s)
    assert floor.table("t1").attentions == ()


def test_a_state_that_heartbeats_announce_and_that_does_not_come_is_behind() -> None:
    floor = FloorOfTables("t1")
    floor.tables = []
    for _ in range(20):
        floor.now_s += 2
        floor.model.hear_beat(beat_of("t1", state=2), floor.now_s)
    assert floor.kinds("t1") == ["publisher_behind"]
    floor.tell("t1", number=2)
    assert floor.kinds("t1") == []


def test_a_publisher_that_was_replaced_is_not_heard() -> None:
    floor = FloorOfTables("t1", "t2", "t3")
    floor.tell("t1", claim=7, number=1)
    floor.tables = ["t2", "t3"]
    for _ in range(10):
        floor.model.hear_beat(beat_of("t1", claim=6), floor.now_s)
        floor.pass_s(2)
    assert floor.kinds("t1") == ["table_silent"]
    floor.tell("t1", claim=6, called=True)
    assert floor.kinds("t1") == ["table_silent"]


def test_a_taken_alarm_comes_after_those_that_nobody_has_taken() -> None:
    floor = FloorOfTables(*names(3))
    floor.tell("t1", number=2, called=True)
    floor.pass_s(4)
    floor.tell("t2", number=2, called=True)
    floor.pass_s(4)
    known = floor.model.alarms.get("t1", "person_needed")
    assert known is not None
    assert floor.write(floor.model.alarms.take("t1", "person_needed", known.revision, "anna", floor.utc_us))
    assert floor.order() == ["t2", "t1", "t3"]
    assert floor.table("t1").rank is Rank.TAKEN
    assert floor.table("t1").attentions[0].taken_by == "anna"
    floor.tell("t1", number=3)
    floor.look()
    assert floor.ended == [("t1", "person_needed")]


def test_of_two_people_exactly_one_has_an_alarm() -> None:
    floor = FloorOfTables("t1")
    floor.tell("t1", number=2, called=True)
    floor.look()
    alarms = floor.model.alarms
    known = alarms.get("t1", "person_needed")
    assert known is not None
    first = alarms.take("t1", "person_needed", known.revision, "anna", floor.utc_us)
    second = alarms.take("t1", "person_needed", known.revision, "ben", floor.utc_us)
    assert floor.write(first)
    assert not floor.write(second)
    with pytest.raises(AlarmTaken, match="anna"):
        alarms.take("t1", "person_needed", known.revision, "ben", floor.utc_us)
    now = alarms.get("t1", "person_needed")
    assert now is not None
    with pytest.raises(AlarmTaken):
        alarms.give_back("t1", "person_needed", now.revision, "ben")
    assert floor.write(alarms.give_back("t1", "person_needed", now.revision, "anna"))
    with pytest.raises(AlarmChanged):
        alarms.take("t1", "person_needed", known.revision, "ben", floor.utc_us)
    with pytest.raises(AlarmGone):
        alarms.take("t1", "machine_stopped", 1, "ben", floor.utc_us)


def test_an_alarm_escalates_until_somebody_takes_it_and_again_if_its_cause_stays() -> None:
    floor = FloorOfTables("t1")
    floor.tell("t1", number=2, called=True)
    floor.look()

    def escalated() -> int:
        return floor.table("t1").attentions[0].escalated

    seen = [escalated()]
    for _ in range(3):
        floor.pass_s(60)
        seen.append(escalated())
    assert seen == [0, 1, 1, 2]
    known = floor.model.alarms.get("t1", "person_needed")
    assert known is not None
    floor.write(floor.model.alarms.take("t1", "person_needed", known.revision, "anna", floor.utc_us))
    assert (escalated(), floor.table("t1").rank) == (0, Rank.TAKEN)
    floor.pass_s(599)
    assert (escalated(), floor.table("t1").rank) == (0, Rank.TAKEN)
    floor.pass_s(1)
    assert (escalated(), floor.table("t1").rank) == (1, Rank.WAITS)


def test_a_wall_that_starts_anew_knows_how_old_an_alarm_is_and_ends_it_when_it_hears_the_table() -> None:
    floor = FloorOfTables("t1")
    floor.tables = []
    told = Alarm(table="t1", kind="person_needed", words="…", by="wall", since_us=floor.utc_us - 200_000_000)
    floor.bucket["t1", "person_needed"] = 1, told
    floor.revision = 1
    floor.model = WallModel(now_s=floor.now_s)
    floor.model.connected(floor.now_s)
    floor.model.hear_alarm(told, 1, floor.now_s, floor.utc_us)
    assert floor.table("t1").attentions[0].escalated == 2
    floor.look()
    assert floor.ended == []  # the table is not heard yet
    floor.tell("t1")
    floor.model.hear_beat(beat_of("t1"), floor.now_s)
    floor.look()
    assert floor.ended == [("t1", "person_needed")]


def test_a_clock_that_runs_ahead_makes_no_negative_age() -> None:
    floor = FloorOfTables("t1")
    told = Alarm(table="t1", kind="row_differs", words="…", by="archive", since_us=floor.utc_us * 2)
    floor.model.hear_alarm(told, 1, floor.now_s, floor.utc_us)
    assert floor.table("t1").since_s == floor.now_s


def test_the_wall_does_not_end_an_alarm_of_the_archive_and_an_old_entry_changes_nothing() -> None:
    floor = FloorOfTables("t1")
    told = Alarm(table="t1", kind="row_differs", words="…", by="archive", since_us=floor.utc_us)
    floor.model.hear_alarm(told, 9, floor.now_s, floor.utc_us)
    floor.pass_s(20)
    assert floor.ended == []
    assert floor.table("t1").rank is Rank.WAITS
    floor.model.hear_alarm(told.model_copy(update={"ended_us": 1}), 8, floor.now_s, floor.utc_us)
    assert floor.kinds("t1") == ["row_differs"]
    floor.model.hear_alarm(told.model_copy(update={"ended_us": 1}), 10, floor.now_s, floor.utc_us)
    assert floor.kinds("t1") == []


def test_a_wish_of_which_nothing_is_heard_is_wished_again_and_not_at_once() -> None:
    floor = FloorOfTables("t1")
    floor.tell("t1", number=2, called=True)
    model = floor.model
    assert len(model.wishes(floor.floor(), floor.now_s, floor.utc_us)) == 1
    assert model.wishes(floor.floor(), floor.now_s + 1, floor.utc_us) == []
    assert len(model.wishes(floor.floor(), floor.now_s + 6, floor.utc_us)) == 1


def test_what_one_look_writes_and_what_tables_can_fill_is_bounded() -> None:
    floor = FloorOfTables(*names(120))
    for each in names(120):
        floor.tell(each, number=2, called=True)
    assert len(floor.model.wishes(floor.floor(), floor.now_s, floor.utc_us)) == MOST_WISHES
    for number in range(MOST_TABLES):
        floor.model.hear_beat(beat_of(f"more{number}"), floor.now_s)
    assert len(floor.floor().tables) == MOST_TABLES
    assert floor.model.refused == 120


def test_a_table_that_tells_only_of_its_machine_is_judged_by_it() -> None:
    whole = entry("t1", device=FAULTY, level="machine")
    kept = ("v", "table", "pit", "level", "claim", "run", "number", "at_s", "device")
    state = TableState.model_validate({name: whole[name] for name in kept}, strict=False)
    floor = FloorOfTables("t2")
    floor.tables.append("t1")
    floor.model.hear_state(state, floor.now_s)
    floor.pass_s(2)
    assert [each.words for each in floor.table("t1").attentions] == ["a card is stuck (exit)"]
    floor.mute = {"t1"}
    floor.pass_s(20)
    assert floor.table("t1").hearing is Hearing.SILENT  # it is never known to be closed


def test_what_was_known_of_a_table_stays_while_the_floor_is_blind() -> None:
    floor = FloorOfTables(*names(4))
    floor.mute = {"t3"}
    floor.pass_s(20)
    floor.model.disconnected("No server answers", floor.now_s)
    floor.now_s += 100
    assert floor.kinds("t3") == ["table_silent"]
    assert floor.order()[0] == "t3"


def test_a_clock_that_is_set_changes_no_age() -> None:
    floor = FloorOfTables("t1")
    floor.tell("t1", number=2, called=True)
    floor.look()
    floor.pass_s(70)
    known = floor.model.alarms.get("t1", "person_needed")
    assert known is not None
    hour_back_us = floor.utc_us - 3_600_000_000
    taken = floor.model.alarms.take("t1", "person_needed", known.revision, "anna", hour_back_us)
    floor.model.hear_alarm(taken.alarm, known.revision + 1, floor.now_s, hour_back_us)
    given = floor.model.alarms.give_back("t1", "person_needed", known.revision + 1, "anna")
    floor.model.hear_alarm(given.alarm, known.revision + 2, floor.now_s, hour_back_us)
    assert floor.table("t1").since_s == known.since_s
    assert floor.table("t1").attentions[0].escalated == 1


def test_causes_that_come_together_stay_in_the_order_of_the_tables() -> None:
    """The entries' UTC differs by a little from the monotonic clock: that must not change the order."""
    floor = FloorOfTables(*names(3))
    for each in ("t2", "t3"):
        floor.tell(each, number=2, called=True)
    for wish in floor.model.wishes(floor.floor(), floor.now_s, floor.utc_us):
        late_us = 400 if wish.alarm.table == "t3" else 0
        floor.revision += 1
        floor.model.hear_alarm(wish.alarm, floor.revision, floor.now_s, floor.utc_us + late_us)
    assert floor.order() == ["t2", "t3", "t1"]
