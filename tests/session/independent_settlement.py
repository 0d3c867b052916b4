"""Three Card Baccarat settled a second time, from the bytes of a record alone. It imports nothing of ours.

The paytables are those of Maryland (three kings and tie by table A) and of Washington, which are the same.
The vigorish is 5 % of an ante that wins.
"""

import json
import sqlite3
from pathlib import Path
from typing import Any

FACES = "JQK"
Lines = dict[tuple[int, str], tuple[str, int | None, int | None]]
"""By seat and wager: outcome, what is won besides the stake, vigorish. None where the stake is not known."""


def _hand(cards: list[str]) -> tuple[int, int, int, list[str]]:
    """Class, points, faces, ranks; classes: 2 three kings, 1 three faces, 0 others."""
    ranks = sorted(each[:-1] for each in cards)
    faces = sum(each in FACES for each in ranks)
    if faces == 3:
        return (2 if set(ranks) == {"K"} else 1), 0, 3, ranks
    values = [1 if each == "A" else 0 if each == "10" or each in FACES else int(each) for each in ranks]
    return 0, sum(values) % 10, faces, ranks


def odds(wager: str, player: list[str], dealer: list[str]) -> int | None:
    """What a wager pays to 1; 0 gives the stake back, None takes it."""
    one, other = _hand(player), _hand(dealer)
    mine, theirs = (10 if each[0] else each[1] for each in (one, other))
    if wager == "ante":
        return None if one[:3] < other[:3] else 0 if one[:3] == other[:3] else 1
    if wager == "three-kings":
        return {2: 50, 1: 25}.get(one[0]) or ({9: 3, 8: 2}.get(one[1]) if not one[0] else None)
    if wager == "tie":
        if mine != theirs:
            return None
        return 50 if one[3] == other[3] else 10 if one[2] == other[2] else 7
    if wager == "dragon-bonus":
        return {5: 1, 6: 3, 7: 5, 8: 10, 9: 20, 10: 50}.get(mine - theirs)
    raise AssertionError(wager)


def settled_again(path: Path) -> dict[int, tuple[Lines, Lines]]:
    """For each settled round whose cards are known: its lines on record, and the same computed again."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        rows = [json.loads(body) for (body,) in db.execute("SELECT body FROM rows ORDER BY number")]
    rounds: dict[int, dict[str, Any]] = {}
    for row in rows:
        kind, data, of = row["kind"], row["data"], rounds.setdefault(row["round"], {})
        if kind == "no_more_bets":
            of["bets"] = data
        elif kind in ("reveal", "cards_read"):
            of["hands"] = data["hands"]
        elif kind == "settle":
            of["lines"] = data["lines"]
        elif kind in ("forfeit", "abandon"):
            of.setdefault("taken", {})[data["seat"]] = {"forfeit": "forfeit", "abandon": "abandoned"}[kind]
        elif kind == "correct":
            of["bets"], of["lines"] = data["bets"] or of["bets"], data["settled"]["lines"]
            of["hands"] = data["exposed"]["hands"] if data["exposed"] else of["hands"]
    return {number: _both(of) for number, of in rounds.items() if of.get("lines") is not None}


def _both(of: dict[str, Any]) -> tuple[Lines, Lines]:
    told = {
        (each["seat"], each["wager"]): (each["outcome"], each["pays_cents"], each["vig_cents"])
        for each in of["lines"]
    }
    hands = {each["seat"]: each["cards"] for each in of["hands"]}
    known = of["bets"]["wagers"] is not None
    stakes: dict[tuple[int, str], int | None] = {
        (each["seat"], each["wager"]): each["cents"] for each in of["bets"]["wagers"] or ()
    }
    if not known:
        kinds = ("ante", "three-kings", "tie", "dragon-bonus")
        stakes = {(seat, wager): None for seat in of["bets"]["seats"] for wager in kinds}
    again: Lines = {}
    for (seat, wager), cents in stakes.items():
        taken = of.get("taken", {}).get(seat)
        pays = odds(wager, hands[seat], hands[0])
        outcome = taken or ("lose" if pays is None else "win" if pays else "push")
        won = 0 if outcome != "win" else pays
        if cents is None or won is None:
            again[seat, wager] = (outcome, None, None)
        else:
            vigorish = won * cents * 5 // 100 if wager == "ante" else 0
            again[seat, wager] = (outcome, won * cents, vigorish)
    return told, again
