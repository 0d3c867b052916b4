"""The host's follower: it knows the steps, tells those it does not know, and draws its own diagram."""

from pathlib import Path

import pytest
from tests.conformance.table import Table
from tests.conformance.targets import Tcp, eventually

from sabot_driver import diagram
from sabot_driver.follower import SHOE_STEPS, SHUFFLER_STEPS, STOPS, Follower
from sabot_protocol.host.messages import (
    Booted,
    BootReason,
    ShoeChanged,
    ShoeState,
    ShufflerChanged,
    ShufflerState,
)


def shoe(state: ShoeState) -> tuple[str, bytes]:
    return ShoeChanged.NAME, ShoeChanged(state, 1, 0).pack()


def test_the_tables_speak_of_the_schemas_states() -> None:
    assert set(SHOE_STEPS) == {state.name.lower() for state in ShoeState}
    assert set(SHUFFLER_STEPS) == {state.name.lower() for state in ShufflerState}
    for steps in (SHOE_STEPS, SHUFFLER_STEPS):
        assert {target for targets in steps.values() for target in targets} <= set(steps)
        assert set(STOPS) <= set(steps)


def test_a_step_that_is_allowed_is_followed() -> None:
    follower = Follower()
    for state in (ShoeState.EMPTY, ShoeState.LOADING, ShoeState.READY, ShoeState.READY, ShoeState.DISPENSING):
        assert follower.saw(*shoe(state)) == []
    assert follower.shoe == "dispensing"


def test_a_step_that_is_not_allowed_is_told_and_followed() -> None:
    follower = Follower()
    follower.saw(*shoe(ShoeState.EMPTY))
    (words,) = follower.saw(*shoe(ShoeState.STACK_WAITING))
    assert "from empty to stack_waiting" in words
    assert follower.shoe == "stack_waiting"


@pytest.mark.parametrize(
    "state", [ShoeState.JAMMED, ShoeState.DOOR_OPEN, ShoeState.SERVICE, ShoeState.OUT_OF_ORDER]
)
def test_anything_can_stop_a_half(state: ShoeState) -> None:
    follower = Follower()
    follower.saw(*shoe(ShoeState.DISPENSING))
    assert follower.saw(*shoe(state)) == []


def test_after_a_boot_or_a_gap_anything_may_be() -> None:
    follower = Follower()
    follower.saw(*shoe(ShoeState.EMPTY))
    follower.saw(ShufflerChanged.NAME, ShufflerChanged(ShufflerState.FEEDING, 1).pack())
    follower.saw(Booted.NAME, Booted(BootReason.POWER).pack())
    assert (follower.shoe, follower.shuffler) == ("unknown", "unknown")
    assert follower.saw(*shoe(ShoeState.STACK_WAITING)) == []


def test_an_event_that_does_not_fit_is_told() -> None:
    assert "schema" in Follower().saw(ShoeChanged.NAME, b"")[0]


def test_a_client_follows_its_device_and_tells(tmp_path: Path) -> None:
    target = Tcp(tmp_path)
    client = target.connect()
    told: list[str] = []
    client.listen(lambda notice: told.append(notice.text) if notice.kind == "step_not_allowed" else None)
    table = Table(client, machine=True)
    table.open()
    for deck_id in (1, 2):
        table.play(deck_id)
    assert told == [], "what the machine does is in the table"
    here = table.now
    report = target.device.end.emit
    target.served.call(lambda: report(ShoeChanged.NAME, ShoeState.STACK_WAITING, 1, 0))
    table.wait_for(ShoeChanged, here, state=ShoeState.STACK_WAITING)
    assert eventually(lambda: len(told) == 1)
    assert "from ready to stack_waiting" in told[0]
    target.close()


def test_the_diagram_in_the_docs_is_that_of_the_tables(root: Path) -> None:
    assert (root / "docs" / "states.md").read_text(encoding="utf-8") == diagram.page(), "run make generate"
    assert "ready --> dispensing" in diagram.page()
