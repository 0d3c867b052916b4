"""A site of a real server whose tables speak as the test says: entries, heartbeats, alarms. In a thread."""

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterable
from typing import Any, Self, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import KeyNotFoundError
from tests.wall.floor_of_tables import beat_of, entry

from sabot_floor.connection import Servers, connect
from sabot_floor.names import SiteNames, bucket_stream, state_key
from sabot_floor.payloads import Alarm, NoteAnswer, NoteSent
from sabot_floor.streams import StreamSettings, set_up

Answer = TypeVar("Answer")
WAIT_S = 60.0


class SpokenFloor:
    """Tables without publishers. Use it as a context manager; its methods are for any thread."""

    def __init__(self, servers: Servers, site: str) -> None:
        self.servers = servers
        self.site = site
        self.names = SiteNames(site)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._client: Client | None = None
        self._beating: dict[str, dict[str, Any]] = {}
        self._numbers: dict[str, int] = {}
        self._beats: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._begin())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()

    def _run(self, task: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(WAIT_S)

    async def _begin(self) -> None:
        self._client = await connect(self.servers, "tables", lambda: None)
        settings = StreamSettings(replicas=1, max_bytes=2**26, bucket_bytes=2**24)
        await set_up(self._client.jetstream(timeout=30), self.names, settings)
        self._beats = asyncio.create_task(self._beat())

    async def _end(self) -> None:
        assert self._client is not None
        assert self._beats is not None
        self._beats.cancel()
        await asyncio.gather(self._beats, return_exceptions=True)
        js = self._client.jetstream(timeout=30)
        for each in (
            self.names.stream,
            bucket_stream(self.names.state_bucket),
            bucket_stream(self.names.alarm_bucket),
        ):
            await js.delete_stream(each)
        await self._client.close()

    async def _beat(self) -> None:
        assert self._client is not None
        while True:
            for table, told in list(self._beating.items()):
                number = self._numbers.get(table, 0)
                data = beat_of(table, **{"state": number, **told}).to_bytes()
                await self._client.publish(self.names.beat(table), data)
            await asyncio.sleep(0.5)

    # -- what tables say ------------------------------------------------------------------------

    def tables(self, names: Iterable[str], **told: Any) -> None:
        """Tables that are in play and beat."""

        async def begin() -> None:
            for each in names:
                await self._tell(each, told)
                self._beating[each] = {}

        self._run(begin())

    def tell(self, table: str, **told: Any) -> None:
        """A table writes its state."""
        self._run(self._tell(table, told))

    async def _tell(self, table: str, told: dict[str, Any]) -> None:
        number = self._numbers[table] = self._numbers.get(table, 0) + 1
        await self._put(state_key(table), json.dumps(entry(table, **{"number": number, **told})).encode())

    def put(self, key: str, data: bytes) -> None:
        """Write any entry of the states' bucket."""
        self._run(self._put(key, data))

    async def _put(self, key: str, data: bytes) -> None:
        assert self._client is not None
        await self._client.jetstream(timeout=30).publish(self.names.key_subject(key), data)

    def beat(self, table: str, **told: Any) -> None:
        """What the heartbeats of a table say from now on."""
        self._beating[table] = told

    def say(self, subject: str, data: bytes) -> None:
        """Publish anything."""

        async def publish() -> None:
            assert self._client is not None
            await self._client.publish(subject, data)
            await self._client.flush()

        self._run(publish())

    def answer_notes(self, table: str, refuse: str = "") -> list[NoteSent]:
        """A table takes every note, or refuses each with these words; what it heard is added to the list."""
        heard: list[NoteSent] = []

        async def answer(message: Msg) -> None:
            assert self._client is not None
            heard.append(NoteSent.read(message.data))
            told = NoteAnswer(table=table, note_id=heard[-1].note_id, taken=not refuse, words=refuse)
            await self._client.publish(self.names.noted(table), told.to_bytes())

        async def listen() -> None:
            assert self._client is not None
            await self._client.subscribe(self.names.note(table), cb=answer)
            await self._client.flush()

        self._run(listen())
        return heard

    def mute(self, *tables: str) -> None:
        """Tables that no longer beat."""
        for each in tables:
            self._beating.pop(each, None)

    def alarm(self, alarm: Alarm) -> None:
        """Somebody raises an alarm."""

        async def publish() -> None:
            assert self._client is not None
            js = self._client.jetstream(timeout=30)
            await js.publish(self.names.alarm_subject(alarm.table, alarm.kind), alarm.to_bytes())

        self._run(publish())

    def entry_of(self, table: str, kind: str) -> Alarm | None:
        """An alarm as it is in the bucket."""

        async def read() -> Alarm | None:
            assert self._client is not None
            bucket = await self._client.jetstream(timeout=30).key_value(self.names.alarm_bucket)
            try:
                found = await bucket.get(f"{table}.{kind}")
            except KeyNotFoundError:
                return None
            return Alarm.read(found.value or b"")

        return self._run(read())
