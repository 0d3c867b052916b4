"""Every fault at every phase: what the machine did is named, nothing was claimed that was not so.

One row, one test; ``docs/faults.csv`` has them all, and each row finds itself there as it came out now.
"""

from functools import cache
from pathlib import Path

import pytest
from tests.machine.fault_cycle import FIRST, LAST, MIDDLE, PHASES, RECOVERY, SHUFFLE, STUB, Row
from tests.machine.fault_page import BETWEEN, CLASSES, GROUPS, OTHER_STEPS, TOGETHER, group_of, render
from tests.machine.fault_played import (
    FOUND,
    LATER,
    MENDED,
    NEVER,
    NEVER_WHY,
    NEVER_WHY_IN,
    NO_SIGN,
    SHOE_PLACES,
    SHUFFLER_PLACES,
    TOLERATED,
    TOLERATED_WHY,
    WAITS,
    Outcome,
    Played,
)
from tests.machine.fault_rows import NAMES, OF_THE_SHOE, OF_THE_SHUFFLER, pair_rows, rows, single_rows
from tests.machine.fault_table import PAGE, ROWS, read, write

from sabot_firmware.height_model import HeightModel
from sabot_firmware.shoe import Shoe
from sabot_protocol.codec import enum_number
from sabot_simulators.mechanism.faults import KINDS

pytestmark = pytest.mark.slow

A_WINDOW_MS = 1000  # what moves is found out within the windows of its motion, retries included
SILENT_TOO = {  # what shows nothing in a recovery only
    "bent_card@tray",  # bent by less than the height tells
    "cover_card@tray",  # people take it out of the tray with the other cards, and see it
}
STALE = "docs/faults.csv is stale: run python -m tests.machine.fault_table"


def of(group: str) -> list[Row]:
    return [row for row in single_rows() if group_of(row.name) == group]


@cache
def table() -> dict[Row, Outcome]:
    return read()


def prove(row: Row) -> Played:
    """Play a row, and hold it to what holds for every row."""
    played = Played(row)
    outcome = played.outcome()
    assert outcome.did in CLASSES
    assert outcome.defects == ""
    assert table().get(row) == outcome, STALE
    return played


@pytest.mark.rule("MD3 13.D")
@pytest.mark.sweep(every=40)
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
@pytest.mark.sweep(every=40)
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
@pytest.mark.sweep(every=40)
@pytest.mark.parametrize("row", of("Sensors and switches"), ids=str)
def test_sensors_and_switches(row: Row) -> None:
    prove(row)


@pytest.mark.rule("MD3 13.D")
@pytest.mark.sweep(every=40)
@pytest.mark.parametrize("row", of("Movers"), ids=str)
def test_movers(row: Row) -> None:
    prove(row)


@pytest.mark.rule("MD3 13.D")
@pytest.mark.sweep(every=40)
@pytest.mark.parametrize("row", of("People"), ids=str)
def test_people(row: Row) -> None:
    prove(row)


@pytest.mark.sweep(every=40)
@pytest.mark.parametrize("row", of("The board"), ids=str)
def test_the_board(row: Row) -> None:
    prove(row)


@pytest.mark.rule("MD3 10.C")
@pytest.mark.sweep(every=40)
@pytest.mark.parametrize("row", of(TOGETHER), ids=str)
def test_faults_together(row: Row) -> None:
    played = prove(row)
    if played.happened and "door_opened@shuffler" in row.faults:  # an open door excuses nothing
        assert played.outcome().did == FOUND
        assert played.wrong_ever == []


@pytest.mark.sweep(every=40)
@pytest.mark.parametrize("row", pair_rows(), ids=str)
def test_pairs_of_faults(row: Row) -> None:
    prove(row)


def test_the_file_has_every_row_and_the_page_is_made_of_it() -> None:
    assert list(table()) == rows()
    assert PAGE.read_text(encoding="utf-8") == render(table()), STALE


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    write(table(), tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_bytes() == ROWS.read_bytes()


def test_no_row_is_silent() -> None:
    """Each row has a class, and a report or a reason; each second fault shows, or its kind is silent."""
    silent = {row.name for row, outcome in table().items() if outcome.did not in (FOUND, LATER, WAITS, NEVER)}
    for row, outcome in table().items():
        assert outcome.defects == "", row
        assert outcome.did in CLASSES, row
        if outcome.did in (FOUND, LATER):
            assert outcome.said, row
            assert outcome.after_ms is not None, row
        elif outcome.did in (TOLERATED, NEVER):
            assert outcome.why, row
        if outcome.then_did == NO_SIGN:
            assert row.then in silent | SILENT_TOO, row


def test_a_pair_shows_nothing_only_where_each_of_the_two_alone_shows_nothing() -> None:
    quiet = (MENDED, TOLERATED)
    for row, outcome in table().items():
        if row.then and row.then_phase != RECOVERY and outcome.did in quiet:
            for alone in (
                Row(row.faults, row.phase, row.card),
                Row((row.then,), row.then_phase, row.then_card),
            ):
                assert table()[alone].did in (*quiet, NEVER), row


def test_the_rows_meet_every_card_of_every_phase_and_every_pair_of_halves() -> None:
    single, pairs = single_rows(), pair_rows()
    assert {row.phase for row in single} == set(PHASES)
    for phase in (SHUFFLE, STUB):
        for card in (FIRST, MIDDLE, LAST):
            happened = [row for row in single if (row.phase, row.card) == (phase, card)]
            assert any(table()[row].did in (FOUND, LATER) for row in happened)
    assert {row.faults[0] for row in pairs} | {row.then for row in pairs} >= set(NAMES)
    both = [row for row in pairs if row.then_phase != RECOVERY]
    assert all(row.faults[0].partition("@")[2] in OF_THE_SHUFFLER for row in both)
    assert all(row.then.partition("@")[2] in OF_THE_SHOE for row in both)
    assert {row.then for row in pairs if row.then_phase == RECOVERY} == set(NAMES)


def test_every_kind_has_its_group_and_every_reason_is_used() -> None:
    grouped = [kind for kinds in GROUPS.values() for kind in kinds]
    assert sorted(grouped) == sorted(KINDS)
    did = {(row.name, outcome.did) for row, outcome in table().items() if not row.then}
    assert {name for name, each in did if each == NEVER} == {*NEVER_WHY, *(name for name, _ in NEVER_WHY_IN)}
    assert {name for name, each in did if each == TOLERATED} == set(TOLERATED_WHY)
    assert {name for _, _, names in BETWEEN.values() for name in names} <= set(NAMES)


def test_every_report_has_its_steps_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for outcome in table().values():
        for says in filter(None, outcome.said.split("; ")):
            cause = says.partition(",")[0].partition(": ")[2]
            if not says.startswith("retried") and " refused" not in says:
                assert f"`{cause}` at " in page or says.partition(",")[0] in OTHER_STEPS, says


# -- planted defects: what the table must find ------------------------------------------------------


def found_out(row: Row) -> bool:
    """Whether a row is no longer as the file has it."""
    outcome = Played(row).outcome()
    return outcome.defects != "" or outcome.did not in CLASSES


def test_a_machine_that_does_not_look_at_the_height_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HeightModel, "grows", lambda stack, height_um: True)
    monkeypatch.setattr(HeightModel, "fits", lambda stack, below, height_um: True)
    assert found_out(Row(("aligned_double@tray",), SHUFFLE, MIDDLE))


def test_a_shoe_that_forgets_that_a_card_did_not_come_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the last card of the stub shows it: at the first and at a middle one the roller finds the jam."""
    monkeypatch.setattr(Shoe, "block", lambda shoe, missing, deck: None)
    assert not found_out(Row(("stuck@deal",), STUB, FIRST))
    assert not found_out(Row(("stuck@deal",), STUB, MIDDLE))
    assert found_out(Row(("stuck@deal",), STUB, LAST))
