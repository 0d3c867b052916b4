"""Decks: one or two, of different backs, in strict alternation, for so many hours."""

from sabot_firmware import decks
from sabot_firmware.decks import NO_LIMIT, DeckRegistry, is_far_ahead
from sabot_firmware.hardware import BLUE, COVER, RED

RULES = {
    "test_two_decks_have_different_backs_and_there_is_no_third": ("MD3 3.B",),
    "test_decks_alternate_round_by_round_void_or_not": ("MD3 3.B",),
    "test_one_deck_may_be_played_alone": ("MD3 3.A",),
    "test_hours_are_wall_time_from_the_opening": ("MD3 3.C",),
}

NOON = 1800000000
HOUR = 3600


def two():
    table = DeckRegistry()
    for deck_id, back in ((1, RED), (2, BLUE)):
        assert table.refuse_registering(deck_id, back) is None
        table.register(deck_id, back, NOON)
    return table


def test_two_decks_have_different_backs_and_there_is_no_third():
    table = DeckRegistry()
    table.register(1, RED, NOON)
    assert table.refuse_registering(2, RED) == decks.SAME_BACK
    assert table.refuse_registering(2, COVER) == decks.UNKNOWN_BACK
    table = two()
    table.remove(1)
    assert table.refuse_registering(3, RED) is None
    table.register(3, RED, NOON)
    assert table.refuse_registering(4, RED) in (decks.SAME_BACK, decks.TWO_ALREADY)


def test_a_removed_deck_never_returns():
    table = two()
    table.remove(1)
    assert table.refuse_registering(1, RED) == decks.USED_BEFORE
    assert table.refuse_turn(1, NOON) == decks.NO_SUCH_DECK
    assert table.refuse_using(1, NOON) == decks.NO_SUCH_DECK


def test_decks_alternate_round_by_round_void_or_not():
    table = two()
    for turn in range(10):
        mine, other = (1, 2) if turn % 2 == 0 else (2, 1)
        assert table.refuse_turn(mine, NOON) is None
        table.started(mine)
        assert table.refuse_turn(mine, NOON) == decks.NOT_ITS_TURN
        assert table.refuse_turn(other, NOON) is None


def test_a_missing_deck_is_waited_for_unless_the_floor_chooses_one():
    table = two()
    table.started(1)
    table.remove(2)
    assert table.refuse_turn(1, NOON) == decks.OTHER_MISSING
    table.one_deck = True
    assert table.refuse_turn(1, NOON) is None
    table.register(3, BLUE, NOON)  # two again: the choice is over
    table.started(1)
    assert table.refuse_turn(1, NOON) == decks.NOT_ITS_TURN


def test_one_deck_may_be_played_alone():
    table = DeckRegistry()
    table.one_deck = True
    table.register(1, RED, NOON)
    for _ in range(3):
        assert table.refuse_turn(1, NOON) is None
        table.started(1)


def test_hours_are_wall_time_from_the_opening():
    table = two()
    assert table.refuse_turn(1, NOON + 8 * HOUR - 1) is None
    assert table.refuse_turn(1, NOON + 8 * HOUR) == decks.PAST_ITS_HOURS
    assert table.refuse_using(1, NOON + 9 * HOUR) == decks.PAST_ITS_HOURS
    table.hours = 4  # from the hand: the new limit holds at once
    assert table.refuse_turn(1, NOON + 5 * HOUR) == decks.PAST_ITS_HOURS
    table.hours = NO_LIMIT
    assert table.refuse_turn(1, NOON + 5000 * HOUR) is None


def test_unknown_time_refuses():
    table = two()
    assert table.refuse_using(1, None) == decks.TIME_UNKNOWN
    assert table.refuse_turn(1, None) == decks.TIME_UNKNOWN


def test_warnings_fall_due_once():
    table = two()
    end = NOON + 8 * HOUR
    assert table.left_s(1, end - 4000) == 4000
    assert table.warning(4000, 3700) is None
    assert table.warning(3700, 3600) == 3600
    assert table.warning(3600, 3500) is None
    assert table.warning(4000, 100) == 300  # after a long pause: the most urgent one
    assert table.warning(100, -5) == 0


def test_a_clock_set_back_makes_no_deck_younger():
    table = two()
    assert table.left_s(1, NOON + 5 * HOUR) == 3 * HOUR
    assert table.left_s(1, NOON + 1 * HOUR) == 3 * HOUR
    assert table.left_s(1, NOON + 6 * HOUR) == 2 * HOUR


def test_an_age_stays_within_what_the_wire_and_the_record_can_say():
    table = two()
    assert table.left_s(1, 0xFFFFFFFF) == 8 * HOUR - 0x7FFFFFFF
    table.grow_older(0x7FFFFFFF)
    assert table.left_s(1, NOON) == 8 * HOUR - 0x7FFFFFFF
    assert [deck.aged_s for deck in table.in_use] == [0x7FFFFFFF, 0x7FFFFFFF]


def test_a_number_is_at_most_so_far_ahead():
    assert not is_far_ahead(0x7FFFFFFF, 0)
    assert is_far_ahead(0x80000000, 0)
    assert not is_far_ahead(5 + 4096, 5)
    assert is_far_ahead(6 + 4096, 5)
