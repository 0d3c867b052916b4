"""A table of Three Card Baccarat from opening to closing, and what it refuses on the way."""

import json

import pytest
from tests.table.croupier import DEALER, FLOOR, HOUR, PLAYER, Croupier

from sabot_table.cards import card, cards
from sabot_table.errors import BadSave, WagerRefused
from sabot_table.procedure import Attribution, TableProcedure, TableRole
from sabot_table.procedure.vocabulary import DeviceUnit, RemovalReason, Verdict
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import load
from sabot_table.settlement import CardSource, WagerOutcome

MD3, WA3 = "md-three-card-baccarat", "wa-three-card-baccarat"
VERSIONS = {"Mico32": "3.3.027", "CardRec": "4.0.018", "RNG": "1.002.004"}


# -- opening ---------------------------------------------------------------------------------------


@pytest.mark.rule("MD3 4.A")
@pytest.mark.rule("MD3 4.B")
@pytest.mark.rule("MD3 4.C")
@pytest.mark.rule("MD3 4.D")
@pytest.mark.rule("MD3 4.E")
def test_each_pack_is_inspected_verified_spread_washed_stacked_and_shuffled_in_this_order() -> None:
    table = Croupier(MD3)
    table.do("open_table", FLOOR)
    clause = {
        "inspect": "MD3 4.A", "verify": "MD3 4.A", "spread": "MD3 4.B", "wash": "MD3 4.C", "stack": "MD3 4.C",
    }  # fmt: skip
    steps = tuple(clause)
    for pack, back in ((1, "red"), (2, "blue")):
        table.do("receive_pack", FLOOR, pack, back)
        for place, step in enumerate(steps):
            for later in steps[place + 1 :]:
                with table.refused(clause[later], later):
                    table.do(later, FLOOR if later == "verify" else DEALER, pack)
            with table.refused("MD3 5.A"):
                table.do("start_shuffle", DEALER, pack, machine=True)
            wrong, right = (DEALER, FLOOR) if step == "verify" else (FLOOR, DEALER)
            with table.refused(clause[step]):
                table.do(step, wrong, pack)
            table.do(step, right, pack)
        table.machine_shuffle(pack)


@pytest.mark.rule("MD3 4.F")
@pytest.mark.rule("MD3 5.C")
def test_prepared_cards_skip_the_opening_but_are_cut() -> None:
    table = Croupier(MD3)
    table.do("open_table", FLOOR)
    table.do("receive_pack", FLOOR, 1, "red")
    table.do("accept_prepared", FLOOR, 1)
    with table.refused("MD3 5.C", "not cut"):
        table.do("load", DEALER, 1)
    table.do("cut", DEALER, 1, 26)
    table.do("load", DEALER, 1)


@pytest.mark.rule("MD3 3.A")
@pytest.mark.rule("MD3 3.B")
def test_packs_have_different_backs_and_new_numbers_and_there_are_two_at_most() -> None:
    table = Croupier(MD3)
    with table.refused("MD3 4.A", "receive pack while no play"):
        table.do("receive_pack", FLOOR, 1, "red")
    table.do("open_table", FLOOR)
    table.do("receive_pack", FLOOR, 1, "red")
    with table.refused("MD3 3.B", "two packs with red backs"):
        table.do("receive_pack", FLOOR, 2, "red")
    with table.refused("MD3 3.C", "was here before"):
        table.do("receive_pack", FLOOR, 1, "blue")
    table.do("receive_pack", FLOOR, 2, "blue")
    with table.refused("MD3 3.B", "third pack"):
        table.do("receive_pack", FLOOR, 3, "green")
    table.do("remove_pack", FLOOR, 1, RemovalReason.DAMAGED)
    with table.refused("MD3 3.A", "no pack 1"):
        table.do("inspect", DEALER, 1)
    with table.refused("MD3 3.C", "was here before"):
        table.do("receive_pack", FLOOR, 1, "red")
    with table.refused("MD3 4.A"):
        table.do("receive_pack", PLAYER, 3, "red")


# -- shuffling and cutting -------------------------------------------------------------------------


@pytest.mark.rule("MD3 5.A")
def test_cards_are_shuffled_before_play_after_each_round_and_when_the_floor_orders_it() -> None:
    table = Croupier(MD3).open(1)
    with table.refused("MD3 5.C", "not shuffled"):
        table.do("load", DEALER, 1)
    table.machine_shuffle(1)
    with table.refused("MD3 5.A", "only the floor"):
        table.do("start_shuffle", DEALER, 1, machine=True)
    table.do("start_shuffle", FLOOR, 1, machine=True)
    table.device("finish_shuffle", 1, 52)
    table.do("load", DEALER, 1)
    table.play_automated()
    with table.refused("MD3 5.C"):
        table.do("load", DEALER, 1)
    assert table.table.pack(1).state == "discards"


@pytest.mark.rule("MD3 5.B")
@pytest.mark.parametrize("count", [0, 51, 53])
def test_a_pack_with_a_wrong_count_leaves(count: int) -> None:
    table = Croupier(MD3).open(2)
    table.machine_shuffle(1, count)
    assert table.ordered("remove-pack") == [
        {"pack": 1, "why": f"{count} cards instead of 52", "reason": "wrong_count", "clause": "MD3 5.B"}
    ]
    assert [each.pack_id for each in table.table.packs()] == [2]


@pytest.mark.rule("MD3 5.B")
def test_a_machines_shuffle_ends_when_the_machine_says_so() -> None:
    table = Croupier(MD3).open(2)
    table.do("start_shuffle", DEALER, 1, machine=True)
    with table.refused("MD3 5.B", "ended by hand"):
        table.do("finish_shuffle", DEALER, 1)
    table.device("finish_shuffle", 1, 52)
    table.device("start_shuffle", 2, machine=True)  # begun at the device itself
    assert table.table.pack(2).state == "shuffling"


@pytest.mark.rule("MD3 5.C")
@pytest.mark.rule("MD3 5.H")
def test_what_a_machine_shuffled_is_dealt_without_a_cut() -> None:
    table = Croupier(MD3).open(2)
    table.machine_shuffle(1)
    with table.refused("MD3 5.C", "needs no cut"):
        table.do("cut", DEALER, 1, 26)
    table.device("load", 1)
    with table.refused("MD3 5.C", "was not cut"):
        table.do("order_recut", FLOOR, 1)
    assert table.table.pack(1).state == "loaded"


@pytest.mark.rule("MD3 5.D")
def test_a_cut_is_made_by_the_dealer_at_least_ten_from_the_top() -> None:
    table = Croupier(MD3).open(1)
    table.hand_shuffle(1)
    with table.refused("MD3 5.C", "not cut"):
        table.do("load", DEALER, 1)
    for place in (-1, 0, 9, 52, 60):
        with table.refused("MD3 5.D", "at least 10 from the top"):
            table.do("cut", DEALER, 1, place)
    with table.refused("MD3 5.D", "the dealer cuts"):
        table.do("cut", DEALER, 1, 20, seat=1)
    with table.refused("MD3 5.D", "this is for dealer"):
        table.do("cut", PLAYER, 1, 20)
    with table.refused("MD3 5.D"):
        table.do("cut", FLOOR, 1, 20)
    table.do("cut", DEALER, 1, 10)
    with table.refused("MD3 5.D", "which MD3 does not have"):
        table.do("place_cover", DEALER, 1, 20)
    table.do("load", DEALER, 1)
    with table.refused("MD3 5.D", "burn"):
        table.do("burn", DEALER, 1, card("3C"), 3)


@pytest.mark.rule("MD3 5.E")
def test_the_floor_may_order_another_cut_until_the_first_card() -> None:
    table = Croupier(MD3).manual()
    with table.refused("MD3 5.E"):
        table.do("order_recut", DEALER, 1)
    table.do("order_recut", FLOOR, 1)
    with table.refused("MD3 5.C"):
        table.do("load", DEALER, 1)
    table.do("cut", DEALER, 1, 30)
    table.do("load", DEALER, 1)
    table.do("open_bets", DEALER)
    table.do("place_wager", PLAYER, 1, "ante", 2_000)
    with table.refused("MD3 3.C", "removed in a round"):
        table.do("remove_pack", FLOOR, 1, RemovalReason.DAMAGED)
    table.do("order_recut", FLOOR, 1)
    with table.refused("MD3 5.C", "no longer in the shoe"):
        table.do("no_more_bets", DEALER)
    table.do("cut", DEALER, 1, 30)
    table.do("load", DEALER, 1)
    table.do("no_more_bets", DEALER)
    with table.refused("MD3 5.E"):
        table.do("order_recut", FLOOR, 1)


@pytest.mark.rule("MD3 5.F")
def test_at_an_idle_table_the_cards_are_spread_and_opened_again() -> None:
    table = Croupier(MD3).manual()
    with table.refused("MD3 5.F"):
        table.do("player_arrives", DEALER)
    table.do("idle", DEALER)
    assert table.ordered("spread")[0]["pack"] == 1
    with table.refused("MD3 7.C"):
        table.do("open_bets", DEALER)
    table.do("player_arrives", DEALER)
    with table.refused("MD3 5.C", "no pack is in the shoe"):
        table.do("open_bets", DEALER)
    table.do("wash", DEALER, 1)
    table.do("stack", DEALER, 1)
    table.ready_by_hand(1)
    table.antes()


@pytest.mark.rule("MD3 5.H")
def test_a_device_that_shuffles_and_counts_needs_no_idle_procedure() -> None:
    table = Croupier(MD3).automated()
    table.do("idle", DEALER)
    assert table.ordered("spread") == []
    table.do("player_arrives", DEALER)
    table.play_automated()


# -- wagers ----------------------------------------------------------------------------------------


@pytest.mark.rule("MD3 7.B")
def test_only_who_sits_may_wager() -> None:
    table = Croupier(MD3).automated(seats=(1,))
    table.do("open_bets", DEALER)
    with table.refused("MD3 7.B", "nobody sits there"):
        table.do("place_wager", PLAYER, 2, "ante", 500)
    with table.refused("MD3 2.A", "no such seat"):
        table.do("place_wager", PLAYER, 7, "ante", 500)
    with table.refused("MD3 7.B", "is taken"):
        table.do("sit", PLAYER, 1)
    with table.refused("MD3 2.A", "no such seat"):
        table.do("sit", PLAYER, 9)
    with table.refused("MD3 7.B", "nobody sits at seat 4"):
        table.do("leave", PLAYER, 4)


@pytest.mark.rule("MD3 7.C")
@pytest.mark.rule("MD3 7.D")
def test_no_wager_is_made_raised_or_withdrawn_after_no_more_bets() -> None:
    table = Croupier(MD3).automated()
    with table.refused("MD3 7.D"):
        table.do("place_wager", PLAYER, 1, "ante", 500)
    table.do("open_bets", DEALER)
    with table.refused("MD3 7.C", "without wagers"):
        table.do("no_more_bets", DEALER)
    with table.refused("MD3 7.C", "this is for dealer"):
        table.do("no_more_bets", PLAYER)
    table.do("place_wager", PLAYER, 1, "ante", 500)
    table.do("place_wager", PLAYER, 1, "ante", 1_000)
    table.do("place_wager", PLAYER, 3, "ante", 1_000)
    table.do("withdraw_wager", PLAYER, 3, "ante")
    with table.refused("MD3 7.D", "was not made"):
        table.do("withdraw_wager", PLAYER, 3, "ante")
    table.do("no_more_bets", DEALER)
    assert table.table.round.wagers == {1: {"ante": 1_000}}
    late_ones = (
        ("place_wager", 1, "ante", 2_000), ("place_wager", 3, "ante", 500), ("withdraw_wager", 1, "ante"),
    )  # fmt: skip
    for late in late_ones:
        with table.refused("MD3 7.D", 'after "no more bets"'):
            table.do(late[0], PLAYER, *late[1:])
    table.stacks(2)
    table.counted()
    with table.refused("MD3 7.D"):
        table.do("place_wager", PLAYER, 1, "tie", 500)


@pytest.mark.rule("MD3 7.E")
def test_a_bonus_is_made_after_the_ante_and_holds_it() -> None:
    table = Croupier(MD3).automated()
    table.do("open_bets", DEALER)
    with table.refused("MD3 7.E", "without ante"):
        table.do("place_wager", PLAYER, 1, "tie", 500)
    table.do("place_wager", PLAYER, 1, "ante", 500)
    table.do("place_wager", PLAYER, 1, "tie", 500)
    with table.refused("MD3 7.E", "without ante"):
        table.do("withdraw_wager", PLAYER, 1, "ante")


@pytest.mark.rule("WA3 wagers")
def test_a_fifth_kind_of_wager_is_refused_in_washington() -> None:
    table = Croupier(WA3)
    table.device("identify", "i-Deal", VERSIONS)
    table.automated()
    table.do("open_bets", DEALER)
    for wager in ("ante", "three-kings", "tie", "dragon-bonus"):
        table.do("place_wager", PLAYER, 1, wager, 500)
    with table.refused("WA3 wagers", "5 kinds"):
        table.do("place_wager", PLAYER, 1, "lucky-6", 500)


def test_bets_may_be_given_back_before_any_card() -> None:
    table = Croupier(MD3).automated()
    table.do("open_bets", DEALER)
    table.do("place_wager", PLAYER, 1, "ante", 500)
    table.do("place_wager", PLAYER, 3, "ante", 700)
    table.do("leave", PLAYER, 3)
    assert table.ordered("return-wager") == [{"seat": 3, "wager": "ante", "cents": 700}]
    table.do("return_bets", FLOOR)
    assert table.ordered("return-wager") == [{"seat": 1, "wager": "ante", "cents": 500}]
    assert (table.table.state, table.table.memory.round) == ("between", None)


# -- dealing ---------------------------------------------------------------------------------------


@pytest.mark.rule("MD3 10.A")
@pytest.mark.rule("MD3 10.B")
@pytest.mark.rule("WA3 sets")
@pytest.mark.parametrize("name", [MD3, WA3])
def test_stacks_of_three_clockwise_and_to_the_dealer_after_bets_are_closed(name: str) -> None:
    table = Croupier(name)
    table.device("identify", "i-Deal", VERSIONS)
    table.automated(seats=(5, 2, 4))
    with pytest.raises(Exception, match="deal stack while between rounds"):
        table.device("deal_stack", 1, 1, 3)
    table.bet((5, "ante", 500), (2, "ante", 500))
    assert table.table.turns() == [2, 5, 0]
    for stack in (1, 2, 3):
        for wrong in ((1, stack + 1, 3), (2, stack, 3)):
            with pytest.raises(Exception, match=f"stack {stack} of round 1 is next"):
                table.device("deal_stack", *wrong)
        table.device("deal_stack", 1, stack, 3)
    assert table.table.state == "counting"


@pytest.mark.rule("MD3 3.B")
def test_two_packs_alternate_round_by_round() -> None:
    table = Croupier(MD3).automated()
    for number in range(6):
        table.play_automated()
        played, other = (1, 2) if number % 2 == 0 else (2, 1)
        assert table.table.memory.last_pack == played
        table.machine_shuffle(played)
        with table.refused("MD3 3.B", f"it is pack {other}'s turn"):
            table.do("load", DEALER, played)
        table.do("load", DEALER, other)
        with table.refused("MD3 3.B", f"pack {other} is in the shoe"):
            table.do("load", DEALER, played)


@pytest.mark.rule("MD3 3.B")
def test_the_discard_rack_holds_one_pack() -> None:
    table = Croupier(MD3).automated()
    table.play_automated()
    table.do("load", DEALER, 2)
    table.antes()
    table.stacks()
    table.counted()
    table.show()
    table.do("settle", DEALER)
    with table.refused("MD3 3.B", "take pack 1 to the shuffler first"):
        table.do("collect", DEALER)
    table.machine_shuffle(1)  # while pack 2 is in play
    table.do("collect", DEALER)


@pytest.mark.rule("MD3 3.A")
def test_with_one_pack_left_the_floor_decides() -> None:
    table = Croupier(MD3).automated()
    table.play_automated()
    with table.refused("MD3 3.B", "two packs there"):
        table.do("play_one_pack", FLOOR)
    table.do("remove_pack", FLOOR, 2, RemovalReason.DAMAGED)
    table.machine_shuffle(1)
    with table.refused("MD3 3.B", "bring another, or choose one-pack play"):
        table.do("load", DEALER, 1)
    with table.refused("MD3 3.A", "this is for floor"):
        table.do("play_one_pack", DEALER)
    table.do("play_one_pack", FLOOR)
    table.do("load", DEALER, 1)
    table.play_automated()


@pytest.mark.rule("MD3 3.C")
def test_a_pack_past_its_hours_is_not_played_and_hand_dealing_halves_them_at_once() -> None:
    table = Croupier(MD3).automated()
    table.now_s += 4 * HOUR
    table.do("change_method", FLOOR, DealingMethod.HAND)
    with table.refused("MD3 3.C", "opened 4 hours ago"):
        table.do("open_bets", DEALER)
    table.do("change_method", FLOOR, DealingMethod.AUTOMATED_SHOE)
    table.now_s += 4 * HOUR - 1
    table.do("open_bets", DEALER)
    table.do("place_wager", PLAYER, 1, "ante", 500)
    table.now_s += 1
    with table.refused("MD3 3.C", "8 hours is the most"):
        table.do("no_more_bets", DEALER)
    table.do("return_bets", DEALER)
    with table.refused("MD3 3.C"):
        table.do("start_shuffle", FLOOR, 2, machine=True)
    table.now_s -= 5 * HOUR  # a clock that was set back
    with table.refused("MD3 3.C"):
        table.do("open_bets", DEALER)
    for pack in (1, 2):
        table.do("remove_pack", FLOOR, pack, RemovalReason.HOURS)
    table.prepare(3, "red")
    table.machine_shuffle(3)
    table.do("load", DEALER, 3)
    table.antes()


@pytest.mark.rule("MD3 8")
@pytest.mark.rule("MD3 8.C")
@pytest.mark.rule("MD3 8.D")
def test_from_a_manual_shoe_card_by_card_clockwise() -> None:
    table = Croupier(MD3).manual(seats=(4, 2))
    table.do("open_bets", DEALER)
    with table.refused("MD3 8.D"):
        table.do("deal_card_to", DEALER, 2)
    table.do("place_wager", PLAYER, 4, "ante", 500)
    table.do("place_wager", PLAYER, 2, "ante", 500)
    table.do("no_more_bets", DEALER)
    for _ in range(3):
        for to in (2, 4, 0):
            with table.refused("MD3 8.D", "the next goes to"):
                table.do("deal_card_to", DEALER, 4 if to == 2 else 2)
            table.do("deal_card_to", DEALER, to)
    assert table.table.state == "counting"


@pytest.mark.rule("MD3 8.E")
@pytest.mark.rule("MD3 9.C")
@pytest.mark.parametrize("method", [DealingMethod.MANUAL_SHOE, DealingMethod.HAND])
def test_the_stub_is_counted_every_five_rounds_unless_the_shuffler_counts(method: DealingMethod) -> None:
    hand = method is DealingMethod.HAND
    table = Croupier(MD3).open(1)
    table.do("play_one_pack", FLOOR)
    table.do("change_method", FLOOR, method)
    for number in range(1, 12):
        if number > 6:  # with a shuffler that counts
            table.machine_shuffle(1)
        elif hand:
            table.do("start_shuffle", DEALER, 1, machine=True)
            table.device("finish_shuffle", 1)
        else:
            table.hand_shuffle(1)
            table.do("cut", DEALER, 1, 20)
        table.do("load", DEALER, 1)
        table.antes()
        table.deal_cards()
        if number == 5:
            with table.refused("MD3 9.C" if hand else "MD3 8.E", "count it now"):
                table.do("pass_stub", DEALER)
            assert table.do("count_stub", DEALER, 52 - 9) is Verdict.CORRECT
        else:
            table.do("pass_stub", DEALER)
        table.show()
        table.finish()


@pytest.mark.rule("MD3 8.F")
def test_what_the_stubs_count_says() -> None:
    table = Croupier(MD3).manual()
    table.antes()
    table.deal_cards()
    with table.refused("MD3 8.F", "count the cards of every hand too"):
        table.do("count_stub", DEALER, 42)
    with table.refused("MD3 8.F", "count those of seat 1, seat 3, the dealer"):
        table.do("count_stub", DEALER, 42, {1: 3, 0: 3})
    assert table.do("count_stub", DEALER, 42, {1: 4, 3: 3, 0: 3}) is Verdict.MISDEALT
    assert (table.table.state, table.table.round.void_clause) == ("voided", "MD3 8.F")
    assert table.ordered("return-wager") == [
        {"seat": 1, "wager": "ante", "cents": 2_000}, {"seat": 3, "wager": "ante", "cents": 2_000},
    ]  # fmt: skip
    table.do("collect", DEALER)
    assert table.table.pack(1).state == "discards"
    for stub, verdict in ((41, Verdict.CARD_MISSING), (43, Verdict.CARD_EXTRA)):
        table.ready_by_hand(table.table.packs()[0].pack_id)
        table.antes()
        table.deal_cards()
        hands = {1: 3, 3: 3, 0: 4 if stub == 43 else 3}
        assert table.do("count_stub", DEALER, stub, hands) is verdict
        table.do("collect", DEALER)
        assert table.table.packs() == []
        table.prepare(table.table.memory.highest_pack + 1, "red")
        table.do("play_one_pack", FLOOR)


@pytest.mark.rule("MD3 9")
@pytest.mark.rule("MD3 9.A")
def test_hand_dealing_needs_a_shuffler() -> None:
    table = Croupier(MD3).manual()
    table.do("change_method", FLOOR, DealingMethod.HAND)
    with table.refused("MD3 9.A", "no machine shuffled"):
        table.do("open_bets", DEALER)
    table.do("start_shuffle", FLOOR, 1, machine=True)
    table.device("finish_shuffle", 1, 52)
    table.do("load", DEALER, 1)
    table.antes()
    table.deal_cards()
    table.do("pass_stub", DEALER)
    table.show()
    table.finish()
    table.device("unit_failed", DeviceUnit.SHUFFLER)
    table.do("mark_out_of_order", FLOOR, DeviceUnit.SHUFFLER, "sign")
    with table.refused("MD3 9.A", "without a shuffler"):
        table.do("change_method", FLOOR, DealingMethod.HAND)
    with table.refused("MD3 13.E", "the shuffler is out of order"):
        table.do("start_shuffle", DEALER, 1, machine=True)


@pytest.mark.rule("MD3 10.C")
def test_the_automated_shoe_counts_every_round() -> None:
    table = Croupier(MD3).automated()
    table.antes()
    table.stacks()
    with table.refused("MD3 10.C", "wait for its count"):
        table.do("pass_stub", DEALER)
    with pytest.raises(Exception, match="round 1 is played"):
        table.device("end_round", 7, Verdict.CORRECT)
    table.counted(Verdict.MISDEALT)
    assert (table.table.state, table.table.round.void_clause) == ("voided", "MD3 10.C")
    table.do("collect", DEALER)
    assert table.table.pack(1).state == "discards"
    table.do("load", DEALER, 2)
    table.antes()
    table.stacks()
    table.machine_shuffle(1)
    table.counted(Verdict.CARD_MISSING)
    table.do("collect", DEALER)
    assert table.ordered("remove-pack") == [
        {"pack": 2, "why": "card missing in round 2", "reason": "wrong_count", "clause": "MD3 5.B"}
    ]


# -- the end of a round ----------------------------------------------------------------------------


def test_hands_are_read_at_the_exit_or_typed_in_and_the_two_are_told_apart() -> None:
    for source in CardSource:
        table = Croupier(MD3).automated()
        table.antes()
        table.stacks()
        with table.refused("MD3 11.B"):
            table.show()
        table.counted()
        if source is CardSource.READER:
            with table.refused("MD3 11.B", "there are 3"):
                table.device("hands_read", 1, (cards("9H JH QD"),))
            with table.refused("MD3 11.B", "round 1 is played"):
                table.device("hands_read", 2, (cards("9H JH QD"), cards("2D 3D 10C"), cards("7H KS QC")))
            table.device("hands_read", 1, (cards("9H JH QD"), cards("2D 3D 10C"), cards("7H KS QC")))
        else:
            with table.refused("MD3 11.B", "say who saw them"):
                table.do("reveal", DEALER, cards("7H KS QC"), {}, CardSource.READER)
            table.show()
        if source is CardSource.READER:
            with table.refused("MD3 11.B", "other cards than the reader saw"):
                table.do("retype_hands", FLOOR, cards("7H KS QC"), {})
        settled = table.finish()
        assert settled.source is source
        assert [(line.seat, line.outcome, line.net_cents) for line in settled.lines] == [
            (1, WagerOutcome.WIN, 1_900), (3, WagerOutcome.LOSE, -2_000),
        ]  # fmt: skip


def test_the_floor_may_correct_what_the_dealer_typed_until_it_is_settled() -> None:
    table = Croupier(MD3).automated()
    table.antes()
    table.stacks()
    table.counted()
    table.show()
    right = {1: cards("2D 3D 10C"), 3: cards("9H JH QD")}
    with table.refused("MD3 11.B", "this is for floor"):
        table.do("retype_hands", DEALER, cards("7H KS QC"), right)
    table.do("retype_hands", FLOOR, cards("7H KS QC"), right)
    assert [line.outcome for line in table.do("settle", DEALER).lines] == [
        WagerOutcome.LOSE,
        WagerOutcome.WIN,
    ]
    with table.refused("MD3 11.B"):
        table.do("retype_hands", FLOOR, cards("7H KS QC"), right)


def test_impossible_hands_are_not_taken() -> None:
    table = Croupier(MD3).automated()
    table.antes()
    table.stacks()
    table.counted()
    for hands in (("7H KS QC", "7H JH QD"), ("7H KS", "9H JH QD"), ("7H KS QC", "9H JH QD 2C")):
        with pytest.raises(Exception, match=r"7H is there 2 times|a hand of"):
            table.show(*hands)
        assert table.table.state == "revealing"


@pytest.mark.rule("MD3 11.A")
@pytest.mark.rule("WA3 house")
def test_forfeits_are_marylands() -> None:
    table = Croupier(WA3)
    table.device("identify", "i-Deal", VERSIONS)
    table.automated()
    table.antes()
    with table.refused("WA3 house", "which WA3 does not have"):
        table.do("forfeit", FLOOR, 1)


@pytest.mark.rule("MD3 11.A")
@pytest.mark.rule("MD3 7.B")
def test_forfeited_and_abandoned_wagers_are_the_floors_decision() -> None:
    table = Croupier(MD3).automated(seats=(1, 3, 5))
    table.antes()
    table.stacks()
    table.counted()
    with table.refused("MD3 11.A", "this is for floor"):
        table.do("forfeit", DEALER, 1)
    with table.refused("MD3 11.A", "has no wagers"):
        table.do("forfeit", FLOOR, 5)
    with table.refused("MD3 7.B", "has not left"):
        table.do("abandon", FLOOR, 3)
    table.do("forfeit", FLOOR, 1)
    table.do("leave", PLAYER, 3)
    table.do("abandon", FLOOR, 3)
    table.show()
    assert [line.outcome for line in table.finish().lines] == [WagerOutcome.FORFEIT, WagerOutcome.ABANDONED]


@pytest.mark.rule("MD3 11.C")
def test_cards_go_to_the_discards_after_settlement() -> None:
    table = Croupier(MD3).automated()
    table.antes()
    table.stacks()
    table.counted()
    table.show()
    with table.refused("MD3 11.C"):
        table.do("collect", DEALER)
    table.do("settle", DEALER)
    with table.refused("MD3 11.B"):
        table.do("settle", DEALER)
    table.do("collect", DEALER)
    assert (table.table.state, table.table.pack(1).state) == ("between", "discards")
    table.do("close_table", FLOOR)
    with table.refused("MD3 5.C", "closed table"):
        table.do("load", DEALER, 2)


# -- irregularities --------------------------------------------------------------------------------


def all_back(table: Croupier, clause: str) -> None:
    """The round is void by this clause and both antes went back."""
    assert table.table.state == "voided"
    assert table.table.round.void_clause == clause
    assert table.ordered("return-wager") == [
        {"seat": 1, "wager": "ante", "cents": 2_000}, {"seat": 3, "wager": "ante", "cents": 2_000},
    ]  # fmt: skip
    assert table.table.round.settlement is not None
    assert table.table.round.settlement["void_clause"] == clause


def plays_on(table: Croupier) -> None:
    """The cards come out and go to the discards; pack 2 plays next, then pack 1 again."""
    with table.refused("MD3 13.D", "take them out"):
        table.do("collect", DEALER)
    table.do("empty_device", DEALER)
    table.do("collect", DEALER)
    table.machine_shuffle(1)
    with table.refused("MD3 3.B", "pack 2's turn"):
        table.do("load", DEALER, 1)
    table.do("load", DEALER, 2)
    table.play_automated()


@pytest.mark.rule("MD3 13.A")
def test_a_face_up_card_voids_the_round() -> None:
    table = Croupier(MD3).automated()
    table.antes()
    table.stacks(1)
    table.do("face_up_card", DEALER)
    assert table.ordered("void-round") == [{"round": 1, "clause": "MD3 13.A", "why": "a card lay face up"}]
    all_back(table, "MD3 13.A")
    plays_on(table)
    table = Croupier(MD3).manual()
    table.antes()
    table.deal_cards(2)
    table.do("drawn_in_error", DEALER, card("7C"))
    all_back(table, "MD3 13.A")
    table.do("collect", DEALER)
    table.ready_by_hand(1)


@pytest.mark.rule("MD3 13.B")
def test_an_unseen_card_drawn_in_error_is_the_next_card() -> None:
    table = Croupier(MD3).manual()
    with table.refused("MD3 13.B", "while none is dealt"):
        table.do("drawn_in_error", DEALER)
    table.antes()
    table.deal_cards(4)
    table.do("drawn_in_error", DEALER)
    assert table.table.round.reserved == 1
    assert table.procedure.three_card.next_to() == 3
    table.deal_cards(1)
    assert table.table.round.reserved == 0
    table.deal_cards()
    table.do("count_stub", DEALER, 43)
    table.show()
    assert not table.finish().void


@pytest.mark.rule("MD3 13.C")
def test_a_wrong_number_of_cards_voids_the_round() -> None:
    table = Croupier(MD3).automated()
    table.antes()
    table.stacks(1)
    table.stacks(1, cards_in=2)
    assert table.ordered("void-round") == [{"round": 1, "clause": "MD3 13.C", "why": "stack 2 has 2 cards"}]
    all_back(table, "MD3 13.C")
    plays_on(table)
    table = Croupier(MD3).automated()
    table.antes()
    table.stacks(1)
    table.do("drawn_in_error", DEALER)  # past the exit of the automated shoe
    all_back(table, "MD3 13.C")
    plays_on(table)
    table = Croupier(MD3).manual()
    table.antes()
    table.deal_cards()
    table.do("pass_stub", DEALER)
    table.do("wrong_number", DEALER, "seat 3 has four cards")
    all_back(table, "MD3 13.C")
    table.do("collect", DEALER)
    table.ready_by_hand(1)


@pytest.mark.rule("MD3 13.D")
@pytest.mark.parametrize("reason", ["shoe_failed", "power_cut"])
def test_a_shoe_that_stops_voids_the_round_and_is_emptied(reason: str) -> None:
    table = Croupier(MD3).automated()
    table.antes()
    table.stacks(2)
    table.device("voided_by_device", 1, reason)
    table.device("voided_by_device", 1, reason)  # said twice
    assert table.ordered("void-round") == []  # the device knows
    all_back(table, "MD3 13.D")
    plays_on(table)


@pytest.mark.rule("MD3 13.D")
def test_the_dealer_may_see_first_that_the_shoe_stopped() -> None:
    table = Croupier(MD3).automated()
    table.antes()
    with pytest.raises(Exception, match="round 1 is played"):
        table.device("voided_by_device", 9, "shoe_failed")
    table.do("shoe_failed", DEALER, "nothing comes out")
    table.device("voided_by_device", 1, "shoe_failed")
    all_back(table, "MD3 13.D")
    table.counted(Verdict.CARD_EXTRA)  # and its count still says that the pack is wrong
    table.do("empty_device", DEALER)
    table.do("collect", DEALER)
    assert [each.pack_id for each in table.table.packs()] == [2]
    manual = Croupier(MD3).manual()
    manual.antes()
    with manual.refused("MD3 13.D", "dealt by manual-shoe"):
        manual.do("shoe_failed", DEALER, "stuck")


@pytest.mark.rule("MD3 13.E")
def test_a_failed_device_is_marked_before_another_method_is_used() -> None:
    table = Croupier(MD3).automated()
    table.antes()
    table.stacks(1)
    table.device("unit_failed", DeviceUnit.SHUFFLER)  # the shuffler half never touches the round
    assert table.table.state == "dealing"
    table.device("unit_failed", DeviceUnit.SHOE)
    all_back(table, "MD3 13.D")
    table.do("empty_device", DEALER)
    table.do("collect", DEALER)
    with table.refused("MD3 13.E", "the shuffler failed and is not marked"):
        table.do("change_method", FLOOR, DealingMethod.MANUAL_SHOE)
    with table.refused("MD3 13.E"):
        table.do("start_shuffle", DEALER, 1, machine=False)
    table.do("mark_out_of_order", DEALER, DeviceUnit.SHUFFLER, "sign")
    with table.refused("MD3 13.E", "the shoe failed and is not marked"):
        table.do("change_method", FLOOR, DealingMethod.MANUAL_SHOE)
    table.do("mark_out_of_order", FLOOR, DeviceUnit.SHOE, "covered")
    with table.refused("MD3 9.A"):
        table.do("change_method", FLOOR, DealingMethod.HAND)
    table.do("change_method", FLOOR, DealingMethod.MANUAL_SHOE)
    with table.refused("MD3 3.B", "two packs without a shuffler"):
        table.do("start_shuffle", DEALER, 1, machine=False)
    table.do("remove_pack", FLOOR, 2, RemovalReason.FLOOR_ORDER, "no shuffler")
    table.ready_by_hand(1)
    table.antes()
    table.deal_cards()
    table.do("count_stub", DEALER, 43)
    table.show()
    table.finish()
    with table.refused("MD3 13.E", "out of order"):
        table.do("change_method", FLOOR, DealingMethod.AUTOMATED_SHOE)
    for unit in DeviceUnit:
        table.do("repaired", FLOOR, unit)
    with table.refused("MD3 13.E", "works"):
        table.do("mark_out_of_order", FLOOR, DeviceUnit.SHOE, "sign")
    table.do("change_method", FLOOR, DealingMethod.AUTOMATED_SHOE)


@pytest.mark.rule("MD3 13.E")
def test_no_round_begins_on_a_failed_device() -> None:
    table = Croupier(MD3).automated()
    table.device("unit_failed", DeviceUnit.SHOE)
    with table.refused("MD3 13.E", "mark it and change the method"):
        table.do("open_bets", DEALER)


@pytest.mark.rule("WA3 versions")
def test_a_device_that_is_not_allowed_does_not_play() -> None:
    table = Croupier(WA3)
    with table.refused("WA3 versions", "'Sabot' is not listed"):
        table.device("identify", "Sabot", VERSIONS)
    table.open(1)
    table.do("play_one_pack", FLOOR)
    with table.refused("WA3 versions", "is not listed"):
        table.do("start_shuffle", DEALER, 1, machine=True)
    table.ready_by_hand(1)
    with table.refused("WA3 versions", "is not listed"):
        table.do("open_bets", DEALER)
    table.device("identify", "i-Deal", VERSIONS)
    table.antes()


# -- memory ----------------------------------------------------------------------------------------


def test_a_restart_after_everything_that_happens_changes_nothing() -> None:
    ends = []
    for restarts in (False, True):
        table = Croupier(MD3, restarts)
        table.automated()
        table.play_automated()
        table.do("load", DEALER, 2)
        table.antes()
        table.stacks(2)
        table.device("voided_by_device", 2, "shoe_failed")
        table.do("empty_device", DEALER)
        table.machine_shuffle(1)
        table.do("collect", DEALER)
        table.do("load", DEALER, 1)
        table.machine_shuffle(2)
        settled = table.play_automated()
        ends.append((table.table.save(), settled.to_json()))
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda saved: saved.update(version=2), "version 2"),
        (lambda saved: saved.update(state="asleep"), "cannot be asleep"),
        (lambda saved: saved.update(state="dealing", round=None), "dealing without a round"),
        (lambda saved: saved["packs"][0].update(state="eaten"), "eaten"),
        (lambda saved: saved.pop("ruleset_sha256"), "no saved table"),
        (lambda saved: saved.update(ruleset_sha256="0" * 64), "another rule set: one that is not installed"),
        (lambda saved: saved.update(ruleset_sha256=load(WA3).sha256), f"another rule set: {WA3}, not {MD3}"),
    ],
)
def test_a_damaged_or_foreign_memory_is_not_restored(change: object, match: str) -> None:
    saved = json.loads(Croupier(MD3).automated().table.save())
    assert callable(change)
    change(saved)
    with pytest.raises(BadSave, match=match):
        TableProcedure.restore(load(MD3), json.dumps(saved))
    with pytest.raises(BadSave):
        TableProcedure.restore(load(MD3), "{")


def test_everything_is_logged_with_who_and_when() -> None:
    table = TableProcedure(load(MD3))
    anna = Attribution("Anna", TableRole.FLOOR, 1_800_000_000)
    table.open_table(anna)
    table.packs.receive_pack(anna, 1, "red")
    assert table.table.take_log() == ((anna, "open_table"), (anna, "receive 1"))
    assert table.table.take_log() == ()


def test_a_table_says_what_may_happen_now() -> None:
    table = Croupier(MD3).automated()
    assert "open_bets" in [row.action for row in table.table.expects()]
    assert [row.action for row in table.table.expects_of(2)][:1] == ["start_shuffle"]
    table.antes()
    with pytest.raises(WagerRefused, match="seat 1, ante"):
        table.do("place_wager", PLAYER, 1, "ante", 100)
