"""Acts over HTTP: who may give them, what becomes of them, and that a repeated one does nothing twice."""

import time
from pathlib import Path

import httpx
import pytest
from tests.serve.page_client import PageClient
from tests.serve.served_table import EVERYBODY, PACE_S, ServedTable, served_table

from sabot_serve.table_people import AtPage
from sabot_session import acts
from sabot_session.errors import NotAuthenticated
from sabot_session.needs import NeedKind
from sabot_session.rows import Authentication

pytestmark = pytest.mark.slow


def prepared(page: PageClient) -> None:
    """The dealer of the page prepares both packs, until bets can be closed."""
    assert page.sign_in().json()["deals"]
    table = page.table

    def ready(found: ServedTable) -> bool:
        for need in found.needs():
            if need.kind is NeedKind.PREPARE_PACK and "dealer" in need.roles:
                page.act(need.acts[0], need, pack_id=need.details["pack_id"])
        return [each.kind for each in found.needs()] == [NeedKind.BETS]

    table.wait(ready)


def test_a_round_in_two_acts_by_the_dealer_of_the_page(page: PageClient) -> None:
    table = page.table
    prepared(page)
    before = len(table.rows())
    bets = table.wait_need(NeedKind.BETS)
    assert page.act("no_more_bets", bets, wagers={"1": {"ante": 2500}, "2": {"ante": 500}}).status_code == 200
    assert page.act("expose", table.wait_need(NeedKind.EXPOSE)).status_code == 200
    table.wait(lambda found: bool(found.rows("settle")))
    mine = [each.row for each in table.rows()[before:] if each.row.act_id]
    assert {each.act_id for each in mine} == {mine[0].act_id, mine[-1].act_id}
    assert {(each.actor.person, each.actor.how) for each in mine} == {("dealer", Authentication.SIGNED_IN)}


def test_an_act_that_is_sent_twice_is_done_once(page: PageClient) -> None:
    prepared(page)
    bets = page.table.wait_need(NeedKind.BETS)
    wagers = {"1": {"ante": 2500}}
    first = page.act("no_more_bets", bets, act_id="the-same-act", wagers=wagers)
    again = page.act("no_more_bets", bets, act_id="the-same-act", wagers=wagers)
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == {"row": first.json()["row"], "repeated": True}
    assert len(page.table.rows("no_more_bets")) == 1


def test_a_need_that_another_page_met_is_gone_and_names_who_did(page: PageClient) -> None:
    prepared(page)
    bets = page.table.wait_need(NeedKind.BETS)
    with PageClient(page.table) as other:
        other.enter()
        assert other.sign_in().json()["deals"]
        assert other.act("no_more_bets", bets, wagers={"1": {"ante": 2500}}).status_code == 200
    refused = page.act("no_more_bets", bets, wagers={"1": {"ante": 2500}})
    assert refused.status_code == 409
    assert refused.json()["error"] == "need_gone"
    assert "by dealer" in refused.json()["message"]


def test_nobody_acts_at_a_page_where_nobody_signed_in(page: PageClient) -> None:
    with PageClient(page.table) as other:
        other.enter()
        prepared(other)
    refused = page.act("no_more_bets", page.table.wait_need(NeedKind.BETS), wagers={"1": {"ante": 500}})
    assert refused.status_code == 401
    assert "dealer deals at this table" in refused.json()["message"]
    assert not page.table.rows("no_more_bets")


def test_a_dealer_who_was_relieved_elsewhere_acts_no_more(page: PageClient) -> None:
    prepared(page)
    assert page.act("call_floor").status_code == 200
    assert page.act("sign_out").status_code == 200
    assert page.act("call_floor").status_code == 401
    with pytest.raises(NotAuthenticated):
        page.table.act("x" * 8, None, 0, AtPage(""), acts.CallFloor())


def test_the_floor_shows_a_credential_at_each_act(tmp_path: Path) -> None:
    with served_table(tmp_path, simulated=()) as table, PageClient(table) as page:
        page.enter()
        table.wait(lambda found: found.snapshot()["device"]["up"])
        need = table.wait_need(NeedKind.OPEN_TABLE)
        assert page.act("open_table", need).status_code == 401
        assert page.act("open_table", need, credential=page.credential("floor", "000111")).status_code == 401
        assert page.act("open_table", need, credential=page.credential("service")).status_code == 403
        assert (
            page.act(
                "open_table", need, credential={"person": "floor", "pin": table.pin("floor")}
            ).status_code
            == 401
        )
        assert not table.rows("open_table")
        assert page.act("open_table", need, credential=page.credential("floor")).status_code == 200
        (row,) = table.rows("open_table")
        assert (row.row.actor.person, row.row.actor.how) == ("floor", Authentication.BADGE_AND_PIN)
        bring = table.wait_need(NeedKind.RECEIVE_PACK)
        refused = page.act("receive_pack", bring, back=bring.details["back"], bag="B1")
        assert refused.status_code == 401


def test_wrong_pins_are_counted_and_told(page: PageClient) -> None:
    codes = [page.sign_in("dealer", "0001").status_code for _ in range(6)]
    assert codes[:3] == [401, 401, 401]
    assert codes[3:] == [429, 429, 429]
    assert page.sign_in().status_code == 429  # even the right one waits
    assert not page.table.rows("sign_in")


def test_a_program_of_this_computer_needs_a_persons_credential_too(
    table: ServedTable, local: httpx.Client
) -> None:
    body = {"act_id": "a" * 8, "seen": 0, "act": "call_floor", "data": {}}
    assert local.post("/api/acts", json=body).status_code == 401
    shown = {"person": "dealer", "pin": table.pin("dealer")}
    assert local.post("/api/acts", json={**body, "credential": shown}).status_code == 200
    assert local.get("/api/snapshot").json()["version"] == 1
    assert "no_more_bets" in local.get("/api/description").json()["acts"]


NO_ACTS: list[tuple[dict[str, object], int]] = [
    ({"act": "no_such_act"}, 400),
    ({"act": "determine", "data": {"verdict": "perhaps"}}, 400),
    ({"act": "close_table", "data": {"more": 1}}, 400),
    ({"seen": -1}, 400),
    ({"seen": "1"}, 400),
    ({"act_id": "../../x"}, 400),
    ({"extra": True}, 400),
    ({"act": "expose"}, 401),
]


def test_requests_that_make_no_act(page: PageClient) -> None:
    for body, status in NO_ACTS:
        whole = {"act_id": "a" * 8, "need": None, "seen": 0, "act": "call_floor", "data": {}, **body}
        answer = page.post("/api/acts", whole)
        assert answer.status_code == status, (body, answer.text)
        assert set(answer.json()) == {"error", "message", "advice"}
        assert not [each for each in page.table.rows() if each.row.act_id == whole["act_id"]]


def test_a_person_relieves_the_simulated_dealer_who_then_deals_no_more(tmp_path: Path) -> None:
    with served_table(tmp_path, simulated=EVERYBODY) as table, PageClient(table) as page:
        page.enter()
        table.wait(lambda found: len(found.rows("settle")) >= 1)

        def relieved(_: ServedTable) -> bool:
            time.sleep(10 * PACE_S)  # a PIN is slow to check: not too often
            return bool(page.sign_in().json()["deals"])

        table.wait(relieved)

        def at_bets(found: ServedTable) -> bool:
            for need in found.needs():
                if need.kind is NeedKind.EXPOSE:  # of a round that was begun before
                    page.act("expose", need)
            return any(each.kind is NeedKind.BETS for each in found.needs())

        for _ in range(2):  # the simulated dealer may have said it just when he was relieved
            table.wait(at_bets)
            time.sleep(20 * PACE_S)  # he would have closed the bets
        assert page.act("no_more_bets", table.wait_need(NeedKind.BETS)).status_code == 200
        assert table.rows("no_more_bets")[-1].row.actor.person == "dealer"
        assert table.dealer() == "dealer"
