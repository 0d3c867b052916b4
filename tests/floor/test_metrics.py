"""Metrics as Prometheus reads them, and the files for Prometheus and Grafana name only metrics that exist."""

import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from tests.floor.running_floor import RunningFloor, eventually, run

from sabot_floor import metrics, publisher
from sabot_floor.connection import Servers
from sabot_simulators.floor.written_table import WrittenTable
from sabot_simulators.free_port import free_port

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


@pytest.mark.slow
def test_a_publisher_without_a_connection_tells_how_many_rows_wait_and_for_how_long(
    floor: RunningFloor, written: Callable[[str], WrittenTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "BEAT_S", 0.05)
    table = written("t01")
    table.write(40)
    nowhere = Servers((f"nats://127.0.0.1:{free_port()}",))

    async def scenario() -> None:
        async with floor:
            lost = floor.publish(table, servers=nowhere)
            found: dict[str, float] = {}

            def waits() -> bool:
                registry = CollectorRegistry()
                registry.register(metrics.PublisherMetrics([lost]))
                for family in registry.collect():
                    for sample in family.samples:
                        found[sample.name + sample.labels.get("chain", "")] = sample.value
                return found["sabot_publisher_behind_secondsrecord"] >= 1

            await eventually(waits)
            assert found["sabot_publisher_behind_rowsrecord"] == table.record.newest()
            assert found["sabot_publisher_connected"] == 0
            await floor.end(lost)
            good = floor.publish(table)
            await floor.archived(table)
            await eventually(lambda: good.beats > 1 and [each.behind_rows for each in good.chains] == [0, 0])

    run(scenario())
