"""A day under Washington's and under the six-deck text: every act happens once and cites its own text."""

import pytest
from tests.table.croupier import DEALER, FLOOR, PLAYER, Croupier
from tests.table.operators import changed

from sabot_table.cards import card, cards
from sabot_table.procedure import TableRole
from sabot_table.procedure.vocabulary import DeviceUnit, RemovalReason, Verdict
from sabot_table.rule_texts import DealingMethod
from sabot_table.settlement import CardSource

WA3, SIX = "wa-three-card-baccarat", "baccarat-six-deck"
VERSIONS = {"Mico32": "3.3.027", "CardRec": "4.0.018", "RNG": "1.002.004"}


def only(
    table: Croupier, clause: str, action: str, right: TableRole, *args: object, **details: object
) -> None:
    """An act is done by its role; the other roles are refused by its clause."""
    wrong = next(each for each in (PLAYER, TableRole.SERVICE) if each is not right)
    with table.refused(clause, "this is for"):
        table.do(action, wrong, *args, **details)
    table.do(action, right, *args, **details)


def open_pack(table: Croupier, house: str, pack: int, back: str) -> None:
    """A pack goes through the opening, which the text leaves to the house."""
    only(table, house, "receive_pack", FLOOR, pack, back)
    only(table, house, "inspect", DEALER, pack)
    only(table, house, "verify", FLOOR, pack)
    only(table, house, "spread", DEALER, pack)
    only(table, house, "wash", DEALER, pack)
    only(table, house, "stack", DEALER, pack)


def fail_and_mark(table: Croupier, house: str) -> None:
    """Both halves fail, are marked, and are repaired by the floor."""
    for unit in DeviceUnit:
        only(table, house, "unit_failed", DEALER, unit)
        with table.refused(house, "is not marked"):
            table.do("change_method", FLOOR, DealingMethod.MANUAL_SHOE)
        only(table, house, "mark_out_of_order", DEALER, unit, "sign")
    only(table, house, "change_method", FLOOR, DealingMethod.MANUAL_SHOE)
    for unit in DeviceUnit:
        only(table, house, "repaired", FLOOR, unit)
    only(table, house, "clear_jam", DEALER, DeviceUnit.SHOE)
    with table.refused(house, "this is for service"):
        table.do("clear_jam", DEALER, DeviceUnit.SHOE, tool=True)
    table.do("clear_jam", TableRole.SERVICE, DeviceUnit.SHOE, tool=True)


def void(table: Croupier, why: str, clause: str) -> None:
    """The round is void by this clause; its cards come out and are collected."""
    assert (table.table.state, table.table.round.void_clause) == ("voided", clause), why
    if table.table.round.cards_in_device:
        with table.refused(clause, "take them out"):
            table.do("collect", DEALER)
        only(table, clause, "empty_device", DEALER)
    only(table, clause, "collect", DEALER)


@pytest.mark.rule("WA3 house")
@pytest.mark.rule("WA3 ante")
@pytest.mark.rule("WA3 order")
def test_a_day_in_washington() -> None:
    house = "WA3 house"
    table = Croupier(WA3)
    only(table, "WA3 versions", "identify", FLOOR, "i-Deal", VERSIONS)
    only(table, house, "open_table", FLOOR)
    open_pack(table, house, 1, "red")
    open_pack(table, house, 2, "blue")
    with table.refused(house, "third pack"):
        table.do("receive_pack", FLOOR, 3, "green")
    with table.refused(house, "there is no pack 9"):
        table.do("inspect", DEALER, 9)
    for pack in (1, 2):
        only(table, house, "start_shuffle", DEALER, pack, machine=True)
        with table.refused(house, "ended by hand"):
            table.do("finish_shuffle", DEALER, pack)
        table.device("finish_shuffle", pack, 52)
    with table.refused(house, "needs no cut"):
        table.do("cut", DEALER, 1, 26)
    only(table, house, "load", DEALER, 1)
    for seat in (1, 3, 5):
        table.do("sit", PLAYER, seat)
    table.do("leave", PLAYER, 5)
    with table.refused("WA3 ante", "owes no vigorish"):
        table.do("collect_vigorish", DEALER, 1)
    # bets
    only(table, "WA3 ante", "open_bets", DEALER)
    table.do("place_wager", PLAYER, 1, "ante", 2_000)
    table.do("withdraw_wager", PLAYER, 1, "ante")
    with table.refused("WA3 ante", "this is for dealer or floor"):
        table.do("return_bets", PLAYER)
    table.do("return_bets", DEALER)
    # a round
    table.antes()
    with table.refused("WA3 ante", "after"):
        table.do("place_wager", PLAYER, 1, "tie", 500)
    table.stacks()
    with table.refused(house, "wait for its count"):
        table.do("pass_stub", DEALER)
    table.counted()
    with table.refused("WA3 order", "say who saw them"):
        table.do("reveal", DEALER, cards("7H KS QC"), {}, CardSource.READER)
    table.show()
    right = {1: cards("2D 3D 10C"), 3: cards("9H JH QD")}
    only(table, "WA3 order", "retype_hands", FLOOR, cards("7H KS QC"), right)
    only(table, "WA3 order", "settle", DEALER)
    only(table, house, "collect", DEALER)
    table.machine_shuffle(1)
    # voids
    for report, clause in (("wrong_number", house), ("shoe_failed", house), ("face_up_card", house)):
        pack = 2 if table.table.memory.last_pack == 1 else 1
        table.do("load", DEALER, pack)
        table.antes()
        table.stacks(1)
        only(table, clause, report, DEALER, *([] if report == "face_up_card" else ["seen"]))
        void(table, report, clause)
        table.machine_shuffle(pack)
    for reason in ("face_up_card", "stack_disturbed", "floor_order", "shoe_failed"):
        pack = 2 if table.table.memory.last_pack == 1 else 1
        table.do("load", DEALER, pack)
        table.antes()
        with table.refused(house, "this is for"):
            table.do("voided_by_device", DEALER, table.table.round.round_id, reason)
        table.device("voided_by_device", table.table.round.round_id, reason)
        table.device("end_round", table.table.round.round_id, Verdict.CORRECT)
        void(table, reason, house)
        table.machine_shuffle(pack)
    # a wrong count: the dealer determines, the pack leaves
    pack = 2 if table.table.memory.last_pack == 1 else 1
    table.do("load", DEALER, pack)
    table.antes()
    table.stacks()
    table.device("end_round", table.table.round.round_id, Verdict.CARD_MISSING)
    only(table, house, "determine", DEALER, Verdict.CARD_MISSING)
    void(table, "count", house)
    assert table.ordered("remove-pack")[-1]["clause"] == house
    # one pack from the manual shoe
    other = table.table.packs()[0].pack_id
    only(table, house, "play_one_pack", FLOOR)
    fail_and_mark(table, house)
    table.do("start_shuffle", FLOOR, other, machine=False)
    table.do("finish_shuffle", DEALER, other)
    with table.refused(house, "not cut"):
        table.do("load", DEALER, other)
    only(table, house, "cut", DEALER, other, 20)
    only(table, house, "order_recut", FLOOR, other)
    table.do("cut", DEALER, other, 20)
    table.do("load", DEALER, other)
    table.antes()
    with table.refused(house, "the next goes to seat 1"):
        table.do("deal_card_to", DEALER, 3)
    table.do("drawn_in_error", DEALER)
    table.deal_cards()
    with table.refused(house, "count the cards of every hand"):
        table.do("count_stub", DEALER, 40)
    only(table, house, "count_stub", DEALER, 43)
    table.show()
    table.finish()
    table.do("remove_pack", FLOOR, other, RemovalReason.HOURS)
    assert table.ordered("remove-pack")[-1]["clause"] == house
    only(table, house, "idle", DEALER)
    only(table, house, "player_arrives", DEALER)
    only(table, house, "close_table", FLOOR)


@pytest.mark.rule("BAC house")
@pytest.mark.rule("BAC shoe")
@pytest.mark.rule("BAC third-card")
def test_a_day_with_six_decks() -> None:
    house = "BAC house"
    table = Croupier(changed(SIX, dealing={"methods": ["automated-shoe", "manual-shoe"]}))
    only(table, house, "open_table", FLOOR)
    only(table, house, "identify", FLOOR, "any", {})
    open_pack(table, house, 1, "red")
    with table.refused(house, "second pack"):
        table.do("receive_pack", FLOOR, 2, "blue")
    with table.refused("BAC shoe", "there is no pack 9"):
        table.do("inspect", DEALER, 9)
    only(table, house, "play_one_pack", FLOOR)
    table.do("sit", PLAYER, 2)
    table.do("sit", PLAYER, 5)
    table.do("leave", PLAYER, 5)
    with table.refused("BAC payouts", "owes no vigorish"):
        table.do("collect_vigorish", DEALER, 2)

    def ready() -> None:
        table.do("start_shuffle", DEALER, 1, machine=True)
        table.device("finish_shuffle", 1, 312)
        table.do("load", DEALER, 1)

    only(table, "BAC shoe", "start_shuffle", DEALER, 1, machine=True)
    with table.refused("BAC shoe", "ended by hand"):
        table.do("finish_shuffle", DEALER, 1)
    table.device("finish_shuffle", 1, 312)
    only(table, "BAC shoe", "load", DEALER, 1)
    only(table, "BAC wagers", "open_bets", DEALER)
    table.do("place_wager", PLAYER, 2, "player", 1_000)
    with table.refused("BAC wagers", "is not offered"):
        table.do("place_wager", PLAYER, 2, "lucky-6", 1_000)
    table.do("withdraw_wager", PLAYER, 2, "player")
    table.do("return_bets", FLOOR)
    # a coup with third cards, and everything that may happen to its cards
    table.bet((2, "player", 1_000))
    with table.refused("BAC wagers", "after"):
        table.do("place_wager", PLAYER, 2, "tie", 500)
    only(table, house, "card_exposed", DEALER, card("5D"))
    table.four("2H 2D", "KH 4S")
    with table.refused("BAC third-card", "the player draws"):
        table.third("banker", "5C")
    only(table, "BAC third-card", "third_card", DEALER, "player", card("3C"))
    table.third("banker", "4C")
    only(table, house, "drawn_in_error", DEALER)
    only(table, house, "retype_coup", FLOOR, cards("9H KD"), cards("2S KC"))
    only(table, house, "unauthorised_third", DEALER, None)
    only(table, "BAC wagers", "settle", DEALER)
    only(table, house, "collect", DEALER)
    # a simulated round
    ready()
    table.do("face_up_card", DEALER, card("5D"))
    with table.refused(house, "play the simulated round first"):
        table.do("open_bets", DEALER)
    only(table, house, "begin_simulated", DEALER)
    table.four("5D KD", "2S 6C")
    assert table.table.state == "collecting"
    table.do("collect", DEALER)
    # voids
    for report in ("wrong_number", "shoe_failed", "too_few_cards"):
        ready()
        table.bet((2, "player", 1_000))
        only(table, house, report, DEALER, *([] if report == "too_few_cards" else ["seen"]))
        void(table, report, house)
    for reason in ("face_up_card", "wrong_number", "stack_disturbed", "floor_order", "shoe_failed"):
        ready()
        table.bet((2, "player", 1_000))
        with table.refused(house, "this is for"):
            table.do("voided_by_device", DEALER, table.table.round.round_id, reason)
        table.device("voided_by_device", table.table.round.round_id, reason)
        void(table, reason, house)
    fail_and_mark(table, house)
    with table.refused("BAC shoe", "deals by automated-shoe"):
        table.do("change_method", FLOOR, DealingMethod.HAND)
    table.do("remove_pack", FLOOR, 1, RemovalReason.DAMAGED)
    assert table.ordered("remove-pack")[-1]["clause"] == house
    open_pack(table, house, 2, "red")
    table.machine_shuffle(2, 311)
    assert table.ordered("remove-pack")[-1]["clause"] == "BAC shoe"
    table.do("receive_pack", FLOOR, 3, "red")
    only(table, house, "accept_prepared", FLOOR, 3)
    only(table, house, "idle", DEALER)
    only(table, house, "player_arrives", DEALER)
    only(table, house, "close_table", FLOOR)
