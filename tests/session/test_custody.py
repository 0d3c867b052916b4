"""Custody: which packs are where, which hours end, and what nobody has decided or countersigned."""

from typing import Any

import pytest
from tests.session.scripted_rounds import ANA, FLO, MACHINE, PROGRAM, scripted_rounds

from sabot_session.custody import Where, custody_of, hours_warning, may_open_round
from sabot_session.record import SqliteRecord
from sabot_session.row_data import Destination
from sabot_session.rows import Row, SavedSession

COUNTED = {"cards": 52, "expected": 52}
RECEIVED = {"back": "red", "cards": 52, "bag": "B-1001", "brought_by": "card room"}


def _rows(*kinds: tuple[str, Any, dict[str, Any]]) -> list[Row]:
    return [Row(kind, 100 + at, actor, data) for at, (kind, actor, data) in enumerate(kinds)]


def _custody(path: Any, rows: list[Row]) -> Any:
    with SqliteRecord(path) as record:
        record.commit(rows, SavedSession("{}", 0))
        return custody_of(record.all_rows())


def test_a_pack_from_its_bag_to_its_destination(path: Any) -> None:
    steps: list[tuple[str, Any, dict[str, Any], Where]] = [
        ("receive_pack", FLO, {"pack_id": 1, **RECEIVED}, Where.TABLE),
        ("inspect", ANA, {"pack_id": 1}, Where.TABLE),
        ("verify", FLO, {"pack_id": 1}, Where.TABLE),
        ("start_shuffle", MACHINE, {"pack_id": 1, "by": "machine"}, Where.SHUFFLER),
        ("finish_shuffle", MACHINE, {"pack_id": 1, "by": "machine", **COUNTED}, Where.SHUFFLER),
        ("load", MACHINE, {"pack_id": 1}, Where.SHOE),
        ("discard", ANA, {"pack_id": 1}, Where.RACK),
        ("start_shuffle", ANA, {"pack_id": 1, "by": "hand"}, Where.TABLE),
        ("count_pack", ANA, {"pack_id": 1, "by": "dealer", "cards": 51, "expected": 52}, Where.TABLE),
        (
            "remove", FLO,
            {"pack_id": 1, "reason": "wrong_count", "destination": "held_for_surveillance", "bag": "S-7"},
            Where.GONE,
        ),
    ]  # fmt: skip
    with SqliteRecord(path) as record:
        for at, (kind, actor, data, where) in enumerate(steps):
            record.commit([Row(kind, 100 + at, actor, data)], SavedSession("{}", 0))
            found = custody_of(record.all_rows()).packs[1]
            assert found.where is where, kind
            assert found.counted == {4: 52, 5: 52, 6: 52, 8: 51, 9: 51}.get(at), kind
    assert (found.bag, found.received_s, found.received_by, found.brought_by) == (
        "B-1001",
        100,
        "flo",
        "card room",
    )
    assert (found.verified_by, found.retired_by, found.retired_s, found.reason) == (
        "flo",
        "flo",
        109,
        "wrong_count",
    )
    assert (found.destination, found.left_in_bag) == (Destination.HELD_FOR_SURVEILLANCE, "S-7")


def test_packs_at_the_table_are_listed_without_those_that_left(path: Any) -> None:
    found = _custody(
        path,
        _rows(
            ("receive_pack", FLO, {"pack_id": 2, **RECEIVED}),
            ("receive_pack", FLO, {"pack_id": 1, **RECEIVED}),
            ("receive_pack", FLO, {"pack_id": 3, **RECEIVED}),
            ("remove", FLO, {"pack_id": 1, "reason": "hours", "destination": "cancelled"}),
            ("hours_warned", PROGRAM, {"pack_id": 3, "minutes": 30, "until_s": 9}),
        ),
    )
    assert [(each.pack_id, each.warned) for each in found.here()] == [(2, None), (3, 30)]


def test_what_is_open_at_closing_and_what_each_machine_has_to_answer_for(path: Any) -> None:
    rows = scripted_rounds()
    found = _custody(path, rows)
    kinds = [rows[number - 1].kind for number in found.to_countersign]
    assert kinds == ["void"]  # round 3; the floor countersigned that of round 4
    assert (found.holds, found.disputes) == ({}, {})
    trouble = found.machines["SABOT001"]
    assert (trouble.holds, trouble.disputes, trouble.undecided, trouble.machine_wrong) == (1, 1, 0, 1)
    assert found.at_closing().to_json() == {
        "countersignatures": found.to_countersign, "disputes": [], "holds": [],
    }  # fmt: skip


def test_open_holds_and_disputes_are_listed(path: Any) -> None:
    rows = [
        each for each in scripted_rounds() if each.kind not in ("release", "decide_dispute", "countersign")
    ]
    found = _custody(path, rows)
    closing = found.at_closing()
    assert [rows[number - 1].kind for number in closing.holds + closing.disputes] == ["hold", "open_dispute"]
    assert list(found.holds.values()) == [5]
    assert len(closing.countersignatures) == 2
    assert found.machines["SABOT001"].undecided == 1


def test_a_cleared_fault_that_waits_for_the_floor(path: Any) -> None:
    fault = {"serial": "SABOT001", "half": "shoe", "fault": "jam", "countersign": True}
    rows = _rows(("fault_cleared", ANA, fault), ("countersign", FLO, {"row": 1}))
    assert _custody(path, rows[:1]).to_countersign == [1]
    assert _custody(path.with_name("b.db"), rows).to_countersign == []


@pytest.mark.parametrize(
    ("left_s", "warned", "due"),
    [
        (None, None, None), (1801, None, None), (1800, None, 30), (1500, 30, None), (601, 30, None),
        (600, 30, 10), (599, 10, None), (300, None, 10), (-5, 30, 10), (-5, 10, None), (1800, 10, None),
    ],
)  # fmt: skip
@pytest.mark.rule("MD3 3.C")
def test_hours_warn_once_at_thirty_and_once_at_ten_minutes(
    left_s: int | None, warned: int | None, due: int | None
) -> None:
    assert hours_warning(left_s, warned) == due


@pytest.mark.rule("MD3 3.C")
def test_no_round_begins_with_a_pack_whose_hours_are_over() -> None:
    assert may_open_round(None)
    assert may_open_round(1)
    assert not may_open_round(0)
