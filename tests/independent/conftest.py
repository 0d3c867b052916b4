"""Fixtures of the independent host."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.independent.black_box import Bench, Device


@pytest.fixture
def bench(micropython: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A new device on MicroPython, and a host that has never talked to it."""
    device = Device(tmp_path, *getattr(request, "param", ()))
    try:
        yield Bench(device)
    finally:
        device.close()
