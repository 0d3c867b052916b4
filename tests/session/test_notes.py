"""Notes of the floor: taken where the rule text allows it, shown as written, read by a person, on record."""

from pathlib import Path

import pytest
from tests.session.acted_table import NOW_S, ActedTable

from sabot_session.note_acts import ReadNote
from sabot_session.notes import (
    LONGEST_SENDER,
    LONGEST_TEXT,
    MOST_KNOWN,
    MOST_WAITING,
    Note,
    NotesFull,
    NotesNotAllowed,
    NoteUnfit,
)
from sabot_session.outcomes import ActRefused, NotYours
from sabot_session.record import SqliteRecord

NO_NOTES = 'name = "pit-2"\n[floor]\nnotes = false\n'


def note(number: int = 1, text: str = "Break at six", sender: str = "anna") -> Note:
    return Note(f"{number:016x}", sender, text, NOW_S - 5)


def received(table: ActedTable, *notes: Note) -> None:
    for each in notes:
        assert table.session.receive_note(each, table.now_s)


def test_a_note_is_shown_until_a_person_has_read_it() -> None:
    table = ActedTable()
    table.ready()
    received(table, note(1), note(2, "Call pit 3"))
    told = {"sender": "anna", "sent_s": NOW_S - 5, "at_s": NOW_S}
    shown = table.session.snapshot()["notes"]
    assert shown == [
        {"note_id": f"{1:016x}", "text": "Break at six", **told},
        {"note_id": f"{2:016x}", "text": "Call pit 3", **told},
    ]
    assert "read_note" in [each["act"] for each in table.session.snapshot()["offers"]]
    table.give(ReadNote(f"{1:016x}"), "ben")
    assert [each["text"] for each in table.session.snapshot()["notes"]] == ["Call pit 3"]
    rows = list(table.record.rows_of_kind("note_received", "note_read"))
    assert [(each.row.kind, each.row.actor.person) for each in rows] == [
        ("note_received", ""),
        ("note_received", ""),
        ("note_read", "ben"),
    ]
    assert rows[0].row.data == {
        "note_id": f"{1:016x}", "sender": "anna", "text": "Break at six", "sent_s": NOW_S - 5,
    }  # fmt: skip
    assert rows[2].row.data == {"note_id": f"{1:016x}", "sender": "anna"}
    table.give(ReadNote(f"{2:016x}"), "anna")  # the floor may say so too
    assert "read_note" not in [each["act"] for each in table.session.snapshot()["offers"]]


def test_only_dealer_or_floor_read_and_each_note_once() -> None:
    table = ActedTable()
    table.ready()
    received(table, note())
    with pytest.raises(NotYours):
        table.give(ReadNote(f"{1:016x}"), "sven")
    with pytest.raises(ActRefused, match="no such note waits"):
        table.give(ReadNote("0" * 16), "ben")
    table.give(ReadNote(f"{1:016x}"), "ben")
    with pytest.raises(ActRefused, match="no such note waits"):
        table.give(ReadNote(f"{1:016x}"), "ben")
    assert len(list(table.record.rows_of_kind("note_read"))) == 1


@pytest.mark.parametrize(
    ("rules", "policy"), [("wa-three-card-baccarat", ""), ("md-three-card-baccarat", NO_NOTES)]
)
def test_nothing_comes_in_where_rule_text_or_house_do_not_allow_it(rules: str, policy: str) -> None:
    table = ActedTable(rules, policy)
    table.machine.link()
    before = table.session.cursor
    with pytest.raises(NotesNotAllowed):
        table.session.receive_note(note(), NOW_S)
    assert (table.session.cursor, table.session.snapshot()["notes"]) == (before, [])


def test_the_newest_note_is_refused_while_too_many_wait() -> None:
    table = ActedTable()
    table.machine.link()
    received(table, *(note(each) for each in range(MOST_WAITING)))
    before = table.session.cursor
    with pytest.raises(NotesFull, match=f"{MOST_WAITING} notes wait"):
        table.session.receive_note(note(99), NOW_S)
    assert table.session.cursor == before
    table.give(ReadNote(f"{0:016x}"), "anna")
    received(table, note(99))


def test_a_note_that_is_sent_again_is_taken_once_also_after_it_was_read() -> None:
    table = ActedTable()
    table.machine.link()
    received(table, note())
    assert not table.session.receive_note(note(), NOW_S)
    table.give(ReadNote(f"{1:016x}"), "anna")
    assert not table.session.receive_note(note(), NOW_S)
    assert table.session.snapshot()["notes"] == []
    for each in range(2, MOST_KNOWN + 10):
        received(table, note(each))
        table.give(ReadNote(f"{each:016x}"), "anna")
    assert len(table.session.state.known_notes) == MOST_KNOWN


@pytest.mark.parametrize(
    "unfit",
    [
        note(text=""),
        note(text="   "),
        note(text="x" * (LONGEST_TEXT + 1)),
        note(text="two\nlines"),
        note(text="\x1b[2Jgone"),
        note(text="turned \u202e round"),
        note(sender=""),
        note(sender="x" * (LONGEST_SENDER + 1)),
        note(sender="an\rna"),
        Note("short", "anna", "text", NOW_S),
        Note("G" * 16, "anna", "text", NOW_S),
    ],
)
def test_what_is_no_plain_line_is_refused(unfit: Note) -> None:
    table = ActedTable()
    table.machine.link()
    before = table.session.cursor
    with pytest.raises(NoteUnfit):
        table.session.receive_note(unfit, NOW_S)
    assert table.session.cursor == before


def test_the_longest_note_and_other_alphabets_are_taken() -> None:
    table = ActedTable()
    table.machine.link()
    received(table, note(1, "x" * LONGEST_TEXT, "s" * LONGEST_SENDER), note(2, "请到三号台 <b>&amp;"))
    assert table.session.snapshot()["notes"][1]["text"] == "请到三号台 <b>&amp;"


def test_notes_that_wait_survive_the_end_of_the_program(tmp_path: Path) -> None:
    table = ActedTable(record=SqliteRecord(tmp_path / "record.db"))
    received(table, note())
    table.restart()
    assert [each["text"] for each in table.session.snapshot()["notes"]] == ["Break at six"]
    assert not table.session.receive_note(note(), NOW_S)
    table.record.close()
