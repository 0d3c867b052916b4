"""Two tables of actions: for the table, and for each pack.

A row names an action, the states in which it is allowed, the state that follows ("=": the same), the roles
that may do it, and its clauses. Every change of a state has a row here; `sabot_table.procedure` refuses
what has none. The diagrams of docs/procedure.md are drawn from these rows. The clauses are those of MD3 and
MDM; the two other texts have no procedure of their own.
"""

from typing import NamedTuple

from sabot_table.procedure.vocabulary import TableRole

D, F, P, X, C = TableRole.DEALER, TableRole.FLOOR, TableRole.PLAYER, TableRole.DEVICE, TableRole.CONTROLLER


class ActionRule(NamedTuple):
    """One thing that may happen."""

    action: str
    sources: str  # states, separated by blanks
    dest: str
    who: tuple[TableRole, ...]
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
TABLE_ACTIONS = (
    #   action               from                              to           who      MD3     MDM
    ActionRule("open_table",        "closed",                         "between",   (F,),    "4.A",  "4.A"),
    ActionRule("close_table",       "between idle",                   "closed",    (F,),    "4.A",  "4.A"),
    ActionRule("sit",               OPEN,                             "=",         (P, D),  "7.B",  "2.A"),
    ActionRule("leave",             OPEN,                             "=",         (P, D),  "7.B",  "12.D"),
    ActionRule("collect_vigorish",  OPEN,                             "=",         (D,),    "12.A", "12.D"),
    ActionRule("idle",              "between",                        "idle",      (D,),    "5.F",  "5.H"),
    ActionRule("player_arrives",    "idle",                           "between",   (D,),    "5.F",  "5.H"),
    # betting
    ActionRule("open_bets",         "between",                        "betting",   (D,),    "7.C",  "8.B"),
    ActionRule("place_wager",       "betting",                        "=",         (P, D),  "7.D",  "7.D"),
    ActionRule("withdraw_wager",    "betting",                        "=",         (P, D),  "7.D",  "7.D"),
    ActionRule("return_bets",       "betting",                        "between",   (D, F),  "7.D",  "13.D"),
    ActionRule("no_more_bets",      "betting",                        "dealing",   (D,),    "7.C",  "8.B"),
    # dealing
    ActionRule("deal_stack",        "dealing",                        "=",         (X,),    "10.B", "8"),
    ActionRule("deal_card",         "dealing",                        "=",         (D, X),  "8.D",  "8.C"),
    ActionRule("hands_dealt",       "dealing",                        "counting",  (D, X),  "8.D",  "8.C"),
    ActionRule("four_dealt",        "dealing",                        "drawing",   (D, X),  "8.D",  "8.C"),
    ActionRule("count_stub",        "counting",                       "revealing", (D, X),  "8.F",  "8"),
    ActionRule("pass_stub",         "counting",                       "revealing", (D,),    "8.E",  "8"),
    ActionRule("announce",          "drawing",                        "=",         (D, X),  "8.D",  "11.A"),
    ActionRule("third_card",        "drawing",                        "=",         (D, X),  "8.D",  "9.C"),
    # closing the round
    ActionRule("reveal",            "revealing",                      "settling",  (D, X),  "11.B", "11.A"),
    ActionRule("coup_complete",     "drawing",                        "settling",  (D, X),  "11.B", "11.A"),
    ActionRule("coup_simulated",    "drawing",                        "collecting", (D, X), "11.B", "13.D"),
    ActionRule("forfeit",           "dealing counting revealing settling", "=",    (F,),    "11.A", "7.D"),
    ActionRule("abandon",           ROUND,                            "=",         (F,),    "7.B",  "7.D"),
    ActionRule("must_hit",          "drawing settling",               "=",         (C,),    "11.B", "12.N"),
    ActionRule("retype",            "drawing settling",               "=",         (F,),    "11.B", "11.A"),
    ActionRule("settle",            "settling",                       "collecting", (D,),   "11.B", "11.B"),
    ActionRule("empty_device",      "voided",                         "=",         (D,),    "13.D", "13.E"),
    ActionRule("recount",           "voided",                         "=",         (D, X),  "10.C", "13.E"),
    ActionRule("collect",           "collecting voided",              "between",   (D,),    "11.C", "11.C"),
    # irregularities
    ActionRule("void",              ROUND,                            "voided",    (F, D, X), "13.C", "13.E"),
    ActionRule("face_up_card",      "dealing counting",               "voided",    (D, X),  "13.A", "13.D"),
    ActionRule("drawn_in_error",    "between betting dealing drawing settling", "=", (D,),  "13.B", "13.A"),
    ActionRule("unauthorised_third", "drawing settling",              "=",         (D,),    "13.B", "13.B"),
    ActionRule("card_exposed",      "between dealing drawing settling", "=",       (D,),    "13.A", "13.D"),
    ActionRule("too_few_cards",     "dealing drawing",                "voided",    (D, X),  "13.C", "13.E"),
    ActionRule("begin_simulated",   "between",                        "dealing",   (D,),    "13.A", "13.D"),
    ActionRule("cover_card",        "between betting dealing drawing settling", "=", (D, X), "5.D", "9.D"),
    ActionRule("announce_last_hand", "between",                       "=",         (D,),    "5.D",  "9.D"),
    # the device and the way of dealing
    ActionRule("identify",          "closed " + OPEN,                 "=",         (X, F),  "5.G",  "5.A"),
    ActionRule("unit_failed",       "closed " + OPEN,                 "=",         (X, D, F), "13.E", "5.A"),
    ActionRule("mark_out_of_order", "closed " + OPEN,                 "=",         (D, F),  "13.E", "5.A"),
    ActionRule("repaired",          "closed between idle",            "=",         (F,),    "13.E", "5.A"),
    ActionRule("change_method",     "closed between idle",            "=",         (F,),    "13.E", "8"),
    ActionRule("play_one_pack",     "between idle",                   "=",         (F,),    "3.A",  "3.A"),
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
PACK_ACTIONS = (
    #   action             from                        to           who        MD3     MDM
    ActionRule("inspect",         "received",                 "inspected", (D,),      "4.A",  "4.A"),
    ActionRule("verify",          "inspected",                "verified",  (F,),      "4.A",  "4.A"),
    ActionRule("spread",          "verified",                 "spread",    (D,),      "4.B",  "4.B"),
    ActionRule("wash",            "spread",                   "washed",    (D,),      "4.C",  "4.C"),
    ActionRule("stack",           "washed",                   "stacked",   (D,),      "4.C",  "4.C"),
    ActionRule("stack_unwashed",  "spread",                   "stacked",   (D,),      "4.C",  "4.D"),
    ActionRule("accept_prepared", "received",                 "shuffled",  (F,),      "4.F",  "4.E"),
    ActionRule("start_shuffle",   "stacked discards " + STORED, "shuffling", (D, X, F), "5.A", "5.A"),
    ActionRule("finish_shuffle",  "shuffling",                "shuffled",  (D, X),    "5.A",  "5.A"),
    ActionRule("deliver",         "shuffled",                 "=",         (X, D),    "8",    "5.A"),
    ActionRule("decline_cut",     "shuffled",                 "=",         (P, D),    "5.D",  "5.B"),
    ActionRule("cut",             "shuffled",                 "cut",       (P, D),    "5.D",  "5.B"),
    ActionRule("order_recut",     "cut covered loaded",       "shuffled",  (F,),      "5.E",  "5.D"),
    ActionRule("place_cover",     "cut",                      "covered",   (D,),      "5.D",  "5.C"),
    ActionRule("load",            "shuffled cut covered",     "loaded",    (D, X),    "5.C",  "5.C"),
    ActionRule("burn",            "loaded",                   "playing",   (D,),      "5.D",  "5.F"),
    ActionRule("play",            "loaded",                   "playing",   (D,),      "5.C",  "5.C"),
    ActionRule("discard",         "playing",                  "discards",  (D,),      "11.C", "11.C"),
    ActionRule("spread_idle", "loaded playing discards shuffled cut covered", "spread", (D,), "5.F", "5.H"),
    ActionRule("remove",          " ".join(each for each in PACK_STATES if each != "removed"),
        "removed", (F, D, X), "3.C", "3.C"),
)
# fmt: on
