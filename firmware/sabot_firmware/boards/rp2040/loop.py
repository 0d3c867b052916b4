"""One life of the device on the board: controller, cables and time, joined by one loop that waits for events.

The loop sleeps in ``select.poll`` until an edge or a byte comes or something is due. What can wait (display,
log, garbage, randomness for the next shuffle) is done only while nothing moves.

A frame of the wire takes ten milliseconds, in which a card moves ten millimetres. So edges that come while
the loop talks go to the controller at once (``Device._edge_came``): motors are ordered immediately, records
and events follow when the talk is over.

A garbage collection cannot be interrupted and takes longer than a card may wait, so none may start by itself
while something moves. The loop counts what is allocated and asks the halves to pause between two cards. If
that takes too long, it does not read the cables meanwhile (``Device._pause_for_collection``).
"""

import gc
import select

import machine

from sabot_firmware.boards.rp2040.board import Rp2040
from sabot_firmware.boards.rp2040.board_clock import now_ms, now_us
from sabot_firmware.boards.rp2040.board_executor import BoardExecutor
from sabot_firmware.boards.rp2040.cables import Cable, UartCable, UsbCable
from sabot_firmware.boards.rp2040.fram import SpiFram, nothing
from sabot_firmware.boards.rp2040.heap import (
    COLLECT_BYTES,
    GRID_HOLD_BYTES,
    HOLD_BYTES,
    PAUSE_BYTES,
    allocated,
)
from sabot_firmware.boards.rp2040.live_controller import WATCHDOG_RESET, DisabledExecutor, LiveController
from sabot_firmware.boards.rp2040.log_flash import HouseFlash, MarkFlash
from sabot_firmware.boards.rp2040.noise import count_differing, raw_noise, thermal_noise
from sabot_firmware.boards.rp2040.presence_contact import PresenceContactInput
from sabot_firmware.event_log import EventLog
from sabot_firmware.house_record import FlashHouseRecord
from sabot_firmware.jam import BY_SERVICE
from sabot_firmware.provisioning_mark import FlashProvisioningMark
from sabot_firmware.rng.device_rng import DeviceRng
from sabot_firmware.shuffler import FEEDING
from sabot_protocol import __version__, ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import DeviceIdentity, DeviceProtocol
from sabot_protocol.record_store import RecordStore

try:
    from sabot_firmware.boards.rp2040.grid_cables import NONE, GridCables
except ImportError:  # another image than ours: the ports keep to the grid, as well as this loop is in time
    NONE, GridCables = -1, None  # type: ignore[assignment,misc]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sabot_protocol.codec import Value

MODEL = "Sabot on RP2040"
LONGEST_WAIT_MS = 500  # so a contact that is closed is noticed, whatever else wakes the loop
ROOM_US = 5000  # what can wait is done if nothing is due for so long
STUCK_US = 20000  # then a host that took nothing is tried again
GRACE_US = 10000  # what an edge leads to is told at the first tick so long after the edge
LOOK_AGAIN_US = 100000  # whether the halves stand, if no edge lets them
PAUSE_US = 26000  # the longest collection, while cards may soon move again
COLLECT_US = 40000  # and garbage is collected if nothing is due for so long
LONGEST_TALK_US = 100000  # what is due later than this can wait until a talk is over
TICKS_BY_ALARM = True
LOG_ROWS = 4
PREPARED = ("status", "status_report")  # the first answer in a boot would take 3 ms longer
CONTACT_MS = 250  # how often the contact in the logic compartment is looked at, at most
HELD_MS = 100  # how often while it is closed: a person waits for it
LEAVE_MS = 500  # for the answer to reach the host, and events the log

_CONTROLLER = enum_number("Place", "controller")


def _nothing(_: object) -> None:
    """Edges of a board that is left."""


class KeysCleared(Exception):
    """Somebody at the contact had the keys cleared: the device starts anew, with its critical memory."""


class Device:
    """Everything that begins anew after a crash."""

    def __init__(
        self,
        board: "Rp2040 | None",
        memory: RecordStore,
        log: EventLog,
        reason: int,
        reopen: "Callable[[], RecordStore] | None" = None,
        opened: bool = False,
    ) -> None:
        self._board = board
        serial = machine.unique_id()
        self._rng = DeviceRng(raw_noise, memory, serial, thermal_noise, count_differing)
        self._log = log
        self._talk = True  # something is to be said, or was heard
        self._leave_at: int | None = None
        self.controller: LiveController | None = None
        self._executor = BoardExecutor()
        self._later: list[tuple[int, str, tuple[Value, ...]]] = []  # what waits to be told, and since when
        self._failed: Exception | None = None  # what went wrong with an edge meanwhile
        self._timer = machine.Timer(-1)  # for what is due while it talks
        self._came = self._edge_came
        self._end = DeviceProtocol(
            DeviceIdentity(serial, MODEL, __version__),
            memory,
            self._executor,
            self._rng.nonce,
            now_ms(),
            reason,
            log=log,
            mark=FlashProvisioningMark(MarkFlash()),
            house=FlashHouseRecord(HouseFlash()),
            reopen=reopen,
            opened=opened,
        )
        self._opened = opened  # somebody was at the contact: the controller's numbers begin anew with it
        self._contact = PresenceContactInput()
        self._looked_ms = now_ms()
        self._held = False  # the contact was closed when it was looked at last
        self._cables: tuple[Cable, ...] = (UsbCable(DevicePort(self._end)), UartCable(DevicePort(self._end)))
        self._poller = select.poll()
        self._edges_only = select.poll()
        if board is not None:
            self._poller.register(board.ring, select.POLLIN)
            self._edges_only.register(board.ring, select.POLLIN)
            board.needs_pause = False
            board.ring.eager = False
            board.ring.on_edge = self._came
            self._executor.hold = self._hold
        for cable in self._cables:
            cable.register(self._poller)
        for name in PREPARED:
            self._end.codec.named(name)
        self._timed = GridCables(self._cables) if TICKS_BY_ALARM and GridCables is not None else None

    def begin(self, memory: RecordStore, crashed: bool) -> None:
        """The controller wakes up."""
        assert self._board is not None
        controller = LiveController(self._board, memory, self._rng, self._report, self._utc_s, self._log)
        controller.shuffle_commands.device = self._end.identity.serial
        self._executor.controller = controller
        if controller.persistent.record_lost():
            self._end.renew_memory_id()
        if self._opened:
            controller.forget_numbers()
        if crashed:
            self.tell_crash()
        controller.start(now_us())
        self.controller = controller
        controller.between = controller.persistent.before_save = SpiFram.between = self._between

    def stay_idle(self) -> None:
        """Nothing moves any more; the link lives."""
        self._executor.controller = DisabledExecutor()
        self.tell_crash()

    def tell_crash(self) -> None:
        """Report that the controller failed."""
        self._end.emit("fault_raised", WATCHDOG_RESET, _CONTROLLER, 0, BY_SERVICE)

    def _report(self, name: str, *values: "Value") -> None:
        self._between()
        self._talk = True
        controller, timed = self.controller, self._timed
        if controller is not None and (controller.orders_only or (timed is not None and timed.runs)):
            assert self._board is not None
            self._later.append((self._board.cause_us(), name, values))
        else:
            self._end.emit(name, *values)

    def _utc_s(self) -> "int | None":
        self._between()  # a command that opens a round asks, half-way to its record
        seconds, _, quality = self._end.utc()
        return seconds if quality else None

    def turn(self) -> None:
        """Once around: edges, time, cables, what can wait, and the wait."""
        board, controller = self._board, self.controller
        due: int | None = None
        timed = self._timed
        if timed is None or not timed.runs:
            self._end.tick(now_ms())  # also while nobody talks: hours run, and an event has its time
        if controller is not None and board is not None:
            board.take_edges(controller)
            at_us = now_us()
            board.step(controller, at_us)
            due = controller.step(at_us)
            measured = board.due_us(at_us)
            if measured is not None and (due is None or measured < due):
                due = measured
            if allocated() > PAUSE_BYTES and not controller.on_grid():
                board.needs_pause = True
            if board.needs_pause:
                if self._pause_for_collection(board, controller, due):
                    return
                if due is None or due > LOOK_AGAIN_US:
                    due = LOOK_AGAIN_US
            if timed is not None and controller.on_grid():
                self._turn_on_grid(timed, board, due)
                return
            if timed is not None and timed.runs:
                timed.stop(now_ms())
                self._catch_up()
                self._talk = True
            if allocated() > HOLD_BYTES:
                self._wait(self._edges_only, due)
                return
        self._look_at_contact(due)
        at_ms = now_ms()
        if not self._talk:
            due = self._cables_due(at_ms, due)
        if self._talk:
            self._exchange(at_ms)
            return  # what is due may be another thing now
        if (due is None or due > ROOM_US) and self._run_deferred(due):
            return
        if self._wait(self._poller, due):  # bytes ended it, so nothing else is due: no other turn for them
            self._exchange(now_ms())

    def _exchange(self, at_ms: int) -> None:
        """Let every cable receive and send; edges are handled meanwhile."""
        self._talk = False
        self._hold(False)
        for cable in self._cables:
            if cable.exchange(at_ms):
                self._talk = True  # there may be more, and more to say
            elif cable.writing() and not cable.stuck:
                self._talk = True
        self._catch_up()
        self._hold(True)

    def _cables_due(self, at_ms: int, due: "int | None") -> "int | None":
        """Microseconds until something is due, the cables included; sets ``_talk`` if a cable is due now."""
        for cable in self._cables:
            if cable.stuck:
                due = STUCK_US if due is None or due > STUCK_US else due
            deadline = cable.port.deadline()
            if deadline is not None:
                left_us = max(ticks.diff(deadline, at_ms), 0) * 1000
                if due is None or left_us < due:
                    due = left_us
                if not left_us:
                    self._talk = True
        return due

    def _look_at_contact(self, due: "int | None") -> None:
        """Now and then, if nothing is due soon; KeysCleared if it was held for long enough."""
        at_ms = now_ms()
        wait_ms = HELD_MS if self._held else CONTACT_MS
        if ticks.diff(at_ms, self._looked_ms) >= wait_ms and (due is None or due > ROOM_US):
            self._looked_ms = at_ms
            self._held = self._contact.closed()
            self._end.update_contact(self._held)
            if self._end.restart_required:
                raise KeysCleared

    def _turn_on_grid(self, timed: "GridCables", board: Rp2040, due: "int | None") -> None:
        """While cards are shuffled: what the last tick brought, what can wait, and the wait.

        What is told at a tick depends on when its edges came, not on when the loop came to deal with them.
        """
        if not timed.runs:
            timed.start()
        n = timed.ready()
        if n != NONE and allocated() < GRID_HOLD_BYTES:
            self._hold(False)
            self._catch_up(ticks.add(timed.at_us(n), -GRACE_US))
            timed.work(n)
            self._hold(True)
            if self._failed is not None:
                raise self._failed
            return
        left_us = timed.due_us() if n == NONE else LOOK_AGAIN_US
        if due is None or left_us < due:
            due = left_us
        self._look_at_contact(due)
        if due > ROOM_US and board.run_deferred():
            return
        self._wait(self._edges_only, due)

    def _wait(self, poller: "select.poll", due: "int | None") -> bool:
        """Until something is due, or an edge or a byte has come; whether there is something to talk about."""
        longest = HELD_MS if self._held else LONGEST_WAIT_MS
        wait_ms = longest if due is None else min((due + 999) // 1000, longest)
        ring = self._board.ring if self._board is not None else None
        for ready in poller.ipoll(wait_ms):  # type: ignore[attr-defined]
            if ready[0] is not ring:
                self._talk = True
        for cable in self._cables:
            if cable.stuck:
                self._talk = True
        return self._talk

    def _pause_for_collection(self, board: Rp2040, controller: LiveController, due: "int | None") -> bool:
        """Collect garbage if nothing moves, and will not for as long as that takes; whether it did."""
        if not controller.paused() or (due is not None and due < PAUSE_US):
            return False
        gc.collect()
        board.needs_pause = False
        controller.end_pause(now_us())
        return True

    def leaves(self, at_ms: int) -> bool:
        """Whether the loader is to be started, and what was to be said before has been."""
        if not self._executor.leaving:
            return False
        if self._leave_at is None:
            self._leave_at = ticks.add(at_ms, LEAVE_MS)
        return ticks.diff(self._leave_at, at_ms) <= 0

    def let_go(self) -> None:
        """The loader is about to be started: nothing refers to keys, sessions or seeds any more."""
        self._timer.deinit()
        board = self._board
        if board is not None:
            board.ring.eager = False
            board.ring.on_edge = _nothing
        SpiFram.between = nothing
        self._rng.wipe()
        # Not ``del``: MicroPython would leave the values in this object's table, and its scheduler's queue
        # still refers to this object.
        for name in ("_end", "_cables", "_rng", "_executor", "_poller", "_edges_only", "_timed"):
            setattr(self, name, None)
        self.controller = None

    def _hold(self, on: bool) -> None:
        """Edges wait for the loop, or are dealt with in the midst of what it does: those there at once."""
        if self.controller is None or self._board is None:
            return
        ring = self._board.ring
        ring.eager = not on
        if on:
            self._timer.deinit()
        elif ring.next_sensor() >= 0 or not self.controller.idle():
            ring.call()

    def _edge_came(self, _: object) -> None:
        """Deal with edges and with what is due in the midst of a talk, unless they have to wait.

        MicroPython runs one scheduled call at a time. An edge that comes during this one has it scheduled
        again, so it waits for the end of this one and not for the end of the talk.
        """
        board, controller = self._board, self.controller
        assert board is not None
        ring = board.ring
        ring.scheduled = False
        if not ring.eager or controller is None or ring.on_edge is not self._came:
            return
        controller.orders_only = True
        try:
            board.take_edges(controller)
            at_us = now_us()
            board.step(controller, at_us)
            due, measured = controller.move_on(at_us), board.due_us(at_us)
            if measured is not None and (due is None or measured < due):
                due = measured
            if due is not None and due < LONGEST_TALK_US:
                self._timer.init(  # type: ignore[call-overload]  # the stubs know periods of milliseconds only
                    mode=machine.Timer.ONE_SHOT, period=max(due, 100), tick_hz=1000000, callback=self._came
                )
        except Exception as error:  # noqa: BLE001  in an interrupt nobody hears of it: the loop raises it
            self._failed = error
            ring.eager = False
        controller.orders_only = False

    def _between(self) -> None:
        """Cards that are fed do not wait for a record that is written while edges have to wait.

        Only edges at entry and insertion are dealt with: what is carried out at this moment concerns the
        other half, and finds the one that feeds as it was or stopped.
        """
        board, controller = self._board, self.controller
        if board is None or controller is None or controller.shuffler.state != FEEDING:
            return
        ring = board.ring
        if ring.eager or controller.orders_only or ring.on_edge is not self._came:
            return
        controller.orders_only = True
        try:
            board.take_card_edges(controller)
        finally:
            controller.orders_only = False

    def _catch_up(self, until_us: "int | None" = None) -> None:
        """Tell what came up in the midst of the talk; on the grid, what came up until a time."""
        if self._failed is not None:
            raise self._failed
        later = self._later
        while later and (until_us is None or ticks.diff(later[0][0], until_us) <= 0):
            _, name, values = later.pop(0)
            self._end.emit(name, *values)

    def _run_deferred(self, due: "int | None") -> bool:
        """One piece of what can wait; whether there was one."""
        board = self._board
        if board is not None and board.run_deferred():
            return True
        idle = self.controller is None or self.controller.idle()
        if not idle:
            return False
        if self._log.due():
            self._log.flush(LOG_ROWS)
            return True
        image = self._executor.image
        if image is not None and image.work():
            return True
        if (due is None or due > COLLECT_US) and allocated() > COLLECT_BYTES:
            gc.collect()
        if board is not None:
            board.refresh()
        return False
