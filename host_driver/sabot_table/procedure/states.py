"""What may happen at a table, and when: two tables of states, and nothing else decides it.

Two rules: all that changes a state stands in a row here; a row says who may do it and by which clause.
`sabot_table.procedure` refuses everything that has no row. "=" stays. The diagrams of the docs are drawn
from these rows. The clause is MD3's and MDM's; the other two texts have none of their own for procedure.
"""

from typing import NamedTuple

from sabot_table.procedure.events import Role

D, F, P, X, C = Role.DEALER, Role.FLOOR, Role.PLAYER, Role.DEVICE, Role.CONTROLLER


class Row(NamedTuple):
    """One thing that may happen."""

    action: str
    sources: str  # states, separated by blanks
    dest: str
    who: tuple[Role, ...]
    md3: str
    mdm: str


# fmt: off
TABLE_STATES = {
    "closed":     "no play",
    "between":    "between rounds: packs are prepared, loaded, changed",
    "betting":    "bets are open",
    "dealing":    "bets are closed, cards are dealt",
    "counting":   "three-card: the stub is out and is counted",
    "revealing":  "three-card: the hands lie there, the dealer's is shown",
    "drawing":    "mini: four cards lie there, third cards are drawn",
    "settling":   "the cards are known, wagers are settled",
    "collecting": "all is settled, cards go to the discards",
    "voided":     "the round is void: wagers went back, cards are collected",
    "idle":       "open, and nobody plays",
}
OPEN = "between betting dealing counting revealing drawing settling collecting voided idle"
ROUND = "dealing counting revealing drawing settling"
TABLE = (
    #   action               from                              to           who      MD3     MDM
    Row("open_table",        "closed",                         "between",   (F,),    "4.A",  "4.A"),
    Row("close_table",       "between idle",                   "closed",    (F,),    "4.A",  "4.A"),
    Row("sit",               OPEN,                             "=",         (P, D),  "7.B",  "2.A"),
    Row("leave",             OPEN,                             "=",         (P, D),  "7.B",  "12.D"),
    Row("collect_vigorish",  OPEN,                             "=",         (D,),    "12.A", "12.D"),
    Row("idle",              "between",                        "idle",      (D,),    "5.F",  "5.H"),
    Row("player_arrives",    "idle",                           "between",   (D,),    "5.F",  "5.H"),
    # betting
    Row("open_bets",         "between",                        "betting",   (D,),    "7.C",  "8.B"),
    Row("place_wager",       "betting",                        "=",         (P, D),  "7.D",  "7.D"),
    Row("withdraw_wager",    "betting",                        "=",         (P, D),  "7.D",  "7.D"),
    Row("return_bets",       "betting",                        "between",   (D, F),  "7.D",  "13.D"),
    Row("no_more_bets",      "betting",                        "dealing",   (D,),    "7.C",  "8.B"),
    # dealing
    Row("deal_stack",        "dealing",                        "=",         (X,),    "10.B", "8"),
    Row("deal_card",         "dealing",                        "=",         (D, X),  "8.D",  "8.C"),
    Row("hands_dealt",       "dealing",                        "counting",  (D, X),  "8.D",  "8.C"),
    Row("four_dealt",        "dealing",                        "drawing",   (D, X),  "8.D",  "8.C"),
    Row("count_stub",        "counting",                       "revealing", (D, X),  "8.F",  "8"),
    Row("pass_stub",         "counting",                       "revealing", (D,),    "8.E",  "8"),
    Row("announce",          "drawing",                        "=",         (D, X),  "8.D",  "11.A"),
    Row("third_card",        "drawing",                        "=",         (D, X),  "8.D",  "9.C"),
    # closing the round
    Row("reveal",            "revealing",                      "settling",  (D, X),  "11.B", "11.A"),
    Row("coup_complete",     "drawing",                        "settling",  (D, X),  "11.B", "11.A"),
    Row("coup_simulated",    "drawing",                        "collecting", (D, X), "11.B", "13.D"),
    Row("forfeit",           "dealing counting revealing settling", "=",    (F,),    "11.A", "7.D"),
    Row("abandon",           ROUND,                            "=",         (F,),    "7.B",  "7.D"),
    Row("must_hit",          "drawing settling",               "=",         (C,),    "11.B", "12.N"),
    Row("retype",            "drawing settling",               "=",         (F,),    "11.B", "11.A"),
    Row("settle",            "settling",                       "collecting", (D,),   "11.B", "11.B"),
    Row("empty_device",      "voided",                         "=",         (D,),    "13.D", "13.E"),
    Row("recount",           "voided",                         "=",         (D, X),  "10.C", "13.E"),
    Row("collect",           "collecting voided",              "between",   (D,),    "11.C", "11.C"),
    # irregularities
    Row("void",              ROUND,                            "voided",    (F, D, X), "13.C", "13.E"),
    Row("face_up_card",      "dealing counting",               "voided",    (D, X),  "13.A", "13.D"),
    Row("drawn_in_error",    "between betting dealing drawing settling", "=", (D,),  "13.B", "13.A"),
    Row("unauthorised_third", "drawing settling",              "=",         (D,),    "13.B", "13.B"),
    Row("card_exposed",      "between dealing drawing settling", "=",       (D,),    "13.A", "13.D"),
    Row("too_few_cards",     "dealing drawing",                "voided",    (D, X),  "13.C", "13.E"),
    Row("begin_simulated",   "between",                        "dealing",   (D,),    "13.A", "13.D"),
    Row("cover_card",        "between betting dealing drawing settling", "=", (D, X), "5.D", "9.D"),
    Row("announce_last_hand", "between",                       "=",         (D,),    "5.D",  "9.D"),
    # the device and the way of dealing
    Row("identify",          "closed " + OPEN,                 "=",         (X, F),  "5.G",  "5.A"),
    Row("unit_failed",       "closed " + OPEN,                 "=",         (X, D, F), "13.E", "5.A"),
    Row("mark_out_of_order", "closed " + OPEN,                 "=",         (D, F),  "13.E", "5.A"),
    Row("repaired",          "closed between idle",            "=",         (F,),    "13.E", "5.A"),
    Row("change_method",     "closed between idle",            "=",         (F,),    "13.E", "8"),
    Row("play_one_pack",     "between idle",                   "=",         (F,),    "3.A",  "3.A"),
)

PACK_STATES = {
    "received":  "at the table, closed",
    "inspected": "looked through by the dealer",
    "verified":  "the floor confirmed it",
    "spread":    "spread for the first player",
    "washed":    "turned and mixed",
    "stacked":   "one stack, not shuffled",
    "shuffling": "in the shuffler",
    "shuffled":  "shuffled, not cut",
    "cut":       "cut",
    "covered":   "mini: with its second cover card",
    "loaded":    "in the shoe or the dealer's hand",
    "playing":   "dealt from",
    "discards":  "in the discard rack",
    "removed":   "left the table for good",
}
STORED = "shuffled cut covered loaded"
PACK = (
    #   action             from                        to           who        MD3     MDM
    Row("inspect",         "received",                 "inspected", (D,),      "4.A",  "4.A"),
    Row("verify",          "inspected",                "verified",  (F,),      "4.A",  "4.A"),
    Row("spread",          "verified",                 "spread",    (D,),      "4.B",  "4.B"),
    Row("wash",            "spread",                   "washed",    (D,),      "4.C",  "4.C"),
    Row("stack",           "washed",                   "stacked",   (D,),      "4.C",  "4.C"),
    Row("stack_unwashed",  "spread",                   "stacked",   (D,),      "4.C",  "4.D"),
    Row("accept_prepared", "received",                 "shuffled",  (F,),      "4.F",  "4.E"),
    Row("start_shuffle",   "stacked discards " + STORED, "shuffling", (D, X, F), "5.A", "5.A"),
    Row("finish_shuffle",  "shuffling",                "shuffled",  (D, X),    "5.A",  "5.A"),
    Row("deliver",         "shuffled",                 "=",         (X, D),    "8",    "5.A"),
    Row("decline_cut",     "shuffled",                 "=",         (P, D),    "5.D",  "5.B"),
    Row("cut",             "shuffled",                 "cut",       (P, D),    "5.D",  "5.B"),
    Row("order_recut",     "cut covered loaded",       "shuffled",  (F,),      "5.E",  "5.D"),
    Row("place_cover",     "cut",                      "covered",   (D,),      "5.D",  "5.C"),
    Row("load",            "shuffled cut covered",     "loaded",    (D, X),    "5.C",  "5.C"),
    Row("burn",            "loaded",                   "playing",   (D,),      "5.D",  "5.F"),
    Row("play",            "loaded",                   "playing",   (D,),      "5.C",  "5.C"),
    Row("discard",         "playing",                  "discards",  (D,),      "11.C", "11.C"),
    Row("spread_idle",     "loaded playing discards " + "shuffled cut covered", "spread", (D,), "5.F", "5.H"),
    Row("remove",          " ".join(each for each in PACK_STATES if each != "removed"), "removed", (F, D, X),
        "3.C", "3.C"),
)
# fmt: on
