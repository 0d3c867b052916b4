"""``sabot simulate --control PATH``: what hands do at an emulated machine."""

import socket
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sabot_firmware import hardware, shoe
from sabot_simulators.emulated_device import EmulatedDevice
from sabot_simulators.endpoints.control_socket import MOST_CLIENTS, MOST_LINE, ControlSocket, act
from sabot_simulators.endpoints.device_server import DeviceServer
from sabot_simulators.mechanism.physical_cards import PhysicalCard, new_deck
from sabot_simulators.simulated_people import SimulatedPeople


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
    assert at.ask("take") == "no: nothing was taken out of the exit tray"
    machine.put_into_exit(new_deck(0, machine.random)[:3])
    assert at.ask("take") == "ok"
    assert (machine.exit_tray, len(machine.last_taken)) == ([], 3)
    assert "presence on|off" in at.ask("help")
    at.close()


@pytest.mark.parametrize(
    "line",
    ["", "presence", "presence maybe", "presence on off", "door cellar open", "sing", "button left"]
    + ["dealer", "dealer away", "take it"],  # nobody is at this machine
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


def test_a_socket_that_a_killed_simulator_left_is_replaced(tmp_path: Path, device: EmulatedDevice) -> None:
    left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    left.bind(str(tmp_path / "control"))
    left.close()
    served = DeviceServer(device)
    control = ControlSocket(tmp_path / "control", served)
    at = At(tmp_path / "control")
    assert at.ask("presence off") == "ok"
    with pytest.raises(OSError, match="in use"):  # somebody listens now
        ControlSocket(tmp_path / "control", served)
    assert at.ask("presence off") == "ok"
    at.close()
    control.close()
    served.close()


def test_a_dealer_who_is_away_takes_nothing_until_back() -> None:
    planned: list[tuple[Callable[[int], None], int]] = []
    taken: list[str] = []

    def take_exit() -> list[PhysicalCard]:
        taken.append("stack")
        return []

    machine = SimpleNamespace(
        agenda=SimpleNamespace(after=lambda _, do, argument: planned.append((do, argument))),
        take_exit=take_exit,
    )
    view = SimpleNamespace(shoe_state=shoe.STACK_WAITING)
    device: Any = SimpleNamespace(view=lambda: view, machine=machine, settings=SimpleNamespace(dealer_ms=1))
    people = device.people = SimulatedPeople(device)
    people.event_reported("shoe_changed", (shoe.STACK_WAITING,))
    (begun,) = planned
    assert act(device, "dealer away") == "ok"
    people.event_reported("shoe_changed", (shoe.STACK_WAITING,))
    begun[0](begun[1])
    assert (len(planned), taken) == (1, [])
    assert act(device, "dealer back") == "ok"
    again = planned[1]
    again[0](again[1])
    assert taken == ["stack"]
    view.shoe_state = shoe.READY
    planned.clear()
    assert act(device, "dealer back") == "ok"
    assert planned == [], "nothing waits in the exit tray"
