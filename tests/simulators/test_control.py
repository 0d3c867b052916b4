"""``sabot simulate --control PATH``: what hands do at an emulated machine."""

import socket
import stat
from pathlib import Path

import pytest

from sabot_firmware import hardware
from sabot_simulators.emulated_device import EmulatedDevice
from sabot_simulators.endpoints.control_socket import MOST_CLIENTS, MOST_LINE, ControlSocket
from sabot_simulators.endpoints.device_server import DeviceServer


class At:
    """A client of the socket."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(10)
        self.socket.connect(str(path))
        self._file = self.socket.makefile("rwb")

    def ask(self, line: str) -> str:
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        return self._file.readline().decode().strip()

    def closed(self) -> bool:
        try:
            return self._file.read() == b""
        except ConnectionResetError:  # closed with bytes that nobody read
            return True

    def close(self) -> None:
        self._file.close()
        self.socket.close()


def test_only_its_owner_may_use_it(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_hands_do_what_lines_say(path: Path, device: EmulatedDevice) -> None:
    at = At(path)
    machine = device.machine
    assert at.ask("presence on") == "ok"
    assert machine.contact()
    assert at.ask("presence off") == "ok"
    assert not machine.contact()
    assert at.ask("door shoe open") == "ok"
    assert not machine.level(hardware.SHOE_DOOR)
    assert at.ask("door shoe close") == "ok"
    assert machine.level(hardware.SHOE_DOOR)
    assert at.ask("button left down") == "ok"
    assert machine.level(hardware.LEFT_BUTTON)
    assert at.ask("button left up") == "ok"
    assert not machine.level(hardware.LEFT_BUTTON)
    assert "presence on|off" in at.ask("help")
    at.close()


@pytest.mark.parametrize(
    "line", ["", "presence", "presence maybe", "presence on off", "door cellar open", "sing", "button left"]
)
def test_what_is_no_act_is_refused_and_does_nothing(path: Path, device: EmulatedDevice, line: str) -> None:
    at = At(path)
    assert at.ask(line).startswith("no")
    assert not device.machine.contact()
    at.close()


def test_clients_and_lines_are_bounded(path: Path) -> None:
    ats = [At(path) for _ in range(MOST_CLIENTS)]
    for at in ats:
        assert at.ask("presence off") == "ok"
    another = At(path)
    assert another.closed()
    another.close()
    ats[0].socket.sendall(b"x" * (2 * MOST_LINE + 1))
    assert ats[0].closed()
    for at in ats:
        at.close()


def test_a_path_that_is_taken_is_left_alone(tmp_path: Path, device: EmulatedDevice) -> None:
    there = tmp_path / "there"
    there.write_text("somebody's")
    served = DeviceServer(device)
    with pytest.raises(OSError, match="in use"):
        ControlSocket(there, served)
    served.close()
    assert there.read_text() == "somebody's"
