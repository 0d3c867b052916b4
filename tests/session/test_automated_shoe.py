"""Three Card Baccarat on the automated shoe, run by simulated people who meet needs."""

import sys
from pathlib import Path

import pytest
from tests.session.simulated_table import SimulatedTable, simulated_table

from sabot_session import acts
from sabot_session.needs import NeedKind
from sabot_session.pace import paces
from sabot_session.round_history import Round, build_round
from sabot_session.rows import Authentication
from sabot_table.procedure import TableRole

pytestmark = pytest.mark.slow
PREPARATION = ["receive_pack", "inspect", "verify", "spread", "wash", "stack"]


@pytest.mark.rule("MD3 3.B")
@pytest.mark.rule("MD3 10.B")
def test_two_decks_alternate_and_every_row_has_somebody(tmp_path: Path) -> None:
    with simulated_table(tmp_path) as table:
        table.rounds(4)
        rows = [each.row for each in table.rows()]
        opened = [row for row in rows if row.kind == "open_bets"][:4]
        assert [row.data["pack_id"] for row in opened] in ([1, 2, 1, 2], [2, 1, 2, 1])
        for pack_id in (1, 2):
            of_pack = [row.kind for row in rows if row.data.get("pack_id") == pack_id and row.round_id == 0]
            assert of_pack[:6] == PREPARATION
        for round_id in range(1, 5):
            course = [row.kind for row in rows if row.round_id == round_id]
            ends = ["count_stub", "reveal", "cards_read", "settle", "discard", "collect"]
            assert [kind for kind in course if kind not in ("sit", "play")] == [
                "open_bets", "no_more_bets", *["deal_stack"] * 3, *ends,
            ]  # fmt: skip
        assert {row.actor.how for row in rows if row.actor.role in (TableRole.DEALER, TableRole.FLOOR)} == {
            Authentication.SIMULATED
        }
        assert all(row.act_id for row in rows if row.kind in ("open_bets", "no_more_bets", "reveal"))


def test_a_round_takes_two_touches(tmp_path: Path) -> None:
    with simulated_table(tmp_path) as table:
        table.rounds(3)
        of_round = {row.row.act_id for row in table.rows() if row.row.round_id == 2 and row.row.act_id}
        closed = {row.row.round_id: row.row.act_id for row in table.rows("no_more_bets")}
        assert len(of_round - {closed.get(3)}) == 2
        found = paces(table.rows())
        sys.stdout.write("\n".join(map(str, found)))
        assert [each.touches for each in found[:3]] == [2, 2, 2]


@pytest.mark.parametrize(
    ("fault", "clause"),
    [
        pytest.param("stuck@exit:20", "MD3 13.D", id="jam", marks=pytest.mark.rule("MD3 13.D")),
        pytest.param("face_up_card@shoe", "MD3 13.A", id="face-up", marks=pytest.mark.rule("MD3 13.A")),
    ],
)
def test_a_void_round_gives_wagers_back_and_play_goes_on(tmp_path: Path, fault: str, clause: str) -> None:
    with simulated_table(tmp_path, f"seed=1&fault={fault}") as table:
        table.rounds(3)
        (void,) = [each.row for each in table.rows("void")]
        assert void.clause == clause
        (bets,) = [each.row for each in table.rows("no_more_bets") if each.row.round_id == void.round_id]
        assert void.data["give_back"] == bets.data["wagers"]
        assert len(table.rows("settle")) >= 2


@pytest.mark.rule("MD3 13.D")
def test_a_power_cut_in_a_round_voids_it(tmp_path: Path) -> None:
    with simulated_table(tmp_path, "seed=1&speed=200&dealer_ms=60000") as table:
        table.until(NeedKind.TAKE_STACK)
        table.cut_power()
        table.rounds(2)
        (void,) = [each.row for each in table.rows("void")]
        assert (void.clause, void.data["why"]) == ("MD3 13.D", "power cut")
        assert len(table.rows("machine_started")) == 2


@pytest.mark.rule("MD3 5.B")
def test_a_deck_with_a_wrong_count_leaves_and_another_comes(tmp_path: Path) -> None:
    with simulated_table(tmp_path, "seed=1&fault=missing_card@tray:30") as table:
        table.rounds(2)
        (gone,) = [each.row for each in table.rows("remove")]
        assert (gone.data["reason"], gone.actor.role) == ("wrong_count", TableRole.FLOOR)
        assert len(table.rows("receive_pack")) == 3


@pytest.mark.rule("MD3 13.A")
def test_a_report_of_the_dealer_voids_the_round_and_the_floor_countersigns(tmp_path: Path) -> None:
    with simulated_table(tmp_path) as table:
        table.until(NeedKind.BETS)
        table.staff.meet(table.need(NeedKind.BETS))
        table.staff.give(acts.ReportFaceUp())
        (void,) = table.rows("void")
        assert (void.row.clause, void.row.actor.role) == ("MD3 13.A", TableRole.DEALER)
        table.until(NeedKind.COUNTERSIGN)
        table.rounds(2)
        assert next(each.row.data["row"] for each in table.rows("countersign")) == void.number


def test_the_table_closes(tmp_path: Path) -> None:
    with simulated_table(tmp_path) as table:
        table.rounds(1)
        table.until(NeedKind.BETS)
        table.staff.give(acts.CloseTable())
        assert [need.kind for need in table.run.needs()] == [NeedKind.OPEN_TABLE]


@pytest.mark.rule("MD3 10.C")
def test_a_short_round_is_determined_and_the_blocked_shoe_is_purged_and_inspected(tmp_path: Path) -> None:
    """A card came out unseen with another one: the count is short, and no card lies in the shoe's path."""
    with simulated_table(tmp_path, "seed=1&fault=aligned_double@shoe:8") as table:
        table.rounds(3)
        (counted,) = [each.row for each in table.rows("count_wrong")]
        (determined,) = [each.row for each in table.rows("determine")]
        (void,) = [each.row for each in table.rows("void")]
        assert (counted.data["advice"], counted.data["verdict"]) == ("card_missing", None)
        assert (determined.data["verdict"], determined.actor.role) == ("card_missing", TableRole.DEALER)
        assert (void.clause, void.round_id) == ("MD3 10.C", determined.round_id)
        found = read_round_of(table, void.round_id)
        assert (found.verdict, found.facts.counted is not None) == ("card_missing", True)
        for kind in ("purge", "path_inspected"):
            assert [each.row.actor.role for each in table.rows(kind)] == [TableRole.FLOOR]
        (gone,) = [each.row for each in table.rows("remove")]
        assert gone.data["reason"] == "wrong_count"
        collected = [each.row for each in table.rows("collect") if each.row.round_id == void.round_id]
        assert [each.act_id for each in collected] == [gone.act_id], "the dealer told a verdict, nothing else"


def test_washingtons_game_is_settled_from_the_right_under_its_own_clauses(tmp_path: Path) -> None:
    with simulated_table(tmp_path, "seed=2", rules="wa-three-card-baccarat", seats=6) as table:
        table.rounds(2)
        rows = [each.row for each in table.rows()]
        assert all(row.clause.startswith("WA3 ") for row in rows if row.clause)
        lines = read_round_of(table, 1).lines
        assert [each.seat for each in lines] == sorted((each.seat for each in lines), reverse=True)
        assert len(lines) == 24
        assert {each.clause for each in lines} <= {
            "WA3 paytable", "WA3 ante", "WA3 three-kings", "WA3 tie", "WA3 dragon-bonus",
        }  # fmt: skip
        (identified,) = [row for row in rows if row.kind == "identify"]
        assert identified.clause == "WA3 versions"


def test_a_void_round_of_washington(tmp_path: Path) -> None:
    query = "seed=1&fault=stuck@exit:20"
    with simulated_table(tmp_path, query, rules="wa-three-card-baccarat") as table:
        table.rounds(2)
        (void,) = [each.row for each in table.rows("void")]
        (bets,) = [each.row for each in table.rows("no_more_bets") if each.row.round_id == void.round_id]
        assert (void.clause, void.data["give_back"]) == ("WA3 house", bets.data["wagers"])


def read_round_of(table: SimulatedTable, round_id: int) -> Round:
    return build_round(table.record.round_rows(round_id))
