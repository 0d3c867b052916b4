"""Rows of a few rounds, one of each sort, as a session would commit them."""

from typing import Any

from sabot_session.rows import Actor, Authentication, Row
from sabot_table.procedure import TableRole

DAY_S = 86_400
ANA = Actor("ana", TableRole.DEALER, Authentication.SIGNED_IN)
BO = Actor("bo", TableRole.DEALER, Authentication.SIGNED_IN)
FLO = Actor("flo", TableRole.FLOOR, Authentication.BADGE_AND_PIN)
MACHINE = Actor("", TableRole.DEVICE, Authentication.SENSED)
PROGRAM = Actor("", TableRole.PROGRAM, Authentication.PROGRAM)

ANTE: dict[str, Any] = {"seat": 1, "wager": "ante", "cents": 1000}
TIE: dict[str, Any] = {"seat": 1, "wager": "tie", "cents": 500}
SHOWN: dict[str, Any] = {
    "source": "reader",
    "hands": [
        {"of": "seat", "seat": 1, "cards": ["9H", "KS", "QD"], "points": 9, "rank": "9, two faces"},
        {"of": "dealer", "cards": ["2C", "3C", "4C"]},
    ],
}
LINES: list[dict[str, Any]] = [
    {
        "seat": 1, "wager": "ante", "outcome": "win", "line": "win", "odds": "1 to 1", "stake_cents": 1000,
        "pays_cents": 1000, "vig_cents": 50, "clause": "MD3 12.A",
    },
    {
        "seat": 1, "wager": "tie", "outcome": "lose", "line": "lose", "stake_cents": 500, "pays_cents": 0,
        "vig_cents": 0, "clause": "MD3 12.B-tie",
    },
]  # fmt: skip
CORRECT: dict[str, Any] = {"by": "machine", "stacks": 6, "stub": 46, "expected": 52, "verdict": "correct"}


class Script:
    """Rows one after another, ten seconds apart."""

    def __init__(self, begin_s: int) -> None:
        self.rows: list[Row] = []
        self.at_s = begin_s
        self.round_id = 0

    def add(self, kind: str, actor: Actor, clause: str = "", **data: Any) -> int:
        """One row of the round in play; its number if the record begins with this script."""
        self.at_s += 10
        self.rows.append(Row(kind, self.at_s, actor, data, self.round_id, clause))
        return len(self.rows)

    def open(self, round_id: int, dealer: Actor, **opened: Any) -> None:
        """Open a round."""
        self.round_id = round_id
        usual = {"pack_id": 1, "method": "automated-shoe", "serial": "SABOT001"}
        self.add("open_bets", dealer, "MD3 7.C", dealer=dealer.person, **(usual | opened))


def scripted_rounds() -> list[Row]:
    """Rounds 1 to 9 on the second day of 1970, the last two on the third."""
    s = Script(DAY_S)
    s.open(1, ANA)  # all of it known
    s.add("place_wager", ANA, **ANTE)
    s.add("place_wager", ANA, **TIE)
    s.add("place_wager", ANA, seat=2, wager="ante", cents=700)
    s.add("withdraw_wager", ANA, seat=2, wager="ante", cents=700)
    s.add("no_more_bets", ANA, "MD3 7.C", seats=[1], wagers=[ANTE, TIE])
    s.add("deal_stack", MACHINE, stack=1, seat=1, cards=3)
    s.add("count_stub", MACHINE, "MD3 10.C", **CORRECT)
    s.add("reveal", ANA, "MD3 11.B", **SHOWN)
    s.add("settle", ANA, "MD3 11.B", lines=LINES)
    s.add("collect", ANA, "MD3 11.C")

    s.open(2, ANA)  # chips, and nobody typed the cards
    s.add("no_more_bets", ANA, seats=[1, 4], wagers=None)
    s.add("reveal", ANA, source=None, hands=[{"of": "dealer", "cards": None}])
    s.add("settle", ANA, lines=None)
    s.add("pass_stub", ANA)
    s.add("collect", ANA)

    s.open(3, BO)  # void: the shoe jammed
    s.add("no_more_bets", BO, seats=[1], wagers=[ANTE])
    s.add("void", BO, "MD3 13.D", why="the shoe jammed", give_back=[ANTE], countersign=True)
    s.add("collect", BO)

    s.open(4, BO)  # a misdeal, by the dealer's determination
    s.add("no_more_bets", BO, seats=[1], wagers=[ANTE])
    s.add("count_stub", MACHINE, **(CORRECT | {"stub": 45, "verdict": None, "advice": "card_missing"}))
    s.add("determine", BO, "MD3 10.C", verdict="misdealt")
    void = s.add("void", BO, "MD3 10.C", why="misdealt", give_back=[ANTE], countersign=True)
    s.add("collect", BO)
    s.add("countersign", FLO, row=void)

    s.open(5, BO)  # held, disputed, corrected
    s.add("no_more_bets", BO, seats=[1], wagers=[ANTE, TIE])
    s.add("count_stub", MACHINE, **CORRECT)
    s.add("reveal", BO, **SHOWN)
    s.add("settle", BO, lines=LINES)
    held = s.add("hold", BO, why="the guest objects")
    disputed = s.add("open_dispute", BO, why="the screen is wrong")
    s.add(
        "decide_dispute",
        FLO,
        row=disputed,
        surveillance="CAM 7, 12:04",
        decision="9 is 8",
        machine_wrong=True,
    )
    right = [{**SHOWN["hands"][0], "cards": ["8H", "KS", "QD"], "points": 8}, SHOWN["hands"][1]]
    s.add(
        "correct", FLO, dealer="bo", dealer_how="pin", why="surveillance saw the 8 of hearts",
        exposed={"source": "dealer", "hands": right}, settled={"lines": [{**LINES[0], "outcome": "lose"}]},
    )  # fmt: skip
    s.add("release", FLO, row=held)
    s.add("collect", BO)

    s.open(6, BO, method="manual-shoe", serial="")  # mini baccarat, seat by seat, typed twice
    s.add("no_more_bets", BO, seats=[2, 3], wagers=[{"seat": 2, "wager": "player", "cents": 200}])
    s.add("expose_hand", BO, source="dealer", hands=[{"of": "player", "cards": ["9H", "KS"]}])
    s.add("expose_hand", BO, source="dealer", hands=[{"of": "banker", "cards": ["7H", "AS"]}])
    s.add("retype", FLO, source="dealer", hands=[
        {"of": "player", "cards": ["9H", "KD"]}, {"of": "banker", "cards": ["7H", "AS"]},
    ])  # fmt: skip
    unknown = {
        "stake_cents": None,
        "pays_cents": None,
        "vig_cents": None,
        "clause": "MDM 12.A",
        "line": "player",
    }
    s.add("settle", BO, lines=[{"seat": 2, "wager": "player", "outcome": "win", "odds": "1 to 1", **unknown}])
    s.add("settle", BO, lines=[{"seat": 3, "wager": "banker", "outcome": "lose", **unknown}])
    s.add("collect", BO)

    s.open(7, BO)  # bets returned before the deal
    s.add("return_bets", BO)

    s.at_s = 2 * DAY_S
    s.round_id = 8
    s.add("begin_simulated", ANA, "MDM 13.D", pack_id=2, method="manual-shoe", dealer="ana")
    s.add("coup_simulated", ANA, source="dealer", hands=[{"of": "player", "cards": ["2H", "4S"]}])
    s.add("collect", ANA)

    s.open(9, ANA)  # still open
    s.add("no_more_bets", ANA, seats=[1], wagers=[ANTE])
    return s.rows
