"""Who may do what, when, and where it leads: by hand from the clauses, and tried at a table of each text.

The texts' files say the same as data, and `make generate` draws their page anew. This table is the second
opinion: a row that is changed in a file does not fit it.
"""

import pytest
from tests.table.croupier import NOON

from sabot_table.errors import RuleViolation
from sabot_table.procedure import Attribution, TableProcedure, TableRole
from sabot_table.procedure.memory import PackState
from sabot_table.ruleset import load
from sabot_table.text_vocabulary import EVERY_ACT, PACK_ACTS, PACK_STATES

THREE_ROUND, MINI_ROUND = "dealing counting revealing settling", "dealing drawing settling"
OUTSIDE = "closed between betting collecting voided idle"
ANY = f"{OUTSIDE} {THREE_ROUND} drawing"
STORED = "shuffled cut covered loaded"
HERE = " ".join(each for each in PACK_STATES if each != "removed")

# Acts, who may do them, in which states, the state that follows ("=": the same). A state that the game does
# not have is passed over.
TABLE = (
    # The floor opens and closes the table; a player takes a seat, or the dealer says so.
    ("open_table", "floor", "closed", "between"),
    ("close_table", "floor", "between idle", "closed"),
    ("sit leave", "player dealer", ANY.replace("closed ", ""), "="),
    ("collect_vigorish", "dealer", ANY.replace("closed ", ""), "="),  # MDM 12.D(2)(b)
    ("idle", "dealer", "between", "idle"),  # MD3 5.F, MDM 5.H: the dealer
    ("player_arrives", "dealer", "idle", "between"),
    ("receive_pack", "dealer floor", ANY.replace("closed ", ""), "="),
    # MD3 7.C-D, MDM 7.D, 8.B: the dealer announces, players wager until then.
    ("open_bets", "dealer", "between", "betting"),
    ("place_wager withdraw_wager", "player dealer", "betting", "="),
    ("return_bets", "dealer floor", "betting", "between"),
    ("no_more_bets", "dealer", "betting", "dealing"),
    ("deal_card", "dealer device", "dealing", "="),
    ("settle", "dealer", "settling", "collecting"),  # MD3 11.B, MDM 11.B: the dealer
    ("collect", "dealer", "collecting voided", "between"),
    # MD3 13, MDM 13: dealer and floor see what voids a round; only the floor voids for another reason.
    ("void", "floor device", f"{THREE_ROUND} drawing", "voided"),
    ("wrong_number shoe_failed", "dealer floor", f"{THREE_ROUND} drawing", "voided"),
    ("empty_device", "dealer", "voided", "="),
    ("drawn_in_error", "dealer", "between betting dealing drawing settling", "="),
    ("retype", "floor", "drawing settling", "="),
    # The machine and its failures (MD3 13.D-E): a jam that needs a tool is the service's.
    ("clear_jam mark_out_of_order", "dealer floor", ANY, "="),
    ("clear_jam_with_tool", "service", ANY, "="),
    ("identify", "device floor", ANY, "="),
    ("unit_failed", "device dealer floor", ANY, "="),
    ("repaired change_method", "floor", "closed between idle", "="),
    ("play_one_pack", "floor", "between idle", "="),
)
THREE_CARD = (
    ("deal_stack", "device", "dealing", "="),  # MD3 10.B
    ("hands_dealt", "dealer device", "dealing", "counting"),
    ("count_wrong", "device", "counting", "="),
    ("determine", "dealer", "counting", "voided"),  # MD3 10.C(2-4): the dealer determines
    ("count_stub", "dealer device", "counting", "revealing"),
    ("pass_stub", "dealer", "counting", "revealing"),  # MD3 8.E, 9.C
    ("reveal", "dealer device", "revealing", "settling"),
    ("recount", "dealer device", "voided", "="),
    ("face_up_card", "dealer device", "dealing counting", "voided"),  # MD3 13.A
)
MARYLANDS_THREE_CARD = (
    ("forfeit", "floor", THREE_ROUND, "="),  # MD3 11.A(5)
    ("abandon", "floor", THREE_ROUND, "="),  # MD3 7.B(3)
)
MINI = (
    ("four_dealt", "dealer device", "dealing", "drawing"),  # MDM 8.C
    ("announce third_card", "dealer device", "drawing", "="),  # MDM 8.D, 9.C
    ("coup_complete", "dealer device", "drawing", "settling"),
    ("coup_simulated", "dealer device", "drawing", "collecting"),
    ("unauthorised_third", "dealer", "drawing settling", "="),  # MDM 13.B
    ("card_exposed", "dealer", "between dealing drawing settling", "="),  # MDM 13.D
    ("too_few_cards", "dealer device", "dealing drawing", "voided"),  # MDM 13.E
    ("begin_simulated", "dealer", "between", "dealing"),
)
MARYLANDS_MINI = (
    ("must_hit", "controller", "drawing settling", "="),  # MDM 12.N: the controller, never the table
    ("cover_card", "dealer device", "between betting dealing drawing settling", "="),  # MDM 9.D
    ("announce_last_hand", "dealer", "between", "="),
)
PACK = (
    # MD3 4, MDM 4: the dealer inspects, spreads, washes, stacks. The floor verifies; prepared cards skip it.
    ("inspect", "dealer", "received", "inspected"),
    ("verify", "floor", "inspected", "verified"),
    ("spread", "dealer", "verified", "spread"),
    ("wash", "dealer", "spread", "washed"),
    ("stack", "dealer", "washed", "stacked"),
    ("accept_prepared", "floor", "received", "shuffled"),
    # MD3 5.A, MDM 5.A: before play, after each round, and when the floor orders it.
    ("start_shuffle", "dealer device floor", f"stacked discards shuffling {STORED}", "shuffling"),
    ("finish_shuffle", "dealer device", "shuffling", "shuffled"),
    ("deliver", "device dealer", "shuffled", "="),
    ("discard", "dealer", "playing", "discards"),
    ("remove", "floor dealer device", HERE, "removed"),
)
PACK_OF = {
    "three-card": (
        ("cut", "dealer", "shuffled", "cut"),  # MD3 5.D
        ("order_recut", "floor", "cut loaded", "shuffled"),  # MD3 5.E: until the first card
        ("load", "dealer device", "shuffled cut", "loaded"),
        ("play", "dealer", "loaded", "playing"),
        ("spread_idle", "dealer", "loaded discards shuffled cut", "spread"),  # MD3 5.F
    ),
    "MDM": (
        ("stack_unwashed", "dealer", "spread", "stacked"),  # MDM 4.D
        ("verify_shuffle", "floor", "shuffled", "="),  # MDM 5.A(2)
        ("decline_cut", "player dealer", "shuffled", "="),  # MDM 5.B
        ("cut", "player dealer", "shuffled", "cut"),
        ("order_recut", "floor", "cut covered", "shuffled"),  # MDM 5.D: until it is loaded
        ("place_cover", "dealer", "cut", "covered"),  # MDM 5.C
        ("load", "dealer device", "shuffled cut covered", "loaded"),
        ("burn", "dealer", "loaded", "playing"),  # MDM 5.F
        ("spread_idle", "dealer", f"{STORED} playing discards", "spread"),  # MDM 5.H
    ),
    "BAC": (
        ("load", "dealer device", "shuffled", "loaded"),
        ("play", "dealer", "loaded", "playing"),
        ("spread_idle", "dealer", "loaded discards shuffled", "spread"),
    ),
}
Rows = tuple[tuple[str, str, str, str], ...]
TEXTS: dict[str, tuple[str, Rows, Rows]] = {
    "MD3": (
        "md-three-card-baccarat",
        (*TABLE, *THREE_CARD, *MARYLANDS_THREE_CARD),
        (*PACK, *PACK_OF["three-card"]),
    ),
    "WA3": ("wa-three-card-baccarat", (*TABLE, *THREE_CARD), (*PACK, *PACK_OF["three-card"])),
    "MDM": ("md-mini-baccarat", (*TABLE, *MINI, *MARYLANDS_MINI), (*PACK, *PACK_OF["MDM"])),
    "BAC": ("baccarat-six-deck", (*TABLE, *MINI), (*PACK, *PACK_OF["BAC"])),
}
Found = dict[str, tuple[set[str], set[str], set[str]]]  # by act: roles, states, states that follow


def by_hand(rows: Rows, states: set[str]) -> Found:
    """The rows of this file, with the states that a game has."""
    found: Found = {}
    for acts, who, sources, dest in rows:
        here = set(sources.split()) & states
        for act in acts.split():
            found[act] = (set(who.split()), here, here if dest == "=" else {dest})
    return found


def attempted(act: str, states: set[str], procedure: TableProcedure) -> tuple[set[str], set[str], set[str]]:
    """Who may do an act in which states and where it leads, tried with each role in each state."""
    table, pack = procedure.table, PackState(1, "red", NOON)
    allowed, after = set(), set()
    for state in states:
        for role in TableRole:
            by = Attribution("somebody", role, NOON)
            table.memory.state, pack.state = ("between", state) if act in PACK_ACTS else (state, "received")
            try:
                if act in PACK_ACTS:
                    table.check_pack(act, pack, by)
                    table.move_pack(act, pack, by)
                else:
                    table.check(act, by)
                    table.move(act, by)
            except RuleViolation:
                continue
            allowed.add((str(role), state))
            after.add(pack.state if act in PACK_ACTS else table.memory.state)
    return {role for role, _ in allowed}, {state for _, state in allowed}, after


@pytest.mark.rule("MD3 4.A")
@pytest.mark.rule("MD3 5.A")
@pytest.mark.rule("MD3 10.C")
@pytest.mark.rule("MDM 5.B")
@pytest.mark.rule("MDM 12.N")
@pytest.mark.parametrize("text", TEXTS)
def test_each_act_is_for_these_people_in_these_states_and_leads_there(text: str) -> None:
    name, rows, pack_rows = TEXTS[text]
    procedure = TableProcedure(load(name))
    of_table = set(f"{OUTSIDE} {THREE_ROUND if procedure.table.three_card else MINI_ROUND}".split())
    of_pack = set(PACK_STATES)
    wanted = {**by_hand(rows, of_table), **by_hand(pack_rows, of_pack)}
    for act in sorted(EVERY_ACT):
        states = of_pack if act in PACK_ACTS else of_table
        assert attempted(act, states, procedure) == wanted.get(act, (set(), set(), set())), act
