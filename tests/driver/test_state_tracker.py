"""The host's follower: it knows the firmware's own steps and tells those it does not know."""

from pathlib import Path

import pytest
from tests.conformance.table import Table
from tests.conformance.targets import Tcp, eventually

from sabot_driver.state_tracker import UNKNOWN, StateTracker, Steps, state_machine
from sabot_protocol.host.messages import (
    Booted,
    BootReason,
    ShoeChanged,
    ShoeState,
    ShufflerChanged,
    ShufflerState,
)
from sabot_protocol.modes import SHOE_STEPS, SHUFFLER_STEPS


def shoe(state: ShoeState) -> tuple[str, bytes]:
    return ShoeChanged.NAME, ShoeChanged(state, 1, 0).pack()


@pytest.mark.parametrize(("steps", "enum"), [(SHOE_STEPS, ShoeState), (SHUFFLER_STEPS, ShufflerState)])
def test_the_machines_know_the_schemas_states(
    steps: Steps, enum: type[ShoeState] | type[ShufflerState]
) -> None:
    states = set(state_machine(steps).states)
    assert states == {state.name.lower() for state in enum} | {UNKNOWN}


def test_a_step_that_is_allowed_is_followed() -> None:
    follower = StateTracker()
    for state in (ShoeState.EMPTY, ShoeState.LOADING, ShoeState.READY, ShoeState.READY, ShoeState.ROUND_OPEN):
        assert follower.observe(*shoe(state)) == []
    assert follower.shoe == "round_open"


def test_a_step_that_is_not_allowed_is_told_and_followed() -> None:
    follower = StateTracker()
    follower.observe(*shoe(ShoeState.EMPTY))
    (words,) = follower.observe(*shoe(ShoeState.STACK_WAITING))
    assert "from empty to stack_waiting" in words
    assert follower.shoe == "stack_waiting"


def test_after_a_boot_or_a_gap_anything_may_be() -> None:
    follower = StateTracker()
    follower.observe(*shoe(ShoeState.EMPTY))
    follower.observe(ShufflerChanged.NAME, ShufflerChanged(ShufflerState.FEEDING, 1).pack())
    follower.observe(Booted.NAME, Booted(BootReason.POWER).pack())
    assert (follower.shoe, follower.shuffler) == ("unknown", "unknown")
    assert follower.observe(*shoe(ShoeState.STACK_WAITING)) == []


def test_an_event_that_does_not_fit_is_told() -> None:
    assert "schema" in StateTracker().observe(ShoeChanged.NAME, b"")[0]


def test_a_client_follows_its_device_and_tells(tmp_path: Path) -> None:
    target = Tcp(tmp_path)
    client = target.connect()
    told: list[str] = []
    client.listen(lambda notice: told.append(notice.text) if notice.kind == "step_not_allowed" else None)
    table = Table(client)
    table.open()
    for deck_id in (1, 2):
        table.play(deck_id)
    assert told == [], "what the machine does is in the table"
    here = table.now
    report = target.python.end.emit
    target.served.call(lambda: report(ShoeChanged.NAME, ShoeState.STACK_WAITING, 1, 0))
    table.wait_for(ShoeChanged, here, state=ShoeState.STACK_WAITING)
    assert eventually(lambda: len(told) == 1)
    assert "from ready to stack_waiting" in told[0]
    target.close()
