"""The publisher of one table: its state, its heartbeat and its two chains, over connections that come and go.

It reads journal and record and never changes them, except for its position as the journal's reader ``floor``.
Whatever becomes of the floor, the table does not wait for it.
"""

import asyncio
import contextlib
import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from nats.aio.client import Client
from nats.aio.msg import Msg

from sabot_driver.errors import SabotError
from sabot_floor.chain_publisher import ChainPublisher, Pauses, patience_s
from sabot_floor.claim import LISTEN_S, Claiming
from sabot_floor.connection import LOST, TableSettings, connect, end, newest, put
from sabot_floor.errors import (
    BadPayload,
    FloorError,
    FloorUnreachable,
    NothingMayLeave,
    PublisherRefused,
    RowTooLarge,
)
from sabot_floor.names import SiteNames, archived_key, bucket_stream, state_key
from sabot_floor.payloads import Archived, Ask, Heartbeat, NoteAnswer, NoteSent, TableAlarm
from sabot_floor.row_sources import RowSource
from sabot_floor.tasks import end_tasks, run_until_closed
from sabot_session.notes import Note, NoteRefused
from sabot_session.snapshot import Changes
from sabot_table.rule_texts import FloorLevel

log = logging.getLogger("sabot.floor")
BEAT_S = 2.0
STATE_S = 1.0
"""The shortest time between two entries of a table's state."""
LOOK_S = 0.25
REPORT_S = 5.0
ALARM_S = 10.0
REFUSED_S = 30.0
END_S = 5.0
MOST_NOTES = 16
"""Notes that wait for the session; further ones are dropped, and their senders hear no answer."""
READER = "floor"
"""The name of the publisher's position in the journal."""


class StateOfTable(Protocol):
    """What the publisher needs of a session."""

    def wait_changes(self, after: str | None, timeout: float) -> Changes | None:
        """What changed since a cursor; None if nothing did."""


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A table as it is published."""

    level: FloorLevel
    pc: str
    """The public key of the table PC, in hexadecimal."""
    sources: Sequence[RowSource]
    state: StateOfTable | None
    """The session; None for a table whose rows are replayed."""
    entry: Callable[[dict[str, Any]], dict[str, Any]]
    """The state for the floor, of a whole snapshot."""
    notes: Callable[[Note], object] | None = None
    """Takes a note of the floor, or raises `NoteRefused`; None where no note may come in."""


class TablePublisher:
    """Publishes one table until its task is cancelled. `NothingMayLeave` where the rule text forbids it."""

    def __init__(self, settings: TableSettings, table: PublishedTable, listen_s: float = LISTEN_S) -> None:
        if table.level is FloorLevel.NONE:
            raise NothingMayLeave(f"table {settings.table}: its rule text lets nothing leave the table")
        self._names = SiteNames(settings.site)
        self._settings = settings
        self._published = table
        self.table = settings.table
        self.run_id = secrets.token_hex(8)
        self._claiming = Claiming(self._names, settings.table, table.pc, self.run_id, listen_s)
        self.chains = [
            ChainPublisher(self._names, settings.table, table.level, source) for source in table.sources
        ]
        self.refused: PublisherRefused | None = None
        """Why this publisher may not publish; None if it may."""
        self.connected = False
        self.beats = 0
        self._snapshot: dict[str, Any] = {}
        self._cursor: str | None = None
        self._number = 0

    def close(self) -> None:
        """Close the files it reads, after its task has ended."""
        for each in self.chains:
            each.source.close()

    # -- connections ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Publish; connect again whenever the connection has ended."""
        measuring = asyncio.create_task(self._measure())
        try:
            await self._run_on()
        finally:
            await end_tasks([measuring])

    async def _measure(self) -> None:
        """Count rows that wait while no heartbeat does: without a connection their age goes on."""
        while True:
            before = self.beats
            await asyncio.sleep(2 * BEAT_S)
            if self.beats == before:
                for each in self.chains:
                    with contextlib.suppress(SabotError):  # a heartbeat meets it again, and tells it
                        await each.beat()

    async def _run_on(self) -> None:
        pauses = Pauses()
        while True:
            try:
                await self._connected(pauses)
            except FloorUnreachable as error:
                log.info("the floor cannot be reached: %s", error)
            except LOST as error:
                log.info("the floor's connection has ended: %r", error)
            self.connected = False
            await asyncio.sleep(pauses.next_s())

    async def _connected(self, pauses: Pauses) -> None:
        closed = asyncio.Event()
        client = await connect(self._settings.servers, f"table {self._settings.table}", closed.set)
        try:
            self.connected = True
            await self._claimed(client, closed, pauses)
        finally:
            await end(client)

    async def _claimed(self, client: Client, closed: asyncio.Event, pauses: Pauses) -> None:
        try:
            claim = await self._claiming.take(client, patience_s())
            self.refused = None
            await self._publish(client, claim, closed, pauses)
        except PublisherRefused as error:
            self.refused = error
            log.error("the floor refuses this publisher: %s", error)
            await self._alarm(client, "second_publisher", str(error), closed)
        except RowTooLarge as error:
            await self._alarm(client, "row_too_large", str(error), closed)

    async def _alarm(self, client: Client, kind: str, words: str, closed: asyncio.Event) -> None:
        """Repeat an alarm for a while; then the claim is looked at again."""
        alarm = TableAlarm(table=self._settings.table, kind=kind, words=words, details={"run": self.run_id})
        ends = time.monotonic() + REFUSED_S
        while not closed.is_set() and time.monotonic() < ends:
            await client.publish(self._names.alarm(self._settings.table), alarm.to_bytes())
            await client.flush()
            await _sleep_until(closed, ALARM_S)

    async def _publish(self, client: Client, claim: int, closed: asyncio.Event, pauses: Pauses) -> None:
        await client.subscribe(self._names.ask(self._settings.table), cb=self._asked)
        if self._published.notes is not None:
            heard = partial(self._noted, client, self._published.notes)
            note = self._names.note(self._settings.table)
            await client.subscribe(note, cb=heard, pending_msgs_limit=MOST_NOTES)
        await self._read_archived(client)
        tasks = [
            self._keep_state(client, claim),
            self._beat(client, claim),
            self._keep_archived(client),
            *(each.run(client, claim) for each in self.chains),
        ]
        pauses.reset()
        await run_until_closed(closed, *tasks)

    # -- what the floor tells -------------------------------------------------------------------

    async def _asked(self, message: Msg) -> None:
        try:
            ask = Ask.read(message.data)
        except BadPayload as error:
            log.warning("an unreadable question of the archive: %s", error)
            return
        for each in self.chains:
            if each.source.chain == ask.chain:
                each.asked(ask)

    async def _noted(self, client: Client, take: Callable[[Note], object], message: Msg) -> None:
        """A note of the floor; the answer says whether the table's screen shows it."""
        try:
            sent = NoteSent.read(message.data)
        except BadPayload as error:
            log.warning("an unreadable note: %s", error)
            return
        note = Note(sent.note_id, sent.sender, sent.text, sent.sent_us // 1_000_000)
        reason, words = "", ""
        try:
            await asyncio.to_thread(take, note)
        except NoteRefused as error:
            reason, words = error.reason, f"{error}. {error.advice}"
        except SabotError as error:
            log.error("a note could not be recorded: %s", error)
            reason, words = "failed", "the table could not record the note"
        answer = NoteAnswer(
            table=self._settings.table, note_id=sent.note_id, taken=not reason, reason=reason, words=words
        )
        await client.publish(self._names.noted(self._settings.table), answer.to_bytes())

    async def _keep_archived(self, client: Client) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            await self._read_archived(client)

    async def _read_archived(self, client: Client) -> None:
        key = self._names.key_subject(archived_key(self._settings.table))
        entry = await newest(client, bucket_stream(self._names.state_bucket), key, patience_s())
        if entry is None:
            return
        try:
            told = Archived.read(entry.data)
        except BadPayload as error:
            log.warning("an unreadable report of the archive: %s", error)
            return
        for each in self.chains:
            await each.archived(told)

    # -- what the table tells -------------------------------------------------------------------

    async def _beat(self, client: Client, claim: int) -> None:
        while True:
            chains = {each.source.chain: await each.beat() for each in self.chains}
            beat = Heartbeat(
                table=self._settings.table,
                claim=claim,
                run=self.run_id,
                at_us=time.time_ns() // 1000,
                level=self._published.level,
                chains=chains,  # type: ignore[arg-type]
                state=self._number,
            )
            await client.publish(self._names.beat(self._settings.table), beat.to_bytes())
            self.beats += 1
            await asyncio.sleep(BEAT_S)

    async def _keep_state(self, client: Client, claim: int) -> None:
        """Write the state when it has changed, and once for each connection."""
        written = None
        while True:
            await self._look()
            entry = self._published.entry(self._snapshot) if self._snapshot else {}
            if entry and entry != written:
                self._number += 1
                await self._write_state(client, claim, entry)
                written = entry
                await asyncio.sleep(STATE_S)
            else:
                await asyncio.sleep(LOOK_S)

    async def _look(self) -> None:
        """Take in what changed at the table."""
        if self._published.state is None:
            return
        changes = await asyncio.to_thread(self._published.state.wait_changes, self._cursor, 0.0)
        if changes is not None:
            self._cursor = changes.cursor
            self._snapshot = dict(changes.parts) if changes.full else {**self._snapshot, **changes.parts}
            for each in self.chains:
                each.nudge()

    async def _write_state(self, client: Client, claim: int, entry: dict[str, Any]) -> None:
        settings = self._settings
        whole = {
            "v": 1,
            "table": settings.table,
            "pit": settings.pit,
            "level": str(self._published.level),
            "takes_notes": self._published.notes is not None,
            "claim": claim,
            "run": self.run_id,
            "number": self._number,
            "at_s": int(time.time()),
            **entry,
        }
        subject = self._names.key_subject(state_key(settings.table))
        await put(client, subject, json.dumps(whole).encode(), None, patience_s())


async def _sleep_until(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


class PublisherThread:
    """Runs publishers in a thread with an event loop of its own; close it before the tables."""

    def __init__(self, make: Callable[[], Sequence[TablePublisher]]) -> None:
        """``make`` is called in the thread. Its error is raised here."""
        self.publishers: Sequence[TablePublisher] = ()
        self._make = make
        self._failed: BaseException | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sabot-floor", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except FloorError as error:
            self._failed = error
            log.error("the publisher has ended: %s", error)
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self.publishers = self._make()
        tasks = [asyncio.create_task(each.run()) for each in self.publishers]
        self._ready.set()
        ended = asyncio.create_task(self._end.wait())
        await asyncio.wait([ended, *tasks], return_when=asyncio.FIRST_COMPLETED)
        await end_tasks([ended, *tasks])
        for each in tasks:
            if not each.cancelled() and each.exception() is not None:
                log.error("a publisher has failed", exc_info=each.exception())
        for publisher in self.publishers:
            publisher.close()

    def close(self) -> None:
        """End the publishers. Rows that are not published yet stay on disk."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(END_S)
