"""One emulated device: the shipped firmware on the simulated mechanism, with its end of the wire.

This is the only module of this folder that knows the firmware's core and the mechanism. The rest sees an
object with cables: bytes in, bytes out, when it is due, and virtual time that somebody lets pass.

Two clocks: the mechanism lives in virtual microseconds, which may run at any speed; the wire lives in the
milliseconds of whoever serves it, because the host at its other end has timers too.
"""

from random import Random, SystemRandom

from sabot_firmware import hardware, kept, shoe, shuffler
from sabot_firmware.core import Core
from sabot_firmware.critical import CriticalMemory
from sabot_firmware.event_log import EventLog
from sabot_firmware.rng.chance import Chance
from sabot_protocol import ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.device_end import Caller, DeviceEnd, Executor, Identity
from sabot_protocol.device_port import DevicePort
from sabot_protocol.errors import Refusal
from sabot_simulators.chips import SimFlash, SimFram
from sabot_simulators.ends.settings import Settings
from sabot_simulators.mechanism.cards import Card, new_deck
from sabot_simulators.mechanism.machine import Machine
from sabot_simulators.shoe_hands import ShoeHands
from sabot_simulators.view import view_of

VERSION = "0.1.0"  # of all it is made of
COMPONENTS = (1, 2, 3)  # controller, card recognition, generator
SIMULATOR = 0x0002
TEST_RNG = 0x0004
POWER = enum_number("BootReason", "power")
A_MOMENT_US = 1000
IDLE_US = 2_000_000  # longer than anything takes that somebody waits for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sabot_protocol.codec import Value, Values


class EmulatedDevice(Executor):
    """A machine, its firmware and everything its cables share. It never waits and reads no clock."""

    def __init__(self, settings: Settings, now_ms: int = 0) -> None:
        self.settings = settings
        self._fram = SimFram()
        self._flash = SimFlash()
        self.stacks_dispensed: list[tuple[int, int]] = []
        """The truth about stacks: (round, stack) for each that was really dealt, over all boots."""
        self.boots = 0
        """How often it was switched on; ports of an earlier boot are dead."""
        # one each, so that a frame sent again or a height read once more does not change the next shuffle
        mechanism = settings.seed if settings.seed is not None else SystemRandom().getrandbits(128)
        self._random = Random(f"{mechanism} mechanism")
        self._wire = _random(settings.seed, "wire")
        self.machine = Machine(self._random, settings.faults, settings.capacity, settings.reader)
        self.machine.on_edge = self._note
        self.machine.on_power_cut = self._power_cut
        self._edges: list[tuple[int, int, int]] = []
        self._power_lost = False
        self._now_ms = now_ms
        self.people = People(self) if settings.dealer else None
        self._boot()

    def _boot(self) -> None:
        settings = self.settings
        flags = SIMULATOR if settings.seed is None else SIMULATOR | TEST_RNG
        identity = Identity(settings.serial, "Sabot simulator", VERSION, flags)
        self._edges = []
        self.boots += 1
        memory, log = CriticalMemory(self._fram, kept.RECORDS), EventLog(self._flash)
        chance = Chance(self.machine.noise)
        self.core = Core(self.machine, memory, chance, self._report, self._utc_s, log)
        self.core.pledges.device = settings.serial
        self.end = DeviceEnd(
            identity,
            memory,
            self,
            self._wire.randbytes,
            self._now_ms,
            POWER,
            event_capacity=settings.events_kept,
            log=log,
        )
        self.core.start(self.now_us & ticks.MASK)

    # -- cables and power -----------------------------------------------------------------------

    def plug(self) -> DevicePort:
        """Another cable."""
        return DevicePort(self.end)

    def unplug(self, port: DevicePort) -> None:
        """A cable is pulled."""
        if port.device is self.end:
            port.close()

    def tick(self, now_ms: int) -> None:
        """The wire's time."""
        self._now_ms = now_ms
        self.end.tick(now_ms)

    def reboot(self, now_ms: int) -> None:
        """The power fails and comes back; cables stay where they are, ports must be plugged anew."""
        self._now_ms = now_ms
        self.machine.power_off()
        self.machine.power_on()
        self._boot()

    def _power_cut(self) -> None:
        """A planned cut: the machine is off already; it is switched on again at the next step."""
        self._power_lost = True

    # -- the core, as the wire asks for it ------------------------------------------------------

    def status(self) -> "tuple[int, int, int, int, int, int]":
        """What the core says of itself."""
        return self.core.status()

    def execute(self, name: str, values: "Values", caller: Caller) -> "Values":
        """Put a command to the core, with a person at hand who has prepared what it needs."""
        people = self.people
        if name == "component" and values[0] in COMPONENTS:
            return values[0], bytes(32), VERSION
        if people is None:
            return self.core.execute(name, values, caller)
        if people.before(name, values):
            self.settle()
        try:
            answer = self.core.execute(name, values, caller)
        except Refusal:
            people.refused()
            raise
        people.after(name, values)
        return answer

    def _report(self, name: str, *values: "Value") -> None:
        self.end.emit(name, *values)
        if name == "stack_dispensed":
            self.stacks_dispensed.append((values[0], values[1]))
        if self.people is not None:
            self.people.heard(name, values)

    def _utc_s(self) -> int | None:
        seconds, _, quality = self.end.utc()
        return seconds if quality else None

    # -- virtual time ---------------------------------------------------------------------------

    @property
    def now_us(self) -> int:
        """Virtual time since the machine was made."""
        return self.machine.agenda.now_us

    def _note(self, sensor: int, level: int, at_us: int) -> None:
        self._edges.append((sensor, level, at_us & ticks.MASK))

    def settle(self) -> int | None:
        """Do everything that is due now; when the firmware is due next (virtual us), or None."""
        if self._power_lost:
            self._power_lost = False
            self.machine.power_on()
            self._boot()
        while True:
            edges, self._edges = self._edges, []
            now_us = self.now_us & ticks.MASK
            for sensor, level, at_us in edges:
                self.core.edge(sensor, level, at_us, now_us)
            due = self.core.step(now_us)
            if not self._edges:
                return None if due is None else self.now_us + due

    def next_us(self) -> int | None:
        """When anything happens next, or None."""
        due, next_us = self.settle(), self.machine.agenda.next_us()
        if due is None or (next_us is not None and next_us < due):
            return next_us
        return due

    def advance(self, to_us: int, steps: int) -> bool:
        """Let virtual time pass up to a moment, in at most so many steps; whether it got there."""
        agenda = self.machine.agenda
        for _ in range(steps):
            due = self.settle()
            agenda.run(to_us if due is None else min(due, to_us))
            if agenda.now_us >= to_us:
                self.settle()
                return True
        return False

    def run(self, steps: int) -> bool:
        """Let as much virtual time pass as there is work for; whether there is more.

        For a machine at rest there is none: what it waits for then is people, the hours of its decks, a motor
        that cools, or a fault that is planned for a time.
        """
        agenda = self.machine.agenda
        for _ in range(steps):
            due, next_us = self.settle(), agenda.next_us()
            if self.core.still() and (next_us is None or next_us - self.now_us > IDLE_US):
                return False
            agenda.run(due)
        self.settle()  # a command that comes now must find the firmware's clock where the machine's is
        return True


def _random(seed: int | None, purpose: str) -> Random:
    """A stream of its own for each purpose; the system's, where nothing has to be repeatable."""
    return SystemRandom() if seed is None else Random(f"{seed} {purpose}")


class People:
    """Those at the table, as far as a machine needs hands: the dealer, and the floor at a jam."""

    def __init__(self, device: EmulatedDevice) -> None:
        self._device = device
        self._new: dict[int, list[Card]] = {}  # by deck id: decks not yet fed
        self._backs: dict[int, int] = {}  # by deck id
        self._loaded: list[Card] = []  # just put into the tray
        self._pledged: dict[int, int] = {}  # by shuffle id: the deck it is pledged for
        self._laid_in = False
        self.hands: dict[int, list[list[str]]] = {}
        """What lay in each stack or draw, by round: the dealer sees it when the cards are turned over.

        Burnt cards are those of round 0."""
        self.shoe = ShoeHands()

    def before(self, name: str, values: "Values") -> bool:
        """The host is about to ask for something; whether anybody did anything for it."""
        machine = self._device.machine
        if name == "load_shoe":
            return self._lay_in(values[0])
        if name not in ("shuffle", "shuffle_with") or machine.tray:
            return False
        deck_id = values[0] if name == "shuffle" else self._pledged.get(values[0], 0)
        cards = self._new.pop(deck_id, None) or self._in_hand(deck_id)
        if not cards:
            return False
        for card in cards:
            card.face_up = False
        self._loaded = cards
        machine.load(cards)
        return True

    def _in_hand(self, deck_id: int) -> list[Card]:
        back = self._backs.get(deck_id)
        return [card for card in self._device.machine.handed_out if card.back == back]

    def _lay_in(self, deck_id: int) -> bool:
        machine, batch = self._device.machine, self._in_hand(deck_id)
        if not batch or machine.shoe:
            return False
        self.shoe.open_shoe(machine)
        self._device.settle()
        self.shoe.lay_in(batch, machine)
        self._laid_in = True
        return True

    def refused(self) -> None:
        """It was refused: what was prepared is taken back."""
        if self._laid_in:
            self._laid_in = False
            self._device.settle()
            self.shoe.open_shoe(self._device.machine)
            self._device.settle()
            self._empty(hardware.SHOE_DOOR)
        if self._loaded:
            self._loaded = []
            self._device.machine.take_tray()

    def after(self, name: str, values: "Values") -> None:
        """It was accepted."""
        self._loaded, self._laid_in = [], False
        machine = self._device.machine
        if name == "register_deck":
            deck_id, back, _ = values
            gone = [card for card in machine.handed_out if card.back == back]  # of the deck it replaces
            machine.removed += gone
            machine.handed_out = [card for card in machine.handed_out if card.back != back]
            self._backs[deck_id] = back
            self._new[deck_id] = new_deck(back, machine.random, self._device.core.kept.game.cards())
        elif name in ("open_round", "simulate_round"):
            self.hands[values[0]] = []
        elif name == "load_shoe":
            self.hands[0] = []
        elif name == "empty_machine" and machine.exit_tray:  # left there when the power went
            self._soon(self._take_left, 0)

    def heard(self, name: str, values: "tuple[Value, ...]") -> None:
        """The machine reports something; whoever it concerns does it in a moment."""
        if name == "shoe_changed" and values[0] in (shoe.STACK_WAITING, shoe.STUB_WAITING):
            self._soon(self._take, int(values[0]))
        elif name == "shuffle_committed":
            self._pledged = {int(values[1]): int(values[0])}  # the one before is dropped
        elif name == "fault_raised":
            self._soon(self._look, int(values[0]))
        elif name == "shoe_changed" and values[0] == shoe.DOOR_OPEN:
            self._soon(self._device.machine.close_door, hardware.SHOE_DOOR)
        elif name == "shuffler_changed" and values[0] == shuffler.DOOR_OPEN:
            self._soon(self._device.machine.close_door, hardware.SHUFFLER_DOOR)

    def _soon(self, action: "Callable[[int], None]", argument: int) -> None:
        self._device.machine.agenda.after(self._device.settings.dealer_ms * 1000, action, argument)

    def _take(self, waiting: int) -> None:
        machine = self._device.machine
        if self._device.core.status()[1] != waiting:
            return
        taken = machine.take_exit()
        if waiting == shoe.STACK_WAITING and taken:
            seen = [card.name for card in taken if card.number >= 0]
            self.hands.setdefault(self._device.core.status()[4], []).append(seen)
        if not taken:
            self._soon(self._take, waiting)

    def _take_left(self, _: int) -> None:
        self._device.machine.take_exit()

    def _look(self, fault: int) -> None:
        """Something has stopped: mend it, open the door, take every card out, close it again."""
        view = view_of(self._device.core)
        agenda, machine = self._device.machine.agenda, self._device.machine
        for door, found in (
            (hardware.SHOE_DOOR, view.shoe_fault),
            (hardware.SHUFFLER_DOOR, view.shuffler_fault),
        ):
            if found == fault:
                machine.repair()
                machine.open_door(door)
                agenda.after(A_MOMENT_US, self._empty, door)

    def _empty(self, door: int) -> None:
        machine = self._device.machine
        if machine.level(door):
            return  # somebody closed it meanwhile
        machine.empty_by_hand(door)
        if door == hardware.SHUFFLER_DOOR:
            machine.take_tray()
        machine.agenda.after(A_MOMENT_US, machine.close_door, door)
