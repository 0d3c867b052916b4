"""Alarms of a site: entries of a bucket, changed by compare-and-set (docs/floor.md)."""

import time
from collections.abc import Callable
from typing import Any

from nats.aio.client import Client

from sabot_floor.connection import LOST, is_wrong_sequence, newest, put
from sabot_floor.errors import BadPayload, FloorError
from sabot_floor.names import SiteNames, bucket_stream
from sabot_floor.payloads import Alarm

TIMEOUT_S = 10.0
TRIES = 8


class AlarmBusy(FloorError):
    """Others change the alarm all the time."""

    advice = "Try again."


class Alarms:
    """Raises and ends alarms over one connection. People take them at the wall."""

    def __init__(self, client: Client, names: SiteNames, by: str) -> None:
        """``by`` is who raises them, such as ``archive``."""
        self._client = client
        self._names = names
        self._by = by

    async def raise_(self, table: str, kind: str, words: str, details: dict[str, Any] | None = None) -> bool:
        """Raise an alarm; False if it was raised already and has not ended."""

        def change(now: Alarm | None, at_us: int) -> Alarm | None:
            if now is not None and now.ended_us is None:
                return None
            return Alarm(
                table=table, kind=kind, words=words[:1000], details=details or {}, by=self._by, since_us=at_us
            )

        return await self._change(table, kind, change)

    async def end(self, table: str, kind: str) -> bool:
        """End an alarm; False if there is none that has not ended."""

        def change(now: Alarm | None, at_us: int) -> Alarm | None:
            if now is None or now.ended_us is not None:
                return None
            return now.model_copy(update={"ended_us": at_us})

        return await self._change(table, kind, change)

    async def _change(
        self, table: str, kind: str, change: Callable[[Alarm | None, int], Alarm | None]
    ) -> bool:
        subject = self._names.alarm_subject(table, kind)
        stream = bucket_stream(self._names.alarm_bucket)
        for _ in range(TRIES):
            entry = await newest(self._client, stream, subject, TIMEOUT_S)
            wanted = change(_read(entry.data) if entry is not None else None, time.time_ns() // 1000)
            if wanted is None:
                return False
            try:
                expected = 0 if entry is None else entry.seq
                await put(self._client, subject, wanted.to_bytes(), expected, TIMEOUT_S)
            except LOST as error:
                if not is_wrong_sequence(error):
                    raise
                continue
            return True
        raise AlarmBusy(f"the alarm {table}.{kind} was changed {TRIES} times meanwhile")


def _read(data: bytes) -> Alarm | None:
    try:
        return Alarm.read(data)
    except BadPayload:
        return None  # an entry of another version, or a deleted one: it is replaced
