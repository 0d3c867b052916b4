"""Answer times on the board: each answer leaves at its tick and instant, and a leak on purpose is found."""

import struct
from pathlib import Path
from random import Random

from tests.board.answer_times import PLANTED, Attacked, Attackers, attack, ticks_missed
from tests.board.heap import BLOCK, address, state_of
from tests.board.table import SEED, Table

from sabot_firmware.boards.rp2040.heap import GRID_HOLD_BYTES
from sabot_simulators.fairness.answer_times import QUERIES, STRONGEST, Mode, clear_frame, judge
from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.rp2040.pico import Pico, bootrom
from sabot_simulators.rp2040.runner_messages import Called, Returned
from sabot_simulators.rp2040.wiring import PinDrivenMachine, board_wiring

JITTER_US = 100.0
SPARE_US = 5_000  # the least time for which an answer must have waited for its tick
DECKS = 5
WORST = Mode("all flood", first=("identify",), second=("hello",), owner=QUERIES, every_us=11_500, flood=True)


def test_what_is_sent_leaves_at_its_instant_whatever_else_happens(image: Path, tmp_path: Path) -> None:
    """Edges, orders and collections coincide with ticks; when the loop made these, answers came 2.4 ms late.

    Times are those of the emulated chip, so they are the same on every computer.
    """
    found = judge(attack(STRONGEST, 2, 1, tmp_path))
    assert found.samples > 200
    assert found.jitter_us < JITTER_US
    assert found.late == 0


def test_which_tick_an_answer_takes_follows_from_the_question_alone(image: Path, tmp_path: Path) -> None:
    """Two first decks of two boards, other slots, the same questions: the same ticks, answer by answer."""
    first = [deck for deck in attack(STRONGEST, 4, 2, tmp_path) if not deck.turn]
    assert first[0].slots != first[1].slots
    found = judge(first)
    assert found.samples > 300
    assert found.moved == 0


def test_no_answer_is_late_and_no_cable_is_held_while_everybody_floods(image: Path, tmp_path: Path) -> None:
    """The owner asks twelve things at a time, hosts without a key flood its cable and the other one.

    With larger shares of the grid 108,400 bytes were allocated before a rest came, the cables were held until
    then, and answers were 112 ms late.
    """
    collects = address("py_gc_collect")
    (allocated_at,) = state_of("mem.gc_alloc_amount")
    most = 0
    with Pico(image, board_wiring(), bootrom(tmp_path), watched=(collects,)) as pico:
        device = Attacked(pico, PinDrivenMachine(Random(SEED)), WORST, Random(SEED))

        def seen(told: Called | Returned) -> None:
            nonlocal most
            if isinstance(told, Called) and device.heard is not None:
                (blocks,) = struct.unpack("<I", pico.read_ram(allocated_at, 4))
                most = max(most, blocks * BLOCK)

        device.wiring.on_watched = seen
        device.provision()
        device.run_until_idle()
        table = Attackers(device)
        assert table.open_table(), device.reports[-5:]
        late, spare_us = ticks_missed(pico)
    assert not device.named("fault_raised")
    assert late == 0
    assert spare_us > SPARE_US
    assert 40_000 < most < GRID_HOLD_BYTES


def test_what_a_host_has_left_does_not_depend_on_where_runs_end(ready: Table) -> None:
    """A run ends when the machine moves. The attack once went by a count that was exact only then."""
    pico, left = ready.device.pico, []
    frames = b"".join(clear_frame("identify", Random(SEED)) for _ in range(150))
    assert len(frames) > 600
    pico.snapshot("before")
    for pieces in (1, 40):
        pico.restore("before")
        began = pico.now_us
        ran = pico.run(began, [runner_messages.usb(frames)])
        for piece in range(1, pieces + 1):
            while ran.now_us < began + 20_000 * piece / pieces:
                ran = pico.run(began + 20_000 * piece / pieces)
        left.append(ran.untaken[0])
    assert left[0] == left[1]
    assert 0 < left[0] < len(frames)


def test_a_planted_leak_is_found_in_five_decks(image: Path, tmp_path: Path) -> None:
    """A processor that nothing interrupts for 2 ms at each order to a mover.

    The decks are first ones: labels are exchanged only between decks of the same turn, and of three and two
    decks chance alone would give the best order too often.
    """
    assert judge(attack(PLANTED, DECKS, 1, tmp_path, first_only=True)).leaks
