"""Attacks on a table's web service: other sites in the same browser, wrong names, credentials, floods."""

import http.client
import json
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.plain_http import NO_TLS
from tests.serve.page_client import PageClient
from tests.serve.served_table import ServedTable, served_table

from sabot_session.needs import NeedKind
from sabot_web import listening, view_channels, web_guard
from sabot_web.access import FAILURES
from sabot_web.listening import MOST_CONNECTIONS
from sabot_web.view_channels import MOST_READERS
from sabot_web.web_guard import LARGEST_BODY

pytestmark = pytest.mark.slow
FACE = re.compile(r'"(A|[2-9]|10|T|J|Q|K)[CDHS]"')
FOREIGN = "http://attacker.example"
BEATS = 8  # of a stream that goes on, in four seconds
CALL: dict[str, Any] = {
    "act_id": "attack-1",
    "need": None,
    "seen": 0,
    "act": "call_floor",
    "data": {},
    "credential": None,
}


def raw(table: ServedTable, request: bytes, most: int = 4096) -> bytes:
    """What the service answers to bytes that no browser would send."""
    port = int(table.address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 5.0) as to:
        to.sendall(request)
        return to.recv(most)


def settled(table: ServedTable) -> int:
    """Wait until simulated people have done all that they can do without a dealer; the rows on record."""
    table.wait(lambda found: len(found.rows("receive_pack")) == 2)
    return len(table.rows())


def test_a_get_changes_nothing(attacked: PageClient) -> None:
    """A picture's address on any page makes a browser send a GET, cookies included."""
    rows = settled(attacked.table)
    token = attacked.table.token()
    for path in ("acts", "sign-in", "sign-out", "enter", "invite"):
        answer = attacked.http.get(f"/api/{path}", params={"token": token, **{"act": "call_floor"}})
        assert answer.status_code == 405
    assert len(attacked.table.rows()) == rows
    with PageClient(attacked.table) as other:
        assert other.http.post("/api/enter", json={"token": token}).status_code == 200  # no GET used it up


def test_a_page_of_another_site_can_do_nothing(attacked: PageClient) -> None:
    """A form or script of another site sends requests with this browser's cookie, where cookies allow it."""
    rows = settled(attacked.table)
    for headers in (
        {"Origin": FOREIGN},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": attacked.table.address.replace("127.0.0.1", "localhost.attacker.example")},
    ):
        assert attacked.post("/api/acts", CALL, **headers).status_code == 403
        assert attacked.http.get("/api/snapshot", headers=headers).status_code == 403
    no_origin = httpx.Client(base_url=attacked.table.address, cookies=attacked.http.cookies, verify=NO_TLS)
    with no_origin:
        answer = no_origin.post("/api/acts", json=CALL, headers={"X-Sabot-CSRF": attacked.csrf})
    assert answer.status_code == 403
    assert len(attacked.table.rows()) == rows


def test_a_name_that_points_here_is_refused(attacked: PageClient) -> None:
    """DNS rebinding: the attacker's name points to 127.0.0.1, so the browser takes both for one site."""
    port = attacked.table.address.rpartition(":")[2]
    for host in (f"attacker.example:{port}", "attacker.example", "127.0.0.1", f"127.0.0.1.:{port}", ""):
        answer = attacked.http.get("/api/snapshot", headers={"Host": host})
        assert answer.status_code in (400, 421), host
        assert "packs" not in answer.text
    two = f"GET /enter HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: attacker.example\r\n\r\n".encode()
    assert b" 200 " not in raw(attacked.table, two)


def test_a_request_without_the_pages_csrf_token_is_refused(attacked: PageClient) -> None:
    """Another page of the same browser has the cookie; only pages of the service know the CSRF token."""
    with PageClient(attacked.table) as other:
        other.enter()
        for token in ("", "x", other.csrf):
            answer = attacked.http.post("/api/acts", json=CALL, headers={"X-Sabot-CSRF": token})
            assert answer.status_code == 403
            assert answer.json()["error"] == "csrf"


def test_nobody_looks_or_acts_without_being_let_in(attacked: PageClient) -> None:
    """Loopback is no credential: any program and any user of this computer reaches the port."""
    with httpx.Client(
        base_url=attacked.table.address, headers={"Origin": attacked.table.address}, verify=NO_TLS
    ) as nobody:
        for path in ("/api/snapshot", "/api/description", "/api/events/dealer", "/api/events/table"):
            assert nobody.get(path).status_code == 401
        assert nobody.get("/dealer").status_code == 303
        for path in ("/api/acts", "/api/sign-in", "/api/sign-out"):
            assert nobody.post(path, json=CALL).status_code == 401
        assert nobody.post("/api/invite", json={}).status_code == 403
        guesses = [nobody.post("/api/enter", json={"token": f"guess{at}"}).status_code for at in range(20)]
        assert set(guesses) == {403}
        wrong = {"Authorization": "Bearer guess"}
        assert nobody.get("/api/snapshot", headers=wrong).status_code == 401


def test_one_local_programs_person_is_not_anothers(attacked: PageClient) -> None:
    """A program signed a dealer in by the local token: every program with that token then was the dealer.

    None of them showed a credential, the record said *signed in*, and no idle time ended it.
    """
    table = attacked.table
    local = {"Authorization": f"Bearer {table.service.app.access.local_token}"}
    with httpx.Client(base_url=table.address, headers=local, verify=NO_TLS) as program:
        shown = {"person": "dealer", "pin": table.pin("dealer")}
        refused = program.post("/api/sign-in", json=shown)
        assert (refused.status_code, refused.json()["error"]) == (403, "no_page")
        assert program.post("/api/sign-out", json={}).status_code == 403
        attacked.sign_in()
        assert program.post("/api/acts", json=CALL).status_code == 401
        with_credential = {**CALL, "credential": shown}
        assert program.post("/api/acts", json=with_credential).status_code == 200


def test_a_refused_request_writes_one_line_of_plain_text(
    attacked: PageClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The path of a refused request was logged as it came: with line ends, and sequences for a terminal."""
    at = attacked.table.address.removeprefix("http://")
    path = "/api/rounds/1%0asabot: all is well%1b[2J".replace(" ", "%20") + "x" * 2000
    for host in ("attacker.example", at):
        raw(attacked.table, f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    attacked.sign_in("nobody\n\x1b[2J", "1234")
    told = [each.getMessage() for each in caplog.records if "refused" in each.getMessage()]
    assert len(told) == 3
    assert all(each.isprintable() and len(each) < 400 for each in told)


def test_a_token_and_a_credential_cannot_be_used_again(attacked: PageClient) -> None:
    """Whoever reads a token over a shoulder, or repeats what the floor sent, gets nothing."""
    token = attacked.table.token()
    with PageClient(attacked.table) as other:
        assert other.http.post("/api/enter", json={"token": token}).status_code == 200
        assert other.http.post("/api/enter", json={"token": token}).status_code == 403
    attacked.sign_in()
    body = {**CALL, "act": "close_table", "credential": attacked.credential("floor")}
    first = attacked.post("/api/acts", body)
    again = attacked.post("/api/acts", {**body, "act": "open_table", "credential": None})
    assert first.status_code == 200
    assert again.json() == {"row": first.json()["row"], "repeated": True}  # the floor's authority ended
    fresh = attacked.post(
        "/api/acts", {**body, "act_id": "attack-2", "act": "open_table", "credential": None}
    )
    assert fresh.status_code in (401, 403)
    assert len(attacked.table.rows("close_table")) == 1


def test_bodies_and_heads_are_bounded(attacked: PageClient) -> None:
    """A client could fill the memory of the table PC."""
    large = {**CALL, "data": {"why": "x" * LARGEST_BODY}}
    assert attacked.post("/api/acts", large).status_code == 413
    chunks: Iterator[bytes] = (b"x" * 1024 for _ in range(64))
    headers = {"X-Sabot-CSRF": attacked.csrf, "Content-Type": "application/json"}
    assert attacked.http.post("/api/acts", content=chunks, headers=headers).status_code == 413
    for length in ("-1", "1e9", "9" * 30):
        host = attacked.table.address.removeprefix("http://")
        head = f"POST /api/acts HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n"
        assert b" 200 " not in raw(attacked.table, head.encode())
    assert b" 200 " not in raw(attacked.table, b"GET /enter HTTP/1.1\r\nX: " + b"x" * 200_000)
    deep = "[" * 7000 + "]" * 7000
    answer = attacked.http.post("/api/acts", content=deep.encode(), headers=headers)
    assert answer.status_code == 400
    assert attacked.http.get("/api/snapshot").status_code == 200


def test_a_cursor_reads_nothing_but_the_stream(attacked: PageClient) -> None:
    """A cursor comes from the client: it must not reach another run's state, nor any file."""
    for cursor in ("../../etc/passwd", "0" * 10_000, "a.b.c", "%00", "1.1e9", "-1", "null"):
        first = next(data for kind, _, data in attacked.events(after=cursor) if kind == "change")
        assert first["full"]
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/api/events/..%2f"):
        assert attacked.http.get(path).status_code == 404


def test_readers_that_never_read_are_dropped(attacked: PageClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that opens streams and reads nothing would hold memory for each."""
    monkeypatch.setattr(view_channels, "STALL_S", 0.2)
    access = attacked.table.service.app.access
    port = int(attacked.table.address.rpartition(":")[2])
    head = (
        f"GET /api/events/table HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Authorization: Bearer {access.local_token}\r\n\r\n"
    ).encode()
    opened = []
    try:
        for _ in range(MOST_READERS + 5):
            to = socket.create_connection(("127.0.0.1", port), 5.0)
            to.sendall(head)
            opened.append(to)
        views = attacked.table.service.app.views
        attacked.table.wait(lambda _: views.readers("table") == MOST_READERS)
        assert attacked.http.get("/api/events/table").status_code == 503
        assert next(kind for kind, _, _ in attacked.events()) == "change"  # the dealer's page still comes
        assert attacked.http.get("/api/snapshot").status_code == 200
    finally:
        for to in opened:
            to.close()
    attacked.table.wait(lambda _: views.readers("table") == 0)


def test_connections_without_a_request_are_ended_and_pages_come_in_again(
    attacked: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reaches the port opens more connections than are allowed, and sends half a head on each."""
    monkeypatch.setattr(listening, "HEAD_S", 1.0)
    port = int(attacked.table.address.rpartition(":")[2])
    opened = []
    try:
        for _ in range(MOST_CONNECTIONS + 5):
            to = socket.create_connection(("127.0.0.1", port), 5.0)
            to.sendall(b"GET /enter HTTP/1.1\r\nHost: ")
            opened.append(to)
        assert attacked.http.get("/enter").status_code in (200, 503)  # bounded, and told

        def back(_: ServedTable) -> bool:
            return attacked.http.get("/enter").status_code == 200

        attacked.table.wait(back)
        for to in opened:
            to.settimeout(20)
            assert not to.recv(65536).startswith(b"HTTP/1.1 200")
    finally:
        for to in opened:
            to.close()


def test_a_second_head_that_does_not_come_is_ended(
    attacked: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request of a connection is whole, the second one never ends."""
    at = attacked.table.address.removeprefix("http://")
    request = f"GET /enter HTTP/1.1\r\nHost: {at}\r\n".encode()
    with socket.create_connection(("127.0.0.1", int(at.rpartition(":")[2])), 20.0) as to:
        to.sendall(request + b"\r\n")
        assert to.recv(4096).startswith(b"HTTP/1.1 200 ")
        monkeypatch.setattr(listening, "HEAD_S", 0.3)
        to.sendall(request)
        while to.recv(65536):
            pass


def test_a_busy_connection_is_not_ended_between_two_requests(
    attacked: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection was looked at every few seconds, and closed if it was not answering just then."""
    monkeypatch.setattr(listening, "HEAD_S", 1.0)
    at = attacked.table.address.removeprefix("http://")
    kept = http.client.HTTPConnection(at, timeout=60.0)
    kept.connect()
    monkeypatch.setattr(kept, "auto_open", 0)  # a closed connection is an error
    for _ in range(6):
        kept.request("GET", "/enter")
        answer = kept.getresponse()
        answer.read()
        assert answer.status == 200
        time.sleep(0.25)
    kept.close()


def test_a_body_that_does_not_come_holds_nothing(
    attacked: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that announces a body and never sends it would hold a connection for ever."""
    monkeypatch.setattr(web_guard, "BODY_S", 0.3)
    at = attacked.table.address.removeprefix("http://")
    cookies = "; ".join(f"{each.name}={each.value}" for each in attacked.http.cookies.jar)
    head = (
        f"POST /api/acts HTTP/1.1\r\nHost: {at}\r\nOrigin: http://{at}\r\nCookie: {cookies}\r\n"
        f"X-Sabot-CSRF: {attacked.csrf}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{{"
    )
    with socket.create_connection(("127.0.0.1", int(at.rpartition(":")[2])), 20.0) as to:
        to.sendall(head.encode())
        assert to.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_pins_are_not_guessed_by_many_requests_at_once(attacked: PageClient) -> None:
    """A page sends a hundred PINs at the same time, before the first one is known to be wrong."""
    tried: list[Any] = []
    people = attacked.table.shown.register
    real = people.authenticate

    def slow(shown: Any, at_s: int) -> Any:
        tried.append(shown)
        time.sleep(0.2)
        return real(shown, at_s)

    people.authenticate = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(20) as pool:
        pins = [f"{at:04}" for at in range(7000, 7100)]
        codes = list(pool.map(lambda pin: attacked.sign_in("dealer", pin).status_code, pins))
    assert len(tried) <= FAILURES
    assert codes.count(429) >= len(pins) - FAILURES
    assert attacked.http.get("/api/snapshot").status_code == 200


def test_what_is_for_programs_of_this_computer_is_for_no_page(attacked: PageClient) -> None:
    """A browser that was let in asks for whole rows, the device's journal, and tokens for others."""
    local = ["about", "rows", "rounds/1", "status", "device-events?after=0"]
    for path in (f"/api/local/{each}" for each in local):
        assert attacked.http.get(path).status_code == 403
        assert attacked.http.get(path, headers={"Authorization": "Bearer x"}).status_code == 403
        assert attacked.http.post(path).status_code in (403, 405)
    assert attacked.post("/api/invite", {}).status_code == 403
    simulated = {"pin": "", "simulated": "floor"}
    refused = attacked.post("/api/acts", {**CALL, "credential": simulated})
    assert (refused.status_code, refused.json()["error"]) == (403, "not_simulated")


def test_a_browser_whose_time_is_over_is_out_in_the_middle_of_its_stream(attacked: PageClient) -> None:
    """An old cookie, found in a browser's files, opens nothing; a stream does not outlive it."""
    stream = attacked.events()
    assert next(stream)[0] == "change"
    for each in attacked.table.service.app.access._browsers.values():
        each.until_s = 0.0
    told = list(islice(stream, BEATS))
    assert len(told) < BEATS, "the stream goes on"
    assert attacked.http.get("/api/snapshot").status_code == 401
    assert attacked.post("/api/acts", CALL).status_code == 401


def test_somebody_who_was_removed_acts_no_more(attacked: PageClient) -> None:
    """A dealer who was dismissed is still signed in at a page."""
    attacked.sign_in()
    assert attacked.post("/api/acts", CALL).status_code == 200
    attacked.table.shown.register.remove("dealer", "test", 1)
    refused = attacked.post("/api/acts", {**CALL, "act_id": "attack-9"})
    assert refused.status_code == 401
    assert "removed" in refused.json()["message"]


def test_every_answer_forbids_what_no_page_needs(attacked: PageClient) -> None:
    """Without these headers another site could frame the page, or injected text could run."""
    for path in ("/enter", "/dealer", "/static/dealer.js", "/api/snapshot", "/nothing"):
        headers = attacked.http.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers
    (cookie,) = [
        value
        for name, value in attacked.http.post(
            "/api/enter", json={"token": attacked.table.token()}
        ).headers.multi_items()
        if name == "set-cookie"
    ]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie


def test_no_face_is_in_any_answer_before_the_hands_are_exposed(tmp_path: Path) -> None:
    """A player with a telephone in the room's network must not know a card before the table does."""
    with served_table(tmp_path, "seed=5") as table, PageClient(table) as page:
        page.enter()
        page.sign_in()
        seen: list[Any] = []

        def ready(found: ServedTable) -> bool:
            for need in found.needs():
                if need.kind is NeedKind.PREPARE_PACK and "dealer" in need.roles:
                    page.act(need.acts[0], need, pack_id=need.details["pack_id"])
            return [each.kind for each in found.needs()] == [NeedKind.BETS]

        table.wait(ready)
        seen.append(
            page.act("no_more_bets", table.wait_need(NeedKind.BETS), wagers={"1": {"ante": 500}}).text
        )
        expose = table.wait_need(NeedKind.EXPOSE)
        for channel in ("dealer", "table", "floor"):
            seen.append(next(data for kind, _, data in page.events(channel) if kind == "change"))
        paths = ("/api/snapshot", "/dealer", "/floor", "/api/description", "/api/rows", "/api/rounds/1")
        seen += [page.http.get(path).text for path in paths]
        local = {"Authorization": f"Bearer {table.service.app.access.local_token}"}
        for path in ("about", "rows", "rounds/1", "status", "device-events?after=0"):
            answer = page.http.get(f"/api/local/{path}", headers=local)
            assert answer.status_code == 200, answer.text
            seen.append(answer.text)
        with httpx.stream("GET", f"{table.service.players_address}/events", verify=NO_TLS) as players:
            seen.append(next(line for line in players.iter_lines() if line.startswith("data: ")))
        assert not FACE.search(re.sub(r'\\+"', '"', json.dumps(seen)))
        page.act("expose", expose)
        table.wait(lambda found: bool(found.rows("settle")))
        assert FACE.search(page.http.get("/api/snapshot").text)
