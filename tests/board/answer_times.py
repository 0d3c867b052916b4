"""The attack on answer times on the emulated Pico: ``make attack-board``, or a few decks from a test.

The board's own image runs on the emulated chip, so its times are those that the processor takes, except for
misses of the flash's cache, which are not emulated. The campaign writes each board's decks down when they are
done, and goes on from there when it is started again; it ends with a dated page in docs/campaigns.

    python -m tests.board.answer_times --decks 200 --others 30
"""

import argparse
import hashlib
import multiprocessing
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from tests.board.heap import RAM, address

from sabot_firmware import hardware, shuffler
from sabot_image_build.build import BUILD, UF2
from sabot_protocol.codec import CODEC
from sabot_simulators.dealer import Dealer
from sabot_simulators.fairness.answer_times import (
    FIRST_US,
    FLOOD,
    LEVEL,
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
)
from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.rp2040.hosted_pico import HostedPico
from sabot_simulators.rp2040.pico import Pico, bootrom
from sabot_simulators.rp2040.runner_messages import AxisMoves, PinSet, RunResult
from sabot_simulators.rp2040.wiring import PinDrivenMachine, board_wiring

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "campaigns"
DECKS = BUILD / "answer_times"
DECKS_OF_A_BOARD = 2  # then they are written down
SHUFFLES = 2000  # of the labels: p may be as small as eight attacks ask for
HELD_BYTES = 512  # what a host's end of a cable holds
HELD_REQUESTS = 12  # of the owner, that wait for their answers
SILENCE_US = 2000  # before an answer; bytes that come sooner belong to the one before
AT_WORK = (shuffler.FEEDING, shuffler.STORING)
TICKS_A_SECOND = 1_000_000 // PERIOD_US
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
        if mode.owner and self.host.up and self.host.waiting() < HELD_REQUESTS:
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
        heard = device.end()
        heard.turn = len(self.heard)
        late, heard.spare_us = ticks_missed(device.pico)
        heard.late = late - sum(each.late for each in self.heard)
        self.heard.append(heard)


def ticks_missed(pico: Pico) -> tuple[int, int]:
    """Answers that were ready after their tick, and the least time for which one waited for its, us."""
    late, spare = (address(f"sabot_grid_{name}") - RAM for name in ("late", "spare_us"))
    (count,) = struct.unpack("<I", pico.read_ram(late, 4))
    (least,) = struct.unpack("<i", pico.read_ram(spare, 4))
    return count, least


def attack(mode: Mode, decks: int, seed: int, folder: Path, first_only: bool = False) -> list[Heard]:
    """So many decks, two of each new board or only its first.

    Each board has another machine, other keys and other noise.
    """
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
            if first_only:
                table.feed(table.new_deck(hardware.RED))
            else:
                assert table.open_table(), device.reports[-5:]
            heard += table.heard
    return heard[:decks]


def _image() -> str:
    """Which image is attacked: decks of different ones are kept apart."""
    return hashlib.sha256(UF2.read_bytes()).hexdigest()[:12]


def _path(mode: Mode, image: str) -> Path:
    return DECKS / image / f"{mode.name.replace(' ', '_').replace(',', '')}.jsonl"


def _board(name: str, seed: int) -> list[Heard]:
    """One board, attacked in one way."""
    mode = next(each for each in MODES if each.name == name)
    with TemporaryDirectory() as folder:
        return attack(mode, DECKS_OF_A_BOARD, seed, Path(folder))


def _play(
    wanted: dict[Mode, int], image: str, ends: float, seed: int, processes: int, console: Console
) -> None:
    """Play decks until every mode has enough or the time is over, the mode that is most behind first."""
    have = {mode: len(load(_path(mode, image))) for mode in MODES}
    under_way: dict[Future[list[Heard]], Mode] = {}
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        while True:
            behind = [mode for mode in MODES if have[mode] < wanted[mode]]
            while behind and len(under_way) < processes and time.monotonic() < ends:
                mode = min(behind, key=lambda each: have[each] / wanted[each])
                job = pool.submit(_board, mode.name, seed * 1000 + have[mode] // DECKS_OF_A_BOARD)
                under_way[job] = mode
                have[mode] += DECKS_OF_A_BOARD
                behind = [mode for mode in MODES if have[mode] < wanted[mode]]
            if not under_way:
                return
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for each in done:
                mode = under_way.pop(each)
                for heard in each.result():
                    keep(_path(mode, image), heard)
                console.print(f"{mode.name}: {len(load(_path(mode, image)))} of {wanted[mode]}")


def campaign(decks: int, others: int, seconds: float, seed: int, processes: int, console: Console) -> int:
    """Go on until every mode has its decks or the time is over; write the page; 1 if anything leaks."""
    image = _image()
    wanted = {mode: decks if mode is STRONGEST else others for mode in MODES}
    _play(wanted, image, time.monotonic() + seconds, seed, processes, console)
    found = {}
    for mode in MODES:
        played = load(_path(mode, image))
        kinds = [_attacked(deck) for deck in played]
        for deck, kind in zip(played, kinds, strict=True):
            deck.turn = kinds.index(kind)
        if len(played) > 2 * DECKS_OF_A_BOARD:
            found[mode] = judge(played, shuffles=SHUFFLES)
            console.print(_row(mode, found[mode], found[mode].p))
    today = datetime.now(UTC).date()
    (PAGES / f"{today}-answer-times-pico.md").write_text(page(found, image, decks, others))
    return 1 if _leaking(found) else 0


def _attacked(deck: Heard) -> tuple[int, ...]:
    """What a host knows before the first card is in: decks are compared where this is the same."""
    began = int(deck.began_us // PERIOD_US)
    first = [int(answers[0][1] // PERIOD_US) - began for answers in (deck.answered, deck.second) if answers]
    return deck.turn, began % TICKS_A_SECOND, *first  # the owner's keep-alives go by the second


def corrected(found: dict[Mode, Found]) -> dict[Mode, float]:
    """The p of each attack by Holm's method: as many were made as there are rows."""
    result: dict[Mode, float] = {}
    least = 0.0
    for n, mode in enumerate(sorted(found, key=lambda each: found[each].p)):
        least = max(least, min(1.0, (len(found) - n) * found[mode].p))
        result[mode] = least
    return result


def _leaking(found: dict[Mode, Found]) -> list[Mode]:
    by_holm = corrected(found)
    return [mode for mode in found if by_holm[mode] < 1 - LEVEL]


def page(found: dict[Mode, Found], image: str, decks: int, others: int) -> str:
    """The page of a campaign, with its verdict."""
    by_holm = corrected(found)
    leaking = _leaking(found)
    if leaking:
        verdict = f"**Answer times tell something of the slots:** {_names(leaking)}."
    else:
        verdict = "**No attack finds information at 99 %.**"
    alone = [mode for mode in found if found[mode].leaks and mode not in leaking]
    if alone:
        verdict += f"\nBelow 0.01 before the correction for several attacks: {_names(alone)}."
    wanted = {mode: decks if mode is STRONGEST else others for mode in MODES}
    fewer = [mode for mode in MODES if mode not in found or found[mode].decks < wanted[mode]]
    if fewer:
        verdict += f"\nThe campaign is not complete: {len(fewer)} of {len(MODES)} attacks have fewer decks."
    return TEXT.format(
        date=datetime.now(UTC).date(),
        commit=_commit(),
        image=image,
        decks=decks,
        others=others,
        verdict=verdict,
        late=sum(each.late for each in found.values()),
        moved=f"{sum(each.moved for each in found.values()):,}",
        samples=f"{sum(each.samples for each in found.values()):,}",
        spare_ms=f"{min((each.spare_us for each in found.values()), default=0.0) / 1000:.1f}",
        head=HEAD,
        rows="\n".join(_row(mode, each, by_holm[mode]) for mode, each in found.items()),
    )


def _names(modes: Sequence[Mode]) -> str:
    return "; ".join(mode.name for mode in modes)


def _row(mode: Mode, found: Found, by_holm: float) -> str:
    return (
        f"| {mode.name} | {found.decks} | {found.samples:,} | {found.moved:,} | {found.differing:,} "
        f"| {found.jitter_us:.1f} | {found.pair} | {found.bits:.2g} | {found.p:.4f} | {by_holm:.3f} "
        f"| {found.escaped_bits:.2f} |"
    )


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "not known"


HEAD = (
    "| attack | decks | answers | at another tick | at another time | jitter, µs | most information "
    "| bits a sample | p | p, Holm | may have escaped, bits a deck |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |"
)
TEXT = """# Answer times on the emulated Pico, {date}

Command: `make attack-board`, commit {commit}, image {image} (the first digits of the UF2's SHA-256). All
decks are of this image. The campaign continues where it stopped, until the strongest attack (the first row)
has {decks} decks and each other one {others}. [side-channels.md](../side-channels.md) says what is measured.

{verdict}

- Answers that were ready after their tick: {late}. The one that was ready last waited {spare_ms} ms for it.
  That includes what waited for the first tick when a shuffle began.
- Answers that took another number of ticks than is usual for their question: {moved} of {samples}.

What the columns mean:

- *At another tick*: the answer took more or fewer ticks than is usual at its place in the shuffle.
- *At another time*: it came more than 0.5 µs from the usual time within its tick.
- *Jitter*: from the earliest to the latest answer within its tick, over all decks and both cables.
- *p*: how often, in 2,000 exchanges of labels, any of the 15 pairs of what is seen and what is done (30 with
  two hosts) stands out as much as the pair that is named. Labels are exchanged among decks that are attacked
  alike, as a host knows before the first card is in: all of them the first on their board, or all the second,
  with another deck in the shoe; begun at the same tick of a second, because the owner says something every
  second; and first answered at the same tick.
- *p, Holm*: the same, corrected for the number of attacks. The verdict goes by this column, at 0.01. Without
  the correction one campaign in 13 would name an attack by chance. The verdict also names each attack whose
  *p* is below 0.01.
- *May have escaped*: what could have gone unnoticed with that many decks.

Misses of the flash cache are not emulated.

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
    parser.add_argument("--processes", type=int, default=2, help="boards at a time")
    asked = parser.parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    return campaign(asked.decks, asked.others, asked.seconds, asked.seed, asked.processes, console)


if __name__ == "__main__":
    sys.exit(main())
