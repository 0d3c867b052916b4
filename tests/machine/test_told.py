"""A host that listens to a table over a lossy wire: what it hears is what the device reported."""

from random import Random

import pytest

from sabot_protocol.notifications import EventGap, EventReceived
from sabot_protocol.schema import COUNTERS
from sabot_simulators import lossy_host as telling
from sabot_simulators.chips import SimFram
from sabot_simulators.dealer import Dealer
from sabot_simulators.lossy_host import LossyHostDevice
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine


def opened(seed: int) -> LossyHostDevice:
    device = LossyHostDevice(SimulatedMachine(Random(seed)), None, SimFram())
    assert Dealer(device).open_table()
    return device


def test_everything_is_heard_once_and_in_order_though_bytes_are_lost() -> None:
    device = opened(1)
    device.catch_up()
    assert device.different == []
    assert device.compared == len(device.reports)
    for record in (device.host.diagnostics, device.port.diagnostics):
        seen = dict(zip(COUNTERS, record.counters(), strict=True))
        assert seen["retransmitted"] + seen["bad_crc"] + seen["replayed"]


@pytest.mark.parametrize(("lost", "damaged", "arrives"), [(1.0, 0.0, 0), (0.0, 1.0, 4), (0.0, 0.0, 8)])
def test_bytes_are_lost_damaged_and_repeated(
    lost: float, damaged: float, arrives: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = opened(1)
    monkeypatch.setattr(telling, "LOST", lost)
    monkeypatch.setattr(telling, "DAMAGED", damaged)
    monkeypatch.setattr(telling, "REPEATED", 1.0)
    carried = device._carry(b"1234")
    assert len(carried) == arrives
    assert (carried[:4] == b"1234") == (arrives == 8)


def test_a_host_that_asks_is_answered_over_the_wire() -> None:
    device = opened(2)
    assert device.command("whereabouts", 1)[:3] == (1, 52, 1)


def test_a_power_cut_costs_a_gap_and_nothing_else() -> None:
    device = opened(3)
    before = device.compared
    for _ in range(3):
        device.reboot()
        device.run_for(300_000)
    device.catch_up()
    assert device.different == []
    assert device.compared > before


def test_a_wire_that_carries_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "LOST", 1.0)
    device = opened(4)
    device.catch_up()
    assert "the host has heard up to (0, 0)" in device.different[0]


def test_an_event_that_is_not_what_was_reported_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def emit(name: str, *values: int | str) -> int:
        return honest(name, *(53 if name == "deck_counted" and each == 52 else each for each in values))

    device = LossyHostDevice(SimulatedMachine(Random(5)), None, SimFram())
    honest = device.end.emit
    monkeypatch.setattr(device.end, "emit", emit)
    assert Dealer(device).open_table()
    device.catch_up()
    assert len(device.different) == 2
    assert all("is not what was reported" in each for each in device.different)


def event(boot_id: int, n: int) -> EventReceived:
    return EventReceived(boot_id, n, 0, 0, 0, 0, 0, b"")


def test_events_that_are_missing_without_a_gap_are_noticed() -> None:
    device = opened(6)
    device.catch_up()
    boot, n = device._heard
    device._passed(event(boot, n + 2))
    assert device.different == [f"event {(boot, n + 2)} came behind {(boot, n)}"]
    device.different.clear()
    device._made[device.host.memory_id, boot] = n + 5
    device._passed(event(boot + 1, 1))
    assert "are in no gap" in device.different[0]


def test_a_gap_within_a_boot_is_noticed() -> None:
    device = opened(7)
    device.catch_up()
    boot, n = device._heard
    device._passed(EventGap(1, 3, (boot, n), (boot, n + 4)))
    assert "a gap within a boot" in device.different[0]
