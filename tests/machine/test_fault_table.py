"""Every fault in every phase: what the machine did is named, nothing was claimed that was not so.

One row, one test; ``docs/faults.md`` shows them all, and each row finds itself there as it came out now.
"""

from functools import cache

import pytest
from tests.machine import fault_table
from tests.machine.fault_cycle import MIDDLE_CARD, Row
from tests.machine.fault_table import (
    CLASSES,
    FOUND,
    GROUPS,
    LATER,
    MENDED,
    NEVER,
    OF_THE_SHUFFLER,
    PAGE,
    SHOE_PLACES,
    SHUFFLER_PLACES,
    TOGETHER,
    TOLERATED,
    WAITS,
    Outcome,
    Played,
    group_of,
    read,
    render,
    rows,
)

from sabot_firmware import hardware
from sabot_firmware.stack import Stack
from sabot_protocol.codec import enum_number
from sabot_simulators.mechanism.faults import KINDS
from sabot_simulators.oracle import UNSEEN

pytestmark = pytest.mark.slow

A_WINDOW_MS = 1000  # what moves is found out within the windows of its motion, retries included


def of(group: str) -> list[Row]:
    return [row for row in rows() if group_of(row.name) == group]


@cache
def page() -> dict[Row, Outcome]:
    return read(PAGE.read_text(encoding="utf-8"))


def prove(row: Row) -> Played:
    """Play a row, and hold it to what holds for every row."""
    played = Played(row)
    outcome = played.outcome()
    assert outcome.did in CLASSES
    if played.happened:
        nothing_is_claimed_that_is_not_so(played, outcome)
        no_half_does_what_it_must_not(played)
        the_table_comes_back(played)
    assert page().get(row) == outcome, "the page is stale: run python -m tests.machine.fault_table"
    return played


def nothing_is_claimed_that_is_not_so(played: Played, outcome: Outcome) -> None:
    assert [wrong for wrong in played.wrong_ever if wrong.unseen is None] == []
    unseen = played.unseen()
    assert set(unseen) <= set(UNSEEN)
    for each in played.scene.rounds:
        if each.ended == "correct" and not unseen:
            assert each.counts_right()
            assert each.from_the_top()
            assert each.composed_of(played.scene.originals)
    if outcome.did in (FOUND, LATER):
        assert outcome.said
        assert outcome.after_ms is not None
    elif outcome.did in (MENDED, TOLERATED):
        assert bool(outcome.why) == (outcome.did == TOLERATED)
        assert {each.ended for each in played.rounds_after()} <= {"correct"}
    elif outcome.did == WAITS:
        assert outcome.round in ("correct", "void: floor_order")
    else:
        assert outcome.did in unseen


def no_half_does_what_it_must_not(played: Played) -> None:
    """The shuffler half never touches the round; the shoe half never tries twice, and voids it."""
    kind, _, place = played.row.faults[0].partition("@")
    if (place in OF_THE_SHUFFLER and kind != "bent_card") or kind == "over_temperature":
        assert [each.ended for each in played.scene.rounds if each.ended.startswith("void")] == []
    assert {sign.place for sign in played.retried} <= set(SHUFFLER_PLACES)
    assert hardware.BACK not in played.deal_orders
    assert played.deal_orders.count(hardware.FORWARD) <= played.scene.motions
    for sign in played.signs:
        in_play = played.in_play_at(sign.at_us) if sign.place in SHOE_PLACES else None
        assert in_play is None or in_play.ended.startswith("void")


def the_table_comes_back(played: Played) -> None:
    assert played.back
    assert played.kept_whole
    assert played.lost == 0


@pytest.mark.rule("MD3 13.D")
@pytest.mark.sweep(every=8)
@pytest.mark.parametrize("row", of("Cards on their way"), ids=str)
def test_cards_on_their_way(row: Row) -> None:
    outcome = prove(row).outcome()
    if outcome.did == FOUND and outcome.said.partition(":")[0] in SHUFFLER_PLACES + SHOE_PLACES:
        assert outcome.after_ms is not None
        assert outcome.after_ms <= A_WINDOW_MS
    if row.faults[0].endswith(("@shoe", "@deal", "@exit")) and outcome.did != NEVER:
        assert outcome.round in ("void: shoe_failed", "void: wrong_number")


@pytest.mark.rule("MD3 5.B")
@pytest.mark.rule("MD3 10.C")
@pytest.mark.rule("MD3 13.A")
@pytest.mark.rule("MD3 13.C")
@pytest.mark.sweep(every=8)
@pytest.mark.parametrize("row", of("Cards as they are"), ids=str)
def test_cards_as_they_are(row: Row) -> None:
    played = prove(row)
    if not played.happened:
        return
    kind, _, place = row.name.partition("@")
    outcome = played.outcome()
    reports = played.scene.device.reports
    if any(sign.says.endswith("count_wrong") for sign in played.signs):  # after the shuffle it says so
        counted = [values for name, values in reports if name == "deck_counted" and values[2] != 52]
        removed = [values for name, values in reports if name == "deck_removed"]
        assert counted
        assert (counted[0][0], enum_number("RemoveReason", "wrong_count")) in removed
    if place != "tray":
        if kind == "face_up_card":
            assert outcome.round == "void: face_up_card"
        elif kind in ("missing_card", "extra_card"):
            assert outcome.round == "void: wrong_number"
            verdict = enum_number("Verdict", "card_missing" if kind == "missing_card" else "card_extra")
            assert verdict in [values[1] for name, values in reports if name == "round_ended"]
        elif kind == "other_deck_card":
            assert outcome.round == "void: shoe_failed"
            assert outcome.said == "exit: wrong_deck"


@pytest.mark.rule("MD3 13.D")
@pytest.mark.sweep(every=8)
@pytest.mark.parametrize("row", of("Sensors and switches"), ids=str)
def test_sensors_and_switches(row: Row) -> None:
    prove(row)


@pytest.mark.rule("MD3 13.D")
@pytest.mark.sweep(every=8)
@pytest.mark.parametrize("row", of("Movers"), ids=str)
def test_movers(row: Row) -> None:
    prove(row)


@pytest.mark.rule("MD3 13.D")
@pytest.mark.sweep(every=8)
@pytest.mark.parametrize("row", of("People"), ids=str)
def test_people(row: Row) -> None:
    prove(row)


@pytest.mark.sweep(every=8)
@pytest.mark.parametrize("row", of("The board"), ids=str)
def test_the_board(row: Row) -> None:
    prove(row)


@pytest.mark.rule("MD3 10.C")
@pytest.mark.sweep(every=8)
@pytest.mark.parametrize("row", of(TOGETHER), ids=str)
def test_faults_together(row: Row) -> None:
    played = prove(row)
    if played.happened and "door_opened@shuffler" in row.faults:  # an open door excuses nothing
        assert played.outcome().did == FOUND
        assert played.wrong_ever == []


def test_the_page_is_the_table() -> None:
    assert set(page()) == set(rows())
    assert PAGE.read_text(encoding="utf-8") == render(page()), "run python -m tests.machine.fault_table"


def test_every_kind_has_its_group_and_every_reason_is_used() -> None:
    grouped = [kind for kinds in GROUPS.values() for kind in kinds]
    assert sorted(grouped) == sorted(KINDS)
    did = {(row.name, outcome.did) for row, outcome in page().items()}
    assert {name for name, each in did if each == NEVER} == set(fault_table.NEVER_WHY)
    assert {name for name, each in did if each == TOLERATED} == set(fault_table.TOLERATED_WHY)


def test_a_machine_that_does_not_look_at_the_height_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stack, "grows", lambda stack, height_um: True)
    monkeypatch.setattr(Stack, "fits", lambda stack, below, height_um: True)
    played = Played(Row(("aligned_double@tray",), MIDDLE_CARD))
    assert played.outcome().did not in CLASSES
    with pytest.raises(AssertionError):
        prove(played.row)
