"""The kind of emulated device that runs the board's image on an emulated Pico.

It has two cables, its USB and its UART, and one clock: the machine's time is the wire's too. So that it does
not take a host for dead whose second is longer, it goes no faster than real time when it has heard nothing of
the host for a while. What its people must know they overhear on the cables, commands and events alike.
Without a cable they know nothing, and wait.
"""

import atexit
import os
import tempfile
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from sabot_firmware.critical import FRAM_SIZE
from sabot_protocol.codec import CODEC
from sabot_protocol.errors import FieldError
from sabot_protocol.frame import DELIMITER, Decoder
from sabot_protocol.wire_constants import EVENT, EVENT_HEADER_SIZE, MAC_SIZE, OVERHEAD, SEALED_TO_HOST
from sabot_simulators.board_faults import keys_record
from sabot_simulators.command_sniffer import BODY, KIND, MESSAGE, NUMBER, CableTap, CommandSniffer
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import IDLE_US, CablePort, EmulatedDevice, FirmwareMissing, PlugInUse
from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.rp2040.hosted_pico import NOTICE_US, SHOE_AT_WORK, SHUFFLER_AT_WORK
from sabot_simulators.rp2040.pico import EmulatorMissing, Pico, bootrom
from sabot_simulators.rp2040.reported_state import ReportedState
from sabot_simulators.rp2040.runner_messages import RESET, RunResult
from sabot_simulators.rp2040.wiring import PinDrivenMachine, Wiring, board_wiring
from sabot_simulators.view import View

IMAGE = Path(__file__).parents[3] / "build" / "firmware" / "sabot-rp2040.uf2"
USB, UART = 0, 1
UNKNOWN = -1  # what a half does before anybody has heard of it
TALK_US = 60_000  # after a byte the board is given so long to answer
PATIENCE_US = 2_000_000  # a host that says nothing for so long is waited for: its clock may be a slower one
PAUSE_US = 5_000_000  # whoever moves nothing for so long is not at work, whatever was heard last
BOOT_US = 1_200_000  # until it has tested itself
LOOK_MS = 50  # how often somebody looks at a cable that says nothing
SLICE_US = 1_000_000
HELD_BYTES = 16384  # said and not yet taken by the host


class PicoPort:
    """One of the board's two cables."""

    def __init__(self, device: "PicoDevice", number: int) -> None:
        self.number = number
        self.boot = device.boots
        self.said = b""
        self.heard_us: int | None = None
        """When the host last said something."""
        self._device = device
        self._ears = EventTap(device)

    def receive(self, data: bytes, now: int) -> None:
        """Bytes from the host, frame by frame, after the people have prepared what each needs."""
        self.heard_us = self._device.now_us
        while data:
            end = data.find(DELIMITER) + 1 or len(data)
            if self._ears.host_said(data[:end]):
                self._device.notice()
            self._device.carry(self.number, data[:end])
            data = data[end:]

    def poll(self, now: int, room: bool = True) -> bytes:
        """Bytes for the host."""
        if not room:
            return b""
        said, self.said = self.said, b""
        return said

    def deadline(self) -> int | None:
        """The board has timers of its own; it is looked at now and then."""
        return self._device.now_ms + LOOK_MS

    def board_said(self, data: bytes) -> None:
        """Bytes on their way to the host; a serial line loses what nobody reads."""
        if len(self.said) < HELD_BYTES:
            self.said += data
        self._ears.device_said(data)


class EventTap(CableTap):
    """A cable tap that reads events too."""

    def __init__(self, device: "PicoDevice") -> None:
        super().__init__(device.sniffer)
        self._device = device
        self._events = Decoder()

    def device_said(self, data: bytes) -> None:
        """Bytes on their way to the host."""
        super().device_said(data)
        for payload, _ in self._events.feed(data):
            if payload is None or payload[0] != SEALED_TO_HOST or len(payload) < OVERHEAD:
                continue
            if payload[KIND] == EVENT:
                body = payload[BODY:-MAC_SIZE]
                number = int.from_bytes(payload[NUMBER:BODY], "little")
                self._device.overheard_event(number, payload[MESSAGE], body)


class PicoDevice(EmulatedDevice):
    """An emulated Pico with the mechanism on its pins."""

    machine: PinDrivenMachine
    _new: ClassVar["dict[tuple[object, ...], BootSnapshot]"] = {}
    """Boards that have just booted, by image and settings: the next one of the kind goes on from there."""

    def __init__(self, machine: PinDrivenMachine, settings: DeviceSettings, now_ms: int = 0) -> None:
        super().__init__(machine, settings, now_ms)
        self.sniffer = CommandSniffer(self)
        self._ports: dict[int, PicoPort] = {}
        self._events: tuple[int, int] = (0, 0)  # boot and number of the newest event that was heard
        self._busy_until_us = 0
        self._moved_us = 0
        image = Path(os.environ.get("SABOT_UF2", IMAGE))
        if not image.exists():
            raise FirmwareMissing(f"there is no image of the board at {image}: make firmware")
        try:
            self._begin(image)
        except EmulatorMissing as missing:
            raise FirmwareMissing(str(missing)) from missing
        for fault in settings.faults:
            self.machine.strike(fault)

    @classmethod
    def from_settings(cls, random: Random, settings: DeviceSettings, now_ms: int) -> "PicoDevice":
        """A board with a new machine; FirmwareMissing without its image or the emulator."""
        return cls(PinDrivenMachine(random, (), settings.capacity, settings.reader), settings, now_ms)

    def _begin(self, image: Path) -> None:
        """Boot, or go on from where one of the same kind had booted."""
        self._forget()
        self.boots = 1
        settings = self.settings
        of_its_kind = (settings.seed, settings.serial, settings.capacity, settings.reader)
        key = (f"{image}:{image.stat().st_mtime_ns}", *of_its_kind)
        self._moment = self._new.get(key)
        if self._moment is not None and not self._moment.in_use:
            self.pico = self._moment.pico
            self.machine, self.wiring = self._moment.restored()
            return
        rom = bootrom(Path(tempfile.gettempdir()) / "sabot")
        self.pico = Pico(image, board_wiring(), rom, settings.serial)
        self.wiring = Wiring(self.machine)
        self.pico.power_on()
        self.advance(BOOT_US, 1 << 30)
        if self.settings.seed is not None and self._moment is None:
            self._moment = self._new[key] = BootSnapshot(self.pico, self.machine, self.wiring)

    def _forget(self) -> None:
        self._reported = ReportedState(UNKNOWN, UNKNOWN)

    # -- cables ---------------------------------------------------------------------------------

    def plug(self) -> PicoPort:
        """Another cable; PlugInUse when there are two."""
        free = [number for number in (USB, UART) if number not in self._ports]
        if not free:
            raise PlugInUse("the board has two cables")
        self._ports[free[0]] = port = PicoPort(self, free[0])
        if port.number == USB:
            self.wiring.changes.append(runner_messages.cable(True))
        return port

    def unplug(self, port: CablePort) -> None:
        """A cable is pulled."""
        if isinstance(port, PicoPort) and self._ports.get(port.number) is port:
            del self._ports[port.number]
            if port.number == USB:
                self.wiring.changes.append(runner_messages.cable(False))

    def carry(self, number: int, data: bytes) -> None:
        """Bytes of a host."""
        self.wiring.changes.append(runner_messages.usb(data) if number == USB else runner_messages.uart(data))
        self._busy_until_us = self.now_us + TALK_US

    def tick(self, now_ms: int) -> None:
        """The wire's time is the board's own; this is only to look at the cable now and then."""
        self.now_ms = now_ms

    def _damage_memory(self, cause: str) -> None:
        if cause in ("absent", "read_only"):
            self.pico.break_fram("absent" if cause == "absent" else "deaf")
        elif cause == "blank":
            self.pico.write_fram(bytes(FRAM_SIZE))
        else:
            assert cause == "damaged"
            at, size = keys_record()
            self.pico.write_fram(bytes(byte ^ 8 for byte in self.pico.read_fram(at, size)), at)

    # -- power ----------------------------------------------------------------------------------

    def reboot(self, now_ms: int | None = None) -> None:
        """Cut the power and give it back."""
        if now_ms is not None:
            self.now_ms = now_ms
        self.machine.power_off()
        self._switch_on()

    def _switch_on(self) -> None:
        self._power_lost = False
        self.pico.power_off()
        self.wiring.power_off()
        self.machine.power_on()
        self.wiring.show_levels()
        self.pico.pass_time(self.now_us)
        self.pico.power_on()
        self._new_life()

    def _new_life(self) -> None:
        self._ports.clear()
        self._forget()
        self.boots += 1
        self._busy_until_us = self.now_us + BOOT_US

    # -- virtual time ---------------------------------------------------------------------------

    def notice(self) -> None:
        """Let the board see what somebody has just done."""
        self.advance(self.now_us + NOTICE_US, 1 << 30)

    def settle(self) -> int | None:
        """Let the board see what somebody has just done; when anything happens next."""
        self.notice()
        return self.next_us()

    def next_us(self) -> int | None:
        """The board may do something at any time: when the mechanism does."""
        next_us = self.machine.agenda.next_us()
        soon = self.now_us + LOOK_MS * 1000
        return soon if next_us is None else min(soon, next_us)

    def advance(self, to_us: int, steps: int) -> bool:
        """Let time pass up to a moment, in at most so many steps; whether it got there."""
        for _ in range(steps):
            if self.now_us >= to_us:
                return True
            self._turn(to_us)
        return self.now_us >= to_us

    def run(self, steps: int) -> bool:
        """Let as much time pass as there is work for; whether there is more."""
        for _ in range(steps):
            if not self._working():
                return False
            self._turn(self.now_us + SLICE_US)
        return True

    def _working(self) -> bool:
        if self._power_lost or self.now_us < self._busy_until_us:
            return True
        if self._ahead_of_its_hosts():
            return False
        next_us = self.machine.agenda.next_us()
        if next_us is not None and next_us - self.now_us <= IDLE_US:
            return True
        shuffler, shoe = self._reported.states
        at_work = shuffler in SHUFFLER_AT_WORK or shoe in SHOE_AT_WORK
        return at_work and self.now_us - self._moved_us < PAUSE_US

    def _ahead_of_its_hosts(self) -> bool:
        heard = [port.heard_us for port in self._ports.values() if port.heard_us is not None]
        return bool(heard) and self.now_us - max(heard) > PATIENCE_US

    def _turn(self, end_us: int) -> None:
        """The board runs until something must be known; the mechanism follows."""
        if self._power_lost:
            self._switch_on()
        agenda, wiring = self.machine.agenda, self.wiring
        until = min(each for each in (end_us, agenda.next_us(), self._talk_ends()) if each is not None)
        wiring.follow()
        changes, wiring.changes = wiring.changes, []
        ran = self.pico.run(until, changes)
        agenda.advance(max(int(ran.now_us), agenda.now_us))
        if not self.machine.powered:
            return
        wiring.take(ran)
        if ran.told:
            self._moved_us = self.now_us
        if ran.why == RESET:
            wiring.reset()
            self._new_life()
        else:
            self._hear(ran)

    def _talk_ends(self) -> int | None:
        return self._busy_until_us if self._busy_until_us > self.now_us else None

    def _hear(self, ran: RunResult) -> None:
        for number, data in ((USB, ran.usb), (UART, ran.uart)):
            port = self._ports.get(number)
            if data and port is not None:
                self._busy_until_us = self.now_us + TALK_US
                port.board_said(data)

    # -- what it says ---------------------------------------------------------------------------

    def overheard_event(self, number: int, message_id: int, body: bytes) -> None:
        """An event on its way to a host; it is told once."""
        message = CODEC.find(message_id)
        boot = int.from_bytes(body[:4], "little")
        if message is None or (boot == self._events[0] and number <= self._events[1]):
            return
        self._events = (boot, number)
        try:
            values: tuple[Any, ...] = message.unpack(body[EVENT_HEADER_SIZE:])
        except FieldError:
            return
        self._reported.note(message.name, values)
        self._report(message.name, *values)

    def view(self) -> View:
        """What the firmware has reported, which is not all of its state."""
        return self._reported.view()

    def close(self) -> None:
        """End the emulator, unless the next one of the kind goes on with it."""
        if self._moment is not None and self._moment.pico is self.pico:
            self._moment.in_use = False
        else:
            self.pico.close()


class BootSnapshot:
    """A board that has just booted, with its mechanism."""

    def __init__(self, pico: Pico, machine: PinDrivenMachine, wiring: Wiring) -> None:
        self.pico = pico
        self.in_use = True
        pico.snapshot("booted")
        self._kept = deepcopy((machine, wiring))
        atexit.register(pico.close)

    def restored(self) -> tuple[PinDrivenMachine, Wiring]:
        """The same board and mechanism again; only one can be used at a time."""
        self.in_use = True
        self.pico.restore("booted")
        return deepcopy(self._kept)
