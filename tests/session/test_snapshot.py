"""Snapshot and stream: cursors, gaps, bounded memory; no face before the dealer exposed the hands."""

import json
import logging
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.session.simulated_table import SimulatedTable, fixed_nonce, simulated_table

from sabot_protocol.host.messages import RevealRound
from sabot_session import acts
from sabot_session.needs import NeedKind
from sabot_session.record import SqliteRecord
from sabot_session.snapshot import MOST_CHANGES, ChangeStream

FACE = re.compile(r'"(A|[2-9]|10|T|J|Q|K)[CDHS]"')


def test_a_reader_gets_all_of_it_first_and_then_what_changed() -> None:
    stream = ChangeStream()
    stream.publish({"a": 1, "b": 2})
    first = stream.changes(None)
    assert first is not None
    assert (first.full, first.parts) == (True, {"a": 1, "b": 2})
    assert stream.changes(first.cursor) is None
    assert not stream.publish({"a": 1, "b": 2})
    stream.publish({"a": 1, "b": 3})
    then = stream.changes(first.cursor)
    assert then is not None
    assert (then.full, then.parts) == (False, {"b": 3})


def test_a_reader_who_is_too_far_behind_gets_all_of_it() -> None:
    stream = ChangeStream()
    stream.publish({"a": 0, "b": 0})
    first = stream.cursor
    for number in range(MOST_CHANGES):
        stream.publish({"a": number + 1, "b": 0})
    just = stream.changes(first)
    assert just is not None
    assert not just.full
    stream.publish({"a": -1, "b": 0})
    late = stream.changes(first)
    assert late is not None
    assert late.full


@pytest.mark.parametrize("cursor", ["", "nonsense", "00000000.1", "{run}.999999", "{run}.-1", "{run}.1e3"])
def test_a_cursor_that_is_none_of_ours_gets_all_of_it(cursor: str) -> None:
    stream = ChangeStream()
    stream.publish({"a": 1})
    found = stream.changes(cursor.format(run=stream.cursor.split(".")[0]))
    assert found is not None
    assert found.full


def told(table: SimulatedTable, log: str) -> str:
    """Everything that the session has told anybody so far."""
    state = json.dumps(table.run.read(lambda session: session.snapshot()))
    streamed = table.run.read(lambda session: session.changes(None))
    record = table.record
    assert isinstance(record, SqliteRecord)
    saved = record.load()
    assert saved is not None
    rows = json.dumps([dict(each.row.data) for each in record.rows(0, 10_000)])
    return state + json.dumps(streamed.parts) + rows + saved.state + log


@pytest.mark.slow
@pytest.mark.rule("MD3 11.B")
def test_no_face_is_told_before_the_dealer_exposed_the_hands(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snapshot, stream, record, saved state, journal and log; in a round that is void they never hold one."""
    caplog.set_level(logging.DEBUG)
    streamed: list[str] = []
    publish = ChangeStream.publish

    def noted(stream: ChangeStream, newest: dict[str, Any]) -> bool:
        streamed.append(json.dumps(newest))
        return publish(stream, newest)

    monkeypatch.setattr(ChangeStream, "publish", noted)
    leave = frozenset({NeedKind.EXPOSE})
    with simulated_table(tmp_path, journal=tmp_path / "journal.db") as table:
        table.until(NeedKind.EXPOSE)
        table.staff.give(acts.ReportWrongNumber())
        table.play(lambda table: len(table.rows("collect")) == 1, leave)
        need = table.until(NeedKind.EXPOSE)
        table.play(lambda table: table.need(NeedKind.FEED) is None, leave)
        assert FACE.search(told(table, caplog.text) + "".join(streamed)) is None
        progress = table.run.read(lambda session: session.state.round)
        assert progress is not None
        assert progress.faces == []
        assert asked_for_faces(tmp_path / "journal.db") == 0
        table.staff.meet(need)
        table.rounds(2)
        hands = json.dumps([dict(each.row.data) for each in table.rows("cards_read")])
        assert len(FACE.findall(hands)) == 9
        assert asked_for_faces(tmp_path / "journal.db") == 1


def asked_for_faces(path: Path) -> int:
    """How often the journal has the command that reveals a round."""
    with sqlite3.connect(path) as journal:
        sql = "SELECT count(*) FROM commands WHERE message = ?"
        return int(journal.execute(sql, (RevealRound.ID,)).fetchone()[0])


def test_the_nonce_of_tests_is_a_nonce() -> None:
    assert len(fixed_nonce(1)) == 32
    assert fixed_nonce(1) != fixed_nonce(2)
