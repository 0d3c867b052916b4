"""Random faults, a little of ``make soak``: nothing is claimed that is not so, and the soak would notice."""

from collections.abc import Iterator
from io import StringIO

import pytest
from rich.console import Console
from tests.sweeps import Amount

from sabot_firmware.height_model import HeightModel
from sabot_protocol.codec import enum_number
from sabot_simulators import soak as soaking
from sabot_simulators.chips import PowerCut
from sabot_simulators.mechanism.faults import KINDS, PlannedFault
from sabot_simulators.soak import SoakReport, SoakTable, soak

pytestmark = pytest.mark.slow


def quiet() -> Console:
    return Console(file=StringIO())


@pytest.mark.rule("MD3 5.B")
@pytest.mark.sweep(every=4)
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_claimed_that_is_not_so(seed: int, amount: Amount) -> None:
    found = soak(amount(10, full=20), seed, quiet())
    assert not found.wrong
    assert found.claims > 50
    assert sum(found.faults.values()) > 3


def test_a_machine_that_does_not_look_at_the_height_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HeightModel, "grows", lambda stack, height_um: True)
    monkeypatch.setattr(HeightModel, "fits", lambda stack, below, height_um: True)
    monkeypatch.setattr(soaking, "KINDS", {"aligned_double": ("", ("tray",))})
    assert soak(12, 1, quiet(), until="").wrong  # any wrong claim ends it


def only(kind: str, monkeypatch: pytest.MonkeyPatch, switched_off: int = 1) -> Iterator[SoakTable]:
    """Some tables at which nothing else happens than this, switched off after each round or never."""
    monkeypatch.setattr(soaking, "KINDS", {kind: KINDS[kind]})
    monkeypatch.setattr(soaking, "SWITCHED_OFF", switched_off)
    for number in range(5):
        table = SoakTable(number, SoakReport())
        table.play()
        assert not table.findings.wrong
        assert not table.findings.gave_up
        if table.machine.faults.happened:
            yield table


def told(table: SoakTable, cause: str) -> bool:
    number = enum_number("Fault", cause)
    return any(name == "fault_raised" and values[0] == number for name, values in table.device.reports)


def test_a_corrupted_record_is_found_when_the_power_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(told(table, "memory_damaged") for table in only("corrupted_record", monkeypatch))


def test_a_record_also_decays_while_the_power_is_off() -> None:
    """The emulator once read the record through the chip's own supply, and the campaign ended there."""
    table = SoakTable(1, SoakReport())
    table.play()
    table.chip.power.cut_after(0)
    with pytest.raises(PowerCut):
        table.chip.write(0, b"\x00")
    before = bytes(table.chip.cells)
    table.machine.on_power_cut = lambda: None  # it is off
    table.machine.on_fault(PlannedFault("corrupted_record", "controller"))
    changed = [one ^ other for one, other in zip(before, table.chip.cells, strict=True) if one != other]
    assert [bin(each).count("1") for each in changed] == [1]


def test_a_torn_record_is_no_fault_and_its_cut_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = list(only("torn_record", monkeypatch))
    assert any(table.chip.power.cuts for table in tables)
    assert not any(told(table, "memory_damaged") for table in tables)


def test_a_stuck_noise_source_stops_the_shuffler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(told(table, "rng_failed") for table in only("stuck_noise", monkeypatch))


@pytest.mark.parametrize("kind", ["unknown_clock", "wrong_clock"])
def test_a_clock_that_is_not_right_is_met(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    struck: list[int] = []
    stops = sum(table.findings.stops for table in only(kind, monkeypatch, 0))
    monkeypatch.setattr(SoakTable, "_clock_wrong", lambda self, by_s: struck.append(by_s))
    monkeypatch.setattr(SoakTable, "_clock_lost", lambda self: struck.append(0))
    without = sum(table.findings.stops for table in only(kind, monkeypatch, 0))
    assert struck
    assert stops > without


def test_the_bound_is_what_so_many_claims_can_show() -> None:
    assert SoakReport(claims=3000).upper_bound() == pytest.approx(0.000998, rel=0.01)
    assert SoakReport().upper_bound() == 1.0
