"""A table of an emulated floor in an event loop: many of them run in one process.

Firmware core, driver, session, journal and record are the real ones. The driver is the asyncio shell. The
session is stepped here; what it writes to disk is done in threads that all tables of the process share.
"""

import asyncio
import contextlib
import os
import random
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from sabot_cli.device_access import SIMULATED_PERSON
from sabot_driver import Credential, aio
from sabot_driver.errors import (
    DeviceRebooted,
    DeviceTimeout,
    LinkLost,
    OutcomeUnknown,
    SabotError,
    SessionEnded,
)
from sabot_driver.link_state import LinkState, Notice
from sabot_driver.received_events import LostEvents, ReceivedEvent
from sabot_driver.serial_numbers import format_serial
from sabot_floor.connection import TableSettings
from sabot_floor.publisher import READER, PublishedTable, TablePublisher
from sabot_floor.row_sources import device_source, record_source
from sabot_floor.state_entry import state_entry
from sabot_floor.table_service import leaving_terms
from sabot_floor.tasks import end_tasks
from sabot_protocol.host.message_base import Command
from sabot_protocol.host.messages import Role
from sabot_session.acts import Act
from sabot_session.needs import Need, NeedKind
from sabot_session.outcomes import ActDone, Answered, DeviceCommand, Failed
from sabot_session.record import SqliteRecord
from sabot_session.record_opening import join_chains
from sabot_session.session import TableSession
from sabot_session.snapshot import Changes
from sabot_simulators.endpoints.in_process import people_at
from sabot_simulators.simulated_staff import SimulatedRegister, SimulatedStaff
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import load
from sabot_table.wager_acceptance import every_wager

TICK_S = 1.0  # the session's times are whole seconds
ASK_S = 20.0
START_S = 300.0
KEY_SIZE = 32
DRAIN_S = 60.0
RULES = "md-three-card-baccarat"
T = TypeVar("T")


class AsyncioSession:
    """Runs a `TableSession` over the asyncio client. Acts and looks are safe from any thread."""

    def __init__(self, session: TableSession, client: aio.AsyncClient) -> None:
        self._session = session
        self._client = client
        self._lock = threading.RLock()
        self._inputs: asyncio.Queue[Callable[[], None]] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._asking: set[asyncio.Task[None]] = set()
        client.listen(self._notice)

    async def run(self) -> None:
        """Take in events, answers and time until the task is cancelled."""
        await self._inputs.put(self._link)
        events = asyncio.create_task(self._events())
        try:
            while True:
                if events.done():
                    events.result()
                await self._once()
        finally:
            await end_tasks([events, *self._asking])

    async def _once(self) -> None:
        what = self._tick
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TICK_S):
                what = await self._inputs.get()
        command = await asyncio.to_thread(self._take, what)
        if command is not None:
            asked = asyncio.create_task(self._ask(command))
            self._asking.add(asked)
            asked.add_done_callback(self._asking.discard)

    def _take(self, what: Callable[[], None]) -> DeviceCommand | None:
        with self._lock:
            what()
            return self._session.take_command()

    def _tick(self) -> None:
        self._session.tick(int(time.time()))

    # -- the device -----------------------------------------------------------------------------

    async def _events(self) -> None:
        after = self._session.journal_of(format_serial(self._client.identity.serial))
        async for event in self._client.events(after):
            await self._inputs.put(lambda event=event: self._event(event))  # type: ignore[misc]

    def _event(self, event: ReceivedEvent | LostEvents) -> None:
        now_s = int(time.time())
        if isinstance(event, LostEvents):
            self._session.events_lost(event.id, now_s)
        else:
            self._session.device_event(event.id, event.message, event.boot_id, event.n, now_s)

    def _notice(self, notice: Notice) -> None:
        if notice.kind in ("up", "down", "rebooted"):
            self._inputs.put_nowait(self._link)

    def _link(self) -> None:
        peer, up = self._client.peer, self._client.link is LinkState.UP
        if peer is None:
            return
        self._session.link(
            up,
            int(time.time()),
            serial=format_serial(peer.serial),
            memory_id=peer.memory_id.hex(),
            model=self._client.identity.model,
            emulated=self._client.simulator,
        )

    async def _ask(self, command: DeviceCommand) -> None:
        result = await self._result(command)
        await self._inputs.put(lambda: self._session.answer(command.id, result, int(time.time())))

    async def _result(self, command: DeviceCommand) -> Answered | Failed:
        client, number = self._client, 0
        if command.needs_key and command.key is None:
            return Failed()  # the person must act again
        try:
            who = None
            if command.key is not None:
                slot = client.known_slot(command.key)
                who = (
                    command.key.slot_among(await client.key_slots()) if slot is None else slot,
                    command.key.key,
                )
            limit_ms = client.loop.clock.to_ms(ASK_S)
            request = client.loop.connection.request
            sent, future = client.loop.call(request, command.message, limit_ms, who)
            number = sent if isinstance(command.message, Command) else 0
            return Answered(await asyncio.wrap_future(future), number)
        except (DeviceTimeout, LinkLost, OutcomeUnknown, DeviceRebooted, SessionEnded):
            return await self._looked_up(number) if number else Failed(None)
        except SabotError as error:
            return Failed(error, number)

    async def _looked_up(self, number: int) -> Answered | Failed:
        """A command without an answer: the device's ledger tells its outcome once it can be asked."""
        while True:
            try:
                outcome = (await self._client.resolve(number, ASK_S)).outcome
            except (DeviceTimeout, LinkLost):
                await asyncio.sleep(TICK_S)
                continue
            return Answered(None, number) if outcome == "done" else Failed(None, number, outcome == "unknown")

    # -- people and publisher, in other threads -------------------------------------------------

    def needs(self) -> list[Need]:
        """What must happen now."""
        with self._lock:
            return self._session.needs()

    def act(self, act_id: str, need_id: str | None, seen: int, credential: object, act: Act) -> ActDone:
        """Give an act."""
        with self._lock:
            done = self._session.act(act_id, need_id, seen, credential, act, int(time.time()))
        self._loop.call_soon_threadsafe(self._inputs.put_nowait, lambda: None)
        return done

    def read(self, look: Callable[[TableSession], T]) -> T:
        """Look at the session while nothing changes it."""
        with self._lock:
            return look(self._session)

    def wait_changes(self, after: str | None, timeout: float) -> Changes | None:
        """What changed since a cursor; it never waits."""
        with self._lock:
            return self._session.changes(after)


class AsyncioTable:
    """One table that is played and published while `run` runs."""

    def __init__(
        self, folder: Path, settings: TableSettings, query: str, pace_s: float, round_s: float = 0.0
    ) -> None:
        """``query`` is that of the device's URL; ``pace_s`` lies between two acts of people.

        Bets close no sooner than ``round_s`` after those of the round before, as players take their time.
        """
        serial = f"{settings.table.upper().replace('-', ''):0<8}"[:8]
        self.name = settings.table
        self.journal_path = folder / f"{settings.table}.db"
        self.record_path = folder / f"{settings.table}.table.db"
        self._url = f"sim://{settings.table}?serial={serial}&{query}"
        self._settings = settings
        self._pace_s = pace_s
        self._round_s = round_s
        self.plays = asyncio.Event()
        """Set when the device is connected and people are there."""

    async def run(self, stop: asyncio.Event) -> None:
        """Connect, play and publish until ``stop``; then switch off, and publish what is left."""
        async with contextlib.AsyncExitStack() as stack:
            async with await aio.connect(self._url, journal=self.journal_path, timeout=START_S) as client:
                key = await _give_keys(client)
                record = SqliteRecord(self.record_path)
                stack.callback(record.close)
                join_chains(record, client.journal)
                rules = load(RULES)
                made = TableSession(rules, record, SimulatedRegister(), table=self.name)
                session = AsyncioSession(made, client)
                publisher = self._publisher(client, session)
                stack.callback(publisher.close)
                publishing = asyncio.create_task(publisher.run())
                stack.push_async_callback(end_tasks, [publishing])
                people = self._attend(session, key, every_wager(rules))
                await _until_one_ends(stop.wait(), session.run(), people)
            await _published(publisher)

    def _publisher(self, client: aio.AsyncClient, session: AsyncioSession) -> TablePublisher:
        rules, journal = load(RULES), client.journal
        level = leaving_terms(rules, None).leaves
        journal.set_reader_position(READER, 0)

        def read_up_to(id: int) -> None:
            if not client.loop.closed:
                journal.set_reader_position(READER, id)

        sources = [
            device_source(self.journal_path, level, read_up_to),
            record_source(self.record_path, level),
        ]
        pc = journal.chain.chain.public
        table = PublishedTable(level, pc, sources, session, lambda seen: state_entry(seen, rules, level))
        return TablePublisher(self._settings, table)

    async def _attend(self, session: AsyncioSession, key: bytes, wagers: Any) -> None:
        """Simulated people meet the table's needs, one at a time."""
        people = people_at(self._url)
        assert people is not None
        self.plays.set()
        floor, service = Credential(Role.FLOOR, key), Credential(Role.SERVICE, key)
        staff = SimulatedStaff(
            session, wagers, floor, service, people.hands.__getitem__,
            method=DealingMethod.AUTOMATED_SHOE, cut_shoe=people.cut_shoe,
        )  # fmt: skip
        await asyncio.sleep(random.random() * self._pace_s)
        pace = RoundPace(self._round_s)
        while True:
            met = await asyncio.to_thread(_meet, staff, pace.leave())
            pace.met(met)
            await asyncio.sleep(self._pace_s)


class RoundPace:
    """How often bets close at one table. The first time is anywhere in a round, so that tables differ."""

    def __init__(self, round_s: float) -> None:
        self._round_s = round_s
        self._due = time.monotonic() + random.random() * round_s

    def leave(self) -> frozenset[NeedKind]:
        """The needs that people leave alone now: bets, until they are due."""
        return frozenset({NeedKind.BETS}) if time.monotonic() < self._due else frozenset()

    def met(self, need: Need | None) -> None:
        """People have met a need."""
        if need is not None and need.kind is NeedKind.BETS:
            self._due = time.monotonic() + self._round_s


async def _until_one_ends(*parts: Coroutine[Any, Any, Any]) -> None:
    """Run parts until one of them ends, and raise its error."""
    tasks = [asyncio.create_task(each) for each in parts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        await end_tasks(tasks)


async def _published(publisher: TablePublisher) -> None:
    """Wait until the stream has every row of the table's files, or time is up."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            while any(each.published < each.source.head().n for each in publisher.chains):
                await asyncio.sleep(0.1)


def _meet(staff: SimulatedStaff, leave: frozenset[NeedKind]) -> Need | None:
    with contextlib.suppress(SabotError):  # such as a need that changed at this moment: they look again
        return staff.meet_one(leave)
    return None


async def _give_keys(client: aio.AsyncClient) -> bytes:
    """Give a new emulated device one key, in a slot for each role."""
    key = os.urandom(KEY_SIZE)
    for role in (Role.FLOOR, Role.SERVICE, Role.LAB):
        await client.set_key(role, key, SIMULATED_PERSON, timeout=ASK_S)
    return key
