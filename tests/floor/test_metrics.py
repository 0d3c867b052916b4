"""Metrics as Prometheus reads them, and the files for Prometheus and Grafana name only metrics that exist."""

import json
import re
import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from tests.floor.running_floor import RunningFloor

from sabot_floor import metrics
from sabot_simulators.floor.servers import free_port

FILES = Path(metrics.__file__).parent / "monitoring"


def _scraped(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    families = text_string_to_metric_families(text)
    return {
        sample.name + sample.labels.get("table", "") + sample.labels.get("chain", ""): sample.value
        for family in families
        for sample in family.samples
    }


def test_the_archives_metrics_are_scraped_and_the_files_name_them(floor: RunningFloor) -> None:
    port = free_port()
    floor.archive.rows = 7
    floor.archive.matching = {("t01", "record"): False}
    metrics.serve_archive_metrics(floor.archive, port)
    found = _scraped(port)
    assert found["sabot_archive_rows_total"] == 7
    assert found["sabot_archive_connected"] == 0
    assert found["sabot_archive_reconciledt01record"] == 0
    known = {re.sub("t01record$", "", name) for name in found}
    rules = (FILES / "alerts.yml").read_text(encoding="utf-8")
    board = (FILES / "archive-dashboard.json").read_text(encoding="utf-8")
    named = set(re.findall(r"sabot_archive_[a-z_]+", rules))
    named |= set(re.findall(r"sabot_[a-z_]+", " ".join(_expressions(json.loads(board)))))
    assert named
    assert named <= known
    floor.store.close()


def _expressions(board: dict[str, list[dict[str, list[dict[str, str]]]]]) -> list[str]:
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]
