"""The whole system in virtual time: one agenda, one seed.

    mechanism ── pins ── board program ── USB cable ── table PC: driver, journal on a simulated disk
                                       └─ UART ─────── observer's PC, attacker

The board runs until something must be known or until the next thing on the agenda; then mechanism, cables and
computers follow. Everything random comes from the seed, each part with its own stream.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from sabot_driver.errors import (
    DeviceTimeout,
    NotExecuted,
    OutcomeUnknown,
    Refused,
    SabotError,
)
from sabot_firmware import shoe, shuffler
from sabot_protocol import ticks
from sabot_protocol.codec import CODEC
from sabot_protocol.errors import Refusal
from sabot_protocol.handshake import ClearExchange
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import Query, Request, astuple, from_values
from sabot_protocol.session import slot_key
from sabot_simulators.board_faults import WRONG_BY_S, BoardFaults
from sabot_simulators.chips import PowerCut, SimFram
from sabot_simulators.emulated_device import CommandValue, SteppedDevice, WaitTimeout
from sabot_simulators.mechanism.faults import PlannedFault
from sabot_simulators.oracle import Oracle
from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.rp2040.wiring import PinDrivenMachine, Wiring
from sabot_simulators.simulated_host import PEOPLE, PERSON
from sabot_simulators.stubs.stub_modules import SERIAL
from sabot_simulators.stubs.stubbed_board import StubbedBoard
from sabot_simulators.view import View, view_of
from sabot_simulators.whole_system.cable import Cable
from sabot_simulators.whole_system.scenario import Scenario
from sabot_simulators.whole_system.simulated_disk import SimulatedDisk
from sabot_simulators.whole_system.sqlite_vfs import SimulatedFiles
from sabot_simulators.whole_system.table_pc import Call, TablePc
from sabot_simulators.whole_system.troubles import Troubles
from sabot_simulators.whole_system.watched_program import DeviceTruth, watch

NOTICE_US = 40_000  # what people do is noticed within this
LONGEST_WAIT_US = 600_000_000
LONGEST_OUTAGE_US = 3_600_000_000  # of the link, before people give up
SLICE_US = 60_000_000  # the board runs at most so long at once
TIMEOUT_MS = 10_000
ATTEMPTS = 6
PAUSE_US = 2_000_000
SECOND_US = 1_000_000
WRONG_CLOCK = PlannedFault("wrong_clock", "controller")
RIGHT_WITHIN_S = 5
SHUFFLER_AT_WORK = (shuffler.STARTING, shuffler.FEEDING, shuffler.STORING)
SHOE_AT_WORK = (shoe.STARTING, shoe.LOADING, shoe.DISPENSING, shoe.EJECTING)


class LinkGone(Exception):
    """People have waited an hour for a session."""


class WholeSystem(SteppedDevice):
    """Everything that runs, and what it did."""

    machine: PinDrivenMachine

    def __init__(self, scenario: Scenario, files: SimulatedFiles, folder: Path) -> None:
        seed = scenario.seed
        super().__init__(PinDrivenMachine(Random(f"{seed}/machine"), scenario.faults), None)
        self.scenario = scenario
        self.random = Random(f"{seed}/world")
        self.problems: list[str] = []
        """Everything that was wrong; empty at the end of a good run."""
        self.story: list[str] = []
        """What happened, for people: one line each."""
        self._trace = hashlib.sha256()
        self.truth = DeviceTruth(on_report=self._controller_reports, on_executed=self._executed)
        self.board = StubbedBoard(ticks_from_us=scenario.ticks_from_us)
        self.board.on_load = lambda program: watch(program, self.truth)
        self.wiring = Wiring(self.machine)
        self.resets = 0
        self.forced_collections = 0
        self.power_cuts = 0
        self._cut_seen = 0
        self._keys = {role: self.random.randbytes(32) for role in (0, 1, *PEOPLE)}
        agenda = self.machine.agenda
        self.usb = Cable(agenda, Random(f"{seed}/usb"), self._to_usb)
        self.uart = Cable(agenda, Random(f"{seed}/uart"), self._to_uart)
        disk, other_disk = (
            SimulatedDisk(Random(f"{seed}/{name}"), lambda: agenda.now_us) for name in ("disk", "other disk")
        )
        files.disks |= {str(folder / "table"): disk, str(folder / "observer"): other_disk}
        self.files = files
        self.pc = TablePc(
            agenda, Random(f"{seed}/pc"), self.usb, disk, folder / "table" / "journal.db", self._keys[0],
            SERIAL, 0, scenario.pc_ticks_from_ms, self.problem,
        )  # fmt: skip
        self.observer = TablePc(
            agenda, Random(f"{seed}/observer"), self.uart, other_disk, folder / "observer" / "journal.db",
            self._keys[1], SERIAL, 1, scenario.pc_ticks_from_ms // 3, self.problem,
        )  # fmt: skip
        self.pcs = (self.pc, self.observer)
        self.machine.on_power_cut = self._supply_failed
        sim = SimFram()
        sim.cells = self.board.fram.cells
        self._record_faults = BoardFaults(Random(f"{seed}/records"), sim)
        self._record_faults.join(self.machine, self._clock_wrong, self._clock_lost)
        strike = self.machine.on_fault
        self.machine.on_fault = lambda fault: self._board_fault(fault, strike)
        self.oracle = Oracle(self)
        self._acknowledged = (0, 0, 0)
        self.sizes: list[tuple[int, int]] = []
        """Objects that the device and the table PC's driver held, looked at between rounds."""
        self.board.power_on()
        self.troubles = Troubles(self)

    def close(self) -> None:
        """End the firmware's thread and let go of the journals."""
        self.board.close()
        for pc in self.pcs:
            pc.kill()

    # -- what happened --------------------------------------------------------------------------

    def problem(self, what: str) -> None:
        """Something is wrong."""
        text = f"{self.machine.agenda.now_us / SECOND_US:.3f} s: {what}"
        if len(self.problems) < 50:
            self.problems.append(text)
        self.note(f"PROBLEM {what}")

    def note(self, what: str) -> None:
        """A line of the story; part of the trace."""
        line = f"{self.machine.agenda.now_us / SECOND_US:.6f} {what}"
        self.story.append(line)
        self._trace.update(line.encode() + b"\n")

    def trace(self) -> str:
        """A hash of everything that happened, bytes on the cables included."""
        return self._trace.hexdigest()

    # -- the device, as people and oracle see it ------------------------------------------------

    @property
    def shuffler_state(self) -> int:
        """The state of the shuffler half."""
        controller = self.truth.controller if self.machine.powered else None
        return shuffler.STARTING if controller is None else controller.shuffler.state

    @property
    def shoe_state(self) -> int:
        """The state of the shoe half."""
        controller = self.truth.controller if self.machine.powered else None
        return shoe.STARTING if controller is None else controller.shoe.state

    def view(self) -> View:
        """What the firmware believes."""
        controller = self.truth.controller
        assert controller is not None
        return view_of(controller)

    def _controller_reports(self, name: str, values: tuple[Any, ...]) -> None:
        """The controller reports: in the firmware's thread, while the world waits."""
        agenda = self.machine.agenda
        next_us = agenda.next_us()
        now_us = self.board.chip.now_us
        agenda.now_us = max(agenda.now_us, now_us if next_us is None else min(now_us, next_us - 1))
        self.note(f"reported {name} {values}")
        if self.truth.controller is not None:
            self._report(name, *values)

    def _executed(self, name: str, values: tuple[Any, ...]) -> None:
        """A command was accepted: in the firmware's thread."""
        self.note(f"executed {name}")
        if name == "set_clock":
            by_s = int(values[0]) - self.true_utc_s()
            self.clock_wrong_by_s = by_s if abs(by_s) > RIGHT_WITHIN_S else 0
            if self.clock_wrong_by_s:
                self.machine.faults.note(WRONG_CLOCK)
        self.on_command(name, values)
        self.command_accepted(name, values)

    # -- power and records ----------------------------------------------------------------------

    def cut_power(self) -> None:
        """The board's power goes."""
        if self.machine.powered:
            self.machine.cut_power()

    def _supply_failed(self) -> None:
        """The machine has no power any more; somebody switches it on again later."""
        self.power_cuts += 1
        self.board.power_off()
        self._left_without_power()

    def _left_without_power(self) -> None:
        self.note("the power is off")
        self.wiring.power_off()
        self.usb.pull()
        self.board.fram.cut_after = None
        self.machine.agenda.after(self.random.randrange(100_000, 90_000_000), self._switched_on, None)

    def _switched_on(self, _: None) -> None:
        self.power_on()

    def power_on(self) -> None:
        """The board's power comes back."""
        if self.machine.powered:
            return
        self.note("the power is on")
        self.machine.power_on()
        self.wiring.show_levels()
        self.board.pass_time(self.machine.agenda.now_us)
        self.board.power_on()
        self.clock_wrong_by_s = 0
        self.usb.plug()

    def pull_usb(self) -> None:
        """The table PC's cable is pulled."""
        self.usb.pull()
        self.wiring.changes.append(runner_messages.cable(False))

    def plug_usb(self) -> None:
        """It is put in again."""
        self.wiring.changes.append(runner_messages.cable(True))
        if self.machine.powered:
            self.usb.plug()

    def _board_fault(self, fault: PlannedFault, strike: Callable[[PlannedFault], None]) -> None:
        if fault.kind == "torn_record":
            self.board.fram.cut_after = self.random.randrange(120)
        else:
            strike(fault)

    def _clock_wrong(self, by_s: int) -> None:
        life = self.truth.life
        if life is None or life.events is None:
            return
        seconds, ms, quality = life.protocol.utc()
        if quality:
            assert by_s in WRONG_BY_S
            self.clock_wrong_by_s += by_s
            life.protocol.set_clock(max(seconds + by_s, 0), ms)

    def _clock_lost(self) -> None:
        life = self.truth.life
        if life is not None and life.events is not None:  # else the power failed while the program started
            life.protocol.clear_clock()

    # -- opening and leaving --------------------------------------------------------------------

    def person_key(self, role: messages.Role) -> bytes:
        """The key of the person with a role, as that person holds it."""
        return self._keys[role]

    def leave_alone(self, seconds: int) -> None:
        """No host is attached for a long time."""
        self.note(f"left alone for {seconds} s")
        self.troubles.over = True
        for pc in self.pcs:
            pc.held_off = True
            pc.stop()
        ends_us = self.machine.agenda.now_us + seconds * SECOND_US
        while self.machine.agenda.now_us < ends_us:
            try:
                self.run_for(3600 * SECOND_US)
            except PowerCut:
                self.wait_for_power()
        self.troubles.over = False
        for pc in self.pcs:
            pc.held_off = False
        self.pc.start()
        if self.scenario.observer:
            self.observer.start()

    def provision(self) -> None:
        """Give the device its keys; the computers start."""
        self._clear("identify")
        nonce, entropy = self.random.randbytes(16), self.random.randbytes(32)
        self._clear("provision", nonce, self._keys[0], entropy)
        self.pc.start()
        self.run_until(lambda: self.pc.up)
        for role in PEOPLE:
            self.command("set_key", role, role, PERSON, slot_key(self._keys[role], SERIAL, role))
        if self.scenario.observer:
            self.command("set_key", 1, messages.Role.OBSERVER, 0, self._keys[1])
            self.observer.start()

    def _clear(self, name: str, *values: bytes) -> None:
        """Ask what may be asked without a session, over a good cable."""
        question = ClearExchange(CODEC, name, values, self._now_ms())
        port = self.usb.port
        port.is_open = True
        while question.answer is None:
            out = question.poll(self._now_ms())
            if out:
                port.write(bytes(out))
            self.run_for(5_000)
            for each in port.take():
                if isinstance(each, bytes):
                    question.receive(each)
        port.start_close()

    # -- commands -------------------------------------------------------------------------------

    def command(self, name: str, *values: CommandValue, role: str = "table") -> tuple[Any, ...]:
        """A person gives a command at the table PC and waits for its outcome. Refusal if it is refused.

        What was certainly not executed is given again, a few times. What may have been executed is resolved.
        """
        kind = messages.BY_NAME[name]
        assert issubclass(kind, Request)
        message = from_values(kind, values)
        slot = messages.Role[role.upper()].value
        by = None if role == "table" else (slot, self._keys[slot])
        for _ in range(ATTEMPTS):
            self.wait_for_link()
            try:
                call = self.pc.ask(message, TIMEOUT_MS, by)
            except SabotError as error:
                self.note(f"{name}: not sent: {type(error).__name__}")
                self.run_for(PAUSE_US)
                continue
            answer = self._outcome(call)
            if answer is not None:
                return astuple(answer)
            self.run_for(PAUSE_US)
        raise Refusal("not_executed")

    def wait_for_link(self) -> None:
        """Wait until the table PC has a session; LinkGone after an hour."""
        ends_us = self.machine.agenda.now_us + LONGEST_OUTAGE_US
        while not self.pc.up:
            self._turn(min(self.machine.agenda.now_us + SECOND_US, ends_us))
            self._raise_cut()
            if self.machine.agenda.now_us >= ends_us:
                raise LinkGone

    def _outcome(self, call: Call) -> Any:
        """The answer; None if the request was certainly not executed. Refusal."""
        started, name = self.pc.starts, call.message.NAME
        while not call.future.done() and not call.killed:
            self._turn(self.machine.agenda.now_us + SECOND_US)
            self._raise_cut()
        error = None if call.killed else call.future.exception()
        if call.killed or (isinstance(error, DeviceTimeout) and not isinstance(call.message, Query)):
            self.note(f"{name}: outcome is asked for")
            return self._resolved(call.number, started)
        if error is None:
            return call.future.result()
        return self._refused(name, error)

    def _refused(self, name: str, error: BaseException) -> None:
        self.note(f"{name}: {type(error).__name__}")
        if isinstance(error, Refused) and not isinstance(error, NotExecuted):
            values = () if error.detail is None else astuple(error.detail)
            raise Refusal(error.NAME or "refused", tuple(values))
        if not isinstance(error, SabotError):
            raise error

    def _resolved(self, number: int, started: int) -> Any:
        """What became of a command; None if it was not executed."""
        for _ in range(ATTEMPTS):
            self.wait_for_link()
            if number in self.pc.resolved:
                found = self.pc.resolved[number]
                if isinstance(found, BaseException):
                    return self._refused("resolved", found)
                return found
            try:
                future = self.pc.resolve(number)
            except SabotError:
                self.run_for(PAUSE_US)
                continue
            if future is None:
                return None  # the record was not on disk, so it was never sent
            starts = self.pc.starts
            while not future.done() and self.pc.starts == starts and self.pc.running:
                self._turn(self.machine.agenda.now_us + SECOND_US)
                self._raise_cut()
            if not future.done():
                continue
            error = future.exception()
            if error is None:
                return future.result()
            if isinstance(error, OutcomeUnknown | Refused):
                return self._refused("resolved", error)
        raise Refusal("interrupted")

    # -- time -----------------------------------------------------------------------------------

    def run_until(self, done: Callable[[], bool]) -> int:
        """Let time pass until a condition holds; PowerCut if the board lost its power meanwhile."""
        agenda = self.machine.agenda
        began = agenda.now_us
        settled = began + NOTICE_US if self.wiring.changes else began
        while True:
            self._turn(settled)
            self._raise_cut()
            if done() and agenda.now_us >= settled:
                return agenda.now_us - began
            if agenda.now_us - began > LONGEST_WAIT_US:
                raise WaitTimeout(f"ten minutes have gone at {agenda.now_us} us")

    def run_for(self, us: int) -> None:
        """Let so much time pass; PowerCut if the board lost its power meanwhile."""
        self._pass(us)
        self._raise_cut()

    def wait_for_power(self) -> None:
        """Let time pass until the board has its power and its controller has started."""
        while not self.machine.powered or self.truth.controller is None:
            self._turn(self.machine.agenda.now_us + SECOND_US)
        self._cut_seen = self.power_cuts

    def _pass(self, us: int) -> None:
        agenda = self.machine.agenda
        end = agenda.now_us + us
        while agenda.now_us < end:
            self._turn(end)

    def run_until_idle(self) -> None:
        """Let time pass until neither half moves."""
        self.run_for(NOTICE_US)
        self.run_until(
            lambda: self.shuffler_state not in SHUFFLER_AT_WORK and self.shoe_state not in SHOE_AT_WORK
        )

    def _raise_cut(self) -> None:
        if self._cut_seen != self.power_cuts:
            self._cut_seen = self.power_cuts
            raise PowerCut

    def _turn(self, end_us: int) -> None:
        """The board runs until something must be known; mechanism, cables and computers follow."""
        agenda, wiring = self.machine.agenda, self.wiring
        until = agenda.now_us + SLICE_US
        if agenda.now_us < end_us < until:
            until = end_us
        for pc in self.pcs:
            pc.run_due()
            due = pc.next_us()
            if due is not None and due < until:
                until = max(due, agenda.now_us)
        next_us = agenda.next_us()
        if next_us is not None and next_us < until:
            until = next_us
        wiring.follow()
        changes, wiring.changes = wiring.changes, []
        ran = self.board.run(until, changes)
        powered = self.machine.powered
        agenda.advance(max(int(ran.now_us), agenda.now_us))
        if not powered:
            return
        if ran.why == "off":
            self.power_cuts += 1
            self.machine.power_off()
            self._left_without_power()
            return
        if not self.machine.powered:
            return
        wiring.take(ran)
        if ran.why == runner_messages.RESET:
            self.resets += 1
            self.problem("the watchdog restarted the board")
            wiring.reset()
        if self.board.chip.heap.forced:
            self.forced_collections += self.board.chip.heap.forced
            self.board.chip.heap.forced = 0
        if ran.usb:
            self._trace.update(ran.usb)
            self.usb.to_host(ran.usb)
        if ran.uart:
            self._trace.update(ran.uart)
            self.uart.to_host(ran.uart)
        self._check_acknowledged()

    def _to_usb(self, data: bytes) -> None:
        self._trace.update(data)
        self.wiring.changes.append(runner_messages.usb(data))

    def _to_uart(self, data: bytes) -> None:
        self._trace.update(data)
        self.wiring.changes.append(runner_messages.uart(data))

    def _now_ms(self) -> int:
        return self.machine.agenda.now_us // 1000 & ticks.MASK

    # -- checks at every step -------------------------------------------------------------------

    def _check_acknowledged(self) -> None:
        """The device was told that an event is on disk only if it is."""
        life = self.truth.life
        if life is None or life.events is None or not self.truth.controller:
            return
        acknowledged = (len(self.truth.lives), life.events.acknowledged, self.pc.starts)
        if acknowledged == self._acknowledged:
            return
        self._acknowledged = acknowledged
        written = self.pc.written.get(life.names, 0)
        if acknowledged[1] > written:
            self.problem(f"event {acknowledged[1]} was acknowledged, the journal has {written}")
