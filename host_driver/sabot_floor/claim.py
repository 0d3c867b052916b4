"""Which publisher has a table: an entry taken by compare-and-set, whose number every message carries."""

import asyncio
import contextlib
import time

from nats.aio.client import Client

from sabot_floor.connection import LOST, Entry, is_wrong_sequence, newest, put
from sabot_floor.errors import BadPayload, PublisherRefused
from sabot_floor.names import CHAINS, SiteNames, bucket_stream, claim_key
from sabot_floor.payloads import Claim, Heartbeat, RowMessage

LISTEN_S = 6.0
"""Three heartbeats: another run that lives is heard within this time."""
TRIES = 5
STALE_S = 1.0


class Claiming:
    """Takes and keeps the claim of one run of one table PC."""

    def __init__(self, names: SiteNames, table: str, pc: str, run: str, listen_s: float = LISTEN_S) -> None:
        self._names = names
        self._table = table
        self._pc = pc
        self._run = run
        self._listen_s = listen_s
        self._number = 0

    async def take(self, client: Client, timeout: float) -> int:
        """The number of this run's claim; `PublisherRefused` if another publisher has the table.

        Numbers rise, also if servers have lost the newest claim: a new one is above all that rows carry.
        """
        subject = self._names.key_subject(claim_key(self._table))
        stream = bucket_stream(self._names.state_bucket)
        for left in reversed(range(TRIES)):
            entry = await newest(client, stream, subject, timeout)
            claim = _read(entry)
            if claim is not None and claim.run == self._run:
                return claim.number
            newer = claim is not None and claim.number > self._number
            if self._number and not newer and left > 1:
                await asyncio.sleep(STALE_S)  # perhaps a replica that does not have this run's claim yet
                continue
            if claim is not None and claim.run:
                await self._check(client, claim, newer)
            carried = await self._carried(client, timeout)
            highest = max(self._number, 0 if claim is None else claim.number, carried)
            now_us = time.time_ns() // 1000
            mine = Claim(
                table=self._table, pc=self._pc, run=self._run, number=highest + 1, at_us=now_us
            )
            try:
                await put(client, subject, mine.to_bytes(), 0 if entry is None else entry.seq, timeout)
            except LOST as error:
                if not is_wrong_sequence(error):
                    raise
                continue  # somebody else was quicker, or a replica answered with an old entry
            self._number = mine.number
            return mine.number
        raise PublisherRefused(f"table {self._table}: other programs take its claim all the time")

    async def _carried(self, client: Client, timeout: float) -> int:
        """The highest claim number of the newest rows in the stream."""
        found = [0]
        for chain in CHAINS:
            entry = await newest(client, self._names.stream, self._names.rows(self._table, chain), timeout)
            with contextlib.suppress(BadPayload):
                found += [] if entry is None else [RowMessage.read(entry.data).claim]
        return max(found)

    async def _check(self, client: Client, claim: Claim, newer: bool) -> None:
        if claim.pc != self._pc:
            raise PublisherRefused(f"table {self._table} belongs to another table PC ({claim.pc[:16]}…)")
        if self._number and newer:
            raise PublisherRefused(f"table {self._table}: another program has taken the claim from this one")
        if await self._is_alive(client):
            raise PublisherRefused(f"table {self._table}: another program publishes it now")

    async def _is_alive(self, client: Client) -> bool:
        """Whether a heartbeat of another run comes."""
        heard = asyncio.Event()

        async def listen(message: object) -> None:
            try:
                beat = Heartbeat.read(message.data)  # type: ignore[attr-defined]
            except BadPayload:
                return
            if beat.run != self._run:
                heard.set()

        subscription = await client.subscribe(self._names.beat(self._table), cb=listen)
        try:
            async with asyncio.timeout(self._listen_s):
                await heard.wait()
        except TimeoutError:
            return False
        finally:
            await subscription.unsubscribe()
        return True


def _read(entry: Entry | None) -> Claim | None:
    if entry is None or not entry.data:
        return None
    try:
        return Claim.read(entry.data)
    except BadPayload as error:
        raise PublisherRefused(f"the claim cannot be read: {error}") from error


async def release(client: Client, names: SiteNames, table: str, timeout: float = 10.0) -> None:
    """Give a table's claim free, after its PC was replaced.

    The first publisher that takes the claim then has the table; every other PC is refused. So the old PC
    must be off: if it is on and connects again first, it has the table again.
    """
    free = Claim(table=table, pc="", run="", number=0, at_us=time.time_ns() // 1000)
    await put(client, names.key_subject(claim_key(table)), free.to_bytes(), None, timeout)
