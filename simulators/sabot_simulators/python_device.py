"""The shipped controller in this process: ``PythonDevice`` without a wire, ``WiredPythonDevice`` with one."""

import os
from collections.abc import Callable
from random import Random
from typing import Any

from sabot_firmware import house_record, persistent_state, provisioning_mark
from sabot_firmware.controller import Controller
from sabot_firmware.critical import CriticalMemory, Fram
from sabot_firmware.event_log import EventLog
from sabot_firmware.house_record import FlashHouseRecord
from sabot_firmware.provisioning_mark import FlashProvisioningMark
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
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import (
    MODEL,
    UNATTENDED,
    VERSION,
    CablePort,
    CommandValue,
    SteppedDevice,
)
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.micropython_side.piped_board import thermal_noise
from sabot_simulators.micropython_side.scripted_rng import ScriptedRng
from sabot_simulators.view import View, view_of

POWER = enum_number("BootReason", "power")
COMPONENTS = [enum_number("Component", name) for name in ("controller", "card_recognition", "rng")]
NO_IMAGE = bytes(32)  # the hash of a component that is no part of an image that was built


class PythonDevice(SteppedDevice):
    """A machine and the controller that runs it. Commands come by ``command``."""

    serial = bytes(8)

    def __init__(
        self,
        machine: SimulatedMachine,
        draw: Callable[[int], int] | None,
        memory: RecordStore | None = None,
        chip: Fram | None = None,
        log: EventLog | None = None,
        settings: DeviceSettings = UNATTENDED,
        now_ms: int = 0,
    ) -> None:
        """With a ``chip``, every boot reads critical memory from it; else ``memory`` is critical memory."""
        super().__init__(machine, draw, settings, now_ms)
        self.memory = memory if memory is not None else RecordStore()
        self._chip = chip
        self._log = log
        self._restart()

    def _boot(self) -> None:
        self.memory = self._open_memory()
        self.controller = self._new_controller()
        self._edge = self.controller.edge
        self._wire()
        self.controller.start(self._ticks_us())

    def _open_memory(self) -> RecordStore:
        return self.memory if self._chip is None else CriticalMemory(self._chip, persistent_state.RECORDS)

    def _new_controller(self) -> Controller:
        return Controller(self.machine, self.memory, self._make_rng(), self._report, self._utc_s, self._log)

    def _make_rng(self) -> DeviceRng:
        """The device's own generator; a scripted one where the test draws."""
        if self._draw is not None:
            return ScriptedRng(self._draw)
        return DeviceRng(self.machine.noise, self.memory, self.serial, thermal_noise)

    def _wire(self) -> None:
        """Make the device's end of the wire before the controller starts and emits its first events."""

    @property
    def shuffler_state(self) -> int:
        """The state of the shuffler half."""
        return self.controller.shuffler.state

    @property
    def shoe_state(self) -> int:
        """The state of the shoe half."""
        return self.controller.shoe.state

    def view(self) -> View:
        """The controller's state."""
        return view_of(self.controller)

    def _step(self) -> int | None:
        return self.controller.step(self.machine.agenda.now_us & ticks.MASK)

    def _idle(self) -> bool:
        return self.controller.idle()

    def _execute(self, name: str, values: tuple[CommandValue, ...], caller: Caller) -> tuple[Any, ...]:
        return self.controller.execute(name, values, caller)


class WiredPythonDevice(PythonDevice, Executor):
    """A ``PythonDevice`` with its end of the wire; people prepare what a command needs."""

    end: DeviceProtocol

    def __init__(
        self, machine: SimulatedMachine, chip: SimFram, settings: DeviceSettings, now_ms: int = 0
    ) -> None:
        self.serial = settings.serial
        self._flash = SimFlash()
        self._mark_flash = SimFlash(provisioning_mark.SECTORS)
        self._house_flash = SimFlash(house_record.SECTORS)
        self._evidence_flash = SimFlash()
        self._keys_cleared = False  # the firmware restarts because somebody cleared the keys
        super().__init__(machine, None, None, chip, self._open_log(), settings, now_ms)
        BoardFaults(machine.random, chip).join(machine, self._shift_clock, lambda: self.end.clear_clock())

    @classmethod
    def from_settings(cls, random: Random, settings: DeviceSettings, now_ms: int) -> "WiredPythonDevice":
        """A device with a new machine and new memory chips."""
        machine = SimulatedMachine(random, settings.faults, settings.capacity, settings.reader)
        return cls(machine, SimFram(), settings, now_ms)

    def _shift_clock(self, by_s: int) -> None:
        seconds, ms, _ = self.end.utc()
        self.end.set_clock(max(seconds + by_s, 0), ms)

    def _damage_memory(self, cause: str) -> None:
        damage_memory(self.chip, cause)

    @property
    def chip(self) -> SimFram:
        """The chip of critical memory."""
        assert isinstance(self._chip, SimFram)
        return self._chip

    def chips(self) -> "dict[str, SimFram | SimFlash]":
        """All chips that keep something without power, by name."""
        return {
            "critical": self.chip, "log": self._flash, "mark": self._mark_flash, "house": self._house_flash,
            "evidence": self._evidence_flash,
        }  # fmt: skip

    # -- boot -----------------------------------------------------------------------------------

    def reboot(self, now_ms: int | None = None) -> None:
        """Cut the power and give it back."""
        self.chip.power.restore()
        super().reboot(now_ms)

    def _open_memory(self) -> RecordStore:
        return UnusableStore() if self.crashed else super()._open_memory()

    def _boot(self) -> None:
        self._log = self._open_log()
        super()._boot()

    def _open_log(self) -> EventLog:
        return EventLog(self._flash, evidence=EventLog(self._evidence_flash))

    def _new_controller(self) -> Controller:
        controller = super()._new_controller()
        controller.shuffle_commands.device = self.serial
        return controller

    def _wire(self) -> None:
        self.end = DeviceProtocol(
            DeviceIdentity(self.serial, MODEL, VERSION, self.flags), self.memory, self,
            self.controller.shuffle_commands.rng.nonce, self.now_ms, POWER,
            event_capacity=self.settings.events_kept, log=self._log,
            mark=FlashProvisioningMark(self._mark_flash), house=FlashHouseRecord(self._house_flash),
            reopen=super()._open_memory if self.crashed else None, opened=self._keys_cleared,
        )  # fmt: skip
        if self.controller.persistent.record_lost():
            self.end.renew_memory_id()

    def renew_memory_id(self) -> None:
        """Be a new device to hosts, although a seed repeats everything that the firmware draws.

        Else a device that starts anew would have the memory id of the one before it. The host, whose journal
        is ahead of the new device, would refuse it.
        """
        drawn, self.end.random = self.end.random, os.urandom
        self.end.renew_memory_id()
        self.end.random = drawn

    # -- cables ---------------------------------------------------------------------------------

    def plug(self) -> DevicePort:
        """Plug in one more cable."""
        return DevicePort(self.end)

    def unplug(self, port: CablePort) -> None:
        """Pull a cable."""
        if isinstance(port, DevicePort) and port.device is self.end:
            port.close()

    def tick(self, now_ms: int) -> None:
        """Set the wire's time; restart if the keys were cleared while critical memory was out of use."""
        self.now_ms = now_ms
        self.end.tick(now_ms)
        self.end.update_contact(self.machine.contact())
        if self.end.restart_required:
            self.crashed, self._keys_cleared = False, True
            self._restart()
            self._keys_cleared = False

    # -- the executor of the wire's end ---------------------------------------------------------

    def status(self) -> tuple[int, int, int, int, int, int]:
        """The controller's status."""
        return self.controller.status()

    def on_grid(self) -> bool:
        """Whether the device sends on a time grid now."""
        return self.controller.on_grid()

    def idle(self) -> bool:
        """Whether the controller moves nothing."""
        return self.controller.idle()

    def forget_numbers(self) -> None:
        """Let the numbers of rounds and decks begin anew."""
        self.controller.forget_numbers()

    def take_entropy(self, entropy: bytes) -> None:
        """Mix the host's bytes into the generator."""
        self.controller.take_entropy(entropy)

    def draw_key(self) -> bytes:
        """Secret bytes of the controller's generator."""
        return self.controller.draw_key()

    def execute(self, name: str, values: tuple[Any, ...], caller: Caller) -> tuple[Any, ...]:
        """Execute a command of the wire, after the people have prepared what it needs."""
        if name == "component" and values[0] in COMPONENTS:
            return values[0], NO_IMAGE, VERSION
        if self.before_command(name, values):
            self.settle()
        try:
            answer = self.controller.execute(name, values, caller)
        except Refusal:
            self.command_refused()
            raise
        self.command_accepted(name, values)
        return answer

    def _report(self, name: str, *values: Any) -> None:
        self.end.emit(name, *values)
        super()._report(name, *values)

    def _utc_s(self) -> int | None:
        seconds, _, quality = self.end.utc()
        return seconds if quality else None
