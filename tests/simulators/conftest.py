"""Fixtures of the simulators' tests."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import EmulatedDevice, emulate
from sabot_simulators.endpoints.control_socket import ControlSocket
from sabot_simulators.endpoints.device_server import DeviceServer, wire_ms


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What ``make demo``'s first part printed, and the folder it ran in."""
    folder = tmp_path_factory.mktemp("play")
    command = [sys.executable, "-m", "sabot_simulators.wire_demo"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout, folder


@pytest.fixture
def device() -> Iterator[EmulatedDevice]:
    """An emulated device without people."""
    made = emulate(DeviceSettings(seed=1, dealer=False), wire_ms())
    yield made
    made.close()


@pytest.fixture
def path(device: EmulatedDevice, tmp_path: Path) -> Iterator[Path]:
    """The control socket of that device."""
    served = DeviceServer(device)
    control = ControlSocket(tmp_path / "hands", served)
    yield tmp_path / "hands"
    control.close()
    served.close()
    assert not (tmp_path / "hands").exists()
