"""The record alone tells every round: what was bet, dealt, counted and paid, and who did it."""

import csv
import io
import json
from dataclasses import replace
from datetime import date, timedelta, timezone
from typing import Any

import pytest
from tests.session.scripted_rounds import ANTE, CORRECT, DAY_S, LINES, TIE

from sabot_session.record import SqliteRecord
from sabot_session.round_export import COLUMNS, round_json, rounds_csv
from sabot_session.round_history import (
    RoundEnd,
    RoundFilter,
    RoundUnknown,
    build_round,
    list_rounds,
    read_round,
    rounds_of,
)
from sabot_session.rows import Actor, Authentication, NumberedRow, Row, SavedSession
from sabot_table.procedure import TableRole
from sabot_table.procedure.vocabulary import Verdict
from sabot_table.settlement import CardSource


@pytest.mark.rule("MD3 11.C")
def test_a_round_with_everything_known(played: SqliteRecord) -> None:
    found = read_round(played, 1)
    assert (found.end, found.complete, found.not_known) == (RoundEnd.SETTLED, True, ())
    assert (found.dealer, found.method, found.pack_id, found.serial) == (
        "ana",
        "automated-shoe",
        1,
        "SABOT001",
    )
    assert (found.opened_s, found.ended_s) == (DAY_S + 10, DAY_S + 110)
    assert found.facts.bets is not None
    assert found.facts.bets.to_json() == {"seats": [1], "wagers": [ANTE, TIE]}
    assert [(kind, each.seat, each.cents) for _, kind, each in found.wagers_made] == [
        ("place_wager", 1, 1000), ("place_wager", 1, 500),
        ("place_wager", 2, 700), ("withdraw_wager", 2, 700),
    ]  # fmt: skip
    assert [(str(hand.of), hand.seat, hand.cards, hand.points) for hand in found.hands] == [
        ("seat", 1, ("9H", "KS", "QD"), 9), ("dealer", 0, ("2C", "3C", "4C"), 9),
    ]  # fmt: skip
    assert found.source is CardSource.READER
    assert [each.to_json() for each in found.lines] == [{"odds": "", **each} for each in LINES]
    assert found.verdict is Verdict.CORRECT
    assert found.facts.counted is not None
    assert (found.facts.counted.stacks, found.facts.counted.stub, found.facts.counted.expected) == (6, 46, 52)
    assert [(each.kind, each.actor.person, each.actor.how) for each in found.done][-4:] == [
        ("count_stub", "", Authentication.SENSED), ("reveal", "ana", Authentication.SIGNED_IN),
        ("settle", "ana", Authentication.SIGNED_IN), ("collect", "ana", Authentication.SIGNED_IN),
    ]  # fmt: skip


def test_a_round_with_chips_and_unread_cards_is_complete_and_says_what_is_not_known(
    played: SqliteRecord,
) -> None:
    found = read_round(played, 2)
    assert (found.end, found.complete) == (RoundEnd.SETTLED, True)
    assert found.not_known == ("wagers", "cards", "results")
    assert found.facts.bets is not None
    assert found.facts.bets.seats == (1, 4)
    assert (found.lines, found.source, found.verdict) == ((), None, None)
    assert [hand.cards for hand in found.hands] == [None]


def test_a_void_round_says_why_by_whom_and_what_goes_back(played: SqliteRecord) -> None:
    found = read_round(played, 3)
    assert (found.end, found.complete) == (RoundEnd.VOID, True)
    assert found.void is not None
    assert (found.void.clause, found.void.why, found.void.actor.person) == (
        "MD3 13.D",
        "the shoe jammed",
        "bo",
    )
    assert found.void.give_back is not None
    assert [each.to_json() for each in found.void.give_back] == [ANTE]
    assert len(found.to_countersign) == 1
    assert found.done[2].number == found.to_countersign[0]


def test_the_dealer_determines_and_the_machines_advice_stays(played: SqliteRecord) -> None:
    found = read_round(played, 4)
    assert found.facts.counted is not None
    assert (found.verdict, found.facts.counted.advice) == (Verdict.MISDEALT, Verdict.CARD_MISSING)
    assert found.to_countersign == ()


def test_a_correction_replaces_and_the_older_version_stays(played: SqliteRecord) -> None:
    found = read_round(played, 5)
    (older,) = found.older
    assert (older.floor, older.dealer) == ("flo", "bo")
    assert older.before.exposed is not None
    assert older.before.exposed.hands[0].cards == ("9H", "KS", "QD")
    assert older.before.settled is not None
    assert len(older.before.settled.lines or ()) == 2
    assert found.hands[0].cards == ("8H", "KS", "QD")
    assert [each.outcome for each in found.lines] == ["lose"]
    assert found.source is CardSource.DEALER
    assert found.facts.bets == older.before.bets  # the correction left them as they were
    assert found.verdict is Verdict.CORRECT


def test_holds_and_disputes_of_a_round(played: SqliteRecord) -> None:
    found = read_round(played, 5)
    (dispute,) = found.disputes
    assert (dispute.serial, dispute.surveillance, dispute.decision) == ("SABOT001", "CAM 7, 12:04", "9 is 8")
    assert dispute.machine_wrong
    assert found.held == ()
    before = [each for each in played.round_rows(5) if each.row.kind not in ("release", "decide_dispute")]
    open_yet = build_round(before)
    assert [each.row.kind for each in before if each.number in open_yet.held] == ["hold"]
    assert open_yet.disputes[0].decision == ""


def test_seats_that_are_settled_one_by_one_add_up(played: SqliteRecord) -> None:
    found = read_round(played, 6)
    assert [(str(hand.of), hand.cards, hand.points) for hand in found.hands] == [
        ("player", ("9H", "KD"), 9), ("banker", ("7H", "AS"), 8),
    ]  # fmt: skip
    assert [(each.seat, each.outcome, each.odds, each.stake_cents) for each in found.lines] == [
        (2, "win", "1 to 1", None), (3, "lose", "", None),
    ]  # fmt: skip
    (older,) = found.older
    assert older.before.exposed is not None
    assert older.before.exposed.hands[0].cards == ("9H", "KS")
    assert found.complete


def test_rounds_that_ended_otherwise(played: SqliteRecord) -> None:
    returned, simulated, open_yet = (read_round(played, each) for each in (7, 8, 9))
    assert (returned.end, returned.complete) == (RoundEnd.RETURNED, True)
    assert (simulated.end, simulated.complete, simulated.facts.bets) == (RoundEnd.SIMULATED, True, None)
    assert (open_yet.end, open_yet.complete) == (RoundEnd.OPEN, False)
    assert open_yet.missing == ("end", "settlement", "hands")


@pytest.mark.parametrize("kind", ["open_bets", "no_more_bets", "reveal", "settle", "collect"])
def test_a_round_that_misses_a_row_is_not_complete(played: SqliteRecord, kind: str) -> None:
    rows = [each for each in played.round_rows(1) if each.row.kind != kind]
    assert not build_round(rows).complete
    assert build_round(played.round_rows(1)).complete


def test_rounds_from_rows_alone_are_those_of_the_record(played: SqliteRecord) -> None:
    found = rounds_of(played.all_rows())
    assert list(found) == list(range(1, 10))
    assert all(found[each] == read_round(played, each) for each in found)


def test_the_page_of_a_record_does_not_matter(played: SqliteRecord) -> None:
    rows = [each for start in range(0, 99, 7) for each in played.rows(start, 7)]
    assert [each.number for each in rows] == [each.number for each in played.all_rows()]


def test_an_unknown_round_is_said(played: SqliteRecord) -> None:
    for round_id in (0, 10, -1):
        with pytest.raises(RoundUnknown, match=f"no round {round_id}"):
            read_round(played, round_id)


@pytest.mark.parametrize(
    ("wanted", "rounds"),
    [
        ({}, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ({"day": date(1970, 1, 2)}, [1, 2, 3, 4, 5, 6, 7]),
        ({"day": date(1970, 1, 3)}, [8, 9]),
        ({"day": date(1970, 1, 4)}, []),
        ({"day": date(1970, 1, 2), "zone": timezone(timedelta(hours=-1))}, [8, 9]),
        ({"dealer": "ana"}, [1, 2, 8, 9]),
        ({"dealer": "an"}, []),
        ({"verdict": "correct"}, [1, 5]),
        ({"verdict": "misdealt"}, [4]),
        ({"verdict": "void"}, [3, 4]),
        ({"verdict": "not_counted"}, [2, 3, 6, 7, 8, 9]),
        ({"verdict": "void", "dealer": "ana"}, []),
    ],
)
def test_rounds_are_listed_by_day_dealer_and_verdict(
    played: SqliteRecord, wanted: dict[str, Any], rounds: list[int]
) -> None:
    assert [each.round_id for each in list_rounds(played, RoundFilter(**wanted))] == rounds


def test_a_recount_replaces_the_count() -> None:
    device = Actor("", TableRole.DEVICE, Authentication.SENSED)
    rows = [
        NumberedRow(1, Row("count_stub", 1, device, CORRECT, 7)),
        NumberedRow(2, Row("recount", 2, device, CORRECT | {"stub": 45, "verdict": "card_missing"}, 7)),
    ]
    assert build_round(rows).verdict is Verdict.CARD_MISSING


def test_json_has_all_of_a_round(played: SqliteRecord) -> None:
    told = [json.loads(json.dumps(round_json(each))) for each in list_rounds(played)]
    first, second, void, _, corrected, *_ = told
    assert (first["hands"][1]["points"], first["settled"]["lines"][0]["vig_cents"]) == (9, 50)
    assert (first["verdict"], first["counted"]["stub"], first["done"][0]["person"]) == ("correct", 46, "ana")
    assert second["bets"] == {"seats": [1, 4], "wagers": None}
    assert second["not_known"] == ["wagers", "cards", "results"]
    assert void["void"]["give_back"] == [ANTE]
    assert corrected["older"][0]["exposed"]["hands"][0]["cards"] == ["9H", "KS", "QD"]
    assert corrected["disputes"][0]["machine_wrong"] is True
    assert len({frozenset(each) for each in told}) == 1  # the same keys for every round


def test_csv_has_a_line_for_each_result(played: SqliteRecord) -> None:
    text = rounds_csv(list_rounds(played))
    read = list(csv.DictReader(io.StringIO(text, newline="")))
    assert tuple(read[0]) == COLUMNS
    assert [each["round"] for each in read] == ["1", "1", "2", "3", "4", "5", "6", "6", "7", "8", "9"]
    ante, tie, chips, void, _, corrected, chip_win, *_ = read
    assert (ante["opened"], ante["seats_hand"], ante["dealers_hand"]) == (
        "1970-01-02T00:00:10Z", "9H KS QD (9)", "2C 3C 4C (9)",
    )  # fmt: skip
    assert [(each["net_cents"], each["clause"]) for each in (ante, tie)] == [
        ("950", "MD3 12.A"), ("-500", "MD3 12.B-tie"),
    ]  # fmt: skip
    assert (chips["not_known"], chips["complete"], chips["dealers_hand"]) == (
        "wagers, cards, results", "yes", "not known",
    )  # fmt: skip
    assert (void["void_clause"], void["void_why"]) == ("MD3 13.D", "the shoe jammed")
    assert [void[each] for each in ("seat", "wager", "stake_cents", "outcome", "net_cents", "clause")] == [
        "1", "ante", "1000", "returned", "0", "MD3 13.D",
    ]  # fmt: skip
    assert corrected["corrected"] == "yes"
    assert (chip_win["odds"], chip_win["net_cents"]) == ("1 to 1", "")
    assert read[-1]["complete"] == "no: end, settlement, hands"


def test_a_text_that_looks_like_a_formula_is_no_formula_in_a_spreadsheet(played: SqliteRecord) -> None:
    found = read_round(played, 3)
    assert found.void is not None
    evil = replace(found, void=replace(found.void, why='=HYPERLINK("http://x")'))
    (read,) = csv.DictReader(io.StringIO(rounds_csv([evil]), newline=""))
    assert read["void_why"].startswith("'=")


def test_rounds_outlive_the_program(played: SqliteRecord) -> None:
    """A resumed round keeps its count and its verdict."""
    before = {each: read_round(played, each) for each in range(1, 10)}
    path = played.path
    played.close()
    with SqliteRecord(path) as again:
        again.commit(
            [Row("interruption", 9, Actor("", TableRole.PROGRAM, Authentication.PROGRAM), {"last_s": 8}, 5)],
            SavedSession("{}", 1),
        )
        for round_id, found in before.items():
            resumed = read_round(again, round_id)
            assert (resumed.facts, resumed.verdict, resumed.end) == (found.facts, found.verdict, found.end)


def test_the_first_reason_of_a_void_round_stays() -> None:
    device = Actor("", TableRole.DEVICE, Authentication.SENSED)
    first, second = {"why": "the shoe jammed", "give_back": None}, {"why": "told again", "give_back": None}
    rows = [
        NumberedRow(1, Row("void", 1, device, first, 7)),
        NumberedRow(2, Row("void", 2, device, second, 7)),
    ]
    void = build_round(rows).void
    assert void is not None
    assert void.why == "the shoe jammed"
