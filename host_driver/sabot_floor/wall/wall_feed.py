"""Feeds the wall's model from the floor's servers, and carries out its wishes.

Every connection begins anew: it subscribes to heartbeats and reads both buckets whole, so that nothing that
was missed meanwhile stays unknown. While there is none, the model says that the floor is blind.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import APIError, NotFoundError
from nats.js.kv import KeyValue

from sabot_floor.connection import LOST, Servers, connect, is_wrong_sequence, newest, put
from sabot_floor.errors import BadPayload, FloorError, FloorUnreachable
from sabot_floor.names import SiteNames, archived_key, bucket_stream, state_key
from sabot_floor.payloads import Alarm, Archived, Heartbeat
from sabot_floor.wall.alarm_book import AlarmChanged, Wish
from sabot_floor.wall.note_desk import NoteDesk
from sabot_floor.wall.table_state import TableState
from sabot_floor.wall.wall_model import JudgedFloor, WallModel
from sabot_session.notes import Note

log = logging.getLogger("sabot.floor.wall")
LOOK_S = 0.5
AGAIN_S = 2.0  # between two tries to connect
WRITE_S = 5.0
CHECK_S = 10.0
GONE = ("DEL", "PURGE")
NO_SERVER = "No server of the floor answers"


class NotConnected(FloorError, ConnectionError):
    """The floor is blind: nothing can be written."""

    advice = "Go to the table. Try again when the banner is gone."


@dataclass(frozen=True, slots=True)
class WallClock:
    """The wall's times: seconds of a monotonic clock, and UTC for what is written."""

    monotonic: Callable[[], float] = time.monotonic
    utc_us: Callable[[], int] = lambda: time.time_ns() // 1000


class WallFeed:
    """The wall of one site. Run it as a task; ``shown`` is called with what it judges twice a second."""

    def __init__(
        self,
        servers: Servers,
        site: str,
        model: WallModel,
        shown: Callable[[JudgedFloor], None] = lambda _: None,
        clock: WallClock | None = None,
    ) -> None:
        self._servers = servers
        self._names = SiteNames(site)
        self._model = model
        self._shown = shown
        self._clock = clock or WallClock()
        self._client: Client | None = None
        self._notes = NoteDesk(self._names)
        self.unreadable = 0
        """Messages that this version cannot read, or that speak for another table."""
        self.judged: JudgedFloor = model.judge(self._clock.monotonic())
        """The floor as it was judged last."""

    async def run(self) -> None:
        """Follow the floor; connect again whenever the connection has ended."""
        looks = asyncio.create_task(self._look_on())
        try:
            while True:
                why = NO_SERVER
                try:
                    await self._follow()
                except FloorUnreachable as error:
                    log.warning("%s", error)
                except (*LOST, APIError) as error:
                    why = f"{NO_SERVER} as expected: {error or type(error).__name__}"
                    log.warning("the connection to the floor has ended: %r", error)
                self._client = None
                self._model.disconnected(why, self._clock.monotonic())
                await asyncio.sleep(AGAIN_S)
        finally:
            looks.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await looks

    async def _follow(self) -> None:
        closed = asyncio.Event()
        client = await connect(self._servers, f"wall {self._names.site}", closed.set)
        try:
            await client.subscribe(self._names.beat(), cb=self._beat)
            await client.subscribe(self._names.archive_beat, cb=self._archive_beat)
            await self._notes.follow(client)
            made = await self._made(client)
            states = await self._watch(client, self._names.state_bucket)
            alarms = await self._watch(client, self._names.alarm_bucket)
            self._client = client
            self._model.connected(self._clock.monotonic())
            await _until_one_ends(
                closed.wait(),
                self._take_states(states),
                self._take_alarms(alarms),
                self._check(client, made),
            )
        finally:
            self._client = None
            with contextlib.suppress(*LOST):
                await client.close()

    async def _made(self, client: Client) -> list[str]:
        """When each bucket came to be."""
        js = client.jetstream(timeout=WRITE_S)
        found = []
        for bucket in (self._names.state_bucket, self._names.alarm_bucket):
            try:
                found.append(str((await js.stream_info(bucket_stream(bucket))).created))
            except NotFoundError as error:
                raise FloorUnreachable(
                    f"the site has no bucket {bucket}", "Run 'sabot floor setup' for this site first."
                ) from error
        return found

    async def _check(self, client: Client, made: list[str]) -> None:
        """Notice a bucket that was deleted or made anew: its watcher would stay silent for ever."""
        while True:
            await asyncio.sleep(CHECK_S)
            if await self._made(client) != made:
                raise FloorUnreachable("a bucket of the site was made anew")

    async def _watch(self, client: Client, bucket: str) -> "KeyValue.KeyWatcher":
        found = await client.jetstream(timeout=WRITE_S).key_value(bucket)
        return await found.watchall()

    # -- in -------------------------------------------------------------------------------------

    async def _beat(self, message: Msg) -> None:
        with self._readable(message.subject):
            beat = Heartbeat.read(message.data)
            if self._names.beat(beat.table) != message.subject:
                raise BadPayload(f"it speaks for table {beat.table}")
            self._model.hear_beat(beat, self._clock.monotonic())

    async def _archive_beat(self, message: Msg) -> None:
        self._model.hear_archive(self._clock.monotonic())

    async def _take_states(self, watcher: "KeyValue.KeyWatcher") -> None:
        async for entry in _entries(watcher):
            with self._readable(entry.key):
                data = entry.value or b""
                if entry.key.startswith(state_key("")):
                    state = TableState.read(data)
                    _check_key(entry.key, state_key(state.table))
                    self._model.hear_state(state, self._clock.monotonic())
                elif entry.key.startswith(archived_key("")):
                    archived = Archived.read(data)
                    _check_key(entry.key, archived_key(archived.table))
                    self._model.hear_archived(archived)

    async def _take_alarms(self, watcher: "KeyValue.KeyWatcher") -> None:
        async for entry in _entries(watcher, deleted=True):
            with self._readable(entry.key):
                table, _, kind = entry.key.partition(".")
                if entry.operation in GONE:
                    self._model.alarms.forget(table, kind, entry.revision or 0)
                    continue
                self._hear_alarm(table, kind, entry.value or b"", entry.revision or 0)

    def _hear_alarm(self, table: str, kind: str, data: bytes, revision: int) -> None:
        alarm = Alarm.read(data)
        _check_key(f"{table}.{kind}", f"{alarm.table}.{alarm.kind}")
        self._model.hear_alarm(alarm, revision, self._clock.monotonic(), self._clock.utc_us())

    @contextlib.contextmanager
    def _readable(self, where: str) -> Iterator[None]:
        """What cannot be read is counted, and nothing else becomes of it: the archive keeps such rows."""
        try:
            yield
        except BadPayload as error:
            self.unreadable += 1
            log.warning("unreadable: %s: %s", where, error)

    # -- out ------------------------------------------------------------------------------------

    async def _look_on(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(LOOK_S)

    def _judge(self, now_s: float) -> None:
        self.judged = self._model.judge(now_s)
        self._shown(self.judged)

    async def _look(self) -> None:
        now_s = self._clock.monotonic()
        self._judge(now_s)
        client = self._client
        if client is None:
            return
        for wish in self._model.wishes(self.judged, now_s, self._clock.utc_us()):
            try:
                await self._write(client, wish)
            except LOST as error:
                if not is_wrong_sequence(error):
                    log.warning("an alarm could not be written: %r", error)
                    return  # the model wishes it again

    async def _write(self, client: Client, wish: Wish) -> None:
        alarm = wish.alarm
        subject = self._names.alarm_subject(alarm.table, alarm.kind)
        revision = await put(client, subject, alarm.to_bytes(), wish.expected, WRITE_S)
        self._model.hear_alarm(alarm, revision, self._clock.monotonic(), self._clock.utc_us())

    async def take(self, table: str, kind: str, revision: int, person: str) -> None:
        """A person takes an alarm as they saw it. `AlarmRefused`, or `NotConnected`, says why not."""
        alarms = self._model.alarms
        await self._change(
            table, kind, lambda: alarms.take(table, kind, revision, person, self._clock.utc_us())
        )

    async def give_back(self, table: str, kind: str, revision: int, person: str) -> None:
        """Who took an alarm gives it back."""
        await self._change(table, kind, lambda: self._model.alarms.give_back(table, kind, revision, person))

    async def send_note(self, table: str, note: Note) -> None:
        """Send a note to a table's screen. `NoteNotShown`, `NoteUnfit` or `NotConnected` says why not."""
        client = self._client
        if client is None:
            raise NotConnected("no server of the floor answers")
        await self._notes.send(client, table, note)

    async def _change(self, table: str, kind: str, wish: Callable[[], Wish]) -> None:
        client = self._client
        if client is None:
            raise NotConnected("no server of the floor answers")
        try:
            await self._write(client, wish())
        except LOST as error:
            if not is_wrong_sequence(error):
                raise NotConnected(f"the floor did not answer: {error or type(error).__name__}") from error
            await self._read_again(client, table, kind)
            wish()  # says who was first
            raise AlarmChanged("this alarm changed at this moment") from error
        finally:
            self._judge(self._clock.monotonic())  # pages show it at once

    async def _read_again(self, client: Client, table: str, kind: str) -> None:
        subject = self._names.alarm_subject(table, kind)
        try:
            entry = await newest(client, bucket_stream(self._names.alarm_bucket), subject, WRITE_S)
        except LOST as error:
            raise NotConnected(f"the floor did not answer: {error or type(error).__name__}") from error
        if entry is not None and entry.data:
            self._hear_alarm(table, kind, entry.data, entry.seq)


async def _until_one_ends(*tasks: Coroutine[Any, Any, Any]) -> None:
    """Run tasks until the first of them ends, and raise what ended it."""
    running = [asyncio.ensure_future(each) for each in tasks]
    try:
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _entries(watcher: "KeyValue.KeyWatcher", deleted: bool = False) -> "AsyncIterator[KeyValue.Entry]":
    async for entry in watcher:
        if entry is not None and (deleted or entry.operation not in GONE):
            yield entry


def _check_key(key: str, said: str) -> None:
    if key != said:
        raise BadPayload(f"the entry {key} says that it is {said}")
