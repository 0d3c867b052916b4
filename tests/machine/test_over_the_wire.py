"""The whole device over the wire: what the host is told is what the core reported, once and in order."""

from random import Random

import pytest

from sabot_firmware import hardware
from sabot_firmware.rounds import CORRECT
from sabot_protocol.errors import Refusal
from sabot_simulators.dealer import Dealer
from sabot_simulators.hosted_device import HostedDevice
from sabot_simulators.mechanism.faults import PlannedFault
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine


def table(seed: int, *faults: str) -> tuple[HostedDevice, Dealer]:
    random = Random(seed)
    device = HostedDevice(
        SimulatedMachine(random, tuple(PlannedFault.parse(each) for each in faults)), random.randrange
    )
    return device, Dealer(device)


def test_four_rounds_over_the_wire_and_every_event_once() -> None:
    device, dealer = table(1)
    assert dealer.open_table()
    for _ in range(4):
        assert dealer.play_round()
    of_the_core = {name for name, _ in device.reports}
    told = [each for each in device.events() if each[0] in of_the_core]
    assert told == device.reports
    assert [values[1:] for name, values in told if name == "round_ended"] == [(CORRECT, 31, 52)] * 4
    shuffler, shoe, fault, flags = device.ask("status")[3:7]
    assert (fault, flags & 0x000F) == (0, 0x0003)  # owned, clock known, no round, no fault
    assert (shuffler, shoe) == (4, 3)  # stored, ready


def test_the_cores_refusals_reach_the_host_by_name() -> None:
    device, dealer = table(2)
    assert dealer.open_table()
    with pytest.raises(Refusal) as refused:
        device.command("open_round", 1, 2)
    assert refused.value.error == "not_allowed"
    with pytest.raises(Refusal) as refused:
        device.command("dispense_stack", 1, 1)
    assert refused.value.error == "wrong_state"


def test_the_decks_are_told_after_a_clock_was_far_ahead() -> None:
    """A clock in 2106 makes a deck 80 years old, for good: how far it is past its hours must fit its field.

    The answer could not be packed. The exception ended the device's loop at each ``decks``, from any host.
    """
    device, dealer = table(6)
    assert dealer.open_table()
    device.command("set_clock", 0xFFFFFFFF, 0, role="floor")
    oldest = (8 * 3600 - 0x7FFFFFFF,) * 2  # an age is at most what its record can hold
    assert device.ask("decks")[2] == oldest
    device.command("set_clock", device.true_utc_s(), 0)
    assert device.ask("decks")[2] == oldest


def test_a_jam_reaches_the_host_as_fault_and_void_round() -> None:
    device, dealer = table(3, "stuck@exit:9")
    assert dealer.open_table()
    assert not dealer.play_round()
    names = [name for name, _ in device.events()]
    assert names.index("fault_raised") < names.index("round_voided")
    assert device.ask("status")[5] != 0


def test_nothing_on_the_wire_tells_an_undealt_card() -> None:
    """Events and status of a whole shuffle hold counts and states, and are the same whatever the order is."""
    told = []
    for seed in (4, 5):
        random = Random(0)  # the same machine, keys and deck
        device = HostedDevice(SimulatedMachine(random), Random(seed).randrange)
        dealer = Dealer(device)
        assert dealer.open_table()
        events = [each for each in device.events() if each[0] != "elevation_used"]
        # a checkpoint's hash covers host ids and its tag a key: neither is known before the order is drawn
        told.append([(name, values[:3] if name == "chain_checkpoint" else values) for name, values in events])
        assert {card.back for card in device.machine.shoe} == {hardware.RED}
    assert told[0] == told[1]
