"""Defects planted across the layers, to prove that the simulation finds each of them.

A plant patches classes in this process while its context lasts; the product has none of them.
``make simulate-planted`` plants each in turn and says how many seeds it took.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sabot_driver.connection import Connection
from sabot_driver.journal import Journal, JournalBatch
from sabot_driver.write_ahead import WriteAhead
from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_firmware.critical import CriticalMemory
from sabot_protocol import ledger, ticks
from sabot_protocol.event_store import EventStore
from sabot_protocol.host_protocol import HostProtocol
from sabot_protocol.ledger import Ledger
from sabot_protocol.notifications import EventReceived
from sabot_session.record import SqliteRecord
from sabot_session.session import TableSession
from sabot_simulators import seeded_defects
from sabot_simulators.whole_system.run import Result, run
from sabot_simulators.whole_system.scenario import draw

SEEDS = 40


def _around(owner: type, name: str, wrapper: Callable[..., Any]) -> Any:
    """Replace a method by one that is given the original first."""
    original = getattr(owner, name)

    def planted(self: Any, *arguments: Any, **named: Any) -> Any:
        return wrapper(original, self, *arguments, **named)

    return patch.object(owner, name, planted)


@contextmanager
def acknowledged_before_written() -> Iterator[None]:
    """The driver acknowledges events when it receives them."""

    def event(original: Callable[..., None], self: Connection, received: EventReceived) -> None:
        original(self, received)
        if self.peer is not None and self.peer.owner:
            self.protocol.acknowledge(received.boot_id, received.n)

    with _around(Connection, "_event", event):
        yield


@contextmanager
def journal_not_synchronised() -> Iterator[None]:
    """The journal is written without waiting for the disk."""

    def prepare(original: Callable[..., None], self: Journal, *arguments: Any) -> None:
        original(self, *arguments)
        self._db.execute("PRAGMA synchronous=OFF")

    with _around(Journal, "_prepare", prepare):
        yield


@contextmanager
def record_not_synchronised() -> Iterator[None]:
    """The table's record is written without waiting for the disk."""

    def prepare(original: Callable[..., None], self: SqliteRecord, *arguments: Any) -> None:
        original(self, *arguments)
        self._db.execute("PRAGMA synchronous=OFF")

    with _around(SqliteRecord, "_prepare", prepare):
        yield


@contextmanager
def event_heard_twice() -> Iterator[None]:
    """The session takes in an event of the device that it has taken in before."""

    def device_event(original: Callable[..., None], self: TableSession, at: int, *arguments: Any) -> None:
        original(self, at, *arguments)
        self.journal_at = at - 1
        original(self, at, *arguments)

    with _around(TableSession, "device_event", device_event):
        yield


@contextmanager
def failed_batch_dropped() -> Iterator[None]:
    """A batch that could not be written is dropped."""

    def requeue(original: Callable[..., None], self: WriteAhead, batch: JournalBatch) -> None:
        original(self, JournalBatch([], batch.commands, batch.reserve))

    with _around(WriteAhead, "requeue", requeue):
        yield


@contextmanager
def command_sent_before_its_record() -> Iterator[None]:
    """A command is sent before its record and its number are on disk."""

    def request(
        original: Callable[..., int], self: HostProtocol, message: int, body: bytes, now: int,
        timeout_ms: int, by: Any = None, held: bool = False,
    ) -> int:  # fmt: skip
        return original(self, message, body, now, timeout_ms, by, False)

    with _around(HostProtocol, "request", request), patch.object(HostProtocol, "release", lambda *_: None):
        yield


@contextmanager
def expired_call_forgotten() -> Iterator[None]:
    """A request whose time is up while the link is down never ends."""

    def failed(original: Callable[..., None], self: Connection, failure: Any) -> None:
        if self.peer is not None and self.link.name != "UP":
            return
        original(self, failure)

    with _around(Connection, "_request_failed", failed):
        yield


@contextmanager
def ticks_do_not_wrap() -> Iterator[None]:
    """Times are compared without regard to the counter's wrap."""
    with patch.object(ticks, "diff", lambda later, earlier: later - earlier):
        yield


@contextmanager
def repeated_command_executed() -> Iterator[None]:
    """A command that comes a second time is executed again."""

    def state_of(original: Callable[..., int], self: Ledger, host_id: bytes, number: int) -> int:
        found = original(self, host_id, number)
        return ledger.NEW if found == ledger.EXECUTED else found

    with _around(Ledger, "state_of", state_of):
        yield


@contextmanager
def ledger_forgotten() -> Iterator[None]:
    """A power cut empties the ledger of commands."""

    def begin(original: Callable[..., None], self: Ledger, memory: Any, records: Any) -> None:
        original(self, memory, {})

    with _around(Ledger, "__init__", begin):
        yield


@contextmanager
def gap_one_short() -> Iterator[None]:
    """A gap over a reboot is reported one event too short."""

    def made_since(original: Callable[..., Any], self: EventStore, *arguments: Any) -> Any:
        size = original(self, *arguments)
        return size - 1 if size else size

    with _around(EventStore, "_made_since", made_since):
        yield


@contextmanager
def events_never_dropped() -> Iterator[None]:
    """The device keeps every event of a boot in memory."""

    def begin(original: Callable[..., None], self: EventStore, *arguments: Any) -> None:
        original(self, *arguments[:-1], 1 << 30)

    with _around(EventStore, "__init__", begin):
        yield


@contextmanager
def record_in_one_slot() -> Iterator[None]:
    """Critical memory writes each record over the one that counts."""

    def save(original: Callable[..., None], self: CriticalMemory, name: str, data: bytes) -> None:
        record = self._layout[name]
        original(self, name, data)
        record.target = record.current

    with _around(CriticalMemory, "save", save):
        yield


PLANTS: dict[str, tuple[str, Callable[[], Any], str]] = {
    # Each plant: its layer, the plant, and words of the problem that gives it away
    "acknowledged-before-written": ("driver", acknowledged_before_written, "was acknowledged"),
    "journal-not-synchronised": ("journal", journal_not_synchronised, ""),
    "record-not-synchronised": ("session", record_not_synchronised, ""),
    "event-heard-twice": ("session", event_heard_twice, ""),
    "failed-batch-dropped": ("driver", failed_batch_dropped, ""),
    "command-sent-before-its-record": ("driver", command_sent_before_its_record, "command"),
    "expired-call-forgotten": ("driver", expired_call_forgotten, "ended"),
    "ticks-do-not-wrap": ("wire", ticks_do_not_wrap, ""),
    "repeated-command-executed": ("wire, device", repeated_command_executed, "was executed"),
    "ledger-forgotten": ("wire, device", ledger_forgotten, "command"),
    "gap-one-short": ("wire, device", gap_one_short, "a gap of"),
    "events-never-dropped": ("wire, device", events_never_dropped, "holds"),
    "record-in-one-slot": ("critical memory", record_in_one_slot, ""),
    "turn-forgotten": ("core", seeded_defects.turn_forgotten, "wrong claim"),
    "shelf-behind-an-open-door": ("core", seeded_defects.shelf_behind_an_open_door, "wrong claim"),
}


def find(name: str, seeds: int, minutes: int) -> tuple[int, Result | None]:
    """Run seeds with one defect until a problem gives it away: how many, and the last one's result."""
    _, plant, words = PLANTS[name]
    with plant():
        for seed in range(1, seeds + 1):
            result = run(draw(seed, minutes, weeks=False))
            if any(words in problem for problem in result.problems):
                return seed, result
    return seeds, None


def main() -> int:
    """Plant each defect in turn; 1 if one was not found."""
    parser = argparse.ArgumentParser(
        prog="python -m sabot_simulators.whole_system.planted", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--plant", choices=sorted(PLANTS), action="append")
    parser.add_argument("--write", type=Path, help="a file that gets the result as a table of Markdown")
    arguments = parser.parse_args()
    rows = ["| planted | layer | seeds it took | found by |", "| --- | --- | ---: | --- |"]
    missed = 0
    for name in arguments.plant or PLANTS:
        began = time.monotonic()
        seeds, result = find(name, arguments.seeds, arguments.minutes)
        took = time.monotonic() - began
        if result is None:
            missed += 1
            sys.stdout.write(f"{name:<32} not found in {seeds} seeds ({took:.0f} s)\n")
            rows.append(f"| {name} | {PLANTS[name][0]} | **not found in {seeds}** | |")
        else:
            words = PLANTS[name][2]
            what = next(each for each in result.problems if words in each).split(" s: ", 1)[1]
            sys.stdout.write(f"{name:<32} found with {seeds} seeds ({took:.0f} s): {what}\n")
            rows.append(f"| {name} | {PLANTS[name][0]} | {seeds} | {what} |")
        sys.stdout.flush()
    if arguments.write is not None:
        arguments.write.parent.mkdir(parents=True, exist_ok=True)
        arguments.write.write_text("\n".join(rows) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(main())
