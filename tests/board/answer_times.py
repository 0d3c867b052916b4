"""The attack on answer times on the emulated Pico: ``make attack-board``, or a few decks from a test.

The board's own image runs on the emulated chip, so its times are those that the processor takes, except for misses of the
flash's cache, which are not emulated. The campaign writes each deck down when it is done, and goes on from there when
it is started again; it ends with the page docs/answer_times.md.

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

from sabot_firmware import hardware, shuffler
from sabot_firmware.boards.rp2040 import pins
from sabot_image.build import BUILD, UF2
from sabot_protocol.codec import CODEC
from sabot_simulators.dealer import Dealer
from sabot_simulators.fairness.answer_times import (
    FIRST_US,
    FLOOD,
    HEAD,
    MODES,
    PERIOD_US,
    STRONGEST,
    Found,
    Heard,
    Mode,
    clear_frame,
    judge,
    keep,
    load,
    row,
)
from sabot_simulators.rp2040 import messages
from sabot_simulators.rp2040.device import OnPico
from sabot_simulators.rp2040.messages import AxisMoves, Change, PinSet, Ran
from sabot_simulators.rp2040.pico import Pico, bootrom
from sabot_simulators.rp2040.wiring import PinMachine, board_wiring

PAGE = Path(__file__).parents[2] / "docs" / "answer_times.md"
DECKS = BUILD / "answer_times"
HANG_US = 400  # of the planted leak: what the processor does when the platform starts cannot be interrupted
ELEVATOR = 0
DECKS_A_BOARD = 8  # then another one: its machine, its keys and its noise are others
UART_PIECE_US = 1000  # the emulated serial cable tells what came in pieces of this
AT_WORK = (shuffler.FEEDING, shuffler.STORING)


class Attacked(OnPico):
    """A board with its owner on USB, and hosts without a key that write to USB and UART as well."""

    def __init__(self, pico: Pico, machine: PinMachine, mode: Mode, dice: Random) -> None:
        super().__init__(pico, machine)
        self.heard = Heard(0)
        self._mode = mode
        self._dice = dice
        self._attacks = False
        self._next_us = 0.0
        self._asked: dict[str, float] = {}
        self._asks = 0
        self._deck: list[object] = []
        run, tell = pico.run, machine.on_edge

        def noted(until_us: float, changes: Sequence[Change]) -> Ran:
            ran = run(until_us, changes)
            self._listen(ran)
            return ran

        def edge(sensor: int, level: int, at_us: int) -> None:
            self.heard.worked.append(at_us)
            tell(sensor, level, at_us)

        pico.run = noted  # type: ignore[method-assign]
        machine.on_edge = edge

    def shuffle(self, table: Dealer, deck_id: int) -> Heard:
        """Shuffle one deck and attack meanwhile."""
        agenda = self.machine.agenda
        table.feed(deck_id)
        self.run_until(lambda: self.shuffler_state == shuffler.FEEDING)
        self.heard = Heard(agenda.now_us)
        self._asked = {}
        self._deck = []
        # The grid is the board's own; a phase that is the same for every deck is found from its first answer.
        self._next_us = agenda.now_us + PERIOD_US - (agenda.now_us - self._boot_us) % PERIOD_US + FIRST_US
        self._attacks = True
        self.run_until(lambda: self.shuffler_state not in AT_WORK)
        self._attacks = False
        return self.heard

    @property
    def _boot_us(self) -> float:
        return 0.0

    def _turn(self, end_us: int) -> None:
        if self._attacks:
            if self.machine.agenda.now_us >= self._next_us:
                self._attack()
            now = self.machine.agenda.now_us
            end_us = int(self._next_us) if end_us <= now else min(end_us, int(self._next_us))
            self._look_inside()
        super()._turn(end_us)

    def _attack(self) -> None:
        mode, now = self._mode, self.machine.agenda.now_us
        self._next_us += mode.every_us
        self._asks += 1
        for cable, names, wrap in (("usb", mode.first, messages.usb), ("uart", mode.second, messages.uart)):
            for _ in range(FLOOD if mode.flood and names else min(len(names), 1)):
                name = names[self._dice.randrange(len(names))]
                self.wiring.changes.append(wrap(clear_frame(name, self._dice)))
                self._asked.setdefault(cable, now)
        if mode.owner and self.host.up:
            message = CODEC.named(mode.owner[self._asks % len(mode.owner)])
            self.host.request(message.id, message.pack(()), self._now_ms())
            self._asked.setdefault("usb", now)

    def _listen(self, ran: Ran) -> None:
        if not self._attacks:
            return
        for cable, data, at_us in (("usb", ran.usb, ran.now_us), ("uart", ran.uart, ran.now_us - UART_PIECE_US)):
            asked = self._asked.pop(cable, None) if data else None
            if asked is not None:
                self.heard.answered.append((asked, at_us))
        self.heard.accepted += ran.accepted
        for each in ran.told:
            if isinstance(each, AxisMoves | PinSet):
                self.heard.worked.append(each.at_us)
            if self._mode.planted and isinstance(each, AxisMoves) and each.axis == ELEVATOR:
                self.pico.hang(HANG_US)

    def _look_inside(self) -> None:
        """Where each card went: the truth, which no host sees."""
        cards = self.machine.chamber
        known = {id(card) for card in self._deck}
        for place, card in enumerate(cards):
            if id(card) not in known:
                self._deck.append(card)
                self.heard.inserted.append(self.machine.agenda.now_us)
                self.heard.slots.append(place)


def attack(mode: Mode, decks: int, seed: int, folder: Path) -> list[Heard]:
    """So many decks on one board."""
    dice = Random(f"{seed} {mode.name}")
    with Pico(UF2, board_wiring(), bootrom(folder)) as pico:
        device = Attacked(pico, PinMachine(Random(seed)), mode, dice)
        device.provision()
        device.run_until_still()
        table = Dealer(device)
        deck_id = table.new_deck(hardware.RED)
        found = []
        for _ in range(decks):
            found.append(device.shuffle(table, deck_id))
            device.reboot()
            device.run_until_still()
            empty(device, table)
        return found


def empty(device: OnPico, table: Dealer) -> None:
    """All cards go back to the dealer: the machine begins anew."""
    device.machine.open_door(hardware.SHUFFLER_DOOR)
    device.run_until_still()


def campaign(decks: int, others: int, seconds: float, seed: int) -> int:
    """Go on until every mode has its decks or the time is over; write the page; 1 if anything leaks."""
    ends = time.monotonic() + seconds
    with TemporaryDirectory() as folder:
        for mode in MODES:
            path = DECKS / f"{mode.name.replace(' ', '_').replace(',', '')}.jsonl"
            wanted = decks if mode is STRONGEST else others
            while (done := len(load(path))) < wanted and time.monotonic() < ends:
                for heard in attack(mode, min(DECKS_A_BOARD, wanted - done), seed + done, Path(folder)):
                    keep(path, heard)
                print(f"{mode.name}: {len(load(path))} of {wanted}", flush=True)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(prog="python -m tests.board.answer_times")
    parser.add_argument("--decks", type=int, default=200, help="with the strongest attack")
    parser.add_argument("--others", type=int, default=30, help="with each other attack")
    parser.add_argument("--seconds", type=float, default=1e9, help="then stop; it goes on when started again")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    return campaign(asked.decks, asked.others, asked.seconds, asked.seed)


if __name__ == "__main__":
    sys.exit(main())
