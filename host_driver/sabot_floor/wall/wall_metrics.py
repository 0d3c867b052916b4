"""Metrics of the wall for Prometheus, made when they are asked for, on a port of this computer only."""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sabot_floor.names import WHOLE_FLOOR
from sabot_floor.wall.wall_model import Attention, Hearing, JudgedFloor, Rank

if TYPE_CHECKING:
    from sabot_floor.wall.serving import WallService

LOOPBACK = "127.0.0.1"
LABELS = ("table", "kind")


class WallMetrics(Collector):
    """What the wall knows. Reading it changes nothing; the floor is read as it was judged last."""

    def __init__(self, service: "WallService") -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """The metrics of this moment."""
        feed, app = self._service.feed, self._service.app
        floor = feed.judged
        connected = "1 while the wall hears a server of the floor"
        yield GaugeMetricFamily("sabot_wall_connected", connected, int(floor.connected))
        blind = "1 while nothing can be said of most tables"
        yield GaugeMetricFamily("sabot_wall_blind", blind, int(floor.blind is not None))
        yield from _tables(floor)
        yield from _alarms(floor)
        unreadable = "messages that the wall could not read"
        yield CounterMetricFamily("sabot_wall_unreadable", unreadable, feed.unreadable)
        yield GaugeMetricFamily("sabot_wall_pages", "open streams of pages", app.views.all_readers)


def _tables(floor: JudgedFloor) -> Iterator[Metric]:
    counted = GaugeMetricFamily("sabot_wall_tables", "tables by their part of the wall", labels=["rank"])
    for rank in Rank:
        counted.add_metric([str(rank)], sum(each.rank is rank for each in floor.tables))
    heard = GaugeMetricFamily("sabot_wall_table_live", "1 while heartbeats come", labels=["table"])
    rows = GaugeMetricFamily("sabot_wall_behind_rows", "rows that are not published", labels=["table"])
    age = GaugeMetricFamily(
        "sabot_wall_behind_seconds", "age of the oldest row that is not published", labels=["table"]
    )
    for each in floor.tables:
        heard.add_metric([each.name], int(each.hearing is Hearing.LIVE))
        rows.add_metric([each.name], each.behind.rows)
        age.add_metric([each.name], each.behind.age_s)
    yield from (counted, heard, rows, age)


def _alarms(floor: JudgedFloor) -> Iterator[Metric]:
    is_open = GaugeMetricFamily("sabot_wall_alarm", "1 while an alarm is open", labels=LABELS)
    taken = GaugeMetricFamily("sabot_wall_alarm_taken", "1 if a person has taken it", labels=LABELS)
    escalated = GaugeMetricFamily("sabot_wall_alarm_escalated", "how often it has escalated", labels=LABELS)
    for table, each in _every(floor):
        key = [table, each.kind]
        is_open.add_metric(key, 1)
        taken.add_metric(key, int(each.taken_by is not None))
        escalated.add_metric(key, each.escalated)
    yield from (is_open, taken, escalated)


def _every(floor: JudgedFloor) -> Iterator[tuple[str, Attention]]:
    for alarm in floor.alarms:
        yield WHOLE_FLOOR, alarm
    for table in floor.tables:
        for each in table.attentions:
            yield table.name, each


def serve_wall_metrics(service: "WallService", port: int) -> WSGIServer:
    """Offer the wall's metrics in a thread until ``shutdown()``; port 0 takes any."""
    registry = CollectorRegistry()
    registry.register(WallMetrics(service))
    server, _ = start_http_server(port, LOOPBACK, registry)
    return server
