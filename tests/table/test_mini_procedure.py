"""A table of mini baccarat: shoes, cuts, third cards, the last hand, and everything that goes wrong."""

import pytest
from tests.table.croupier import DEALER, FLOOR, HOUR, PLAYER, Croupier
from tests.table.operators import changed, with_royal_9
from tests.table.outcomes import coup

from sabot_table.cards import card, cards
from sabot_table.errors import ImpossibleCards
from sabot_table.procedure import TableRole
from sabot_table.procedure.mini_procedure import result
from sabot_table.procedure.vocabulary import DeviceUnit
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import load
from sabot_table.settlement import CardSource, WagerOutcome

MINI, SIX = "md-mini-baccarat", "baccarat-six-deck"


# -- opening, cutting, loading ---------------------------------------------------------------------


@pytest.mark.rule("MDM 4.A")
@pytest.mark.rule("MDM 4.B")
@pytest.mark.rule("MDM 4.C")
@pytest.mark.rule("MDM 4.D")
@pytest.mark.rule("BAC house")
def test_batches_for_a_shuffler_are_spread_and_stacked_without_a_wash_others_are_washed() -> None:
    table = Croupier(MINI)
    table.do("open_table", FLOOR)
    table.do("receive_pack", FLOOR, 1, "red")
    with table.refused("MDM 4.B"):
        table.do("spread", DEALER, 1)
    with table.refused("MDM 4.A"):
        table.do("verify", FLOOR, 1)
    table.do("inspect", DEALER, 1)
    table.do("verify", FLOOR, 1)
    table.do("spread", DEALER, 1)
    table.do("stack", DEALER, 1)
    by_hand = Croupier(SIX)
    by_hand.do("open_table", FLOOR)
    by_hand.do("receive_pack", FLOOR, 1, "red")
    for action, role in (("inspect", DEALER), ("verify", FLOOR), ("spread", DEALER)):
        by_hand.do(action, role, 1)
    with by_hand.refused("BAC house"):
        by_hand.do("stack", DEALER, 1)
    broken = Croupier(MINI)
    broken.do("open_table", FLOOR)
    broken.device("unit_failed", DeviceUnit.SHUFFLER)
    broken.do("receive_pack", FLOOR, 1, "red")
    for action, role in (("inspect", DEALER), ("verify", FLOOR), ("spread", DEALER)):
        broken.do(action, role, 1)
    with broken.refused("MDM 4.C"):
        broken.do("stack", DEALER, 1)


@pytest.mark.rule("MDM 4.E")
@pytest.mark.rule("MDM 5.A")
def test_prepared_cards_skip_the_opening_but_not_the_cut() -> None:
    table = Croupier(MINI)
    table.do("open_table", FLOOR)
    table.do("receive_pack", FLOOR, 1, "red")
    with table.refused("MDM 5.A"):
        table.do("start_shuffle", DEALER, 1, machine=True)
    table.do("accept_prepared", FLOOR, 1)
    with table.refused("MDM 5.B", "not cut"):
        table.do("load", DEALER, 1)
    table.do("cut", DEALER, 1, 200)


@pytest.mark.rule("MDM 5")
@pytest.mark.rule("MDM 5.B")
def test_the_cut_is_offered_from_the_highest_seat_clockwise_then_made_by_the_dealer() -> None:
    table = Croupier(MINI).open(2, seats=(2, 9, 5))
    table.machine_shuffle(1)  # machine-shuffled or not: every shoe is cut
    assert table.procedure.packs.cutters(table.table.pack(1)) == [9, 5, 2]
    with table.refused("MDM 5.B", "offered to seat 9"):
        table.do("cut", PLAYER, 1, 100, seat=2)
    with table.refused("MDM 5.B", "offered to seat 9"):
        table.do("cut", DEALER, 1, 100)
    table.do("decline_cut", PLAYER, 1, 9)
    with table.refused("MDM 5.B", "offered to seat 5"):
        table.do("decline_cut", PLAYER, 1, 9)
    table.do("decline_cut", PLAYER, 1, 5)
    table.do("decline_cut", PLAYER, 1, 2)
    table.do("cut", DEALER, 1, 100)
    other_side = Croupier(changed(MINI, seats={"seat_one": "dealer-left"})).open(2, seats=(2, 9, 5))
    other_side.machine_shuffle(1)
    assert other_side.procedure.packs.cutters(other_side.table.pack(1)) == [
        9,
        2,
        5,
    ]  # clockwise, around the table


@pytest.mark.rule("MDM 5.B")
@pytest.mark.parametrize("from_top", [0, 9, 416 - 9, 416])
def test_a_cut_is_at_least_ten_from_either_end(from_top: int) -> None:
    table = Croupier(MINI).open(2)
    table.machine_shuffle(1)
    with table.refused("MDM 5.B", "at least 10 from the top or the bottom"):
        table.do("cut", PLAYER, 1, from_top, seat=3)
    table.do("cut", PLAYER, 1, 10 if from_top < 100 else 406, seat=3)


@pytest.mark.rule("MDM 5.C")
def test_the_second_cover_card_is_at_least_14_above_the_bottom() -> None:
    table = Croupier(MINI).open(2)
    table.machine_shuffle(1)
    table.do("cut", PLAYER, 1, 100, seat=3)
    with table.refused("MDM 5.C", "without its second cover card"):
        table.do("load", DEALER, 1)
    for above in (0, 13, 416):
        with table.refused("MDM 5.C", "at least 14"):
            table.do("place_cover", DEALER, 1, above)
    table.do("place_cover", DEALER, 1, 14)
    table.do("load", DEALER, 1)


@pytest.mark.rule("MDM 5.D")
@pytest.mark.rule("MDM 5.E")
def test_a_recut_is_ordered_before_loading_and_made_by_the_next_person() -> None:
    table = Croupier(MINI).open(2, seats=(2, 9))
    table.machine_shuffle(1)
    table.do("cut", PLAYER, 1, 100, seat=9)
    with table.refused("MDM 5.D", "this is for floor"):
        table.do("order_recut", DEALER, 1)
    table.do("order_recut", FLOOR, 1)
    with table.refused("MDM 5.B", "offered to seat 2"):
        table.do("cut", PLAYER, 1, 100, seat=9)
    table.do("cut", PLAYER, 1, 100, seat=2)
    table.do("order_recut", FLOOR, 1)
    table.do("cut", DEALER, 1, 100)
    table.do("place_cover", DEALER, 1, 20)
    table.do("load", DEALER, 1)
    with table.refused("MDM 5.D", "which is in the shoe"):
        table.do("order_recut", FLOOR, 1)


@pytest.mark.rule("MDM 5.F")
@pytest.mark.rule("MDM 5.G")
@pytest.mark.parametrize(("first", "burned"), [("KH", 10), ("10C", 10), ("AS", 1), ("7D", 7)])
def test_the_first_card_burns_as_many_as_its_value(first: str, burned: int) -> None:
    table = Croupier(MINI).open(2)
    table.machine_shuffle(1)
    table.do("cut", PLAYER, 1, 100, seat=3)
    table.do("place_cover", DEALER, 1, 14)
    table.do("load", DEALER, 1)
    with table.refused("MDM 5.F", "has not burned"):
        table.do("open_bets", DEALER)
    with table.refused("MDM 5.F", f"it burns {burned}"):
        table.do("burn", DEALER, 1, card(first), burned + 1)
    table.do("burn", DEALER, 1, card(first), burned)
    table.do("open_bets", DEALER)


@pytest.mark.rule("MDM 5.H")
def test_at_an_idle_table_the_shoe_is_spread_and_the_stored_batch_plays_next() -> None:
    table = Croupier(MINI).shoe()
    table.play_coup()
    table.do("idle", DEALER)
    assert [each["pack"] for each in table.ordered("spread")] == [1]
    assert table.table.pack(2).state == "shuffled"
    table.do("player_arrives", DEALER)
    table.do("stack", DEALER, 1)
    table.machine_shuffle(1)
    table.do("cut", PLAYER, 1, 100, seat=5)
    table.do("place_cover", DEALER, 1, 14)
    with table.refused("MDM 3.B", "pack 2's turn"):
        table.do("load", DEALER, 1)
    table.load_shoe(2)
    table.play_coup()


@pytest.mark.rule("MDM 5.H")
def test_a_player_may_ask_to_see_the_stored_batch() -> None:
    table = Croupier(MINI).shoe()
    table.do("idle", DEALER)
    table.do("player_arrives", DEALER, spread_stored=True)
    assert [each["face"] for each in table.ordered("spread")][-1] == "up"
    assert table.table.pack(2).state == "spread"
    without = Croupier(changed(MINI, cards={"alternating": False})).open(1, seats=(2,))
    without.hand_shuffle(1)
    without.load_shoe(1)
    without.do("idle", DEALER)
    without.do("player_arrives", DEALER)
    with without.refused("MDM 4.C"):
        without.do("stack", DEALER, 1)
    without.do("wash", DEALER, 1)
    without.do("stack", DEALER, 1)


@pytest.mark.rule("MDM 3.A")
@pytest.mark.rule("MDM 3.B")
def test_batches_alternate_shoe_by_shoe_and_are_whole() -> None:
    table = Croupier(MINI).shoe()
    for _ in range(3):
        table.play_coup()
    assert table.table.pack(1).state == "playing"
    table.do("cut", PLAYER, 2, 100, seat=5)
    table.do("place_cover", DEALER, 2, 14)
    with table.refused("MDM 3.B", "is in the shoe"):
        table.do("load", DEALER, 2)
    table.do("end_shoe", DEALER)
    table.machine_shuffle(1, 415)
    assert table.ordered("remove-pack") == [
        {"pack": 1, "why": "415 cards instead of 416", "reason": "wrong_count", "clause": "MDM 3.A"}
    ]


@pytest.mark.rule("MDM 3.C")
def test_cards_are_changed_after_24_hours() -> None:
    table = Croupier(MINI).shoe()
    table.now_s += 24 * HOUR - 1
    table.play_coup()
    table.now_s += 1
    with table.refused("MDM 3.C", "24 hours is the most"):
        table.do("open_bets", DEALER)


# -- a coup ----------------------------------------------------------------------------------------


@pytest.mark.rule("MDM 7.D")
@pytest.mark.rule("MDM 8.B")
def test_bets_are_closed_before_cards_and_stay_closed() -> None:
    table = Croupier(MINI).shoe()
    table.do("open_bets", DEALER)
    with table.refused("MDM 8.C"):
        table.do("deal_card", DEALER)
    table.do("place_wager", PLAYER, 2, "player", 1_000)
    with table.refused("MDM 2.A", "nobody sits there"):
        table.do("place_wager", PLAYER, 3, "player", 1_000)
    table.do("no_more_bets", DEALER)
    for late in (("place_wager", 5, "banker", 2_000), ("withdraw_wager", 2, "player")):
        with table.refused("MDM 7.D", 'after "no more bets"'):
            table.do(late[0], PLAYER, *late[1:])


@pytest.mark.rule("MDM 8")
@pytest.mark.rule("MDM 8.C")
@pytest.mark.rule("MDM 9.C")
@pytest.mark.rule("MDM 10.E")
@pytest.mark.rule("MDM 11.C")
def test_four_cards_then_the_third_cards_that_the_rules_want() -> None:
    table = Croupier(MINI).shoe()
    table.bet((2, "player", 1_000), (5, "banker", 2_000))
    for _ in range(3):
        table.do("deal_card", DEALER)
    with table.refused("MDM 8.D"):
        table.do("announce", DEALER, cards("2H 3D"), cards("3H 4S"), CardSource.DEALER)
    table.do("deal_card", DEALER)
    with table.refused("MDM 9.C", "before the first four"):
        table.third("player", "5C")
    with table.refused("MDM 8.C", "two cards each"):
        table.do("announce", DEALER, cards("2H 3D 4D"), cards("3H 4S"), CardSource.DEALER)
    table.do("announce", DEALER, cards("2H 2D"), cards("KH 4S"), CardSource.DEALER)
    assert table.procedure.mini.third_due() == "player"
    with table.refused("MDM 8.C", "second announcement"):
        table.do("announce", DEALER, cards("2H 2D"), cards("KH 4S"), CardSource.DEALER)
    with table.refused("MDM 10.B", "the player draws"):
        table.third("banker", "5C")
    table.third("player", "3C")
    assert table.procedure.mini.third_due() == "banker"
    with table.refused("MDM 10.B", "the banker draws"):
        table.third("player", "5C")
    table.third("banker", "4C")
    assert table.ordered("announce")[-1] == {"text": "Player 7, Banker 8: Banker wins"}
    assert table.table.state == "settling"
    settled = table.finish()
    assert {line.wager: line.net_cents for line in settled.lines} == {"player": -1_000, "banker": 1_900}
    assert table.table.pack(1).state == "playing"  # the shoe goes on


@pytest.mark.rule("MDM 11.A")
@pytest.mark.parametrize(
    ("variant", "player", "banker", "text"),
    [
        ("ez", "KD 10D 2C", "2H 2D 3S", "Player 2, Banker 7: Banker wins, Dragon 7"),
        ("fortune-7", "KD 10D 2C", "2H 2D 3S", "Player 2, Banker 7: Banker wins, Fortune 7"),
        ("standard", "KD 10D 2C", "2H 2D 3S", "Player 2, Banker 7: Banker wins"),
        ("ez", "2H 3H 3D", "KD 2D 5C", "Player 8, Banker 7: Player wins, Panda 8"),
        ("ez", "8H KD", "7S KC", "Player 8, Banker 7: Player wins"),
        ("fortune-7", "9H KD", "8S KC", "Player 9, Banker 8: Player wins, One Up"),
        ("standard", "9H KD", "8S KC", "Player 9, Banker 8: Player wins"),
        ("ez", "9H KD", "9S KC", "Player 9, Banker 9: tie hand"),
    ],
)
def test_the_result_is_announced_by_its_name(variant: str, player: str, banker: str, text: str) -> None:
    assert result(variant, coup(player, banker)) == text


def test_cards_that_the_shoe_cannot_hold_are_not_taken() -> None:
    table = Croupier(changed(MINI, cards={"decks": 6})).shoe()
    table.bet((2, "player", 1_000))
    for _ in range(4):
        table.do("deal_card", DEALER)
    table.do("announce", DEALER, cards("2H 2H"), cards("2H 2H"), CardSource.DEALER)
    table.third("player", "2H")
    table.third("banker", "2H")
    with pytest.raises(ImpossibleCards, match="must not have a third card"):
        table.do("retype_coup", FLOOR, cards("9H KD"), cards("2S KC 4C"))
    table.do("retype_coup", FLOOR, cards("9H KD"), cards("2S KC"))
    assert [line.outcome for line in table.finish().lines] == [WagerOutcome.WIN]


@pytest.mark.rule("MDM 8")
@pytest.mark.rule("MDM 9.D")
def test_a_machines_shoe_is_asked_card_by_card_and_its_reader_is_believed() -> None:
    table = Croupier(MINI, restarts=True).shoe()
    table.do("change_method", FLOOR, DealingMethod.AUTOMATED_SHOE)
    table.bet((2, "player", 1_000))
    for number in (1, 2, 3, 4):
        with table.refused("MDM 8.C", f"card {number} of round 1 is next"):
            table.device("card_dispensed", 1, number + 1)
        table.device("card_dispensed", 1, number)
    table.device("cover_card")
    table.device("first_four_read", 1, cards("2H KD"), cards("KS KC"))
    table.device("card_dispensed", 1, 5)
    with table.refused("MDM 11.A", "round 1 is played"):
        table.device("third_card_read", 2, "player", card("5C"))
    table.device("third_card_read", 1, "player", card("5C"))
    table.device("third_card_read", 1, "banker", card("5D"))
    assert table.finish().source is CardSource.READER
    assert table.table.memory.cover == "announce"


@pytest.mark.rule("MDM 13.E")
def test_a_machines_shoe_that_stops_voids_the_round_and_ends_the_shoe() -> None:
    table = Croupier(MINI).shoe()
    table.do("change_method", FLOOR, DealingMethod.AUTOMATED_SHOE)
    table.bet((2, "player", 1_000))
    table.device("card_dispensed", 1, 1)
    table.device("voided_by_device", 1, "shoe_failed")
    assert table.ordered("return-wager") == [{"seat": 2, "wager": "player", "cents": 1_000}]
    table.do("empty_device", DEALER)
    table.do("collect", DEALER)
    with table.refused("MDM 9.D"):
        table.do("open_bets", DEALER)
    table.do("end_shoe", DEALER)
    table.load_shoe(2)


@pytest.mark.rule("MDM 13.E")
def test_a_machines_shoe_that_fails_while_a_third_card_is_due_voids_the_round() -> None:
    table = Croupier(MINI).shoe()
    table.do("change_method", FLOOR, DealingMethod.AUTOMATED_SHOE)
    table.bet((2, "player", 1_000))
    for number in range(1, 5):
        table.device("card_dispensed", 1, number)
    table.device("first_four_read", 1, cards("2H KD"), cards("KS KC"))
    table.device("unit_failed", DeviceUnit.SHOE)
    assert (table.table.state, table.table.round.void_clause) == ("voided", "MDM 13.E")


def test_the_floor_may_correct_a_coup_while_cards_are_drawn() -> None:
    table = Croupier(MINI).shoe()
    table.bet((2, "player", 1_000))
    table.four("2H KD", "KS KC")
    with pytest.raises(ImpossibleCards):
        table.do("retype_coup", FLOOR, cards("2H KD"), cards("KS KC"))
    table.do("retype_coup", FLOOR, cards("9H KD"), cards("KS KC"))
    assert table.table.state == "settling"
    assert table.ordered("announce")[-1] == {"text": "Player 9, Banker 0: Player wins"}
    table.finish()


def test_one_card_typed_in_makes_the_round_typed_in() -> None:
    table = Croupier(MINI).shoe()
    table.do("change_method", FLOOR, DealingMethod.AUTOMATED_SHOE)
    table.bet((2, "player", 1_000))
    for number in range(1, 5):
        table.device("card_dispensed", 1, number)
    table.device("first_four_read", 1, cards("6H KD"), cards("KS KC"))
    table.third("banker", "5D")
    assert table.finish().source is CardSource.DEALER


# -- vigorish and progressives ---------------------------------------------------------------------


@pytest.mark.rule("MDM 12.D")
def test_marked_vigorish_is_collected_before_a_new_shoe_or_when_the_player_leaves() -> None:
    table = Croupier(changed(MINI, vigorish={"collected": "marked"})).shoe(seats=(2, 5))
    for _ in range(2):
        table.bet((2, "banker", 1_000), (5, "banker", 2_000))
        table.four("2S KC", "9H KD")
        table.finish()
    assert table.table.memory.marked == {2: 100, 5: 200}
    with table.refused("MDM 12.D", "closing while vigorish"):
        table.do("close_table", FLOOR)
    table.do("leave", PLAYER, 5)
    assert table.ordered("collect-vigorish") == [{"seat": 5, "cents": 200}]
    table.do("end_shoe", DEALER)
    table.do("cut", PLAYER, 2, 100, seat=2)
    table.do("place_cover", DEALER, 2, 14)
    table.do("load", DEALER, 2)
    with table.refused("MDM 12.D", "seats 2, 5 owe vigorish"):
        table.do("burn", DEALER, 2, card("3C"), 3)
    assert table.do("collect_vigorish", DEALER, 5) == 200
    assert table.do("collect_vigorish", DEALER, 2) == 100
    with table.refused("MDM 12.D", "owes no vigorish"):
        table.do("collect_vigorish", DEALER, 2)
    table.do("burn", DEALER, 2, card("3C"), 3)


@pytest.mark.rule("MDM 2.C")
@pytest.mark.rule("MDM 7.A(9)")
@pytest.mark.rule("MDM 12.N")
def test_the_progressive_is_locked_fed_and_paid() -> None:
    table = Croupier(with_royal_9(), restarts=True).shoe(seats=(1, 2))
    table.do("open_bets", DEALER)
    with table.refused("MDM 7.A(9)", "without banker or player or tie"):
        table.do("place_wager", PLAYER, 1, "royal-9", 500)
    table.do("place_wager", PLAYER, 1, "player", 1_000)
    table.do("place_wager", PLAYER, 1, "royal-9", 500)
    table.do("place_wager", PLAYER, 2, "player", 1_000)
    assert table.ordered("lock-progressive") == []
    table.do("no_more_bets", DEALER)
    assert table.ordered("lock-progressive") == [{"round": 1}]
    with table.refused("MDM 7.D"):
        table.do("place_wager", PLAYER, 2, "royal-9", 500)
    table.four("KH 9H", "7S 2C")
    with table.refused("MDM 12.N", "this is for controller"):
        table.do("must_hit", DEALER, 1)
    with table.refused("MDM 12.N", "has no Royal 9 wager"):
        table.do("must_hit", TableRole.CONTROLLER, 2)
    table.do("must_hit", TableRole.CONTROLLER, 1)
    settled = table.finish()
    paid = {(line.seat, line.wager): line.pays_cents for line in settled.lines}
    assert paid[1, "royal-9"] == 47_516 - 500  # 475.00 and 3.33 % of 5.00
    assert paid[1, "must-hit"] == 10_010
    meters = table.table.meters()
    assert meters is not None
    assert meters.by_name["heart"].cents == 45_000
    assert meters.by_name["star"].cents == 6_000_050
    table.bet((1, "player", 1_000), (1, "royal-9", 500))
    table.do("too_few_cards", DEALER)
    after = table.table.meters()
    assert after is not None
    assert after == meters  # a void round feeds nothing


# -- the end of a shoe -----------------------------------------------------------------------------


@pytest.mark.rule("MDM 9.D")
@pytest.mark.parametrize("when", ["between", "dealing", "drawing"])
def test_the_cover_card_finishes_the_hand_and_one_more_is_the_last(when: str) -> None:
    table = Croupier(MINI).shoe()
    if when == "between":
        table.do("cover_card", DEALER)
    table.bet((2, "player", 1_000))
    if when == "dealing":
        table.do("cover_card", DEALER)
    for _ in range(4):
        table.do("deal_card", DEALER)
    if when == "drawing":
        table.do("cover_card", DEALER)
    with table.refused("MDM 9.D", "it is out already"):
        table.do("cover_card", DEALER)
    table.do("announce", DEALER, cards("9H KD"), cards("2S KC"), CardSource.DEALER)
    table.finish()
    with table.refused("MDM 9.D", "before 'last hand' is announced"):
        table.do("open_bets", DEALER)
    table.do("announce_last_hand", DEALER)
    table.play_coup()
    with table.refused("MDM 9.D", "another hand from this shoe"):
        table.do("open_bets", DEALER)
    with table.refused("MDM 9.D"):
        table.do("announce_last_hand", DEALER)
    table.do("end_shoe", DEALER)
    table.load_shoe(2)
    table.play_coup()


# -- irregularities --------------------------------------------------------------------------------


@pytest.mark.rule("MDM 13.A")
def test_an_unseen_card_drawn_in_error_opens_the_next_hand() -> None:
    table = Croupier(MINI).shoe()
    table.bet((2, "player", 1_000))
    table.four("9H KD", "2S KC")
    table.do("drawn_in_error", DEALER)
    table.finish()
    assert table.table.memory.carried == 1
    table.bet((2, "player", 1_000))
    assert (table.table.round.dealt, table.table.memory.carried) == (1, 0)
    for _ in range(3):
        table.do("deal_card", DEALER)
    assert table.table.state == "drawing"


def test_a_card_comes_out_of_a_shoe_only() -> None:
    table = Croupier(MINI).open(2)
    for action, args in (("drawn_in_error", ()), ("card_exposed", (card("5D"),)), ("cover_card", ())):
        with table.refused("MDM 13.A", "while no pack is in the shoe"):
            table.do(action, DEALER, *args)


def test_what_was_drawn_or_seen_too_early_ends_with_its_shoe() -> None:
    table = Croupier(MINI).shoe()
    for _ in range(5):
        table.do("drawn_in_error", DEALER)
    table.bet((2, "player", 1_000))
    assert (table.table.round.dealt, table.table.memory.carried) == (3, 2)
    table.four("9H KD", "2S KC")
    table.finish()
    table.do("card_exposed", DEALER, card("5D"))
    table.do("cover_card", DEALER)
    table.do("end_shoe", DEALER)
    assert (table.table.memory.carried, table.table.memory.exposed, table.table.memory.cover) == (0, [], "")
    table.load_shoe(2)
    table.play_coup()


@pytest.mark.rule("MDM 13.B")
def test_an_unseen_unauthorised_third_card_is_the_bankers_if_he_draws() -> None:
    table = Croupier(MINI).shoe()
    table.bet((2, "banker", 1_000))
    table.four("6H KD", "2S KC")
    table.do("unauthorised_third", DEALER, None)
    assert table.ordered("use-as-third") == [{"to": "banker"}]
    waits = [table.table.round.banker_third_waits]
    table.third("banker", "7C")
    waits.append(table.table.round.banker_third_waits)
    assert waits == [True, False], "until then the device draws no other card for the Banker"
    assert [line.outcome for line in table.finish().lines] == [WagerOutcome.WIN]
    assert table.table.memory.carried == 0


@pytest.mark.rule("MDM 13.B")
@pytest.mark.parametrize(("player", "banker"), [("6H KD", "6S KC"), ("8H KD", "2S KC"), ("2H KD", "9S KC")])
def test_else_it_opens_the_next_hand(player: str, banker: str) -> None:
    table = Croupier(MINI).shoe()
    table.bet((2, "banker", 1_000))
    table.four(player, banker)
    table.do("unauthorised_third", DEALER, None)
    assert table.table.memory.carried == 1
    table.finish()


def test_a_third_card_that_the_player_must_have_is_not_unauthorised() -> None:
    table = Croupier(MINI).shoe()
    table.bet((2, "banker", 1_000))
    for _ in range(4):
        table.do("deal_card", DEALER)
    with table.refused("MDM 9.C", "before the first four"):
        table.do("unauthorised_third", DEALER, None)
    table.do("announce", DEALER, cards("2H KD"), cards("2S KC"), CardSource.DEALER)
    with table.refused("MDM 10.B", "the Player draws"):
        table.do("unauthorised_third", DEALER, None)


@pytest.mark.rule("MDM 13.C")
def test_a_seen_unauthorised_third_card_is_the_bankers_if_he_draws() -> None:
    table = Croupier(MINI).shoe()
    table.bet((2, "banker", 1_000))
    table.four("6H KD", "2S KC")
    table.do("unauthorised_third", DEALER, card("7C"))
    assert table.procedure.mini.coup() == coup("6H KD", "2S KC 7C")
    assert table.table.state == "settling"


@pytest.mark.rule("MDM 13.C")
@pytest.mark.parametrize("option", ["discard", "simulated-round"])
def test_else_it_is_discarded_with_one_more_or_opens_a_simulated_round(option: str) -> None:
    table = Croupier(changed(MINI, options={"disclosed_third": option})).shoe()
    table.bet((2, "player", 1_000))
    table.four("7H KD", "6S KC")
    table.do("unauthorised_third", DEALER, card("7C"))
    table.finish()
    if option == "discard":
        assert table.ordered("discard") == [{"cards": ["7C"], "unseen": 1}]
        table.play_coup()
    else:
        with table.refused("MDM 13.D", "play the simulated round first"):
            table.do("open_bets", DEALER)
        table.do("begin_simulated", DEALER)


@pytest.mark.rule("MDM 13.D")
def test_any_other_card_that_was_seen_opens_a_simulated_round_without_wagers() -> None:
    table = Croupier(MINI, restarts=True).shoe()
    table.bet((2, "player", 1_000))
    table.do("deal_card", DEALER)
    table.do("card_exposed", DEALER, card("5D"))
    table.four("9H KD", "2S KC")  # the round in play is finished with the following cards
    assert not table.finish().void
    with table.refused("MDM 13.D", "wagers after 5D was seen"):
        table.do("open_bets", DEALER)
    table.do("begin_simulated", DEALER)
    with table.refused("MDM 13.D", "in a simulated round"):
        table.do("place_wager", PLAYER, 2, "player", 1_000)
    assert table.table.round.dealt == 1
    for _ in range(3):
        table.do("deal_card", DEALER)
    with table.refused("MDM 13.D", "does not begin with 5D"):
        table.do("announce", DEALER, cards("9H KD"), cards("2S KC"), CardSource.DEALER)
    table.do("announce", DEALER, cards("5D KD"), cards("2S KC"), CardSource.DEALER)
    table.third("player", "2C")
    table.third("banker", "2D")
    with table.refused("MDM 11.B"):
        table.do("settle", DEALER)
    table.do("collect", DEALER)
    with table.refused("MDM 13.D", "only a card that was seen"):
        table.do("begin_simulated", DEALER)
    table.play_coup()


@pytest.mark.rule("MDM 13.D")
def test_a_card_face_up_in_the_shoe_is_a_card_that_was_seen() -> None:
    table = Croupier(MINI).shoe()
    with table.refused("MDM 13.D", "say which card"):
        table.do("face_up_card", DEALER)
    table.do("face_up_card", DEALER, card("5D"))
    assert table.table.memory.exposed == ["5D"]
    table = Croupier(MINI).shoe()
    table.do("open_bets", DEALER)
    table.do("place_wager", PLAYER, 2, "player", 1_000)
    with table.refused("MDM 13.D", "while bets are open"):
        table.do("face_up_card", DEALER, card("5D"))
    table.do("return_bets", DEALER)
    assert table.ordered("return-wager") == [{"seat": 2, "wager": "player", "cents": 1_000}]
    table.do("drawn_in_error", DEALER, card("5D"))
    table.do("begin_simulated", DEALER)


@pytest.mark.rule("MDM 13.E")
def test_too_few_cards_void_the_round_and_end_the_shoe() -> None:
    table = Croupier(MINI).shoe()
    table.bet((2, "player", 1_000), (5, "banker", 2_000), (5, "lucky-6", 100))
    table.do("deal_card", DEALER)
    table.do("too_few_cards", DEALER)
    assert table.table.round.void_clause == "MDM 13.E"
    assert sum(int(str(each["cents"])) for each in table.ordered("return-wager")) == 3_100
    table.do("collect", DEALER)
    with table.refused("MDM 9.D", "another hand from this shoe"):
        table.do("open_bets", DEALER)
    table.do("end_shoe", DEALER)
    table.load_shoe(2)
    table.play_coup()


def test_what_one_game_has_the_other_refuses() -> None:
    mini, three = Croupier(MINI).shoe(), Croupier("md-three-card-baccarat").automated()
    mini.bet((2, "player", 1_000))
    three.antes()
    with mini.refused("MDM 8.C"):
        mini.do("deal_card_to", DEALER, 2)
    with three.refused("MD3 8.D"):
        three.do("deal_card", DEALER)
    with three.refused("MD3 10.B"):
        three.do("deal_card_to", DEALER, 1)
    with three.refused("MD3 13.C"):
        three.do("too_few_cards", DEALER)
    with three.refused("MD3 13.C"):
        three.do("cover_card", DEALER)
    with mini.refused("MDM 7.D"):
        mini.do("forfeit", FLOOR, 2)
    with mini.refused("MDM 9.D", "finish the round first"):
        mini.do("end_shoe", DEALER)
    mini.four("9H KD", "2S KC")
    mini.finish()
    with mini.refused("MDM 8", "deals by manual-shoe"):
        mini.do("change_method", FLOOR, DealingMethod.HAND)


# -- a six-deck shoe shuffled every round ----------------------------------------------------------


@pytest.mark.rule("BAC shoe")
def test_six_decks_are_shuffled_every_round_and_neither_cut_nor_burned() -> None:
    table = Croupier(SIX).open(1, seats=(2,))
    for _ in range(3):
        table.do("start_shuffle", DEALER, 1, machine=True)
        table.device("finish_shuffle", 1, 312)
        with table.refused("BAC shoe", "cut, which BAC does not have"):
            table.do("cut", DEALER, 1, 100)
        table.do("load", DEALER, 1)
        table.play_coup()
        with table.refused("BAC shoe", "no pack is in the shoe"):
            table.do("open_bets", DEALER)
    assert load(SIX).cards.decks == 6


# -- memory ----------------------------------------------------------------------------------------


def test_a_restart_after_everything_that_happens_changes_nothing() -> None:
    ends = []
    for restarts in (False, True):
        table = Croupier(MINI, restarts).shoe()
        table.bet((2, "player", 1_000), (5, "banker", 2_000))
        table.do("cover_card", DEALER)
        table.four("2H KD", "KS KC")
        table.third("player", "5C")
        table.third("banker", "5D")
        settled = table.finish()
        table.do("announce_last_hand", DEALER)
        table.play_coup()
        ends.append((table.table.save(), settled.to_json()))
    assert ends[0] == ends[1]


# -- what a device tells of batches and draws ----------------------------------------------------------


@pytest.mark.rule("MDM 3.B")
def test_a_batch_that_was_delivered_has_used_its_turn() -> None:
    table = Croupier(MINI, restarts=True).open(2, (2, 5))
    table.machine_shuffle(1)
    table.machine_shuffle(2)
    table.device("deliver", 1)
    table.do("start_shuffle", FLOOR, 1, machine=True)  # it never came into the shoe
    table.device("finish_shuffle", 1, 416)
    with table.refused("MDM 3.B"):
        table.device("deliver", 1)
    table.device("deliver", 2)
    table.load_shoe(2)
    assert table.table.pack(2).state == "playing"


@pytest.mark.rule("MDM 13.A")
def test_draws_are_counted_whatever_becomes_of_the_cards() -> None:
    table = Croupier(changed(MINI, dealing={"methods": ["automated-shoe"]}), restarts=True).shoe()
    table.bet((2, "player", 1_000))
    round_id = table.table.round.round_id
    table.device("card_dispensed", round_id, 1, 1)
    table.device("card_set_aside", round_id, 2)
    with table.refused("MDM 8.C"):
        table.device("card_dispensed", round_id, 2, 2)
    for number, draw in ((2, 3), (3, 4), (4, 5)):
        table.device("card_dispensed", round_id, number, draw)
    playing = table.table.round
    assert (table.table.state, playing.drawn, playing.draws) == ("drawing", [1, 3, 4, 5], 5)
    with table.refused("MDM 11.A"):
        table.device("card_set_aside", round_id + 1, 6)


@pytest.mark.rule("MDM 13.E")
def test_a_device_that_runs_out_of_cards_voids_the_round_and_ends_the_shoe() -> None:
    table = Croupier(changed(MINI, dealing={"methods": ["automated-shoe"]}), restarts=True).shoe()
    table.bet((2, "player", 1_000))
    table.device("voided_by_device", table.table.round.round_id, "too_few_cards")
    assert (table.table.round.void_clause, table.table.memory.cover) == ("MDM 13.E", "over")
    table.do("collect", DEALER)
    with table.refused("MDM 9.D"):
        table.do("open_bets", DEALER)


def test_rounds_are_numbered_on_from_the_devices_last() -> None:
    table = Croupier(MINI).shoe()
    table.table.number_after(40)
    table.bet((2, "player", 1_000))
    assert table.table.round.round_id == 41
    table.table.number_after(50)
    assert table.table.memory.rounds == 41, "not while one is in play"
