"""Publishes one chain of a table, in order, each row once in the stream unless rows are asked for again."""

import asyncio
import contextlib
import json
import logging
import random
import time
from collections.abc import Sequence

from nats.aio.client import Client

from sabot_driver.errors import SabotError
from sabot_floor.connection import LOST, newest, put
from sabot_floor.errors import BadPayload, PublisherRefused, RowTooLarge
from sabot_floor.names import SiteNames
from sabot_floor.payloads import (
    LARGEST,
    MOST_ROWS,
    Archived,
    Ask,
    ChainBeat,
    ChainHead,
    FloorRow,
    RowMessage,
)
from sabot_floor.row_sources import RowSource
from sabot_table.rule_texts import FloorLevel

log = logging.getLogger("sabot.floor")
TIMEOUT_S = 10.0
JITTER_S = 5.0
POLL_S = 0.25
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
ROW_OVERHEAD = 160
MESSAGE_OVERHEAD = 1024


def patience_s() -> float:
    """How long to wait for an acknowledgement; never the same for all tables."""
    return TIMEOUT_S + random.random() * JITTER_S


class Pauses:
    """Pauses between attempts: each is twice as long as the one before, up to a limit, with jitter."""

    def __init__(self) -> None:
        self._next_s = FIRST_PAUSE_S

    def next_s(self) -> float:
        """How long to wait now."""
        pause, self._next_s = self._next_s, min(2 * self._next_s, LONGEST_PAUSE_S)
        return pause * (0.5 + random.random() / 2)

    def reset(self) -> None:
        """It worked."""
        self._next_s = FIRST_PAUSE_S


class ChainPublisher:
    """One chain over many connections. Memory is bounded: it holds one message at a time."""

    def __init__(self, names: SiteNames, table: str, level: FloorLevel, source: RowSource) -> None:
        self.source = source
        self.published = 0
        """The newest row that the stream has acknowledged, as far as this run knows."""
        self.messages = 0
        """Messages that the stream has acknowledged."""
        self.errors = 0
        """How often the publisher went back."""
        self._names = names
        self._table = table
        self._level = level
        self._subject = names.rows(table, source.chain)
        self._archived: ChainHead | None = None
        self._asked: int | None = None
        self._wake = asyncio.Event()
        self.behind_rows = 0
        """Rows on the table's disk that the stream has not acknowledged, when they were counted last."""
        self.behind_s = 0
        """How long the oldest of them has waited."""
        self._behind_since: float | None = None

    # -- what others tell it --------------------------------------------------------------------

    def nudge(self) -> None:
        """There may be a new row."""
        self._wake.set()

    def asked(self, ask: Ask) -> None:
        """The archive wants rows again."""
        if ask.source == self.source.source:
            self._asked = ask.after
            self.nudge()

    async def archived(self, told: Archived) -> None:
        """The archive has committed rows: the journal may be pruned up to there."""
        head = told.chains.get(self.source.chain)  # type: ignore[call-overload]
        if head is None or head.source != self.source.source:
            return
        if self._archived is None or head.n > self._archived.n:
            self._archived = head
            await asyncio.to_thread(self.source.archived, head.n)

    async def beat(self) -> ChainBeat:
        """How far the chain goes, and how far it is published."""
        head = await asyncio.to_thread(self.source.head)
        now = time.monotonic()
        if head.n <= self.published:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = now
        self.behind_s = 0 if self._behind_since is None else int(now - self._behind_since)
        published = min(self.published, head.n)
        self.behind_rows = head.n - published
        return ChainBeat(**head.model_dump(), published=published, waiting_s=self.behind_s)

    # -- publishing -----------------------------------------------------------------------------

    async def run(self, client: Client, claim: int) -> None:
        """Publish over a connection until it ends; `PublisherRefused` if another publisher has the table."""
        pauses = Pauses()
        while not client.is_closed:
            try:
                await self._follow(client, claim, pauses)
            except PublisherRefused:
                raise
            except RowTooLarge as error:
                log.error("%s: %s", self._subject, error)
                raise
            except (*LOST, SabotError) as error:
                self.errors += 1
                log.info("%s: goes back after %r", self._subject, error)
                await asyncio.sleep(pauses.next_s())

    async def _follow(self, client: Client, claim: int, pauses: Pauses) -> None:
        """Publish from the place that the stream and the archive tell, until something goes wrong."""
        expected, after = await self._place(client, claim)
        begins = await asyncio.to_thread(self.source.begins)
        after = max(after, begins.prev)
        self.published = after
        while True:
            if self._asked is not None:
                after, self._asked = max(self._asked, begins.prev), None
            self._wake.clear()
            rows = await asyncio.to_thread(self.source.rows, after, MOST_ROWS)
            if not rows:
                await self._change()
                continue
            fitting = fit(rows)
            message = RowMessage(
                table=self._table,
                chain=self.source.chain,  # type: ignore[arg-type]
                source=self.source.source,
                level=self._level,
                claim=claim,
                sent_us=time.time_ns() // 1000,
                begins=begins if fitting[0].prev == begins.prev else None,
                rows=tuple(fitting),
            )
            expected = await put(client, self._subject, message.to_bytes(), expected, patience_s())
            self.messages += 1
            after = fitting[-1].n
            self.published = max(self.published, after)
            pauses.reset()

    async def _change(self) -> None:
        """Wait until there may be a new row, or the archive asks for old ones. A look at a file is cheap."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._wake.wait()
            if self._asked is not None or self.source.changed():
                return
            self._wake.clear()

    async def _place(self, client: Client, claim: int) -> tuple[int, int]:
        """The sequence of the subject's newest message, and the newest row that need not be published."""
        archived = self._archived.n if self._archived is not None else 0
        entry = await newest(client, self._names.stream, self._subject, patience_s())
        if entry is None:
            return 0, archived
        try:
            last = RowMessage.read(entry.data)
        except BadPayload as error:
            log.warning("%s: the newest message cannot be read: %s", self._subject, error)
            return entry.seq, archived
        if last.claim > claim:
            raise PublisherRefused(f"{self._subject}: a later publisher, claim {last.claim}, has written")
        if last.source != self.source.source:
            return entry.seq, archived
        return entry.seq, max(archived, last.rows[-1].n)


def fit(rows: Sequence[FloorRow]) -> list[FloorRow]:
    """The first rows that fit into one message; `RowTooLarge` if not even the first one does."""
    left = LARGEST - MESSAGE_OVERHEAD
    found: list[FloorRow] = []
    for row in rows:
        left -= ROW_OVERHEAD + len(json.dumps(row.body, ensure_ascii=False).encode())
        if left < 0:
            break
        found.append(row)
    if not found:
        raise RowTooLarge(f"row {rows[0].n} has {len(rows[0].body)} characters")
    return found
