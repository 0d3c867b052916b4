"""The shipped firmware in this process."""

from sabot_firmware import persistent_state, provisioning_marker
from sabot_firmware.controller import Controller
from sabot_firmware.critical import CriticalMemory
from sabot_firmware.event_log import EventLog
from sabot_firmware.provisioning_marker import ProvisioningMarker
from sabot_firmware.rng.device_rng import DeviceRng
from sabot_protocol import ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import Caller, DeviceIdentity, DeviceProtocol, Executor
from sabot_protocol.errors import Refusal
from sabot_protocol.provisioning import UnusableStore
from sabot_protocol.record_store import RecordStore
from sabot_simulators.board_faults import BoardFaults, damage_memory
from sabot_simulators.chips import SimFlash, SimFram
from sabot_simulators.emulated_device import MODEL, VERSION, Port, ServedSteppedDevice
from sabot_simulators.endpoints.settings import Settings
from sabot_simulators.micropython_side.piped_board import thermal_noise
from sabot_simulators.view import View, view_of

POWER = enum_number("BootReason", "power")
COMPONENTS = [enum_number("Component", name) for name in ("controller", "card_recognition", "rng")]
NO_IMAGE = bytes(32)  # the hash where a component is no part of an image that was built

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_protocol.codec import Value, Values


class ServedPythonDevice(ServedSteppedDevice, Executor):
    """Core and wire's end as objects of this process."""

    controller: Controller
    end: DeviceProtocol

    def __init__(self, settings: Settings, now_ms: int = 0) -> None:
        self._fram = SimFram()
        self._flash = SimFlash()
        self._mark_flash = SimFlash(provisioning_marker.SECTORS)
        super().__init__(settings, now_ms)
        faults = BoardFaults(self.machine.random, self._fram)
        faults.join(self.machine, self._clock_wrong, lambda: self.end.clear_clock())

    def _clock_wrong(self, by_s: int) -> None:
        """Somebody has set it so."""
        seconds, ms, _ = self.end.utc()
        self.end.set_clock(max(seconds + by_s, 0), ms)

    def reboot(self, now_ms: int) -> None:
        """The power fails and comes back."""
        self._fram.power.restore()
        super().reboot(now_ms)

    def _start(self) -> None:
        settings = self.settings
        memory, log = UnusableStore() if self.crashed else self._open_memory(), EventLog(self._flash)
        rng = DeviceRng(self.machine.noise, memory, settings.serial, thermal_noise)
        self.controller = Controller(self.machine, memory, rng, self._report, self._utc_s, log)
        self.controller.shuffle_commands.device = settings.serial
        identity = DeviceIdentity(settings.serial, MODEL, VERSION, self.flags)
        self.end = DeviceProtocol(
            identity, memory, self, rng.nonce, self.now_ms, POWER,
            event_capacity=settings.events_kept, log=log, mark=ProvisioningMarker(self._mark_flash),
            reopen=self._open_memory if self.crashed else None, opened=self._opened,
        )  # fmt: skip
        if self.controller.persistent.record_lost():
            self.end.renew_memory_id()
        self.controller.start(self.now_us & ticks.MASK)

    def _harm(self, cause: str) -> None:
        damage_memory(self._fram, cause)

    def _open_memory(self) -> RecordStore:
        return CriticalMemory(self._fram, persistent_state.RECORDS)

    # -- cables ---------------------------------------------------------------------------------

    def plug(self) -> DevicePort:
        """Another cable."""
        return DevicePort(self.end)

    def unplug(self, port: Port) -> None:
        """A cable is pulled."""
        if isinstance(port, DevicePort) and port.device is self.end:
            port.close()

    def tick(self, now_ms: int) -> None:
        """The wire's time."""
        self.now_ms = now_ms
        self.end.tick(now_ms)
        self.end.update_contact(self.machine.contact())
        if self.end.restart_required:
            self._begin_anew()

    # -- the core, as the wire asks for it ------------------------------------------------------

    def status(self) -> "tuple[int, int, int, int, int, int]":
        """What the core says of itself."""
        return self.controller.status()

    def on_grid(self) -> bool:
        """What the core says of itself."""
        return self.controller.on_grid()

    def take_entropy(self, entropy: bytes) -> None:
        """Mix the host's bytes into the generator."""
        self.controller.take_entropy(entropy)

    def execute(self, name: str, values: "Values", caller: Caller) -> "Values":
        """Put a command to the core, with a person at hand who has prepared what it needs."""
        if name == "component" and values[0] in COMPONENTS:
            return values[0], NO_IMAGE, VERSION
        if self.asked(name, values):
            self.settle()
        try:
            answer = self.controller.execute(name, values, caller)
        except Refusal:
            self.refused()
            raise
        self.answered(name, values)
        return answer

    def _report(self, name: str, *values: "Value") -> None:
        self.end.emit(name, *values)
        self.heard(name, values)

    def _utc_s(self) -> int | None:
        seconds, _, quality = self.end.utc()
        return seconds if quality else None

    def view(self) -> View:
        """What the core believes."""
        return view_of(self.controller)

    # -- lock step ------------------------------------------------------------------------------

    def _edge(self, sensor: int, level: int, at_us: int, now_us: int) -> None:
        self.controller.edge(sensor, level, at_us, now_us)

    def _step(self, now_us: int) -> int | None:
        return self.controller.step(now_us)

    def _idle(self) -> bool:
        return self.controller.idle()
