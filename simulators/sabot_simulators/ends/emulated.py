"""One emulated device: the shipped firmware on the simulated mechanism, with its end of the wire.

This is the only module of this folder that knows the firmware's core and the mechanism. The rest sees an
object with cables: bytes in, bytes out, when it is due, and virtual time that somebody lets pass.

Two clocks: the mechanism lives in virtual microseconds, which may run at any speed; the wire lives in the
milliseconds of whoever serves it, because the host at its other end has timers too.
"""

from random import Random, SystemRandom

from sabot_firmware import hardware
from sabot_firmware.core import Core
from sabot_protocol import ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.device_end import Caller, DeviceEnd, Executor, Identity
from sabot_protocol.device_port import DevicePort
from sabot_protocol.errors import Refusal
from sabot_protocol.memory import Memory
from sabot_simulators.ends.settings import Settings
from sabot_simulators.mechanism.cards import Card, new_deck
from sabot_simulators.mechanism.machine import Machine

SIMULATOR = 0x0002
TEST_RNG = 0x0004
POWER = enum_number("BootReason", "power")
SHOE_PLACES = tuple(enum_number("Place", name) for name in ("pusher", "shoe", "deal", "exit", "exit_tray"))

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sabot_protocol.codec import Value, Values


class EmulatedDevice(Executor):
    """A machine, its firmware and everything its cables share. It never waits and reads no clock."""

    def __init__(self, settings: Settings, now_ms: int = 0) -> None:
        self.settings = settings
        self.memory = Memory()
        self.stacks_dispensed: list[tuple[int, int]] = []
        """The truth about stacks: (round, stack) for each that was really dealt, over all boots."""
        self.reported = 0
        """Events made, over all boots."""
        # one each, so that a frame sent again or a height read once more does not change the next shuffle
        self._random = _random(settings.seed, "mechanism")
        self._draws = _random(settings.seed, "shuffles")
        self._wire = _random(settings.seed, "wire")
        self.machine = Machine(self._random, settings.faults)
        self.machine.on_edge = self._note
        self._edges: list[tuple[int, int, int]] = []
        self.ports: list[DevicePort] = []
        self.people = People(self) if settings.dealer else None
        self._boot(now_ms, POWER)

    def _boot(self, now_ms: int, reason: int) -> None:
        settings = self.settings
        flags = SIMULATOR if settings.seed is None else SIMULATOR | TEST_RNG
        identity = Identity(settings.serial, "Sabot simulator", "0.1.0", flags)
        self.core = Core(self.machine, self._draws.randrange, self._report, self._utc_s)
        self.end = DeviceEnd(
            identity,
            self.memory,
            self,
            self._wire.randbytes,
            now_ms,
            reason,
            event_capacity=settings.events_kept,
        )
        self.reported += 1

    # -- cables ---------------------------------------------------------------------------------

    def plug(self) -> DevicePort:
        """Another cable."""
        port = DevicePort(self.end)
        self.ports.append(port)
        return port

    def unplug(self, port: DevicePort) -> None:
        """A cable is pulled."""
        if port in self.ports:
            self.ports.remove(port)
        port.close()

    def reboot(self, now_ms: int, reason: int = POWER) -> None:
        """The power fails and comes back; cables stay where they are, ports must be plugged anew.

        The core keeps nothing over a power cut yet, so the machine is emptied meanwhile and its decks are
        taken away.
        """
        self.ports.clear()
        settings, happened = self.settings, self.machine.faults.happened
        now_us = self.now_us
        self.machine = Machine(self._random, tuple(each for each in settings.faults if each not in happened))
        self.machine.agenda.now_us = now_us
        self.machine.on_edge = self._note
        self._edges = []
        self.people = People(self) if settings.dealer else None
        self._boot(now_ms, reason)

    # -- the core, as the wire asks for it ------------------------------------------------------

    def status(self) -> "tuple[int, int, int, int, int, int]":
        """What the core says of itself."""
        return self.core.status()

    def execute(self, name: str, values: "Values", caller: Caller) -> "Values":
        """Put a command to the core, with a person at hand who has prepared what it needs."""
        if name == "locate":
            self._report("located", values[0])
            return ()
        if self.people is None:
            return self.core.execute(name, values, caller)
        self.people.before(name, values)
        self._deliver()
        try:
            answer = self.core.execute(name, values, caller)
        except Refusal:
            self.people.refused(name)
            raise
        self.people.after(name, values)
        return answer

    def _report(self, name: str, *values: "Value") -> None:
        self.end.emit(name, *values)
        self.reported += 1
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

    def _deliver(self) -> None:
        edges, self._edges = self._edges, []
        for sensor, level, at_us in edges:
            self.core.edge(sensor, level, at_us, self.now_us & ticks.MASK)

    def settle(self) -> int | None:
        """Do everything that is due now; when something is due next (virtual us), or None."""
        while True:
            self._deliver()
            due = self.core.step(self.now_us & ticks.MASK)
            if not self._edges:
                break
        next_us = self.machine.agenda.next_us()
        if due is not None and (next_us is None or self.now_us + due < next_us):
            next_us = self.now_us + due
        return next_us

    def advance(self, to_us: int, steps: int) -> bool:
        """Let virtual time pass up to a moment, in at most so many steps; whether it got there."""
        for _ in range(steps):
            next_us = self.settle()
            if next_us is None or next_us > to_us:
                self.machine.agenda.advance(to_us)
                return True
            self.machine.agenda.advance(max(next_us, self.now_us))
        return False

    def run(self, steps: int) -> bool:
        """Let as much virtual time pass as there is work for; whether there is more."""
        for _ in range(steps):
            next_us = self.settle()
            if next_us is None:
                return False
            self.machine.agenda.advance(max(next_us, self.now_us))
        return True


def _random(seed: int | None, purpose: str) -> Random:
    """A stream of its own for each purpose; the system's, where nothing has to be repeatable."""
    return SystemRandom() if seed is None else Random(f"{seed} {purpose}")


class People:
    """Those at the table, as far as a machine needs hands: the dealer, and the floor at a jam."""

    def __init__(self, device: EmulatedDevice) -> None:
        self._device = device
        self._decks: dict[int, list[Card]] = {}  # by back: cards in somebody's hands
        self._backs: dict[int, int] = {}  # by deck id
        self._loaded: int | None = None  # the back just put into the tray
        self.hands: dict[int, list[list[str]]] = {}
        """What lay in each stack, by round: the dealer sees it when the cards are turned over."""

    def before(self, name: str, values: "Values") -> None:
        """The host is about to ask for something."""
        machine = self._device.machine
        if name == "shuffle":
            back = self._backs.get(values[0], 0)
            cards = self._decks.get(back, [])
            if cards and not machine.tray:
                self._decks[back] = []
                self._loaded = back
                machine.load(cards)

    def refused(self, name: str) -> None:
        """It was refused: what was prepared is taken back."""
        machine = self._device.machine
        if name == "shuffle" and self._loaded is not None:
            self._decks[self._loaded], machine.tray = machine.tray, []
            machine.load([])
        self._loaded = None

    def after(self, name: str, values: "Values") -> None:
        """It was accepted."""
        self._loaded = None
        if name == "register_deck":
            deck_id, back, _ = values
            self._backs[deck_id] = back
            self._decks[back] = new_deck(back, self._device.machine.random)
        elif name == "open_round":
            self.hands[values[0]] = []

    def heard(self, name: str, values: "tuple[Value, ...]") -> None:
        """The machine reports something; whoever it concerns does it in a moment."""
        if name == "stack_dispensed":
            self._soon(lambda _: self._take_stack(values[0]))
        elif name == "round_ended":
            self._soon(lambda _: self._collect())
        elif name == "fault_raised":
            door = hardware.SHOE_DOOR if values[1] in SHOE_PLACES else hardware.SHUFFLER_DOOR
            self._soon(lambda _: self._clear(door))

    def _soon(self, action: "Callable[[int], None]") -> None:
        agenda = self._device.machine.agenda
        agenda.at(agenda.now_us + self._device.settings.dealer_ms * 1000, action)

    def _take_stack(self, round_id: int) -> None:
        taken = self._device.machine.take_exit()
        if taken:
            self.hands.setdefault(round_id, []).append([card.name for card in taken])

    def _collect(self) -> None:
        """Stub and hands go together again."""
        machine = self._device.machine
        machine.take_exit()
        self._sort(machine.handed_out)
        machine.handed_out = []

    def _sort(self, cards: list[Card]) -> None:
        for card in cards:
            self._decks.setdefault(card.back, []).append(card)

    def _clear(self, door: int) -> None:
        """Open the door, take every card out, close it again."""
        machine = self._device.machine
        machine.open_door(door)
        taken = machine.empty_by_hand(door)
        machine.close_door(door)
        if door == hardware.SHOE_DOOR:
            self._collect()  # the round is void: the hands come back too
            return
        machine.handed_out = [card for card in machine.handed_out if card not in taken]
        self._sort(taken + machine.tray)
        machine.tray = []
        machine.load([])
