"""Another machine and another computer at a table: service and floor say so, and rounds are numbered on."""

import io
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.targets import Tcp
from tests.driver.command import Ran, Sabot

from sabot_cli.at_table import running_table
from sabot_cli.at_table.running_table import TablePlace
from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import DeviceOptions, open_device
from sabot_cli.output import Output
from sabot_cli.table_records import open_tables_record
from sabot_driver import Client, Credential
from sabot_driver.journal import Journal, JournalBatch
from sabot_driver.keyring import write_key
from sabot_driver.user_files import UserFiles
from sabot_protocol.host.messages import Role, Stop, Stopped
from sabot_session import pin_hash
from sabot_session.people import PeopleRegister
from sabot_session.record import SqliteRecord
from sabot_table.procedure import TableRole
from sabot_table.ruleset import load

pytestmark = pytest.mark.slow
NAME = "BAC-07"
SIMULATOR = ("--simulator", "--json")
PATIENCE_S = 60.0  # a limit for what fails, not a measure


def play(sabot: Sabot, rounds: int = 1) -> list[int]:
    """Simulated people play at the table; the numbers of their rounds."""
    ran = sabot("play", "--table", NAME, "--auto", "--rounds", rounds, "--players", 1, "--json")
    assert ran.code == 0, ran.out
    return [each["round_id"] for each in ran.of("round")]


def test_a_spare_comes_to_a_table_and_rounds_are_numbered_on(
    sabot: Sabot, machines: tuple[Tcp, Tcp], home: Path
) -> None:
    first, spare = (each.listener.url for each in machines)
    assert sabot("table", "set", NAME, "--device", first, "--simulator").code == 0
    assert play(sabot, 3) == [1, 2, 3]
    swap = ("table", "swap-machine", NAME, *SIMULATOR, "--device")
    refused = sabot(*swap, spare)
    assert (refused.code, refused.lines[-1]["error"]) == (5, "NotProvisioned")
    assert "sabot provision" in refused.lines[-1]["advice"]
    assert sabot("provision", "--device", spare, *SIMULATOR).code == 0
    assert [each["serial"] for each in sabot("table", "spares", "--json").of("spare")] == ["SIM00002"]
    set_again = sabot("table", "set", NAME, "--device", spare, *SIMULATOR)
    assert (set_again.code, "swap-machine" in set_again.lines[-1]["advice"]) == (1, True)

    swapped = sabot(*swap, spare)
    assert swapped.code == 0, swapped.out
    assert [each["act"] for each in swapped.of("act")] == ["install_machine", "swap_machine"]
    assert swapped.lines[-1]["before"] == "SIM00001"
    (entry,) = sabot("table", "list", "--json").lines
    assert (entry["serial"], entry["url"]) == ("SIM00002", spare)
    assert [each["serial"] for each in sabot("table", "spares", "--json").of("spare")] == ["SIM00001"]
    assert play(sabot, 3) == [4, 5, 6]
    told = sabot("rounds", "--table", NAME, "--json")
    assert [each["round"] for each in told.of("round")] == [1, 2, 3, 4, 5, 6]
    records = list((home / "journals" / "simulators").glob("*.table.db"))
    assert [each.name for each in records] == ["SIM00001.table.db"], "the table's record stays one file"
    audited = sabot("audit", "--record", records[0], "--json")
    assert audited.code == 0, audited.out
    lives = {each["memory_id"] for each in audited.of("shuffle_audited") if each["verdict"] == "proved"}
    assert len(lives) == 2, "shuffles of both machines are proved"

    alone = sabot("play", "--device", first, "--auto", "--rounds", 1, *SIMULATOR)
    assert (alone.code, alone.lines[-1]["error"]) == (1, "RecordTaken")
    assert sabot("table", "set", "BAC-08", "--device", first, "--simulator").code == 0
    other = sabot("play", "--table", "BAC-08", "--auto", "--rounds", 1, "--players", 1, "--json")
    assert other.code == 0, other.out
    assert len(sabot("rounds", "--table", NAME, "--json").of("round")) == 6, "each table has its own record"
    taken = sabot(*swap, first)
    assert (taken.code, "BAC-08" in taken.lines[-1]["message"]) == (1, True)


def test_service_and_floor_may_come_one_after_the_other(
    sabot: Sabot, machines: tuple[Tcp, Tcp], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, spare = (each.listener.url for each in machines)
    assert sabot("table", "set", NAME, "--device", first, "--simulator").code == 0
    assert play(sabot) == [1]
    assert sabot("provision", "--device", spare, *SIMULATOR).code == 0
    monkeypatch.setattr(pin_hash, "LOG2_N", 4)
    staff = (("sven", TableRole.SERVICE, Role.SERVICE), ("flo", TableRole.FLOOR, Role.FLOOR))
    with PeopleRegister(UserFiles(home).people) as people:
        for person, table_role, role in staff:
            people.enrol(person, person.title(), [table_role], "13579", "setup", 100)
            key = write_key(tmp_path / f"{person}.key", os.urandom(32))
            people.give_key(person, Credential.read(role, key), "setup", 101)
    swap = ("table", "swap-machine", NAME, "--device", spare, *SIMULATOR, "--people", "--pin-stdin")

    def by(role: str, person: str) -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO("13579\n"))
        return sabot(*swap, f"--{role}-key", tmp_path / f"{person}.key")

    assert by("floor", "flo").code == 2, "service comes first"
    installed = by("service", "sven")
    assert installed.code == 0, installed.out
    assert installed.lines[-1]["event"] == "swap_waits"
    assert sabot("table", "list", "--json").lines[0]["serial"] == "SIM00001"
    confirmed = by("floor", "flo")
    assert confirmed.code == 0, confirmed.out
    assert [each["act"] for each in confirmed.of("act")] == ["swap_machine"]
    assert sabot("table", "list", "--json").lines[0]["serial"] == "SIM00002"


def test_a_swap_that_was_recorded_is_finished_by_the_next_start(
    sabot: Sabot, machines: tuple[Tcp, Tcp], home: Path
) -> None:
    """The program is killed between the floor's act and the file of tables."""
    first, spare = (each.listener.url for each in machines)
    assert sabot("table", "set", NAME, "--device", first, "--simulator").code == 0
    assert play(sabot) == [1]
    assert sabot("provision", "--device", spare, *SIMULATOR).code == 0
    tables = (home / "tables.toml").read_bytes()
    swap = ("table", "swap-machine", NAME, "--device", spare, *SIMULATOR)
    assert sabot(*swap).code == 0
    (home / "tables.toml").write_bytes(tables)
    again = sabot(*swap)
    assert again.code == 0, again.out
    assert again.of("act") == []
    assert play(sabot) == [2]


def test_another_computer_takes_a_table_over(
    sabot: Sabot, machines: tuple[Tcp, Tcp], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = machines[0].listener.url
    assert sabot("table", "set", NAME, "--device", url, "--simulator").code == 0
    assert play(sabot) == [1]
    assert sabot("table", "open", "--table", NAME, "--json").code == 0
    copy = tmp_path / "before.table.db"
    shutil.copy(home / "journals" / "simulators" / "SIM00001.table.db", copy)
    other = tmp_path / "other"
    shutil.copytree(home / "keys", other / "keys")
    monkeypatch.setenv("SABOT_HOME", str(other))
    swap = ("table", "swap-pc", NAME, "--device", url, *SIMULATOR)
    assert sabot(*swap).code == 2
    assert sabot(*swap, "--copy", copy, "--round", 3).code == 2
    assert sabot(*swap, "--record-id", "a1").code == 2
    assert sabot("evict", "--device", url, *SIMULATOR).code == 0
    done = sabot(*swap, "--copy", copy)
    assert done.code == 0, done.out
    assert [each["act"] for each in done.of("act")] == ["install_pc", "swap_pc"]
    assert done.lines[-1]["round_id"] == 1
    assert "decks are received anew" in done.of("warning")[0]["message"]
    assert play(sabot) == [2]
    assert sabot(*swap, "--copy", copy).code == 1, "its record has begun"


def test_a_table_is_taken_over_after_what_the_device_still_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event of the time before arrives late. The record begins after it, whichever thread is faster.

    The journal's disk holds the event back until somebody waits for events, or until the record is open.
    """
    holds, held, told = threading.Event(), threading.Event(), threading.Event()
    write, events = Journal.write, Client.events
    begins: list[int] = []

    def slow_write(journal: Journal, batch: JournalBatch, at_us: int) -> int | None:
        if holds.is_set() and batch.events:
            held.set()
            assert told.wait(PATIENCE_S)
        return write(journal, batch, at_us)

    def events_awaited(client: Client, *args: Any, **given: Any) -> Iterator[Any]:
        told.set()
        return events(client, *args, **given)

    @contextmanager
    def open_and_hold(*args: Any, **given: Any) -> Iterator[Client]:
        with open_device(*args, **given) as client:
            holds.set()
            client.submit(Stop(), PATIENCE_S)  # the device tells of it
            assert held.wait(PATIENCE_S)
            yield client

    def open_and_note(*args: Any) -> SqliteRecord:
        record = open_tables_record(*args)
        saved = record.load()
        assert saved is not None
        begins.append(saved.journal_at)
        told.set()
        return record

    monkeypatch.setattr(Journal, "write", slow_write)
    monkeypatch.setattr(Client, "events", events_awaited)
    monkeypatch.setattr(running_table, "open_device", open_and_hold)
    monkeypatch.setattr(running_table, "open_tables_record", open_and_note)
    state = CliContext(Output(as_json=True), UserFiles(tmp_path))
    options = DeviceOptions("sim://?seed=1", None, None, PATIENCE_S, simulator=True)
    rules, place = load("md-three-card-baccarat"), TablePlace(NAME, None, takes_over=True)
    with running_table.run_table(state, options, lambda _: rules, real_people=False, place=place) as table:
        (late,) = [each.id for each in table.client.journal.entries() if each.message == Stopped.ID]
        assert begins[0] >= late
