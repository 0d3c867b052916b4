"""Several programs at one table: a terminal beside a terminal, a terminal beside a page, `watch`."""

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.at_table.terminal import DEALER_PIN, FLOOR_PIN, Open
from tests.plain_http import NO_TLS
from tests.warm_start import WarmPopen, warm_run

from sabot_driver.user_files import UserFiles
from sabot_serve.service_client import ServiceClient
from sabot_serve.service_file import UNIX, ServiceAddress, find_service
from sabot_session.record import RecordReader

pytestmark = pytest.mark.slow
ENTER = "\r"
START_S = 120


def running(home: Path, url: str) -> ServiceAddress:
    found = find_service(UserFiles(home).table_folder(url))
    assert found is not None
    return found


def sabot(*arguments: object, **more: Any) -> "subprocess.CompletedProcess[str]":
    """A command that is not at a terminal."""
    return warm_run([*map(str, arguments)], timeout=START_S, **more)


def test_a_second_terminal_is_another_face_of_the_same_table(terminal: Open, home: Path, device: str) -> None:
    play = ("play", "--device", device, "--simulator", "--players", 1)
    with terminal(*play) as first:
        first.see("FLOOR: open the table")
        with terminal(*play) as second:
            second.see("this terminal is another face of it")
            second.do(("FLOOR: open the table", ENTER), ("DEALER: a dealer signs in", ENTER))
            second.see("new pack with")
            first.see("simulated floor opened the table")
            first.do(("new pack with", ENTER), ("number of the bag", "B7" + ENTER), ("brought by", ENTER))
            second.see("received RED, bag B7")
            second.press("v")  # no round is open: the process that runs the table refuses
            second.do(("why", "none" + ENTER), ("Not done:", ""))
            second.press("q")
            assert second.end() == 0
            assert "simulated floor opened the table" in second.screen()
        at = running(home, device)
        socket = Path(at.address.removeprefix(UNIX))
        assert stat.S_IMODE(socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
        wrong = ServiceClient(ServiceAddress(at.address, at.pid, "guess"))
        with pytest.raises(Exception, match="only a program of this computer"):
            wrong.check()
        first.press("q")
        assert first.end() == 0
    assert find_service(UserFiles(home).table_folder(device)) is None
    assert not socket.exists()


def test_watch_status_and_serve_find_a_table_that_is_played(terminal: Open, home: Path, device: str) -> None:
    where = ("--device", device, "--simulator")
    with terminal("play", *where) as first:
        first.see("FLOOR: open the table")
        at = running(home, device)
        status = sabot("status", *where, "--json")
        assert json.loads(status.stdout)["shoe"] == "empty", status.stderr
        with WarmPopen(["watch", *where, "--json", "--all"], stdout=subprocess.PIPE, text=True) as watch:
            assert watch.stdout is not None
            names = [json.loads(watch.stdout.readline()).get("name") for _ in range(2)]
            assert names == [None, "booted"]  # its status, then every event that the journal has
            watch.kill()
        served = sabot("serve", *where, "--port", 0)
        assert served.returncode == 6
        assert f"process {at.pid} plays this table at a terminal" in served.stderr.replace("\n", " ")
        auto = sabot("play", *where, "--auto")
        assert auto.returncode == 6
        assert f"process {at.pid} runs this table" in auto.stderr.replace("\n", " ")
        other = sabot("table", "open", *where, "--rules", "wa-three-card-baccarat")
        assert other.returncode == 6
        words = f"process {at.pid} runs this table under md-three-card-baccarat"
        assert words in other.stderr.replace("\n", " ")
        first.kill()
    again = sabot("status", *where, "--json")  # the file is stale: the device is asked itself
    assert json.loads(again.stdout)["owned"] is False, again.stderr


def test_an_act_from_the_command_line_is_given_where_the_table_runs(
    terminal: Open, home: Path, device: str
) -> None:
    where = ("--device", device, "--simulator")
    with terminal("play", *where) as first:
        first.see("FLOOR: open the table")
        opened = sabot("table", "open", *where, "--json")
        assert opened.returncode == 0, opened.stderr
        act = json.loads(opened.stdout.splitlines()[-1])
        assert (act["event"], act["act"], act["ok"]) == ("act", "open_table", True)
        assert act["needs"][0].startswith("a dealer signs in")
        first.see("simulated floor opened the table")
        assert sabot("table", "open", *where).returncode == 1  # it is open
        received = sabot("deck", "receive", *where, "--back", "red", "--bag", "B7")
        assert received.returncode == 0, received.stderr
        first.see("received RED, bag B7")
        first.press("q")
        first.end()
    (path,) = UserFiles(home).records()
    with RecordReader(path) as record:
        rows = [each.row for each in record.rows_of_kind("open_table", "receive_pack")]
    assert [(each.kind, each.actor.how) for each in rows] == [
        ("open_table", "simulated"),
        ("receive_pack", "simulated"),
    ]


def test_a_person_of_the_register_acts_from_the_command_line_at_a_served_table(
    home: Path, device: str, floor_key: Path, tmp_path: Path
) -> None:
    where = ("--device", device, "--simulator")
    pin, wrong = tmp_path / "pin", tmp_path / "wrong"
    pin.write_text(FLOOR_PIN + "\n")
    wrong.write_text("1357\n")
    act = ("table", "open", *where, "--floor-key", floor_key, "--pin-stdin")
    with serving(*where, "--people"):
        with wrong.open() as typed:
            refused = sabot(*act, stdin=typed)
        assert refused.returncode == 5, refused.stdout
        nobody = sabot("table", "open", *where)
        assert nobody.returncode == 2
        assert "say who acts" in nobody.stderr
        with pin.open() as typed:
            opened = sabot(*act, stdin=typed)
        assert opened.returncode == 0, opened.stderr
    (path,) = UserFiles(home).records()
    with RecordReader(path) as record:
        (row,) = record.rows_of_kind("open_table")
    assert (row.row.actor.role, row.row.actor.how) == ("floor", "key_and_pin")


@contextmanager
def serving(*options: object) -> Iterator[dict[str, Any]]:
    """A running ``sabot serve``, and what it told."""
    run = WarmPopen(
        ["serve", *map(str, options), "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    with run:
        assert run.stdout is not None
        try:
            yield json.loads(run.stdout.readline())
        finally:
            run.terminate()
            run.wait(START_S)


def test_a_page_and_a_terminal_at_one_table(terminal: Open, home: Path, device: str, floor_key: Path) -> None:
    where = ("--device", device, "--simulator")
    with serving(*where, "--people") as told:
        address = told["address"]
        with (
            httpx.Client(base_url=address, headers={"Origin": address}, timeout=30, verify=NO_TLS) as page,
            terminal("play", *where, "--players", 1, "--floor-key", floor_key) as face,
        ):
            entered = page.post("/api/enter", json={"token": told["enter"].partition("#")[2]}).json()
            page.headers["X-Sabot-CSRF"] = entered["csrf"]
            face.do(("FLOOR: open the table", ENTER), ("key file or badge", ENTER))
            face.do(("PIN of floor", FLOOR_PIN + ENTER), ("DEALER: a dealer signs in", ""))
            signed = page.post("/api/sign-in", json={"person": "dana", "pin": DEALER_PIN}).json()
            assert signed == {"person": "dana", "deals": True, "message": ""}
            face.see("dealer dana deals")
            face.press("c")  # the dealer's act at the terminal: dana shows who she is there first
            face.do(("why", "cold" + ENTER), ("dealer's id or badge", "dana" + ENTER))
            face.do(("PIN of dana", DEALER_PIN + ENTER), ("called the floor: cold", "c"))
            face.do(("why", "again" + ENTER), ("called the floor: again", ""))
            snapshot = page.get("/api/snapshot").json()
            assert snapshot["called"] == "again"
            assert page.get("/api/rows").json()["rows"][-1]["person"] == "dana"
            face.press("q")
            assert face.end() == 0
    (path,) = UserFiles(home).records()
    with RecordReader(path) as record:
        called = [each.row for each in record.rows_of_kind("call_floor")]
    assert [(each.data["why"], each.actor.person, each.actor.how) for each in called] == [
        ("cold", "dana", "signed_in"),
        ("again", "dana", "signed_in"),
    ]


def test_a_terminal_waits_for_a_service_that_was_killed_and_goes_on(
    terminal: Open, home: Path, device: str, floor_key: Path
) -> None:
    where = ("--device", device, "--simulator")
    with serving(*where, "--people"):
        face = terminal("play", *where, "--players", 1, "--floor-key", floor_key)
        face.see("FLOOR: open the table")
        os.kill(running(home, device).pid, 9)
        face.see("the program that runs this table does not answer")
    with serving(*where, "--people"), face:  # at another port, with another token
        face.do(("FLOOR: open the table", ENTER), ("key file or badge", ENTER))
        face.do(("PIN of floor", FLOOR_PIN + ENTER), ("flo opened the table", "q"))
        assert face.end() == 0
