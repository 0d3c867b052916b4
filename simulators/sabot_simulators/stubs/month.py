"""A month of the shipped board program over stubbed hardware: its time, deck hours and events.

    python -m sabot_simulators.stubs.month                     thirty days, the host absent, then present
    python -m sabot_simulators.stubs.month --days 3 --host present --session-hours 24

Two decks are registered, a button is pressed every day, and the hours of the decks end. *Absent*: the cable
is pulled on the first day and plugged in again on the last. *Present*: the host connects every day, sets the
clock and keeps its session for an hour, or for ``--session-hours``. A session exchanges packets every second,
which costs twenty times as much as a board without a host. At the end every event's time is compared with the
world's.
"""

import argparse
import sys
import time
from dataclasses import dataclass, field
from random import Random

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_firmware import hardware
from sabot_protocol.codec import CODEC, enum_number
from sabot_protocol.errors import Refusal
from sabot_protocol.notifications import EventGap, EventReceived
from sabot_simulators.dealer import Dealer
from sabot_simulators.emulated_device import OPENING_UTC_S
from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.rp2040.hosted_pico import HostedPico
from sabot_simulators.rp2040.pico import Pico
from sabot_simulators.rp2040.wiring import PinDrivenMachine
from sabot_simulators.stubs.stubbed_board import StubbedBoard

DAY_S = 24 * 3600
SECOND_US = 1_000_000
HOUR_S = 3600
HOURS = 8
WARNED_BEFORE_S = (3600, 900, 300, 0)
NEAR_S = 2  # an event's time may be off by this
TIME_SET, TIME_STALE = enum_number("ClockQuality", "set"), enum_number("ClockQuality", "stale")
RED, BLUE = enum_number("Back", "red"), enum_number("Back", "blue")


@dataclass(frozen=True)
class Stamped:
    """An event with the device's time stamp."""

    name: str
    values: tuple[int | str | bytes, ...]
    utc_s: int
    quality: int


@dataclass
class MonthReport:
    """Results of a run, and everything that was wrong."""

    days: int
    events: int = 0
    wrong: list[str] = field(default_factory=list)
    processor_s: float = 0.0


class StubbedDevice(HostedPico):
    """A device over stubs, which the people at the table use like an emulated Pico."""

    def __init__(self, board: StubbedBoard, seed: int) -> None:
        self.stamped: list[Stamped] = []
        self.gaps = 0
        super().__init__(_as_pico(board), PinDrivenMachine(Random(seed)))

    def _heard(self, event: EventReceived) -> None:
        message = CODEC.find(event.message)
        assert message is not None
        self.stamped.append(Stamped(message.name, message.unpack(event.body), event.utc_s, event.quality))
        super()._heard(event)

    def _hear(self, data: bytes) -> None:
        super()._hear(data)
        self.gaps += sum(isinstance(each, EventGap) for each in self.happened)

    def come_back(self) -> None:
        """Plug the cable in and connect the host, without setting the clock."""
        self.wiring.changes.append(runner_messages.cable(True))
        self.host.connect(self._now_ms())
        self.run_until(lambda: self.host.up)

    def plug_in(self) -> int:
        """Plug the cable in and set the clock; return the time of that."""
        self.plug_cable()
        return self.true_utc_s()

    def wait_until(self, utc_s: int) -> None:
        """Let time pass until the true time is ``utc_s``."""
        left_us = (utc_s - OPENING_UTC_S) * SECOND_US - self.machine.agenda.now_us
        if left_us > 0:
            self.run_for(left_us)

    def true_utc_s(self) -> int:
        """The true time, in UTC seconds."""
        return OPENING_UTC_S + self.machine.agenda.now_us // SECOND_US


def _as_pico(board: StubbedBoard) -> Pico:
    """A stubbed board has the calls of a ``Pico`` that ``HostedPico`` uses."""
    return board  # type: ignore[return-value]


def live(
    days: int,
    present: bool,
    seed: int = 1,
    ticks_from_us: int = 0,
    session_s: int = HOUR_S,
    day_s: int = DAY_S,
) -> MonthReport:
    """Let ``days`` days of ``day_s`` pass. A present host is connected for the last ``session_s`` of each."""
    began = time.process_time()
    findings = MonthReport(days)
    with StubbedBoard(ticks_from_us=ticks_from_us) as board:
        table = StubbedDevice(board, seed)
        table.provision()
        table.run_until_idle()
        dealer = Dealer(table)
        opened_s = {dealer.new_deck(back): table.true_utc_s() for back in (RED, BLUE)}
        table.run_for(60 * SECOND_US)
        table.pull_cable()
        set_s = table.true_utc_s()
        pressed: list[tuple[int, int, int]] = []  # when, which, how good the clock is
        for day in range(days):
            ends_s = table.true_utc_s() + day_s + 1  # a second more: the host comes to a clock that is stale
            comes_s = ends_s - session_s if present else ends_s
            if comes_s < ends_s - day_s // 2:
                table.wait_until(comes_s)
                set_s = table.plug_in()
            table.wait_until(ends_s - day_s // 2)
            button = (hardware.LEFT_BUTTON, hardware.RIGHT_BUTTON)[day % 2]
            stale = table.true_utc_s() - set_s > DAY_S
            pressed.append((table.true_utc_s(), 1 + day % 2, TIME_STALE if stale else TIME_SET))
            table.machine.press(button)
            table.run_for(SECOND_US)
            table.machine.release(button)
            if present and comes_s >= ends_s - day_s // 2:
                table.wait_until(comes_s)
                set_s = table.plug_in()
            table.wait_until(ends_s)
            if present:
                table.pull_cable()
        uptime_s = table.machine.agenda.now_us // SECOND_US
        table.come_back()
        table.run_for(5 * SECOND_US)
        _judge(findings, table, pressed, opened_s, uptime_s)
    findings.processor_s = time.process_time() - began
    return findings


def _judge(
    findings: MonthReport,
    table: StubbedDevice,
    pressed: list[tuple[int, int, int]],
    opened_s: dict[int, int],
    uptime_s: int,
) -> None:
    wrong = findings.wrong
    findings.events = len(table.stamped)
    if table.gaps:
        wrong.append(f"{table.gaps} gaps")
    if table.resets or board_boots(table) != 1:
        wrong.append("the board has started again")
    told = [(each.utc_s, each.values[0], each.quality) for each in table.stamped if each.name == "buttons"]
    if len(told) != len(pressed):
        wrong.append(f"{len(pressed)} presses, {len(told)} events")
    for (true_s, button, quality), said in zip(pressed, told, strict=False):
        if abs(said[0] - true_s) > NEAR_S or said[1:] != (button, quality):
            wrong.append(f"a press at {true_s} ({button}, {quality}) is told as {said}")
    hours = {(each.values[0], each.utc_s) for each in table.stamped if each.name == "deck_hours"}
    for deck_id, at_s in opened_s.items():
        ends_s = at_s + HOURS * 3600
        if ends_s > OPENING_UTC_S + uptime_s:
            continue
        for before_s in WARNED_BEFORE_S:
            near = [
                each for each in hours if each[0] == deck_id and abs(each[1] - ends_s + before_s) <= NEAR_S
            ]
            if len(near) != 1:
                wrong.append(f"deck {deck_id}: {len(near)} warnings {before_s} s before its hours are over")
    status = table.ask("status")
    if abs(status[0] - table.machine.agenda.now_us // SECOND_US) > NEAR_S:
        wrong.append(f"uptime {status[0]} s instead of {table.machine.agenda.now_us // SECOND_US} s")
    if abs(status[1] - table.true_utc_s()) > NEAR_S:
        wrong.append(f"the clock says {status[1]} instead of {table.true_utc_s()}")
    ids, _, left_s, _ = table.ask("decks")
    for deck_id, left in zip(ids, left_s, strict=True):
        expected = opened_s[deck_id] + HOURS * 3600 - table.true_utc_s()
        if abs(left - expected) > NEAR_S:
            wrong.append(f"deck {deck_id} has {left} s left instead of {expected} s")
        if expected < 0 and not refused_for_hours(table, deck_id):
            wrong.append(f"deck {deck_id} is shuffled past its hours")


def board_boots(table: StubbedDevice) -> int:
    """How often the program was started."""
    board = table.pico
    assert isinstance(board, StubbedBoard)
    return board.boots


def refused_for_hours(table: StubbedDevice, deck_id: int) -> bool:
    """Whether the device refuses to shuffle a deck because its hours are over."""
    try:
        table.ask("commit_shuffle", deck_id)
    except Refusal as refusal:
        return refusal.values == (enum_number("Forbidden", "past_its_hours"),)
    return False


def main(arguments: list[str] | None = None) -> int:
    """Print the results; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description="A month of the board's program over stubbed hardware.")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--host", choices=("absent", "present", "both"), default="both")
    parser.add_argument("--session-hours", type=int, default=1, choices=range(1, 25), metavar="HOURS")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    failed = False
    for present in (False, True):
        if options.host in ("both", "present" if present else "absent"):
            found = live(options.days, present, options.seed, session_s=options.session_hours * HOUR_S)
            failed = failed or bool(found.wrong)
            host = f"present for {options.session_hours} h a day" if present else "absent"
            sys.stdout.write(
                f"host {host}: {found.days} days, {found.processor_s:.0f} s of processor time, "
                f"{found.events} events, {len(found.wrong)} wrong\n"
            )
            sys.stdout.write("".join(f"  {each}\n" for each in found.wrong))
    return 1 if failed else 0


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(main())
