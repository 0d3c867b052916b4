"""The shoe half: pusher to shoe to exit tray.

It deals stacks of three, one at a time, and ejects the stub. Every card is counted at the exit by its own
shadow: as long as a card, with a gap before and after it. The shoe never retries: what is not as it must be
stops it, and the round is void (`MD3 13.D`).
"""

from sabot_firmware import figures
from sabot_firmware.half import Half
from sabot_firmware.hardware import (
    DEAL,
    EXIT,
    EXIT_TRAY,
    FORWARD,
    NOTHING,
    PUSHER_END,
    PUSHER_HOME,
    SHOE,
    SHOE_DOOR,
    STOP,
    STORE,
    Hardware,
)
from sabot_firmware.jam import LENGTH_TOLERANCE_UM, SWITCH_MARGIN_US, WRONG_BACKS, roller_window_us
from sabot_firmware.motion import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_firmware.motion import Steps

# What the half is doing
EMPTY = 0
LOADING = 1
READY = 2
DEALING = 3
STACK_WAITING = 4
EJECTING = 5
EJECTED = 6
JAMMED = 7

STACK_CARDS = 3
LANDING_US = roller_window_us(figures.DEALT_UM - figures.EXIT_UM - figures.CARD_LENGTH_UM)


# What the sensors must say before this half is believed to be empty
CLEAR_LEVELS = (
    (SHOE_DOOR, 1, "shoe_door"),
    (EXIT, 0, "exit"),
    (SHOE, 0, "shoe"),
    (EXIT_TRAY, 0, "exit_tray"),
    (PUSHER_HOME, 1, "pusher"),
)


class Shoe(Half):
    """Deals what the pusher brought."""

    def __init__(self, hardware: Hardware) -> None:
        super().__init__(hardware, (DEAL,), CLEAR_LEVELS, EMPTY, JAMMED)
        self._wait = Wait()
        self.back = NOTHING  # the colour that the deck in the shoe must show
        self.stacks = 0
        self.dealt = 0  # cards counted at the exit since the deck was loaded
        self.stub: int | None = None  # cards of the stub, once it is out

    # -- what the core calls --------------------------------------------------------------------

    def load(self, back: int, now_us: int) -> None:
        """Push the stored deck into the empty shoe."""
        self.back = back
        self.stacks = 0
        self.dealt = 0
        self.stub = None
        self.jam = None
        self.state = LOADING
        self._scheduler.start(self._push_deck(), self._wait, now_us)

    def deal_stack(self, now_us: int) -> None:
        """Deal the next stack of three into the empty exit tray."""
        self.state = DEALING
        self._scheduler.start(self._deal_stack(), self._wait, now_us)

    def eject(self, now_us: int) -> None:
        """Eject and count the stub."""
        self.state = EJECTING
        self._scheduler.start(self._eject_stub(), self._wait, now_us)

    def edge(self, sensor: int, level: int, at_us: int, now_us: int) -> None:
        """A sensor of this half has changed."""
        if sensor == EXIT_TRAY and level == 0 and self.state == DEALING:
            self._stop("exit_tray", "stack_disturbed", STACK_CARDS)  # taken before it was complete
            return
        self._scheduler.edge(sensor, level, at_us, now_us)

    # -- motions --------------------------------------------------------------------------------

    def _push_deck(self) -> "Steps":
        """The pusher moves the stack from the store into the shoe, and goes back."""
        hardware, wait = self._hardware, self._wait
        if hardware.level(SHOE) or not hardware.level(STORE):
            return self._stop("pusher", "sensor_disagrees", 0)
        hardware.push(True)
        late = yield wait.edge(PUSHER_END, 1, figures.PUSHER_US + SWITCH_MARGIN_US)
        if late:
            return self._stop("pusher", "switch_missed", 0)
        hardware.push(False)
        late = yield wait.edge(PUSHER_HOME, 1, figures.PUSHER_US + SWITCH_MARGIN_US)
        if late:
            return self._stop("pusher", "switch_missed", 0)
        if hardware.level(STORE) or not hardware.level(SHOE):
            return self._stop("pusher", "sensor_disagrees", 0)
        self.state = READY

    def _deal_stack(self) -> "Steps":
        """Three cards, and the roller stops before the fourth reaches the exit."""
        hardware, wait = self._hardware, self._wait
        yield from self._deal_cards(STACK_CARDS)
        if self.state == JAMMED:
            return
        yield wait.time(LANDING_US)
        if not hardware.level(EXIT_TRAY):
            return self._stop("exit_tray", "sensor_disagrees", STACK_CARDS)
        self.stacks += 1
        self.state = STACK_WAITING
        while hardware.level(EXIT_TRAY):
            yield wait.edge(EXIT_TRAY, 0, figures.SHELF_US)
        self.state = READY

    def _eject_stub(self) -> "Steps":
        """Everything that is left, until no more comes."""
        before = self.dealt
        yield from self._deal_cards(figures.BATCH_CAPACITY)
        if self.state == JAMMED:
            return
        if self._hardware.level(SHOE):
            return self._stop("deal", "misfeed", 1)
        self.stub = self.dealt - before
        self.state = EJECTED

    def _deal_cards(self, most: int) -> "Steps":
        """Cards past the exit into the empty exit tray, each counted; a stub ends when no more comes."""
        hardware, wait = self._hardware, self._wait
        if hardware.level(EXIT_TRAY):
            return self._stop("exit_tray", "sensor_disagrees", 0)
        hardware.run(DEAL, FORWARD)
        for _ in range(most):
            late = yield wait.edge(EXIT, 1, roller_window_us(figures.EXIT_UM))
            if late and self.state == EJECTING:
                break
            if late:
                return self._stop("deal", "misfeed", 1)
            if not self._fits():
                return
            start_um = hardware.travelled_um(DEAL)
            late = yield wait.edge(EXIT, 0, roller_window_us(figures.CARD_LENGTH_UM + LENGTH_TOLERANCE_UM))
            if late or not self._is_a_card(start_um):
                return self._stop("exit", "double_feed", 2)
            self.dealt += 1
        hardware.run(DEAL, STOP)

    def _fits(self) -> bool:
        """Whether the card at the exit shows the back it must; if not, the half has stopped."""
        seen = self._hardware.colour(EXIT)
        if seen == self.back:
            return True
        self._stop("exit", WRONG_BACKS[seen], 1)  # a face: MD3 13.A
        return False

    def _is_a_card(self, start_um: int) -> bool:
        """Whether the shadow that just ended was one card long."""
        length_um = self._hardware.travelled_um(DEAL) - start_um
        return abs(length_um - figures.CARD_LENGTH_UM) <= LENGTH_TOLERANCE_UM
