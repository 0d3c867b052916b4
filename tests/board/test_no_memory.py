"""The firmware on MicroPython while an allocation finds no memory: a sample of ``make no-memory``."""

import pytest

from sabot_simulators.allocation_faults.failing_device import ChildFailed, FailingDevice
from sabot_simulators.allocation_faults.walk import Walk, walk_through

EVERY = 97  # of some 22,000 allocations


def test_no_message_costs_keys_cards_or_the_truth_when_memory_is_short(failing: FailingDevice) -> None:
    """Every message of a day at the table, each tried with some of its allocations failing."""
    walk = Walk(failing, EVERY)
    walk_through(walk)
    assert [f"{each.message}: {wrong}" for each in walk.figures for wrong in each.wrong] == []
    for figures in walk.figures:
        assert figures.restarts + figures.absorbed, f"no allocation of {figures.message} has failed"
    outcomes = {outcome for figures in walk.figures for outcome in figures.outcomes}
    assert {"answered", "interrupted", "not_executed", "device_fault"} <= outcomes


def test_a_trial_leaves_the_device_as_it_was(failing: FailingDevice) -> None:
    """A trial that restarts the device does so in a copy; the device keeps its session and its boot."""
    failing.connect()
    boots, before = failing.boots, failing.ask("status")

    def crash() -> dict[str, object]:
        failing.arm(1, True)
        failing.ask("status")
        return {"boots": failing.boots, "restarts": failing.restarts}

    told = failing.in_a_copy(crash)
    assert told["boots"] == boots + 1
    assert "MemoryError" in told["restarts"][0]
    assert (failing.boots, failing.restarts) == (boots, [])
    assert failing.ask("status") == before


def test_an_error_in_a_copy_is_raised_here(failing: FailingDevice) -> None:
    """Nothing is lost silently: the parent says what went wrong in the copy."""

    def fail() -> dict[str, object]:
        raise LookupError("no such card")

    with pytest.raises(ChildFailed, match="LookupError: no such card"):
        failing.in_a_copy(fail)
