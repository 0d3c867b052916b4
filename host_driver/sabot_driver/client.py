"""The blocking client: safe to share between threads; every wait ends."""

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from sabot_driver.clock import Clock, Deadline, checked_timeout
from sabot_driver.connection import Connection
from sabot_driver.credentials import Credential, check_key, free_slot
from sabot_driver.error_mapping import wrong_kind
from sabot_driver.errors import (
    Closed,
    DeviceTimeout,
    JournalDamaged,
    JournalError,
    KeyMissing,
    KeysLost,
    LinkLost,
    NotProvisioned,
    OutcomeUnknown,
    Refused,
    SabotError,
    WrongDevice,
)
from sabot_driver.io_loop import RETRY_DISK_S, IoLoop, Listener
from sabot_driver.journal import Journal, JournalEntry
from sabot_driver.keyring import Keyring
from sabot_driver.link_state import LinkState, Notice, Peer
from sabot_driver.received_events import LostEvents, ReceivedEvent, parse_entry
from sabot_driver.serial_numbers import format_serial
from sabot_driver.transports import People, Transport, is_simulator, transport_for
from sabot_driver.unsecured_exchange import UnsecuredExchange
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import AnswerT, Request
from sabot_protocol.host.messages import (
    Identity,
    IdentityFlag,
    KeySlot,
    KeySlotsAre,
    RemoveKey,
    Role,
    SetKey,
    StatusReport,
)
from sabot_protocol.session import slot_key
from sabot_protocol.wire_constants import KEY_SIZE

log = logging.getLogger("sabot")

TIMEOUT_S = 5.0
CONNECT_S = 10.0
GRACE_S = 5.0  # the longest the keeper may be late
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Resolved:
    """What became of a command of an earlier run of this program."""

    number: int
    request: str
    outcome: str
    """``done``, ``not_executed`` or ``unknown``."""


class Client:
    """One device, from a program that may use threads.

    Made by ``connect``. It keeps the link by itself, with pauses that grow, and says so to listeners. Every
    call ends within its time-out. Ctrl-C in a call leaves the link usable.
    """

    def __init__(
        self,
        line: IoLoop,
        identity: Identity,
        owner: bool,
        keyring: Keyring | None = None,
        is_new: bool = False,
    ) -> None:
        self._line = line
        self._keyring = keyring
        self._held: KeySlotsAre | None = None  # whose keys the device has, as it said last
        self.is_new = is_new
        """Whether this client gave the device its key, so that it may fill the key slots now."""
        self.identity = identity
        """What the device said of itself before the session; its serial number has been proved since."""
        self.owner = owner
        self.resolved: list[Resolved] = []
        """Commands that an earlier run left open, as the device's ledger has them."""
        self._subscribers: list[threading.Thread] = []

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the device. What was told and is not on disk stays with the device."""
        self._line.close()
        for thread in self._subscribers:
            if thread is not threading.current_thread():
                thread.join(GRACE_S)

    # -- state ----------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where the device is."""
        return self._line.connection.url

    @property
    def simulator(self) -> bool:
        """Whether the device is emulated, as it proved in its session."""
        peer = self.peer
        return bool((self.identity if peer is None else peer).flags & IdentityFlag.SIMULATOR)

    @property
    def link(self) -> LinkState:
        """How things stand now."""
        return self._line.look(lambda: self._line.connection.link)

    @property
    def peer(self) -> Peer | None:
        """The device as it proved itself."""
        return self._line.look(lambda: self._line.connection.peer)

    @property
    def journal(self) -> Journal:
        """What the device has told."""
        return self._line.journal

    @property
    def people(self) -> People | None:
        """Those at an emulated table who see cards that no wire tells; None at a real one."""
        return getattr(self._line.transport, "people", None)

    @property
    def io_loop(self) -> IoLoop:
        """The line below, for other shells and for tests."""
        return self._line

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have a function called with every ``Notice``; the function returned ends that.

        It is called from the driver's threads and must not wait for the device.
        """
        self._line.listeners.append(listener)
        return lambda: self._line.listeners.remove(listener)

    def wait_up(self, timeout: float = CONNECT_S) -> None:
        """Wait until the device takes requests; the reason why not, if it does not in that time."""
        line = self._line
        timeout = checked_timeout(timeout)
        if (
            not line.wait_link(lambda core: core.link is LinkState.UP, timeout)
            or line.connection.link is not LinkState.UP
        ):
            raise line.look(lambda: line.connection.problem) or LinkLost(
                f"{self.url}: no session in {timeout} s"
            )

    # -- requests -------------------------------------------------------------------------------

    def ask(
        self, message: Request[AnswerT], timeout: float = TIMEOUT_S, by: Credential | None = None
    ) -> AnswerT:
        """Send a request and return its typed answer; ``by`` is the person who authorises it.

        Refused (with its kinds) if the device refuses; DeviceTimeout, LinkLost, DeviceRebooted and others as
        they are named. A command that ends in DeviceTimeout may be executed all the same: ``resolve`` tells.
        """
        line = self._line
        until = _checked(message, timeout)
        who = self._slot_and_key(by, until)
        left = until.left()
        number, future = line.ask(
            lambda now: line.connection.request(message, now, line.clock.to_ms(left), who), will_wait=True
        )
        return self._result(future, until, number)

    def submit(
        self, message: Request[AnswerT], timeout: float = TIMEOUT_S, by: Credential | None = None
    ) -> "tuple[int, Future[AnswerT]]":
        """Send a request without waiting: its number, and a future that ends within the time-out."""
        line = self._line
        until = _checked(message, timeout)
        who = self._slot_and_key(by, until)
        left = until.left()
        return line.ask(lambda now: line.connection.request(message, now, line.clock.to_ms(left), who))

    def _slot_and_key(self, by: Credential | None, until: Deadline) -> tuple[int, bytes] | None:
        """What the wire needs of a credential; the device is asked for the slot once."""
        if by is None:
            return None
        by.check()
        slot = self.known_slot(by)
        if slot is None:
            slot = by.slot_among(self.key_slots(until.left()))
        return slot, by.key

    def known_slot(self, by: Credential) -> int | None:
        """The slot of a credential, if the device need not be asked for it."""
        if by.slot is None and self._held is not None:
            with contextlib.suppress(KeyMissing):
                return by.slot_among(self._held)
        return by.slot

    def abandon(self, number: int) -> None:
        """Nobody waits for that answer any more."""
        self._line.ask(lambda now: self._line.connection.abandon(number))

    def _result(self, future: "Future[T]", until: Deadline, number: int | None = None) -> T:
        line = self._line
        try:
            with contextlib.suppress(FutureTimeout):
                return line.wait(future, until.left())
            if not future.done():
                line.expire(future)
            return line.wait(future, GRACE_S)
        except FutureTimeout as error:
            if isinstance(error, SabotError):
                raise
            raise DeviceTimeout("the driver itself did not answer in time", number) from error
        except CancelledError as error:
            raise Closed("the request was cancelled") from error
        except BaseException as error:
            if number is not None and not future.done():  # Ctrl-C: the link goes on without this question
                future.cancel()
                self.abandon(number)
            if isinstance(error, RuntimeError) and isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None  # it came while Python took up a lock again
            raise

    def status(self, timeout: float = TIMEOUT_S) -> StatusReport:
        """How the device is."""
        return self.ask(messages.Status(), timeout)

    def key_slots(self, timeout: float = TIMEOUT_S) -> KeySlotsAre:
        """Whose keys the device has."""
        self._held = self.ask(messages.KeySlots(), timeout)
        return self._held

    def set_key(
        self,
        role: Role,
        key: bytes,
        person: int = 0,
        slot: int | None = None,
        by: Credential | None = None,
        timeout: float = TIMEOUT_S,
    ) -> int:
        """Give a person a key slot, and return it; without ``slot`` the first free one.

        The device is given a key derived from the person's, good for this device and slot only. While a new
        device is provisioned its owner may fill empty slots; all else takes service (``by``).
        """
        check_key(key)
        until = Deadline(timeout)
        if slot is None:
            slot = free_slot(self.key_slots(until.left()).slots)
        derived = slot_key(key, self._proved_serial(), slot) if any(key) else key
        self._held = None
        self.ask(SetKey(slot, role, person, derived), until.left(), by)
        return slot

    def set_observers_key(self, key: bytes, by: Credential | None = None, timeout: float = TIMEOUT_S) -> None:
        """Give the device the key of those who only look on; their sessions so far end."""
        self.ask(SetKey(KeySlot.OBSERVER, Role.OBSERVER, 0, key), timeout, by)

    def set_device_key(self, key: bytes, by: Credential, timeout: float = TIMEOUT_S) -> None:
        """Give the device another key of its own. This client goes on with it, all others' sessions end.

        The keyring, if there is one, has both keys until the device has confirmed the new one.
        """
        serial, keyring = self._proved_serial(), self._keyring
        if keyring is not None:
            keyring.keep_next(serial, key, self.simulator)
        try:
            self.ask(SetKey(KeySlot.DEVICE, Role.TABLE, 0, key), timeout, by)
        except Refused:
            if keyring is not None:
                keyring.settle(serial, self._line.look(lambda: self._line.connection.key), self.simulator)
            raise
        if keyring is not None:
            keyring.settle(serial, key, self.simulator)

    def remove_key(self, slot: int, by: Credential, timeout: float = TIMEOUT_S) -> None:
        """Empty a slot; what was proved with its key ends."""
        self._held = None
        self.ask(RemoveKey(slot), timeout, by)

    def _proved_serial(self) -> bytes:
        peer = self.peer
        if peer is None:
            raise LinkLost(f"{self.url}: there was no session yet")
        return peer.serial

    def resolve(self, number: int, timeout: float = TIMEOUT_S) -> Resolved:
        """What became of a command that was given up, by asking the device's ledger; never a guess."""
        until = Deadline(timeout)
        line = self._line
        line.look(lambda: line.connection.check_ended(number))
        command = self.journal.command(number)
        if command is None:
            raise SabotError(f"this journal knows no command {number}", "Give a number of this device.")
        kind = messages.BY_ID[command.message]
        assert issubclass(kind, Request)
        left_ms = line.clock.to_ms(until.left())
        memory_id = command.memory_id or (self.peer.memory_id if self.peer is not None else b"")
        future = line.ask(lambda now: line.connection.resolve(number, kind, memory_id, now, left_ms))
        try:
            self._result(future, until)
        except OutcomeUnknown:
            return Resolved(number, kind.NAME, "unknown")
        except Refused:
            return Resolved(number, kind.NAME, "not_executed")
        return Resolved(number, kind.NAME, "done")

    def resolve_open(self, timeout: float = TIMEOUT_S) -> list[Resolved]:
        """What became of every command whose end this journal does not know, oldest first."""
        until = Deadline(timeout)
        return [self.resolve(each.number, until.left()) for each in self.journal.commands(open_only=True)]

    # -- events ---------------------------------------------------------------------------------

    def events(
        self, after: int | None = None, reader: str | None = None, timeout: float | None = None
    ) -> "Iterator[ReceivedEvent | LostEvents]":
        """Events in order, from the journal: first those that are there, then as they come.

        ``after`` is the id of the last event dealt with (0: from the beginning; None: from now on). A
        ``reader`` has its place kept in the journal: an event counts as dealt with when the next is asked
        for. It ends when nothing has come for ``timeout`` seconds, or when the client is closed.
        """
        line = self._line
        timeout = None if timeout is None else checked_timeout(timeout)
        at = line.rows if after is None else after
        if reader is not None:
            at = self.journal.reader_position(reader)
        while True:
            try:
                rows = line.rows_after(at, timeout)
            except Closed:
                return
            if not rows:
                return
            for row in rows:
                yield parse_entry(row)
                at = row.id
                if reader is not None:
                    self.journal.set_reader_position(reader, at)

    def on_event(
        self,
        callback: "Callable[[ReceivedEvent | LostEvents], None]",
        after: int | None = None,
        reader: str | None = None,
    ) -> None:
        """Have a function called with every event, in order, in a thread of its own, until closed.

        If the function fails, it is called no more, and listeners hear ``subscriber_failed``; a ``reader``
        gets that event again when it subscribes anew. While the journal fails it waits and goes on after.
        """
        at = self._line.rows if after is None else after
        if reader is not None:
            at = self.journal.reader_position(reader)
        args = (callback, at, reader)
        thread = threading.Thread(target=self._deliver, args=args, name="sabot-events", daemon=True)
        self._subscribers.append(thread)
        thread.start()

    def _deliver(
        self, callback: "Callable[[ReceivedEvent | LostEvents], None]", at: int, reader: str | None
    ) -> None:
        line = self._line
        marked = at
        rows: list[JournalEntry] = []
        while True:
            try:
                if reader is not None and marked != at:
                    self.journal.set_reader_position(reader, at)
                    marked = at
                rows = rows or line.rows_after(at, None)
            except Closed:
                return
            except JournalError as error:
                log.warning("events wait for the journal: %s", error)
                if line.wait_closed(RETRY_DISK_S):
                    return
                continue
            event = parse_entry(rows.pop(0))
            try:
                callback(event)
            except Exception as error:
                log.exception("the function called with events failed at event %d", event.id)
                words = f"the function called with events failed and is called no more: {error!r}"
                line.notify(Notice("subscriber_failed", words, SabotError(words, "Correct the program.")))
                return
            at = event.id


def _checked(message: object, timeout: float) -> Deadline:
    """The time-out of a request; what is no request or no time is refused before it touches the link."""
    if not isinstance(message, Request):
        raise TypeError(f"a request of sabot_protocol.host.messages is asked, not {message!r}")
    return Deadline(timeout)


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
    """Open a device and prove each other; a client whose link is up.

    ``key`` is the device's key; without it the keyring has it by serial number, or the observers' key for
    who does not want to own the device. ``slot`` says which of the two a ``key`` is, if it is the observers'.
    ``journal`` is where events go: a file, what gives one by serial number, or None for one in memory, which
    forgets with the program. Whatever is wrong is raised within ``timeout`` by its name. Here and in every
    call a time-out is at most 72 hours; ValueError for more.

    ``simulator`` says whether an emulated device is expected; None takes it from the URL: ``sim://`` is one,
    everything else is a machine. What the device says of itself decides nothing, because an impostor says
    what helps it; a device of the other kind is WrongDevice. A new simulator is given a key, unless a machine
    with its serial number is known here; a new machine is NotProvisioned.
    """
    clock = clock or Clock()
    if simulator is None:
        simulator = is_simulator(url)
    until = Deadline(timeout)
    transport = transport or transport_for(url)
    began = clock.now_ms()
    with UnsecuredExchange(transport, url, clock, until.left()) as exchange:
        identity = exchange.identify()
        if serial is not None and identity.serial != serial:
            raise WrongDevice(f"{url}: this is {format_serial(identity.serial)}, not {format_serial(serial)}")
        if simulator != bool(identity.flags & IdentityFlag.SIMULATOR):
            raise wrong_kind(url, identity.serial, not simulator)
        found = _Keys(key) if key is not None else None
        keys = found or _find_key(exchange, url, identity, keyring, owner, simulator)
    if not isinstance(journal, Journal):
        journal = Journal(journal(identity.serial) if callable(journal) else journal, identity.serial)
    book = journal
    try:
        core = Connection(
            url,
            keys.key,
            identity.serial,
            book,
            began,
            owner=owner,
            simulator=simulator,
            slot=keys.slot if slot is None else slot,
            other_key=keys.other,
            utc_us=clock.utc_us,
            random=os.urandom,
        )
    except BaseException:
        book.close()
        raise
    line = IoLoop(core, transport, book, clock)
    line.start()
    client = Client(line, identity, owner, keyring, keys.is_new)
    try:
        done = line.wait_link(
            lambda core: core.link is LinkState.UP or core.failed_permanently(), until.left()
        )
        if line.look(lambda: core.link) is not LinkState.UP:
            raise line.look(lambda: core.problem) or LinkLost(
                f"{url}: no session in {timeout} s" if not done else f"{url}: no session"
            )
        if keyring is not None and keys.other is not None:
            keyring.settle(identity.serial, line.look(lambda: core.key), client.simulator)
        if owner:
            client.resolved = client.resolve_open(until.left())
    except BaseException:
        client.close()
        raise
    return client


@dataclass(frozen=True, slots=True)
class _Keys:
    """What a session is proved with."""

    key: bytes = field(repr=False)
    slot: int = KeySlot.DEVICE
    other: bytes | None = field(default=None, repr=False)
    """Another one that the device may have instead, because it was being changed."""
    is_new: bool = False


def _find_key(
    exchange: UnsecuredExchange,
    url: str,
    identity: Identity,
    keyring: Keyring | None,
    owner: bool,
    simulator: bool,
) -> _Keys:
    found = None if keyring is None else keyring.find(identity.serial, simulator)
    if identity.flags & IdentityFlag.KEYS_DAMAGED:
        raise KeysLost(f"{url}: the keys of {format_serial(identity.serial)} are damaged")
    if not identity.flags & IdentityFlag.PROVISIONED:
        if not simulator:
            raise NotProvisioned(f"{url}: {format_serial(identity.serial)} has no key yet")
        if keyring is not None and keyring.is_machine(identity.serial):
            raise WrongDevice(
                f"{url}: {format_serial(identity.serial)} is the serial number of a machine known here",
                "Give the simulator another serial number.",
            )
        key = found or os.urandom(KEY_SIZE)  # others of its name may be there, and have the same
        if keyring is not None and found is None:
            keyring.keep(identity.serial, key, simulator)
        exchange.provision(identity.serial, key)
        return _Keys(key, is_new=True)
    if keyring is not None and found is None and not owner:
        observers = keyring.find_observers(identity.serial)
        if observers is not None:
            return _Keys(observers, KeySlot.OBSERVER)
    if found is None:
        raise KeyMissing(f"{url}: no key for {format_serial(identity.serial)} here")
    other = None if keyring is None else keyring.find_next(identity.serial, simulator)
    return _Keys(found, other=other)


__all__ = ["Client", "Credential", "JournalDamaged", "Notice", "Resolved", "connect"]
