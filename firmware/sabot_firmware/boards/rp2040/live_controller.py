"""The controller as the board runs it, and what stands in for one that failed."""

from sabot_firmware import shoe, shuffler
from sabot_firmware.boards.rp2040.board_clock import now_us
from sabot_firmware.boards.rp2040.fram import nothing
from sabot_firmware.controller import Controller, sooner
from sabot_protocol.codec import enum_number
from sabot_protocol.executor import Executor
from sabot_protocol.schema import FAULT_LATCHED_FLAG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

WATCHDOG_RESET = enum_number("Fault", "watchdog_reset")


class DisabledExecutor(Executor):
    """In place of a controller that failed repeatedly: it reports out of order and executes nothing."""

    def status(self) -> "tuple[int, int, int, int, int, int]":
        """Out of order, for a fault of the controller."""
        return shuffler.OUT_OF_ORDER, shoe.OUT_OF_ORDER, WATCHDOG_RESET, FAULT_LATCHED_FLAG, 0, 0


class LiveController(Controller):
    """A controller that reads the clock itself: a motion begins when its record is written, not before."""

    orders_only = False
    """The loop talks: what follows from an edge beyond orders waits for the next step."""
    between: "Callable[[], None]" = staticmethod(nothing)
    """Called between two steps of what takes long: cards that are fed do not wait for its end."""

    def prepare_command(self) -> None:
        """Bring up to date what the next command depends on, and serve fed cards."""
        super().prepare_command()
        self.between()

    def process_changes(self) -> None:
        """Process changes of state, unless the loop talks: the next step does it then."""
        if not self.orders_only:
            self.between()
            super().process_changes()

    def _save_contents(self) -> None:
        self.between()
        super()._save_contents()

    def update_panel(self) -> None:
        """Show the states of both halves, and serve fed cards before and after."""
        self.between()
        super().update_panel()
        self.between()

    def move_on(self, at_us: int) -> "int | None":
        """Let motions do what is due, and no more; how long until the next is due, or None."""
        jog = self.service.jog_due_us()  # its end waits for nothing
        due, other = self.shuffler.step(at_us), self.shoe.step(at_us)
        return sooner(sooner(due, other), jog)

    @property
    def now_us(self) -> int:
        """The time at this moment, for a motion that begins now: fed cards are served before."""
        self.between()
        return now_us()

    @now_us.setter
    def now_us(self, _: int) -> None:
        """Ignores assignments: the time always comes from the hardware counter."""
