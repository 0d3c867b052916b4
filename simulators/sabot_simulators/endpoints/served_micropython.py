"""The shipped firmware on a real MicroPython, with its end of the wire, in lock step over two pipes.

What a command needs of the people is learnt from the cable: each frame is overheard before the firmware gets
it. What the firmware reports comes over the pipe.
"""

from sabot_protocol import ticks
from sabot_protocol.frame import DELIMITER
from sabot_simulators.board_faults import damage_memory
from sabot_simulators.chips import LOG_AND_MARK_SECTORS, SimFlash, SimFram
from sabot_simulators.command_sniffer import CableTap, CommandSniffer
from sabot_simulators.emulated_device import FirmwareMissing, Port, ServedSteppedDevice
from sabot_simulators.endpoints.settings import Settings
from sabot_simulators.micropython_device import MicroPythonDevice, NoMicroPython, WireOptions, micropython
from sabot_simulators.view import View

HEAP = "768k"  # the firmware is compiled into it from its source, with the wire's end

MOST_SAID = 768  # bytes; answers to the frames of one read must be heard before the next frame is carried


class MicroPythonPort:
    """A cable at the board; what passes over it is overheard, frame by frame."""

    def __init__(self, device: "ServedMicroPythonDevice", number: int) -> None:
        self.number = number
        self.boot = device.boots
        self._device = device
        self._ears = CableTap(device.overheard)
        self._said = b""  # not taken by the host yet: beyond MOST_SAID the board says nothing more
        self._due: int | None = None

    def receive(self, data: bytes, now: int) -> None:
        """Bytes from the host, frame by frame, with somebody at hand who prepares what each needs."""
        while data:
            end = data.find(DELIMITER) + 1 or len(data)
            if self._ears.host_said(data[:end]):
                self._device.settle()
            self._carry(data[:end], now)
            data = data[end:]

    def poll(self, now: int, room: bool = True) -> bytes:
        """Bytes for the host."""
        if not room:
            self._carry(b"", now, False)
            return b""
        before, self._said = self._said, b""
        self._carry(b"", now)
        said, self._said = before + self._said, b""
        return said

    def deadline(self) -> int | None:
        """When the board has more to say."""
        return self._due

    def _carry(self, data: bytes, now: int, room: bool = True) -> None:
        if self.boot != self._device.boots:
            return
        said, due = self._device.joined.carry(data, self.number, now, room and len(self._said) < MOST_SAID)
        self._due = None if due is None else ticks.add(now, due)
        if said:
            self._said += said
            self._ears.device_said(said)


class ServedMicroPythonDevice(ServedSteppedDevice):
    """A process with MicroPython that runs the machine."""

    joined: MicroPythonDevice

    def __init__(self, settings: Settings, now_ms: int = 0) -> None:
        self.overheard = CommandSniffer(self)
        self._ports: dict[int, MicroPythonPort] = {}
        super().__init__(settings, now_ms)

    def _start(self) -> None:
        self._ports.clear()
        if self.boots > 1:
            self.joined.crashed = self.crashed
            self.joined.restart(self.now_ms)
            return
        settings = self.settings
        flash = SimFlash(LOG_AND_MARK_SECTORS)
        wire = WireOptions(
            settings.serial, self.flags, settings.events_kept, self.wire.randbytes, flash, self.now_ms
        )
        try:
            python = micropython(HEAP)
        except NoMicroPython as error:
            raise FirmwareMissing(str(error)) from error
        self.joined = MicroPythonDevice(
            self.machine, None, SimFram(), python=python, wire=wire, heard=self.heard
        )
        self._listen()  # the joined one heard the machine itself

    # -- cables ---------------------------------------------------------------------------------

    def plug(self) -> MicroPythonPort:
        """Another cable."""
        number = next(each for each in range(256) if each not in self._ports)
        self._ports[number] = port = MicroPythonPort(self, number)
        return port

    def unplug(self, port: Port) -> None:
        """A cable is pulled."""
        if isinstance(port, MicroPythonPort) and port.boot == self.boots:
            del self._ports[port.number]
            self.joined.unplug(port.number)

    def tick(self, now_ms: int) -> None:
        """The wire's time."""
        if now_ms != self.now_ms:
            self.now_ms = now_ms
            self.joined.tick(now_ms)

    def _harm(self, cause: str) -> None:
        assert isinstance(self.joined.chip, SimFram)
        damage_memory(self.joined.chip, cause)

    # -- lock step ------------------------------------------------------------------------------

    def view(self) -> View:
        """What the core believes."""
        return self.joined.view()

    def _edge(self, sensor: int, level: int, at_us: int, now_us: int) -> None:
        self.joined.edge(sensor, level, at_us, now_us)

    def _step(self, now_us: int) -> int | None:
        self.joined.reports.clear()  # heard, and nobody else reads them
        return self.joined.step()

    def _idle(self) -> bool:
        return self.joined.idle()

    def close(self) -> None:
        """End the process."""
        self.joined.close()
