"""What both halves of the machine share: states, motions, jams and how a jam is cleared."""

from sabot_firmware.hardware import STOP, Hardware
from sabot_firmware.jam import Jam
from sabot_firmware.motion import Scheduler, Wait
from sabot_protocol import ticks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_firmware.motion import Steps

    ClearLevels = tuple[tuple[int, int, str], ...]


MOST_TENTHS = 1500  # of a millisecond: a longer time at a roller is left out of the statistics
MOST_TIMED = 477  # cards timed for one report: their squares stay small integers on a board


class IllegalTransition(Exception):
    """The firmware tried a change of state that the table of its half does not contain."""


class UnreportedChanges(Exception):
    """The controller did not report the changes of a half in time. Losing one could lose a count."""


class HalfStates:
    """The numbers of the states that both halves have."""

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

    def quiet(self) -> "tuple[int, int, int]":
        """The states between which a door alone moves the half. Repeated changes among them are coalesced."""
        return self.idle, self.unproved, self.door_open


class MachineHalf:
    """One half of the machine. A jam stops it until the jam is cleared."""

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
        self._clear_levels = clear_levels  # the sensor levels of an empty half
        self.states = states
        self._steps = steps
        self._scheduler = Scheduler()
        self.step = self._scheduler.step  # see Scheduler.step
        self._wait = Wait()
        self.state = states.starting
        self._entered = bytearray(8)  # the states entered and not yet reported, oldest first
        self._entered[0] = states.starting
        self.unreported = 1  # how many these are
        self.reported = -1  # the state reported last
        self.coalesced = -1  # the newest state whose report is held back, or -1
        self.door_changes = 0  # changes by its door while reports are coalesced
        self.jam: Jam | None = None
        self.latched = False  # out of order: it stays in that state
        self.was_working = False  # the power was lost while cards moved
        self.door_was_open = False  # since the half last was known to be empty
        self._turning_since = [-1, -1, -1]
        self.turned_ms = [0, 0, 0]  # how long each roller has turned, for the wear counters
        self.timed = [0, 0, 0]  # cards timed at each roller since the last report
        self.sums = [0, 0, 0]  # of their times, in tenths of a millisecond
        self.squares = [0, 0, 0]

    # -- states ---------------------------------------------------------------------------------

    def enter(self, state: int) -> None:
        """Change the state, and queue the change for the controller's report.

        IllegalTransition if the half's table does not contain the change; UnreportedChanges if the queue is
        full of changes that must all be reported.
        """
        if state != self.state:
            if not self._steps[self.state] >> state & 1:
                raise IllegalTransition("from state %d to %d" % (self.state, state))
            if self.unreported == len(self._entered):
                self._coalesce(state)
            self.state = state
            if not self.unreported or self._entered[self.unreported - 1] != state:
                self._entered[self.unreported] = state
                self.unreported += 1

    def _coalesce(self, state: int) -> None:
        """Make room in the full queue: of a door that moved meanwhile, the newest state is enough."""
        quiet = self.states.quiet()
        before, last = self._entered[self.unreported - 2], self._entered[self.unreported - 1]
        if before not in quiet or last not in quiet or state not in quiet:
            raise UnreportedChanges("%d changes wait, now to state %d" % (self.unreported, state))
        self.unreported -= 1

    def next_unreported(self) -> int:
        """Take the oldest state that the controller has not reported yet."""
        first = self._entered[0]
        self.unreported -= 1
        for at in range(self.unreported):
            self._entered[at] = self._entered[at + 1]
        return first

    def idle(self) -> bool:
        """Whether no motion of this half runs."""
        return not self._scheduler.motions

    def paused(self) -> bool:
        """Whether nothing of this half moves now: it is idle, or pauses between two cards."""
        return self._wait.paused or self.idle()

    def end_pause(self, now_us: int) -> None:
        """Resume the motion that paused for the board."""
        self._scheduler.wake(now_us)

    def start(self, now_us: int) -> None:
        """Start the self-test: at power-up, after service, or on command."""
        self.jam = None
        self.enter(self.states.starting)
        self._scheduler.start(self._self_test(), self._wait, now_us)

    def _self_test(self) -> "Steps":
        raise NotImplementedError

    def _by_sensors(self) -> None:
        """Enter the state that follows from the door and the sensors alone."""
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
        """The name of the first sensor that contradicts an empty, closed half; None if none does."""
        for sensor, level, name in self._clear_levels:
            if self._hardware.level(sensor) != level:
                return name
        return None

    # -- people ---------------------------------------------------------------------------------

    def door_opened(self, place: str, cards: int) -> None:
        """Stop the work of this half: hands may be inside, so nothing inside is proved any more."""
        self.door_was_open = True
        states = self.states
        if self.state in (states.idle, states.unproved):
            self.enter(states.door_open)
        elif self.state not in (states.jammed, states.door_open, states.service, states.out_of_order):
            self.stop(place, "door_opened", cards)

    def halt(self, place: str, cards: int) -> None:
        """Stop the work of this half on a host's command, with the effect of an opened door."""
        states = self.states
        idle = (states.idle, states.unproved, states.jammed, states.door_open)
        if self.state not in idle + (states.service, states.out_of_order):
            self.stop(place, "stopped", cards)

    def door_closed(self) -> None:
        """Let the sensors decide the state after the door was closed."""
        if self.state == self.states.door_open:
            self._by_sensors()

    def clear(self, now_us: int) -> None:
        """The half was emptied: home its axes, after which it may work again."""
        self.door_was_open = self.was_working = False
        self.start(now_us)

    # -- stopping -------------------------------------------------------------------------------

    def stop(self, place: str, cause: str, cards: int) -> None:
        """Stop every motion of this half at once and enter the jammed state."""
        for roller in self._rollers:
            self.run(roller, STOP)
        self._scheduler.stop_all()
        self.jam = Jam(place, cause, cards)
        self.door_was_open = cause == "door_opened"
        self.enter(self.states.jammed)

    def stalled(self, sensor: int) -> bool:
        """Whether this sensor reports a stalled motor of this half; if so, the half has stopped."""
        for stall, place in self._stalls:
            if stall == sensor and self.state != self.states.jammed:
                self.stop(place, "motor_stall", 1)
                return True
        return False

    def time_card(self, roller: int, took_us: int) -> None:
        """Add the time that a card took at a roller to the statistics. Allocates nothing."""
        tenths = took_us // 100
        if tenths < MOST_TENTHS and self.timed[roller] < MOST_TIMED:
            self.timed[roller] += 1
            self.sums[roller] += tenths
            self.squares[roller] += tenths * tenths

    def run(self, roller: int, direction: int) -> None:
        """Turn or stop a roller, and count for how long it turns."""
        self._hardware.run(roller, direction)
        since = self._turning_since[roller]
        now = self._scheduler.now_us
        if since >= 0:
            self.turned_ms[roller] += ticks.diff(now, since) // 1000
        self._turning_since[roller] = now if direction else -1
