"""The asyncio shell: acts and changes without blocking the event loop."""

import asyncio
from pathlib import Path

import pytest
from tests.session.simulated_table import SimulatedTable, simulated_table

from sabot_session import acts
from sabot_session.asyncio_session import AsyncSession
from sabot_session.needs import NeedKind
from sabot_simulators.simulated_staff import FLOOR, SimulatedPerson

pytestmark = pytest.mark.slow


async def open_table(table: SimulatedTable) -> list[tuple[bool, str]]:
    session = AsyncSession(table.run)
    seen = []
    async for change in session.changes():
        if "table" in change.parts:
            seen.append((change.full, change.parts["table"]["state"]))
        if seen[-1][1] == "between":
            return seen
        need = next((each for each in await session.needs() if each.kind is NeedKind.OPEN_TABLE), None)
        emulated = await session.read(lambda session: session.state.simulated_people)
        if need is not None and emulated:
            await session.act("one", need.id, need.seen, SimulatedPerson(FLOOR), acts.OpenTable())
    raise AssertionError("the stream ended")


def test_an_act_is_seen_in_the_stream_of_changes(tmp_path: Path) -> None:
    with simulated_table(tmp_path) as table:
        seen = asyncio.run(asyncio.wait_for(open_table(table), 30.0))
    assert seen[0][0]
    assert seen[-1] == (False, "between")
