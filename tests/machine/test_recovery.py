"""A jam is cleared by hand, believed only when door and sensors say so, and play goes on with every card."""

from collections.abc import Callable
from random import Random

import pytest

from sabot_firmware import hardware, shoe, shuffler
from sabot_protocol.codec import enum_number
from sabot_protocol.errors import Refusal
from sabot_simulators.dealer import Dealer
from sabot_simulators.in_process import OPENING_UTC_S, InProcess
from sabot_simulators.mechanism.faults import Fault
from sabot_simulators.mechanism.machine import Machine


def table(seed: int, *faults: str) -> Dealer:
    random = Random(seed)
    machine = Machine(random, tuple(Fault.parse(each) for each in faults))
    return Dealer(InProcess(machine, random.randrange))


def all_cards(dealer: Dealer) -> int:
    held = [card for cards in dealer.device.machine.truth().values() for card in cards]
    assert len({id(card) for card in held}) == len(held)
    return len(held)


@pytest.mark.rule("MD3 13.D")
@pytest.mark.parametrize(
    "fault",
    ["stuck@exit:30", "stuck@deal:9", "double_feed@shoe:14", "misfeed@shoe:40", "slip@shoe:5"],
)
def test_a_shoe_that_failed_is_emptied_and_the_other_deck_plays_next(fault: str) -> None:
    dealer = table(1, fault)
    assert dealer.open_table()
    assert not dealer.play_round()
    assert dealer.core.round is None
    dealer.recover()
    assert dealer.core.shoe.back == hardware.BLUE  # a round that was started has used its deck's turn
    assert all_cards(dealer) == 104
    for _ in range(4):
        assert dealer.play_round()
    assert all_cards(dealer) == 104
    ended = [values for name, values in dealer.device.reports if name == "round_ended"]
    assert [values[1:] for values in ended] == [(1, 31, 52)] * 4


@pytest.mark.parametrize(
    "fault",
    [
        "stuck@entry:110",
        "stuck@insertion:130",
        "double_feed@tray:120",
        "aligned_double@tray:120",
        "grip_slip@chamber:30",
    ],
)
def test_a_shuffler_that_failed_is_emptied_and_shuffles_again(fault: str) -> None:
    dealer = table(2, fault)
    if dealer.open_table():
        assert not dealer.play_round()
    dealer.recover()
    if not dealer.core.decks.find(2):
        dealer.device.command("register_deck", 2, hardware.BLUE, OPENING_UTC_S)
        dealer.feed(2)
        dealer.device.run_until(lambda: dealer.core.shuffler.state == shuffler.STORED)
    for _ in range(4):
        assert dealer.play_round()
    assert all_cards(dealer) == 104


def jammed(dealer: Dealer) -> int:
    assert dealer.open_table()
    assert not dealer.play_round()
    jam = dealer.core.shoe.jam
    assert jam is not None
    return enum_number("Fault", jam.cause)


def assert_refused(dealer: Dealer, fault: int) -> None:
    dealer.device.run_until(lambda: True)
    with pytest.raises(Refusal) as refused:
        dealer.device.command("clear_fault", fault)
    assert refused.value.error == "wrong_state"


@pytest.mark.parametrize(
    "do",
    [
        pytest.param(lambda machine: None, id="nothing was done"),
        pytest.param(lambda machine: machine.open_door(hardware.SHOE_DOOR), id="the door is still open"),
        pytest.param(
            lambda machine: (machine.open_door(hardware.SHOE_DOOR), machine.close_door(hardware.SHOE_DOOR)),
            id="cards are left in the shoe",
        ),
    ],
)
def test_clearing_is_not_believed_without_door_and_sensors(do: Callable[[Machine], object]) -> None:
    dealer = table(3, "stuck@exit:30")
    fault = jammed(dealer)
    do(dealer.device.machine)
    assert_refused(dealer, fault)
    assert dealer.core.shoe.state == shoe.JAMMED


def test_another_fault_than_the_one_there_is_cannot_be_cleared() -> None:
    dealer = table(3, "stuck@exit:30")
    fault = jammed(dealer)
    assert_refused(dealer, fault % 20 + 1)


@pytest.mark.rule("MD3 13.D")
def test_the_shoe_door_voids_the_round_and_the_shuffler_door_does_not() -> None:
    for door, voided in ((hardware.SHUFFLER_DOOR, 0), (hardware.SHOE_DOOR, 1)):
        dealer = table(4)
        assert dealer.open_table()
        device = dealer.device
        device.command("open_round", 1, 1, 7)
        device.command("dispense_stack", 1, 1)
        device.machine.open_door(door)
        device.run_until(lambda core=dealer.core: core.shoe.state in (shoe.STACK_WAITING, shoe.JAMMED))  # type: ignore[misc]
        assert len([name for name, _ in device.reports if name == "round_voided"]) == voided
        assert (dealer.core.round is None) == bool(voided)
        assert dealer.core.shuffler.verified() is None or voided  # its own deck is no longer proved


def test_an_open_door_stops_the_rollers_of_its_half_only() -> None:
    machine = Machine(Random(5))
    machine.open_door(hardware.SHOE_DOOR)
    machine.run(hardware.DEAL, hardware.FORWARD)
    machine.run(hardware.FEED, hardware.FORWARD)
    assert machine._rollers[hardware.DEAL].direction == 0
    assert machine._rollers[hardware.FEED].direction == 1
