"""The archive's service: takes rows from the stream into SQL, reports how far, asks for what is missing.

A message is acknowledged after the COMMIT of its rows. Whatever the stream loses, journal and archive are the
same in the end: heartbeats say what each table has published, and the archive asks for what it has not got.
"""

import asyncio
import contextlib
import json
import logging
import time
from dataclasses import dataclass, field

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

from sabot_floor.alarms import Alarms
from sabot_floor.archive_store import ArchiveStore, Delivered, Found
from sabot_floor.chain_publisher import Pauses
from sabot_floor.connection import LOST, Servers, connect, end, put
from sabot_floor.errors import ArchiveFailed, BadPayload, FloorUnreachable
from sabot_floor.names import WHOLE_FLOOR, SiteNames, archived_key
from sabot_floor.payloads import Archived, Ask, Heartbeat, TableAlarm
from sabot_floor.streams import StreamSettings, set_up
from sabot_floor.tasks import run_until_closed

log = logging.getLogger("sabot.floor")
DURABLE = "archive"
BATCH = 64
FETCH_S = 1.0
ACK_WAIT_S = 30.0
MOST_PENDING = 256
REPORT_S = 1.0
LOOK_S = 1.0
PUT_S = 10.0
MOST_TABLES = 5000  # whose heartbeats are kept
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the archive waits before it acts. Tests are less patient."""

    ask_after_s: float = 5.0
    """A table published a row, the stream is read, and the row is not here: then the archive asks."""
    ask_again_s: float = 10.0
    missing_after_s: float = 60.0
    """After the first question, the gap is an alarm."""
    reconcile_s: float = HOUR_S
    forget_s: float = 60.0
    """A table's own alarm that is not repeated for so long has ended."""


@dataclass(slots=True)
class _Waiting:
    """A chain of which the table has published more than the archive has."""

    since: float
    n: int
    asked: float | None = None
    first_asked: float | None = None
    alarmed: bool = False


@dataclass(slots=True)
class _Heard:
    """A table's newest heartbeat, and what the archive waits for."""

    beat: Heartbeat
    at: float
    waiting: dict[str, _Waiting] = field(default_factory=dict)
    reconciled: float | None = None


class Archive:
    """The archive of one site. Run it in one task; it connects again whenever the connection ends."""

    def __init__(
        self,
        store: ArchiveStore,
        site: str,
        servers: Servers,
        settings: StreamSettings | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._store = store
        self._names = SiteNames(site)
        self._servers = servers
        self._settings = settings or StreamSettings()
        self._patience = patience or Patience()
        self._heard: dict[str, _Heard] = {}
        self._dirty: set[str] = set()
        self._own_alarms: dict[tuple[str, str], float] = {}
        self._found: dict[tuple[str, str], Found] = {}
        self._too_old = False
        self._drained = False
        self.connected = False
        self.rows = 0
        """Rows committed by this run."""
        self.again = 0
        """Rows that came again and were the same."""
        self.pending = 0
        """Messages in the stream that are not delivered yet."""
        self.behind_s = 0.0
        """The age of the oldest message of the newest batch when it was fetched; 0 if all are taken."""
        self.matching: dict[tuple[str, str], bool] = {}
        """The newest reconciliation of each table and chain."""

    async def run(self) -> None:
        """Archive until the task is cancelled. `StreamDiffers` if the stream has other settings."""
        pauses = Pauses()
        while True:
            try:
                await self._connected(pauses)
            except (FloorUnreachable, ArchiveFailed) as error:
                log.warning("%s", error)
            except LOST as error:
                log.warning("the archive's connection has ended: %s", str(error) or type(error).__name__)
            self.connected = False
            await asyncio.sleep(pauses.next_s())

    async def _connected(self, pauses: Pauses) -> None:
        closed = asyncio.Event()
        client = await connect(self._servers, "archive", closed.set)
        try:
            js = client.jetstream(timeout=PUT_S)
            await set_up(js, self._names, self._settings)
            subscription = await self._consumer(js)
            await client.subscribe(self._names.beat(), cb=self._beat)
            await client.subscribe(self._names.alarm(), cb=self._table_alarm)
            self._dirty = set(self._store.heads())
            alarms = Alarms(client, self._names, "archive")
            self.connected = True
            await run_until_closed(
                closed,
                self._take(js, subscription, pauses),
                self._report(client),
                self._look(client),
                self._raise(alarms),
            )
        finally:
            await end(client)

    # -- rows -----------------------------------------------------------------------------------

    async def _consumer(self, js: JetStreamContext) -> JetStreamContext.PullSubscription:
        """The pull consumer. One that is ahead of its stream is made anew: the stream has lost its tail."""
        stream = self._names.stream
        with contextlib.suppress(NotFoundError):
            there = await js.consumer_info(stream, DURABLE)
            last = (await js.stream_info(stream)).state.last_seq
            delivered = 0 if there.delivered is None else there.delivered.stream_seq
            if delivered > last:
                log.warning("the stream ends at %d, and the archive has read up to %d", last, delivered)
                await js.delete_consumer(stream, DURABLE)
        config = ConsumerConfig(
            durable_name=DURABLE,
            ack_policy=AckPolicy.EXPLICIT,
            deliver_policy=DeliverPolicy.ALL,
            ack_wait=ACK_WAIT_S,
            max_ack_pending=MOST_PENDING,
        )
        return await js.pull_subscribe(self._names.rows(), durable=DURABLE, stream=stream, config=config)

    async def _take(
        self, js: JetStreamContext, subscription: JetStreamContext.PullSubscription, pauses: Pauses
    ) -> None:
        while True:
            try:
                messages = await subscription.fetch(BATCH, timeout=FETCH_S)
            except (nats.errors.TimeoutError, TimeoutError):
                messages = []
            if not messages:  # also without a time-out, when the server that was asked goes away
                await self._look_at_consumer(js)
                continue
            self._drained = False
            oldest = min(each.metadata.timestamp.timestamp() for each in messages)
            self.behind_s = max(0.0, time.time() - oldest)
            delivered = [
                Delivered(each.metadata.sequence.stream, each.subject, each.data) for each in messages
            ]
            taken = await asyncio.to_thread(self._store.take, delivered)
            for each in messages:
                await each.ack()
            pauses.reset()
            self.rows += taken.new
            self.again += taken.again
            self._dirty |= taken.tables
            for found in taken.found:
                self._find(found)

    async def _look_at_consumer(self, js: JetStreamContext) -> None:
        """Nothing came: is the whole stream read? A consumer ahead of its stream ends the connection."""
        info = await js.consumer_info(self._names.stream, DURABLE)
        self.pending = info.num_pending or 0
        self._drained = not info.num_pending and not info.num_ack_pending
        self.behind_s = 0.0
        last = (await js.stream_info(self._names.stream)).state.last_seq
        if info.delivered is not None and info.delivered.stream_seq > last:
            raise FloorUnreachable("the stream has lost its tail; the archive reads it again")

    async def _report(self, client: Client) -> None:
        """Tell each table how far its rows are committed."""
        while True:
            dirty, self._dirty = self._dirty, set()
            if dirty:
                heads = self._store.heads()
                for table in sorted(dirty & set(heads)):
                    told = Archived(table=table, at_us=time.time_ns() // 1000, chains=heads[table])  # type: ignore[arg-type]
                    subject = self._names.key_subject(archived_key(table))
                    await put(client, subject, told.to_bytes(), None, PUT_S)
            await client.publish(self._names.archive_beat, self._archive_beat())
            await asyncio.sleep(REPORT_S)

    def _archive_beat(self) -> bytes:
        told = {
            "v": 1, "at_us": time.time_ns() // 1000, "rows": self.rows, "pending": self.pending,
            "behind_s": round(self.behind_s, 3),
        }  # fmt: skip
        return json.dumps(told).encode()

    # -- tables ---------------------------------------------------------------------------------

    async def _beat(self, message: Msg) -> None:
        try:
            beat = Heartbeat.read(message.data)
        except BadPayload as error:
            log.info("an unreadable heartbeat: %s", error)
            return
        if self._names.beat(beat.table) != message.subject:
            return
        known = self._heard.get(beat.table)
        if known is not None:
            known.beat, known.at = beat, time.monotonic()
        elif len(self._heard) < MOST_TABLES:
            self._heard[beat.table] = _Heard(beat, time.monotonic())

    async def _table_alarm(self, message: Msg) -> None:
        try:
            alarm = TableAlarm.read(message.data)
        except BadPayload as error:
            log.info("an unreadable alarm: %s", error)
            return
        if self._names.alarm(alarm.table) != message.subject:
            return
        key = (alarm.table, alarm.kind)
        if key not in self._own_alarms and len(self._own_alarms) < MOST_TABLES:
            self._find(Found(alarm.table, alarm.kind, alarm.words))
        self._own_alarms[key] = time.monotonic()

    async def _look(self, client: Client) -> None:
        """Ask for what is missing; reconcile."""
        alarms = Alarms(client, self._names, "archive")
        while True:
            await asyncio.sleep(LOOK_S)
            for table, heard in list(self._heard.items()):
                for chain in heard.beat.chains:
                    await self._look_at(client, alarms, heard, chain)
                if heard.reconciled is None or _since(heard.reconciled) >= self._patience.reconcile_s:
                    await self._reconcile(alarms, table, heard)
            for key, at in list(self._own_alarms.items()):
                if _since(at) > self._patience.forget_s:
                    del self._own_alarms[key]
                    await alarms.end(*key)
            await self._look_at_age(alarms)

    async def _look_at(self, client: Client, alarms: Alarms, heard: _Heard, chain: str) -> None:
        """Ask for rows of a chain that the table has published and the archive has not got."""
        table, told = heard.beat.table, heard.beat.chains[chain]  # type: ignore[index]
        source, published = told.source, told.published
        head = self._store.head(table, chain, source)
        n, now = 0 if head is None else head.n, time.monotonic()
        waiting = heard.waiting.get(chain)
        if n >= published:
            if waiting is not None:
                del heard.waiting[chain]
                if waiting.alarmed:
                    await self._end(alarms, table, "rows_missing")
            return
        if waiting is None or (waiting.n != n and not waiting.alarmed):
            heard.waiting[chain] = _Waiting(now, n)
            return
        if not self._drained or now - waiting.since < self._patience.ask_after_s:
            return
        if waiting.asked is None or now - waiting.asked >= self._patience.ask_again_s:
            waiting.asked = now
            waiting.first_asked = waiting.first_asked or now
            ask = Ask(chain=chain, source=source, after=n)  # type: ignore[arg-type]
            await client.publish(self._names.ask(table), ask.to_bytes())
            log.info("asked table %s for %s rows after %d", table, chain, n)
        if now - (waiting.first_asked or now) >= self._patience.missing_after_s and not waiting.alarmed:
            waiting.alarmed = True
            words = f"{chain} rows after {n} of {source} are missing; the table has published {published}"
            self._find(Found(table, "rows_missing", words))

    async def _look_at_age(self, alarms: Alarms) -> None:
        limit = self._settings.max_age_s / 4
        if self.behind_s > limit:
            self._too_old = True
            words = f"the archive is {self.behind_s:.0f} s behind; the stream keeps {limit * 4:.0f} s"
            self._find(Found(WHOLE_FLOOR, "archive_behind", words))
        elif self._too_old and self._drained:
            self._too_old = False
            await self._end(alarms, WHOLE_FLOOR, "archive_behind")

    async def _reconcile(self, alarms: Alarms, table: str, heard: _Heard) -> None:
        """Compare count and hash of a table's newest rows with the archive's; later, if they are not here."""
        for chain, told in heard.beat.chains.items():
            wrong = await asyncio.to_thread(self._store.compare, table, chain, told)
            if wrong is None:
                return  # not archived yet: `_look_at` asks for it
            self.matching[table, chain] = not wrong
            if wrong:
                self._find(Found(table, "not_reconciled", f"{chain} of {told.source}: {wrong}"))
        heard.reconciled = time.monotonic()
        if all(self.matching[table, chain] for chain in heard.beat.chains):
            await self._end(alarms, table, "not_reconciled")

    def _find(self, found: Found) -> None:
        """Remember what needs an alarm; once a table and kind, so that no table can fill the memory."""
        self._found.setdefault((found.table, found.kind), found)

    async def _raise(self, alarms: Alarms) -> None:
        while True:
            found, self._found = self._found, {}
            for each in found.values():
                if await alarms.raise_(each.table, each.kind, each.words):
                    log.error("alarm %s of %s: %s", each.kind, each.table, each.words)
                    await asyncio.to_thread(self._store.note_alarm, each, False)
            await asyncio.sleep(LOOK_S / 2)

    async def _end(self, alarms: Alarms, table: str, kind: str) -> None:
        if await alarms.end(table, kind):
            await asyncio.to_thread(self._store.note_alarm, Found(table, kind, ""), True)


def _since(at: float) -> float:
    return time.monotonic() - at
