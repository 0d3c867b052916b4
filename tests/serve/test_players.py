"""The players' display: a view that cannot hold more, on a listener that only reads."""

import json
import re
from dataclasses import fields
from typing import Any

import httpx
import pytest
from tests.plain_http import NO_TLS
from tests.serve.served_table import ServedTable

from sabot_serve.players_view import PlayersSnapshot, players_snapshot, players_view

FACE = re.compile(r'"(A|[2-9]|10|J|Q|K)[CDHS]"')


def test_no_face_before_the_hands_are_exposed_and_no_name_ever(snapshots: dict[str, Any]) -> None:
    hidden = json.dumps(players_view(snapshots["expose"]))
    assert not FACE.search(hidden)
    shown = json.dumps(players_view(snapshots["settled"]))
    assert FACE.search(shown)
    for told in (hidden, shown):
        assert "simulated" not in told
        assert "ante" not in told
        assert "2000" not in told


def test_it_can_hold_nothing_else() -> None:
    assert {each.name for each in fields(PlayersSnapshot)} == {
        "table", "phase", "round", "void", "hands", "roads", "meters",
    }  # fmt: skip


def test_what_players_read(snapshots: dict[str, Any]) -> None:
    assert players_snapshot(snapshots["bets"]).phase == "PLACE YOUR BETS"
    assert players_snapshot(snapshots["expose"]).phase == "NO MORE BETS"
    settled = players_snapshot(snapshots["settled"])
    assert settled.phase == "RESULT"
    assert [each.name for each in settled.hands] == ["Dealer", "Seat 1", "Seat 2"]
    assert {each.outcome for each in settled.hands[1:]} <= {"WINS", "LOSES", "TIE"}
    void = json.loads(json.dumps(snapshots["settled"]))
    (void["round"] or void["last_round"])["void_clause"] = "MD3 13.D"
    assert players_snapshot(void).phase == "ROUND IS VOID"
    with_results = {**snapshots["bets"], "results": ["banker", "tie", "player"]}
    assert set(players_snapshot(with_results).roads) == {
        "bead_plate", "big_road", "big_eye_boy", "small_road", "cockroach_pig",
    }  # fmt: skip


@pytest.mark.slow
def test_its_listener_only_reads(table: ServedTable) -> None:
    address = table.service.players_address
    with httpx.Client(base_url=address, headers={"Origin": address}, verify=NO_TLS) as player:
        assert player.get("/").status_code == 200
        for path in (
            "/api/snapshot",
            "/api/events/dealer",
            "/dealer",
            "/enter",
            "/static/dealer.js",
            "/templates",
        ):
            assert player.get(path).status_code == 404
        for path in ("/", "/events", "/api/acts", "/api/enter"):
            assert player.post(path, json={}).status_code in (404, 405)
        assert player.get("/", headers={"Host": "attacker.example"}).status_code == 421
        assert "set-cookie" not in player.get("/").headers
        with player.stream("GET", "/events") as stream:
            lines = stream.iter_lines()
            data = next(line for line in lines if line.startswith("data: "))
            assert set(json.loads(data[6:])["parts"]) == {each.name for each in fields(PlayersSnapshot)}
