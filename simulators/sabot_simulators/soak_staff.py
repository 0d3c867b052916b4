"""Floor and service at a soaked table: they stop, inspect, purge, jog, mark out of order, overlook cards.

Trouble comes at the first and last cards of a phase and while people recover from another fault, because most
defects were found there.
"""

from contextlib import suppress
from random import Random

from sabot_firmware import hardware, shoe, shuffler
from sabot_protocol.codec import enum_number
from sabot_protocol.errors import Refusal
from sabot_simulators.chips import PowerCut
from sabot_simulators.emulated_device import SteppedDevice
from sabot_simulators.mechanism.faults import PlannedFault
from sabot_simulators.mechanism.moving_parts import SHOE
from sabot_simulators.soak_dealer import SoakDealer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

TROUBLED = 0.2  # how likely a round has trouble at the first or last card of a phase
PHASES = ("stub", "stub", "stub", "stack", "tray", "pusher")
TROUBLES = ("stop", "brown_out", "power_cut")
CARD_US = 60_000  # within which a drawn card comes to the exit
PUSH_US = 1_500_000  # within which the pusher brings a deck
IN_SERVICE = 0.25  # that somebody takes the machine into service, or out of order, before a fault is cleared
AWAY = 0.05  # the same between two rounds or recoveries without a fault
CUT = 0.5  # that the power fails meanwhile
JOGS = (0, 0, 1, 3)
JOG_US = 250_000
ROLLERS = ("feed", "insert", "deal")
LOOKS_IN = 0.4  # that somebody opens the shoe's door in service
OVERLOOKS = 0.3  # that a person who takes the cards out leaves those that cover no sensor
LOOSENS = 0.5  # that a card which was overlooked does not stick any more
LOOKED_FOR = 0.7  # that a deck which came out short is not fed before its card was looked for
UNLOOKED = 0.5  # that the floor says the path was inspected, and looked at nothing
SHUFFLER_FIRST = 0.5  # that the shuffler half is emptied by hand before the machine is
AT_REST = (shoe.EMPTY, shoe.BLOCKED, shoe.JAMMED, shoe.DOOR_OPEN, shoe.UNPROVED)


class Interrupted(Exception):
    """What people waited for does not come any more: somebody stopped the machine, or its supply was low."""


class SoakStaff(SoakDealer):
    """A dealer whose floor and service do what people do, at the worst moment."""

    def __init__(self, device: SteppedDevice, random: Random) -> None:
        super().__init__(device, random)
        self._trouble: tuple[str, str, int] | None = None  # phase, what, and cards left in it

    # -- trouble at the ends of a phase ---------------------------------------------------------

    def deal_round(self) -> bool:
        """One round, in which trouble may wait."""
        self._expect_trouble(PHASES)
        return super().deal_round()

    def feed(self, deck_id: int) -> None:
        """Have a deck shuffled; Interrupted if its card is looked for in the shoe first."""
        short = len(self.decks[deck_id]) < self._deck_size and self.shoe_state == shoe.BLOCKED
        if short and self._random.random() < LOOKED_FOR:
            raise Interrupted("a card is missing")
        super().feed(deck_id)

    def _expect_trouble(self, phases: tuple[str, ...]) -> None:
        if self._trouble is None and self._random.random() < TROUBLED:
            left = self._random.choice((0, 0, 0, 1, 30))
            self._trouble = self._random.choice(phases), self._random.choice(TROUBLES), left

    def wait(self, until: "Callable[[], bool]") -> None:
        """Let time pass; the trouble that waits comes when its phase has so many cards left.

        Interrupted if the wait is in vain then, PowerCut if the trouble is a power cut.
        """
        trouble = self._trouble
        if trouble is None:
            super().wait(until)
            return
        phase, what, left = trouble
        super().wait(lambda: until() or self._comes(phase, left))
        if not self._comes(phase, left):
            return
        self._trouble = None
        self.device.run_for(1 + self._random.randrange(PUSH_US if phase == "pusher" else CARD_US))
        self._strike(what)
        self.device.run_until_idle()
        if not until():
            raise Interrupted(what)

    def _comes(self, phase: str, left: int) -> bool:
        machine = self.device.machine
        if phase == "pusher":
            return self.shoe_state == shoe.LOADING
        if phase == "tray":
            return self.shuffler_state == shuffler.FEEDING and len(machine.tray) <= left
        moving = shoe.EJECTING if phase == "stub" else shoe.DISPENSING
        return self.shoe_state == moving and (phase == "stack" or len(machine.shoe) <= left)

    def _strike(self, what: str) -> None:
        if what == "stop":
            with suppress(Refusal):
                self.device.command("stop")
        elif what == "power_cut":
            raise PowerCut
        else:
            self.device.machine.effects.strike(PlannedFault(what, "controller"))
        self.device.run_until(lambda: True)

    # -- recovery -------------------------------------------------------------------------------

    def recover(self) -> None:
        """Bring the table back; the power may fail or somebody stop it while that is done."""
        self._expect_trouble(("tray", "pusher", "stub"))
        super().recover()

    def _mend(self) -> bool:
        """One round of clearing; service may come before the floor has cleared a fault."""
        self._perhaps_service()
        if self._random.random() < SHUFFLER_FIRST and self.shoe_state != shoe.BLOCKED:
            self._empty_by_hand()
        return super()._mend()

    def _perhaps_service(self) -> None:
        view = self.device.view()
        how_likely = IN_SERVICE if view.shoe_fault or view.shuffler_fault else AWAY
        if self.shoe_state in AT_REST and self._random.random() < how_likely:
            if self._random.random() < 0.5:  # what lies in the exit tray may stay there
                self.device.machine.take_exit()
                self.device.run_until(lambda: True)
            with suppress(Refusal):
                self._service()

    def _service(self) -> None:
        """Service comes, moves something or nothing, and goes; the power may fail meanwhile."""
        device, random = self.device, self._random
        latched = random.random() < 0.5
        if latched:
            device.command("mark_out_of_order", role="service")
        if not latched or random.random() < 0.3:
            device.command("service_mode", 1, role="service")
            for _ in range(random.choice(JOGS)):
                self._jog()
        if random.random() < LOOKS_IN:
            self._look_in()
        self._leave_machine()
        if random.random() < CUT:
            raise PowerCut
        if self.shoe_state == shoe.SERVICE:
            device.command("service_mode", 0, role="service")
            device.run_until_idle()
        if self.shoe_state == shoe.OUT_OF_ORDER:
            device.command("return_to_service", role="service")
            device.run_until_idle()

    def _jog(self) -> None:
        """A roller turns a little, forward or back."""
        roller, amount = self._random.choice(ROLLERS), self._random.choice((-1, 1, 1))
        self.device.command("jog", enum_number("Part", roller), amount, role="service")
        self.device.run_for(1 + self._random.randrange(JOG_US))

    def _look_in(self) -> None:
        """Somebody opens the shoe's door, takes out the cards or not, and closes it."""
        machine = self.device.machine
        machine.open_door(hardware.SHOE_DOOR)
        self.device.run_until(lambda: True)
        if self._random.random() < 0.5:
            self._take_out(hardware.SHOE_DOOR, "service")
        else:
            machine.overlook(SHOE, "service", "looked into the shoe and took nothing")
        machine.close_door(hardware.SHOE_DOOR)
        self.device.run_until(lambda: True)

    def _take_out(self, door: int, person: str = "floor") -> None:
        """Take out every card that is seen; sometimes one that covers no sensor stays, loose or stuck."""
        overlooks = self._random.random() < OVERLOOKS
        self.device.machine.empty_by_hand(door, person if overlooks else None)
        if overlooks and self._random.random() < LOOSENS:
            self.device.machine.loosen(door)

    def _unblock(self) -> None:
        """The floor looks for the card, or says so and did not look; the power may fail at once."""
        if self._random.random() >= UNLOOKED:
            super()._unblock()
            return
        self._inspect()
        if self._random.random() < CUT:
            self.device.run_for(1 + self._random.randrange(PUSH_US))
            raise PowerCut
