"""Royal 9: its lines, its meters, and Must Hit."""

import pytest
from tests.table.operators import with_royal_9
from tests.table.outcomes import coup

from sabot_table.errors import BadSave, RuleViolation, WagerRefused
from sabot_table.progressive import UNITS, Meters
from sabot_table.settlement import Settlement, SettlementLine, settle, settle_void

HOUSE = with_royal_9("A")
assert HOUSE.royal_9 is not None
START = Meters.initial(HOUSE.royal_9)
STAKE = 500
STAR, SPADE, HEART = 6_000_000, 50_000, 47_500


def royal(letter: str, player: str, banker: str, seat: int = 1) -> SettlementLine:
    """A seat's Royal 9 wager; seat 1's own is KH 9H, seat 2's KS 9S, seat 5's KH 9C."""
    settled = play(letter, player, banker, (seat,))
    return next(line for line in settled.lines if line.wager == "royal-9")


def play(letter: str, player: str, banker: str, seats: tuple[int, ...]) -> Settlement:
    bets = {seat: {"player": 100, "royal-9": STAKE} for seat in seats}
    return settle(with_royal_9(letter), bets, coup(player, banker), meters=START)


# player, banker, line under A and B, line under C, award under A, award under C
LINES = [
    ("KH 9H", "9H KH", "exact match", "exact match", STAR, STAR),
    # both hands are suited royals: under C that pays more than the meter of the seat's own
    ("KH 9H", "KS 9S", "any two personal", "suited royal 9 tie", STAR // 10, 150_000),
    ("KS 9S", "9H KH", "any two personal", "suited royal 9 tie", STAR // 10, 150_000),
    ("KH 9H", "KD 9S", "any two personal", "player personal", STAR // 10, HEART),
    ("2H 5H", "KH 9H", "banker personal", "banker personal", SPADE, SPADE),
    ("KH 9H", "8H 2H", "player personal", "player personal", HEART, HEART),
    ("KS 9S", "KS 9S", "suited royal 9 tie", "personal and identical", 150_000, 500_000),
    ("QS 9S", "JD 9D", "suited royal 9 tie", "suited royal 9 tie", 150_000, 150_000),
    ("KH 9H", "JD 9D", "suited royal 9 tie", "suited royal 9 tie", 150_000, 150_000),
    ("QS 9C", "JD 9D", "royal 9 tie", "royal 9 tie", 25_000, 25_000),
    ("QS 9C", "9D JD", "royal 9 tie", "royal 9 tie", 25_000, 25_000),
    ("QS 9S", "JD 2D", "suited royal 9", "suited royal 9", 5_000, 5_000),
    ("2S 5S", "JD 9C", "royal 9", "royal 9", 2_500, 2_500),
]


@pytest.mark.rule("MDM 7.A(9)")
@pytest.mark.rule("MDM 12.K")
@pytest.mark.parametrize("case", LINES, ids=[f"{each[0]}-{each[1]}" for each in LINES])
def test_each_line_pays_its_award_stake_included(case: tuple[str, str, str, str, int, int]) -> None:
    player, banker, line, line_c, award, award_c = case
    for letter, named, amount in (("A", line, award), ("B", line, award), ("C", line_c, award_c)):
        got = royal(letter, player, banker)
        assert (got.line, got.pays_cents) == (named, amount - STAKE)


@pytest.mark.rule("MDM 7.A(9)")
@pytest.mark.parametrize(
    ("player", "banker"), [("10S 9S", "2D 5D"), ("KS 8S", "2D 5D"), ("9S 2C KS", "3D 4D")]
)
def test_what_is_no_royal_9_loses(player: str, banker: str) -> None:
    line = royal("A", player, banker)
    assert (line.line, line.net_cents, line.clause) == ("lose", -STAKE, "MDM 7.A(9)")


def test_the_highest_line_only() -> None:
    settled = play("A", "KH 9H", "KH 9H", (1,))
    assert [line.line for line in settled.lines if line.wager == "royal-9"] == ["exact match"]


@pytest.mark.rule("MDM 12.K")
def test_meters_reset_when_hit_in_full_and_shrink_when_shared() -> None:
    full = play("A", "KH 9H", "KH 9H", (1, 2)).meters
    assert full is not None
    assert {name: meter.cents for name, meter in full.by_name.items()} == {
        "star": 5_000_000, "spade": SPADE, "heart": HEART, "must-hit": 10_000,
    }  # fmt: skip
    shared = play("A", "KH 9H", "KS 9S", (1, 2))
    assert [line.pays_cents + STAKE for line in shared.lines if line.wager == "royal-9"] == [STAR // 10] * 2
    assert shared.meters is not None
    assert shared.meters.by_name["star"].cents == STAR - 2 * STAR // 10


@pytest.mark.rule("MDM 12.L")
def test_meters_grow_by_their_rate_exactly() -> None:
    meters = START
    for _ in range(3):
        meters = meters.with_contribution(STAKE)
    assert meters.by_name["star"].units == STAR * UNITS + 3 * STAKE * 1_000
    assert meters.by_name["spade"].units == SPADE * UNITS + 3 * STAKE * 333  # 16.65 cents each
    assert meters.by_name["spade"].cents == SPADE + 49
    assert START.with_contribution(10**9).by_name["must-hit"].cents == 20_000  # its maximum
    assert START.with_contribution(10**9).must_hit_due


def test_a_void_round_leaves_the_meters_as_they_are() -> None:
    settled = settle_void(HOUSE, {1: {"player": 100, "royal-9": STAKE}}, "MDM 13.E", "too few cards", START)
    assert settled.meters == START


@pytest.mark.rule("MDM 7.A(9)")
def test_royal_9_needs_a_main_wager_and_its_stake() -> None:
    four = coup("9H KD", "8S KC")
    with pytest.raises(WagerRefused, match="without banker or player or tie") as refused:
        settle(HOUSE, {1: {"royal-9": STAKE}}, four, meters=START)
    assert refused.value.clause == "MDM 7.A(9)"
    with pytest.raises(WagerRefused, match="its stake is 500 cents"):
        settle(HOUSE, {1: {"royal-9": 400, "tie": 100}}, four, meters=START)
    with pytest.raises(RuleViolation, match="without meters"):
        settle(HOUSE, {1: {"royal-9": STAKE, "tie": 100}}, four)


@pytest.mark.rule("MDM 12.N")
def test_must_hit_pays_whom_the_controller_names() -> None:
    bets = {1: {"player": 100, "royal-9": STAKE}, 2: {"player": 100}}
    settled = settle(HOUSE, bets, coup("9H KD", "8S KC"), meters=START, must_hit_seat=1)
    line = next(line for line in settled.lines if line.wager == "must-hit")
    assert (line.seat, line.pays_cents, line.clause) == (1, 10_000, "MDM 12.N")
    assert settled.meters is not None
    assert settled.meters.by_name["must-hit"].cents == 10_000
    with pytest.raises(RuleViolation, match="seat 2 as Must Hit winner has no Royal 9 wager"):
        settle(HOUSE, bets, coup("9H KD", "8S KC"), meters=START, must_hit_seat=2)
    without = with_royal_9("A", must_hit=False)
    assert without.royal_9 is not None
    with pytest.raises(RuleViolation, match="without it"):
        settle(without, bets, coup("9H KD", "8S KC"), meters=Meters.initial(without.royal_9), must_hit_seat=1)


def test_meters_are_saved_and_restored() -> None:
    assert HOUSE.royal_9 is not None
    with_contribution = START.with_contribution(STAKE)
    assert Meters.restore(HOUSE.royal_9, with_contribution.save()) == with_contribution
    with pytest.raises(BadSave):
        Meters.restore(HOUSE.royal_9, {"star": 1})
