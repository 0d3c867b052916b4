"""The excuse ``overlooked``: for the card that a person overlooked at an act, until a count would find it."""

from dataclasses import replace
from random import Random

import pytest
from tests.machine.tables import Judged

from sabot_firmware import hardware, machine_constants, shoe, shuffler
from sabot_protocol.codec import enum_number
from sabot_simulators.mechanism.faults import STUCK_AT_UM
from sabot_simulators.mechanism.moving_parts import SHOE, SHUFFLER
from sabot_simulators.mechanism.physical_cards import PhysicalCard, one_card
from sabot_simulators.seeded_defects import PLANTS


def hands_in_the_shoe(table: Judged, overlooked_by: str | None) -> None:
    """Somebody opens the shoe's door, takes out all but what no sensor shows, and closes it.

    Only a person who is named has recorded what was overlooked.
    """
    machine = table.machine
    machine.open_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    if overlooked_by is None:
        machine.handed_out += machine.shoe + machine.exit_tray
        machine.shoe, machine.exit_tray = [], []
        machine.presence()
    else:
        machine.empty_by_hand(hardware.SHOE_DOOR, overlooked_by)
    machine.close_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)


def jam_cleared(overlooked_by: str | None) -> Judged:
    """A jam of the shoe was cleared; one card still sticks in the path, where no sensor shows it."""
    table = Judged(1, "stuck@deal:9")
    assert not table.deal_round()
    hands_in_the_shoe(table, overlooked_by)
    table.device.command("clear_fault", enum_number("Fault", "misfeed"))
    table.device.run_until_idle()
    assert len(table.machine.deal_track.cards()) == 1
    return table


def path_card(table: Judged) -> PhysicalCard:
    return table.machine.deal_track.cards()[0]


def overlooked(table: Judged, half: int = SHOE) -> bool:
    """Whether the card in the path is excused now."""
    return table.oracle._overlooked.excuses(half, [path_card(table)]) != [None]


def test_a_card_that_a_person_overlooked_is_excused_with_person_act_and_deck() -> None:
    table = jam_cleared("floor")
    assert table.wrong() == [("the shoe half is empty", "overlooked")]
    excuse = table.oracle.wrong[0].excuses[0]
    assert excuse.cards == (path_card(table),)
    assert (excuse.deck_id, excuse.cause) == (1, "floor took the cards out")
    assert excuse.from_us == table.machine.opened_us[SHOE] < table.oracle.wrong[0].at_us


def test_an_opened_door_excuses_nothing_if_nobody_recorded_what_was_overlooked() -> None:
    assert jam_cleared(None).unexcused() == ["the shoe half is empty"]


def test_an_overlooked_card_is_excused_for_its_half_and_no_other_card_is() -> None:
    table = jam_cleared("floor")
    assert overlooked(table)
    assert not overlooked(table, SHUFFLER)
    act = table.machine.overlooked[0]
    table.machine.overlooked[0] = replace(act, half=SHUFFLER)
    assert not overlooked(table)
    table.machine.overlooked[0] = replace(act, card=one_card(act.card.back, Random(1)))
    assert not overlooked(table)


def test_an_overlooked_card_that_a_sensor_shows_is_not_excused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = jam_cleared("floor")
    assert overlooked(table)
    monkeypatch.setattr(table.machine.deal_track, "unseen", lambda dead: [])
    assert not overlooked(table)


def test_an_overlooked_card_that_moved_is_excused_only_if_it_sticks_or_the_exits_sensor_is_dead() -> None:
    table = jam_cleared("floor")
    machine = table.machine
    act = machine.overlooked[0]
    machine.overlooked[0] = replace(act, place_um=act.place_um - 2_000)
    assert overlooked(table)  # the roller moved it to where it sticks
    machine.deal_track.bodies[0].stuck_at_um = act.place_um + 2_000
    assert not overlooked(table)  # it sticks elsewhere
    machine.deal_track.bodies[0].stuck_at_um = None
    assert not overlooked(table)
    machine.sensors.freeze(hardware.EXIT)
    assert overlooked(table)
    machine.sensors.mend()
    machine.overlooked[0] = act
    assert overlooked(table)  # where it lay


def test_an_overlooked_card_is_excused_until_a_card_passes_the_exit() -> None:
    table = jam_cleared("floor")
    act_us = table.machine.overlooked[0].at_us
    table.machine.landed_us = act_us
    assert overlooked(table)
    table.machine.landed_us = act_us + 1
    assert not overlooked(table)


def test_a_card_overlooked_on_the_way_to_the_chamber_is_excused_until_the_next_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(STUCK_AT_UM, "entry", 10_000)  # before the entry's sensor
    table = Judged(1, "stuck@entry:110")
    table.play_round()
    assert table.shuffler_state == shuffler.JAMMED
    machine = table.machine
    machine.take_tray()
    machine.open_door(hardware.SHUFFLER_DOOR)
    table.device.run_until(lambda: True)
    machine.empty_by_hand(hardware.SHUFFLER_DOOR, "floor")
    machine.close_door(hardware.SHUFFLER_DOOR)
    table.device.run_until(lambda: True)
    table.device.command("clear_fault", table.device.view().shuffler_fault)
    table.device.run_until_idle()
    assert ("the shuffler half is empty", "overlooked") in table.wrong()
    assert table.unexcused() == []
    judged, cards = table.oracle._overlooked, machine.feed_track.cards()
    assert None not in judged.excuses(SHUFFLER, cards)
    machine.landed_us = machine.agenda.now_us  # the shoe's cards find nothing there
    assert None not in judged.excuses(SHUFFLER, cards)
    judged.chamber_counted(0)
    assert judged.excuses(SHUFFLER, cards) == [None] * len(cards)
    beyond = replace(machine.overlooked[0], place_um=machine_constants.INSERTION_UM)
    assert not judged._would_be_found(beyond)  # cards are counted at that sensor
    assert judged._would_be_found(replace(beyond, place_um=beyond.place_um - 1))


def short(overlooked_by: str | None = "floor") -> Judged:
    """A table whose deck came out short: the shoe is blocked, and a person overlooked the card."""
    table = Judged(1, "stuck@deal:52")
    assert table.deal_round()
    table._take()
    table.collect()
    table.device.run_until_idle()
    hands_in_the_shoe(table, overlooked_by)
    assert table.shoe_state == shoe.BLOCKED
    return table


def test_a_card_that_the_device_knows_to_be_missing_is_not_excused() -> None:
    table = short()
    assert [each.card for each in table.machine.overlooked] == [path_card(table)]
    assert not overlooked(table)
    with PLANTS["purge-unblocks"][0]():
        table.device.command("purge", role="floor")
        table.device.run_until_idle()
    assert table.unexcused() == ["the shoe half is empty"]


def test_a_purge_that_brings_nothing_claims_nothing() -> None:
    table = short()
    table.device.command("purge", role="floor")
    table.device.run_until_idle()
    assert (table.shoe_state, table.unexcused()) == (shoe.BLOCKED, [])


def test_a_short_round_tells_that_the_device_knows_before_the_shoe_is_blocked() -> None:
    table = Judged(1, "stuck@deal:52")
    assert table.deal_round()
    assert table.shoe_state == shoe.STUB_WAITING
    table.machine.overlook(SHOE, "floor", "looked in")
    assert not overlooked(table)


def test_a_blocked_shoe_tells_that_the_device_knows() -> None:
    table = jam_cleared("floor")
    assert overlooked(table)
    table.oracle.report("shoe_changed", (shoe.BLOCKED, 0, 0))
    assert not overlooked(table)


def test_a_person_who_inspects_the_path_takes_a_missing_card_over() -> None:
    table = short()
    table._inspect()
    table.device.run_until_idle()
    assert ("the shoe half is empty", "overlooked") in table.wrong()
    assert table.unexcused() == []
    assert table.oracle.wrong[-1].excuses[0].cause == "floor inspected the path"


def test_an_inspection_excuses_nothing_if_nobody_recorded_what_was_overlooked() -> None:
    table = short(None)
    table.device.command("path_inspected", role="floor")
    assert table.unexcused() == ["the shoe half is empty"]


def test_a_missing_card_is_known_until_its_own_deck_was_counted_whole_or_the_memory_is_lost() -> None:
    table = short()
    judged = table.oracle._overlooked
    table.oracle.report("deck_counted", (1, 9, 51, 52))
    judged.chamber_counted(2)
    assert not overlooked(table)
    judged.chamber_counted(1)
    assert overlooked(table)
    judged.missed(1)
    assert not overlooked(table)
    table.oracle.report("fault_raised", (enum_number("Fault", "memory_damaged"), 0, 0))
    assert overlooked(table)


def leave_and_come_back(table: Judged) -> None:
    """The card is out of the path when the shoe reports a state, and in it again afterwards."""
    bodies, table.machine.deal_track.bodies = table.machine.deal_track.bodies, []
    table.oracle.report("shoe_changed", (shoe.DOOR_OPEN, 0, 0))
    table.machine.deal_track.bodies = bodies


def test_a_card_that_left_the_path_is_not_known_to_be_missing_there() -> None:
    table = short()
    leave_and_come_back(table)
    assert overlooked(table)


def replaced() -> Judged:
    """A deck that came out short is fed again with another card in the place of the one in the path."""
    table = Judged(1, "stuck@deal:52")
    assert table.deal_round()
    table._take()
    table.collect()
    table.device.run_until_idle()
    table.decks[1].append(one_card(hardware.RED, Random(1)))
    table.feed(1)
    table.wait(lambda: table.shoe_state == shoe.READY)
    return table


def test_a_deck_counted_whole_with_another_card_is_composition_and_the_next_one_is_not_proved() -> None:
    """The next deck was pushed onto the card, and 52 were proved where 53 lay."""
    table = replaced()
    assert len(table.machine.deal_track.cards()) + len(table.machine.shoe) == 53
    assert not table.device.view().proved(2)
    assert table.device.controller.persistent.cleared  # also after a power cut
    assert table.unexcused() == []
    excuse = next(each for each in table.oracle.wrong if each.what == "the shoe half is empty").excuses[0]
    fed_again = table.machine.stack() + table.machine.store
    stranger = next(card for card in fed_again if card.pack != path_card(table).pack)
    assert (excuse.name, excuse.deck_id, excuse.cards) == ("composition", 1, (path_card(table), stranger))


def test_only_a_card_that_was_missing_is_replaced_and_only_by_a_card_that_was_laid_in() -> None:
    table = replaced()
    oracle, card = table.oracle, path_card(table)
    assert oracle._replaced(card) is not None
    assert oracle._replaced(table.machine.shoe[0]) is None
    strangers, oracle._decks[1].strangers = oracle._decks[1].strangers, {}
    assert oracle._replaced(card) is None
    oracle._decks[1].strangers = strangers
    assert oracle._replaced(card) is not None
    leave_and_come_back(table)
    assert oracle._replaced(card) is None


def test_a_card_that_is_missing_again_was_not_replaced() -> None:
    table = replaced()
    table.oracle._overlooked.missed(1)
    assert table.oracle._replaced(path_card(table)) is None


def test_a_card_that_lay_ahead_of_an_overlooked_one_would_not_find_it() -> None:
    table = jam_cleared("floor")
    machine = table.machine
    ahead, after = one_card(hardware.RED, Random(1)), one_card(hardware.RED, Random(2))
    machine.overlooked[0] = replace(machine.overlooked[0], path=(ahead, path_card(table)))
    machine.landed_us = machine.overlooked[0].at_us + 1
    machine.landed.append((ahead,))
    table.oracle._take_landed()
    assert overlooked(table)
    machine.landed += [(ahead,), (after,)]
    table.oracle._take_landed()
    assert not overlooked(table)
