"""A record takes rows of known kinds only, with the right data, by an actor who can have done it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest

from sabot_session import row_data as d
from sabot_session.errors import BadRow
from sabot_session.row_data import CardText, RowData
from sabot_session.row_kinds import BY_NAME, FROM_THE_MACHINE, HOW, KINDS, ROLES, By, check_row
from sabot_session.rows import Actor, Authentication, Row
from sabot_table.procedure import TableRole
from sabot_table.text_vocabulary import EVERY_ACT

MakeRow = Callable[..., Row]
WIN = {"seat": 1, "wager": "tie", "outcome": "win", "line": "tie", "clause": "MD3 12.B"}
SHOWN = {"of": "dealer", "cards": ["KH", "10S", "9C"]}


def test_every_kind_has_one_name() -> None:
    assert len(BY_NAME) == len(KINDS)


@pytest.mark.parametrize("action", sorted(EVERY_ACT))
def test_every_action_of_the_procedure_has_a_kind_of_row(action: str) -> None:
    assert action in BY_NAME


def test_a_row_is_completed_with_what_its_kind_leaves_open(make_row: MakeRow) -> None:
    row = check_row(make_row("void", 7, why="jam", give_back=None))
    assert row.data == {"why": "jam", "give_back": None, "countersign": False}


@pytest.mark.parametrize(
    ("kind", "round_id", "data"),
    [
        ("inspect", 0, {}),
        ("inspect", 0, {"pack_id": "1"}),
        ("inspect", 0, {"pack_id": True}),
        ("inspect", 0, {"pack_id": 1, "colour": "red"}),
        ("place_wager", 7, {"seat": 17, "wager": "ante", "cents": 500}),
        ("place_wager", 7, {"seat": 1, "wager": "ante", "cents": 5.5}),
        ("place_wager", 7, {"seat": 1, "wager": "ante", "cents": -5}),
        ("no_more_bets", 7, {"seats": [1, 1], "wagers": None}),
        ("no_more_bets", 7, {"seats": [1], "wagers": [{"seat": 2, "wager": "ante", "cents": 500}]}),
        ("no_more_bets", 7, {"seats": [1], "wagers": [{"seat": 1, "wager": "ante", "cents": 500}] * 2}),
        ("reveal", 7, {"hands": [{"of": "dealer", "cards": ["XX"]}], "source": "reader"}),
        ("reveal", 7, {"hands": [SHOWN], "source": None}),
        ("reveal", 7, {"hands": [SHOWN, SHOWN], "source": "reader"}),
        ("reveal", 7, {"hands": [{"of": "seat", "cards": None}], "source": None}),
        ("reveal", 7, {"hands": [{"of": "dealer", "cards": None, "points": 3}], "source": None}),
        ("reveal", 7, {"hands": [{"of": "dealer", "cards": None}], "source": "reader"}),
        ("settle", 7, {"lines": [{**WIN, "stake_cents": None, "pays_cents": None, "vig_cents": None}]}),
        ("settle", 7, {"lines": [{**WIN, "stake_cents": 500, "pays_cents": None, "vig_cents": 0}]}),
        ("remove", 0, {"pack_id": 1, "reason": "damaged"}),
        ("correct", 7, {"dealer": "d1", "dealer_how": "pin", "why": "wrong card"}),
        ("correct", 7, {"dealer": "d1", "dealer_how": "program", "why": "x", "settled": {"lines": None}}),
        ("hours_warned", 0, {"pack_id": 1, "minutes": 20, "until_s": 5}),
    ],
)  # fmt: skip
def test_wrong_data_is_refused(make_row: MakeRow, kind: str, round_id: int, data: dict[str, Any]) -> None:
    with pytest.raises(BadRow, match=f"row '{kind}': its data does not fit"):
        check_row(make_row(kind, round_id, **data))


def test_a_win_of_an_unknown_stake_says_what_it_pays(make_row: MakeRow) -> None:
    line = {**WIN, "odds": "8 to 1", "stake_cents": None, "pays_cents": None, "vig_cents": None}
    assert check_row(make_row("settle", 7, lines=[line])).data["lines"] == [line]


def test_an_unknown_kind_is_refused(make_row: MakeRow) -> None:
    with pytest.raises(BadRow, match="no such kind"):
        check_row(replace(make_row("idle"), kind="coffee_break"))


def test_a_row_of_a_round_names_it_and_no_other_does(make_row: MakeRow) -> None:
    with pytest.raises(BadRow, match="names none"):
        check_row(make_row("collect"))
    with pytest.raises(BadRow, match="belongs to no round"):
        check_row(make_row("idle", 7))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_only_those_who_can_have_done_it_are_its_actor(make_row: MakeRow, kind: Any) -> None:
    """Every role, every way to be known: the table of kinds decides, and nobody is no one."""
    for role in TableRole:
        for how in Authentication:
            row = replace(make_row(kind.name, 7), actor=Actor("x", role, how))
            person = role in (TableRole.DEALER, TableRole.FLOOR, TableRole.SERVICE)
            sensed = how is Authentication.SENSED
            allowed = role in ROLES[kind.by] and how in HOW.get(role, ())
            allowed = allowed and (not (sensed and person) or kind.by in FROM_THE_MACHINE)
            allowed = allowed and (sensed or kind.by is not By.DEVICE)
            assert _actor_passes(replace(row, actor=Actor("x" if person else "", role, how))) == allowed
            assert not _actor_passes(replace(row, actor=Actor("" if person else "x", role, how)))


def _actor_passes(row: Row) -> bool:
    try:
        check_row(row)
    except BadRow as error:
        return "does not fit" in str(error) or "belongs to no round" in str(error)
    return True


def test_a_pin_alone_authorises_nothing_of_the_floor_or_of_service(make_row: MakeRow) -> None:
    for role in (TableRole.FLOOR, TableRole.SERVICE):
        for how in (Authentication.PIN, Authentication.SIGNED_IN, Authentication.SENSED):
            assert how not in HOW[role]
    row = make_row("countersign", row=3, actor=Actor("f1", TableRole.FLOOR, Authentication.PIN))
    with pytest.raises(BadRow, match="cannot be known by 'pin'"):
        check_row(row)


def test_what_is_sensed_at_a_dealers_hands_follows_from_an_event(make_row: MakeRow) -> None:
    row = make_row("no_more_bets", 7, seats=[1], wagers=None)
    assert check_row(row).actor.how is Authentication.SENSED
    with pytest.raises(BadRow, match="no event of the machine"):
        check_row(replace(row, follows=None))


def test_faces_are_only_in_rows_of_exposed_cards() -> None:
    """A face in any other row could be on record before the dealer exposed the hands."""
    with_faces = {kind.name for kind in KINDS if _has_face(kind.data)}
    assert with_faces == {
        "burn", "burn_card", "announce", "third_card", "expose_hand", "reveal", "cards_read", "coup_complete",
        "coup_simulated",
        "retype", "correct", "propose_correction", "face_up_card", "drawn_in_error", "unauthorised_third",
        "card_exposed",
    }  # fmt: skip


def _has_face(model: type[RowData]) -> bool:
    return any(_mentions_face(field.annotation, field.metadata) for field in model.model_fields.values())


def _mentions_face(annotation: Any, metadata: list[Any]) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, RowData):
        return _has_face(annotation)
    face = get_args(CardText)[1]
    return face in metadata or any(
        each == CardText or _mentions_face(each, []) for each in get_args(annotation)
    )


def test_not_known_is_not_none() -> None:
    assert d.Bets(seats=(), wagers=()) != d.Bets(seats=(), wagers=None)
