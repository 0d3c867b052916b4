"""The asyncio client: the same core and line, awaited. Nothing here blocks the loop.

    async with await aio.connect("/dev/ttyACM0") as shoe:
        print(await shoe.status())
        async for event in shoe.events(after=0): ...

Serial ports cannot be awaited on every system, so the line's own threads do the reading, as they do for the
blocking client; this shell only turns their futures into awaitables.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

from sabot_driver import client as blocking
from sabot_driver.client import CONNECT_S, TIMEOUT_S, Client, Resolved
from sabot_driver.clock import Deadline, checked_timeout
from sabot_driver.credentials import Credential
from sabot_driver.link_state import LinkState, Notice, Peer
from sabot_driver.received_events import LostEvents, ReceivedEvent, parse_entry
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import AnswerT, Request
from sabot_protocol.host.messages import Identity, KeySlotsAre, Role, StatusReport

T = TypeVar("T")


class AsyncClient:
    """One device, from a program with an event loop. Made by ``connect``."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # one thread, so that what is asked in order is sent in order
        self._hand = ThreadPoolExecutor(1, "sabot-asyncio")

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the device."""
        await asyncio.to_thread(self._client.close)
        self._hand.shutdown()

    @property
    def identity(self) -> Identity:
        """What the device said of itself."""
        return self._client.identity

    @property
    def simulator(self) -> bool:
        """Whether the device says that it is emulated."""
        return self._client.simulator

    @property
    def link(self) -> LinkState:
        """How things stand now."""
        return self._client.link

    @property
    def peer(self) -> Peer | None:
        """The device as it proved itself."""
        return self._client.peer

    @property
    def resolved(self) -> list[Resolved]:
        """Commands that an earlier run left open, as the device's ledger has them."""
        return self._client.resolved

    @property
    def blocking(self) -> Client:
        """The blocking client of the same line, for other threads."""
        return self._client

    async def _do(self, what: Callable[..., T], *values: Any) -> T:
        self._client.io_loop.check_process()  # a forked child has no such thread
        return await asyncio.get_running_loop().run_in_executor(self._hand, what, *values)

    async def ask(
        self, message: Request[AnswerT], timeout: float = TIMEOUT_S, by: Credential | None = None
    ) -> AnswerT:
        """As ``Client.ask``. A task that is cancelled stops waiting; the link goes on.

        A command cancelled while it is under way may be executed; its record in the journal stays open and
        ``resolve`` tells its end.
        """
        until = Deadline(timeout)
        if by is not None and self._client.known_slot(by) is None:  # others are not kept waiting for that
            slot = by.slot_among(await self.key_slots(until.left()))
            by = replace(by, slot=slot)
        asking = asyncio.ensure_future(self._do(self._client.submit, message, until.left(), by))
        try:
            number, future = await asyncio.shield(asking)
        except asyncio.CancelledError:
            asking.add_done_callback(self._drop)
            raise
        answer: asyncio.Future[AnswerT] = asyncio.wrap_future(future)
        try:
            ended, _ = await asyncio.wait([answer], timeout=until.left())
            if not ended:  # whoever should end it is late
                await self._do(self._client.io_loop.expire, future)
            return await answer
        except asyncio.CancelledError:
            answer.cancel()
            self._hand.submit(self._client.abandon, number)
            raise

    def _drop(self, asking: "asyncio.Future[Any]") -> None:
        if not asking.cancelled() and asking.exception() is None:
            self._hand.submit(self._client.abandon, asking.result()[0])

    async def status(self, timeout: float = TIMEOUT_S) -> StatusReport:
        """How the device is."""
        return await self.ask(messages.Status(), timeout)

    async def key_slots(self, timeout: float = TIMEOUT_S) -> KeySlotsAre:
        """As ``Client.key_slots``."""
        return await self.ask(messages.KeySlots(), timeout)

    async def set_key(
        self,
        role: Role,
        key: bytes,
        person: int = 0,
        slot: int | None = None,
        by: Credential | None = None,
        timeout: float = TIMEOUT_S,
    ) -> int:
        """As ``Client.set_key``."""
        return await asyncio.to_thread(self._client.set_key, role, key, person, slot, by, timeout)

    async def resolve(self, number: int, timeout: float = TIMEOUT_S) -> Resolved:
        """As ``Client.resolve``."""
        return await asyncio.to_thread(self._client.resolve, number, timeout)

    async def wait_up(self, timeout: float = CONNECT_S) -> None:
        """As ``Client.wait_up``."""
        await asyncio.to_thread(self._client.wait_up, timeout)

    def listen(self, listener: Callable[[Notice], None]) -> Callable[[], None]:
        """Have a function called in the loop with every ``Notice``; the function returned ends that."""
        loop = asyncio.get_running_loop()
        return self._client.listen(lambda notice: _in_loop(loop, listener, notice))

    async def events(
        self, after: int | None = None, reader: str | None = None, timeout: float | None = None
    ) -> "AsyncIterator[ReceivedEvent | LostEvents]":
        """As ``Client.events``, awaited."""
        line = self._client.io_loop
        line.check_process()
        timeout = None if timeout is None else checked_timeout(timeout)
        loop = asyncio.get_running_loop()
        news = asyncio.Event()

        def tell() -> None:
            _in_loop(loop, news.set)

        line.row_listeners.append(tell)
        try:
            at = line.rows if after is None else after
            if reader is not None:
                at = await asyncio.to_thread(line.journal.reader_position, reader)
            while True:
                news.clear()
                if line.rows > at:
                    for row in await asyncio.to_thread(line.rows_now, at):
                        yield parse_entry(row)
                        at = row.id
                        if reader is not None:
                            await asyncio.to_thread(line.journal.set_reader_position, reader, at)
                    continue
                if line.closed:
                    return
                try:
                    await asyncio.wait_for(news.wait(), timeout)
                except TimeoutError:
                    return
        finally:
            line.row_listeners.remove(tell)


def _in_loop(loop: asyncio.AbstractEventLoop, what: Callable[..., object], *values: object) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(what, *values)


async def connect(url: str, **named: Any) -> AsyncClient:
    """As ``sabot_driver.connect``, awaited; cancelled, it closes what it has opened by then."""
    connecting = asyncio.ensure_future(asyncio.to_thread(functools.partial(blocking.connect, url, **named)))
    try:
        return AsyncClient(await asyncio.shield(connecting))
    except asyncio.CancelledError:
        connecting.add_done_callback(_close)
        raise


def _close(connecting: "asyncio.Future[Client]") -> None:
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().close()
