"""A session with threads: it owns the client of a device and runs the table until it is closed.

One thread takes in events, answers and time; faces give acts from threads of their own. A command of an
earlier run, which was killed before the answer, is looked up in the driver's journal before anything is sent.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any

from sabot_driver import Client, LostEvents, ReceivedEvent
from sabot_driver.errors import (
    DeviceRebooted,
    DeviceTimeout,
    LinkLost,
    OutcomeUnknown,
    SabotError,
    SessionEnded,
)
from sabot_driver.link_state import LinkState, Notice
from sabot_driver.serial_numbers import format_serial
from sabot_protocol.host.message_base import Command
from sabot_session.acts import Act
from sabot_session.needs import Need
from sabot_session.notes import Note
from sabot_session.outcomes import ActDone, Answered, DeviceCommand, Failed
from sabot_session.session import TableSession
from sabot_session.snapshot import Changes

log = logging.getLogger("sabot")

TICK_S = 0.25
ASK_S = 20.0
MOST_WAITING = 256  # inputs that wait for the thread; the journal keeps further events
JOIN_S = 10.0
ANSWER_S = 5.0  # that a request on its way may still take when the session ends


def utc_s() -> int:
    """The time of day."""
    return int(time.time())


class ThreadedSession:
    """Runs a `TableSession` over a driver's client. Safe to use from several threads."""

    def __init__(
        self,
        session: TableSession,
        client: Client,
        *,
        simulators_key: bool = False,
        now_s: Callable[[], int] = utc_s,
    ) -> None:
        """``simulators_key``: the device's key comes from the simulators' store."""
        self._session = session
        self._client = client
        self._emulated_key = simulators_key
        self._now_s = now_s
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._inputs: queue.Queue[Callable[[], None]] = queue.Queue(MOST_WAITING)
        self._closing = False
        self._sent: tuple[DeviceCommand, int, Future[Any]] | None = None  # the newest request
        self.failure: BaseException | None = None
        """What ended the thread, if anything did; acts raise it."""
        self._resolve_open()
        self._unlisten = client.listen(self._notice)
        client.on_event(self._event, after=session.journal_of(format_serial(client.identity.serial)))
        self._thread = threading.Thread(target=self._run, name="sabot-session", daemon=True)
        self._put(self._link)
        self._thread.start()

    def __enter__(self) -> "ThreadedSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the thread. The client stays open; the record has everything that was done.

        A request that is on its way gets a moment for its answer. Without one, the next run looks it up.
        """
        self._closing = True
        with suppress(queue.Full):  # the thread waits for no input then
            self._inputs.put_nowait(lambda: None)
        self._unlisten()
        self._thread.join(JOIN_S)
        sent, self._sent = self._sent, None
        if sent is not None:
            wait([sent[2]], ANSWER_S)
        with self._lock:
            if self.failure is not None:
                return
            if sent is not None and sent[2].done() and sent[2].exception() is None:
                self._done(*sent)
            self._session.end(self._now_s())

    # -- faces ----------------------------------------------------------------------------------

    def act(self, act_id: str, need_id: str | None, seen: int, credential: object, act: Act) -> ActDone:
        """Give an act; see `TableSession.act`."""
        with self._lock:
            self._check()
            done = self._session.act(act_id, need_id, seen, credential, act, self._now_s())
            self._changed.notify_all()
        self._put(lambda: None)
        return done

    def receive_note(self, note: Note) -> bool:
        """Take a note of the floor; see `TableSession.receive_note`."""
        with self._changed:
            self._check()
            taken = self._session.receive_note(note, self._now_s())
            self._changed.notify_all()
        return taken

    def dealer(self) -> str | None:
        """The dealer who is signed in."""
        dealer = self.read(lambda session: session.state.dealer)
        return None if dealer is None else dealer.person

    def needs(self) -> list[Need]:
        """What must happen now."""
        with self._lock:
            self._check()
            return self._session.needs()

    def read(self, look: Callable[[TableSession], Any]) -> Any:
        """Look at the session while nothing changes it."""
        with self._lock:
            self._check()
            return look(self._session)

    def wait_changed(self, after: int, timeout: float) -> int:
        """Wait until the record has a newer row than ``after``, or time is up; the newest row."""
        with self._changed:
            self._changed.wait_for(lambda: self._session.cursor > after or self.failure is not None, timeout)
            self._check()
            return self._session.cursor

    def wait_changes(
        self, after: str | None, timeout: float, ended: threading.Event | None = None
    ) -> Changes | None:
        """What changed since a cursor, as soon as something did; None if time is up or the wait was ended."""

        def over() -> bool:
            return self.failure is not None or (ended is not None and ended.is_set())

        with self._changed:
            self._changed.wait_for(lambda: over() or self._session.changes(after), timeout)
            self._check()
            return self._session.changes(after)

    def end_wait(self, ended: threading.Event) -> None:
        """End `wait_changes` of another thread."""
        ended.set()
        with self._changed:
            self._changed.notify_all()

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    # -- inputs ---------------------------------------------------------------------------------

    def _put(self, what: Callable[[], None]) -> None:
        while not self._closing:
            try:
                self._inputs.put(what, timeout=TICK_S)
                return
            except queue.Full:
                continue

    def _event(self, event: ReceivedEvent | LostEvents) -> None:
        self._put(lambda: self._take_event(event))

    def _take_event(self, event: ReceivedEvent | LostEvents) -> None:
        if isinstance(event, LostEvents):
            self._session.events_lost(event.id, self._now_s())
        else:
            self._session.device_event(event.id, event.message, event.boot_id, event.n, self._now_s())

    def _notice(self, notice: Notice) -> None:
        if notice.kind in ("up", "down", "rebooted"):
            threading.Thread(target=self._put, args=(self._link,), daemon=True).start()

    def _link(self) -> None:
        peer, up = self._client.peer, self._client.link is LinkState.UP
        if peer is None:
            return
        if up == self._session.state.device.up and not up:
            return
        self._session.link(
            up,
            self._now_s(),
            serial=format_serial(peer.serial),
            memory_id=peer.memory_id.hex(),
            model=self._client.identity.model,
            emulated=self._client.simulator and self._emulated_key,
        )

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._closing:
                self._once()
        except BaseException as error:
            log.exception("the table's session has stopped")
            with self._changed:
                self.failure = error
                self._changed.notify_all()

    def _once(self) -> None:
        try:
            what = self._inputs.get(timeout=TICK_S)
        except queue.Empty:
            what = self._tick
        with self._changed:
            what()
            command = self._session.take_command()
            self._changed.notify_all()
        if command is not None:
            self._send(command)

    def _tick(self) -> None:
        self._session.tick(self._now_s())

    # -- commands -------------------------------------------------------------------------------

    def _send(self, command: DeviceCommand) -> None:
        if command.needs_key and command.key is None:
            self._put_soon(lambda: self._answer(command, Failed()))  # the person must act again
            return
        try:
            number, future = self._client.submit(command.message, ASK_S, command.key)
        except SabotError as error:
            failed = error
            self._put_soon(lambda: self._answer(command, Failed(failed)))
            return
        self._sent = command, number, future
        future.add_done_callback(lambda done: self._put_soon(lambda: self._done(command, number, done)))

    def _put_soon(self, what: Callable[[], None]) -> None:
        threading.Thread(target=self._put, args=(what,), daemon=True).start()

    def _done(self, command: DeviceCommand, number: int, future: "Future[Any]") -> None:
        error = future.exception()
        number = number if isinstance(command.message, Command) else 0
        if error is None:
            self._answer(command, Answered(future.result(), number))
        elif isinstance(error, DeviceTimeout | LinkLost | OutcomeUnknown) and number:
            self._look_up(command, number)
        elif isinstance(error, DeviceTimeout | LinkLost | DeviceRebooted | SessionEnded):
            self._answer(command, Failed(None, number))
        elif isinstance(error, SabotError):
            self._answer(command, Failed(error, number))
        else:
            raise error

    def _answer(self, command: DeviceCommand, result: Answered | Failed) -> None:
        self._session.answer(command.id, result, self._now_s())

    def _look_up(self, command: DeviceCommand, number: int) -> None:
        """A command without an answer: the device's ledger tells its outcome once it can be asked."""
        try:
            outcome = self._client.resolve(number, ASK_S).outcome
        except (DeviceTimeout, LinkLost):
            threading.Timer(TICK_S, self._put, (lambda: self._look_up(command, number),)).start()
            return
        if outcome == "done":
            self._answer(command, Answered(None, number))
        else:
            self._answer(command, Failed(None, number, unknown=outcome == "unknown"))

    def _resolve_open(self) -> None:
        """The command that an earlier run left without an answer: its outcome, from the driver's journal."""
        command = self._session.open_command()
        ours = format_serial(self._client.identity.serial) == self._session.state.device.serial
        if command is None or not ours:
            return
        last = self._session.state.device.last_number
        sent = [each for each in self._client.journal.commands() if each.number > last]
        found = next(
            (
                each
                for each in reversed(sent)
                if (each.message, each.body) == (command.message.ID, command.message.pack())
            ),
            None,
        )
        if found is None or not isinstance(command.message, Command):
            self._session.answer(command.id, Failed(), self._now_s())
            return
        outcome = (
            self._client.resolve(found.number, ASK_S).outcome if found.outcome is None else found.outcome
        )
        if outcome == "done":
            self._session.answer(command.id, Answered(None, found.number), self._now_s())
        else:
            unknown = outcome == "unknown"
            self._session.answer(command.id, Failed(None, found.number, unknown=unknown), self._now_s())
