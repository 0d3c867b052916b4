"""Something else than the table's machine is on the cable, and what it leaves on the disk."""

import os
import stat
import struct
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from pytest_mock import MockerFixture
from tests.conformance.targets import Tcp
from tests.driver.command import Sabot

from sabot_driver import Keyring, connect
from sabot_driver.errors import NotProvisioned, WrongDevice
from sabot_driver.user_files import TableEntry, UserFiles
from sabot_protocol import frame
from sabot_protocol.codec import CODEC
from sabot_protocol.device_handshake import HandshakeResponder
from sabot_protocol.host.messages import IdentityFlag
from sabot_protocol.wire_constants import DEVICE, EVENT, HEADER, REQUEST, SEALED_TO_DEVICE, SEALED_TO_HOST
from sabot_simulators.command_sniffer import CableTap, CommandSniffer
from sabot_simulators.emulated_device import EmulatedDevice

pytestmark = pytest.mark.slow

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
        assert "known here" in ran.lines[-1]["message"]
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


def test_an_impostor_is_given_no_key_that_a_machine_has(sabot: Sabot, impostor: Tcp, home: Path) -> None:
    """``sabot provision`` sent the machine's own key, in clear, to whatever claimed its serial number.

    ``sabot play`` advised to do so, because the impostor said that it had no key yet.
    """
    user_files = set_up(home, impostor.listener.url, with_key=True)
    impostor.served.call(lambda: setattr(impostor.python.end.identity, "flags", 0))
    for command in (("play", "--rounds", 1), ("provision",)):
        ran = sabot(*command, "--table", "BAC-07", "--json")
        assert (ran.code, ran.lines[-1]["error"]) == (5, "NotProvisioned")
        assert "it may be an impostor" in ran.lines[-1]["advice"]
        assert impostor.python.end.keys.slots() == []
    assert user_files.keyring.find_next(b"SB000123") is None
    ran = sabot("provision", "--table", "BAC-07", "--replace", "--json")
    assert ran.code == 0, ran.out
    assert "it may be an impostor" in ran.of("warning")[0]["message"]
    given = impostor.python.end.keys.get(DEVICE)
    assert given not in (None, KEY)
    assert user_files.keyring.find(b"SB000123") == given
    assert user_files.keyring.find_next(b"SB000123") is None


def test_a_reset_by_presence_ends_the_old_key(sabot: Sabot, impostor: Tcp, home: Path) -> None:
    """After a reset by presence the computer gave the device the key it had: a stolen one stayed good."""
    device = ("--device", impostor.listener.url)
    impostor.served.call(lambda: setattr(impostor.python.end.identity, "flags", 0))
    assert sabot("provision", *device).code == 0
    before = impostor.python.end.keys.get(DEVICE)
    end = impostor.python.end
    impostor.served.call(lambda: end.provisioning.clear(end._memory, end.uptime_s()))
    assert sabot("provision", *device).code == 5
    assert sabot("provision", *device, "--replace").code == 0
    assert impostor.python.end.keys.get(DEVICE) not in (None, before)


def test_what_a_device_proves_counts_not_what_it_says(
    impostor: Tcp, tmp_path: Path, mocker: MockerFixture
) -> None:
    """Flags changed on the cable made a simulator pass for a machine: they were not part of the proof."""
    keyring = Keyring(tmp_path / "keys")
    connect(impostor.listener.url, keyring=keyring, simulator=True).close()
    key = keyring.find(b"SB000123", simulator=True)
    say = HandshakeResponder._identity

    def as_machine(responder: HandshakeResponder) -> tuple[Any, ...]:
        values = say(responder)
        return (*values[:3], values[3] & ~IdentityFlag.SIMULATOR, *values[4:])

    mocker.patch.object(HandshakeResponder, "_identity", as_machine)
    with pytest.raises(WrongDevice, match="is a simulator, not a machine"):
        connect(impostor.listener.url, key=key)


def test_what_an_impostor_calls_itself_does_not_reach_the_terminal(
    sabot: Sabot, impostor: Tcp, home: Path
) -> None:
    """Model and version of any device were printed raw: escape sequences and markup from an unproved text."""
    assert home
    impostor.served.call(lambda: setattr(impostor.python.end.identity, "model", "\x1b]0;x\x07[red]x\u202e"))
    impostor.served.call(lambda: setattr(impostor.python.end.identity, "version", "[/bold]\r"))
    for command in (("devices",), ("doctor",), ("status", "--simulator")):
        ran = sabot(*command, "--device", impostor.listener.url)
        said = ran.out + ran.err
        assert not set(said) & set("\x1b\x07\r\u202e"), said
        assert "?]0;x?[red]x? [/bold]?" in said, said


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_nobody_else_says_which_device_a_table_has(sabot: Sabot, home: Path) -> None:
    """tables.toml followed the umask: with umask 0 every user could name another device for a table."""
    before = os.umask(0)
    try:
        UserFiles(home / "new").set_table(TableEntry("BAC-07", "usb://SB000123", "SB000123"))
    finally:
        os.umask(before)
    assert (mode(home / "new"), mode(home / "new" / "tables.toml")) == (0o700, 0o600)
    user_files = UserFiles(home)
    user_files.set_table(TableEntry("BAC-07", "usb://SB000123", "SB000123"))
    user_files.tables_file.chmod(0o622)
    found = [each for each in sabot("doctor", "--json").of("check") if each["check"] == "files"]
    assert [each["result"] for each in found] == ["problem"]
    assert str(user_files.tables_file) in found[0]["text"]


def test_a_forged_command_moves_nobodys_hands() -> None:
    """A TCP client without a key sent `shuffle` without a MAC, and the emulated dealer fed the deck."""

    class Dealer:
        """Notes what people are asked to do."""

        heard: ClassVar[list[str]] = []

        def before_command(self, name: str, values: object) -> bool:
            self.heard.append(name)
            return True

    tap = CableTap(CommandSniffer(cast(EmulatedDevice, Dealer())))
    shuffle = CODEC.named("shuffle")

    def packet(direction: int, session: int, kind: int) -> bytes:
        head = struct.pack(HEADER, direction, session, 1, 0, 0, 0, kind, shuffle.id, 0, 99)
        return bytes(frame.encode(head + shuffle.pack((2,)) + bytes(8)))

    assert not tap.host_said(packet(SEALED_TO_DEVICE, 0x1234, REQUEST))
    assert not tap.host_said(packet(SEALED_TO_DEVICE, 0, REQUEST))
    assert Dealer.heard == []
    tap.device_said(packet(SEALED_TO_HOST, 0x1234, EVENT))
    assert not tap.host_said(packet(SEALED_TO_DEVICE, 0x4321, REQUEST))
    assert tap.host_said(packet(SEALED_TO_DEVICE, 0x1234, REQUEST))
    assert Dealer.heard == ["shuffle"]


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
        written = [each for each in home.rglob("*") if each.is_file()]
        assert {"SIM00042.db", "SIM00042.table.db", "SIM00042.key"} <= {each.name for each in written}
        assert {str(each): mode(each) for each in [*written, capture, archive] if mode(each) != 0o600} == {}
        journal = home / "journals" / "simulators" / "SIM00042.db"
        for each in journal.parent.iterdir():
            if each.suffix != ".key":  # a key that others can read is refused
                each.chmod(0o644)
        ran = sabot("play", *device, "--rounds", 1, "--json")
        assert ran.code == 0, ran.out
        assert {each.name: mode(each) for each in journal.parent.iterdir() if mode(each) != 0o600} == {}
    finally:
        os.umask(before)
    target.close()
