"""What a rule text can speak of: states, acts, grounds of refusal, reasons of a void.

The code knows how each act is done. A text's file (`sabot_table.rule_text_files`) says which acts exist, from
which state to which, by whom, and under which clause.
"""

from collections.abc import Mapping

from sabot_table.rule_texts import GameKind

TABLE_STATES = {
    "closed": "no play",
    "between": "between rounds: packs are prepared, loaded, changed",
    "betting": "bets are open",
    "dealing": "bets are closed, cards are dealt",
    "counting": "three-card: the stub is out and is counted",
    "revealing": "three-card: the hands lie there, the dealer's is shown",
    "drawing": "mini: four cards lie there, third cards are drawn",
    "settling": "the cards are known, wagers are settled",
    "collecting": "all is settled, cards go to the discards",
    "voided": "the round is void: wagers went back, cards are collected",
    "idle": "open, and nobody plays",
}
PACK_STATES = {
    "received": "at the table, closed",
    "inspected": "looked through by the dealer",
    "verified": "the floor confirmed it",
    "spread": "spread for the first player",
    "washed": "turned and mixed",
    "stacked": "one stack, not shuffled",
    "shuffling": "in the shuffler",
    "shuffled": "shuffled, not cut",
    "cut": "cut",
    "covered": "mini: with its second cover card",
    "loaded": "in the shoe or the dealer's hand",
    "playing": "dealt from",
    "discards": "in the discard rack",
    "removed": "left the table for good",
}
# Words that stand for several states in a file.
GROUPS = {
    "any": frozenset(TABLE_STATES),
    "open": frozenset(TABLE_STATES) - {"closed"},
    "round": frozenset(("dealing", "counting", "revealing", "drawing", "settling")),
    "here": frozenset(PACK_STATES) - {"removed"},
    "stored": frozenset(("shuffled", "cut", "covered", "loaded")),
}
GAME_STATES = {GameKind.THREE_CARD: {"counting", "revealing"}, GameKind.MINI: {"drawing"}}

# The acts of the table. Those of one game are below.
TABLE_ACTS = (
    *("open_table", "close_table", "sit", "leave", "collect_vigorish", "idle", "player_arrives"),
    *("receive_pack", "open_bets", "place_wager", "withdraw_wager", "return_bets", "no_more_bets"),
    *("forfeit", "abandon", "settle", "empty_device", "collect", "deal_card", "retype"),
    *("void", "wrong_number", "shoe_failed", "drawn_in_error"),
    *("identify", "unit_failed", "mark_out_of_order", "repaired", "change_method", "play_one_pack"),
    *("clear_jam", "clear_jam_with_tool"),
)
GAME_ACTS = {
    GameKind.THREE_CARD: (
        *("deal_stack", "hands_dealt", "count_stub", "pass_stub", "recount", "reveal"),
        *("count_wrong", "determine", "face_up_card"),
    ),
    GameKind.MINI: (
        *("four_dealt", "announce", "third_card", "coup_complete", "coup_simulated", "must_hit"),
        *("unauthorised_third", "card_exposed", "too_few_cards", "begin_simulated"),
        *("cover_card", "announce_last_hand"),
    ),
}
# The acts on one pack.
PACK_ACTS = (
    *("inspect", "verify", "spread", "wash", "stack", "stack_unwashed", "accept_prepared"),
    *("start_shuffle", "finish_shuffle", "verify_shuffle", "deliver", "decline_cut", "cut", "order_recut"),
    *("place_cover", "load", "burn", "play", "discard", "spread_idle", "remove"),
)

# Grounds of a refusal, besides the clause of an act that has a row.
GROUNDS = {
    "approval": "which devices may be used",
    "bets_closed": 'no wager is made, raised or withdrawn after "no more bets"',
    "cards_known": "whose cards the round is settled by, and who saw them",
    "cut_needed": "which packs are cut",
    "decks": "how many decks a shoe holds",
    "hand_dealing": "what dealing from the hand needs",
    "hours": "how long a pack may be used",
    "limits": "how much may be staked",
    "methods": "by which methods cards are dealt",
    "no_such_act": "an act that the text does not have",
    "packs": "which packs are at the table",
    "seats": "how many seats there are",
    "shoe_end": "when the cards of a shoe go to the discards",
    "shuffle_count": "who ends a machine's shuffle, and its count",
    "two_packs": "two packs: backs, turns, one in the shoe, one in the discard rack",
    "vigorish": "when the vigorish is taken",
    "wager_kinds": "which wagers there are, and how many kinds a hand may have",
}
GAME_GROUNDS: Mapping[GameKind, Mapping[str, str]] = {
    GameKind.THREE_CARD: {
        "count_automated": "the count after a round from the automated shoe",
        "count_hand": "the count of the stub after a round dealt from the hand",
        "count_manual": "the count of the stub after a round from a manual shoe",
        "dealt_by_hand": "in which order cards are dealt from the hand",
        "uncounted_hand": "how often the stub of a hand-dealt round may stay uncounted",
        "uncounted_manual": "how often the stub of a manual shoe may stay uncounted",
    },
    GameKind.MINI: {
        "third_card_rules": "which hand draws a third card",
    },
}

# Why a round is void: the device's own reasons and those that people see.
VOIDS = {
    "face_up_card": "a card lay face up",
    "wrong_number": "somebody has a wrong number of cards",
    "stack_disturbed": "a stack was touched before it was complete",
    "shoe_failed": "the automated shoe jammed, stopped or did not deal",
    "floor_order": "the floor ordered it",
}
GAME_VOIDS: Mapping[GameKind, Mapping[str, str]] = {
    GameKind.THREE_CARD: {},
    GameKind.MINI: {"too_few_cards": "the shoe cannot finish the round"},
}


def acts_of(game: GameKind) -> tuple[str, ...]:
    """Every act of the table that a text of this game may have."""
    return (*TABLE_ACTS, *GAME_ACTS[game])


def grounds_of(game: GameKind) -> dict[str, str]:
    """Every ground for which a text of this game gives a clause."""
    return {**GROUNDS, **GAME_GROUNDS[game]}


def voids_of(game: GameKind) -> dict[str, str]:
    """Every reason of a void for which a text of this game gives a clause."""
    return {**VOIDS, **GAME_VOIDS[game]}


EVERY_ACT = frozenset((*TABLE_ACTS, *GAME_ACTS[GameKind.THREE_CARD], *GAME_ACTS[GameKind.MINI], *PACK_ACTS))
EVERY_GROUND = frozenset((*GROUNDS, *(key for some in GAME_GROUNDS.values() for key in some)))
