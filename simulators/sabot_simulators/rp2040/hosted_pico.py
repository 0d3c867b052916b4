"""A whole device on an emulated Pico: the board's image, the mechanism on its pins, a host on its cable.

Everything moves in lock step with emulated time. The people at the table (``Dealer``) use it like any other
device; what they see of it comes over the wire.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from sabot_firmware import shoe, shuffler
from sabot_protocol import grid, ticks
from sabot_protocol.codec import CODEC
from sabot_protocol.handshake import ClearExchange
from sabot_protocol.host_protocol import CABLE_LOST
from sabot_protocol.notifications import EventGap, EventReceived
from sabot_protocol.session import provision_proof
from sabot_protocol.wire_constants import DEVICE
from sabot_simulators.emulated_device import (
    LONGEST_WAIT_US,
    OPENING_UTC_S,
    CommandValue,
    WaitTimeout,
)
from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.rp2040.pico import Pico
from sabot_simulators.rp2040.reported_state import ReportedState
from sabot_simulators.rp2040.runner_messages import SAID, RunResult
from sabot_simulators.rp2040.wiring import PinDrivenMachine, Wiring
from sabot_simulators.simulated_host import PEOPLE, PERSON, SimulatedHost
from sabot_simulators.view import DeckView, View

NOTICE_US = 40_000  # what people do is noticed within this
# What a command changed is told so soon after its answer, at ticks
TOLD_US = (2 + grid.ANSWERED_AFTER) * 1_000 * grid.PERIOD_MS
SHUFFLER_AT_WORK = (shuffler.STARTING, shuffler.FEEDING, shuffler.STORING)
SHOE_AT_WORK = (shoe.STARTING, shoe.LOADING, shoe.DISPENSING, shoe.EJECTING)


class ProvisioningFailed(Exception):
    """The device has not taken the key it was given."""


class HostedPico(SimulatedHost):
    """A device on an emulated Pico that is provisioned, connected and has its clock set."""

    machine: PinDrivenMachine

    def __init__(self, pico: Pico, machine: PinDrivenMachine) -> None:
        super().__init__(machine, lambda bound: 0)
        self.pico = pico
        self.wiring = Wiring(machine)
        self.resets = 0
        self._reported = ReportedState(shuffler.STARTING, shoe.STARTING)
        self._make_keys()
        self._question: ClearExchange | None = None
        self.host = self._new_host(None)
        machine.on_power_cut = self._cut
        pico.power_on()

    def __deepcopy__(self, memo: dict[int, Any]) -> "HostedPico":
        """The same device at another time: its host goes on from the same event, but has no session."""
        twin = object.__new__(type(self))
        memo[id(self)] = twin
        for name, value in self.__dict__.items():
            if name != "host":
                setattr(twin, name, deepcopy(value, memo))
        twin.host = twin._new_host(None)
        twin.host.resume_from(self.host.memory_id, *self.host.position)
        return twin

    # -- the life of a device -------------------------------------------------------------------

    def provision(self) -> tuple[Any, ...]:
        """Find out what it is, give it its keys and set its clock; its identity."""
        identity = self.ask_clear("identify")
        serial = identity[8]
        nonce = self.machine.random.randbytes(16)
        entropy = self.machine.random.randbytes(32)
        (proof,) = self.ask_clear("provision", nonce, self._keys[DEVICE], entropy)
        if proof != provision_proof(self._keys[DEVICE], nonce, serial):
            raise ProvisioningFailed(serial)
        self.connect()
        for role in PEOPLE:
            self.ask("set_key", role, role, PERSON, self._person_key(role, serial))
        return identity

    def connect(self) -> None:
        """Open a session and set the clock."""
        self.host.connect(self._now_ms())
        self.run_until(lambda: self.host.up)
        self.ask("set_clock", self._utc_s() or OPENING_UTC_S, 0)

    def ask_clear(self, name: str, *values: bytes) -> tuple[Any, ...]:
        """Ask what may be asked without a session."""
        question = self._question = ClearExchange(CODEC, name, values, self._now_ms())
        self.run_until(lambda: question.answer is not None)
        self._question = None
        assert question.answer is not None
        return tuple(question.answer)

    def reboot(self, now_ms: int | None = None) -> None:
        """Power off and on; the host connects again."""
        self.power_off()
        self.power_on()
        self.connect()

    def power_off(self) -> None:
        """The power goes at this very moment."""
        self.pico.power_off()
        self.machine.power_off()
        self.wiring.power_off()
        self.host.disconnect(CABLE_LOST)

    def power_on(self) -> None:
        """The power comes back."""
        self.machine.power_on()
        self._reported = ReportedState(shuffler.STARTING, shoe.STARTING)
        self.wiring.show_levels()
        self.pico.pass_time(self.machine.agenda.now_us)
        self.pico.power_on()

    def _cut(self) -> None:
        self.power_off()

    def pull_cable(self) -> None:
        """The USB cable is pulled out."""
        self.wiring.changes.append(runner_messages.cable(False))
        self.host.disconnect(CABLE_LOST)

    def plug_cable(self) -> None:
        """It is put in again, and the host connects."""
        self.wiring.changes.append(runner_messages.cable(True))
        self.connect()

    # -- what the device says -------------------------------------------------------------------

    @property
    def shuffler_state(self) -> int:
        """What the shuffler half does, as it reported."""
        return self._reported.states[0]

    @property
    def shoe_state(self) -> int:
        """What the shoe half does, as it reported."""
        return self._reported.states[1]

    def view(self) -> View:
        """What the firmware believes, as far as it can be asked."""
        ids, backs, _, last_played = self.ask("decks")
        last_round = self.ask("last_round")[0]
        decks = tuple(DeckView(each, back, False, ()) for each, back in zip(ids, backs, strict=True))
        return self._reported.view(last_round, last_played, decks)

    def named(self, name: str) -> list[tuple[Any, ...]]:
        """The values of every event of a name."""
        return [values for each, values in self.reports if each == name]

    def _heard(self, event: EventReceived) -> None:
        message = CODEC.find(event.message)
        assert message is not None
        values = message.unpack(event.body)
        self._reported.note(message.name, values)
        self._report(message.name, *values)

    # -- commands -------------------------------------------------------------------------------

    def command(self, name: str, *values: CommandValue, role: str = "table") -> tuple[Any, ...]:
        """Send a command over the wire and wait for its effects; Refusal if the device refuses."""
        answer = self.ask(name, *values, role=role)
        self.run_for(TOLD_US)
        self.on_command(name, values)
        return answer

    # -- lock step ------------------------------------------------------------------------------

    def run_until(self, done: Callable[[], bool]) -> int:
        """Let time pass until something has happened; how many microseconds that took."""
        agenda = self.machine.agenda
        began = agenda.now_us
        settled = began + NOTICE_US if self.wiring.changes else began
        while True:
            self._turn(settled)
            if self.on_step is not None:
                self.on_step()
            if done() and agenda.now_us >= settled:
                return agenda.now_us - began
            if agenda.now_us - began > LONGEST_WAIT_US:
                raise WaitTimeout(f"ten minutes have gone at {agenda.now_us} us")

    def run_for(self, us: int) -> None:
        """Let so much time pass."""
        agenda = self.machine.agenda
        end = agenda.now_us + us
        while agenda.now_us < end:
            self._turn(end)

    def run_until_idle(self) -> None:
        """Let time pass until neither half moves."""
        self.run_for(NOTICE_US)
        states = self._reported.states
        self.run_until(lambda: states[0] not in SHUFFLER_AT_WORK and states[1] not in SHOE_AT_WORK)

    def _turn(self, end_us: int) -> None:
        """The board runs until something must be known; mechanism and host follow."""
        agenda, wiring = self.machine.agenda, self.wiring
        now = self._now_ms()
        out = self._question.poll(now) if self._question is not None else self.host.poll(now)
        if out:
            self._say(bytes(out))
        until = [agenda.now_us + LONGEST_WAIT_US]
        if end_us > agenda.now_us:
            until.append(end_us)
        next_us = agenda.next_us()
        if next_us is not None:
            until.append(next_us)
        for deadline in (self.host.deadline(), self._question.deadline() if self._question else None):
            if deadline is not None:  # at its millisecond, wherever in one the last run ended
                until.append((agenda.now_us // 1000 + max(ticks.diff(deadline, now), 1)) * 1000)
        wiring.follow()
        changes, wiring.changes = wiring.changes, []
        ran = self.pico.run(min(until), changes)
        agenda.advance(max(int(ran.now_us), agenda.now_us))
        if not self.machine.powered:
            return
        wiring.take(ran)
        if ran.why == runner_messages.RESET:
            self.resets += 1
            wiring.reset()
        said = self._said(ran)
        if ran.why == SAID or said:
            self._hear(said)

    def _say(self, data: bytes) -> None:
        """Bytes of the host, over its cable: USB."""
        self.wiring.changes.append(runner_messages.usb(data))

    def _said(self, ran: RunResult) -> bytes:
        """What came over that cable."""
        return ran.usb

    def _hear(self, data: bytes) -> None:
        now = self._now_ms()
        if self._question is not None:
            self._question.receive(data)
            return
        self.host.receive(data, now)
        for each in self.host.take_notifications():
            if isinstance(each, EventReceived):
                self._heard(each)
                self.host.acknowledge(each.boot_id, each.n)
            elif not isinstance(each, EventGap):
                self.happened.append(each)
