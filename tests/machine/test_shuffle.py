"""The shuffler half on the simulated mechanism: the order is the drawn one, the count the real one."""

from random import Random

import pytest
from tests.machine.tables import BLUE, RED, Table

from sabot_firmware import hardware, machine_constants, shoe, shuffler
from sabot_protocol.codec import enum_number
from sabot_simulators.mechanism.physical_cards import PhysicalCard, cover_card, new_deck

pytestmark = pytest.mark.both_kinds


def red(seed: int, cards: int = 52) -> list[PhysicalCard]:
    return new_deck(RED, Random(seed), cards)


def intended(deck: list[PhysicalCard], draws: list[int]) -> list[PhysicalCard]:
    order: list[PhysicalCard] = []
    for card, slot in zip(deck, draws, strict=True):
        order.insert(slot, card)
    return order


@pytest.mark.parametrize("seed", range(20))
def test_the_physical_order_is_the_drawn_one_and_52_are_verified(seed: int) -> None:
    table, deck = Table(seed), red(seed)
    table.shuffle(list(deck))
    assert table.faults() == []
    table.device.run_until(lambda: table.shoe_state == shoe.READY)
    assert table.machine.shoe == intended(deck, table.draws)
    assert [values[2:] for values in table.named("deck_counted")] == [(52, 52)]


@pytest.mark.rule("MD3 5.B")
@pytest.mark.parametrize("cards", [1, 2, 51, 53])
def test_another_number_of_cards_is_counted_as_what_it_is_and_the_deck_leaves(cards: int) -> None:
    table = Table(3)
    deck_id = table.shuffle(red(3, cards))
    assert [values[2] for values in table.named("deck_counted")] == [cards] == [len(table.machine.stack())]
    assert table.faults() == [("chamber", "count_wrong")]
    assert not table.device.view().has_deck(deck_id)
    assert [values[0] for values in table.named("deck_removed")] == [deck_id]
    assert table.refused("shuffle", deck_id) == "wrong_state"


@pytest.mark.rule("MD3 5.B")
def test_a_card_that_comes_past_a_dead_entry_sensor_is_found_at_the_insertion() -> None:
    """52 of 53 cards were counted and called a deck; the last one lay in the path of a half called empty."""
    table = Table(3, "dead_sensor@entry:53")
    deck_id = table.shuffle(red(3, 53))
    assert len(table.machine.stack()) == 52
    assert table.named("deck_counted") == []
    assert table.faults() == [("entry", "sensor_disagrees")]
    assert not table.device.controller.whereabouts(deck_id)[0]


def test_more_cards_than_fit_are_stopped() -> None:
    table = Table(3)
    table.device.run_until_idle()
    deck_id = table.new_deck(RED)
    table.decks[deck_id] = red(3, 53)
    table.feed(deck_id)
    table.device.run_for(5_000_000)
    table.machine.load(red(4, 7))  # there is room for them by now
    table.shuffled()
    assert table.faults() == [("entry", "count_wrong")]
    assert table.named("fault_raised")[0][2] == 54  # the first card too many, and none after it
    assert table.named("deck_counted") == []
    assert len(table.machine.stack()) <= machine_constants.DECK_CAPACITY


def test_every_card_is_in_one_place_at_every_moment() -> None:
    table = Table(5)
    deck = red(5)

    def look() -> None:
        held = [card for cards in table.machine.truth().values() for card in cards]
        if held:
            assert len(held) == 52
            assert set(map(id, held)) == set(map(id, deck))

    table.device.on_step = look
    table.shuffle(list(deck))


def test_nothing_is_claimed_before_every_way_of_counting_agrees() -> None:
    table = Table(6)

    def look() -> None:
        if table.shuffler_state == shuffler.FEEDING:
            assert table.named("deck_counted") == []
            assert not table.device.view().proved(1)

    table.device.on_step = look
    table.shuffle()
    assert len(table.named("deck_counted")) == 1


def test_the_same_seed_gives_the_same_run() -> None:
    tables = [Table(7), Table(7)]
    for table in tables:
        table.open_table()
    assert tables[0].machine.agenda.now_us == tables[1].machine.agenda.now_us
    assert [card.name for card in tables[0].machine.shoe] == [card.name for card in tables[1].machine.shoe]


@pytest.mark.parametrize(
    ("fault", "place"),
    [("stuck@entry:12", "entry"), ("stuck@insertion:12", "insertion"), ("motor_stall@feed:12", "feed")],
)
def test_a_stuck_card_is_found_where_it_is_and_the_rollers_stand(fault: str, place: str) -> None:
    table = Table(8, fault)
    table.shuffle()
    assert [where for where, _ in table.faults()] == [place]
    assert table.named("deck_counted") == []
    assert table.machine._rollers[hardware.FEED].direction == 0
    assert table.machine._rollers[hardware.INSERT].direction == 0


@pytest.mark.parametrize("fault", ["stuck@entry:12", "stuck@insertion:12"])
def test_a_card_is_tried_again_three_times_and_no_more(fault: str) -> None:
    table = Table(8, fault)
    table.shuffle()
    assert len(table.named("retried")) == shuffler.MAX_RETRIES == 3


def test_a_grip_off_by_one_is_seen() -> None:
    for seed in range(6):
        table = Table(seed, "grip_slip@chamber:30")
        table.shuffle()
        assert table.faults() == [("chamber", "grip_mismatch")]
        assert table.named("deck_counted") == []


@pytest.mark.parametrize("kind", ["double_feed", "aligned_double"])
def test_two_cards_together_are_not_one(kind: str) -> None:
    for seed in range(5):
        table = Table(seed, f"{kind}@tray:22")
        table.shuffle()
        assert len(table.faults()) == 1
        assert table.named("deck_counted") == []


def test_a_card_that_catches_up_with_one_that_slips_is_not_counted_with_it() -> None:
    """Both covered entry and insertion as one, and one stuck there: 52 were counted of 53 cards."""
    table = Table(4, "slip@tray:26", "stuck@chamber:26")
    table.shuffle(red(4, 53))
    assert len(table.named("retried")) == 2
    assert table.named("deck_counted") == []
    assert table.faults() == [("chamber", "height_mismatch")]


@pytest.mark.rule("MD3 3.B")
@pytest.mark.parametrize("wrong", ["other deck", "face up", "cover"])
def test_a_card_that_does_not_belong_is_found_at_the_entry(wrong: str) -> None:
    table, deck = Table(11), red(11)
    if wrong == "face up":
        deck[20].face_up = True
    elif wrong == "cover":
        deck[20] = cover_card(table.random)
    else:
        deck[20] = new_deck(BLUE, table.random)[20]
    table.shuffle(deck)
    causes = {"other deck": "wrong_deck", "face up": "face_up_card", "cover": "foreign_card"}
    assert table.faults() == [("entry", causes[wrong])]
    assert table.machine.count("tray") == 31


@pytest.mark.rule("MD3 5.B")
@pytest.mark.parametrize(("extra", "place"), [(1, "chamber"), (2, "entry"), (8, "entry")])
def test_no_card_enters_that_the_chamber_has_no_room_for(extra: int, place: str) -> None:
    """One card too many is counted in the chamber. The next one stops the half at the entry."""
    table = Table(13)
    table.device.run_until_idle()
    table.feed(table.new_deck(RED))
    table.device.run_for(5_000_000)
    table.machine.load(red(14)[:extra])  # a hand adds cards to those in the tray
    assert not table.shuffled()
    assert table.faults() == [(place, "count_wrong")]
    assert len(table.machine.stack()) <= 53
    assert table.machine.count("tray") == max(extra - 2, 0)
    assert table.named("deck_removed") == [(1, enum_number("RemoveReason", "wrong_count"))]


@pytest.mark.parametrize(
    "fault", ["misfeed@tray:20", "snag@entry:20", "snag@insertion:20", "snag@insertion:52"]
)
def test_a_card_that_hesitates_is_tried_again_and_the_order_is_still_the_drawn_one(fault: str) -> None:
    for seed in range(5):
        table, deck = Table(seed, fault), red(seed)
        table.shuffle(list(deck))
        table.device.run_until(lambda table=table: table.shoe_state == shoe.READY)  # type: ignore[misc]
        assert table.faults() == []
        assert len(table.named("retried")) > 0
        assert len(table.draws) == 52  # nothing was drawn twice
        assert table.machine.shoe == intended(deck, table.draws)


@pytest.mark.rule("MD3 3.B")
def test_a_deck_is_shuffled_while_the_other_lies_on_the_shelf_and_waits_for_it() -> None:
    table = Table(12)
    table.open_table()
    device = table.device
    device.command("remove_deck", 1, 4, role="floor")  # another one takes its place
    third = table.new_deck(RED)
    table.feed(third)
    table.wait(lambda: table.shuffler_state == shuffler.HOLDING)
    stack = list(table.machine.stack())
    assert len(stack) == 52
    assert device.view().stored_deck == 2
    device.run_for(5_000_000)
    assert table.machine.stack() == stack  # it waits
    assert table.refused("shuffle", third) == "wrong_state"


def test_a_deck_that_is_gone_from_the_shelf_is_not_proved_to_lie_there() -> None:
    table = Table(12)
    table.open_table()
    assert table.device.view().proved(2)
    table.machine.handed_out += table.machine.store
    table.machine.store = []
    table.machine.presence()
    table.device.run_until(lambda: True)
    assert table.faults() == [("store", "sensor_disagrees")]
    assert not table.device.view().proved(2)
    assert table.device.view().stored_deck == 0


def test_a_stack_is_never_lowered_onto_cards_that_nobody_stored() -> None:
    table = Table(12, "dead_sensor@store")
    table.shuffle()
    assert table.named("deck_counted")[0][2] == 52  # in the chamber, where it was counted
    assert [cause for _, cause in table.faults()] == ["sensor_disagrees"]
