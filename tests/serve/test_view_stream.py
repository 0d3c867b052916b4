"""The stream of views: cursors, gaps, beats while the session answers, bounded readers."""

import threading
import time
from itertools import islice
from typing import Any

import pytest
from tests.serve.page_client import PageClient
from tests.serve.served_table import ServedTable

from sabot_session import acts
from sabot_session.people import Presented
from sabot_web import view_channels

pytestmark = pytest.mark.slow
MOST_EVENTS = 20


def call_floor(table: ServedTable, act_id: str) -> None:
    shown = Presented(table.pin("dealer"), "dealer")
    table.act(act_id, None, 0, shown, acts.CallFloor())


def newest(events: Any) -> tuple[str, Any]:
    """The next change of a stream; beats are passed over."""
    for kind, cursor, data in events:
        if kind == "change":
            return cursor, data
    raise AssertionError("the stream ended")


def test_all_of_it_first_then_what_changed_and_after_a_gap_all_again(page: PageClient) -> None:
    table = page.table
    table.wait(lambda found: bool(found.snapshot()["packs"]))
    events = page.events()
    cursor, first = newest(events)
    assert first["full"]
    assert {"head", "seats", "packs"} <= set(first["parts"])
    call_floor(table, "call-one")
    told: set[str] = set()
    while "table" not in told:  # the simulated people may still bring packs
        cursor, then = newest(events)
        assert not then["full"]
        told = set(then["parts"])
    call_floor(table, "call-two")
    table.wait(lambda found: found.service.app.views.snapshot["newest_row"] == found.snapshot()["newest_row"])
    _, later = newest(page.events(after=cursor))
    assert not later["full"]
    for wrong in ("0.1", "nonsense", cursor.split(".")[0] + ".999999", "x" * 500):
        assert newest(page.events(after=wrong))[1]["full"]


def test_beats_come_only_while_the_session_answers(page: PageClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_channels, "BEAT_S", 0.1)
    monkeypatch.setattr(view_channels, "LATE_S", 0.3)
    views, stuck, go_on = page.table.service.app.views, threading.Event(), threading.Event()
    beats: list[float] = []

    def hang(_: Any) -> None:
        stuck.set()
        go_on.wait(60.0)

    def listen() -> None:
        for kind, _, _ in page.events():
            if kind == "beat":
                beats.append(time.monotonic())

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    page.table.wait(lambda _: bool(beats))
    holder = threading.Thread(target=page.table.run.read, args=(hang,))
    holder.start()
    assert stuck.wait(60.0)
    while views.alive:
        time.sleep(0.02)
    time.sleep(0.3)  # a beat that was on its way
    heard = len(beats)
    time.sleep(1.0)
    assert len(beats) == heard
    go_on.set()
    holder.join()
    while len(beats) == heard:
        time.sleep(0.02)
    page.table.stop()
    listener.join()


def test_only_so_many_readers(page: PageClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_channels, "MOST_READERS", 1)
    events = page.events()
    newest(events)
    refused = page.http.get("/api/events/dealer")
    assert refused.status_code == 503
    events.close()


def test_a_stream_ends_when_its_browser_is_no_longer_let_in(page: PageClient) -> None:
    events = page.events()
    newest(events)
    for each in list(page.http.cookies.jar):
        page.table.service.app.access.leave(str(each.value))
    left = list(islice(events, MOST_EVENTS))  # one that was on its way may still come
    assert len(left) < MOST_EVENTS, "the stream goes on: a beat comes twice a second"
    assert page.http.get("/api/snapshot").status_code == 401


def test_there_are_no_other_streams(page: PageClient) -> None:
    assert page.http.get("/api/events/record").status_code == 404
