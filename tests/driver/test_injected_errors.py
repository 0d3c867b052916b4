"""Each call of the driver, and each SQL statement of its journal, fails once: the client recovers."""

import sqlite3
from collections import Counter
from typing import Any

import pytest
from pytest_mock import MockerFixture
from tests.driver.connection_ends import Ends
from tests.driver.injected_errors import FailingConnection, InjectedLife, Recorder, StrikeAt
from tests.sweeps import Amount

from sabot_driver import Journal
from sabot_driver.errors import JournalDamaged
from sabot_driver.journal import CommandRecord, JournalBatch
from sabot_protocol.notifications import EventReceived

pytestmark = pytest.mark.slow


@pytest.mark.sweep(every=6)
@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_NOMEM]
)
def test_an_error_at_each_sql_statement(
    failing: type[FailingConnection], code: int, amount: Amount
) -> None:
    n, reached = 0, True
    while reached:
        n += 1 if n < 6 else amount(5, full=1)  # in the sample each kind of statement fails, too
        life = InjectedLife()
        failing.failed, failing.left, failing.code = None, n, code
        life.play()
        reached = failing.failed is not None
        failing.left = 0
        life.check(f"statement {n} ({failing.failed}), error {code}")
    assert n > 20, "a batch has six statements"


def calls_to_fail() -> list[int]:
    """The first three calls of each function of the driver, and every 97th one after them."""
    InjectedLife().play()  # the first life of a process makes more calls: what it caches is cached after it
    life = InjectedLife()
    life.strike = recorder = Recorder()
    life.play()
    seen: Counter[str] = Counter()
    chosen = []
    for n, place in enumerate(recorder.calls, 1):
        seen[place] += 1
        if seen[place] <= 3 or seen[place] % 97 == 0:
            chosen.append(n)
    assert len(seen) > 100
    return chosen


@pytest.mark.parametrize("error", [MemoryError, RuntimeError])
def test_an_exception_at_each_call_of_the_drivers_threads(error: type[Exception], amount: Amount) -> None:
    for n in calls_to_fail()[:: amount(25, full=1)]:
        life = InjectedLife()
        life.strike = strike = StrikeAt(n, error)
        life.play()
        life.check(f"call {n} ({strike.where}), {error.__name__}")


class FailsOnce(dict[int, str]):
    """Outcomes of commands that cannot be read once."""

    def get(self, *arguments: Any) -> Any:
        """MemoryError, the first time."""
        if self.pop(0, None):
            raise MemoryError
        return super().get(*arguments)


def a_batch() -> JournalBatch:
    event = EventReceived(1, 1, 0, 0, 0, 0, 1, b"")
    return JournalBatch([(b"mem1", event)], [CommandRecord(1, 1, b"", b"mem1", 0, None)])


def test_a_write_that_fails_after_its_commit_is_not_written_twice() -> None:
    journal, batch = Journal(), a_batch()
    journal.ended = FailsOnce({0: "unread", 1: "done"})
    with pytest.raises(MemoryError):
        journal.write(batch, 0)
    assert journal.write(batch, 0) == 1
    assert [each.n for each in journal.entries()] == [1]
    assert [each.outcome for each in journal.commands()] == ["done"]
    with pytest.raises(JournalDamaged):
        journal.write(a_batch(), 0)  # another event of the same name is none of this


def test_a_write_that_fails_by_a_bug_leaves_no_transaction_open() -> None:
    journal = Journal()
    with pytest.raises(AttributeError):
        journal.write(JournalBatch([], [None]), 0)  # type: ignore[list-item]
    assert journal.write(a_batch(), 0) == 1


def test_events_stay_when_their_batch_cannot_be_made(ends: Ends, mocker: MockerFixture) -> None:
    ends.device.emit("located", 1)
    ends.settle()
    mocker.patch.object(ends.connection.write_ahead.numbers, "are_few", side_effect=MemoryError)
    with pytest.raises(MemoryError):
        ends.connection.write_ahead.take_batch()
    mocker.stopall()
    batch = ends.connection.write_ahead.take_batch()
    assert batch is not None
    assert batch.events
