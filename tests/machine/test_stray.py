"""The stray card: a deck that came out short blocks the shoe until the missing card is accounted for.

Between the shoe's sensor and the exit's lie 40 mm where neither sees a card. On the old code the shoe became
``empty`` there, the next deck was pushed onto the card, and 52 were claimed where 53 lay.
"""

import pytest
from tests.machine.tables import Table, fault, void_reason

from sabot_firmware import hardware, machine_constants, shoe, shuffler
from sabot_firmware.rounds import CARD_MISSING, CORRECT, UNPROVED
from sabot_simulators.mechanism.physical_cards import new_deck

SHORT = [(1, CARD_MISSING, 30, 51)]


def claims(table: Table) -> tuple[bool, int]:
    """What is claimed of the deck in the shoe, and how many cards really lie in that half."""
    controller = table.device.controller
    proved, _ = controller.whereabouts(controller.shoe.deck) if controller.shoe.deck else (False, [])
    return proved, table.machine.count("shoe")


def short(name: str, seed: int = 1) -> Table:
    """A table whose first deck came out short; its stub was taken."""
    table = Table(seed, name)
    table.open_table()
    assert table.deal_round()
    assert table.named("round_ended") == SHORT
    table._take()
    table.collect()
    table.device.run_for(3_000_000)
    return table


def look_in(table: Table) -> None:
    """The shoe's door is opened and closed; nothing is touched."""
    table.machine.open_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    table.machine.close_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)


@pytest.mark.parametrize("name", ["slip@shoe:52", "stuck@deal:52", "dead_sensor@exit:52", "slip@shoe:104"])
def test_no_deck_is_pushed_onto_a_card_that_no_sensor_sees(name: str) -> None:
    table = Table(1, name)
    table.open_table()
    for _ in range(3):
        if not table.play_round():
            break
        proved, cards = claims(table)
        assert not proved or cards == 52
    proved, cards = claims(table)
    assert not proved or cards == 52
    table.recover()
    assert table.play_round()
    assert claims(table) == (True, 52)


def test_a_short_shoe_is_blocked_and_says_so() -> None:
    table = short("stuck@deal:52")
    assert table.shoe_state == shoe.BLOCKED
    assert table.shuffler_state == shuffler.STORED
    assert table.machine.display[0] == "CARD IN THE PATH?"
    assert table.machine.lamp == hardware.AMBER
    assert table.refused("purge", role="floor") == "not_cleared"  # nobody opened the door
    assert table.refused("set_game", "x", 0, 1, 3, 8, role="floor") == "wrong_state"


def test_the_deck_fed_again_and_whole_accounts_for_it() -> None:
    table = short("stuck@deal:52")
    table.machine.open_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    assert len(table.machine.empty_by_hand(hardware.SHOE_DOOR)) == 1
    table.machine.close_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    assert table.shoe_state == shoe.BLOCKED  # a hand may have missed it
    table.collect()
    table.feed(1)
    table.wait(lambda: table.shoe_state == shoe.READY)
    assert table.device.controller.shoe.deck == 2
    assert claims(table) == (False, 52)  # until its first card has passed where hands were
    table.device.command("open_round", 2, 2)
    table.device.command("close_bets", 2, 7)
    table.device.command("dispense_stack", 2, 1)
    table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
    assert table.device.view().proved(2)


def test_a_deck_fed_again_without_its_card_leaves_and_the_shoe_stays_blocked() -> None:
    table = short("stuck@deal:52")
    table.feed(1)
    table.wait(lambda: table.shuffler_state == shuffler.JAMMED)
    assert table.faults() == [("chamber", "count_wrong")]
    assert table.shoe_state == shoe.BLOCKED


def test_the_other_deck_whole_accounts_for_nothing() -> None:
    table = short("stuck@deal:52")
    assert table.shuffler_state == shuffler.STORED
    table.device.controller.dealing.deck_counted(2)
    assert table.shoe_state == shoe.BLOCKED


def test_a_purge_brings_the_card_past_the_exit() -> None:
    table = short("stuck@deal:52")
    table.machine.open_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    table.machine.loosen(hardware.SHOE_DOOR)
    table.machine.close_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    assert table.shoe_state == shoe.BLOCKED
    table.device.command("purge", role="floor")
    table.wait(lambda: table.shoe_state == shoe.STUB_WAITING)
    assert [values[0] for values in table.named("purged")] == [1]
    table._take()
    table.wait(lambda: table.shoe_state == shoe.READY)
    assert claims(table) == (True, 52)


def test_a_door_that_was_opened_before_the_return_to_service_allows_no_purge() -> None:
    table = short("stuck@deal:52")
    table.machine.open_door(hardware.SHUFFLER_DOOR)
    table.device.run_until(lambda: True)
    table.machine.empty_by_hand(hardware.SHUFFLER_DOOR)
    table.machine.close_door(hardware.SHUFFLER_DOOR)
    table.device.run_until(lambda: True)
    table.device.command("mark_out_of_order", role="floor")
    look_in(table)
    table.device.command("return_to_service", role="service")
    table.device.run_until_idle()
    assert table.shoe_state == shoe.BLOCKED
    assert table.refused("purge", role="floor") == "not_cleared"
    look_in(table)
    table.device.command("purge", role="floor")


def test_a_purge_that_brings_nothing_leaves_it_blocked() -> None:
    table = short("stuck@deal:52")
    look_in(table)
    table.device.command("purge", role="floor")
    table.device.run_until_idle()
    assert [values[0] for values in table.named("purged")] == [0]
    assert table.shoe_state == shoe.BLOCKED
    assert table.refused("purge", role="floor") == "not_cleared"  # once for each look


def test_an_inspection_by_eye_is_a_claim_and_so_is_the_next_count() -> None:
    table = short("stuck@deal:52")
    table.machine.open_door(hardware.SHOE_DOOR)
    table.machine.empty_by_hand(hardware.SHOE_DOOR)
    table.machine.close_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    table.collect()
    table.device.command("path_inspected", role="floor")
    assert [values[:2] for values in table.named("path_inspected_by")] == [(1, 1)]
    table.wait(lambda: table.shoe_state == shoe.READY)
    assert claims(table) == (False, 52)
    assert table.deal_round()
    assert table.named("round_ended")[-1] == (2, UNPROVED, 31, 52)
    table._take()
    table.collect()
    table.feed(1)
    table.wait(lambda: table.shoe_state == shoe.READY)
    assert claims(table) == (True, 52)
    assert table.deal_round()
    assert table.named("round_ended")[-1] == (3, CORRECT, 31, 52)


def test_an_inspection_outlives_the_power_until_a_deck_was_loaded() -> None:
    table = short("stuck@deal:52")
    table.machine.open_door(hardware.SHOE_DOOR)
    table.machine.empty_by_hand(hardware.SHOE_DOOR)
    table.machine.close_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    table.device.controller.shuffler.stored = 0  # nothing is pushed now
    table.device.command("path_inspected", role="floor")
    table.device.reboot()
    assert table.device.controller.shoe.inspected


def empty_the_shuffler(table: Table) -> None:
    """People take out every card of that half, through its door; nobody looks at the shoe."""
    table.machine.open_door(hardware.SHUFFLER_DOOR)
    table.device.run_until(lambda: True)
    table.machine.empty_by_hand(hardware.SHUFFLER_DOOR)
    table.machine.close_door(hardware.SHUFFLER_DOOR)
    table.device.run_until_idle()
    table.collect()


@pytest.mark.parametrize("ended_by", ["stop", "brown_out@controller"])
@pytest.mark.parametrize("then", ["service_mode", "mark_out_of_order"])
def test_a_card_in_the_path_of_a_machine_that_loses_its_power_in_service_is_found(
    ended_by: str, then: str
) -> None:
    """Service counts as empty. After the cut the next deck was pushed onto it: 52 were claimed of 53."""
    table = Table(1)
    table.open_table()
    device, machine = table.device, table.machine
    device.command("open_round", 1, 1)
    device.command("close_bets", 1, 2)
    for stack in (1, 2):
        device.command("dispense_stack", 1, stack)
        table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
        table.take_stack()
    device.command("end_round", 1)
    while machine.shoe:
        device.run_for(1_000)
    if ended_by == "stop":
        device.command("stop")
    else:
        machine.strike(ended_by)
    device.run_for(500_000)
    assert (table.shoe_state, machine.count("shoe")) == (shoe.JAMMED, 1)
    machine.take_exit()
    device.run_until(lambda: True)
    device.command(then, *([1] if then == "service_mode" else []), role="service")
    device.reboot()
    device.run_until_idle()
    if then == "mark_out_of_order":
        device.command("return_to_service", role="service")
        device.run_until_idle()
    assert (table.shoe_state, machine.count("shoe")) == (shoe.JAMMED, 1)  # it was called empty
    assert table.faults()[-1] == ("exit", "card_stuck")
    empty_the_shuffler(table)
    table.feed(2)
    table.shuffled()
    device.run_for(5_000_000)
    assert claims(table) == (False, 1)
    table.recover()
    assert table.play_round()
    assert claims(table) == (True, 52)


def test_a_shoe_that_people_emptied_is_empty_after_a_power_cut() -> None:
    """The self-test at power-up turns the roller, because people had access, and no card comes."""
    table = Table(1)
    table.device.run_until_idle()
    table.device.command("service_mode", 1, role="service")
    table.device.reboot()
    started_um = table.machine.travelled_um(hardware.DEAL)
    table.device.run_until_idle()
    assert table.shoe_state == shoe.EMPTY
    assert table.machine.travelled_um(hardware.DEAL) - started_um > machine_constants.EXIT_UM
    assert table.device.controller.shoe.cleared


def test_a_cut_while_the_deck_after_an_inspection_is_pushed_makes_the_next_one_no_proved_one() -> None:
    """The person had overlooked the card, and the claim was used up by a deck that never came to the shoe."""
    table = short("stuck@deal:52")
    table.device.command("path_inspected", role="floor")
    assert table.shoe_state == shoe.LOADING
    table.device.reboot()
    table.device.run_until_idle()
    empty_the_shuffler(table)
    table.device.command("empty_machine", role="floor")
    table.device.run_until_idle()
    table.feed(2)
    table.shuffled()
    table.device.run_for(5_000_000)
    assert claims(table) == (False, 53)


def test_it_stays_blocked_over_a_power_cut_a_fault_and_service() -> None:
    table = short("stuck@deal:52")
    table.device.reboot()
    table.device.run_until_idle()
    assert table.shoe_state == shoe.UNPROVED
    half = table.device.controller.shoe
    assert (half.missing, half.short_deck) == (1, 1)
    table.device.command("empty_machine", role="floor")
    table.device.run_until_idle()
    table._take()
    table.device.run_until_idle()
    assert table.shoe_state == shoe.BLOCKED
    table.machine.strike("brown_out@controller")
    table.device.run_for(1_000_000)
    assert table.shoe_state == shoe.JAMMED
    look_in(table)
    table.device.command("clear_fault", fault("supply_low"))
    table.device.run_until_idle()
    assert table.shoe_state == shoe.BLOCKED
    assert table.refused("purge", role="floor") == "not_cleared"  # that look was for the fault


def test_a_card_left_behind_when_the_machine_is_emptied_blocks_it_too() -> None:
    """Nobody knows how many cards there were, but the last one left the shoe and did not come to the exit."""
    table = Table(2, "stuck@deal:52")
    table.open_table()
    table.device.reboot()
    table.device.run_until_idle()
    table.device.command("empty_machine", role="floor")
    table.wait(lambda: table.shoe_state in (shoe.STUB_WAITING, shoe.JAMMED))
    table._take()
    table.device.run_for(3_000_000)
    assert table.shoe_state == shoe.BLOCKED
    assert table.machine.count("shoe") == 1
    table.recover()
    assert table.play_round()


def cut_at_the_last_card(*faults: str) -> Table:
    """The power failed while the last card of a stub was between shoe and exit; the rest of it was taken."""
    table = Table(1, *faults)
    table.open_table()
    device, machine = table.device, table.machine
    device.command("open_round", 1, 1)
    device.command("close_bets", 1, 1)
    device.command("dispense_stack", 1, 1)
    table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
    table.take_stack()
    device.command("end_round", 1)
    while machine.shoe:
        device.run_for(1_000)
    assert table.shoe_state == shoe.EJECTING
    machine.power_off()
    machine.agenda.advance(machine.agenda.now_us + 1_000_000)  # what flies has landed
    machine.take_exit()
    device.reboot()
    device.run_until_idle()
    assert [machine.level(each) for each in (hardware.SHOE, hardware.EXIT)] == [0, 0]
    assert (table.shoe_state, machine.count("shoe")) == (shoe.UNPROVED, 1)
    return table


def test_a_card_that_sticks_in_the_path_when_the_power_fails_blocks_the_shoe() -> None:
    """No count told that it was missing: the shoe became empty, and the next deck was pushed onto it."""
    table = cut_at_the_last_card("stuck@deal:52")
    table.device.command("empty_machine", role="floor")
    table.device.run_until_idle()
    assert (table.shoe_state, table.machine.count("shoe")) == (shoe.BLOCKED, 1)
    assert not table.device.view().emptying
    table.recover()
    assert table.play_round()
    assert claims(table) == (True, 52)


def test_a_door_that_is_opened_and_closed_after_that_cut_proves_nothing() -> None:
    table = cut_at_the_last_card("stuck@deal:52")
    look_in(table)
    assert table.shoe_state == shoe.BLOCKED


def test_the_deck_of_a_round_that_the_power_ended_accounts_for_its_card() -> None:
    table = cut_at_the_last_card()
    shoe_half = table.device.controller.shoe
    assert (shoe_half.missing, shoe_half.short_deck) == (1, 1)
    table.device.controller.dealing.deck_counted(2)
    assert shoe_half.missing == 1
    table.device.controller.dealing.deck_counted(1)
    assert shoe_half.missing == 0


def test_a_card_that_comes_out_after_the_cut_leaves_the_shoe_empty() -> None:
    table = cut_at_the_last_card()
    table.device.command("empty_machine", role="floor")
    table.device.run_until_idle()
    assert (table.shoe_state, len(table.machine.exit_tray)) == (shoe.STUB_WAITING, 1)
    table._take()
    table.device.run_until_idle()
    assert shoe.BLOCKED not in [values[0] for values in table.named("shoe_changed")]
    assert table.device.controller.shoe.missing == 0


def test_a_shoe_that_people_empty_while_the_power_is_off_may_have_a_card_in_its_path() -> None:
    table = Table(1)
    table.open_table()
    machine = table.machine
    table.device.command("open_round", 1, 1)
    table.device.command("close_bets", 1, 1)
    table.device.command("dispense_stack", 1, 1)
    table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
    table.take_stack()
    table.device.reboot()  # with cards in the shoe: it can still be emptied
    table.device.run_until_idle()
    assert table.device.controller.shoe.missing == 0
    machine.power_off()
    machine.handed_out += machine.shoe
    machine.shoe = []
    machine.presence()
    table.device.reboot()
    table.device.run_until_idle()
    assert (table.shoe_state, machine.count("shoe")) == (shoe.UNPROVED, 1)
    assert table.device.controller.shoe.missing == 1
    assert table.device.controller.shoe.short_deck == 0  # no round was open: nobody knows whose card it is


@pytest.mark.parametrize("at", [shoe.STUB_WAITING, shoe.LOADING])
def test_a_cut_when_no_card_can_lie_in_the_path_blocks_nothing(at: int) -> None:
    table = Table(1)
    table.open_table()
    assert table.deal_round()
    if at == shoe.LOADING:
        table._take()
        table.device.run_until(lambda: table.shoe_state == at)
    assert table.shoe_state == at
    table.machine.power_off()
    table.machine.take_exit()
    table.device.reboot()
    table.device.run_until_idle()
    assert table.shoe_state == shoe.UNPROVED
    assert table.device.controller.shoe.missing == 0


def test_a_card_that_people_overlook_is_found_when_the_jam_is_cleared() -> None:
    """The next deck was pushed onto it, and 52 were claimed of 53 cards."""
    table = Table(1, "stuck@deal:9")
    table.open_table()
    assert not table.deal_round()
    machine = table.machine
    machine.open_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    machine.loosen(hardware.SHOE_DOOR)
    machine.handed_out += machine.shoe + machine.exit_tray
    machine.shoe, machine.exit_tray = [], []
    machine.presence()
    machine.close_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    assert len(machine.deal_track.cards()) == 1
    table.device.command("clear_fault", fault("misfeed"))
    table.device.run_until_idle()
    assert table.faults()[-1] == ("exit", "card_stuck")
    table.recover()
    assert table.play_round()
    assert claims(table) == (True, 52)


def overlooked_and_stuck() -> Table:
    """A jam of the shoe was cleared; one card still sticks in the path, where no sensor sees it."""
    table = Table(1, "stuck@deal:9")
    table.open_table()
    assert not table.deal_round()
    machine = table.machine
    machine.open_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    machine.handed_out += machine.shoe + machine.exit_tray
    machine.shoe, machine.exit_tray = [], []
    machine.presence()
    machine.close_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    table.device.command("clear_fault", fault("misfeed"))
    table.device.run_until_idle()
    return table


def test_a_deck_that_is_pushed_onto_a_card_that_still_sticks_is_not_proved() -> None:
    """The roller does not move that card. 52 were claimed of 53 cards until the first one jammed there."""
    table = overlooked_and_stuck()
    assert (table.shoe_state, len(table.machine.deal_track.cards())) == (shoe.READY, 1)
    assert claims(table) == (False, 53)
    table.device.command("open_round", 2, table.device.controller.shoe.deck)
    table.device.command("close_bets", 2, 7)
    table.device.command("dispense_stack", 2, 1)
    table.device.run_until_idle()
    assert table.shoe_state == shoe.JAMMED
    assert [values[0] for values in table.named("round_voided")] == [1, 2]


def overlooked_after_a_void_round(*faults: str) -> Table:
    """A round was voided, and people took the cards out of the shoe, except for the one in the path."""
    table = Table(1, *faults)
    table.open_table()
    device, machine = table.device, table.machine
    device.command("open_round", 1, 1)
    device.command("close_bets", 1, 7)
    device.command("dispense_stack", 1, 1)
    table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
    table.take_stack()
    device.command("void_round", 1, void_reason("floor_order"), role="floor")
    machine.open_door(hardware.SHOE_DOOR)
    device.run_until(lambda: True)
    machine.handed_out += machine.shoe
    machine.shoe = []
    machine.presence()
    machine.close_door(hardware.SHOE_DOOR)
    device.run_until_idle()
    assert len(machine.deal_track.cards()) == 1
    return table


def test_no_deck_is_pushed_onto_a_card_that_people_overlooked_after_a_void_round() -> None:
    """No jam was cleared, so no roller turned. The other deck was pushed onto the card: 52 of 53 cards."""
    table = overlooked_after_a_void_round()
    assert table.faults() == [("exit", "card_stuck")]
    assert len(table.machine.store) == 52
    assert table.shuffler_state == shuffler.UNPROVED  # the deck that was not pushed is proved no more
    assert not table.device.view().proved(2)
    table.recover()
    assert table.play_round()
    assert claims(table) == (True, 52)


def test_a_card_that_sticks_after_a_void_round_leaves_the_next_deck_unproved() -> None:
    table = overlooked_after_a_void_round("stuck@deal:4")
    assert (table.shoe_state, claims(table)) == (shoe.READY, (False, 53))
    assert not table.deal_round()
    assert table.faults() == [("deal", "misfeed")]


def test_a_deck_is_not_pushed_if_a_covered_exit_would_hide_an_overlooked_card() -> None:
    table = Table(1)
    table.device.run_until_idle()
    look_in(table)
    table.feed(table.new_deck(hardware.RED))
    table.wait(lambda: table.shuffler_state == shuffler.STORING)
    table.machine.sensors.force(hardware.EXIT, 10_000_000)
    table.device.run_until_idle()
    assert table.faults() == [("pusher", "sensor_disagrees")]
    assert (len(table.machine.store), table.shuffler_state) == (52, shuffler.UNPROVED)


def test_a_path_that_people_had_access_to_is_remembered_over_a_power_cut() -> None:
    table = Table(1, "stuck@deal:9")
    table.feed(table.new_deck(hardware.RED))
    assert table.shuffled()
    table.device.run_until_idle()
    assert not table.deal_round()
    table.machine.open_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    table.machine.empty_by_hand(hardware.SHOE_DOOR)
    table.machine.close_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    table.device.command("clear_fault", fault("misfeed"))
    table.device.run_until_idle()
    assert table.shoe_state == shoe.EMPTY
    table.device.reboot()
    table.device.run_until_idle()
    table.feed(table.new_deck(hardware.BLUE))
    assert table.shuffled()
    table.device.run_until(lambda: table.shoe_state == shoe.READY)
    assert claims(table) == (False, 52)


def test_a_deck_is_proved_again_when_its_first_card_has_passed_the_cleared_path() -> None:
    table = Table(1, "stuck@deal:9")
    table.open_table()
    assert not table.deal_round()
    table.recover()
    deck_id = table.device.controller.shoe.deck
    assert table.shoe_state == shoe.READY
    assert claims(table) == (False, 52)
    table.device.command("open_round", 2, deck_id)
    table.device.command("close_bets", 2, 7)
    table.device.command("dispense_stack", 2, 1)
    table.device.run_until(lambda: table.shoe_state == shoe.STACK_WAITING)
    assert table.device.controller.whereabouts(deck_id)[0]


# -- a full exit tray, an overfull shoe ----------------------------------------------------------------


def test_a_card_that_finds_the_exit_tray_full_stops_the_shoe() -> None:
    """Cards lay beside the tray, where no sensor sees them; the next deck was called 52 nevertheless."""
    table = Table(1)
    table.open_table()
    table.device.command("open_round", 1, 1)
    table.device.command("close_bets", 1, 7)
    for stack in range(1, 8):
        table.device.command("dispense_stack", 1, stack)
        table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
        table.take_stack()
    table.device.command("end_round", 1)
    table.device.run_for(1_000_000)
    assert table.shoe_state == shoe.EJECTING
    table.machine.put_into_exit(new_deck(hardware.RED, table.random, 53))  # as many as find room
    table.device.run_for(3_000_000)
    assert len(table.machine.exit_tray) == 53
    assert table.faults() == [("exit", "double_feed")]
    assert table.named("round_voided") == [(1, void_reason("shoe_failed"))]
    assert not table.device.view().proved(1)
    table.recover()  # the deck of too many cards leaves the table
    assert table.play_round()
    assert claims(table) == (True, 52)


def test_no_more_cards_are_ejected_than_the_exit_tray_holds() -> None:
    """The roller went on, up to 418 cards; a tray for one deck holds 53."""
    table = Table(1)
    table.open_table()
    table.machine.shoe += new_deck(hardware.RED, table.random, 3)
    table.device.command("empty_machine", role="floor")
    table.device.run_for(9_000_000)
    assert table.faults() == [("exit_tray", "sensor_disagrees")]
    assert (len(table.machine.exit_tray), len(table.machine.deal_track.cards())) == (53, 1)
    assert not table.machine.level(hardware.EXIT)  # it was stopped before a card met the full tray


def test_a_deck_pushed_against_cards_that_no_sensor_sees_stops_the_pusher() -> None:
    table = Table(1)
    table.device.run_until_idle()
    strays = new_deck(hardware.BLUE, table.random, 5)
    table.machine.sensors.freeze(hardware.SHOE, 0)  # a dead sensor
    table.machine.shoe += strays
    table.feed(table.new_deck(hardware.RED))
    table.wait(lambda: table.shoe_state == shoe.JAMMED)
    assert table.faults() == [("pusher", "switch_missed")]
    assert (len(table.machine.store), table.machine.shoe) == (52, strays)
    assert not table.device.view().proved(1)
