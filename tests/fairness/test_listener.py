"""What a listener at the elevator learns: exact where it can be counted, and as the real firmware moves."""

import itertools
import math
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tests.machine.tables import RED

from sabot_simulators.dealer import Dealer
from sabot_simulators.fairness import acoustic_leak
from sabot_simulators.fairness.acoustic_leak import AcousticListener, Remedy, end_bits, listen, plain_ms
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.python_device import PythonDevice

pytestmark = pytest.mark.slow


def test_perfect_ears_learn_what_counting_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """With six cards every sequence of slots is listed: what is learnt is the entropy of what is heard."""
    monkeypatch.setattr(acoustic_leak, "CARDS", 6)
    for hears_direction in (True, False):
        heard: dict[tuple[int, ...], int] = {}
        for slots in itertools.product(*(range(k) for k in range(1, 7))):
            moves = tuple(now - before for before, now in itertools.pairwise(slots))
            key = moves if hears_direction else tuple(abs(move) for move in moves)
            heard[key] = heard.get(key, 0) + 1
        total = math.factorial(6)
        expected = -sum(times / total * math.log2(times / total) for times in heard.values())
        found = listen(Remedy(), 0.01, hears_direction, decks=800)
        assert found.bits == pytest.approx(expected, abs=5 * found.error_bits + 1e-9)


def test_the_model_moves_as_the_firmware_does() -> None:
    """The moves to the slots of a real shuffle take the times that the listener reckons with."""
    random = Random(3)
    machine = SimulatedMachine(random)
    slots: list[int] = []

    def draw(bound: int) -> int:
        slots.append(random.randrange(bound))
        return slots[-1]

    device = PythonDevice(machine, draw)
    dealer = Dealer(device)
    device.run_until_idle()
    moves: list[tuple[int, float]] = []
    send = machine.elevator.send

    def note(position_um: int, driven: bool) -> None:
        began = machine.agenda.now_us
        send(position_um, driven)
        moves.append((position_um, (machine.elevator._arrives_us - began) / 1000))

    machine.elevator.send = note  # type: ignore[method-assign]
    dealer.feed(dealer.new_deck(RED))
    assert dealer.shuffled()
    to_slots = moves[::3]  # to the slot, down, up
    assert len(to_slots) == len(slots) == 52
    below = [card - slot for card, slot in enumerate(slots)]
    plain = plain_ms()
    for (_, took_ms), before, now in zip(to_slots[1:], below, below[1:], strict=False):
        assert took_ms == pytest.approx(plain[abs(now - before)], abs=8)  # one step of 0.05 mm more or less


def test_a_longer_error_and_fewer_classes_tell_less_and_cost_more() -> None:
    by_ears = [listen(Remedy(), within, True, decks=20).bits for within in (1.0, 5.0, 20.0)]
    assert by_ears == sorted(by_ears, reverse=True)
    assert by_ears[0] <= acoustic_leak.ORDER_BITS
    by_classes = [listen(Remedy(classes=each), 1.0, False, decks=20) for each in (16, 4, 1)]
    assert [each.bits for each in by_classes] == sorted((each.bits for each in by_classes), reverse=True)
    assert [each.seconds for each in by_classes] == sorted(each.seconds for each in by_classes)
    assert by_classes[-1].bits == pytest.approx(0, abs=1e-9)


def test_decoys_cost_what_the_moves_take() -> None:
    random = np.random.default_rng(5)
    plain = plain_ms()
    extra = []
    for _ in range(400):
        slots = [int(random.integers(k)) for k in range(1, 53)]
        total = 0.0
        for before, now in itertools.pairwise(slots):
            stops = [before, int(random.integers(52)), int(random.integers(52)), now]
            total += sum(plain[abs(b - a)] for a, b in itertools.pairwise(stops)) - plain[abs(now - before)]
        extra.append(total / 1000)
    assert AcousticListener(Remedy(decoys=2), 1.0, True).costs_s() == pytest.approx(np.mean(extra), rel=0.02)


def test_the_figure_has_a_line_for_each_precision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "curve.svg"
    assert acoustic_leak.main(["--decks", "2", "--svg", str(out)]) == 0
    assert out.read_text(encoding="utf-8").count("<polyline") == 3
    assert capsys.readouterr().out.count("| none |") == 2


def test_the_end_of_a_shuffle_tells_the_sum_of_its_travels_and_no_more() -> None:
    told = end_bits(plain_ms(), 50.0, shuffles=20_000)
    assert 3.5 < told < 3.9
    assert end_bits(plain_ms(), 25.0, shuffles=20_000) == pytest.approx(told + 1, abs=0.05)
    assert end_bits(np.full(52, 44.0), 50.0, shuffles=100) == 0.0  # every travel lasts as long
