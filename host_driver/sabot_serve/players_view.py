"""What the players' display shows. Its type has no field for anything that players may not know.

A hand is there only once the snapshot has it, and the snapshot has it only once the dealer exposed it.
People, needs, packs, faults and wagers have no field.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sabot_serve.dealer_view import coup_points, points_of
from sabot_serve.phrases import N_, Say, said
from sabot_serve.roads import (
    BIG_EYE_BOY,
    COCKROACH_PIG,
    SMALL_ROAD,
    Mark,
    bead_plate,
    big_road,
    derived_marks,
)

PHASES: Mapping[str, str] = {
    "closed": N_("CLOSED"),
    "between": N_("PLACE YOUR BETS"),
    "betting": N_("PLACE YOUR BETS"),
    "idle": N_("WELCOME"),
    "dealing": N_("NO MORE BETS"),
    "counting": N_("NO MORE BETS"),
    "revealing": N_("NO MORE BETS"),
    "drawing": N_("NO MORE BETS"),
    "settling": N_("RESULT"),
    "collecting": N_("RESULT"),
    "voided": N_("ROUND IS VOID"),
}
METERS: Mapping[str, str] = {
    "must-hit": N_("Must Hit"),
    "star": N_("Star"),
    "spade": N_("Spade"),
    "heart": N_("Heart"),
}
WON = {"player": N_("Player"), "banker": N_("Banker"), "tie": N_("TIE")}
OUTCOMES: Mapping[str, str] = {"win": N_("WINS"), "lose": N_("LOSES"), "push": N_("TIE")}
MOST_RESULTS = 100  # of a shoe


@dataclass(frozen=True, slots=True)
class ShownHand:
    """Cards that lie open."""

    name: str
    cards: tuple[str, ...]
    points: str
    outcome: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class PlayersSnapshot:
    """Everything that the players' display can show."""

    table: str
    phase: str
    round: int | None
    void: str = ""
    hands: tuple[ShownHand, ...] = ()
    roads: Mapping[str, tuple[Mark, ...]] = field(default_factory=dict)
    meters: Mapping[str, int] = field(default_factory=dict)


def players_snapshot(snapshot: Mapping[str, Any], say: Say = str) -> PlayersSnapshot:
    """The players' part of a snapshot."""
    shown = snapshot["round"] or snapshot["last_round"]
    playing = snapshot["round"]
    state = "collecting" if playing is None and shown is not None else snapshot["table"]["state"]
    if playing is None and snapshot["table"]["state"] in ("closed", "idle", "betting"):
        state = snapshot["table"]["state"]
    void = "" if shown is None or not shown["void_clause"] else say(N_("Every wager goes back."))
    return PlayersSnapshot(
        snapshot["table"]["name"],
        say(PHASES["voided"] if void else PHASES.get(state, PHASES["between"])),
        None if shown is None else shown["round_id"],
        void,
        _shown_hands(shown, snapshot, say),
        _roads(snapshot["results"]),
        {said(say, METERS, name).capitalize(): cents for name, cents in snapshot["meters"].items()},
    )


def _coup(shown: Mapping[str, Any], say: Say) -> tuple[ShownHand, ...]:
    """The two hands of mini baccarat; the outcome once the round is settled."""
    hands = {of: tuple(shown[of] or ()) for of in ("player", "banker")}
    if not all(hands.values()):
        return ()
    points = {of: coup_points(names) for of, names in hands.items()}
    found = []
    for of, other in (("player", "banker"), ("banker", "player")):
        outcome = ""
        if shown["settlement"] is not None and not shown["void_clause"]:
            outcome = "push" if points[of] == points[other] else "win" if points[of] > points[other] else ""
        words = say(OUTCOMES[outcome]) if outcome else ""
        found.append(ShownHand(say(WON[of]), hands[of], str(points[of]), words, outcome))
    return tuple(found)


def _shown_hands(
    shown: Mapping[str, Any] | None, snapshot: Mapping[str, Any], say: Say
) -> tuple[ShownHand, ...]:
    if shown is None:
        return ()
    return _coup(shown, say) if snapshot["table"]["coup"] else _hands(shown, snapshot["table"]["seats"], say)


def _hands(shown: Mapping[str, Any], seats: list[int], say: Say) -> tuple[ShownHand, ...]:
    if not shown["dealer"]:
        return ()
    found = [ShownHand(say(N_("Dealer")), tuple(shown["dealer"]), points_of(shown["dealer"], say))]
    main: dict[int, str] = {}
    for line in shown["settlement"] or ():
        main.setdefault(line["seat"], line["outcome"])  # a seat's first line is its main wager
    for seat in seats:
        cards = (shown["hands"] or {}).get(str(seat))
        if cards:
            outcome = str(main.get(seat, ""))
            name = say(N_("Seat %(seat)s")) % {"seat": seat}
            words = say(OUTCOMES[outcome]) if outcome in OUTCOMES else ""
            found.append(ShownHand(name, tuple(cards), points_of(cards, say), words, outcome))
    return tuple(found)


def _roads(results: Any) -> dict[str, tuple[Mark, ...]]:
    kept = list(results)[-MOST_RESULTS:]
    if not kept:
        return {}
    return {
        "bead_plate": tuple(bead_plate(kept)),
        "big_road": tuple(big_road(kept)),
        "big_eye_boy": tuple(derived_marks(kept, BIG_EYE_BOY)),
        "small_road": tuple(derived_marks(kept, SMALL_ROAD)),
        "cockroach_pig": tuple(derived_marks(kept, COCKROACH_PIG)),
    }


def players_view(snapshot: Mapping[str, Any], say: Say = str) -> dict[str, Any]:
    """The same as JSON."""
    return asdict(players_snapshot(snapshot, say))
