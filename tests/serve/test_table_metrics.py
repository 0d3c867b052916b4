"""Metrics of a table's service: what the record says, no more than may leave, no person and no card."""

import os
import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from tests.plain_http import NO_TLS
from tests.serve.served_table import EVERYBODY, ServedTable, served_table
from tests.wall.running_prometheus import program, prometheus
from tests.warm_start import warm_run

import sabot_floor
from sabot_floor.metrics import PublisherMetrics
from sabot_floor.table_metrics import PAGE, RowCounts, TableMetrics, serve_table_metrics
from sabot_protocol.host.messages import Fault, Place
from sabot_session.needs import Need, NeedKind
from sabot_session.notes import Note
from sabot_session.record import SqliteRecord
from sabot_session.rows import Actor, Authentication, Row, SavedSession
from sabot_session.session import TableSession
from sabot_simulators.free_port import free_port
from sabot_table.procedure import TableRole
from sabot_table.rule_texts import FloorLevel
from sabot_web.errors import NotServed
from sabot_web.request_counts import CLASSES

FILES = Path(sabot_floor.__file__).parent / "monitoring"
NAME = re.compile(r"\bsabot_(?:table|publisher)_\w+")
LABELS = {
    "table": {"t07"},
    "kind": {str(each) for each in NeedKind},
    "who": {"dealer", "floor", "machine"},
    "fault": {each.name.lower() for each in Fault} | {"unknown"},
    "place": {each.name.lower() for each in Place} | {"unknown"},
    "code": set(CLASSES),
}
MACHINE = {
    "sabot_table_running", "sabot_table_machine_up", "sabot_table_faults", "sabot_table_fault",
    "sabot_table_record_row", "sabot_table_journal_row", "sabot_table_requests", "sabot_table_pages",
}  # fmt: skip
PLAY = {
    "sabot_table_rounds", "sabot_table_voids", "sabot_table_notes", "sabot_table_needs",
    "sabot_table_need_since_seconds",
}  # fmt: skip


def metrics_of(table: ServedTable, level: FloorLevel = FloorLevel.ALL) -> TableMetrics:
    return TableMetrics("t07", level, table.run, table.record, table.client, table.service)


def families(metrics: TableMetrics) -> dict[str, Any]:
    registry = CollectorRegistry()
    registry.register(metrics)
    return {each.name: each for each in registry.collect()}


@contextmanager
def scraped(metrics: TableMetrics) -> Iterator[int]:
    server = serve_table_metrics(metrics, [], 0)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.full
@pytest.mark.slow
def test_a_real_prometheus_scrapes_a_table_that_is_played(tmp_path: Path) -> None:
    program("prometheus")
    rules = FILES / "alerts.yml"
    with (
        served_table(tmp_path / "table", simulated=EVERYBODY) as table,
        scraped(metrics_of(table)) as port,
        prometheus(tmp_path, rules, port, "sabot-table") as found,
    ):
        table.run.receive_note(Note("0" * 16, "anna", "Break at six", 0))
        assert httpx.get(f"{table.address}/enter", verify=NO_TLS).status_code == 200
        assert httpx.get(f"{table.address}/api/snapshot", verify=NO_TLS).status_code == 401
        table.wait(lambda each: len(each.rows("collect")) >= 2)
        told = found.wait("sabot_table_rounds_total >= 2")
        assert told[0]["metric"]["table"] == "t07"
        assert 2 <= float(told[0]["value"][1]) <= len(table.rows("collect"))
        assert found.query("sabot_table_machine_up == 1")
        assert found.query('sabot_table_requests_total{code="4xx"} >= 1')
        assert found.query('sabot_table_requests_total{code="2xx"} >= 1')
        assert found.query("sabot_table_notes == 1")
        assert found.query("sabot_table_journal_row > 0")
        assert found.query("sabot_table_record_row > 10")
        assert not found.query('ALERTS{alertname="MachineDown"}')
        table.pull_cable()
        fired = found.wait('ALERTS{alertname="MachineDown",alertstate="pending"}')  # it fires a minute later
        assert fired[0]["metric"]["table"] == "t07"


@pytest.mark.slow
def test_counts_are_those_of_the_record_and_labels_come_from_fixed_lists(tmp_path: Path) -> None:
    with served_table(tmp_path, simulated=EVERYBODY) as table:
        metrics = metrics_of(table)
        table.wait(lambda each: len(each.rows("collect")) >= 2)

        def look(session: TableSession) -> tuple[dict[str, Any], list[Need], list[int]]:
            counted = [len(table.rows(kind)) for kind in ("collect", "void")]
            return families(metrics), session.needs(), counted

        found, needs, counted = table.run.read(look)  # nothing changes the table meanwhile
        assert set(found) == MACHINE | PLAY
        told_of = [found[f"sabot_table_{each}"].samples[0].value for each in ("rounds", "voids")]
        assert told_of == counted
        expected: dict[tuple[str, str], list[int]] = {}
        for need in needs:
            who = "dealer" if "dealer" in need.roles else "floor" if need.roles else "machine"
            expected.setdefault((str(need.kind), who), []).append(need.since_s)
        for name, value in (("sabot_table_needs", len), ("sabot_table_need_since_seconds", min)):
            told = {(it.labels["kind"], it.labels["who"]): it.value for it in found[name].samples}
            assert told == {key: value(each) for key, each in expected.items()}
        for family in found.values():
            for sample in family.samples:
                for label, value in sample.labels.items():
                    assert value in LABELS[label], sample
        with scraped(metrics) as port:
            text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20).read().decode()
        assert {each.name for each in text_string_to_metric_families(text)} >= MACHINE | PLAY
        people = [each for role in table.shown.shown for each in (role, *table.shown.shown[role])]
        for secret in ("simulated", "dealer d", *(each for each in people if len(each) > 6)):
            assert secret not in text
        assert not re.search(r'"(A|[2-9]|10|J|Q|K)[CDHS]"', text)


@pytest.mark.parametrize(
    ("level", "names"),
    [(FloorLevel.MACHINE, MACHINE), (FloorLevel.ROUNDS, MACHINE | PLAY), (FloorLevel.ALL, MACHINE | PLAY)],
)
def test_a_level_tells_no_more_than_may_leave(
    machine: ServedTable, level: FloorLevel, names: set[str]
) -> None:
    assert set(families(metrics_of(machine, level))) == names


def test_a_session_that_has_stopped_says_so(machine: ServedTable) -> None:
    metrics = metrics_of(machine)
    machine.run.failure = OSError("the disk is full")
    try:
        (only,) = families(metrics).values()
    finally:
        machine.run.failure = None
    assert (only.name, only.samples[0].value) == ("sabot_table_running", 0)


def test_faults_are_counted_by_cause_from_where_the_run_began_and_each_once() -> None:
    record = SqliteRecord(None)
    device = Actor("", TableRole.DEVICE, Authentication.SENSED)

    def fault(name: str) -> Row:
        data: dict[str, Any] = {"serial": "S1", "half": "shoe", "fault": name, "place": "exit", "cards": 1}
        return Row("fault_raised", 5, device, data)

    record.commit([fault("misfeed")], SavedSession("{}", 0))  # before this run
    run: Any = SimpleNamespace(read=lambda look: look(SimpleNamespace(cursor=record.newest())))
    counts = RowCounts(run, record)
    counts.follow()
    assert not counts.faults
    rows = [fault("misfeed") for _ in range(PAGE + 3)] + [fault("card_stuck"), fault("a word of tomorrow")]
    record.commit(rows, SavedSession("{}", 0))
    expected = {"misfeed": PAGE + 3, "card_stuck": 1, "unknown": 1}
    for _ in range(2):
        counts.follow()
        assert counts.faults == expected


def test_the_files_name_only_metrics_that_there_are(machine: ServedTable) -> None:
    registry = CollectorRegistry()
    registry.register(metrics_of(machine))
    registry.register(PublisherMetrics([]))
    found = list(registry.collect())
    known = {each.name for each in found} | {f"{each.name}_total" for each in found}
    for name in ("alerts.yml", "alerts_test.yml"):
        assert set(NAME.findall((FILES / name).read_text(encoding="utf-8"))) <= known, name


def test_a_port_that_is_taken_is_told(machine: ServedTable) -> None:
    with scraped(metrics_of(machine)) as port, pytest.raises(NotServed, match=f"metrics on port {port}"):
        serve_table_metrics(metrics_of(machine), [], port)


@pytest.mark.slow
@pytest.mark.xdist_group("serve-command")
def test_where_nothing_may_leave_there_are_no_metrics(tmp_path: Path) -> None:
    words = ["serve", "--device", "sim://", "--port", "0", "--json", "--metrics-port", str(free_port())]
    home = {**os.environ, "SABOT_HOME": str(tmp_path)}
    done = warm_run([*words, "--rules", "wa-three-card-baccarat"], env=home, timeout=120)
    assert done.returncode == 1
    assert "WA3 lets nothing leave the table" in done.stdout + done.stderr
