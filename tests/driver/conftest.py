"""Fixtures of the driver's tests."""

from collections.abc import Iterator

import pytest
from tests.conformance.targets import MicroPython, Pty
from tests.driver.chaos import nothing_left_behind
from tests.driver.command import Sabot

from sabot_simulators.ends import usb as emulated

Kind = type[Pty]


@pytest.fixture
def sabot(capsys: pytest.CaptureFixture[str]) -> Sabot:
    """Runs a command in this process."""
    return Sabot(capsys)


@pytest.fixture
def bus() -> Iterator[emulated.Backend]:
    """A bus with a shoe."""
    with nothing_left_behind():
        backend = emulated.get_backend({"seed": ["1"], "serial": ["SIM00007"]})
        yield backend
        backend.close()


@pytest.fixture(params=[Pty, MicroPython])
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each kind of firmware, behind a pseudo-terminal."""
    if request.param is MicroPython:
        request.getfixturevalue("micropython")
    made: Kind = request.param
    return made
