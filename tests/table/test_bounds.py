"""The bounds of each text, played at a table or given to a rule set: on the bound, and one step beyond it."""

import pytest
from tests.table.croupier import DEALER, FLOOR, Croupier
from tests.table.operators import changed
from tests.table.outcomes import coup

from sabot_table.cards import card, cards
from sabot_table.errors import RuleSetError
from sabot_table.ruleset import load
from sabot_table.settlement import DealtHands, settle

MD3, WA3 = "md-three-card-baccarat", "wa-three-card-baccarat"
MINI, SIX = "md-mini-baccarat", "baccarat-six-deck"
WAGER = {MD3: "ante", WA3: "ante", MINI: "player", SIX: "player"}
VERSIONS = {"Mico32": "3.3.027", "CardRec": "4.0.018", "RNG": "1.002.004"}


def opened(name: str, packs: int = 2) -> Croupier:
    """A table with a shuffler and a manual shoe, packs that wait for their first shuffle, and one player."""
    house = changed(name, cards={"alternating": True}, dealing={"methods": ["manual-shoe"]})
    table = Croupier(house)
    table.device("identify", "i-Deal", VERSIONS)
    return table.open(packs, seats=(2,))


def void_round(table: Croupier, name: str) -> None:
    """A round that is void at once: its pack goes to the discards where each round has its shuffle."""
    table.bet((2, WAGER[name], 1_000))
    table.do("wrong_number", DEALER, "two cards")
    table.do("collect", DEALER)


@pytest.mark.rule("MD3 3.A")
@pytest.mark.rule("MD3 2.A")
@pytest.mark.rule("MD3 3.C")
@pytest.mark.rule("MDM 3.A")
@pytest.mark.rule("MDM 3.C")
@pytest.mark.rule("BAC shoe")
@pytest.mark.parametrize(
    ("name", "part", "key", "least", "most", "clause"),
    [
        (MD3, "cards", "decks", 1, 1, "MD3 3.A"),
        (WA3, "cards", "decks", 1, 1, "WA3 sets"),
        (MINI, "cards", "decks", 6, 8, "MDM 3.A"),
        (SIX, "cards", "decks", 6, 6, "BAC shoe"),
        (MD3, "seats", "count", 6, 6, "MD3 2.A"),
        (WA3, "seats", "count", 1, 16, "WA3 house"),
        (MINI, "seats", "count", 1, 9, "MDM 2.A"),
        (SIX, "seats", "count", 1, 14, "BAC house"),
        (MD3, "cards", "hours_shoe", 1, 8, "MD3 3.C"),
        (MD3, "cards", "hours_hand", 1, 4, "MD3 3.C"),
        (MINI, "cards", "hours_shoe", 1, 24, "MDM 3.C"),
    ],
)
def test_decks_seats_and_hours_of_a_rule_set_are_within_its_text(
    name: str, part: str, key: str, least: int, most: int, clause: str
) -> None:
    for within in {least, most}:
        assert getattr(getattr(changed(name, **{part: {key: within}}), part), key) == within
    for beyond in (least - 1, most + 1):
        with pytest.raises(RuleSetError) as refused:
            changed(name, **{part: {key: beyond}})
        problem = next(each for each in refused.value.problems if each.where == f"{part}.{key}")
        assert clause in problem.do or beyond == 0


@pytest.mark.rule("MD3 3.A")
@pytest.mark.rule("MD3 3.B")
@pytest.mark.parametrize("name", [MD3, WA3, SIX])
def test_one_pack_alone_may_be_played_beside_a_shuffler(name: str) -> None:
    table = opened(name, packs=1)
    table.machine_shuffle(1)
    table.do("load", DEALER, 1)
    void_round(table, name)
    table.do("play_one_pack", FLOOR)
    table.machine_shuffle(1)
    table.do("load", DEALER, 1)
    void_round(table, name)


@pytest.mark.rule("MD3 5.C")
@pytest.mark.rule("BAC shoe")
@pytest.mark.parametrize(
    ("name", "machines", "others", "clause"),
    [
        (MD3, False, True, "MD3 5.C"),
        (WA3, False, True, "WA3 house"),
        (MINI, True, True, "MDM 5.B"),
        (SIX, False, False, ""),
    ],
)
def test_which_packs_are_cut_before_they_are_loaded(
    name: str, machines: bool, others: bool, clause: str
) -> None:
    by_machine, by_hand, prepared = opened(name), opened(name, packs=1), opened(name, packs=0)
    by_machine.machine_shuffle(1)
    by_hand.hand_shuffle(1)
    prepared.do("receive_pack", FLOOR, 1, "red")
    prepared.do("accept_prepared", FLOOR, 1)
    for table, is_cut in ((by_machine, machines), (by_hand, others), (prepared, others)):
        if is_cut:
            with table.refused(clause, "is not cut"):
                table.do("load", DEALER, 1)
        else:
            table.do("load", DEALER, 1)


@pytest.mark.rule("MD3 5.D")
@pytest.mark.parametrize(("name", "clause"), [(MD3, "MD3 5.D"), (WA3, "WA3 house")])
def test_the_dealer_cuts_at_least_ten_from_the_top(name: str, clause: str) -> None:
    table = opened(name, packs=1)
    table.hand_shuffle(1)
    with table.refused(clause, "a cut 9 from the top"):
        table.do("cut", DEALER, 1, 9)
    with table.refused(clause, "the dealer cuts"):
        table.do("cut", DEALER, 1, 10, seat=2)
    table.do("cut", DEALER, 1, 10)
    table.do("load", DEALER, 1)


@pytest.mark.rule("MD3 8.E")
@pytest.mark.parametrize(("name", "clause"), [(MD3, "MD3 8.E"), (WA3, "WA3 house")])
def test_the_stub_of_each_fifth_round_is_counted(name: str, clause: str) -> None:
    table = opened(name, packs=1)
    table.do("play_one_pack", FLOOR)
    for number in range(1, 6):
        table.ready_by_hand(1)
        table.bet((2, "ante", 1_000))
        table.deal_cards()
        if number < 5:
            table.do("pass_stub", DEALER)
            table.do("wrong_number", DEALER, "two cards")
            table.do("collect", DEALER)
    with table.refused(clause, "count it now"):
        table.do("pass_stub", DEALER)


@pytest.mark.rule("MD3 5.F")
@pytest.mark.rule("MD3 5.H")
@pytest.mark.rule("MDM 5.H")
@pytest.mark.parametrize(
    ("name", "place", "stays"),
    [
        *(
            (name, place, "if counted")
            for name in (MD3, WA3, SIX)
            for place in ("shuffled", "loaded", "discards")
        ),
        *((MINI, place, "always") for place in ("shuffled", "cut", "covered")),
        *((MINI, place, "never") for place in ("loaded", "playing", "discards")),
    ],
)
@pytest.mark.parametrize("counted", [True, False])
def test_what_stays_at_an_idle_table_of_the_cards_that_a_machine_shuffled(
    name: str, place: str, stays: str, counted: bool
) -> None:
    """The device of MD3 5.G counts; mini baccarat spreads its shoe and keeps the batch that is stored."""
    table = opened(name)
    for pack in (1, 2):
        table.do("start_shuffle", DEALER, pack, machine=True)
        table.device("finish_shuffle", pack, table.table.pack_cards if counted else None)
    for step in (
        *((("cut", 1, 100, 2), ("place_cover", 1, 14)) if name == MINI else ()),
        ("load", 1),
        *((("burn", 1, card("3C"), 3), ("end_shoe",)) if name == MINI else (("round",),)),
    ):
        if table.table.pack(1).state == place:
            break
        if step == ("round",):
            void_round(table, name)
        else:
            table.do(step[0], DEALER, *step[1:])
    assert table.table.pack(1).state == place
    table.do("idle", DEALER)
    kept = stays == "always" or (stays == "if counted" and counted)
    assert table.table.pack(1).state == (place if kept else "spread")
    assert (1 in [each["pack"] for each in table.ordered("spread")]) is not kept


@pytest.mark.rule("MDM 11.B")
@pytest.mark.parametrize("name", [MINI, SIX])
def test_losing_wagers_are_taken_before_winners_are_paid_from_the_highest_seat_down(name: str) -> None:
    """The six-deck text names no order, and that of mini baccarat is used."""
    made = {
        seat: {wager: 2_000} for seat, wager in ((2, "player"), (5, "banker"), (7, "player"), (8, "banker"))
    }
    settled = settle(load(name), made, coup("8H KD", "9S KC"))
    assert [line.seat for line in settled.lines] == [7, 2, 8, 5]
    first_win = next(step.do for step in settled.steps() if step.seat == 8)
    assert first_win == "vigorish"


@pytest.mark.rule("MDM 12.B")
def test_a_tie_pays_eight_unless_the_operator_chose_more() -> None:
    for chosen, pays in ({}, 8), ({"pays": 8}, 8), ({"pays": 9}, 9):
        house = changed(MINI, wagers={"tie": chosen})
        assert settle(house, {1: {"tie": 1_000}}, coup("9H KD", "9S KC")).lines[0].pays_cents == pays * 1_000
    with pytest.raises(RuleSetError, match=r"MDM 12\.B"):
        changed(MINI, wagers={"tie": {"pays": 7}})


@pytest.mark.rule("MD3 12.A")
@pytest.mark.rule("MDM 12.C")
@pytest.mark.rule("WA3 ante")
@pytest.mark.rule("BAC payouts")
@pytest.mark.parametrize(("name", "wager"), [(MD3, "ante"), (WA3, "ante"), (MINI, "banker"), (SIX, "banker")])
def test_vigorish_is_a_twentieth_of_the_win(name: str, wager: str) -> None:
    hands = DealtHands(cards("7H KS QC"), {1: cards("9H JH QD")})
    line = settle(
        load(name), {1: {wager: 2_000}}, hands if wager == "ante" else coup("8H KD", "9S KC")
    ).lines[0]
    assert (line.pays_cents, line.vig_cents) == (2_000, 100)
