"""The asyncio client: the same connection and threads as the blocking client, awaited.

    async with await aio.connect("/dev/ttyACM0") as shoe:
        print(await shoe.status())
        async for event in shoe.events(after=0): ...

Nothing here blocks the event loop. Serial ports cannot be awaited on every system, so the threads of
``threaded_loop`` read the port, as they do for the blocking client; this shell awaits their futures.
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
from sabot_driver.errors import BadCredential
from sabot_driver.link_state import LinkState, Notice, Peer
from sabot_driver.received_events import LostEvents, ReceivedEvent, parse_entry
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import AnswerT, Request
from sabot_protocol.host.messages import Identity, KeySlotsAre, Role, StatusReport

T = TypeVar("T")


class AsyncClient:
    """One device, for programs with an event loop. Made by ``connect``."""

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
        """End the session and the threads."""
        await asyncio.to_thread(self._client.close)
        self._hand.shutdown()

    @property
    def identity(self) -> Identity:
        """How the device identified itself."""
        return self._client.identity

    @property
    def simulator(self) -> bool:
        """As ``Client.simulator``."""
        return self._client.simulator

    @property
    def link(self) -> LinkState:
        """The state of the link now."""
        return self._client.link

    @property
    def peer(self) -> Peer | None:
        """The device as its last session proved it."""
        return self._client.peer

    @property
    def resolved(self) -> list[Resolved]:
        """Outcomes of the commands that an earlier run left open."""
        return self._client.resolved

    @property
    def blocking(self) -> Client:
        """The blocking client of the same device, for other threads."""
        return self._client

    async def _do(self, what: Callable[..., T], *values: Any) -> T:
        self._client.loop.check_process()  # a forked child has no such thread
        return await asyncio.get_running_loop().run_in_executor(self._hand, what, *values)

    async def ask(
        self, message: Request[AnswerT], timeout: float = TIMEOUT_S, by: Credential | None = None
    ) -> AnswerT:
        """As ``Client.ask``. A task that is cancelled stops waiting; the link goes on.

        A command that is cancelled while it is under way may be executed. Its record in the journal stays
        open, and ``resolve`` tells its outcome.
        """
        deadline = Deadline(timeout)
        if by is not None and self._client.known_slot(by) is None:  # others need not wait
            slot = by.slot_among(await self.key_slots(deadline.left()))
            by = replace(by, slot=slot)
        sending = asyncio.ensure_future(self._do(self._client.submit, message, deadline.left(), by))
        try:
            number, future = await asyncio.shield(sending)
        except asyncio.CancelledError:
            sending.add_done_callback(self._drop)
            raise
        answer: asyncio.Future[AnswerT] = asyncio.wrap_future(future)
        try:
            ended, _ = await asyncio.wait([answer], timeout=deadline.left())
            if not ended:  # the driver's threads are late
                await self._do(self._client.loop.expire, future)
            return await answer
        except BadCredential as error:
            raise (error if by is None else error.presented(by.role.name.lower(), by.source)) from None
        except asyncio.CancelledError:
            answer.cancel()
            self._hand.submit(self._client.abandon, number)
            raise

    def _drop(self, sending: "asyncio.Future[Any]") -> None:
        if not sending.cancelled() and sending.exception() is None:
            self._hand.submit(self._client.abandon, sending.result()[0])

    async def status(self, timeout: float = TIMEOUT_S) -> StatusReport:
        """As ``Client.status``."""
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
        """As ``Client.listen``; the function is called in the event loop."""
        loop = asyncio.get_running_loop()
        return self._client.listen(lambda notice: _in_loop(loop, listener, notice))

    async def events(
        self, after: int | None = None, reader: str | None = None, timeout: float | None = None
    ) -> "AsyncIterator[ReceivedEvent | LostEvents]":
        """As ``Client.events``, awaited."""
        threads = self._client.loop
        threads.check_process()
        timeout = None if timeout is None else checked_timeout(timeout)
        loop = asyncio.get_running_loop()
        news = asyncio.Event()

        def tell() -> None:
            _in_loop(loop, news.set)

        threads.row_listeners.append(tell)
        try:
            at = threads.rows if after is None else after
            if reader is not None:
                at = await asyncio.to_thread(threads.journal.reader_position, reader)
            while True:
                news.clear()
                if threads.rows > at:
                    for row in await asyncio.to_thread(threads.rows_now, at):
                        yield parse_entry(row)
                        at = row.id
                        if reader is not None:
                            await asyncio.to_thread(threads.journal.set_reader_position, reader, at)
                    continue
                if threads.closed:
                    return
                try:
                    await asyncio.wait_for(news.wait(), timeout)
                except TimeoutError:
                    return
        finally:
            threads.row_listeners.remove(tell)


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
