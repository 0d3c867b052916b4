"""The firmware on MicroPython while an allocation finds no memory: a sample of ``make no-memory``."""

from collections.abc import Iterator

import pytest

from sabot_simulators.allocation_faults.failing_device import ChildFailed, FailingDevice
from sabot_simulators.allocation_faults.unix_build import build_micropython
from sabot_simulators.allocation_faults.walk import Walk, walk_through

SEED = 1
EVERY = 97  # of some 22,000 allocations


@pytest.fixture
def device() -> Iterator[FailingDevice]:
    """A device on MicroPython with the C module, built from the sources of the board's image."""
    device = FailingDevice(build_micropython(), SEED)
    yield device
    device.close()


def test_no_message_costs_keys_cards_or_the_truth_when_memory_is_short(device: FailingDevice) -> None:
    """Every message of a day at the table, each tried with some of its allocations failing."""
    walk = Walk(device, EVERY)
    walk_through(walk)
    assert [f"{each.message}: {wrong}" for each in walk.figures for wrong in each.wrong] == []
    for figures in walk.figures:
        assert figures.restarts + figures.absorbed, f"no allocation of {figures.message} has failed"
    outcomes = {outcome for figures in walk.figures for outcome in figures.outcomes}
    assert {"answered", "interrupted", "not_executed", "device_fault"} <= outcomes


def test_a_trial_leaves_the_device_as_it_was(device: FailingDevice) -> None:
    """A trial that restarts the device does so in a copy; the device keeps its session and its boot."""
    device.connect()
    boots, before = device.boots, device.ask("status")

    def crash() -> dict[str, object]:
        device.arm(1, True)
        device.ask("status")
        return {"boots": device.boots, "restarts": device.restarts}

    told = device.in_a_copy(crash)
    assert told["boots"] == boots + 1
    assert "MemoryError" in told["restarts"][0]
    assert (device.boots, device.restarts) == (boots, [])
    assert device.ask("status") == before


def test_an_error_in_a_copy_is_raised_here(device: FailingDevice) -> None:
    """Nothing is lost silently: the parent says what went wrong in the copy."""

    def fail() -> dict[str, object]:
        raise LookupError("no such card")

    with pytest.raises(ChildFailed, match="LookupError: no such card"):
        device.in_a_copy(fail)
