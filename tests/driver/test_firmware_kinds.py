"""The kinds of firmware an emulated device can have: the same device, whatever it runs on."""

import time
from pathlib import Path

import pytest
from tests.conformance.table import FLOOR, Table
from tests.conformance.targets import MicroPython, Pty, eventually

from sabot_cli import main
from sabot_driver import ReceivedEvent, connect
from sabot_driver.errors import SabotError, WrongState
from sabot_firmware import hardware
from sabot_protocol.host.messages import (
    Back,
    Booted,
    CommitShuffle,
    DeckCounted,
    Locate,
    Located,
    Log,
    RegisterDeck,
    Shuffle,
    ShuffleWith,
)
from sabot_simulators import micropython_device
from sabot_simulators.device_settings import FIRMWARE, BadSetting, DeviceSettings
from sabot_simulators.emulated_device import KINDS
from sabot_simulators.micropython_device import MicroPythonDevice

pytestmark = pytest.mark.slow

Kind = type[Pty]


def hands(kind: Kind, folder: Path) -> dict[int, list[list[str]]]:
    """Every card of a round."""
    folder.mkdir()
    target = kind(folder, "seed=11")
    table = Table(target.connect())
    table.open()
    table.play(1)
    target.close()
    assert target.device.people is not None
    return target.device.people.hands


@pytest.mark.usefixtures("micropython")
def test_the_same_seed_gives_the_same_cards_on_micropython(tmp_path: Path) -> None:
    expected = hands(Pty, tmp_path / "python")
    assert [len(each) for each in expected.values()] == [3]
    assert hands(MicroPython, tmp_path / "micropython") == expected


def test_a_planned_power_cut_ends_the_shuffle_and_is_told(kind: Kind, tmp_path: Path) -> None:
    target = kind(tmp_path, "seed=1&fault=power_cut%2B20")
    table = Table(target.connect())
    table.register()
    here = table.now
    table.client.ask(Shuffle(1))
    table.wait_for(Booted, here)
    assert target.device.boots == 2
    told = [each.message for each in table.client.events(here, timeout=0) if isinstance(each, ReceivedEvent)]
    assert not any(isinstance(each, DeckCounted) for each in told)
    target.close()


def test_a_deck_is_laid_in_for_a_shuffle_with_a_nonce(kind: Kind, tmp_path: Path) -> None:
    target = kind(tmp_path)
    table = Table(target.connect())
    table.register()
    here = table.now
    shuffle_id = table.client.ask(CommitShuffle(1)).shuffle_id
    table.client.ask(ShuffleWith(shuffle_id, bytes(range(32))))
    assert table.wait_for(DeckCounted, here, deck_id=1).count == 52
    target.close()


def test_commands_sent_together_find_their_deck(kind: Kind, tmp_path: Path) -> None:
    target = kind(tmp_path)
    table = Table(target.connect())
    table.floor()
    here = table.now
    _, registered = table.client.submit(RegisterDeck(1, Back.RED, int(time.time())), 20, FLOOR)
    _, begun = table.client.submit(Shuffle(1), 20)
    registered.result(20)
    begun.result(20)
    assert table.wait_for(DeckCounted, here, deck_id=1).count == 52
    target.close()


def test_a_deck_is_taken_back_when_its_shuffle_is_refused(kind: Kind, tmp_path: Path) -> None:
    target = kind(tmp_path, "seed=1&speed=1&dealer_ms=3600000")  # nobody closes the door meanwhile
    table = Table(target.connect())
    table.register()
    machine = target.device.machine
    target.served.call(lambda: machine.open_door(hardware.SHUFFLER_DOOR))
    with pytest.raises(WrongState):
        table.client.ask(Shuffle(1))
    assert eventually(lambda: target.served.call(lambda: machine.count("handed_out")) == 52)
    assert target.served.call(lambda: machine.count("tray")) == 0
    target.close()


def test_the_log_of_events_outlives_a_power_cut(kind: Kind, tmp_path: Path) -> None:
    target = kind(tmp_path)
    client = target.connect()
    client.ask(Locate(7))
    Table(client).wait_for(Located, 0, seconds=7)
    assert eventually(lambda: client.ask(Log(1)).newest > 0)
    newest = client.ask(Log(1)).newest
    target.reboot()
    assert client.ask(Log(1), timeout=30).newest >= newest
    target.close()


def test_what_it_runs_on_is_a_setting() -> None:
    assert tuple(KINDS) == FIRMWARE
    assert DeviceSettings.from_url("sim://?firmware=micropython")[1].firmware == "micropython"
    with pytest.raises(BadSetting, match="firmware"):
        DeviceSettings.from_url("sim://?firmware=cobol")


def test_without_micropython_it_is_said_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(micropython_device, "find_micropython", lambda: None)
    with pytest.raises(SabotError, match="install the extra"):
        connect("sim://?firmware=micropython")
    assert main.run(["simulate", "--firmware", "micropython", "--seconds", "0.1"]) == 2
    assert "install the extra" in capsys.readouterr().err


@pytest.mark.usefixtures("micropython")
def test_no_process_is_left_behind(tmp_path: Path) -> None:
    target = MicroPython(tmp_path)
    device = target.device
    assert isinstance(device, MicroPythonDevice)
    assert device.board is not None
    first = device.board.process
    target.connect()
    target.reboot()
    second = device.board.process
    assert first.poll() is not None
    assert second.poll() is None
    target.close()
    assert second.poll() is not None
