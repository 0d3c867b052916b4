"""Commands about the whole machine: stop, clear a fault, find it, call the floor, read records."""

from sabot_firmware.hardware import HOT
from sabot_firmware.jam import SERVICE_FAULTS
from sabot_firmware.refusals import forbidden
from sabot_firmware.service import SERVICE_ROLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_firmware.controller import Controller
    from sabot_firmware.event_log import EventLog
    from sabot_protocol.codec import Values

MOST_LOG_BYTES = 150  # of a log row in one answer


class MachineCommands:
    """The commands that concern both halves or none."""

    def __init__(self, controller: "Controller") -> None:
        self._controller = controller
        self.locating_until_us: int | None = None
        self.floor_called = False

    def stop(self) -> "Values":
        """Halt both halves as if their doors had been opened; clearing a halt works in the same way."""
        controller = self._controller
        controller.report("stopped", *controller.who())
        controller.service.stop_jog()
        controller.service.emptying = False
        controller.shoe.halt("shoe", 0)
        controller.shuffler.halt("chamber", controller.shuffler.entered)
        return ()

    def clear_fault(self, fault: int) -> "Values":
        """End a jam. The half counts as empty only if its door was opened and its sensors agree."""
        controller = self._controller
        for half in (controller.shoe, controller.shuffler):
            if half.jam is None or half.jam.fault() != fault:
                continue
            if half.state != half.states.jammed:
                continue  # the half is in service or out of order, and this command ends neither
            if half.jam.cause in SERVICE_FAULTS and controller.role() != SERVICE_ROLE:
                raise forbidden("service_only")
            if not half.door_was_open or half.occupied() is not None:
                raise forbidden("not_cleared")
            if half.jam.cause == "over_temperature" and controller.hardware.level(HOT):
                raise forbidden("too_hot")
            if half.jam.cause == "rng_failed" and not controller.shuffle_commands.start():
                raise forbidden("not_cleared")
            if half is controller.shoe:
                controller.shoe.forget()
            else:
                controller.shuffler.feeding_deck = 0
                controller.shuffler.forget_shelf()
            half.clear(controller.now_us)
            controller.report("fault_cleared", fault)
            return ()
        raise forbidden("no_such_fault")

    # -- display and lamp -----------------------------------------------------------------------

    def locate(self, seconds: int) -> "Values":
        """Blink and show a text for so many seconds, so that people find the machine."""
        controller = self._controller
        self.locating_until_us = controller.after_us(seconds * 1000000)
        controller.report("located", seconds)
        controller.update_panel()
        return ()

    def locating(self) -> bool:
        """Whether the machine shows where it is."""
        return self.locating_until_us is not None

    def locate_due_us(self) -> int | None:
        """End the search display when its time is over; microseconds until then, None if it is not on."""
        if self.locating_until_us is None:
            return None
        left = self._controller.left_us(self.locating_until_us)
        if left > 0:
            return left
        self.locating_until_us = None
        self._controller.update_panel()
        return None

    def call_floor(self, on: int) -> "Values":
        """Call the floor supervisor, or end the call."""
        controller = self._controller
        if self.floor_called != bool(on):
            self.floor_called = bool(on)
            controller.report("floor_called", on, *controller.who())
            controller.update_panel()
        return ()

    # -- records --------------------------------------------------------------------------------

    def whereabouts(self, deck_id: int) -> "Values":
        """How many cards of a deck are where, and whether all of them are proved."""
        persistent = self._controller.persistent
        if persistent.decks.find(deck_id) is None:
            raise forbidden("no_such_deck")
        proved, cards = self._controller.whereabouts(deck_id)
        return deck_id, persistent.game.cards(), 1 if proved else 0, cards

    def last_round(self) -> "Values":
        """The newest round: id, deck, verdict, reason if void, count."""
        last = self._controller.persistent
        return last.round_id, last.round_deck, last.verdict, last.void, last.count

    def log(self, from_n: int) -> "Values":
        """The first row of the event log at or after a number, and the number of the newest row."""
        return _row_of(self._controller.log, from_n)

    def evidence(self, from_n: int) -> "Values":
        """The same of the ring of evidence."""
        log = self._controller.log
        return _row_of(None if log is None else log.evidence, from_n)

    def wear(self) -> "Values":
        """The wear counters, in the order of the schema."""
        return (list(self._controller.wear.values),)


def _row_of(log: "EventLog | None", from_n: int) -> "Values":
    """The first row of a log at or after a number, and the number of its newest row."""
    if log is None:
        return 0, 0, b""
    rows = log.rows(from_n, 1)
    if not rows:
        return 0, log.newest, b""
    return rows[0][0], log.newest, rows[0][1][:MOST_LOG_BYTES]
