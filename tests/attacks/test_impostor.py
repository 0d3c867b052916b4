"""Something else than the table's machine is on the cable, and what it leaves on the disk."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture
from tests.conformance.targets import Tcp
from tests.driver.command import Sabot

from sabot_driver import Keyring, connect
from sabot_driver.errors import NotProvisioned, WrongDevice
from sabot_driver.user_files import TableEntry, UserFiles
from sabot_protocol.device_port import DevicePort
from sabot_protocol.host.messages import IdentityFlag

KEY = bytes(range(32))


def set_up(home: Path, url: str, with_key: bool) -> UserFiles:
    """This computer knows the machine SB000123 as the table BAC-07."""
    user_files = UserFiles(home)
    user_files.set_table(TableEntry("BAC-07", url, "SB000123"))
    if with_key:
        user_files.keyring.keep(b"SB000123", KEY)
    return user_files


@pytest.mark.parametrize("with_key", [True, False])
def test_an_impostor_does_not_pass_for_a_table(
    sabot: Sabot, impostor: Tcp, home: Path, with_key: bool
) -> None:
    """``sabot play --table`` gave the impostor a key for calling itself a simulator, and exited with 0.

    Its events went into the machine's journal.
    """
    user_files = set_up(home, impostor.listener.url, with_key)
    ran = sabot("play", "--table", "BAC-07", "--rounds", 1, "--json")
    assert (ran.code, ran.lines[-1]["error"]) == (5, "WrongDevice")
    assert "check what is connected" in ran.lines[-1]["advice"]
    assert not user_files.journal(b"SB000123").exists()
    assert not (home / "keys" / "simulators").exists()
    assert sabot("play", "--table", "BAC-07", "--rounds", 1, "--simulator", "--json").code == 2


@pytest.mark.parametrize("with_key", [True, False])
def test_a_machines_serial_number_is_given_to_no_simulator(
    sabot: Sabot, impostor: Tcp, home: Path, with_key: bool
) -> None:
    """A device that called itself a simulator was given a key also under the serial number of a machine."""
    set_up(home, "/dev/ttyACM0", with_key)
    for command in ("status", "provision"):
        ran = sabot(command, "--device", impostor.listener.url, "--simulator", "--json")
        assert (ran.code, ran.lines[-1]["error"]) == (5, "WrongDevice")
        assert "of a machine known here" in ran.lines[-1]["message"]
    flags = sabot("devices", "--device", impostor.listener.url, "--json").of("device")[0]
    assert flags["provisioned"] is False


def test_a_program_that_names_a_port_gives_no_key(impostor: Tcp, tmp_path: Path) -> None:
    """``connect`` to a serial or TCP port gave a key to whatever showed the ``simulator`` flag."""
    with pytest.raises(WrongDevice, match="is a simulator, not a machine"):
        connect(impostor.listener.url, keyring=Keyring(tmp_path / "keys"))
    impostor.served.call(lambda: setattr(impostor.python.end.identity, "flags", 0))
    with pytest.raises(NotProvisioned):
        connect(impostor.listener.url, keyring=Keyring(tmp_path / "keys"))
    with pytest.raises(WrongDevice, match="is a machine, not a simulator"):
        connect(impostor.listener.url, keyring=Keyring(tmp_path / "keys"), simulator=True)
    assert not (tmp_path / "keys").exists()


def test_what_a_device_proves_counts_not_what_it_says(
    impostor: Tcp, tmp_path: Path, mocker: MockerFixture
) -> None:
    """Flags changed on the cable made a simulator pass for a machine: they were not part of the proof."""
    keyring = Keyring(tmp_path / "keys")
    connect(impostor.listener.url, keyring=keyring, simulator=True).close()
    key = keyring.find(b"SB000123", simulator=True)
    say = DevicePort._identity

    def as_machine(port: DevicePort) -> tuple[Any, ...]:
        values = say(port)
        return (*values[:3], values[3] & ~IdentityFlag.SIMULATOR, *values[4:])

    mocker.patch.object(DevicePort, "_identity", as_machine)
    with pytest.raises(WrongDevice, match="is a simulator, not a machine"):
        connect(impostor.listener.url, key=key)


def mode(path: Path) -> int:
    """Who may do what with a file."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_nobody_else_reads_what_is_written(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    """Journal, record, capture and support archive were readable for every user of the computer (0644).

    Journal and capture held the wrapped keys of people.
    """
    target = Tcp(tmp_path, "seed=1&serial=SIM00042")
    device = ("--device", target.listener.url, "--simulator")
    capture, archive = tmp_path / "wire.pcapng", tmp_path / "support.zip"
    for each in (capture, archive):
        each.touch(0o644)
    before = os.umask(0)
    try:
        ran = sabot("play", *device, "--rounds", 1, "--capture", capture, "--json")
        assert ran.code == 0, ran.out
        assert sabot("bundle", *device, "--out", archive, "--json").code == 0
        written = [each for each in home.rglob("*") if each.is_file() and each.name != "tables.toml"]
        assert {"SIM00042.db", "SIM00042.table.db", "SIM00042.key"} <= {each.name for each in written}
        assert {str(each): mode(each) for each in [*written, capture, archive] if mode(each) != 0o600} == {}
        journal = home / "journals" / "simulators" / "SIM00042.db"
        for each in journal.parent.iterdir():
            each.chmod(0o644)
        assert sabot("play", *device, "--rounds", 1, "--json").code == 0
        assert {each.name: mode(each) for each in journal.parent.iterdir() if mode(each) != 0o600} == {}
    finally:
        os.umask(before)
    target.close()
