"""The wall's service: who may look, who may take an alarm, and what its streams send."""

import time
from typing import Any

import pytest
from tests.wall.served_wall import DEALER_PIN, ServedWall, WallClient

from sabot_web.access import IDLE_S

pytestmark = pytest.mark.slow

CALLED: dict[str, Any] = {"called": True}


def test_nobody_looks_without_a_token(wall: ServedWall) -> None:
    with WallClient(wall) as client:
        for path in ("/wall", "/table/t1", "/history", "/evidence"):
            answer = client.http.get(path)
            assert (answer.status_code, answer.headers["location"]) == (303, "/enter")
        for path in ("/api/snapshot", "/api/events/wall"):
            assert client.http.get(path).status_code == 401
        assert client.http.get("/enter").status_code == 200
        client.enter()
        assert client.http.get("/api/snapshot").status_code == 200
        for path in ("/wall", "/table/t1", "/history", "/evidence"):
            assert client.http.get(path).status_code == 200


def test_the_headers_are_those_of_the_tables_pages(wall: ServedWall) -> None:
    with WallClient(wall) as client:
        headers = client.enter().http.get("/wall").headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        assert client.http.get("/wall", headers={"Host": "evil.example"}).status_code == 421
        for path in ("/static/live.js", "/static_wall/wall.js", "/static_wall/wall.css"):
            assert client.http.get(path).status_code == 200
        for path in ("/static_wall/../wall_app.py", "/static_wall/..%2fwall_app.py"):
            assert client.http.get(path).status_code == 404


def test_no_alarm_is_taken_without_sign_in(wall: ServedWall) -> None:
    wall.spoken.tables(["t1"], **CALLED)
    wall.wait_order("t1")
    with WallClient(wall) as client, WallClient(wall) as outside:
        client.enter()
        asked = client.alarm("t1", "person_needed")
        assert outside.post("/api/alarms/take", asked).status_code == 401
        assert client.post("/api/alarms/take", asked).json()["error"] == "not_signed_in"
        without = client.http.post("/api/alarms/take", json=asked)
        assert without.json()["error"] == "csrf"
        token = wall.service.app.access.local_token
        local = {"Authorization": f"Bearer {token}"}  # a program of this computer is no person
        assert client.http.post("/api/alarms/take", json=asked, headers=local).status_code == 401
        signing = client.http.post("/api/sign-in", json={}, headers=local)
        assert signing.json()["error"] == "no_page"
        entry = wall.spoken.entry_of("t1", "person_needed")
        assert entry is not None
        assert entry.taken_by is None


@pytest.mark.parametrize(
    "shown",
    [
        {"badge": "41700001", "pin": "0000", "role": "floor"},
        {"badge": "99999999", "pin": "2749", "role": "floor"},
        {"person": "anna", "pin": "2749", "role": "floor"},  # a PIN alone signs dealers in, and nobody else
        {"person": "dora", "pin": DEALER_PIN, "role": "dealer"},
    ],
)
def test_only_floor_or_service_signs_in_and_with_badge_and_pin(
    wall: ServedWall, shown: dict[str, str]
) -> None:
    with WallClient(wall) as client:
        assert client.enter().post("/api/sign-in", shown).status_code in (401, 403)
        assert client.post("/api/alarms/take", {"table": "t", "kind": "k", "revision": 1}).status_code == 401


def test_an_alarm_is_taken_by_the_one_who_was_first_and_may_be_given_back(wall: ServedWall) -> None:
    wall.spoken.tables(["t1", "t2", "t3"])
    wall.spoken.tell("t2", **CALLED)
    wall.wait_order("t2")
    with WallClient(wall) as anna, WallClient(wall) as ben:
        assert anna.enter().sign_in("anna").json() == {"person": "anna"}
        ben.enter().sign_in("ben")
        asked = anna.alarm("t2", "person_needed")
        assert anna.post("/api/alarms/take", asked).json() == {"taken_by": "anna"}
        late = ben.post("/api/alarms/take", asked)
        assert late.status_code == 409
        assert "anna has taken this alarm" in late.json()["message"]
        entry = wall.spoken.entry_of("t2", "person_needed")
        assert entry is not None
        assert entry.taken_by == "anna"
        taken = anna.alarm("t2", "person_needed")
        assert ben.post("/api/alarms/give-back", taken).status_code == 409
        assert anna.post("/api/alarms/give-back", taken).status_code == 200
        assert ben.post("/api/alarms/take", asked).status_code == 409  # not the one that ben saw
        assert ben.post("/api/alarms/take", ben.alarm("t2", "person_needed")).status_code == 200
        gone = ben.post("/api/alarms/take", {"table": "t9", "kind": "person_needed", "revision": 1})
        assert (gone.status_code, gone.json()["message"]) == (409, "this alarm has ended")


def test_a_person_who_is_idle_or_was_removed_takes_nothing(wall: ServedWall) -> None:
    wall.spoken.tables(["t1"], **CALLED)
    wall.wait_order("t1")
    with WallClient(wall) as client:
        client.enter().sign_in("anna")
        for each in wall.service.app.access._browsers.values():
            each.touched_s = time.time() - IDLE_S - 1
        asked = client.alarm("t1", "person_needed")
        assert client.post("/api/alarms/take", asked).status_code == 401
        client.sign_in("anna")
        wall.people.remove("anna", "test", 0)
        assert "removed" in client.post("/api/alarms/take", asked).json()["message"]


def test_the_stream_sends_all_of_the_wall_and_then_what_changed(wall: ServedWall) -> None:
    wall.spoken.tables([f"t{each}" for each in range(1, 6)])
    wall.wait(lambda: [each["hearing"] for each in wall.rows()] == ["live"] * 5)
    with WallClient(wall) as client:
        stream = client.enter().events("wall")
        kind, first = next(stream)
        assert (kind, first["full"]) == ("change", True)
        assert first["parts"]["order"] == ["t1", "t2", "t3", "t4", "t5"]
        wall.spoken.tell("t4", **CALLED)
        for kind, told in stream:
            if kind == "change" and "order" in told["parts"]:
                assert not told["full"]
                assert told["parts"]["order"][0] == "t4"
                assert told["parts"]["t.t4"]["word"] == "FLOOR NEEDED"
                assert "t.t1" not in told["parts"]
                break


def test_one_tables_stream_tells_its_state_and_an_unknown_table_is_refused(wall: ServedWall) -> None:
    wall.spoken.tables(["t1"], packs=[{"pack_id": 3, "back": "red", "state": "stored", "until_s": 9}])
    wall.wait(lambda: len(wall.rows()) == 1)
    with WallClient(wall) as client:
        _, told = next(client.enter().events("table/t1"))
        detail = told["parts"]["detail"]
        assert [each["back"] for each in detail["packs"]] == ["red"]
        assert detail["machine"]["shoe"] == "ready"
        assert client.http.get("/api/events/table/t9").status_code == 404


def test_a_wall_has_no_route_to_a_machine(wall: ServedWall) -> None:
    """What a page can change is who has an alarm, who is signed in, and which notes tables show."""
    posts = {
        route.path  # type: ignore[attr-defined]
        for route in wall.service.app.asgi.routes
        if "POST" in (getattr(route, "methods", None) or ())
    }
    assert posts == {
        "/api/enter", "/api/invite", "/api/sign-in", "/api/sign-out",
        "/api/alarms/take", "/api/alarms/give-back", "/api/notes",
    }  # fmt: skip
