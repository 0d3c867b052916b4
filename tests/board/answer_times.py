"""The attack on answer times on the emulated Pico: ``make attack-board``, or a few decks from a test.

The board's own image runs on the emulated chip, so its times are those that the processor takes, except for
misses of the flash's cache, which are not emulated. The campaign writes each board's decks down when they are
done, and goes on from there when it is started again; it ends with a dated page in docs/campaigns.

    python -m tests.board.answer_times --decks 200 --others 30
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from sabot_firmware import shuffler
from sabot_image_build.build import BUILD, UF2
from sabot_protocol.codec import CODEC
from sabot_simulators.dealer import Dealer
from sabot_simulators.fairness.answer_times import (
    FIRST_US,
    FLOOD,
    HEAD,
    MODES,
    PERIOD_US,
    STRONGEST,
    Heard,
    Mode,
    clear_frame,
    judge,
    keep,
    load,
    row,
)
from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.rp2040.hosted_pico import HostedPico
from sabot_simulators.rp2040.pico import Pico, bootrom
from sabot_simulators.rp2040.runner_messages import AxisMoves, PinSet, RunResult
from sabot_simulators.rp2040.wiring import PinDrivenMachine, board_wiring

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "campaigns"
DECKS = BUILD / "answer_times"
DECKS_AT_ONCE = 4  # then they are written down
HELD_BYTES = 512  # what a host's end of a cable holds
SILENCE_US = 2000  # before an answer; bytes that come sooner belong to the one before
AT_WORK = (shuffler.FEEDING, shuffler.STORING)
HANG_US = 2000  # of the planted leak: at each order to a mover nothing interrupts the processor for so long
PLANTED = Mode("polled with identify, uninterruptible orders", first=("identify",), planted=True)


class Attacked(HostedPico):
    """A board with its owner on USB, and hosts without a key that write to USB and UART as well."""

    def __init__(self, pico: Pico, machine: PinDrivenMachine, mode: Mode, dice: Random) -> None:
        super().__init__(pico, machine)
        self.heard: Heard | None = None
        self._mode = mode
        self._dice = dice
        self._next_us = 0
        self._asked: dict[str, float] = {}
        self._spoke_us: dict[str, float] = {}  # when something was last heard on each cable
        self._untaken: tuple[int, ...] = (0, 0)
        self._asks = 0
        self._known: set[int] = set()
        tell = machine.on_edge

        def noted(until_us: float, changes: Any = ()) -> RunResult:
            ran = Pico.run(pico, until_us, changes)
            self._overhear(ran)
            return ran

        def edge(sensor: int, level: int, at_us: int) -> None:
            if self.heard is not None:
                self.heard.worked.append(at_us)
            tell(sensor, level, at_us)

        pico.run = noted  # type: ignore[method-assign]
        machine.on_edge = edge

    def begin(self) -> None:
        """The shuffle has begun: attack."""
        now = self.machine.agenda.now_us
        self.heard = Heard(now)
        self._asked = {}
        self._known = set()
        self._next_us = now - now % PERIOD_US + PERIOD_US + FIRST_US  # the board's grid begins with its power

    def end(self) -> Heard:
        """It is over: what was heard of it."""
        heard, self.heard = self.heard, None
        assert heard is not None
        return heard

    def _turn(self, end_us: int) -> None:
        if self.heard is not None:
            now = self.machine.agenda.now_us
            self._look_inside(self.heard)
            if now >= self._next_us:
                self._attack(now)
            end_us = self._next_us if end_us <= now else min(end_us, self._next_us)
        super()._turn(end_us)

    def _attack(self, now: int) -> None:
        mode = self._mode
        self._next_us += mode.every_us
        self._asks += 1
        for cable, names, wrap, untaken in (
            ("usb", mode.first, runner_messages.usb, self._untaken[0]),
            ("uart", mode.second, runner_messages.uart, self._untaken[1]),
        ):
            if untaken > HELD_BYTES:
                continue  # a host's own buffer is full: it waits
            for _ in range(FLOOD if mode.flood and names else min(len(names), 1)):
                name = names[self._dice.randrange(len(names))]
                self.wiring.changes.append(wrap(clear_frame(name, self._dice)))
                self._asked.setdefault(cable, now)
        if mode.owner and self.host.up:
            message = CODEC.named(mode.owner[self._asks % len(mode.owner)])
            self.host.request(message.id, message.pack(()), self._now_ms())
            self._asked.setdefault("usb", now)

    def _overhear(self, ran: RunResult) -> None:
        heard = self.heard
        self._untaken = ran.untaken
        if heard is None:
            return
        for cable, data, at, answered in (
            ("usb", ran.usb, ran.now_us, heard.answered),
            ("uart", ran.uart, ran.uart_at_us, heard.second),
        ):
            if not data:
                continue
            begins = at - self._spoke_us.get(cable, 0.0) > SILENCE_US
            self._spoke_us[cable] = ran.now_us
            asked = self._asked.pop(cable, None) if begins else None
            if asked is not None:
                answered.append((asked, at))
        heard.accepted += ran.accepted
        for each in ran.told:
            if isinstance(each, AxisMoves | PinSet):
                heard.worked.append(each.at_us)
                if self._mode.planted:
                    self.pico.hang(HANG_US)

    def _look_inside(self, heard: Heard) -> None:
        """Where each card went: the truth, which no host sees."""
        held = len(self.machine.elevator.upper())
        for place, card in enumerate(self.machine.chamber, held):
            if id(card) not in self._known:
                self._known.add(id(card))
                heard.inserted.append(self.machine.agenda.now_us)
                heard.slots.append(place)


class Attackers(Dealer):
    """A table where every shuffle is attacked."""

    device: Attacked

    def __init__(self, device: Attacked) -> None:
        super().__init__(device)
        self.heard: list[Heard] = []

    def feed(self, deck_id: int) -> None:
        """Have a deck shuffled, and attack until it is stored."""
        super().feed(deck_id)
        device = self.device
        device.run_until(lambda: device.shuffler_state == shuffler.FEEDING)
        device.begin()
        device.run_until(lambda: device.shuffler_state not in AT_WORK)
        self.heard.append(device.end())


def attack(mode: Mode, decks: int, seed: int, folder: Path) -> list[Heard]:
    """So many decks, two of each new board: another machine, other keys and other noise each time."""
    heard: list[Heard] = []
    with Pico(UF2, board_wiring(), bootrom(folder)) as pico:
        pico.snapshot("new")
        while len(heard) < decks:
            pico.restore("new")
            machine = PinDrivenMachine(Random(seed * 1000 + len(heard)))
            device = Attacked(pico, machine, mode, Random(mode.name))  # every deck is asked the same
            device.provision()
            device.run_until_idle()
            table = Attackers(device)
            assert table.open_table(), device.reports[-5:]
            heard += table.heard
    return heard[:decks]


def _path(mode: Mode) -> Path:
    return DECKS / f"{mode.name.replace(' ', '_').replace(',', '')}.jsonl"


def campaign(decks: int, others: int, seconds: float, seed: int, console: Console) -> int:
    """Go on until every mode has its decks or the time is over; write the page; 1 if anything leaks."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        missing = [(mode, decks if mode is STRONGEST else others) for mode in MODES]
        missing = [(mode, wanted) for mode, wanted in missing if len(load(_path(mode))) < wanted]
        if not missing:
            break
        mode, wanted = min(missing, key=lambda each: len(load(_path(each[0]))) / each[1])
        done = len(load(_path(mode)))
        with TemporaryDirectory() as folder:
            for heard in attack(mode, min(DECKS_AT_ONCE, wanted - done), seed * 1000 + done, Path(folder)):
                keep(_path(mode), heard)
        console.print(f"{mode.name}: {len(load(_path(mode)))} of {wanted}")
    leaks = False
    rows = []
    for mode in MODES:
        decks_of = load(_path(mode))
        if len(decks_of) > 1:
            found = judge(decks_of)
            rows.append(row(mode, found))
            leaks |= found.leaks
    today = datetime.now(UTC).date()
    page = TEXT.format(date=today, commit=_commit(), head=HEAD, rows="\n".join(rows))
    (PAGES / f"{today}-answer-times-pico.md").write_text(page)
    console.print(*rows, sep="\n")
    return 1 if leaks else 0


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "not known"


TEXT = """# Answer times on the emulated Pico, {date}

Command: `make attack-board`, commit {commit}. The campaign continues where it stopped, until the strongest
attack (the first row) has 200 decks and each other one 30. The column *decks* says how many have been played.
[fairness.md](../fairness.md) says what is measured. *Jitter* is the time from the earliest to the latest
answer within its tick, over all decks and both cables. The last column is what could have escaped notice with
that many decks. Misses of the flash cache are not emulated.

{head}
{rows}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(prog="python -m tests.board.answer_times")
    parser.add_argument("--decks", type=int, default=200, help="with the strongest attack")
    parser.add_argument("--others", type=int, default=30, help="with each other attack")
    parser.add_argument("--seconds", type=float, default=1e9, help="then stop; it goes on when started again")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    return campaign(asked.decks, asked.others, asked.seconds, asked.seed, console)


if __name__ == "__main__":
    sys.exit(main())
