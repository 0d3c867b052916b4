"""Shuffles and rounds on the emulated Pico: what it counts is what is there."""

from itertools import pairwise

import pytest
from tests.board.table import HANDS, Table

from sabot_firmware import hardware, shoe, shuffler
from sabot_firmware.rounds import CORRECT


def test_two_decks_are_shuffled_and_every_card_is_counted(opened: Table) -> None:
    assert opened.device.named("deck_counted") == [(1, 1, 52, 52), (2, 2, 52, 52)]
    assert opened.counts() == {"store": 52, "shoe": 52}
    assert not opened.device.named("fault_raised")
    assert {card.back for card in opened.machine.shoe} == {hardware.RED}


def test_a_shuffle_changes_the_order(opened: Table) -> None:
    faces = [card.face for card in opened.machine.shoe]
    assert sorted(faces) == list(range(52))
    assert sum(second - first == 1 for first, second in pairwise(faces)) < 15


def test_a_round_of_seven_stacks_and_its_stub(opened: Table) -> None:
    order = [card.face for card in opened.machine.shoe]
    assert opened.dealer.play_round()
    (round_id, verdict, stub, count) = opened.device.named("round_ended")[0]
    assert (round_id, verdict, stub, count) == (1, CORRECT, 52 - 3 * HANDS, 52)
    dealt = [card.face for hand in opened.dealer.hands_dealt for card in hand]
    assert [len(hand) for hand in opened.dealer.hands_dealt] == [3] * HANDS
    assert sorted(dealt) == sorted(order[: 3 * HANDS])
    assert opened.counts() == {"store": 52, "shoe": 52}
    assert opened.device.view().last_played == 1


@pytest.mark.parametrize(
    ("fault", "half"),
    [
        ("stuck@entry:12", "shuffler"),
        ("stuck@insertion:20", "shuffler"),
        ("double_feed@tray:9", "shuffler"),
        ("grip_slip@chamber:15", "shuffler"),
        ("lost_steps@chamber:14", "shuffler"),
        ("misfeed@tray:3", "shuffler"),
        ("motor_stall@insert:5", "shuffler"),
    ],
)
def test_a_jam_of_the_shuffler_is_found_and_cleared(ready: Table, fault: str, half: str) -> None:
    ready.machine.strike(fault)
    if not ready.dealer.open_table():
        ready.device.run_for(100_000)
        assert ready.device.named("fault_raised")
        assert ready.device.shuffler_state in (shuffler.JAMMED, shuffler.DOOR_OPEN)
        ready.dealer.recover()
    assert ready.counts() == {"store": 52, "shoe": 52}


@pytest.mark.parametrize("fault", ["stuck@exit:4", "double_feed@shoe:2", "misfeed@shoe:5", "stuck@deal:3"])
def test_a_jam_of_the_shoe_voids_the_round_and_is_cleared(opened: Table, fault: str) -> None:
    opened.machine.strike(fault)
    assert not opened.dealer.deal_round()
    opened.device.run_for(100_000)
    assert opened.device.shoe_state == shoe.JAMMED
    assert opened.device.named("round_voided")
    assert not opened.device.named("round_ended")
    opened.dealer.recover()
    assert opened.dealer.play_round()


def test_a_door_stops_its_half_and_only_that(opened: Table) -> None:
    opened.device.machine.open_door(hardware.SHUFFLER_DOOR)
    opened.device.run_for(100_000)
    assert opened.device.shuffler_state == shuffler.JAMMED
    assert opened.device.shoe_state == shoe.READY
