"""Two decks through the whole core: shuffled and stored while the other plays, in strict alternation."""

from random import Random

import pytest
from tests.machine.tables import BLUE, RED, Table

from sabot_firmware import hardware, shoe, shuffler
from sabot_firmware.rounds import CARD_EXTRA, CARD_MISSING, CORRECT, MISDEALT, Round
from sabot_simulators.emulated_device import OPENING_UTC_S

pytestmark = pytest.mark.both_kinds

HOUR = 3600


@pytest.mark.rule("MD3 3.B")
@pytest.mark.rule("MD3 5.A")
@pytest.mark.rule("MD3 5.B")
@pytest.mark.rule("MD3 5.C")
@pytest.mark.rule("MD3 5.G")
@pytest.mark.rule("MD3 10.C")
def test_ten_rounds_alternate_and_every_count_is_52() -> None:
    table = Table(1)
    table.open_table()
    backs = []
    for _ in range(10):
        assert table.play_round()
        backs.append({card.back for hand in table.hands_dealt for card in hand})
        assert [len(hand) for hand in table.hands_dealt] == [3] * 7
    assert backs == [{RED}, {BLUE}] * 5
    assert [values[1:] for values in table.named("round_ended")] == [(CORRECT, 31, 52)] * 10
    assert [values[2:] for values in table.named("deck_counted")] == [(52, 52)] * 12
    assert table.faults() == []
    assert [values[1] for values in table.named("stack_taken")] == list(range(1, 8)) * 10


@pytest.mark.rule("MD3 3.B")
def test_the_wrong_deck_and_stale_commands_are_refused_by_name() -> None:
    table = Table(2)
    table.open_table()
    assert table.refused("open_round", 1, 2) == "another_deck"
    assert table.refused("dispense_stack", 1, 1) == "wrong_state"
    assert table.refused("shuffle", 1) == "in_use"
    assert table.refused("shuffle", 9) == "no_such_deck"
    assert table.refused("register_deck", 3, RED, OPENING_UTC_S, role="floor") == "same_back"
    assert table.refused("register_deck", 2, RED, OPENING_UTC_S, role="floor") == "deck_used_before"
    assert table.refused("register_deck", 3, hardware.COVER, OPENING_UTC_S, role="floor") == "unknown_back"
    assert table.refused("remove_deck", 9, 1, role="floor") == "no_such_deck"
    assert table.play_round()
    assert table.refused("open_round", 1, 2) == "stale"
    table.device.command("open_round", 2, 2)
    assert table.refused("dispense_stack", 1, 1) == "stale"
    assert table.refused("remove_deck", 2, 1, role="floor") == "in_use"


def test_an_open_round_has_no_verdict_of_the_round_before() -> None:
    table = Table(16)
    table.open_table()
    assert table.play_round()
    assert table.device.command("last_round") == (1, 1, CORRECT, 0, 52)
    table.device.command("open_round", 2, 2)
    assert table.device.command("last_round") == (2, 2, 0, 0, 0)


def test_a_refusal_says_which_states_would_do() -> None:
    table = Table(2)
    table.open_table()
    with pytest.raises(Exception, match="wrong_state") as caught:
        table.device.command("dispense_stack", 1, 1)
    assert caught.value.values == (shoe.READY, 1 << shoe.ROUND_OPEN, 2)  # type: ignore[attr-defined]


def test_a_stack_is_not_dealt_twice_nor_out_of_turn() -> None:
    table = Table(3)
    table.open_table()
    table.device.command("open_round", 1, 1)
    table.device.command("close_bets", 1, 7)
    assert table.refused("dispense_stack", 1, 2) == "stale"
    table.device.command("dispense_stack", 1, 1)
    for stack in (1, 2, 3):
        assert table.refused("dispense_stack", 1, stack) == "wrong_state"
    table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
    table.take_stack()
    assert table.refused("dispense_stack", 1, 1) == "stale"
    assert len(table.named("stack_dispensed")) == 1


@pytest.mark.rule("MD3 13.D")
def test_a_jam_of_the_shoe_voids_the_round_and_its_deck_has_used_its_turn() -> None:
    table = Table(4, "stuck@exit:9")
    table.open_table()
    assert not table.play_round()
    assert [values[0] for values in table.named("round_voided")] == [1]
    assert table.named("round_ended") == []
    assert table.device.view().last_played == 1
    table.recover()
    assert table.device.view().shoe_deck == 2


def test_a_jam_of_the_shuffler_does_not_disturb_the_round() -> None:
    table = Table(5, "stuck@insertion:110")  # while the first deck is shuffled for the second time
    table.open_table()
    table.deal_round()
    table.machine.take_exit()
    table.collect()
    table.wait(lambda: table.shoe_state == shoe.READY)
    table.feed(1)
    assert table.deal_round()
    table.wait(lambda: table.shuffler_state == shuffler.JAMMED)
    assert [values[1] for values in table.named("round_ended")] == [CORRECT] * 2
    assert table.named("round_voided") == []
    assert table.faults() == [("insertion", "card_stuck")]


@pytest.mark.rule("MD3 3.A")
def test_one_deck_plays_alone_when_the_floor_chooses_so() -> None:
    table = Table(6)
    deck_id = table.shuffle()
    table.wait(lambda: table.shoe_state == shoe.READY)
    for number in range(1, 4):
        if number > 1:
            assert table.refused("open_round", number, deck_id) == "other_deck_missing"
            table.device.command("play_one_deck", 1, role="floor")
        assert table.deal_round()
        table.machine.take_exit()
        table.collect()
        table.feed(deck_id)
        assert table.shuffled()
        table.wait(lambda: table.shoe_state == shoe.READY)
        table.device.command("play_one_deck", 0, role="floor")
    assert [values[1] for values in table.named("round_ended")] == [CORRECT] * 3


# -- hours ------------------------------------------------------------------------------------------


@pytest.mark.rule("MD3 3.C")
def test_an_unknown_time_refuses_a_new_shuffle_and_a_new_round() -> None:
    table = Table(6)
    table.open_table()
    table.device.clock_known = False
    assert table.refused("open_round", 1, 1) == "time_unknown"
    assert table.refused("shuffle", 2) == "time_unknown"


@pytest.mark.rule("MD3 3.C")
def test_a_deck_warns_before_its_hours_end_and_is_stopped_between_rounds() -> None:
    table = Table(7)
    table.open_table()
    device = table.device
    for left_s in (3600, 900, 300):
        device.clock_wrong_by_s = 8 * HOUR - left_s - device.machine.agenda.now_us // 1_000_000 - 20
        device.run_for(60_000_000)
    warned = [values[0] for values in table.named("deck_hours")]
    assert sorted(warned) == [1, 1, 1, 2, 2, 2]
    device.command("open_round", 1, 1)  # still within its hours
    device.command("close_bets", 1, 7)
    device.clock_wrong_by_s = 8 * HOUR + 60
    device.run_for(60_000_000)
    assert table.named("deck_hours")[-1][1] == 0
    device.command("dispense_stack", 1, 1)  # a round that was begun is dealt out
    table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
    assert len(table.named("stack_dispensed")) == 1
    assert table.refused("shuffle", 1) == "past_its_hours"


@pytest.mark.rule("MD3 3.C")
def test_a_clock_that_was_ahead_and_is_corrected_gives_no_deck_more_hours() -> None:
    """A deck registered while the clock was 24 h ahead could be used for 32 h instead of 8."""
    table = Table(9)
    device = table.device
    device.clock_wrong_by_s = 24 * HOUR
    table.open_table()
    device.clock_wrong_by_s = 0
    for _ in range(7 * 12):
        device.run_for(300_000_000)
    assert table.refused("shuffle", 1) == "in_use"  # not past its hours
    device.reboot()  # which makes no deck younger
    for _ in range(13):
        device.run_for(300_000_000)
    assert table.refused("commit_shuffle", 1) == "past_its_hours"


@pytest.mark.rule("MD3 3.C")
def test_a_deck_registered_after_a_long_time_without_decks_ages_from_then_on() -> None:
    """Without a deck nothing is aged, and after nine minutes the ticks no longer tell how long that was."""
    table = Table(15)
    device = table.device
    device.run_until_idle()
    device.run_for(600_000_000)
    deck_id = table.new_deck(RED)
    device.clock_wrong_by_s = -HOUR  # so that only the uptime shows its age
    device.run_for(400_000_000)
    (left_s,) = device.command("decks")[2]
    assert 8 * HOUR - 400 <= left_s <= 8 * HOUR - 399
    assert deck_id == 1


@pytest.mark.rule("MD3 3.C")
def test_hours_run_while_a_stack_waits_in_the_exit_tray() -> None:
    """The shoe looks at its exit tray every 0.8 s, and hours were left for later while it did.

    A deck did not age by uptime, no warning came, and a power cut made the deck younger.
    """
    table = Table(14)
    table.open_table()
    device = table.device
    for command in (("open_round", 1, 1), ("close_bets", 1, 7), ("dispense_stack", 1, 1)):
        device.command(*command)
    table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
    for _ in range(8 * 12):
        device.run_for(300_000_000)
    assert table.shoe_state == shoe.STACK_WAITING
    warned = [values for values in table.named("deck_hours") if values[0] == 1]
    assert [values[1] for values in warned] == [3600, 900, 300, 0]
    device.reboot()
    device.clock_wrong_by_s = -8 * HOUR
    assert table.refused("commit_shuffle", 1) == "past_its_hours"


@pytest.mark.rule("MD3 3.C")
def test_a_host_that_asks_again_and_again_keeps_no_deck_young() -> None:
    table = Table(17)
    device = table.device
    device.run_until_idle()
    table.new_deck(RED)
    device.clock_wrong_by_s = -HOUR  # so that only the uptime shows its age
    for _ in range(50):
        device.run_for(900_000)
        (left_s,) = device.command("decks")[2]
    assert 8 * HOUR - 46 <= left_s <= 8 * HOUR - 44


@pytest.mark.looks_inside
def test_the_moment_at_which_the_ticks_wrap_changes_nothing() -> None:
    def played(start_us: int) -> tuple[int, list[tuple[str, tuple[int | str, ...]]]]:
        table = Table(3, "misfeed@tray:80", "stuck@deal:52", start_us=start_us)
        table.open_table()
        if not table.play_round():
            table.recover()
        assert table.play_round()
        told = [(name, values) for name, values in table.device.reports if name != "deck_registered"]
        return table.machine.agenda.now_us - start_us, told

    undisturbed = played(0)
    for nth in range(4):
        assert played((1 << 30) - 1 - undisturbed[0] * nth // 4) == undisturbed


@pytest.mark.looks_inside
def test_numbers_that_begin_anew_leave_those_of_decks_in_use_and_of_an_open_round() -> None:
    table = Table(18)
    table.open_table()
    table.device.command("open_round", 1, 1)
    table.device.controller.forget_numbers()
    for used in (1, 2):
        assert table.refused("register_deck", used, RED, OPENING_UTC_S, role="floor") == "deck_used_before"
    assert table.device.command("last_round")[:2] == (1, 1)


@pytest.mark.looks_inside
def test_nothing_is_kept_of_the_hours_of_decks_that_left() -> None:
    """Each deck left its remaining time behind: a host that registers and removes decks filled the memory."""
    table = Table(16)
    table.device.run_until_idle()
    for deck_id in range(1, 12):
        table.device.command("register_deck", deck_id, RED, OPENING_UTC_S, role="floor")
        table.device.run_for(40_000_000)
        table.device.command("remove_deck", deck_id, 1, role="floor")
    assert len(table.device.controller.deck_commands._left_s) == 1


@pytest.mark.rule("MD3 3.C")
def test_a_deck_that_is_said_to_be_opened_in_the_future_is_refused() -> None:
    """``opened_s = 2**32 - 1`` was accepted: such a deck had no end."""
    table = Table(10)
    table.device.run_until_idle()
    for opened_s in (0xFFFFFFFF, OPENING_UTC_S + HOUR):
        assert table.refused("register_deck", 1, RED, opened_s, role="floor") == "not_opened_yet"
    table.device.clock_known = False
    assert table.refused("register_deck", 1, RED, OPENING_UTC_S, role="floor") == "time_unknown"
    table.device.clock_known = True
    table.device.command("register_deck", 1, RED, OPENING_UTC_S + 60, role="floor")  # clocks differ


@pytest.mark.looks_inside
@pytest.mark.rule("MD3 3.C")
def test_a_clock_set_back_makes_no_deck_younger_and_another_method_applies_at_once() -> None:
    table = Table(8)
    table.open_table()
    device = table.device
    device.clock_wrong_by_s = 9 * HOUR
    assert table.refused("open_round", 1, 1) == "past_its_hours"
    device.clock_wrong_by_s = 0
    assert table.refused("open_round", 1, 1) == "past_its_hours"
    decks = Table(8).device.controller.persistent.decks
    decks.register(1, RED, OPENING_UTC_S)
    assert decks.refuse_using(1, OPENING_UTC_S + 5 * HOUR) is None
    decks.hours = 4  # from now on dealt from the hand
    assert decks.refuse_using(1, OPENING_UTC_S + 5 * HOUR) == "past_its_hours"


@pytest.mark.looks_inside
@pytest.mark.rule("MD3 10.C")
def test_what_a_rounds_count_says() -> None:
    def verdict(stacks: list[int], stub: int) -> int:
        one = Round(1, 1, len(stacks))
        one.stacks = stacks
        return one.verdict(stub, 52)

    assert verdict([3] * 7, 31) == CORRECT
    assert verdict([3] * 6 + [4], 30) == MISDEALT
    assert verdict([3] * 7, 30) == CARD_MISSING
    assert verdict([3] * 7, 32) == CARD_EXTRA


def test_a_foreign_deck_is_refused_with_where_it_is() -> None:
    table = Table(9)
    table.device.run_until_idle()
    from sabot_simulators.mechanism.physical_cards import new_deck

    deck_id = table.new_deck(RED)
    table.decks[deck_id] = new_deck(BLUE, Random(1))
    table.feed(deck_id)
    table.shuffled()
    assert table.faults() == [("entry", "wrong_deck")]
