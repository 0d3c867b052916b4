"""The floor's page: every need, acts with a credential each, the record and its rounds."""

from typing import Any

import httpx
import pytest
from tests.plain_http import NO_TLS
from tests.serve.page_client import PageClient
from tests.serve.served_table import EVERYBODY, ServedTable, served_table

from sabot_serve.floor_view import floor_view


def test_every_button_asks_for_a_credential_and_none_is_the_dealers(snapshots: dict[str, Any]) -> None:
    for snapshot in snapshots.values():
        view = floor_view(snapshot)
        assert [each["id"] for each in view["needs"]] == [each["id"] for each in snapshot["needs"]]
        buttons = [button for each in view["needs"] for button in each["buttons"]] + view["offers"]
        assert all(each["credential"] for each in buttons)
        assert all("dealer" not in each["roles"] for each in buttons)
    assert "void_round" in {each["act"] for each in floor_view(snapshots["expose"])["offers"]}


def test_countersignatures_are_needs_of_the_floor(snapshots: dict[str, Any]) -> None:
    need = {
        "id": "countersign-1",
        "kind": "countersign",
        "roles": ["floor"],
        "words": "countersign row 5",
        "clause": "",
        "acts": ["countersign"],
        "sensed": False,
        "since_s": 0,
        "seen": 5,
        "details": {"row": 5},
    }
    (shown,) = floor_view({**snapshots["bets"], "needs": [need]})["needs"]
    (button,) = shown["buttons"]
    assert button["data"] == {"row": 5}
    assert button["label"] == "Countersign"


@pytest.mark.slow
def test_the_record_and_its_rounds(tmp_path_factory: pytest.TempPathFactory) -> None:
    with (
        served_table(tmp_path_factory.mktemp("floor"), simulated=EVERYBODY) as table,
        PageClient(table) as page,
    ):
        page.enter()
        table.wait(lambda found: len(found.rows("settle")) >= 1)
        assert page.http.get("/floor").status_code == 200
        rows = page.http.get("/api/rows", params={"after": 3}).json()["rows"]
        assert [each["number"] for each in rows[:2]] == [4, 5]
        assert {"simulated floor", "simulated dealer"} <= {each["person"] for each in rows}
        told = page.http.get("/api/rounds/1").json()
        assert told["round_id" if "round_id" in told else "round"] == 1
        assert page.http.get("/api/rounds/99999").status_code == 404
        for wrong in ("9" * 20, "9" * 5000, "-1", "one"):
            assert page.http.get(f"/api/rounds/{wrong}").status_code == 400, wrong
        for wrong in ("-1", "x", "1" * 40, ""):
            assert page.http.get("/api/rows", params={"after": wrong}).status_code == 400
        with httpx.Client(base_url=table.address, verify=NO_TLS) as nobody:
            for path in ("/api/rows", "/api/rounds/1", "/api/events/floor"):
                assert nobody.get(path).status_code == 401
            assert nobody.get("/floor").status_code == 303


def test_no_row_tells_a_pin_or_a_badge(table: ServedTable, local: httpx.Client) -> None:
    told = local.get("/api/rows").text
    for badge, pin in table.shown.shown.values():
        assert f'"{pin}"' not in told
        assert not badge or badge not in told
