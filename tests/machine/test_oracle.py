"""The oracle: each planted defect is found, an excuse excuses only its cards, its deck and its window."""

from collections.abc import Callable
from io import StringIO
from random import Random

import pytest
from rich.console import Console
from tests.machine.tables import Judged, Table

from sabot_firmware import hardware, shoe, shuffler
from sabot_firmware.decks import AUTOMATED_SHOE, CARD_BY_CARD, MANUAL_SHOE
from sabot_firmware.rounds import CARD_EXTRA, CORRECT, Round
from sabot_protocol.codec import enum_number
from sabot_simulators.chips import PowerCut
from sabot_simulators.mechanism.physical_cards import PhysicalCard, one_card
from sabot_simulators.oracle import UNSEEN, Oracle, WrongClaim
from sabot_simulators.seeded_defects import PLANTS, find

# Seeds with which a table among the first ones shows the defect; with seed 1 it may be the 300th.
SEEDS = {
    "hours-never-over": 7,
    "service-leaves-the-path": 59,
    "inspection-used-up": 129,
    "whole-with-one-more": 63,
    "purge-unblocks": 15,
    "hands-forgotten": 59,
    "last-card-forgotten": 81,
}


def quiet() -> Console:
    return Console(file=StringIO())


# -- what is right, and what is excused -----------------------------------------------------------------


def test_two_rounds_without_a_fault_are_right() -> None:
    table = Judged(1)
    for _ in range(2):
        assert table.play_round()
        table.oracle.every_card_in_one_place([card for cards in table.decks.values() for card in cards])
        table.oracle.ask()
    assert table.oracle.wrong == []
    assert table.oracle.claims > 100


def test_a_card_too_many_may_still_be_in_the_path() -> None:
    """As many as must came out, and one more had left the shoe: that right verdict was called wrong."""
    table = Judged(1, "extra_card@store:1", "stuck@deal:53")
    table.play_round()
    assert table.named("round_ended") == [(1, CARD_EXTRA, 31, 52)]
    assert table.unexcused() == []


def test_a_card_too_many_that_is_nowhere_is_a_wrong_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Round, "verdict", lambda *_: CARD_EXTRA)
    table = Judged(1)
    table.play_round()
    assert table.unexcused() == ["52 is too many"]


def excuse_of(table: Judged, name: str) -> WrongClaim:
    assert table.unexcused() == []
    return next(each for each in table.oracle.wrong if each.unseen == name)


def test_a_card_taken_behind_a_closed_door_excuses_by_its_name() -> None:
    table = Judged(2, "missing_card@shoe:60")
    table.play_round()
    assert table.play_round() is False
    wrong = excuse_of(table, "behind_a_closed_door")
    excuse = wrong.excuses[0]
    taken = table.machine.faults.happened[0]
    assert (excuse.cards, excuse.cause, excuse.from_us) == (taken.cards, str(taken.fault), taken.at_us)
    assert excuse.deck_id in table.decks


def test_cards_that_pass_the_exit_together_are_both_named() -> None:
    table = Judged(3, "aligned_double@shoe:5")
    table.play_round()
    both = table.machine.faults.happened[0].cards
    assert excuse_of(table, "aligned_at_the_exit").excuses[0].cards == both


def test_a_copy_in_the_place_of_a_card_is_composition() -> None:
    table = Judged(4, "missing_card@tray:110", "duplicate_card@tray:112")
    table.play_round()
    table.play_round()
    table.play_round()
    stranger = table.machine.faults.happened[1].cards
    assert excuse_of(table, "composition").excuses[0].cards == stranger


def test_composition_excuses_a_card_from_the_tray_and_none_from_elsewhere_in_the_machine() -> None:
    """A shuffle that was broken off leaves cards in the tray for the next one: they were laid in before."""
    table = Judged(4)
    table.play_round()
    oracle, now_us = table.oracle, table.machine.agenda.now_us
    in_tray, later, inside = (PhysicalCard(7, hardware.RED, 300) for _ in range(3))
    in_tray.laid_us = inside.laid_us = now_us - 1_000_000
    later.laid_us = now_us + 1
    table.machine.tray.append(in_tray)
    oracle.report("shuffler_changed", (shuffler.FEEDING, 1))
    excuse = oracle._laid_in(1, in_tray)
    assert excuse is not None
    assert (excuse.name, excuse.cards, excuse.from_us) == ("composition", (in_tray,), in_tray.laid_us)
    assert oracle._laid_in(1, later) is not None
    assert oracle._laid_in(1, inside) is None


def test_a_card_laid_onto_a_stack_excuses_what_lies_in_the_tray_and_nothing_after_it() -> None:
    """On the old watch one such hand excused every later wrong claim."""
    table = Judged(5, "hand_in_exit@exit_tray:6")
    table.play_round()
    assert excuse_of(table, "laid_onto_a_stack").what == "3 in the exit tray"
    before = len(table.oracle.wrong)
    table.machine.shoe.insert(0, one_card(hardware.RED, Random(1)))  # a stray that no fault has brought
    table.play_round()
    assert [each for each in table.oracle.wrong[before:] if each.unseen is None]


# -- what is wrong --------------------------------------------------------------------------------------


def a_stray(table: Judged) -> None:
    table.machine.shoe.append(one_card(hardware.BLUE, Random(1)))


def one_taken(table: Judged) -> None:
    table.machine.removed.append(table.machine.shoe.pop())


def exchanged(table: Judged) -> None:
    shoe = table.machine.shoe
    table.machine.removed.append(shoe[30])
    shoe[30] = one_card(shoe[30].back, Random(1))


def swapped(table: Judged) -> None:
    shoe = table.machine.shoe
    shoe[3], shoe[40] = shoe[40], shoe[3]


@pytest.mark.parametrize("happens", [a_stray, one_taken, exchanged, swapped])
def test_what_no_fault_explains_is_wrong(happens: Callable[[Judged], None]) -> None:
    table = Judged(6)
    happens(table)
    table.play_round()
    assert table.unexcused()


def test_a_fault_of_another_card_excuses_nothing() -> None:
    table = Judged(7, "missing_card@shoe:60")
    one_taken(table)
    table.play_round()
    assert table.unexcused()


def test_a_card_in_two_places_or_in_none_is_found() -> None:
    table = Judged(8)
    held: list[PhysicalCard] = []
    table.oracle.every_card_in_one_place(held)
    table.oracle.every_card_in_one_place(table.machine.shoe[:1])
    table.machine.shoe.pop()
    table.oracle.every_card_in_one_place(held)
    assert table.unexcused() == ["no card is in two places", "no card is lost"]


def test_every_excuse_says_what_it_excuses() -> None:
    for unseen in UNSEEN.values():
        assert all((unseen.means, unseen.excuses, unseen.names, unseen.window))


# -- planted defects ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_defect_is_found(name: str) -> None:
    found = find(name, 400, SEEDS.get(name, 1), quiet())
    assert found.has(PLANTS[name][1])


def test_a_deck_on_its_way_out_is_not_proved() -> None:
    """A deck whose round was voided was called proved, with no card anywhere, while it was ejected."""
    table = Judged(9)
    view = table.device.view()
    round_id, deck_id = view.last_round + 1, view.shoe_deck
    table.device.command("open_round", round_id, deck_id)
    table.device.command("void_round", round_id, enum_number("VoidReason", "floor_order"), role="floor")
    table.device.command("empty_machine", role="floor")
    assert not table.device.view().proved(deck_id)
    assert table.unexcused() == []


def test_a_card_past_a_dead_exit_sensor_is_named_and_the_round_is_not_called_correct() -> None:
    table = Judged(1, "dead_sensor@exit:52")
    table.play_round()
    excuse = excuse_of(table, "past_a_dead_sensor").excuses[0]
    assert len(excuse.cards) == 1
    assert excuse.cards[0] not in table.machine.truth()["shoe"]
    assert CORRECT not in [values[1] for values in table.named("round_ended")]


# -- what is not wrong ----------------------------------------------------------------------------------


def other_method(seed: int, method: int) -> tuple[Table, Oracle]:
    table = Table(seed)
    oracle = Oracle(table.device)
    table.device.run_until_idle()
    table.device.command("set_game", "another", method, 1, 3, 8, role="floor")
    return table, oracle


def delivered(table: Table, back: int) -> int:
    """A deck that was shuffled and delivered, in the dealer's hands; its number."""
    deck_id = table.shuffle(back=back)
    table.device.command("deliver_deck", deck_id)
    table.wait(lambda: table.shoe_state == shoe.STUB_WAITING)
    table._take()
    table.collect()
    return deck_id


def test_a_shoe_that_is_loaded_by_hand_begins_anew() -> None:
    """The cards that were delivered were counted as dealt from it: 104 of 52."""
    table, oracle = other_method(1, CARD_BY_CARD)
    deck_id = delivered(table, hardware.RED)
    table.machine.open_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    cards, table.decks[deck_id] = table.decks[deck_id], []
    table.machine.load_shoe(cards)
    table.machine.close_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    table.device.command("load_shoe", deck_id, role="floor")
    table.device.command("end_shoe", deck_id)
    table.wait(lambda: table.shoe_state == shoe.STUB_WAITING)
    assert table.named("shoe_ended") == [(deck_id, 52, 52)]
    assert oracle.wrong == []


def test_a_delivery_uses_the_decks_turn() -> None:
    """The deck that was dealt before the other one was delivered was said to be out of turn."""
    table = Judged(2)
    assert table.play_round()  # from deck 1; deck 2 is in the shoe now
    table.device.command("empty_machine", role="floor")
    table._wait_emptied()
    table.collect()
    table.device.command("set_game", "another", MANUAL_SHOE, 1, 3, 8, role="floor")
    table.feed(2)
    assert table.shuffled()
    table.device.command("deliver_deck", 2)
    table.wait(lambda: table.shoe_state == shoe.STUB_WAITING)
    table._take()
    table.collect()
    table.device.command("set_game", "Three Card Poker", AUTOMATED_SHOE, 1, 3, 8, role="floor")
    table.recover()
    assert table.play_round()
    assert [values[0] for values in table.named("round_ended")] == [1, 2]
    assert table.unexcused() == []


# -- the end of a round that was saved and not reported -------------------------------------------------


def dealt_or_voided(table: Judged, name: str) -> None:
    """A round up to the report of this name."""
    if name == "round_ended":
        table.deal_round()
    else:
        table.device.command("open_round", 1, 1)
        table.device.command("void_round", 1, enum_number("VoidReason", "floor_order"), role="floor")


def cut_behind_the_record(name: str = "round_ended", count: int = 52) -> Judged:
    """A table whose power failed when the end of a round was saved, and before it was reported."""
    table = Judged(1)
    controller = table.device.controller
    report = controller.report

    def cut(reported: str, *values: object) -> None:
        if reported == name:
            controller.persistent.count = controller.persistent.count and count
            controller.persistent.save()
            raise PowerCut
        report(reported, *values)

    controller.report = cut
    with pytest.raises(PowerCut):
        dealt_or_voided(table, name)
    controller.report = report
    table.machine.power_off()
    table.device.reboot()
    table.device.run_until_idle()
    assert (table.named("round_ended"), table.named("round_voided")) == ([], [])
    return table


def test_an_end_that_was_saved_and_not_reported_is_judged_when_a_host_asks() -> None:
    """It was called wrong, because no report had told it."""
    table = cut_behind_the_record()
    claims = table.oracle.claims
    table.oracle.ask()
    table.oracle.ask()
    assert table.unexcused() == []
    assert table.oracle.claims > claims + 12  # by its cards, like an end that was reported


def test_a_void_round_that_was_saved_and_not_reported_is_told_to_a_host_that_asks() -> None:
    table = cut_behind_the_record("round_voided")
    assert table.device.command("last_round")[3]
    table.oracle.ask()
    assert table.unexcused() == []


def test_an_end_on_record_that_the_cards_contradict_is_wrong() -> None:
    table = cut_behind_the_record(count=51)
    table.oracle.ask()
    assert table.unexcused() == ["a stub of 30", "a round of 51", "a correct round of 51"]


def test_an_end_that_was_reported_must_be_the_one_on_record() -> None:
    table = Judged(1)
    assert table.deal_round()
    table.machine.power_off()
    table.device.reboot()
    table.device.run_until_idle()
    table.device.controller.persistent.count = 51
    table.oracle.ask()
    assert table.unexcused() == ["the host is told the same verdict"]


def test_an_end_on_record_without_a_cut_is_wrong() -> None:
    table = Judged(1)
    table.device.command("open_round", 1, 1)
    table.device.controller.persistent.verdict = CORRECT
    table.oracle.ask()
    assert table.unexcused() == ["the host is told the same verdict"]


# -- the excuse of a dead exit sensor -------------------------------------------------------------------


def past_dead(table: Judged, uncounted: int = 1) -> bool:
    deck = table.oracle._decks[1]
    return table.oracle._past_dead(deck.out, uncounted, 1) is not None


def test_a_dead_exit_sensor_excuses_the_shoes_last_card_and_no_other() -> None:
    table = Judged(1, "dead_sensor@exit:52")
    table.deal_round()
    assert past_dead(table)
    assert not past_dead(table, 2)
    assert not past_dead(table, -1)
    table.machine.shoe.append(one_card(hardware.RED, Random(1)))
    assert not past_dead(table)  # it was not the last one
    table.machine.shoe.clear()
    table.machine.repair()
    assert not past_dead(table)  # the window is over


def test_a_sensor_that_dies_after_the_last_card_excuses_nothing() -> None:
    table = Judged(1)
    table.deal_round()
    table.machine.strike("dead_sensor@exit+0")
    table.device.run_for(1_000)
    assert table.machine.sensors.is_dead(hardware.EXIT)
    table.machine.landed_us -= 1
    assert not past_dead(table)


def test_a_chattering_exit_sensor_excuses_nothing() -> None:
    table = Judged(1, "dead_sensor@exit:52")
    table.deal_round()
    table.machine.sensors.mend()
    table.machine.sensors.chatter(hardware.EXIT)
    assert table.machine.sensors.is_upset(hardware.EXIT)
    assert not past_dead(table)
