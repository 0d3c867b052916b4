"""The asyncio client: the connection of the blocking client, stepped by the event loop.

    async with await aio.connect("/dev/ttyACM0") as shoe:
        print(await shoe.status())
        async for event in shoe.events(after=0): ...

Nothing here blocks the event loop. A client belongs to the event loop in which it was made. Another thread
uses it through ``asyncio.run_coroutine_threadsafe``.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from sabot_driver.asyncio_loop import AsyncioLoop
from sabot_driver.certified import CHECK_S, TRIES, Authority, Certified, not_shown
from sabot_driver.client_state import CONNECT_S, GRACE_S, TIMEOUT_S, ClientState, Resolved, check_request
from sabot_driver.clock import Deadline, checked_timeout
from sabot_driver.credentials import Credential, free_slot
from sabot_driver.errors import (
    BadCredential,
    CertificateNotAccepted,
    Closed,
    DeviceTimeout,
    OutcomeUnknown,
    Refused,
    SabotError,
    SessionEnded,
    WrongRole,
)
from sabot_driver.loop_shell import Listener
from sabot_driver.opened_device import OpenedDevice, open_device
from sabot_driver.received_events import LostEvents, ReceivedEvent, parse_entry
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import AnswerT, Request
from sabot_protocol.host.messages import KeySlotsAre, Role, StatusReport

T = TypeVar("T")


class AsyncClient(ClientState[AsyncioLoop]):
    """One device, for programs with an event loop. Made by ``connect``."""

    def __init__(self, loop: AsyncioLoop, opened: OpenedDevice) -> None:
        super().__init__(loop, opened)
        self._certifying = asyncio.Lock()  # the device has one elevation by certificate at a time

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the session and the threads. Events that are not on disk stay on the device."""
        await self.loop.close()

    async def ask(
        self, message: Request[AnswerT], timeout: float = TIMEOUT_S, by: Authority | None = None
    ) -> AnswerT:
        """As ``Client.ask``. A task that is cancelled stops waiting; the link goes on.

        A command that is cancelled while it is under way may be executed. Its record in the journal stays
        open, and ``resolve`` tells its outcome.
        """
        check_request(message, by)
        deadline = Deadline(timeout)
        if isinstance(by, Certified):
            return await self._ask_certified(message, by, timeout)
        who = None if by is None else (await self._slot_of(by, deadline), by.key)
        self._forget_slots(message)
        timeout_ms = self.loop.clock.to_ms(deadline.left())
        number, future = self.loop.call(self.loop.connection.request, message, timeout_ms, who)
        try:
            return await self._result(future, deadline, number)
        except BadCredential as error:
            raise (error if by is None else error.presented(by.role.name.lower(), by.source)) from None
        finally:
            if future.cancelled():
                with suppress(Closed):
                    self.loop.call(self.loop.connection.abandon, number)

    async def _ask_certified(self, message: Request[AnswerT], by: Certified, timeout: float) -> AnswerT:
        """As the blocking client's."""
        async with self._certifying:
            for left in reversed(range(TRIES)):
                try:
                    await self._authorise(message, by)
                    return await self.ask(message, timeout)
                except (SessionEnded, WrongRole):  # the session ended, or the device had no room for events
                    if not left:
                        raise
                    await self.wait_up()
        raise AssertionError("unreachable")

    async def _authorise(self, message: Request[Any], by: Certified) -> None:
        """Have a proof checked, and before it the certificate, if this cable has not seen it."""
        try:
            await self.ask(self._elevation(message, by), CHECK_S)
        except CertificateNotAccepted as error:
            if not not_shown(error.detail):
                raise
            await self.ask(by.certificate, CHECK_S)
            await self.ask(self._elevation(message, by), CHECK_S)

    async def _slot_of(self, by: Credential, deadline: Deadline) -> int:
        by.check()
        slot = self.known_slot(by)
        return by.slot_among(await self.key_slots(deadline.left())) if slot is None else slot

    async def _result(self, future: "Future[T]", deadline: Deadline, number: int | None = None) -> T:
        """The result of a request, which the loop ends when its time is up."""
        try:
            async with asyncio.timeout(deadline.left() + GRACE_S):
                return await asyncio.wrap_future(future)
        except TimeoutError as error:
            if isinstance(error, SabotError):
                raise
            raise DeviceTimeout("the driver itself did not answer in time", number) from error

    async def status(self, timeout: float = TIMEOUT_S) -> StatusReport:
        """As ``Client.status``."""
        return await self.ask(messages.Status(), timeout)

    async def key_slots(self, timeout: float = TIMEOUT_S) -> KeySlotsAre:
        """As ``Client.key_slots``."""
        self._held = await self.ask(messages.KeySlots(), timeout)
        return self._held

    async def set_key(
        self, role: Role, key: bytes, person: int = 0, slot: int | None = None,
        by: Authority | None = None, timeout: float = TIMEOUT_S,
    ) -> int:  # fmt: skip
        """As ``Client.set_key``."""
        deadline = Deadline(timeout)
        if slot is None:
            slot = free_slot((await self.key_slots(deadline.left())).slots)
        await self.ask(self._set_key_message(slot, role, person, key), deadline.left(), by)
        return slot

    async def resolve(self, number: int, timeout: float = TIMEOUT_S) -> Resolved:
        """As ``Client.resolve``."""
        deadline = Deadline(timeout)
        kind, memory_id = await asyncio.to_thread(self._given_up, number)
        timeout_ms = self.loop.clock.to_ms(deadline.left())
        future = self.loop.call(self.loop.connection.resolve, number, kind, memory_id, timeout_ms)
        try:
            await self._result(future, deadline)
        except (OutcomeUnknown, Refused) as error:
            return Resolved.refused(number, kind, error)
        return Resolved(number, kind.NAME, "done")

    async def resolve_open(self, timeout: float = TIMEOUT_S) -> list[Resolved]:
        """As ``Client.resolve_open``."""
        deadline = Deadline(timeout)
        commands = await asyncio.to_thread(self.journal.commands, open_only=True)
        return [await self.resolve(each.number, deadline.left()) for each in commands]

    async def wait_up(self, timeout: float = CONNECT_S) -> None:
        """As ``Client.wait_up``."""
        if not await self.loop.wait_up(checked_timeout(timeout)):
            raise self.no_session(timeout)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """As ``Client.listen``; the function is called in the event loop."""
        self.loop.listeners.append(listener)
        return lambda: self.loop.listeners.remove(listener)

    async def events(
        self, after: int | None = None, reader: str | None = None, timeout: float | None = None
    ) -> "AsyncIterator[ReceivedEvent | LostEvents]":
        """As ``Client.events``, awaited."""
        loop = self.loop
        loop.check_open()
        timeout = None if timeout is None else checked_timeout(timeout)
        at = loop.rows if after is None else after
        if reader is not None:
            at = await asyncio.to_thread(self.journal.reader_position, reader)
        with suppress(Closed):
            while await loop.wait_rows(at, timeout):
                for row in await asyncio.to_thread(loop.rows_now, at):
                    yield parse_entry(row)
                    at = row.id
                    if reader is not None:
                        await asyncio.to_thread(loop.set_reader_position, reader, at)


async def connect(url: str, *, timeout: float = CONNECT_S, **named: Any) -> AsyncClient:
    """As ``sabot_driver.connect``, awaited; cancelled, it closes what it has opened by then."""
    deadline = Deadline(timeout)
    opening = asyncio.ensure_future(asyncio.to_thread(functools.partial(open_device, url, deadline, **named)))
    try:
        opened = await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_journal)
        raise
    loop = AsyncioLoop(opened.connection, opened.transport, opened.journal, opened.clock)
    client = AsyncClient(loop, opened)
    try:
        loop.start()
        if not await loop.wait_up(deadline.left(), unless_failed=True):
            raise client.no_session(timeout)
        await asyncio.to_thread(opened.settle_key)
        if opened.owner:
            client.resolved = await client.resolve_open(deadline.left())
    except BaseException:
        await client.close()
        raise
    return client


def _close_journal(opening: "asyncio.Future[OpenedDevice]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().journal.close()
