"""Two decks through the whole core: shuffled and stored while the other plays, in strict alternation."""

from random import Random

import pytest

from sabot_firmware import hardware
from sabot_firmware.rounds import CARD_EXTRA, CARD_MISSING, CORRECT, MISDEALT, Round
from sabot_protocol.codec import enum_number
from sabot_protocol.errors import Refusal
from sabot_simulators.dealer import Dealer
from sabot_simulators.in_process import InProcess
from sabot_simulators.mechanism.cards import new_deck
from sabot_simulators.mechanism.faults import Fault
from sabot_simulators.mechanism.machine import Machine


def table(seed: int, *faults: str) -> Dealer:
    random = Random(seed)
    machine = Machine(random, tuple(Fault.parse(each) for each in faults))
    return Dealer(InProcess(machine, random.randrange))


def named(dealer: Dealer, name: str) -> list[tuple[int | str, ...]]:
    return [values for each, values in dealer.device.reports if each == name]


@pytest.mark.rule("MD3 3.B")
@pytest.mark.rule("MD3 5.B")
@pytest.mark.rule("MD3 10.C")
def test_ten_rounds_alternate_and_every_count_is_52() -> None:
    dealer = table(1)
    dealer.open_table()
    backs = []
    for _ in range(10):
        assert dealer.play_round()
        backs.append({card.back for hand in dealer.hands_dealt for card in hand})
        assert [len(hand) for hand in dealer.hands_dealt] == [3] * 7
    assert backs == [{hardware.RED}, {hardware.BLUE}] * 5
    assert [values[1:] for values in named(dealer, "round_ended")] == [(CORRECT, 31, 52)] * 10
    assert [values[2:] for values in named(dealer, "deck_counted")] == [(52, 52)] * 12
    assert named(dealer, "fault_raised") == []
    assert [values[1] for values in named(dealer, "stack_taken")] == list(range(1, 8)) * 10


@pytest.mark.rule("MD3 3.B")
def test_the_wrong_deck_and_stale_commands_are_refused() -> None:
    dealer = table(2)
    dealer.open_table()
    for name, values, error in (
        ("open_round", (1, 2, 7), "wrong_state"),  # the other deck is in the shoe
        ("dispense_stack", (1, 1), "stale"),  # no round is open
        ("shuffle", (1,), "wrong_state"),  # it is in the shoe
        ("register_deck", (3, hardware.RED, 0), "wrong_state"),  # there are two already
        ("remove_deck", (9,), "wrong_state"),
    ):
        with pytest.raises(Refusal) as refused:
            dealer.device.command(name, *values)
        assert refused.value.error == error, name
    assert dealer.play_round()
    for name, values in (("open_round", (1, 2, 7)), ("dispense_stack", (1, 1))):
        with pytest.raises(Refusal) as refused:
            dealer.device.command(name, *values)
        assert refused.value.error == "stale"


def test_a_stack_is_not_dealt_twice_nor_out_of_turn() -> None:
    dealer = table(3)
    dealer.open_table()
    dealer.device.command("open_round", 1, 1, 7)
    dealer.device.command("dispense_stack", 1, 1)
    for stack in (1, 2, 3):
        with pytest.raises(Refusal):
            dealer.device.command("dispense_stack", 1, stack)
    assert len(named(dealer, "stack_dispensed")) <= 1


@pytest.mark.rule("MD3 5.B")
@pytest.mark.parametrize("cards", [51, 53])
def test_a_deck_with_a_wrong_count_leaves_the_table(cards: int) -> None:
    dealer = table(7)
    dealer.decks[1] = (dealer.decks[1] + new_deck(hardware.RED, Random(0)))[:cards]
    assert not dealer.open_table()
    assert named(dealer, "deck_counted") == [(1, 1, cards, 52)]
    assert [values[0] for values in named(dealer, "fault_raised")] == [enum_number("Fault", "count_wrong")]
    assert dealer.core.decks.find(1) is None
    assert dealer.core.shuffler.verified() is None
    with pytest.raises(Refusal):
        dealer.device.command("shuffle", 1)


@pytest.mark.rule("MD3 13.D")
def test_a_jam_of_the_shoe_voids_the_round() -> None:
    dealer = table(4, "stuck@exit:9")
    dealer.open_table()
    assert not dealer.play_round()
    assert len(named(dealer, "fault_raised")) == 1
    assert [values[0] for values in named(dealer, "round_voided")] == [1]
    assert named(dealer, "round_ended") == []


def test_a_jam_of_the_shuffler_does_not_disturb_the_round() -> None:
    dealer = table(5, "stuck@insertion:110")  # while the first deck is shuffled for the second time
    dealer.open_table()
    assert not dealer.play_round()
    assert [values[1] for values in named(dealer, "round_ended")] == [CORRECT]
    assert named(dealer, "round_voided") == []
    assert len(named(dealer, "fault_raised")) == 1


@pytest.mark.rule("MD3 3.C")
def test_an_unknown_time_refuses_a_new_shuffle() -> None:
    dealer = table(6)
    dealer.device.clock_known = False
    with pytest.raises(Refusal):
        dealer.open_table()


@pytest.mark.rule("MD3 10.C")
def test_what_a_rounds_count_says() -> None:
    def verdict(stacks: list[int], stub: int) -> int:
        one = Round(1, 1, len(stacks))
        one.stacks = stacks
        return one.verdict(stub)

    assert verdict([3] * 7, 31) == CORRECT
    assert verdict([3] * 6 + [4], 30) == MISDEALT
    assert verdict([3] * 7, 30) == CARD_MISSING
    assert verdict([3] * 7, 32) == CARD_EXTRA
