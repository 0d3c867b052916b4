"""What the two halves of the machine have in common: a state, motions, a jam, and how one is cleared."""

from sabot_firmware.hardware import STOP, Hardware
from sabot_firmware.jam import Jam
from sabot_firmware.motion import Scheduler, Wait
from sabot_protocol import ticks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_firmware.motion import Steps

    ClearLevels = tuple[tuple[int, int, str], ...]


MOST_TENTHS = 1500


class IllegalTransition(Exception):
    """The firmware took a step that its own table does not have."""


class HalfStates:
    """The numbers of the states that every half has."""

    def __init__(
        self,
        starting: int,
        idle: int,
        jammed: int,
        door_open: int,
        service: int,
        out_of_order: int,
        unproved: int,
    ) -> None:
        self.starting = starting
        self.idle = idle
        self.jammed = jammed
        self.door_open = door_open
        self.service = service
        self.out_of_order = out_of_order
        self.unproved = unproved


class MachineHalf:
    """One half: it rests, works, or has stopped for a jam and stands until that is cleared."""

    def __init__(
        self,
        hardware: Hardware,
        rollers: "tuple[int, ...]",
        stalls: "tuple[tuple[int, str], ...]",
        door: int,
        clear_levels: "ClearLevels",
        states: HalfStates,
        steps: "tuple[int, ...]",
    ) -> None:
        self._hardware = hardware
        self._rollers = rollers
        self._stalls = stalls  # (sensor of a motor's driver, the place of its roller)
        self._door = door
        self._clear_levels = clear_levels  # what the sensors must say before it is believed to be empty
        self.states = states
        self._steps = steps
        self._scheduler = Scheduler()
        self.step = self._scheduler.step  # let time pass; how long until something is due
        self._wait = Wait()
        self.state = states.starting
        self._entered = bytearray(8)  # the states entered since the core last looked; more than one look has
        self._entered[0] = states.starting
        self.unreported = 1  # how many there are
        self.reported = -1  # the state that was reported last
        self.coalesced = -1  # the one after it that was folded, for a moment
        self.door_changes = 0  # how often it came and went by its door in this moment
        self.jam: Jam | None = None
        self.latched = False  # out of order: it rests there
        self.was_working = False  # the power went while cards were moving
        self.door_was_open = False  # since the half last was known to be empty
        self._turning_since = [-1, -1, -1]
        self.turned_ms = [0, 0, 0]  # how long each roller has turned, for the wear counters
        self.timed = [0, 0, 0]  # cards timed at each roller since the core last looked
        self.sums = [0, 0, 0]  # of their times, in tenths of a millisecond
        self.squares = [0, 0, 0]

    # -- states ---------------------------------------------------------------------------------

    def enter(self, state: int) -> None:
        """Take a step of the table."""
        if state != self.state:
            if not self._steps[self.state] >> state & 1:
                raise IllegalTransition("from state %d to %d" % (self.state, state))
            self.state = state
            at = self.unreported
            if at == len(self._entered):  # a bouncing door: the newest state replaces the one before it
                at -= 1
            self._entered[at] = state
            self.unreported = at + 1

    def next_unreported(self) -> int:
        """The first state it entered that the core has not heard of yet."""
        first = self._entered[0]
        self.unreported -= 1
        for at in range(self.unreported):
            self._entered[at] = self._entered[at + 1]
        return first

    def idle(self) -> bool:
        """Whether nothing of this half moves or is about to."""
        return not self._scheduler.busy()

    def paused(self) -> bool:
        """Whether nothing of this half moves at this moment, if only between two cards."""
        return self._wait.paused or self.idle()

    def end_pause(self, now_us: int) -> None:
        """The board has had its rest."""
        self._scheduler.wake(now_us)

    def start(self, now_us: int) -> None:
        """Find out how things are: at power-up, after service, on demand."""
        self.jam = None
        self.enter(self.states.starting)
        self._scheduler.start(self._self_test(), self._wait, now_us)

    def _self_test(self) -> "Steps":
        raise NotImplementedError

    def _by_sensors(self) -> None:
        """The state that door and sensors leave, when nothing else is known."""
        states = self.states
        if self.latched:
            self.enter(states.out_of_order)
        elif not self._hardware.level(self._door):
            self.enter(states.door_open)
        elif self.occupied() is None and not self.was_working:
            self.enter(states.idle)
        else:
            self.was_working = False
            self.enter(states.unproved)

    def occupied(self) -> str | None:
        """Which sensor does not agree that this half is empty and closed; None if all do."""
        for sensor, level, name in self._clear_levels:
            if self._hardware.level(sensor) != level:
                return name
        return None

    # -- people ---------------------------------------------------------------------------------

    def door_opened(self, place: str, cards: int) -> None:
        """Hands may be inside: what was being done is over, and nothing of it is proved any more."""
        self.door_was_open = True
        states = self.states
        if self.state in (states.idle, states.unproved):
            self.enter(states.door_open)
        elif self.state not in (states.jammed, states.door_open, states.service, states.out_of_order):
            self.stop(place, "door_opened", cards)

    def halt(self, place: str, cards: int) -> None:
        """A host stops the half: what was being done is over, as if the door had been opened."""
        states = self.states
        idle = (states.idle, states.unproved, states.jammed, states.door_open)
        if self.state not in idle + (states.service, states.out_of_order):
            self.stop(place, "stopped", cards)

    def door_closed(self) -> None:
        """The door is shut: what the sensors say decides."""
        if self.state == self.states.door_open:
            self._by_sensors()

    def clear(self, now_us: int) -> None:
        """The half is empty again: its axes go home, and it may work."""
        self.door_was_open = self.was_working = False
        self.start(now_us)

    # -- stopping -------------------------------------------------------------------------------

    def stop(self, place: str, cause: str, cards: int) -> None:
        """Stop everything of this half where it is."""
        for roller in self._rollers:
            self.run(roller, STOP)
        self._scheduler.stop_all()
        self.jam = Jam(place, cause, cards)
        self.door_was_open = cause == "door_opened"
        self.enter(self.states.jammed)

    def stalled(self, sensor: int) -> bool:
        """Whether a motor's driver of this half reports a stall; the half has stopped then."""
        for stall, place in self._stalls:
            if stall == sensor and self.state != self.states.jammed:
                self.stop(place, "motor_stall", 1)
                return True
        return False

    def time_card(self, roller: int, took_us: int) -> None:
        """A card took so long at a roller; allocates nothing."""
        tenths = took_us // 100
        if tenths < MOST_TENTHS:  # squares of a whole batch stay small integers on a board
            self.timed[roller] += 1
            self.sums[roller] += tenths
            self.squares[roller] += tenths * tenths

    def run(self, roller: int, direction: int) -> None:
        """Turn a roller or stop it, and count how long it turns."""
        self._hardware.run(roller, direction)
        since = self._turning_since[roller]
        now = self._scheduler.now_us
        if since >= 0:
            self.turned_ms[roller] += ticks.diff(now, since) // 1000
        self._turning_since[roller] = now if direction else -1
