"""The blocking client: safe to share between threads; every wait ends."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from sabot_driver.certified import CHECK_S, TRIES, Authority, Certified, list_parts, no_house, not_shown
from sabot_driver.client_state import CONNECT_S, GRACE_S, TIMEOUT_S, ClientState, Resolved, check_request
from sabot_driver.clock import Clock, Deadline, checked_timeout
from sabot_driver.credentials import Credential, free_slot
from sabot_driver.errors import (
    BadCredential,
    CertificateNotAccepted,
    Closed,
    DeviceTimeout,
    JournalDamaged,
    JournalError,
    OutcomeUnknown,
    Refused,
    SabotError,
    SessionEnded,
    WrongRole,
)
from sabot_driver.journal import Journal, JournalEntry
from sabot_driver.keyring import Keyring
from sabot_driver.link_state import Notice
from sabot_driver.loop_shell import Listener
from sabot_driver.opened_device import OpenedDevice, open_device
from sabot_driver.received_events import LostEvents, ReceivedEvent, parse_entry
from sabot_driver.threaded_loop import ThreadedLoop
from sabot_driver.transports import Transport
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import AnswerT, Request
from sabot_protocol.host.messages import (
    KeySlot,
    KeySlotsAre,
    RemoveKey,
    Revocations,
    Role,
    SetKey,
    StatusReport,
)
from sabot_protocol.wire_constants import CERTIFICATE_ID

log = logging.getLogger("sabot")

RETRY_DISK_S = 1.0
T = TypeVar("T")


class Client(ClientState[ThreadedLoop]):
    """One device, for programs that may use threads. Made by ``connect``.

    The client reconnects by itself, with pauses that grow, and tells listeners. Every call ends within its
    time-out. Ctrl-C in a call leaves the link usable.
    """

    def __init__(self, loop: ThreadedLoop, opened: OpenedDevice) -> None:
        super().__init__(loop, opened)
        self._subscribers: list[threading.Thread] = []
        self._certifying = threading.Lock()  # the device has one elevation by certificate at a time

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the session and the threads. Events that are not on disk stay on the device."""
        self.loop.close()
        for thread in self._subscribers:
            if thread is not threading.current_thread():
                thread.join(GRACE_S)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a function with every ``Notice``; the returned function ends that.

        It is called in a thread of the driver and must not wait for the device.
        """
        self.loop.listeners.append(listener)
        return lambda: self.loop.listeners.remove(listener)

    def wait_up(self, timeout: float = CONNECT_S) -> None:
        """Wait until the device takes requests; raises the reason if it does not in that time."""
        timeout = checked_timeout(timeout)
        if not self.loop.wait_up(timeout):
            raise self.no_session(timeout)

    # -- requests -------------------------------------------------------------------------------

    def ask(
        self, message: Request[AnswerT], timeout: float = TIMEOUT_S, by: Authority | None = None
    ) -> AnswerT:
        """Send a request and return its typed answer; ``by`` is the person who authorises it.

        A device checks a certificate's signatures only while nothing moves. Each of them has
        ``certified.CHECK_S``, before the time-out begins.

        Refused (with its kinds) if the device refuses; DeviceTimeout, LinkLost, DeviceRebooted and others as
        they are named. A command that ends in DeviceTimeout may be executed all the same: ``resolve`` tells.
        """
        deadline = Deadline(timeout)
        if isinstance(by, Certified):
            return self._ask_certified(message, by, timeout)
        number, future = self.submit(message, timeout, by)
        try:
            return self._result(future, deadline, number)
        except BadCredential as error:
            raise (error if by is None else error.presented(by.role.name.lower(), by.source)) from None

    def _ask_certified(self, message: Request[AnswerT], by: Certified, timeout: float) -> AnswerT:
        """Have the device check the person's signature, and then ask."""
        check_request(message, by)
        with self._certifying:
            for left in reversed(range(TRIES)):
                try:
                    self._authorise(message, by)
                    return self.ask(message, timeout)
                except (SessionEnded, WrongRole):  # the session ended, or the device had no room for events
                    if not left:
                        raise
                    self.wait_up()
        raise AssertionError("unreachable")

    def _authorise(self, message: Request[Any], by: Certified) -> None:
        """Have a proof checked, and before it the certificate, if this cable has not seen it."""
        try:
            self.ask(self._elevation(message, by), CHECK_S)
        except CertificateNotAccepted as error:
            if not not_shown(error.detail):
                raise
            self.ask(by.certificate, CHECK_S)
            self.ask(self._elevation(message, by), CHECK_S)

    def hand_over_revocations(
        self, number: int, ids: bytes, signature: bytes, timeout: float = CHECK_S
    ) -> bool:
        """Give the device the house's list of revoked certificates; False if the device belongs to no house.

        CertificateNotAccepted for a list that is older than the device's, or not of its house. The device
        takes a list only while nothing moves; until then this waits.
        """
        deadline = Deadline(timeout)
        count = len(ids) // CERTIFICATE_ID
        try:
            known = self.ask(Revocations(number, count, 0, b"", b""), deadline.left())
        except CertificateNotAccepted as error:
            if no_house(error.detail):
                return False
            raise
        for part in list_parts(number, ids, signature, known):
            self.ask(part, deadline.left())
        return True

    def submit(
        self, message: Request[AnswerT], timeout: float = TIMEOUT_S, by: Credential | None = None
    ) -> "tuple[int, Future[AnswerT]]":
        """Send a request without waiting: its number, and a future that ends within the time-out.

        TypeError for what is no request or no credential, ValueError for a time-out or a key out of range.
        """
        check_request(message, by)
        if isinstance(by, Certified):
            raise TypeError("a certificate takes several requests: use ask")
        deadline = Deadline(timeout)
        who = self._slot_and_key(by, deadline)
        self._forget_slots(message)
        timeout_ms = self.loop.clock.to_ms(deadline.left())
        return self.loop.call(self.loop.connection.request, message, timeout_ms, who)

    def _slot_and_key(self, by: Credential | None, deadline: Deadline) -> tuple[int, bytes] | None:
        """A credential as the wire needs it; the device is asked for the slot once."""
        if by is None:
            return None
        by.check()
        slot = self.known_slot(by)
        if slot is None:
            slot = by.slot_among(self.key_slots(deadline.left()))
        return slot, by.key

    def abandon(self, number: int) -> None:
        """Stop waiting for an answer."""
        self.loop.call(self.loop.connection.abandon, number)

    def _result(self, future: "Future[T]", deadline: Deadline, number: int | None = None) -> T:
        try:
            with contextlib.suppress(FutureTimeout):
                return future.result(deadline.left())
            if not future.done():
                self.loop.expire(future, GRACE_S)
            return future.result(0)
        except FutureTimeout as error:
            if isinstance(error, SabotError):
                raise
            raise DeviceTimeout("the driver itself did not answer in time", number) from error
        except CancelledError as error:
            raise Closed("the request was cancelled") from error
        except BaseException as error:
            if number is not None and not future.done():  # Ctrl-C: the link goes on without this request
                future.cancel()
                self.abandon(number)
            if isinstance(error, RuntimeError) and isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None  # it came while Python took up a lock again
            raise

    def status(self, timeout: float = TIMEOUT_S) -> StatusReport:
        """The device's state, round and clock."""
        return self.ask(messages.Status(), timeout)

    def key_slots(self, timeout: float = TIMEOUT_S) -> KeySlotsAre:
        """The roles and people whose keys the device has."""
        self._held = self.ask(messages.KeySlots(), timeout)
        return self._held

    def set_key(
        self,
        role: Role,
        key: bytes,
        person: int = 0,
        slot: int | None = None,
        by: Authority | None = None,
        timeout: float = TIMEOUT_S,
    ) -> int:
        """Give a person's key to the device and return its slot; without ``slot`` the first free one.

        The device gets a key derived from the person's, which works for this device and slot only. While a
        new device is provisioned its owner may fill empty slots; everything else needs service (``by``).
        """
        deadline = Deadline(timeout)
        if slot is None:
            slot = free_slot(self.key_slots(deadline.left()).slots)
        self.ask(self._set_key_message(slot, role, person, key), deadline.left(), by)
        return slot

    def set_observers_key(self, key: bytes, by: Authority | None = None, timeout: float = TIMEOUT_S) -> None:
        """Set the key of observers; their present sessions end."""
        self.ask(SetKey(KeySlot.OBSERVER, Role.OBSERVER, 0, key), timeout, by)

    def set_device_key(self, key: bytes, by: Authority, timeout: float = TIMEOUT_S) -> None:
        """Change the device's own key. This client goes on with it; all other sessions end.

        The keyring, if there is one, keeps both keys until the device has confirmed the new one.
        """
        serial, keyring = self._proved_serial(), self._keyring
        if keyring is not None:
            keyring.keep_next(serial, key, self.simulator)
        try:
            self.ask(SetKey(KeySlot.DEVICE, Role.TABLE, 0, key), timeout, by)
        except Refused:
            if keyring is not None:
                keyring.settle(serial, self.loop.connection.protocol.key, self.simulator)
            raise
        if keyring is not None:
            keyring.settle(serial, key, self.simulator)

    def remove_key(self, slot: int, by: Authority, timeout: float = TIMEOUT_S) -> None:
        """Empty a slot; elevations proved with its key end."""
        self.ask(RemoveKey(slot), timeout, by)

    def resolve(self, number: int, timeout: float = TIMEOUT_S) -> Resolved:
        """The outcome of a command that was given up, from the device's ledger; never a guess."""
        deadline = Deadline(timeout)
        kind, memory_id = self._given_up(number)
        timeout_ms = self.loop.clock.to_ms(deadline.left())
        future = self.loop.call(self.loop.connection.resolve, number, kind, memory_id, timeout_ms)
        try:
            self._result(future, deadline)
        except (OutcomeUnknown, Refused) as error:
            return Resolved.refused(number, kind, error)
        return Resolved(number, kind.NAME, "done")

    def resolve_open(self, timeout: float = TIMEOUT_S) -> list[Resolved]:
        """The outcome of every command that this journal has open, oldest first."""
        deadline = Deadline(timeout)
        return [self.resolve(each.number, deadline.left()) for each in self.journal.commands(open_only=True)]

    # -- events ---------------------------------------------------------------------------------

    def events(
        self, after: int | None = None, reader: str | None = None, timeout: float | None = None
    ) -> "Iterator[ReceivedEvent | LostEvents]":
        """Events in order, from the journal: first those that are there, then as they come.

        ``after`` is the id of the last event that was processed (0: from the beginning; None: from now on).
        The journal keeps the position of a named ``reader``: an event counts as processed when the next one
        is asked for. The iterator ends after ``timeout`` seconds without an event, or when the client is
        closed while it waits. On a closed client it raises Closed.
        """
        loop = self.loop
        timeout = None if timeout is None else checked_timeout(timeout)
        at = self._start(after, reader)
        with contextlib.suppress(Closed):
            while rows := loop.rows_after(at, timeout):
                for row in rows:
                    yield parse_entry(row)
                    at = row.id
                    if reader is not None:
                        loop.set_reader_position(reader, at)

    def _start(self, after: int | None, reader: str | None) -> int:
        """The row after which events are read. Raises Closed after ``close``."""
        self.loop.check_open()
        if reader is not None:
            return self.journal.reader_position(reader)
        return self.loop.rows if after is None else after

    def on_event(
        self,
        callback: "Callable[[ReceivedEvent | LostEvents], None]",
        after: int | None = None,
        reader: str | None = None,
    ) -> None:
        """Call a function with every event, in order, in a thread of its own, until the client is closed.

        A function that raises is not called again, and listeners are told ``subscriber_failed``; a
        ``reader`` gets that event again when it subscribes again. While the journal fails, events wait.
        """
        at = self._start(after, reader)
        args = (callback, at, reader)
        thread = threading.Thread(target=self._deliver, args=args, name="sabot-events", daemon=True)
        self._subscribers.append(thread)
        thread.start()

    def _deliver(
        self, callback: "Callable[[ReceivedEvent | LostEvents], None]", at: int, reader: str | None
    ) -> None:
        loop = self.loop
        marked = at
        rows: list[JournalEntry] = []
        while True:
            try:
                if reader is not None and marked != at:
                    loop.set_reader_position(reader, at)
                    marked = at
                rows = rows or loop.rows_after(at, None)
            except Closed:
                return
            except JournalError as error:
                log.warning("events wait for the journal: %s", error)
                if loop.wait_closed(RETRY_DISK_S):
                    return
                continue
            event = parse_entry(rows.pop(0))
            try:
                callback(event)
            except Exception as error:
                log.exception("the function called with events failed at event %d", event.id)
                words = f"the function called with events failed and is not called again: {error!r}"
                loop.notify(Notice("subscriber_failed", words, SabotError(words, "Correct the program.")))
                return
            at = event.id


def connect(
    url: str,
    *,
    key: bytes | None = None,
    serial: bytes | None = None,
    owner: bool = True,
    simulator: bool | None = None,
    slot: KeySlot | None = None,
    journal: Path | Journal | Callable[[bytes], Path] | None = None,
    keyring: Keyring | None = None,
    timeout: float = CONNECT_S,
    clock: Clock | None = None,
    transport: Transport | None = None,
) -> Client:
    """Open a device, authenticate both sides, and return a client whose link is up.

    ``key`` is the device's key. Without it the keyring finds it by serial number, or finds the observers' key
    if ``owner`` is false. ``slot`` says that a ``key`` is the observers'. ``journal`` is where events go: a
    file, a function that gives one by serial number, or None for a journal in memory, which ends with the
    program. What is wrong is raised within ``timeout``. Here and in every call a time-out is at most 72
    hours; ValueError for more.

    ``simulator`` says whether an emulated device is expected; None takes it from the URL: ``sim://`` is one,
    everything else is a machine. A device of the other kind is WrongDevice. What the device says of itself
    does not decide this, because an impostor can say anything. A new simulator is given a key, unless a
    machine with its serial number is known here; a new machine is NotProvisioned.
    """
    deadline = Deadline(timeout)
    opened = open_device(
        url,
        deadline,
        key=key,
        serial=serial,
        owner=owner,
        simulator=simulator,
        slot=slot,
        journal=journal,
        keyring=keyring,
        clock=clock,
        transport=transport,
    )
    loop = ThreadedLoop(opened.connection, opened.transport, opened.journal, opened.clock)
    loop.start()
    client = Client(loop, opened)
    try:
        if not loop.wait_up(deadline.left(), unless_failed=True):
            raise client.no_session(timeout)
        opened.settle_key()
        if owner:
            client.resolved = client.resolve_open(deadline.left())
    except BaseException:
        client.close()
        raise
    return client


__all__ = ["Client", "Credential", "JournalDamaged", "Notice", "Resolved", "connect"]
