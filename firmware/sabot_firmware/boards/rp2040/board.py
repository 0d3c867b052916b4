"""``Hardware`` of the Raspberry Pi Pico.

Interrupts put edges into a ring, and ``take_edges`` gives them to the controller in order. The expanders are
read then, all levels before the first edge, so that changes of one moment appear together. The controller
sees the levels of the edges that it was given, never newer ones.
"""

from machine import I2C, Pin

from sabot_firmware import machine_constants
from sabot_firmware.boards.rp2040 import pins
from sabot_firmware.boards.rp2040.analogue import Analogue
from sabot_firmware.boards.rp2040.board_clock import now_us
from sabot_firmware.boards.rp2040.display import Display
from sabot_firmware.boards.rp2040.edges import EdgeRing, watch, watch_interrupt
from sabot_firmware.boards.rp2040.elevator import Elevator
from sabot_firmware.boards.rp2040.expander import Expanders, output
from sabot_firmware.boards.rp2040.noise import raw_noise
from sabot_firmware.boards.rp2040.pusher import Pusher
from sabot_firmware.boards.rp2040.rollers import Rollers
from sabot_firmware.hardware import (
    ELEVATOR,
    ELEVATOR_HOME,
    ENTRY,
    HEIGHT,
    INSERTION,
    PUSHER_END,
    PUSHER_HOME,
    SENSORS,
    SHOE_DOOR,
    SHUFFLER_DOOR,
    Hardware,
)
from sabot_protocol import ticks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_firmware.controller import Controller

# Values in the ring besides sensors
_SCAN = SENSORS << 1  # an expander's input has changed
_ELEVATOR_DONE = SENSORS + 1 << 1

_SHELF_DOWN = output(pins.SHELF_DOWN_BIT)
_SHELF_UP = output(pins.SHELF_UP_BIT)
_NOT_MEASURING = -1


class Rp2040(Hardware):
    """Actuators, sensors and readers. After construction all outputs are off."""

    def __init__(self) -> None:
        self._gripper = Pin(pins.GRIPPER, Pin.OUT, value=0)
        for _, drive, _ in pins.ROLLERS:
            Pin(drive, Pin.OUT, value=0)  # before anything that may fail
        self.ring = EdgeRing()
        self._bus = I2C(0, scl=Pin(pins.I2C_SCL), sda=Pin(pins.I2C_SDA), freq=400000)
        self._expanders = Expanders(self._bus)
        self._rollers = Rollers(self._expanders)
        self._elevator = Elevator(self._elevator_done)
        self._pusher = Pusher(self._expanders)
        self._analogue = Analogue(self._bus)
        self._display = Display(self._bus)
        self._levels = bytearray(SENSORS)
        self._handling = False  # an edge is being given: encoders are read as they were when it came
        self._edge_us = 0
        self._height_um = 0
        self._measured_at_us = _NOT_MEASURING
        self._lines: list[str | None] = [None, None]  # what the display does not show yet
        self._lamp = 0
        self.needs_pause = False  # garbage is to be collected, and the halves are asked to stand for it
        for chip in range(len(pins.EXPANDERS)):
            self._take_levels(chip, self._expanders.scan(chip))
        self._changed = watch_interrupt(self.ring, _SCAN, pins.EXPANDER_INTERRUPT)
        self._watched: list[Pin] = []
        for sensor, number, one in pins.EDGES:
            pin = watch(self.ring, sensor, number, one)
            self._watched.append(pin)
            self._levels[sensor] = pin.value() ^ 1 - one
        self._levels[ELEVATOR] = self._levels[ELEVATOR_HOME]

    # -- edges ----------------------------------------------------------------------------------

    def take_edges(self, controller: "Controller") -> None:
        """Give the controller every edge in the ring, oldest first."""
        ring = self.ring
        self._handling = True
        while ring.take():
            sensor = ring.sensor
            at_us = self._edge_us = ring.at_us
            if sensor < SENSORS:
                self._give(controller, sensor, ring.level, at_us)
            elif sensor == SENSORS:
                self._scan(controller, at_us)
            elif self._elevator.done(bool(self._levels[ELEVATOR_HOME])):
                self._give(controller, ELEVATOR, 1, at_us)
        self._handling = False

    def take_card_edges(self, controller: "Controller") -> None:
        """Give the controller edges of cards that are fed, up to the first edge of another kind.

        Called while the controller does something else: edges of the feeding half only continue motions.
        """
        ring = self.ring
        handling, edge_us = self._handling, self._edge_us
        self._handling = True
        sensor = ring.next_sensor()
        while (sensor == ENTRY or sensor == INSERTION) and ring.take():  # noqa: SIM109  a tuple is allocated
            self._edge_us = ring.at_us
            self._give(controller, sensor, ring.level, ring.at_us)
            sensor = ring.next_sensor()
        self._handling = handling
        self._edge_us = edge_us

    def _give(self, controller: "Controller", sensor: int, level: int, at_us: int) -> None:
        if self._levels[sensor] != level:
            self._levels[sensor] = level
            controller.edge(sensor, level, at_us, now_us())

    def _scan(self, controller: "Controller", at_us: int) -> None:
        """Read the expanders until nothing is new; a bit that came and went is no edge."""
        expanders = self._expanders
        for _ in range(4):
            for chip in range(2):
                changed = expanders.scan(chip)
                if changed:
                    self._take_levels(chip, changed)
                    self._notice(controller, at_us)
                    self._give_bits(controller, chip, changed, at_us)
                if self._changed.value():
                    return

    def _take_levels(self, chip: int, changed: int) -> None:
        word = self._expanders.words[chip]
        sensors = self._expanders.sensors[chip]
        bit = 0
        while changed:
            if changed & 1:
                self._levels[sensors[bit]] = word >> bit & 1
            changed >>= 1
            bit += 1

    def _give_bits(self, controller: "Controller", chip: int, changed: int, at_us: int) -> None:
        sensors = self._expanders.sensors[chip]
        bit = 0
        while changed:
            if changed & 1:
                sensor = sensors[bit]
                controller.edge(sensor, self._levels[sensor], at_us, now_us())
            changed >>= 1
            bit += 1

    def _notice(self, controller: "Controller", at_us: int) -> None:
        """Update the actuators from switches and doors.

        A door cuts its half's motors by hardware. Their outputs are switched off too, so that closing it
        moves nothing.
        """
        levels = self._levels
        if not levels[SHUFFLER_DOOR]:
            self._gripper.value(0)
            self._elevator.stop()
            outputs = self._expanders.outputs
            if outputs & (_SHELF_DOWN | _SHELF_UP):
                self._expanders.drive(outputs & ~(_SHELF_DOWN | _SHELF_UP))
        if not levels[SHOE_DOOR]:
            self._pusher.stop()
        if levels[ELEVATOR_HOME] and self._elevator.at_switch():
            self._give(controller, ELEVATOR, 1, at_us)
        if levels[PUSHER_HOME]:
            self._pusher.at_switch(False)
        if levels[PUSHER_END]:
            self._pusher.at_switch(True)

    def _elevator_done(self) -> None:
        """The elevator's move ended; runs in an interrupt."""
        self.ring.put(_ELEVATOR_DONE)

    def cause_us(self) -> int:
        """The time stamp of the edge that is being handled, or now."""
        return self._edge_us if self._handling else now_us()

    # -- time -----------------------------------------------------------------------------------

    def due_us(self, at_us: int) -> "int | None":
        """Microseconds until ``step`` has something to do, or None."""
        if self._measured_at_us == _NOT_MEASURING:
            return None
        return max(ticks.diff(self._measured_at_us, at_us), 0)

    def step(self, controller: "Controller", at_us: int) -> None:
        """Do what is due."""
        if self._measured_at_us != _NOT_MEASURING and ticks.diff(self._measured_at_us, at_us) <= 0:
            self._measured_at_us = _NOT_MEASURING
            self._height_um = self._analogue.height_um()
            self._give(controller, HEIGHT, 1, at_us)

    def run_deferred(self) -> bool:
        """Do one piece of deferred work, 1 to 2 ms; False if there is none, or an edge waits."""
        if self.ring.next_sensor() >= 0:
            return False
        if self._expanders.lamp != self._lamp:
            self._expanders.light(self._lamp)
            return True
        for line in range(2):
            text = self._lines[line]
            if text is not None:
                self._lines[line] = None
                self._display.show(line, text)
                return True
        return False

    def refresh(self) -> None:
        """Read the encoders before their counters wrap; call it every few seconds."""
        for roller in range(3):
            self._rollers.refresh(roller)

    def safe(self) -> None:
        """Stop every actuator, whatever state the rest is in."""
        self._rollers.stop_all()
        self._gripper.value(0)
        self._elevator.stop()
        self._pusher.stop()
        self._measured_at_us = _NOT_MEASURING
        try:
            self._expanders.drive(0)
            self._expanders.light(0)
        except OSError:
            return  # what it drives moves nothing without the pins

    # -- orders ---------------------------------------------------------------------------------

    def run(self, roller: int, direction: int) -> None:
        """Turn a roller, or stop it."""
        self._rollers.run(roller, direction)

    def travelled_um(self, roller: int) -> int:
        """Distance of a roller's encoder, as it was at the edge that is being handled."""
        return self._rollers.travelled_um(roller, self._edge_us if self._handling else now_us())

    def elevate(self, position_um: int) -> None:
        """Send the platform somewhere."""
        self._levels[ELEVATOR] = 0
        if not self._elevator.send(position_um):
            self.ring.put(_ELEVATOR_DONE)

    def home(self) -> None:
        """Send the platform down to its switch."""
        self._levels[ELEVATOR] = 0
        if not self._elevator.home(bool(self._levels[ELEVATOR_HOME])):
            self.ring.put(_ELEVATOR_DONE)

    def grip(self, closed: bool) -> None:
        """Close or open the gripper."""
        self._gripper.value(1 if closed else 0)

    def shelve(self, down: bool) -> None:
        """Carry the stack down to the shelf, or come back."""
        others = self._expanders.outputs & ~(_SHELF_DOWN | _SHELF_UP)
        self._expanders.drive(others | (_SHELF_DOWN if down else _SHELF_UP))

    def push(self, forward: bool) -> None:
        """Push the store's stack into the shoe, or draw back."""
        self._pusher.push(forward)

    def measure(self) -> None:
        """Read the height, once the sensor has settled."""
        self._levels[HEIGHT] = 0
        self._measured_at_us = ticks.add(now_us(), machine_constants.HEIGHT_US)

    def height_um(self) -> int:
        """The height read last."""
        return self._height_um

    def colour(self, sensor: int) -> int:
        """What a colour reader sees."""
        return self._analogue.colour(sensor)

    def face(self) -> int:
        """What the card reader sees."""
        return self._analogue.face()

    def level(self, sensor: int) -> int:
        """A sensor's level as of the last edge given."""
        return self._levels[sensor]

    def show(self, first: str, second: str) -> None:
        """Show two lines on the display; written as deferred work."""
        self._lines[0] = first
        self._lines[1] = second

    def request_pause(self) -> None:
        """The shuffler half pauses: collect garbage, however little there is."""
        self.needs_pause = True

    def pause_requested(self) -> bool:
        """Whether halves are to pause between two cards."""
        return self.needs_pause

    def noise(self, count: int) -> bytes:
        """Raw bits of the ring oscillator."""
        return raw_noise(count)

    def light(self, colour: int) -> None:
        """Set the lamp; written as deferred work."""
        self._lamp = colour
