"""The board's pins joined to the mechanism: what the firmware drives moves it, what it does shows on pins.

Which pin is what is read from the firmware's own table, ``boards/rp2040/pins.py``.
"""

from collections.abc import Callable
from random import Random

from sabot_firmware import hardware, machine_constants
from sabot_firmware.boards.rp2040 import pins
from sabot_simulators.mechanism.elevator_model import NOISE_UM, ElevatorModel
from sabot_simulators.mechanism.faults import PlannedFault
from sabot_simulators.mechanism.moving_parts import CAPACITIES, SHOE, SHUFFLER
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.rp2040.runner_messages import (
    AxisMoves,
    AxisPins,
    AxisReached,
    BoardReport,
    BoardWiring,
    Called,
    Change,
    EncoderPins,
    NoiseWanted,
    OutputsSet,
    PinSet,
    Returned,
    RunResult,
    SampleWanted,
    Shown,
)

ELEVATOR, PUSHER = 0, 1  # the axes
STEP_UM = machine_constants.ELEVATOR_STEP_UM
PUSHER_STEPS = machine_constants.PUSHER_US // 1000
LOST_STEPS = machine_constants.CARD_THICKNESS_UM // STEP_UM
HIGHEST_COUNT = 4095
NOISE_SIZE = 4096  # bytes sent at a time
THERMOMETER = 4  # the converter's channel
ROOM_TEMPERATURE = 876  # at 27 degrees Celsius (RP2040 data sheet, 4.9.5: 0.706 V); it never changes here
COLOUR_COUNTS = {
    hardware.NOTHING: 400,
    hardware.RED: 1228,
    hardware.BLUE: 2047,
    hardware.FACE: 2866,
    hardware.COVER: 3700,
}
BACK_BITS = (pins.FEED_BACK_BIT, pins.INSERT_BACK_BIT, pins.DEAL_BACK_BIT)


def board_wiring() -> BoardWiring:
    """What the emulator must know of the firmware's table of pins."""
    return BoardWiring(
        outputs=(*(drive for _, drive, _ in pins.ROLLERS), pins.GRIPPER),
        axes=(
            AxisPins(pins.ELEVATOR_STEP, pins.ELEVATOR_UP),
            AxisPins(pins.PUSHER_STEP, None, pins.OUTPUT_CHIP, pins.PUSHER_FORWARD_BIT),
        ),
        encoders=tuple(EncoderPins(encoder >> 1 & 7) for _, _, encoder in pins.ROLLERS),
        i2c=0,
        expanders=pins.EXPANDERS,
        expander_interrupt=pins.EXPANDER_INTERRUPT,
        display=pins.DISPLAY,
        card_reader=pins.CARD_READER,
        fram_spi=0,
        fram_select=pins.FRAM_SELECT,
        uart=0,
    )


class SteppedElevatorModel(ElevatorModel):
    """A platform that goes where its steps bring it, not where it is sent."""

    def __init__(self, machine: SimulatedMachine, capacity: str) -> None:
        _, blade_um, travel_um = CAPACITIES[capacity]
        super().__init__(machine.agenda, machine.random, machine.faults, machine.sensors, blade_um, travel_um)
        self._to_lose = 0

    def begins(self) -> None:
        """A move begins: the occasion for losing some of its steps."""
        if self._faults.strikes("lost_steps", "chamber", 1):
            self._to_lose = LOST_STEPS

    def stepped(self, steps: int) -> None:
        """So many steps were made, up or down; at its ends it goes no further."""
        lost = min(abs(steps), self._to_lose)
        self._to_lose -= lost
        steps -= lost if steps > 0 else -lost
        self.platform_um = self._to_um = min(max(self.platform_um + steps * STEP_UM, 0), self._travel_um)
        if self.platform_um:
            self._sensors.set(hardware.ELEVATOR_HOME, 0)
        elif steps < 0:
            self._sensors.arrive(hardware.ELEVATOR_HOME, 1, "elevator")

    def seen_um(self) -> int:
        """What the height sensor sees at this moment."""
        seen_um = self._lower_um
        if self._upper_um and not self.is_open():
            seen_um += self._upper_um
        return round(seen_um + self._random.gauss(0, NOISE_UM))

    def _now_um(self) -> int:
        return self.platform_um


class PinDrivenMachine(SimulatedMachine):
    """The reference machine whose elevator is stepped from outside."""

    def __init__(
        self,
        random: Random,
        faults: tuple[PlannedFault, ...] = (),
        capacity: str = "deck",
        reader: bool = True,
    ) -> None:
        super().__init__(random, faults, capacity, reader)
        self.elevator: SteppedElevatorModel = SteppedElevatorModel(self, capacity)
        self.pusher_steps = 0  # from home; PUSHER_STEPS is the end

    def elevator_driven(self) -> bool:
        """Whether the platform's motor has current."""
        return self._live[SHUFFLER]

    def push_begins(self) -> None:
        """The pusher leaves where it stands."""
        if self._live[SHOE]:
            self._pusher_order += 1
            self._pusher_home = False
            self.sensors.set(hardware.PUSHER_HOME, 0)
            self.sensors.set(hardware.PUSHER_END, 0)

    def pushed(self, steps: int) -> None:
        """The pusher was stepped; at its ends it goes no further."""
        if not self._live[SHOE]:
            return
        self.pusher_steps = min(max(self.pusher_steps + steps, 0), PUSHER_STEPS)
        if self.pusher_steps == PUSHER_STEPS and not self.sensors._true[hardware.PUSHER_END]:
            self._pushed(self._pusher_order)
        elif self.pusher_steps == 0 and not self._pusher_home:
            self._drawn_back(self._pusher_order)


class Wiring:
    """One machine on one board."""

    def __init__(self, machine: PinDrivenMachine) -> None:
        self.machine = machine
        self.changes: list[Change] = []
        """What the board must be told when it runs next."""
        self.on_order: Callable[[float], None] = lambda at_us: None
        """Called for every order to a mover, with its time."""
        self.on_watched: Callable[[Called | Returned], None] = lambda told: None
        """Called when a watched function begins and when it has ended."""
        self._pins = {sensor: (pin, one) for sensor, pin, one in pins.EDGES}
        self._bits = {sensor: (chip, bit, one) for sensor, chip, bit, one in pins.INPUTS}
        self._words = [0] * len(pins.EXPANDERS)
        self._outputs = 0
        self._driven = [0, 0, 0]
        self._gripping = False
        self._steps = [0, 0]  # of each axis, as the board made them
        self._stop_at: list[tuple[int, ...]] = [(), ()]
        self._encoders = [(0, 0, 0.0)] * 3  # velocity, since when, pulses by then
        self._face = hardware.NO_FACE
        self._noise_stuck = False
        self._give_noise()
        machine.on_edge = self.edge
        for sensor in range(hardware.SENSORS):
            self.edge(sensor, machine.sensors.levels[sensor], 0)
        self._show_contact()

    def moving(self) -> list[str]:
        """What is driven at this moment, apart from the axes, whose steps tell that."""
        shelf = self.machine.sensors.levels[hardware.SHELF]
        found = [f"roller {number}" for number, level in enumerate(self._driven) if level]
        if self._outputs >> (pins.SHELF_UP_BIT if shelf else pins.SHELF_DOWN_BIT) & 1:
            found.append("shelf")
        if self._gripping != self.machine.elevator.closed:
            found.append("gripper")
        return found

    def _show_contact(self) -> None:
        self._contact = self.machine.contact()
        chip, bit, one = pins.PRESENCE_CONTACT
        high = one if self._contact else 1 - one
        self._words[chip] = self._words[chip] & ~(1 << bit) | high << bit
        self.changes.append(runner_messages.inputs(chip, self._words[chip]))

    # -- what the mechanism does ----------------------------------------------------------------

    def edge(self, sensor: int, level: int, at_us: int) -> None:
        """A sensor shows another level."""
        if sensor in self._pins:
            pin, one = self._pins[sensor]
            self.changes.append(runner_messages.pin(pin, level if one else 1 - level))
        elif sensor in self._bits:
            chip, bit, one = self._bits[sensor]
            high = level if one else 1 - level
            self._words[chip] = self._words[chip] & ~(1 << bit) | high << bit
            self.changes.append(runner_messages.inputs(chip, self._words[chip]))

    def show_levels(self) -> None:
        """The power is on: every level shows."""
        for sensor in range(hardware.SENSORS):
            self.edge(sensor, self.machine.sensors.levels[sensor], 0)
        self._show_contact()

    def follow(self) -> None:
        """Encoders, reader and home switch follow what the mechanism has come to."""
        for number, roller in enumerate(self.machine._rollers):
            velocity, since, pulses = self._encoders[number]
            if (roller.velocity_um_ms, roller.since_us) != (velocity, since):
                pulses += abs(velocity) * (roller.since_us - since) / 1000 / pins.ENCODER_UM
                self._encoders[number] = (roller.velocity_um_ms, roller.since_us, pulses)
                per_us = abs(roller.velocity_um_ms) / 1000 / pins.ENCODER_UM
                self.changes.append(runner_messages.encoder(number, roller.since_us, pulses, per_us))
        if self.machine.contact() != self._contact:
            self._show_contact()
        face = self.machine.face()
        if face != self._face:
            self._face = face
            self.changes.append(runner_messages.face(face))
        oscillator = self.machine.ring_oscillator
        if oscillator.stuck != self._noise_stuck:
            self._noise_stuck = oscillator.stuck
            self.changes.append(runner_messages.noise_stuck(oscillator.bit if oscillator.stuck else None))
        home = self._steps[PUSHER] - self.machine.pusher_steps
        for axis, stops in (
            (ELEVATOR, (self._steps[ELEVATOR] - self.machine.elevator.platform_um // STEP_UM,)),
            (PUSHER, (home, home + PUSHER_STEPS)),
        ):
            if stops != self._stop_at[axis]:
                self._stop_at[axis] = stops
                self.changes.append(runner_messages.stop_at(axis, *stops))

    # -- what the firmware does -----------------------------------------------------------------

    def take(self, ran: RunResult) -> None:
        """Let the mechanism follow what the board did; its time is that of the run's end."""
        machine = self.machine
        for told in ran.told:
            if isinstance(told, AxisMoves):
                if told.axis == ELEVATOR:
                    machine.elevator.begins()
                else:
                    machine.push_begins()
        elevator, pusher = (now - before for now, before in zip(ran.axes, self._steps, strict=True))
        self._steps = list(ran.axes)
        if elevator and machine.elevator_driven():
            machine.elevator.stepped(elevator)
        if pusher:
            machine.pushed(pusher)
        for told in ran.told:
            self._obey(told)

    def reset(self) -> None:
        """The controller begins again: its pins drive nothing."""
        for roller in range(3):
            self._drive(roller, 0)
        self._gripping = False
        self.machine.grip(False)

    def power_off(self) -> None:
        """Nothing is driven any more; the mechanism knows that by itself."""
        self._driven = [0, 0, 0]
        self._gripping = False
        self._outputs = 0
        self.changes.clear()

    def _obey(self, told: BoardReport) -> None:
        machine = self.machine
        if isinstance(told, PinSet):
            self.on_order(told.at_us)
            if told.pin == pins.GRIPPER:
                self._gripping = bool(told.level)
                machine.grip(self._gripping)
            else:
                self._drive([drive for _, drive, _ in pins.ROLLERS].index(told.pin), told.level)
        elif isinstance(told, OutputsSet):
            self._set_outputs(told.word)
        elif isinstance(told, AxisMoves):
            self.on_order(told.at_us)
        elif isinstance(told, SampleWanted):
            self.changes.append(runner_messages.sample(self._sample(told.channel)))
        elif isinstance(told, NoiseWanted):
            self._give_noise()
        elif isinstance(told, Shown):
            machine.show(told.first.rstrip(), told.second.rstrip())
        elif isinstance(told, Called | Returned):
            self.on_watched(told)
        else:
            assert isinstance(told, AxisReached)

    def _give_noise(self) -> None:
        self.changes.append(runner_messages.noise(self.machine.noise(NOISE_SIZE)))

    def _drive(self, roller: int, level: int) -> None:
        self._driven[roller] = level
        back = self._outputs >> BACK_BITS[roller] & 1
        self.machine.run(roller, (hardware.BACK if back else hardware.FORWARD) if level else hardware.STOP)

    def _set_outputs(self, word: int) -> None:
        risen = word & ~self._outputs
        turned = word ^ self._outputs
        self._outputs = word
        for roller, bit in enumerate(BACK_BITS):
            if turned >> bit & 1 and self._driven[roller]:
                self._drive(roller, 1)
        if risen >> pins.SHELF_DOWN_BIT & 1:
            self.machine.shelve(True)
        if risen >> pins.SHELF_UP_BIT & 1:
            self.machine.shelve(False)
        self.machine.light(word >> pins.LAMP_BIT & 7)

    def _sample(self, channel: int) -> int:
        if channel == THERMOMETER:
            return ROOM_TEMPERATURE
        if channel + 26 == pins.HEIGHT_ADC:
            count = round(self.machine.elevator.seen_um() / pins.HEIGHT_UM_PER_COUNT)
            return min(max(count, 0), HIGHEST_COUNT)
        sensor = hardware.ENTRY if channel + 26 == pins.ENTRY_COLOUR_ADC else hardware.EXIT
        return COLOUR_COUNTS[self.machine.colour(sensor)]
