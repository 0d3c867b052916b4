"""A service that runs for hours keeps nothing of what has passed; the check of slopes finds a leak."""

import asyncio
import gc
import os
import platform
import random
import tracemalloc
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pytest_mock import MockerFixture
from tests.driver.chaos import wait_until
from tests.serve.memory_hours import resident_kb
from tests.serve.memory_slope import slope
from tests.serve.served_table import ServedTable

from sabot_serve import view_stream
from sabot_serve.view_stream import ViewStream
from sabot_session.row_data import RowData
from sabot_session.snapshot import Changes
from sabot_web.free_memory import give_back
from sabot_web.requests import ShownCredential

pytestmark = pytest.mark.slow

READERS = 5
CHANGES = 600
EVERY = 50
MOST_BYTES_A_CHANGE = 8.0


def test_a_slope_is_found_through_noise() -> None:
    noise = random.Random(1)
    flat = [(float(at), 50_000 + noise.uniform(-300, 300)) for at in range(40)]
    leaking = [(at, much + 100 * at) for at, much in flat]
    jump = [(at, much + (5_000 if at < 8 else 0)) for at, much in flat]  # what a warm-up gives back
    assert abs(slope(flat)) < 15
    assert 85 < slope(leaking) < 115
    assert abs(slope(jump)) < 15
    with pytest.raises(ValueError, match="few"):
        slope(flat[:3])


def test_no_pin_stays_in_a_cache_of_texts() -> None:
    """Of up to 16,384 requests pydantic would keep the texts, and so PINs."""
    body = '{"pin": "271828", "person": "17"}'
    first, second = (ShownCredential.model_validate_json(body) for _ in range(2))
    assert first.pin == second.pin
    assert first.pin is not second.pin


def test_no_text_of_a_row_stays_in_a_cache_of_texts() -> None:
    body = '{"text": "271828"}'
    first, second = (SaidRow.model_validate_json(body) for _ in range(2))
    assert first.text is not second.text


BLOCKS = 20_000
BLOCK_BYTES = 4_000  # taken from the C library's heap, not from pages of their own


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives memory back")
def test_memory_between_used_blocks_goes_back_to_the_system() -> None:
    blocks = [bytearray(BLOCK_BYTES) for _ in range(BLOCKS)]
    last = blocks.pop()  # it keeps the heap from shrinking
    del blocks
    before = resident_kb(os.getpid())
    give_back()
    after = resident_kb(os.getpid())
    assert before - after > BLOCKS * BLOCK_BYTES // 1024 // 2
    assert len(last) == BLOCK_BYTES


def test_a_service_gives_memory_back_while_it_runs(table: ServedTable, mocker: MockerFixture) -> None:
    table.stop()
    mocker.patch("sabot_web.free_memory.EVERY_S", 0.02)
    gave = mocker.patch("sabot_web.free_memory.give_back")
    table.restart()
    wait_until(lambda: gave.call_count > 1)


class SaidRow(RowData):
    """A row with any text."""

    text: str


LEAKED_BYTES = 64


class ChangingSession:
    """A session that changes as fast as it is read, and measures memory now and then."""

    def __init__(self, leak: list[bytes] | None) -> None:
        self.samples: list[tuple[float, float]] = []
        self.at = 0
        self._leak = leak

    async def read(self, look: Callable[[Any], Any]) -> Any:
        return None

    async def changes(self) -> AsyncIterator[Changes]:
        for self.at in range(1, CHANGES + 1):
            if self.at % EVERY == 0:
                gc.collect()
                self.samples.append((float(self.at), float(tracemalloc.get_traced_memory()[0])))
            if self._leak is not None:
                self._leak.append(bytes(LEAKED_BYTES))
            parts = {"newest_row": self.at, "round": {"round_id": self.at, "hands": "x" * 500}}
            yield Changes(f"run.{self.at}", self.at == 1, parts)


def growth(monkeypatch: pytest.MonkeyPatch, leak: list[bytes] | None = None) -> float:
    """Bytes that stay of each change, with several readers."""
    monkeypatch.setattr(view_stream, "LEAST_S", 0.0)
    session = ChangingSession(leak)
    views = ViewStream(session)  # type: ignore[arg-type]
    views.channel("table", dict)

    async def read() -> None:
        async for _ in views.read("table", None):
            pass

    async def run() -> None:
        readers = [asyncio.create_task(read()) for _ in range(READERS)]
        await views._follow()
        views.close()
        await asyncio.gather(*readers)

    tracemalloc.start()
    try:
        asyncio.run(run())
    finally:
        tracemalloc.stop()
    assert session.at == CHANGES
    return slope(session.samples)


def test_nothing_stays_of_a_change_that_every_reader_has(monkeypatch: pytest.MonkeyPatch) -> None:
    assert growth(monkeypatch) < MOST_BYTES_A_CHANGE


def test_a_leak_of_some_bytes_a_change_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert growth(monkeypatch, leak=[]) > MOST_BYTES_A_CHANGE
