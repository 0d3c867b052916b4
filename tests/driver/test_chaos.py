"""Cables cut, corrupted and delayed at random, and programs killed, while rounds are played."""

import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from random import Random

import pytest
from tests.driver.chaos import BadBus, Player, check, nothing_left_behind, set_up, wait_until
from tests.sweeps import Amount
from tests.warm_start import WarmPopen

from sabot_driver import Client, Keyring, connect
from sabot_driver.clock import Clock
from sabot_driver.errors import Stale
from sabot_driver.usb import UsbTransport
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import emulate
from sabot_simulators.endpoints.device_server import DeviceServer, wire_ms
from sabot_simulators.endpoints.fault_proxy import (
    FaultProxy,
    PtyFrontend,
    PtyUpstream,
    TcpFrontend,
    TcpUpstream,
)
from sabot_simulators.endpoints.impairment import Impairment
from sabot_simulators.endpoints.pseudo_terminal import PseudoTerminal
from sabot_simulators.endpoints.tcp import TcpListener
from sabot_simulators.python_device import WiredPythonDevice

pytestmark = pytest.mark.slow

ROUNDS = 125  # of each kind: 500 in all; so many where all are run
USB_ROUNDS = 60
RATE = 20.0  # both ends' timers run so much faster, or the lost frames would take minutes
KILLS = 10
MOST_KILLS = 100
EVENTS_A_LIFE = 30  # a killed program has lived to see fewer; two rounds are about 50

KINDS = {
    "lossy": {"drop": 0.02},
    "noisy": {"corrupt": 0.03},
    "cut": {"cut": 0.004, "drop": 0.005},
    "all": {"drop": 0.01, "corrupt": 0.01, "delay": 0.05, "delay_s": 0.004, "cut": 0.002},
}
USB = {"drop": 0.01, "corrupt": 0.01, "delay": 0.05, "delay_s": 0.004, "cut": 0.02}
OFTEN_CUT = {"cut": 0.1}  # in a few rounds the plug is surely pulled


@pytest.mark.parametrize("kind", KINDS)
def test_rounds_over_a_bad_cable(kind: str, tmp_path: Path, amount: Amount) -> None:
    with nothing_left_behind():
        # every reconnect makes events of its own, and a starved computer may lose many links in a row
        device = emulate(DeviceSettings(seed=3, events_kept=512), wire_ms(RATE))
        assert isinstance(device, WiredPythonDevice)
        served = DeviceServer(device, RATE)
        mischief = Impairment(Random(kind))
        if kind == "noisy":
            terminal = PseudoTerminal()
            served.plug(terminal)
            proxy = FaultProxy(PtyFrontend(), PtyUpstream(terminal.path), mischief)
        else:
            listener = TcpListener()
            served.listen(listener)
            proxy = FaultProxy(TcpFrontend(), TcpUpstream(listener.host, listener.port), mischief)
        with (
            proxy,
            connect(
                proxy.url,
                keyring=Keyring(tmp_path),
                journal=tmp_path / "journal.db",
                clock=Clock(RATE),
                simulator=True,
            ) as client,
        ):
            play(client, device, mischief, KINDS[kind], amount(6, full=ROUNDS // 2, campaign=ROUNDS))
        served.close()
        assert served.failure is None


def test_rounds_over_a_bad_usb(tmp_path: Path, amount: Amount) -> None:
    """Pieces lost and damaged, stalls, and the plug pulled: ENODEV, and another address when it is back."""
    with nothing_left_behind():
        mischief = Impairment(Random("usb"))
        bus = BadBus(DeviceSettings(seed=5, events_kept=512), mischief, RATE)
        device = bus.shoe.device
        assert isinstance(device, WiredPythonDevice)
        way = UsbTransport("usb://", None, bus)
        with connect(
            "usb://",
            keyring=Keyring(tmp_path),
            journal=tmp_path / "journal.db",
            clock=Clock(RATE),
            transport=way,
            simulator=True,
        ) as client:
            how_bad = USB if amount.full else USB | OFTEN_CUT
            play(client, device, mischief, how_bad, amount(5, full=USB_ROUNDS // 2, campaign=USB_ROUNDS))
        bus.close()
    assert mischief.cuts > 0
    assert bus.shoe.address > 1


def play(
    client: Client, device: WiredPythonDevice, mischief: Impairment, how_bad: dict[str, float], rounds: int
) -> None:
    """Play so many rounds while the cable is as bad as told; what must be true then is."""
    for name, share in how_bad.items():
        setattr(mischief, name, share)
    set_up(client)
    player = Player(client)
    while not player.step(rounds):
        pass
    mischief.drop = mischief.corrupt = mischief.cut = mischief.delay = 0
    stale = [each for each in player.refused if isinstance(each, Stale)]
    assert stale == [], "a command was executed again, or an answer mixed up"
    check(client, device, rounds)
    bad = mischief.dropped + mischief.corrupted + mischief.cuts + mischief.delayed
    assert bad > rounds // 7, "it was bad"


def _has_told(device: WiredPythonDevice, events: int) -> bool:
    return bool(device.end.events.last >= events)


def test_a_host_that_is_killed_again_and_again(tmp_path: Path, amount: Amount) -> None:
    """The journal is complete and has nothing twice, and no stack came twice."""
    random = Random(7)
    device = emulate(DeviceSettings(seed=4), wire_ms())
    assert isinstance(device, WiredPythonDevice)
    served = DeviceServer(device)
    listener = TcpListener()
    served.listen(listener)
    keyring, path = Keyring(tmp_path), tmp_path / "journal.db"
    with connect(listener.url, keyring=keyring, journal=path, simulator=True) as client:
        set_up(client)
    program = Path(__file__).with_name("killed_host.py")
    kills = 0
    while kills < amount(3, full=KILLS) or not any(round_id > 1 for round_id, _ in device.stacks_dispensed):
        kills += 1
        assert kills < MOST_KILLS, "the second round never begins"
        host = WarmPopen(
            [listener.url, str(tmp_path), str(path)], program=str(program), stdout=subprocess.PIPE
        )
        assert host.stdout is not None
        assert host.stdout.readline() == b"up\n"
        goes_on = device.end.events.last + random.randrange(EVENTS_A_LIFE)
        wait_until(partial(_has_told, device, goes_on))
        time.sleep(random.uniform(0.0, 0.01))
        host.send_signal(signal.SIGKILL)
        host.wait()
        host.stdout.close()
    with connect(listener.url, keyring=keyring, journal=path, simulator=True) as client:
        player = Player(client)
        while client.status().round_id:
            player.step(10**9)
        rounds = max(round_id for round_id, _ in device.stacks_dispensed)
        check(client, device, rounds)
        assert all(each.outcome in ("done", "not_executed") for each in client.journal.commands())
    served.close()
