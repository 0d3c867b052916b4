"""A little of ``make soak-micropython``: faults on MicroPython, nothing wrong claimed, the heap flat."""

from collections.abc import Callable

import pytest

from sabot_simulators.soak_micropython import MOST_GROWTH, Heap, HeapSoakReport, Sitting

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("micropython")
@pytest.mark.full
def test_rounds_with_faults_claim_nothing_wrong_and_leave_the_heap_as_it_was(
    record_property: Callable[[str, object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sabot_simulators.soak_micropython.WARM_ROUNDS", 2)
    monkeypatch.setattr("sabot_simulators.soak_micropython.SAMPLE_ROUNDS", 2)
    found = HeapSoakReport()
    assert Sitting(5, found).play(14) >= 14
    assert not found.wrong
    assert not found.grown()
    assert found.claims > 300
    assert found.faults["power_cut"] == 1
    assert sum(found.faults.values()) > 3
    (heap,) = [each for each in found.heaps if each.samples]
    assert len(heap.samples) >= 6
    text = f"{found.rounds} rounds with faults on MicroPython: {heap.samples[0]} bytes in use, then "
    record_property("figure", text + str(heap.samples[-1]))


def test_a_heap_that_grows_is_found_out() -> None:
    flat = Heap([220_000, 221_000, 220_500, 220_400, 221_000, 220_600])
    leaks = Heap([220_000 + 300 * number for number in range(20)])
    once = Heap([220_000, 220_000, 220_000, 220_000, 220_000, 220_000, 229_000, 220_000])
    assert leaks.growth() > MOST_GROWTH
    assert HeapSoakReport(heaps=[flat, leaks, once]).grown() == [leaks]
