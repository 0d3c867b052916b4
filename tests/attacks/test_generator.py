"""Attacks on the generator: noise that fails unseen, and a listener who learns what the host adds."""

from random import Random

import pytest
from tests.machine.tables import RED

from sabot_firmware.shuffle_commands import Commitment
from sabot_protocol.codec import CODEC
from sabot_protocol.host_protocol import CABLE_LOST
from sabot_protocol.notifications import RequestAnswered
from sabot_simulators.dealer import Dealer
from sabot_simulators.hosted_device import HostedDevice
from sabot_simulators.mechanism.ring_oscillator import RingOscillator
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.python_device import PythonDevice

NONCE = bytes(range(0xA0, 0xC0))


class Periodic(RingOscillator):
    """An oscillator locked to the sampling clock: the same bits after every period, from power-up on."""

    def __init__(self, bits: str) -> None:
        super().__init__(Random(1))
        self._bits = bits

    def read(self, count: int) -> bytes:
        """The same from the first bit on whenever it is asked."""
        repeated = (self._bits * (8 * count // len(self._bits) + 1))[: 8 * count]
        return int(repeated, 2).to_bytes(count, "big")


def _shift_register() -> str:
    """127 bits that neither lean nor repeat within 64: no health test can tell them from noise."""
    state, bits = 1, ""
    for _ in range(127):
        bits += str(state & 1)
        state = state >> 1 | ((state ^ state >> 1) & 1) << 6
    return bits


def _machine(bits: str) -> SimulatedMachine:
    machine = SimulatedMachine(Random(1))
    machine.ring_oscillator = Periodic(bits)
    return machine


def _commit(device: PythonDevice, deck_id: int = 0) -> Commitment:
    device.run_until_idle()
    device.command("commit_shuffle", deck_id or Dealer(device).new_deck(RED))
    commitment = device.controller.shuffle_commands._committed
    assert commitment is not None
    return commitment


@pytest.mark.parametrize("bits", ["01", "0011", "01101", "0" * 5 + "1" * 59, _shift_register()[:64]])
def test_noise_with_a_period_stops_shuffling(bits: str) -> None:
    """An oscillator that locks to the sampling clock gives 0101...; it passed both health tests.

    The generator was then seeded with bits that everybody knows, and the device shuffled with them.
    """
    device = PythonDevice(_machine(bits), None)
    device.run_until_idle()
    assert "fault_raised" in [name for name, _ in device.reports]
    assert device.view().shuffler_state == device.controller.shuffler.states.jammed


def test_noise_that_fails_unseen_gives_every_boot_other_seeds() -> None:
    """With noise that repeats, the first seed of every boot was the same: one reveal told all of them."""
    device = PythonDevice(_machine(_shift_register()), None)
    first = _commit(device)
    seeds = {bytes(first.seed)}
    for _ in range(3):
        device.reboot()
        seeds.add(bytes(_commit(device, first.deck_id).seed))
    assert len(seeds) == 4


def test_noise_that_fails_unseen_gives_every_device_other_seeds() -> None:
    """With noise that repeats, two devices drew the same seeds: one of them told the other's order."""

    class Other(PythonDevice):
        serial = b"OTHER001"

    seeds = set()
    for kind in (PythonDevice, Other):
        device = kind(_machine(_shift_register()), None)
        seeds.add(bytes(_commit(device).seed))
    assert len(seeds) == 2


def test_the_hosts_nonce_cannot_be_read_on_the_cable() -> None:
    """`shuffle_with` carried the nonce in clear.

    With a weak generator a listener had all that makes the order.
    """
    device = HostedDevice(SimulatedMachine(Random(1)), None)
    dealer = Dealer(device)
    device.run_until_idle()
    deck_id = dealer.new_deck(RED)
    shuffle_id, _ = device.ask("commit_shuffle", deck_id)
    heard = bytearray()
    receive = device.port.receive

    def listen(data: bytes, now: int) -> None:
        heard.extend(data)
        receive(data, now)

    device.port.receive = listen  # type: ignore[method-assign]
    device.machine.load(dealer.decks.pop(deck_id))
    device.run_until(lambda: True)
    device.ask("shuffle_with", shuffle_id, NONCE)
    assert heard
    assert NONCE[4:12] not in heard  # a part: COBS may put a byte between
    commitment = device.controller.shuffle_commands._running
    assert commitment is not None
    assert commitment.nonce == NONCE


def test_a_nonce_sent_again_in_another_session_is_the_same_nonce() -> None:
    """Not seen on the old code, which hid nothing.

    A pad of the session that the request was first sent in would give the device another nonce.
    """
    device = HostedDevice(SimulatedMachine(Random(1)), None)
    dealer = Dealer(device)
    device.run_until_idle()
    deck_id = dealer.new_deck(RED)
    shuffle_id, _ = device.ask("commit_shuffle", deck_id)
    device.machine.load(dealer.decks.pop(deck_id))
    device.run_until(lambda: True)
    message = CODEC.named("shuffle_with")
    number = device.host.request(message.id, message.pack((shuffle_id, NONCE)), device._now_ms())
    assert device.host.poll(device._now_ms())  # and the cable is pulled: the device never gets it
    device.port.close()
    device.host.disconnect(CABLE_LOST)
    device._connect()
    device.run_until(
        lambda: any(
            isinstance(each, RequestAnswered) and each.request_id == number for each in device.happened
        )
    )
    commitment = device.controller.shuffle_commands._running
    assert commitment is not None
    assert commitment.nonce == NONCE
