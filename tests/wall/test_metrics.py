"""The wall's metrics in a real Prometheus, and the alert rules."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from tests.wall.running_prometheus import program, prometheus
from tests.wall.served_wall import ServedWall

import sabot_floor
from sabot_floor.payloads import Alarm
from sabot_floor.wall.wall_metrics import WallMetrics, serve_wall_metrics

FILES = Path(sabot_floor.__file__).parent / "monitoring"
NAME = re.compile(r"\bsabot_\w+")
OTHERS = ("sabot_archive_", "sabot_publisher_", "sabot_table_")
"""Metrics of the archive and of tables: `sabot_floor.metrics`, `sabot_floor.table_metrics`."""


@pytest.mark.slow
def test_a_real_prometheus_scrapes_the_wall_and_its_rules_fire(wall: ServedWall, tmp_path: Path) -> None:
    program("prometheus")
    wall.spoken.tables(["t1", "t2", "t3"])
    wall.spoken.tell("t2", called=True)
    wall.spoken.beat("t3", rows=900, published=100, waiting_s=45)
    wall.wait_order("t2", "t3")
    wall.spoken.alarm(Alarm(table="t1", kind="row_differs", words="row 5", by="archive", since_us=1))
    server = serve_wall_metrics(wall.service, 0)
    try:
        with prometheus(tmp_path, FILES / "alerts.yml", server.server_port) as found:
            assert found.wait('sabot_wall_tables{rank="waits"} == 2')
            assert found.query('sabot_wall_alarm{table="t2",kind="person_needed"}')[0]["value"][1] == "1"
            assert found.query('sabot_wall_behind_rows{table="t3"}')[0]["value"][1] == "800"
            fired = found.wait('ALERTS{alertname="EvidenceDiffers",alertstate="firing"}')
            assert [each["metric"]["table"] for each in fired] == ["t1"]
            assert not found.query('ALERTS{alertname="FloorBlind"}')
            for panel in json.loads((FILES / "wall-dashboard.json").read_text(encoding="utf-8"))["panels"]:
                for target in panel["targets"]:
                    found.query(target["expr"])  # what Prometheus cannot parse is an error
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.slow
def test_the_alert_rules_fire_when_they_should_and_not_before() -> None:
    for words in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run([program("promtool"), *words], cwd=FILES, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_rules_and_dashboard_name_only_metrics_that_there_are(wall: ServedWall) -> None:
    registry = CollectorRegistry()
    registry.register(WallMetrics(wall.service))
    known = {sample.name for metric in registry.collect() for sample in metric.samples}
    known |= {metric.name for metric in registry.collect()}
    for name in ("alerts.yml", "wall-dashboard.json", "alerts_test.yml"):
        named = set(NAME.findall((FILES / name).read_text(encoding="utf-8")))
        assert {each for each in named if not each.startswith(OTHERS)} <= known, name
