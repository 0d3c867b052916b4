"""``make demo``, first part: a round over a pseudo-terminal, in real time.

The device is the firmware on MicroPython (or on this Python where there is none) and a
simulated mechanism, the host talks to it with pyserial, and the cable between them loses answers, is pulled,
and the device loses its power.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import serial
from rich.console import Console

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_protocol import ticks
from sabot_protocol.codec import CODEC, enum_name
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.handshake import ClearExchange
from sabot_protocol.host import messages
from sabot_protocol.host.capture import CaptureWriter
from sabot_protocol.host.constructs import parse_frame, parse_payload
from sabot_protocol.host.message_base import Message, Request
from sabot_protocol.host_protocol import CABLE_LOST, HostProtocol
from sabot_protocol.notifications import (
    EventGap,
    EventReceived,
    Notification,
    RequestAnswered,
    RequestFailed,
    SessionDown,
    SessionUp,
)
from sabot_protocol.session import provision_proof
from sabot_simulators.micropython import find_micropython
from sabot_simulators.pty_cable import PtyCable

ROUND = 1
HANDS = 7
WAIT_S = 120.0  # a limit for what fails, not a measure
CAPTURE = Path("build/demo.pcapng")

H = TypeVar("H", bound=Notification)


class DemoError(Exception):
    """The demonstration did not go as it must."""


def now_ms() -> int:
    """This computer's time as ticks."""
    return time.monotonic_ns() // 1_000_000 & ticks.MASK


@contextmanager
def device(tty: str, memory: Path) -> Iterator[str]:
    """A device in processes of its own, two decks shuffled; gives the name of the Python it runs on."""
    micropython = find_micropython()
    if micropython and shutil.which(micropython) is None:
        raise DemoError(f"{micropython} cannot be started: look at MICROPYTHON")
    command = [sys.executable, "-m", "sabot_simulators.tty_device", tty, str(memory), "--table"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()  # "ready"; nothing if it could not start, which the host then sees
    try:
        yield "MicroPython" if micropython else "CPython, for want of MicroPython"
    finally:
        process.kill()  # the firmware's process ends with it
        process.wait()


class Host:
    """The host's end on a serial port, in one thread: it talks until what it waits for has happened."""

    def __init__(self, tty: str) -> None:
        self.port = serial.Serial(tty, timeout=0)
        self.end: HostProtocol | None = None
        self.happened: list[Notification] = []

    def talk(self, until: Callable[[], bool]) -> None:
        """Carry bytes between port and end until ``until`` is true."""
        assert self.end is not None
        give_up = time.monotonic() + WAIT_S
        while not until():
            if time.monotonic() > give_up:
                raise DemoError(f"nothing came within {WAIT_S:.0f} s")
            out = self.end.poll(now_ms())
            if out:
                self.port.write(out)
            self.port.timeout = 0.01
            data = self.port.read(max(self.port.in_waiting, 1))
            if data:
                self.end.receive(data, now_ms())
            for each in self.end.take_notifications():
                self.happened.append(each)
                if isinstance(each, EventReceived):  # the device keeps an event until it is acknowledged
                    self.end.acknowledge(each.boot_id, each.n)

    def ask_clear(self, name: str, *values: bytes) -> Message:
        """A question outside a session."""
        question = ClearExchange(CODEC, name, values, now_ms())
        self.port.timeout = 0.01
        while question.answer is None:
            if question.failure is not None:
                raise DemoError(f"{name}: {question.failure}")
            self.port.write(question.poll(now_ms()))
            question.receive(self.port.read(max(self.port.in_waiting, 1)))
        answer = CODEC.named(CODEC.named(name).answer)
        return messages.BY_ID[answer.id].unpack(answer.pack(question.answer))

    def ask(self, request: Request[Any]) -> int:
        """Send a request; its number."""
        assert self.end is not None
        return self.end.request(request.ID, request.pack(), now_ms())

    def outcome(self, number: int) -> str:
        """Wait for a request's end and put it in words."""

        def ended() -> bool:
            ends = [each for each in self.happened if isinstance(each, RequestAnswered | RequestFailed)]
            return any(each.request_id == number for each in ends)

        self.talk(ended)
        for each in self.happened:
            if isinstance(each, RequestAnswered) and each.request_id == number:
                if each.status:
                    error = messages.ERRORS_BY_CODE[each.status]
                    return f"refused: {error.NAME}"
                return messages.BY_ID[each.message].NAME
            if isinstance(each, RequestFailed) and each.request_id == number:
                return f"failed: {each.reason}"
        raise DemoError("unreachable")

    def wait_for(self, kind: type[H]) -> H:
        """The next happening of one kind."""
        self.talk(lambda: any(isinstance(each, kind) for each in self.happened))
        for each in self.happened:
            if isinstance(each, kind):
                self.happened.remove(each)
                return each
        raise DemoError("unreachable")


def stacks(host: Host) -> list[int]:
    """The stacks that the device reported as dispensed, in the order of their events."""
    return [
        messages.StackDispensed.unpack(each.body).stack
        for each in host.happened
        if isinstance(each, EventReceived) and each.message == messages.StackDispensed.ID
    ]


def voided(host: Host) -> list[int]:
    """The rounds that the device has reported to be void."""
    return [
        messages.RoundVoided.unpack(each.body).round_id
        for each in host.happened
        if isinstance(each, EventReceived) and each.message == messages.RoundVoided.ID
    ]


def taken(host: Host, stack: int) -> None:
    """Wait until a stack was dispensed and taken: only then may the next one be asked for."""

    def is_taken() -> bool:
        return any(
            isinstance(each, EventReceived)
            and each.message == messages.StackTaken.ID
            and messages.StackTaken.unpack(each.body).stack == stack
            for each in host.happened
        )

    host.talk(is_taken)


def lost_stack(cable: PtyCable, stack: int) -> bool:
    """Whether the event that a stack was dispensed has been lost on the cable."""
    for each in list(cable.seen):
        if each.lost and not each.to_device:
            parsed = parse_payload(parse_frame(each.frame))
            if (parsed.kind, parsed.name) == ("event", "stack_dispensed"):
                return bool(parsed.fields["stack"] == stack)
    return False


def play(console: Console) -> None:
    """Show, step by step, that nothing is lost and nothing is done twice."""
    with tempfile.TemporaryDirectory() as folder, PtyCable() as cable:
        memory = Path(folder) / "critical-memory"
        host = Host(cable.host_tty)
        step = Steps(console)
        with device(cable.device_tty, memory) as python:
            identity = host.ask_clear("identify")
            assert isinstance(identity, messages.Identity)
            kind = "SIMULATOR" if identity.flags & messages.IdentityFlag.SIMULATOR else "device"
            step(f"identify: {identity.model} {identity.version} on {python}", kind)
            key, nonce = os.urandom(32), os.urandom(16)
            proof = host.ask_clear("provision", nonce, key, os.urandom(32))
            assert isinstance(proof, messages.Provisioned)
            if proof.proof != provision_proof(key, nonce, identity.serial):
                raise DemoError("the device has not taken the key")
            step("provision: a key of its own, proved by HMAC", "no default key")
            host.end = HostProtocol(key, CommandNumbers(os.urandom(8)), os.urandom, identity.serial)
            host.end.connect(now_ms())
            up = host.wait_for(SessionUp)
            step(f"session: proved both ways, protocol {up.version[0]}.{up.version[1]}", f"boot {up.boot_id}")
            host.outcome(host.ask(messages.SetClock(utc_s=int(time.time()), utc_ms=0)))
            said = host.outcome(host.ask(messages.OpenRound(round_id=ROUND, deck_id=1)))
            step(f"open round {ROUND} on deck 1, which is in the shoe", said)
            host.outcome(host.ask(messages.CloseBets(round_id=ROUND, hands=HANDS)))
            for stack in (1, 2):
                said = host.outcome(host.ask(messages.DispenseStack(round_id=ROUND, stack=stack)))
                taken(host, stack)
                step(f"dispense stack {stack} of {HANDS}", said)
            cable.device_muted = True
            number = host.ask(messages.DispenseStack(round_id=ROUND, stack=3))
            host.talk(lambda: cable.frames_lost > 0)
            cable.device_muted = False
            step("dispense stack 3: the answer is lost on the way", f"{cable.frames_lost} frames lost")
            said = host.outcome(number)
            step("  the wire says it again until it is heard", said)
            host.talk(lambda: len(stacks(host)) >= 3)
            taken(host, 3)
            step("  stacks reported", str(stacks(host)))
            show_frames(console, cable, number)
            cable.pulled = True
            lost = cable.frames_lost
            number = host.ask(messages.DispenseStack(round_id=ROUND, stack=4))
            host.talk(lambda: cable.frames_lost > lost)
            host.end.disconnect(CABLE_LOST)
            host.wait_for(SessionDown)
            step("the cable is pulled with stack 4 asked for", "session over, request kept")
            cable.pulled = False
            host.end.connect(now_ms())
            host.wait_for(SessionUp)
            step("  the cable is back: stack 4", host.outcome(number))
            taken(host, 4)
            host.outcome(host.ask(messages.DispenseStack(round_id=ROUND, stack=5)))
            taken(host, 5)
            cable.device_muted = True
            number = host.ask(messages.DispenseStack(round_id=ROUND, stack=6))
            host.talk(lambda: lost_stack(cable, 6))
        step("the device loses its power right after stack 6", "its answer and events are lost")
        cable.device_muted = False
        with device(cable.device_tty, memory):
            up = host.wait_for(SessionUp)
            step(f"  it is back: boot {up.boot_id}", "noticed" if up.rebooted else "not noticed")
            step("  what became of stack 6? Its ledger says", host.outcome(number))
            gap = host.wait_for(EventGap)
            size = "unknown" if gap.size is None else str(gap.size)
            step(f"  events lost with the power ({enum_name('GapReason', gap.reason)})", f"a gap of {size}")
            host.talk(lambda: bool(voided(host)))
            step(f"  a power cut voids the round: round {voided(host)[0]} is void", "never resumed")
            said = host.outcome(host.ask(messages.DispenseStack(round_id=ROUND, stack=7)))
            step("  stack 7 of the old round, in a shoe that restarted", said)
            counters = host.end.diagnostics
        seen = stacks(host)
        if sorted(set(seen)) != seen or set(seen) - set(range(1, 7)):
            raise DemoError(f"stacks reported {seen}")
        console.print(
            f"\nSix stacks dispensed, each once: {seen} reported, 6 told by the ledger after the reboot.\n"
            f"{counters.frames_out} frames sent, {counters.retransmitted} again, "
            f"{cable.frames_lost} lost on purpose, {counters.handshakes} handshakes.",
            soft_wrap=True,
        )
        host.port.close()
        write_capture(cable, CAPTURE)
        console.print(f"Every frame is in {CAPTURE}; docs/wireshark.md says how to look at it.")


def show_frames(console: Console, cable: PtyCable, number: int) -> None:
    """One request and its answers, as they were on the wire."""
    for each in list(cable.seen):
        parsed = parse_payload(parse_frame(each.frame))
        if parsed.header.get("request_id") != number or parsed.kind not in ("request", "answer"):
            continue
        way = "host → device" if each.to_device else "device → host"
        head = f"{parsed.kind} #{number} seq {parsed.header['seq']} packet {parsed.header['counter']}"
        fields = "".join(f" {name}={value!r}" for name, value in parsed.fields.items())
        lost = "  LOST" if each.lost else ""
        console.print(f"    {way}  {head}: {parsed.name}{fields}{lost}", style="dim", soft_wrap=True)


def write_capture(cable: PtyCable, path: Path) -> None:
    """Everything that was on the cable, for Wireshark."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        writer = CaptureWriter(stream)
        for each in cable.seen:
            writer.add(each.frame, each.at_us, each.to_device)


class Steps:
    """Prints one line a step: what happens, and what came of it."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, what: str, outcome: str) -> None:
        """One step."""
        self._console.print(f"{what:<58} [bold]{outcome}[/bold]", soft_wrap=True)


def main() -> int:
    """Run the demonstration; 1 if it did not go as it must."""
    console = Console(highlight=False)
    console.print("[bold]Sabot[/bold]: a round over a pseudo-terminal that loses things\n")
    try:
        play(console)
    except DemoError as error:
        console.print(f"[red]It went wrong:[/red] {error}")
        return 1
    return 0


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(main())
