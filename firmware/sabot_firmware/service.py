"""Service: self-test, jogging, calibration, emptying the machine, and the out-of-order latch (`MD3 13.E`)."""

from sabot_firmware import machine_constants, shoe, shuffler
from sabot_firmware.hardware import (
    BACK,
    CHAMBER,
    DEAL,
    EXIT_TRAY,
    FEED,
    FORWARD,
    INSERT,
    SECRET_SENSORS,
    SENSORS,
    STOP,
    STORE,
)
from sabot_firmware.refusals import forbidden
from sabot_protocol import ticks
from sabot_protocol.errors import Refusal
from sabot_protocol.modes import SHOE, SHUFFLER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_firmware.controller import Controller
    from sabot_protocol.codec import Values

# Parts and roles, numbered as on the wire (tests/machine/test_wire_numbers.py compares them with the schema)
_ROLLERS = {1: FEED, 2: INSERT, 3: DEAL}
_ELEVATOR = 4
_GRIPPER = 5
_SHELF = 6
SERVICE_ROLE = 4
SECRET_STATES = (shuffler.FEEDING, shuffler.HOLDING, shuffler.STORING)
_AXIS = 3  # instead of a roller: the jog moves an axis, which stops by itself
_AXIS_US = 1000000  # longer than any axis takes
_LEASE_US = 250000  # how long a roller turns without a renewal
_LIMITS = ((-500, 500), (270, 330))  # of blade_um and card_um
# Where service may begin; again, if a jog has jammed one half
SHUFFLER_SERVICEABLE = (
    shuffler.IDLE,
    shuffler.JAMMED,
    shuffler.DOOR_OPEN,
    shuffler.UNPROVED,
    shuffler.OUT_OF_ORDER,
    shuffler.SERVICE,
)
SHOE_SERVICEABLE = (
    shoe.EMPTY,
    shoe.BLOCKED,
    shoe.JAMMED,
    shoe.DOOR_OPEN,
    shoe.UNPROVED,
    shoe.OUT_OF_ORDER,
    shoe.SERVICE,
)


class Service:
    """Commands of technicians, and those of a floor supervisor before service comes."""

    def __init__(self, controller: "Controller") -> None:
        self._controller = controller
        self._persistent = controller.persistent
        self.emptying = False
        self._came_out = 0
        self.jogged = -1  # the roller that a jog turns, or _AXIS
        self._jog_amount = 0
        self._jog_until_us = 0

    # -- out of order ---------------------------------------------------------------------------

    def mark_out_of_order(self) -> "Values":
        """Take the machine out of use until service returns it."""
        self._latch(True)
        self._forget()
        self._controller.shuffler.enter(shuffler.OUT_OF_ORDER)
        self._controller.shoe.enter(shoe.OUT_OF_ORDER)
        return ()

    def return_to_service(self) -> "Values":
        """Service returns the machine to use: it tests itself."""
        self._latch(False)
        self._controller.shoe.door_was_open = False  # a purge needs a look inside from now on
        self._controller.start_halves()
        return ()

    def _latch(self, on: bool) -> None:
        if self._persistent.out_of_order != on:
            before = self._persistent.pack()
            self._persistent.out_of_order = on
            self._persistent.save_or_undo(before)
            self._controller.shuffler.latched = self._controller.shoe.latched = on
            self._controller.report("out_of_order_changed", 1 if on else 0)

    # -- service --------------------------------------------------------------------------------

    def service_mode(self, on: int) -> "Values":
        """Begin or end service; never during a round, never while cards move."""
        controller = self._controller
        half_states = (
            (controller.shuffler, SHUFFLER_SERVICEABLE if on else (shuffler.SERVICE,), SHUFFLER),
            (controller.shoe, SHOE_SERVICEABLE if on else (shoe.SERVICE,), SHOE),
        )
        for half, allowed, number in half_states:
            if half.state not in allowed:
                mask = sum([1 << state for state in allowed])
                raise Refusal("wrong_state", (half.state, mask, number))
        if on:
            self._forget()
            controller.shuffler.enter(shuffler.SERVICE)
            controller.shoe.enter(shoe.SERVICE)
        else:
            self.stop_jog()
            controller.start_halves()
        return ()

    def _forget(self) -> None:
        """Hands and jogs may change anything from now on: nothing inside is proved any more."""
        self.emptying = False
        self._controller.shuffler.feeding_deck = 0
        self._controller.shuffler.forget_shelf()
        self._controller.shoe.forget()
        self._controller.shoe.cleared = True  # also after a power cut, which the record takes for empty

    def self_test(self) -> "Values":
        """Start the self-test of both halves."""
        self._controller.start_halves()
        return ()

    def jog(self, part: int, amount: int) -> "Values":
        """Move one part. Nothing inside is proved in service, so a jog cannot make a claim wrong.

        A roller's jog is a lease: it ends unless the host renews it. Only a technician may begin it; the
        owner of the session may renew and end it without another proof.
        """
        controller = self._controller
        if part in _ROLLERS:
            if not -1 <= amount <= 1:
                raise Refusal("bad_field", (1,))
            if not amount:
                self.stop_jog()
                return ()
            if self.jogged == _ROLLERS[part] and amount == self._jog_amount:
                self._jog_until_us = controller.after_us(_LEASE_US)
                return ()
        if controller.role() != SERVICE_ROLE:
            raise Refusal("wrong_role", (controller.role(),))
        hardware = controller.hardware
        batch = hardware.capacity > machine_constants.DECK_CAPACITY
        most = (
            machine_constants.ELEVATOR_TRAVEL_BATCH_UM if batch else machine_constants.ELEVATOR_TRAVEL_DECK_UM
        )
        if part not in _ROLLERS and not 0 <= amount <= (most if part == _ELEVATOR else 1):
            raise Refusal("bad_field", (1,))
        self.stop_jog()
        self.jogged = _ROLLERS.get(part, _AXIS)
        self._jog_amount = amount
        self._jog_until_us = controller.after_us(_LEASE_US if part in _ROLLERS else _AXIS_US)
        if part in _ROLLERS:
            hardware.run(self.jogged, FORWARD if amount > 0 else BACK)
        elif part == _ELEVATOR:
            hardware.elevate(amount)
        elif part == _GRIPPER:
            hardware.grip(bool(amount))
        elif part == _SHELF:
            hardware.shelve(bool(amount))
        else:
            hardware.push(bool(amount))
        return ()

    def jog_due_us(self) -> int | None:
        """Stop a jogged part when its lease is over; microseconds until then, or None."""
        if self.jogged < 0:
            return None
        left = self._controller.left_us(self._jog_until_us)
        if left <= 0:
            self.stop_jog()
            return None
        return left

    def stop_jog(self) -> None:
        """End the jog, if there is one."""
        if self.jogged >= 0 and self.jogged != _AXIS:
            self._controller.hardware.run(self.jogged, STOP)
        self.jogged = -1

    def calibrate(self, what: int, value: int) -> "Values":
        """Set one calibration value, with its date."""
        lowest, highest = _LIMITS[what - 1]
        if not lowest <= value <= highest:
            raise Refusal("bad_field", (1,))
        now_s = self._controller.utc_s()
        if now_s is None:
            raise forbidden("time_unknown")
        before = self._persistent.pack()
        self._persistent.calibration[what - 1][0] = value
        self._persistent.calibration[what - 1][1] = now_s
        self._persistent.save_or_undo(before)
        self._controller.configure()
        self._controller.report("calibrated", what, value, *self._controller.who())
        return ()

    def calibration(self, what: int) -> "Values":
        """One calibration value and when it was set."""
        value, set_s = self._persistent.calibration[what - 1]
        return what, value, set_s

    def sensors(self) -> "Values":
        """All sensor levels now, without those that would reveal the slots of a running shuffle."""
        hardware = self._controller.hardware
        levels = 0
        for sensor in range(SENSORS):
            levels |= hardware.level(sensor) << sensor
        if self._controller.shuffler.state in SECRET_STATES:  # platform, gripper, height reveal slots
            return levels & ~SECRET_SENSORS, 0, [0, 0, self._travelled_um(DEAL)]
        return levels, hardware.height_um(), [self._travelled_um(each) for each in (FEED, INSERT, DEAL)]

    def _travelled_um(self, roller: int) -> int:
        return ticks.diff(self._controller.hardware.travelled_um(roller), 0)  # negative after turning back

    # -- emptying -------------------------------------------------------------------------------

    def empty_machine(self) -> "Values":
        """Eject every card inside through the exit, as cards that nothing proves."""
        controller = self._controller
        self.emptying = True
        self._came_out = 0
        controller.shuffler.forget_shelf()
        if controller.shuffler.state == shuffler.STORED:
            controller.shuffler.enter(shuffler.UNPROVED)
        return ()

    def count_ejected(self, cards: int) -> None:
        """Count cards that were ejected."""
        self._came_out += cards

    def continue_emptying(self) -> bool:
        """Start the next step of emptying, if one is possible now; whether one was started."""
        controller = self._controller
        if not self.emptying:
            return False
        hardware, half = controller.hardware, controller.shoe
        if controller.shuffler.state == shuffler.JAMMED or half.state in (shoe.JAMMED, shoe.BLOCKED):
            self.emptying = False
            return False
        if hardware.level(EXIT_TRAY):
            return False  # until it is taken
        if half.state in (shoe.READY, shoe.UNPROVED):
            controller.dealing.eject_unproved()
            return True
        if half.state != shoe.EMPTY or controller.shuffler.state in (shuffler.STORING, shuffler.DOOR_OPEN):
            return False
        if hardware.level(STORE):
            controller.push_unproved()
            return True
        if hardware.level(CHAMBER):
            if controller.shuffler.state == shuffler.IDLE:  # its sensor was dead, and is repaired
                controller.shuffler.enter(shuffler.UNPROVED)
            controller.shuffler.unload(controller.now_us)
            return True
        self.emptying = False
        if controller.shuffler.state == shuffler.UNPROVED and controller.shuffler.occupied() is None:
            controller.shuffler.enter(shuffler.IDLE)
        controller.report("emptied", self._came_out)
        return True
