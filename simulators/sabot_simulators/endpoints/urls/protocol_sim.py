"""``serial.serial_for_url("sim://NAME?seed=1&speed=max")``: an emulated device as a serial port.

Devices with a name are shared by everybody in the process who asks for that name and remember everything
while the process lives. One without a name belongs to its port object, which can be closed and opened again.
A device runs while at least one port is open; no thread is left when the last one is closed.
"""

import errno
import threading
from random import Random
from typing import TYPE_CHECKING, Any

from serial.serialutil import PortNotOpenError, SerialBase, SerialException, SerialTimeoutException
from serial.serialutil import Timeout as Deadline

from sabot_simulators.device_settings import BadSetting, DeviceSettings
from sabot_simulators.emulated_device import FirmwareMissing, emulate
from sabot_simulators.endpoints.device_server import DeviceServer, InProcessCable, Unplugged, wire_ms
from sabot_simulators.endpoints.impairment import Impairment
from sabot_simulators.endpoints.in_process import announce

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Bench:
    """One emulated device with the ports that are open to it."""

    def __init__(self, settings: DeviceSettings) -> None:
        self.device = emulate(settings, wire_ms())
        self.served: DeviceServer | None = None
        self.unplugged = False
        """While set, no port can be opened to it."""
        self._open = 0
        self._lock = threading.Lock()

    def plug(self) -> InProcessCable:
        """Another port is opened."""
        if self.unplugged:
            raise SerialException("no such device: its cable is unplugged")
        with self._lock:
            if self.served is None:
                self.served = DeviceServer(self.device)
            self._open += 1
            cable = InProcessCable(self.served)
        self.served.plug(cable)
        return cable

    def unplug(self, cable: InProcessCable) -> None:
        """A port is closed."""
        with self._lock:
            served = self.served
            if served is None:
                return
            served.unplug(cable)
            self._open -= 1
            if not self._open:
                self.served = None
                served.close()


_named: dict[str, tuple[DeviceSettings, Bench]] = {}
_named_lock = threading.Lock()


def bench(name: str, settings: DeviceSettings) -> Bench:
    """The device of a name; SerialException if it is there with other settings."""
    with _named_lock:
        known = _named.get(name)
        if known is None:
            known = _named[name] = (settings, Bench(settings))
    if known[0] != settings and settings != DeviceSettings():
        raise SerialException(f"the emulated device '{name}' is there already, with other settings")
    return known[1]


class Serial(SerialBase):
    """A serial port whose other end is an emulated device."""

    _port: str | None
    _timeout: float | None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._bench: Bench | None = None
        self._cable: InProcessCable | None = None
        self._mischief: Impairment | None = None
        super().__init__(*arguments, **named)

    def open(self) -> None:
        """Plug in."""
        if self._port is None:
            raise SerialException("a port must be given before it can be opened")
        if self.is_open:
            raise SerialException("the port is open already")
        if self._bench is None:
            try:
                name, settings = DeviceSettings.from_url(self._port)
            except (BadSetting, ValueError) as error:
                raise SerialException(errno.EINVAL, str(error)) from error
            try:
                self._bench = bench(name, settings) if name else Bench(settings)
                announce("sim", name, self._bench.device)
            except FirmwareMissing as error:
                raise SerialException(errno.ENOENT, str(error)) from error
            if settings.drop or settings.corrupt:
                self._mischief = Impairment(Random(settings.seed), settings.drop, settings.corrupt)
        self._cable = self._bench.plug()
        self.is_open = True

    def close(self) -> None:
        """Unplug."""
        cable, self._cable = self._cable, None
        if self.is_open and cable is not None and self._bench is not None:
            self.is_open = False
            cable.interrupt()
            self._bench.unplug(cable)

    @property
    def bench(self) -> Bench:
        """The device behind this port, for tests and for faults on demand."""
        if self._bench is None:
            raise PortNotOpenError
        return self._bench

    def _reconfigure_port(self) -> None:
        """An emulated device takes any speed and parity."""

    def _cable_or_error(self) -> InProcessCable:
        cable = self._cable
        if cable is None:
            raise PortNotOpenError
        return cable

    @property
    def in_waiting(self) -> int:
        """Bytes that can be read at once."""
        return self._cable_or_error().waiting()

    def read(self, size: int = 1) -> bytes:
        """As pyserial promises: ``size`` bytes, or fewer when the time-out is over."""
        cable = self._cable_or_error()
        deadline = Deadline(self._timeout)  # type: ignore[arg-type]  # None waits for ever
        data = b""
        try:
            while len(data) < size:
                more = cable.read(size - len(data), deadline.time_left())
                if not more:
                    break
                data += more
        except Unplugged as error:
            if not data:
                raise SerialException(str(error)) from error
        return data

    def write(self, data: "Buffer", /) -> int:
        """Send bytes to the device."""
        cable = self._cable_or_error()
        sent = bytes(data)
        arrives = sent if self._mischief is None else self._mischief.carry(sent)[0]
        try:
            if arrives and cable.write(arrives, self.write_timeout) < len(arrives):
                raise SerialTimeoutException("the emulated device takes no bytes")
        except Unplugged as error:
            raise SerialException(str(error)) from error
        return len(sent)

    def flush(self) -> None:
        """Nothing waits on this side."""

    def cancel_read(self) -> None:
        """End a read that waits."""
        cable = self._cable
        if cable is not None:
            cable.interrupt()

    def reset_input_buffer(self) -> None:
        """Forget what was not read."""
        self._cable_or_error().clear()

    def reset_output_buffer(self) -> None:
        """Nothing waits on this side."""

    @property
    def out_waiting(self) -> int:
        """Nothing waits on this side."""
        return 0

    def _update_break_state(self) -> None:
        """There are no such lines."""

    def _update_rts_state(self) -> None:
        """There are no such lines."""

    def _update_dtr_state(self) -> None:
        """There are no such lines."""
