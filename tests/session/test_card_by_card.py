"""Mini baccarat from the machine's shoe, card by card, run by simulated people who meet needs."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from tests.session import independent_coups
from tests.session.simulated_table import SimulatedTable, simulated_table

from sabot_protocol.host.messages import ShoeState
from sabot_session import acts, dealing_acts
from sabot_session.needs import NeedKind
from sabot_session.round_history import rounds_of
from sabot_session.rows import Authentication
from sabot_session.session import TableSession
from sabot_table.errors import RuleViolation
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import load

pytestmark = pytest.mark.slow
AUTOMATED = DealingMethod.AUTOMATED_SHOE
TOUCHES = ("no_more_bets", "reveal", "settle", "collect")


def in_state(state: str) -> Callable[[SimulatedTable], bool]:
    return lambda table: table.run.read(lambda session: session.procedure.table.state) == state


def kinds(table: SimulatedTable, *wanted: str) -> list[str]:
    return [each.row.kind for each in table.rows(*wanted)]


def needed_before_the_shoe_is_told(session: TableSession) -> Collection[NeedKind]:
    """What is needed while the machine has told that a round is over, and not yet that its shoe is ready."""
    device = session.state.device
    kept, device.shoe = device.shoe, ShoeState.ROUND_OPEN
    try:
        return list(session.needed())
    finally:
        device.shoe = kept


@pytest.mark.rule("MDM 5.F")
@pytest.mark.rule("MDM 8.C")
@pytest.mark.rule("MDM 9.D")
def test_a_shoe_from_its_cut_to_its_last_hand(tmp_path: Path) -> None:
    with simulated_table(
        tmp_path, "seed=1&capacity=batch", rules="md-mini-baccarat", method=AUTOMATED
    ) as table:
        table.staff.cover_above = 400
        table.rounds(4)
        rows = [each.row for each in table.rows()]
        pack = [
            (row.kind, row.data.get("pack_id"))
            for row in rows
            if row.data.get("pack_id") and not row.round_id
        ]
        begin = ["deliver", "cut", "place_cover", "laid_in", "load", "burn_card", "burn"]
        end = ["count_pack", "discard"]
        of_shoes = [each for each in pack if each[0] in (*begin, *end)]
        expected = [(kind, 1) for kind in (*begin, *end)] + [(kind, 2) for kind in begin]
        assert of_shoes == expected
        last = kinds(table, "cover_card", "announce_last_hand", "count_pack")
        assert last == ["cover_card", "announce_last_hand", "count_pack"]
        assert next(row.clause for row in rows if row.kind == "cover_card") == "MDM 9.D"
        acted = [row for row in rows if row.act_id]
        assert all(row.actor.how is Authentication.SIMULATED and row.actor.person for row in acted)
        found = rounds_of(table.rows())
        assert [found[each].missing for each in (1, 2, 3, 4)] == [()] * 4
        assert {hand.of for hand in found[1].hands} == {"player", "banker"}
        assert table.staff.refused[1:] == []


def test_a_normal_hand_takes_two_touches(tmp_path: Path) -> None:
    with simulated_table(
        tmp_path, "seed=1&capacity=batch", rules="md-mini-baccarat", method=AUTOMATED
    ) as table:
        table.staff.meet(table.until(NeedKind.BETS))
        table.until(NeedKind.BETS)
        assert in_state("settling")(table)
        assert not {NeedKind.SETTLE, NeedKind.COLLECT} & set(table.run.read(needed_before_the_shoe_is_told))
        table.rounds(3)
        second = [each.row for each in table.rows() if each.row.round_id == 2]
        assert len({row.act_id for row in second if row.act_id and row.kind in TOUCHES}) == 3
        third = {
            row.act_id for row in (each.row for each in table.rows()) if row.round_id == 3 and row.act_id
        }
        assert len({row.act_id for row in second if row.act_id} - third) == 2


@pytest.mark.rule("MDM 8.D")
def test_a_face_is_told_once_its_card_is_turned(tmp_path: Path) -> None:
    with simulated_table(
        tmp_path, "seed=1&capacity=batch", rules="md-mini-baccarat", method=AUTOMATED
    ) as table:
        need = table.until(NeedKind.EXPOSE)
        before = table.run.read(lambda session: session.snapshot())
        assert before["round"]["player"] is None
        assert not table.rows("announce", "third_card", "coup_complete", "cards_read")
        asked = [each.message for each in table.client.journal.commands()]
        assert not any(each in (0x61, 0x62) for each in asked)  # reveal_round, faces
        with pytest.raises(RuleViolation, match="the machine reads them"):
            table.staff.give(dealing_acts.Announce(("2H", "3H"), ("4H", "5H")))
        table.staff.meet(need)
        table.play(lambda table: bool(table.rows("coup_complete")))
        (announced,) = table.rows("announce")
        assert announced.row.data["source"] == "reader"
        after = table.run.read(lambda session: session.snapshot())
        assert len(after["round"]["player"]) >= 2


@pytest.mark.rule("MDM 8.D")
@pytest.mark.rule("MDM 9.A")
def test_the_dealer_is_told_what_to_announce_until_the_table_goes_on(tmp_path: Path) -> None:
    query = "seed=1&capacity=batch&reader=none"
    with simulated_table(tmp_path, query, rules="md-mini-baccarat", method=AUTOMATED) as table:

        def announced() -> str:
            return str(table.run.read(lambda session: session.snapshot()["announce"]))

        table.until(NeedKind.TYPE_CARDS)
        assert announced() == ""
        table.staff.give(dealing_acts.Announce(("2H", "3H"), ("AC", "AD")))
        assert announced() == "Player 5, Banker 2"
        for third in (dealing_acts.TurnThird("player", "KS"), dealing_acts.TurnThird("banker", "2C")):
            table.until(NeedKind.TYPE_THIRD)
            assert announced() == "Player 5, Banker 2"
            table.staff.give(third)
        assert announced() == "Player 5, Banker 4: Player wins"
        table.play(lambda table: bool(table.rows("collect")))
        assert announced() == ""


@pytest.mark.rule("MDM 11.B")
def test_seats_alone_are_told_what_each_wager_pays(tmp_path: Path) -> None:
    rules = "md-mini-baccarat"
    with simulated_table(tmp_path, "seed=1&capacity=batch", rules=rules, method=AUTOMATED) as table:
        need = table.until(NeedKind.BETS)
        table.staff.give(acts.NoMoreBets(seats=(1, 2)), need)
        table.play(in_state("settling"), frozenset({NeedKind.BETS}))
        due = table.run.read(lambda session: session.snapshot()["round"]["due"])
        table.staff.give(dealing_acts.Settle())
        (settled,) = table.rows("settle")
        (cards,) = table.rows("coup_complete")
        hands: Any = cards.row.data["hands"]
        player, banker = (each["cards"] for each in hands)
        assert settled.row.data["lines"] == due
        assert {each["seat"] for each in due} == {1, 2}
        assert {each["wager"] for each in due} == set(load(rules).offered)
        for line in due:
            assert line["pays_cents"] is line["stake_cents"] is None
            won, vigorish = independent_coups.mini(line["wager"], 2000, player, banker)
            odds = line["odds"].partition(" to ")[0] or 0
            pays = {"win": 2000 * int(odds), "push": 0, "lose": -2000}[line["outcome"]]
            assert (pays, "less 5 %" in line["odds"]) == (won, vigorish > 0)


@pytest.mark.rule("MDM 11.B")
def test_what_is_due_is_what_the_act_settles(tmp_path: Path) -> None:
    rules = "md-mini-baccarat"
    with simulated_table(tmp_path, "seed=1&capacity=batch", rules=rules, method=AUTOMATED) as table:
        table.play(in_state("settling"))
        before = table.run.read(lambda session: session.snapshot()["round"])
        assert before["settlement"] is None
        table.staff.give(dealing_acts.Settle())
        (settled,) = table.rows("settle")
        amounts = ("seat", "wager", "outcome", "line", "stake_cents", "pays_cents", "vig_cents", "clause")
        assert [[each[name] for name in amounts] for each in before["due"]] == [
            [each[name] for name in amounts]  # type: ignore[index, call-overload]
            for each in settled.row.data["lines"]  # type: ignore[union-attr]
        ]
        assert table.run.read(lambda session: session.snapshot()["round"]["due"]) is None


def test_without_a_reader_the_dealer_types_the_cards(tmp_path: Path) -> None:
    query = "seed=1&capacity=batch&reader=none"
    with simulated_table(tmp_path, query, rules="md-mini-baccarat", method=AUTOMATED) as table:
        table.rounds(2)
        assert {each.row.data["source"] for each in table.rows("announce", "coup_complete")} == {"dealer"}
        assert {each.row.actor.role for each in table.rows("announce", "third_card")} == {"dealer"}


@pytest.mark.rule("BAC shoe")
def test_a_shoe_that_is_shuffled_every_round(tmp_path: Path) -> None:
    with simulated_table(
        tmp_path, "seed=1&capacity=batch", rules="baccarat-six-deck", method=AUTOMATED
    ) as table:
        table.rounds(2)
        wanted = ("finish_shuffle", "deliver", "load", "open_bets", "collect")
        assert kinds(table, *wanted)[:10] == [*wanted, *wanted]
        assert not table.rows("cut", "burn")


@pytest.mark.rule("MDM 13.D")
def test_a_card_that_comes_face_up_opens_a_simulated_round(tmp_path: Path) -> None:
    query = "seed=1&capacity=batch&fault=face_up_card@shoe:440"
    with simulated_table(tmp_path, query, rules="md-mini-baccarat", method=AUTOMATED) as table:
        table.play(lambda table: bool(table.rows("coup_simulated")))
        table.rounds(len(table.rows("collect")) + 1)
        (aside,) = table.rows("card_aside")
        (named,) = table.rows("card_exposed")
        assert named.row.round_id == aside.row.round_id
        (opened,) = table.rows("begin_simulated")
        found = rounds_of(table.rows())[opened.row.round_id]
        assert found.simulated
        assert found.facts.bets is None
        assert str(named.row.data["card"]) == found.hands[0].cards[0]  # type: ignore[index]


@pytest.mark.rule("MDM 13.E")
def test_a_shoe_that_jams_in_a_hand_is_a_shoe_no_more(tmp_path: Path) -> None:
    query = "seed=1&capacity=batch&fault=stuck@exit:436"
    with simulated_table(tmp_path, query, rules="md-mini-baccarat", method=AUTOMATED) as table:
        table.play(lambda table: bool(table.rows("void")))
        (void,) = table.rows("void")
        assert void.row.clause == "MDM 13.E"
        table.play(lambda table: len(table.rows("burn")) == 2)
        table.rounds(len(table.rows("collect")) + 1)
        assert [each.row.data["pack_id"] for each in table.rows("burn")] == [1, 2]


@pytest.mark.rule("MDM 3.B")
def test_a_batch_that_jams_on_its_way_out_has_used_its_turn(tmp_path: Path) -> None:
    query = "seed=1&capacity=batch&fault=stuck@exit:20"
    with simulated_table(tmp_path, query, rules="md-mini-baccarat", method=AUTOMATED) as table:
        table.play(
            lambda table: table.run.read(lambda session: session.procedure.table.memory.last_pack) == 1
        )
        assert not table.rows("deliver")
        table.rounds(1)
        assert [each.row.data["pack_id"] for each in table.rows("deliver", "burn")] == [2, 2]
        assert not table.rows("void")
