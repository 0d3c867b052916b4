"""``sabot floor`` and ``sabot serve --floor``, as a person calls them."""

import csv
import json
import os
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest
from tests.floor.packed_rows import SITE, chain, message, record_body
from tests.warm_start import WarmPopen

from sabot_cli import floor_commands
from sabot_cli.main import run
from sabot_floor.archive_store import ArchiveStore
from sabot_floor.connection import read_settings
from sabot_floor.errors import BadName, FloorSettingsDamaged
from sabot_simulators.floor.servers import Site

ROWS = chain([record_body(n) for n in range(1, 31)])
LONG_S = 60.0


def _said(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def _archive(path: Path) -> None:
    store = ArchiveStore(str(path), SITE)
    store.take([message(ROWS)])
    store.close()


def test_the_examples_of_offline_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _archive(tmp_path / "archive.db")
    for name in ("keys", "export", "check", "backup"):
        epilog = floor_commands.floor.commands[name].epilog
        assert epilog is not None
        assert run([*epilog.split("\n")[-1].split()[1:], "--json"]) == 0, name
    told = {each["event"]: each for each in _said(capsys)}
    assert told["exported"]["rows"] == 30
    assert told["chain"]["wrong"] == ""
    with (tmp_path / "rows.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["body"] for row in rows] == [row["body"] for row in ROWS]
    assert (rows[4]["table"], rows[4]["kind"], rows[4]["round_id"]) == ("t01", "sit", "7")
    with sqlite3.connect(tmp_path / "copy.db") as copy, sqlite3.connect(tmp_path / "archive.db") as first:
        query = "SELECT * FROM rows ORDER BY n"
        assert copy.execute(query).fetchall() == first.execute(query).fetchall()


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ("DELETE FROM rows WHERE n = 7", "rows after 6 are missing"),
        ("UPDATE rows SET body = replace(body, 'd1', 'd2') WHERE n = 9", "the hash of row 9 does not follow"),
        ("DELETE FROM rows WHERE n = 30", "the chain ends at row 29, and the archive says 30"),
        ("UPDATE sources SET begins_hash = NULL", "its beginning is missing"),
        (f"UPDATE sources SET begins_hash = '{'ab' * 32}'", "it does not begin at its beginning"),
    ],
)
def test_check_names_what_was_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, wrong: str
) -> None:
    _archive(tmp_path / "archive.db")
    with sqlite3.connect(tmp_path / "archive.db") as db:
        db.execute(change)
    assert run(["floor", "check", "--from", str(tmp_path / "archive.db"), "--json"]) == 5
    assert _said(capsys)[0]["wrong"] == wrong


@pytest.mark.parametrize("command", [["export", "--csv", "x.csv"], ["check"]])
def test_an_archive_that_is_not_there_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["floor", *command, "--from", "none.db"]) == 1
    assert "there is no such file" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_backup_never_replaces_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _archive(tmp_path / "archive.db")
    (tmp_path / "copy.db").write_text("precious", encoding="utf-8")
    words = ["floor", "backup", "--from", str(tmp_path / "archive.db"), "--out", str(tmp_path / "copy.db")]
    assert run(words) == 1
    assert (tmp_path / "copy.db").read_text(encoding="utf-8") == "precious"


@pytest.mark.slow
def test_setup_archive_and_release_work_with_a_server(
    server: Site, site_name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--site", site_name, "--server", server.urls[0]]
    small = ["--replicas", "1", "--gigabytes", "0.1"]
    assert run(["floor", "setup", *where, *small, "--json"]) == 0
    assert len(_said(capsys)[0]["created"]) == 3  # type: ignore[arg-type]
    assert run(["floor", "setup", *where, *small, "--json"]) == 0
    assert _said(capsys)[0]["created"] == []
    assert run(["floor", "setup", *where, "--replicas", "1", "--gigabytes", "0.2"]) == 1
    assert "max_bytes is 107374182, not 214748364" in capsys.readouterr().err.replace("\n", "")
    assert run(["floor", "release", "t07", *where, "--json"]) == 0
    words = ["floor", "archive", *where, *small, "--to", str(tmp_path / "a.db"), "--json"]
    with WarmPopen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "archiving"
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONG_S) == 0


def test_headquarters_are_set_up_and_sites_are_added(
    server: Site, site_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sites need not be there yet: headquarters source them when they are."""
    where = ["--server", server.urls[0], "--replicas", "1", "--gigabytes", "0.1"]
    words = ["floor", "headquarters", *where, "--json"]
    first, second = f"{site_name}-a", f"{site_name}-b"
    for sites, added in (
        (["--site", first], [first]),
        (["--site", first, "--also", second], [second]),
        (["--site", second], []),
    ):
        assert run([*words, *sites]) == 0
        assert _said(capsys)[0]["added"] == added
    assert run([*words, "--site", "Not a name"]) == 1


def test_a_server_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["floor", "setup", "--site", "harbour", "--server", "nats://127.0.0.1:1"]) == 1
    said = capsys.readouterr().err
    assert "127.0.0.1:1" in said
    assert "Check the servers' addresses" in said.replace("\n", " ")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("site = 1 2", "Expected newline"),
        ('table = "t01"\nservers = ["x"]', "'site' is missing"),
        ('site = "h"\ntable = "t01"\nservers = "x"', "not a list of addresses"),
        ('site = "h"\ntable = "t01"\nservers = ["x"]\nseed = "y"', "unknown key 'seed'"),
    ],
)
def test_a_floor_file_that_is_wrong_is_said(tmp_path: Path, text: str, wrong: str) -> None:
    path = tmp_path / "floor.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FloorSettingsDamaged, match=wrong):
        read_settings(path)


@pytest.mark.parametrize("name", ["", "T01", "t.1", "t*", ">", "floor", "x" * 33])
def test_a_name_that_no_subject_holds_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "floor.toml"
    path.write_text(f'site = "h"\ntable = "{name}"\nservers = ["x"]', encoding="utf-8")
    with pytest.raises(BadName):
        read_settings(path)


def _floor_file(tmp_path: Path, site: str, url: str) -> Path:
    path = tmp_path / "floor.toml"
    path.write_text(f'site = "{site}"\ntable = "t07"\npit = "2"\nservers = ["{url}"]\n', encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--rules", "wa-three-card-baccarat"], "WA3 lets nothing leave the table"),
        ([], "keeps its journal and record in memory"),
    ],
)
def test_serve_refuses_what_may_not_or_cannot_be_published(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    path = _floor_file(tmp_path, "harbour", "nats://127.0.0.1:1")
    assert run(["serve", "--device", "sim://", "--port", "0", "--floor", str(path), *more]) == 1
    assert said in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.slow
def test_a_served_table_is_published(server: Site, site_name: str, tmp_path: Path) -> None:
    """`sabot serve --floor` at a device of another process: the archive gets its first rows."""
    environment = {**os.environ, "SABOT_HOME": str(tmp_path / "home")}
    store = ArchiveStore(str(tmp_path / "a.db"), site_name)
    store.close()
    where = ["--site", site_name, "--server", server.urls[0], "--replicas", "1", "--gigabytes", "0.1"]
    archive = WarmPopen(["floor", "archive", "--to", str(tmp_path / "a.db"), *where])
    device = WarmPopen(
        ["simulate", "--tcp", "0", "--json"], stdout=subprocess.PIPE, text=True, env=environment
    )
    served = None
    try:
        assert device.stdout is not None
        url = str(json.loads(device.stdout.readline())["url"])
        path = _floor_file(tmp_path, site_name, server.urls[0])
        words = ["serve", "--device", url, "--simulator", "--port", "0", "--floor", str(path)]
        served = WarmPopen([*words, "--json"], stdout=subprocess.PIPE, text=True, env=environment)
        ends = time.monotonic() + LONG_S
        found: list[tuple[str, int]] = []
        while len(found) < 2 and time.monotonic() < ends:
            time.sleep(0.2)
            with sqlite3.connect(tmp_path / "a.db") as db:
                found = db.execute("SELECT chain, n FROM sources WHERE n > 0 ORDER BY chain").fetchall()
        assert [each[0] for each in found] == ["device", "record"]
    finally:
        for process in (served, device, archive):
            if process is not None:
                process.terminate()
                process.wait(LONG_S)
                if process.stdout is not None:
                    process.stdout.close()
