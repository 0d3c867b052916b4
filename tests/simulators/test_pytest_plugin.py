"""The fixture for other people's tests: a device, its truth, its faults; and the example as they run it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sabot_driver.errors import SabotError
from sabot_protocol.host.messages import DeckCounted, Shuffle
from sabot_simulators.device_settings import BadSetting
from sabot_simulators.pytest_plugin import DeviceUnderTest, emulated_devices
from sabot_simulators.python_device import WiredPythonDevice

Devices = Callable[..., DeviceUnderTest]


def shuffled(device: DeviceUnderTest) -> dict[str, list[str]]:
    """Where the cards are after a deck was shuffled."""
    with device.connect() as client:
        device.register_decks(client)
        client.ask(Shuffle(1))
        events = client.events(0, timeout=60)
        assert any(isinstance(getattr(event, "message", None), DeckCounted) for event in events)
    return device.cards()


def test_a_device_knows_where_each_card_is(sabot_device: Devices) -> None:
    device = sabot_device(seed=3)
    assert not any(device.cards().values())
    where = shuffled(device)
    cards = [card for place in where.values() for card in place]
    assert len(cards) == len(set(cards)) == 52
    assert where["tray"] == where["exit_tray"] == []
    assert device.stacks() == []


def test_the_same_seed_gives_the_same_order_and_another_seed_another(sabot_device: Devices) -> None:
    orders = [shuffled(sabot_device(seed=seed)) for seed in (5, 5, 6)]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]


def test_two_devices_of_one_test_have_nothing_in_common(sabot_device: Devices) -> None:
    first, second = sabot_device(serial="AAAA0001"), sabot_device(serial="AAAA0002")
    with first.connect() as one, second.connect() as other:
        assert one.identity.serial != other.identity.serial
        first.cut_power()
        assert second.url != first.url
        one.wait_up(30)
        assert one.status().uptime_s <= other.status().uptime_s


def test_a_setting_or_fault_that_does_not_exist_is_named(sabot_device: Devices) -> None:
    with pytest.raises(BadSetting, match="no setting 'sed'"):
        sabot_device(sed=1)
    with pytest.raises(BadSetting, match="'stuck' cannot happen at 'feed'"):
        sabot_device(faults=["stuck@feed:10"])


def test_a_host_without_the_key_is_not_let_in(sabot_device: Devices) -> None:
    device = sabot_device()
    device.connect().close()
    with pytest.raises(SabotError):
        device.connect(keyring=None, key=bytes(32))


def test_an_emulation_that_fails_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(device: WiredPythonDevice, now_ms: int) -> None:
        raise ZeroDivisionError

    devices = emulated_devices(tmp_path)
    served = devices.__enter__()()._served
    monkeypatch.setattr(WiredPythonDevice, "tick", fail)
    served.wake()
    served._thread.join(60)
    with pytest.raises(ZeroDivisionError):
        devices.__exit__(None, None, None)


@pytest.mark.slow
@pytest.mark.full
def test_the_example_runs_from_an_installed_wheel(root: Path, tmp_path: Path) -> None:
    """The plugin is found by its entry point, and nothing of it comes from this checkout."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(root)], check=True)
    (wheel,) = tmp_path.glob("sabot-*.whl")
    installed = tmp_path / "installed"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(installed), str(wheel)], check=True)
    shutil.copytree(root / "docs" / "examples" / "ci", tmp_path / "project")
    (tmp_path / "project" / "conftest.py").write_text(
        "import sabot_driver, sabot_simulators\n"
        f"assert sabot_driver.__file__.startswith({str(installed)!r}), sabot_driver.__file__\n"
        f"assert sabot_simulators.__file__.startswith({str(installed)!r}), sabot_simulators.__file__\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "."],
        cwd=tmp_path / "project",
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "5 passed" in ran.stdout
