"""The asyncio shell: acts and changes without blocking the event loop."""

import asyncio
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from tests.session.simulated_table import SimulatedTable, simulated_table

from sabot_session import acts, asyncio_session, threaded_session
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


def test_a_reader_and_a_session_that_end_wait_for_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event loop ends after the threads that it started: `sabot play` took a second to leave."""
    monkeypatch.setattr(asyncio_session, "WAIT_S", 3600.0)

    async def read_a_while(table: SimulatedTable) -> None:
        async for _ in AsyncSession(table.run).changes():
            await asyncio.sleep(0)

    def read_and_end(table: SimulatedTable) -> None:
        with suppress(TimeoutError):
            asyncio.run(asyncio.wait_for(read_a_while(table), 0.2))

    with simulated_table(tmp_path) as table:
        reader = threading.Thread(target=read_and_end, args=(table,), daemon=True)
        reader.start()
        reader.join(60.0)
        assert not reader.is_alive()
        monkeypatch.setattr(threaded_session, "TICK_S", 3600.0)
        ticked = threading.Event()
        monkeypatch.setattr(table.run, "_tick", ticked.set)
        assert ticked.wait(60.0)  # the thread waits for its next input without a limit
    assert not table.run._thread.is_alive()
