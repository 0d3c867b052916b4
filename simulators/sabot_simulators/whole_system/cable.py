"""A cable in virtual time: it delays, loses, damages and repeats what goes over it, and can be pulled.

It never reorders. What a receiver sees twice was recorded on this cable and sent again, as an attacker would.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from sabot_driver.errors import LinkLost
from sabot_driver.io_loop import PortLost, PortOpened
from sabot_simulators.mechanism.agenda import Agenda

RECORDED = 32  # pieces of the last traffic that can be repeated
OPENING_US = (1_000, 300_000)


@dataclass
class Quality:
    """What a cable does to each piece of bytes."""

    loses: float = 0.0
    damages: float = 0.0
    repeats: float = 0.0
    delay_us: tuple[int, int] = (200, 3_000)


class Cable:
    """One cable between a plug of the device and a port of a computer."""

    def __init__(self, agenda: Agenda, random: Random, to_board: Callable[[bytes], None]) -> None:
        self.quality = Quality()
        self.plugged = True
        """Whether bytes pass: the cable is in, and for USB the device has power."""
        self._agenda = agenda
        self._random = random
        self._to_board = to_board
        self._recorded: deque[bytes] = deque(maxlen=RECORDED)
        self._free_us = [0, 0]  # when the last piece arrives, in each direction
        self._plugs = 0  # a piece under way when the cable is pulled is lost
        self.port = CablePort(self)

    def pull(self) -> None:
        """The cable is pulled, or the device's power goes."""
        self.plugged = False
        self._plugs += 1
        self.port.lost()

    def plug(self) -> None:
        """It is put in again."""
        self.plugged = True

    def to_device(self, data: bytes) -> None:
        """Bytes of the host."""
        self._recorded.append(data)
        self._carry(0, data, self._arrive_at_device)

    def to_host(self, data: bytes) -> None:
        """Bytes of the device."""
        self._recorded.append(data)
        self._carry(1, data, self._arrive_at_host)

    def inject(self, data: bytes) -> None:
        """Somebody else's bytes for the device."""
        if self.plugged:
            self._to_board(data)

    def replay(self) -> None:
        """Somebody sends the device what was recorded on this cable."""
        if self._recorded:
            self.inject(self._random.choice(self._recorded))

    def _carry(self, direction: int, data: bytes, arrive: Callable[[tuple[int, bytes]], None]) -> None:
        if not self.plugged:
            return
        quality, random = self.quality, self._random
        if quality.loses and random.random() < quality.loses:
            return
        if quality.damages and random.random() < quality.damages:
            at = random.randrange(len(data))
            data = data[:at] + bytes((data[at] ^ 1 << random.randrange(8),)) + data[at + 1 :]
        if quality.repeats and random.random() < quality.repeats:
            data += random.choice(self._recorded)
        arrives_us = max(self._agenda.now_us + random.randint(*quality.delay_us), self._free_us[direction])
        self._free_us[direction] = arrives_us
        self._agenda.at(arrives_us, arrive, (self._plugs, data))

    def _arrive_at_device(self, piece: tuple[int, bytes]) -> None:
        if self.plugged and piece[0] == self._plugs:
            self._to_board(piece[1])

    def _arrive_at_host(self, piece: tuple[int, bytes]) -> None:
        if self.plugged and piece[0] == self._plugs:
            self.port.arrived(piece[1])


class CablePort:
    """The computer's end: the driver's port in virtual time (``io_loop.Port``)."""

    def __init__(self, cable: Cable) -> None:
        self._cable = cable
        self._opening = 0
        self.is_open = False
        self.on_input: Callable[[], None] = lambda: None
        """Called when ``take`` has something."""
        self._inputs: list[bytes | PortOpened | PortLost] = []

    def start_open(self) -> None:
        """Begin to open the port."""
        self._opening += 1
        cable = self._cable
        cable._agenda.after(cable._random.randint(*OPENING_US), self._opened, self._opening)

    def _opened(self, opening: int) -> None:
        if opening != self._opening:
            return
        if self._cable.plugged:
            self.is_open = True
            self._put(PortOpened())
        else:
            self._put(PortLost(LinkLost("no such port")))

    def start_close(self) -> None:
        """Close it; what has come is dropped."""
        self._opening += 1
        self.is_open = False
        self._inputs.clear()

    def take(self) -> list[bytes | PortOpened | PortLost]:
        """What has happened since the last call."""
        taken, self._inputs = self._inputs, []
        return taken

    def write(self, data: bytes) -> None:
        """Send all of it, or raise LinkLost."""
        if not self.is_open:
            raise LinkLost("the port is closed")
        self._cable.to_device(data)

    def arrived(self, data: bytes) -> None:
        """Bytes have come."""
        if self.is_open:
            self._put(data)

    def lost(self) -> None:
        """The cable is gone."""
        if self.is_open:
            self.is_open = False
            self._put(PortLost(LinkLost("the cable was pulled")))

    def _put(self, what: bytes | PortOpened | PortLost) -> None:
        self._inputs.append(what)
        self.on_input()
