"""What single clauses ask of a table in play: who decides, what is owed, what is announced, what is cited."""

import pytest
from tests.table.croupier import DEALER, FLOOR, PLAYER, Croupier
from tests.table.operators import changed, with_royal_9

from sabot_table.procedure import TableRole
from sabot_table.procedure.vocabulary import DeviceUnit, RemovalReason, Verdict
from sabot_table.progressive import UNITS, Meters
from sabot_table.rule_text_files import packaged, rule_text
from sabot_table.rule_texts import DealingMethod

MD3, WA3 = "md-three-card-baccarat", "wa-three-card-baccarat"
MINI, SIX = "md-mini-baccarat", "baccarat-six-deck"
VERSIONS = {"Mico32": "3.3.027", "CardRec": "4.0.018", "RNG": "1.002.004"}


# -- Three Card Baccarat ---------------------------------------------------------------------------


@pytest.mark.rule("MD3 10.C")
@pytest.mark.parametrize("advice", [Verdict.MISDEALT, Verdict.CARD_MISSING, Verdict.CARD_EXTRA])
@pytest.mark.parametrize("found", [Verdict.MISDEALT, Verdict.CARD_MISSING, Verdict.CARD_EXTRA])
def test_after_a_wrong_count_the_dealer_determines_and_the_machine_advises(
    advice: Verdict, found: Verdict
) -> None:
    table = Croupier(MD3, restarts=True).automated()
    table.antes()
    table.stacks()
    with table.refused("MD3 10.C", "without a wrong count"):
        table.do("determine", DEALER, found)
    table.device("end_round", 1, advice)
    assert (table.table.state, table.table.round.advice) == ("counting", advice)
    assert table.ordered("determine") == [{"round": 1, "advice": advice}]
    assert table.ordered("return-wager") == []
    with table.refused("MD3 10.C", "this is for dealer"):
        table.device("determine", found)
    with table.refused("MD3 10.C", "called correct"):
        table.do("determine", DEALER, Verdict.CORRECT)
    table.do("determine", DEALER, found)
    assert (table.table.state, table.table.round.void_clause) == ("voided", "MD3 10.C")
    assert len(table.ordered("return-wager")) == 2
    table.do("collect", DEALER)
    left = [each["pack"] for each in table.ordered("remove-pack")]
    assert left == ([] if found is Verdict.MISDEALT else [1])


@pytest.mark.rule("MD3 10.C")
def test_a_dealers_verdict_of_a_wrong_count_is_the_determination() -> None:
    table = Croupier(MD3).automated()
    table.antes()
    table.stacks()
    with table.refused("MD3 10.C", "this is for device"):
        table.do("end_round", FLOOR, 1, Verdict.MISDEALT)
    table.do("end_round", DEALER, 1, Verdict.CARD_EXTRA)
    assert (table.table.state, table.table.round.void_clause) == ("voided", "MD3 10.C")
    table.do("collect", DEALER)
    assert [each.pack_id for each in table.table.packs()] == [2]


@pytest.mark.rule("MD3 9.B")
@pytest.mark.rule("MD3 9.D")
@pytest.mark.rule("MD3 8.B")
@pytest.mark.parametrize(
    ("method", "dealt", "clause"), [("hand", "MD3 9.B", "MD3 9.D"), ("manual-shoe", "MD3 8.D", "MD3 8.F")]
)
def test_cards_and_the_count_of_a_stub_cite_the_chapter_of_the_method(
    method: str, dealt: str, clause: str
) -> None:
    table = Croupier(MD3).open(1)
    table.do("play_one_pack", FLOOR)
    table.do("change_method", FLOOR, DealingMethod(method))
    table.machine_shuffle(1)
    table.do("load", DEALER, 1)
    table.antes()
    with table.refused(dealt, "the next goes to seat 1"):
        table.do("deal_card_to", DEALER, 0)
    table.deal_cards()
    with table.refused(clause, "count the cards of every hand"):
        table.do("count_stub", DEALER, 42)
    with table.refused(clause, "count those of seat 1"):
        table.do("count_stub", DEALER, 42, {1: 3})
    assert table.do("count_stub", DEALER, 42, {1: 4, 3: 3, 0: 3}) is Verdict.MISDEALT
    assert table.table.round.void_clause == clause


@pytest.mark.rule("MD3 3.B")
@pytest.mark.rule("MD3 13.E")
def test_without_a_shuffler_one_deck_is_left_shuffled_by_hand_and_cut() -> None:
    table = Croupier(MD3).automated()
    table.device("unit_failed", DeviceUnit.SHUFFLER)
    table.do("mark_out_of_order", DEALER, DeviceUnit.SHUFFLER, "sign")
    table.do("change_method", FLOOR, DealingMethod.MANUAL_SHOE)
    with table.refused("MD3 3.B", "two packs without a shuffler"):
        table.do("open_bets", DEALER)
    table.do("remove_pack", FLOOR, 2, RemovalReason.FLOOR_ORDER)
    with table.refused("MD3 3.B", "a second pack without a shuffler"):
        table.do("receive_pack", FLOOR, 3, "blue")
    table.antes()
    table.deal_cards()
    table.do("pass_stub", DEALER)
    table.show()
    table.finish()
    table.hand_shuffle(1)
    with table.refused("MD3 5.C", "not cut"):
        table.do("load", DEALER, 1)
    table.do("cut", DEALER, 1, 20)
    table.do("load", DEALER, 1)
    table.antes()


@pytest.mark.rule("MD3 3.B")
@pytest.mark.parametrize("back", ["red", "Red", "  RED ", "rEd"])
def test_two_names_of_one_colour_are_one_colour(back: str) -> None:
    table = Croupier(MD3)
    table.do("open_table", FLOOR)
    with table.refused("MD3 3.B", "say the colour"):
        table.do("receive_pack", FLOOR, 1, "  ")
    table.do("receive_pack", FLOOR, 1, "red")
    with table.refused("MD3 3.B", "another colour"):
        table.do("receive_pack", FLOOR, 2, back)
    table.do("receive_pack", FLOOR, 2, "dark red")


@pytest.mark.rule("MD3 13.A")
@pytest.mark.rule("MD3 13.C")
@pytest.mark.rule("MD3 13.D")
@pytest.mark.parametrize("key", packaged())
def test_voids_that_people_see_and_jams_without_a_tool_are_the_dealers_and_countersigned(key: str) -> None:
    rows = rule_text(key).rows
    seen = [each for each in ("face_up_card", "wrong_number", "shoe_failed", "too_few_cards") if each in rows]
    assert len(seen) == 3
    for action in (*seen, "clear_jam"):
        assert TableRole.DEALER in rows[action].who
        assert rows[action].countersign
    assert rows["clear_jam_with_tool"].who == (TableRole.SERVICE,)
    assert not rows["settle"].countersign
    assert TableRole.DEALER not in rows["void"].who


@pytest.mark.parametrize("key", packaged())
def test_the_floor_countersigns_these_acts_and_no_others(key: str) -> None:
    text = rule_text(key)
    rows = (*text.rows.values(), *text.pack_rows.values())
    own = "face_up_card" if "face_up_card" in text.rows else "too_few_cards"
    signed = {row.action for row in rows if row.countersign}
    assert signed == {own, "wrong_number", "shoe_failed", "clear_jam"}


@pytest.mark.rule("MD3 13.D")
def test_a_jam_that_needs_a_tool_is_cleared_by_service() -> None:
    table = Croupier(MD3).automated()
    table.do("clear_jam", DEALER, DeviceUnit.SHOE)
    with table.refused("MD3 13.D", "this is for service"):
        table.do("clear_jam", DEALER, DeviceUnit.SHOE, tool=True)
    table.do("clear_jam", TableRole.SERVICE, DeviceUnit.SHOE, tool=True)
    assert [action for _, action in table.table.take_log()][-2:] == [
        "clear_jam shoe",
        "clear_jam_with_tool shoe",
    ]


@pytest.mark.rule("WA3 house")
@pytest.mark.rule("BAC house")
def test_a_text_that_says_nothing_of_voids_leaves_them_to_the_house() -> None:
    three = Croupier(WA3)
    three.device("identify", "i-Deal", VERSIONS)
    three.automated()
    three.antes()
    three.do("wrong_number", DEALER, "seat 1 has four cards")
    assert three.table.round.void_clause == "WA3 house"
    mini = Croupier(SIX).open(1, seats=(2,))
    mini.machine_shuffle(1)
    mini.do("load", DEALER, 1)
    mini.bet((2, "player", 1_000))
    mini.do("too_few_cards", DEALER)
    assert mini.table.round.void_clause == "BAC house"


@pytest.mark.rule("MD3 5.G")
@pytest.mark.rule("WA3 approval")
@pytest.mark.parametrize(("name", "clause"), [(MD3, "MD3 5.G"), (WA3, "WA3 approval")])
def test_a_device_that_is_not_approved_is_refused(name: str, clause: str) -> None:
    table = Croupier(changed(name, dealing={"approved": ["i-Deal"]})).open(1)
    table.do("play_one_pack", FLOOR)
    with table.refused(clause, "'Sabot' is not approved"):
        table.device("identify", "Sabot", VERSIONS)
    with table.refused(clause, "use one of i-Deal"):
        table.do("start_shuffle", DEALER, 1, machine=True)
    table.ready_by_hand(1)
    with table.refused(clause, "not approved"):
        table.do("open_bets", DEALER)
    table.device("identify", "i-Deal", VERSIONS)
    table.antes()


# -- mini baccarat ---------------------------------------------------------------------------------


@pytest.mark.rule("MDM 3.B")
def test_with_a_shuffler_two_batches_are_there_and_one_only_while_it_failed() -> None:
    table = Croupier(MINI).open(1, seats=(2,))
    table.machine_shuffle(1)
    table.load_shoe(1)
    with table.refused("MDM 3.B", "one alone is for a failed shuffler"):
        table.do("open_bets", DEALER)
    with table.refused("MDM 3.B", "one batch alone is for a failed shuffler"):
        table.do("play_one_pack", FLOOR)
    table.device("unit_failed", DeviceUnit.SHUFFLER)
    table.do("mark_out_of_order", FLOOR, DeviceUnit.SHUFFLER, "sign")
    table.do("play_one_pack", FLOOR)
    table.play_coup()


@pytest.mark.rule("MDM 3.B")
def test_a_table_with_one_batch_has_no_shuffler() -> None:
    table = Croupier(changed(MINI, cards={"alternating": False})).open(1, seats=(2,))
    with table.refused("MDM 3.B", "shuffle by hand"):
        table.do("start_shuffle", DEALER, 1, machine=True)
    table.hand_shuffle(1)
    table.load_shoe(1)
    table.play_coup()


@pytest.mark.rule("MDM 5.A")
def test_the_floor_verifies_a_shuffle_by_hand_before_the_cut() -> None:
    table = Croupier(changed(MINI, cards={"alternating": False}), restarts=True).open(1, seats=(2,))
    for _ in range(2):
        table.do("start_shuffle", FLOOR, 1, machine=False)
        table.do("finish_shuffle", DEALER, 1)
        with table.refused("MDM 5.A", "before the floor verified"):
            table.do("cut", PLAYER, 1, 100, seat=2)
        with table.refused("MDM 5.A", "this is for floor"):
            table.do("verify_shuffle", DEALER, 1)
        table.do("verify_shuffle", FLOOR, 1)
    table.do("cut", PLAYER, 1, 100, seat=2)
    machine = Croupier(MINI).open(2)
    machine.machine_shuffle(1)
    with machine.refused("MDM 5.A", "not shuffled by hand"):
        machine.do("verify_shuffle", FLOOR, 1)


@pytest.mark.rule("MDM 8.A")
@pytest.mark.rule("MDM 8.D")
@pytest.mark.rule("MDM 8.E")
@pytest.mark.rule("MDM 8.F")
@pytest.mark.rule("MDM 9.A")
@pytest.mark.rule("MDM 9.B")
def test_the_points_of_both_hands_are_announced_before_third_cards_and_at_the_end() -> None:
    table = Croupier(MINI).shoe()
    table.bet((2, "player", 1_000))
    table.ordered("announce")
    table.four("2H 2D", "KH 4S")
    assert table.ordered("announce") == [{"text": "Player 4, Banker 4"}]
    table.third("player", "3C")
    table.third("banker", "4C")
    assert table.ordered("announce") == [{"text": "Player 7, Banker 8: Banker wins"}]
    assert (table.table.round.player, table.table.round.banker) == (["2H", "2D", "3C"], ["KH", "4S", "4C"])


@pytest.mark.rule("MDM 8.C")
def test_a_wrong_number_of_cards_in_mini_baccarat_is_not_a_lack_of_cards() -> None:
    table = Croupier(MINI).shoe()
    table.bet((2, "player", 1_000))
    table.do("wrong_number", DEALER, "the Banker has three cards too early")
    assert table.table.round.void_clause == "MDM 8.C"
    for reason, clause in (
        ("wrong_number", "MDM 8.C"),
        ("shoe_failed", "MDM 13.E"),
        ("floor_order", "MDM 8"),
    ):
        table = Croupier(changed(MINI, dealing={"methods": ["automated-shoe"]})).shoe()
        table.bet((2, "player", 1_000))
        table.device("voided_by_device", 1, reason)
        assert table.table.round.void_clause == clause


@pytest.mark.rule("MDM 9.D")
def test_a_void_last_hand_was_not_the_last() -> None:
    table = Croupier(MINI).shoe()
    table.do("cover_card", DEALER)
    table.play_coup()
    table.do("announce_last_hand", DEALER)
    table.bet((2, "player", 1_000))
    table.do("wrong_number", DEALER, "five cards")
    table.do("collect", DEALER)
    table.play_coup()
    with table.refused("MDM 9.D", "another hand from this shoe"):
        table.do("open_bets", DEALER)


@pytest.mark.rule("MDM 12.D")
def test_vigorish_is_owed_until_somebody_collected_it() -> None:
    table = Croupier(changed(MINI, vigorish={"collected": "marked"}), restarts=True).shoe(seats=(2, 5))
    table.bet((2, "player", 1_000), (5, "banker", 4_000))
    table.four("2H KD", "9S KC")
    table.finish()
    table.do("leave", PLAYER, 5)
    assert table.ordered("collect-vigorish") == [{"seat": 5, "cents": 200}]
    assert table.table.memory.marked == {5: 200}
    with table.refused("MDM 12.D", "its marker stays"):
        table.do("sit", PLAYER, 5)
    with table.refused("MDM 12.D", "vigorish is owed"):
        table.do("close_table", FLOOR)
    assert table.do("collect_vigorish", DEALER, 5) == 200
    table.do("sit", PLAYER, 5)


@pytest.mark.rule("MDM 12.N")
@pytest.mark.rule("MDM 12.O")
def test_a_must_hit_meter_at_its_maximum_is_won_now_and_keeps_what_came_beyond() -> None:
    house = with_royal_9()
    table = Croupier(house).shoe()
    terms = house.royal_9
    assert terms is not None
    start = Meters.initial(terms)
    almost = start.with_contribution(
        (20_000 - 10_000) * 50 - 500
    )  # one more stake of 500 at 2 % reaches 200.00
    assert not almost.must_hit_due
    table.table.memory.meters = almost.with_contribution(450).save()
    table.bet((2, "player", 1_000), (2, "royal-9", 500))
    table.four("7H KD", "6S KC")
    with table.refused("MDM 12.N", "wait until the progressive controller"):
        table.do("settle", DEALER)
    table.do("must_hit", TableRole.CONTROLLER, 2)
    settled = table.finish()
    assert [line.pays_cents for line in settled.lines if line.wager == "must-hit"] == [20_000]
    assert settled.meters is not None
    assert settled.meters.by_name["must-hit"].units == 10_000 * UNITS + 450 * 200
    table.play_coup()  # without a Royal 9 wager nobody can win it
