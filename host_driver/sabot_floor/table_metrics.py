"""Metrics of a table's service for Prometheus, made when they are asked for, on a port of this computer only.

They obey the level of the rule text as published rows do: `machine` has no round and no need. Where nothing
may leave there are no metrics. No level has a person, a card, a wager or a key. Labels come from fixed lists.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sabot_driver import Client
from sabot_driver.link_state import LinkState
from sabot_floor.metrics import LOOPBACK, PublisherMetrics
from sabot_floor.publisher import TablePublisher
from sabot_protocol.host.messages import Fault, Place
from sabot_serve.running import TableService
from sabot_session.rows import Record
from sabot_session.threaded_session import ThreadedSession
from sabot_table.rule_texts import FloorLevel
from sabot_web.errors import NotServed

PAGE = 500
ROUND, VOID, FAULT = "collect", "void", "fault_raised"
"""Kinds of the record's rows that are counted."""
FAULTS = frozenset(each.name.lower() for each in Fault)
PLACES = frozenset(each.name.lower() for each in Place)
UNKNOWN = "unknown"
DEALER = "dealer"
Json = Mapping[str, Any]


class RowCounts:
    """Rounds, voids and faults since this run began, counted from the record as it grows."""

    def __init__(self, run: ThreadedSession, record: Record) -> None:
        self._run = run
        self._record = record
        self._lock = threading.Lock()
        self._after = int(run.read(lambda session: session.cursor))
        self.kinds: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()

    def follow(self) -> None:
        """Count the rows that are new; the session is held for a page at a time."""
        with self._lock:  # two scrapes at once count each row once
            while True:
                rows = self._run.read(lambda _: self._record.rows(self._after, PAGE))
                for each in rows:
                    self.kinds[each.row.kind] += 1
                    if each.row.kind == FAULT:
                        self.faults[_of(FAULTS, each.row.data.get("fault"))] += 1
                    self._after = each.number
                if len(rows) < PAGE:
                    return


class TableMetrics(Collector):
    """What a table's service knows, as far as the level lets it leave."""

    def __init__(
        self,
        name: str,
        level: FloorLevel,
        run: ThreadedSession,
        record: Record,
        client: Client,
        service: TableService,
    ) -> None:
        self._name = name
        self._level = level
        self._run = run
        self._client = client
        self._service = service
        self._rows = RowCounts(run, record)

    def collect(self) -> Iterator[Metric]:
        """The metrics of this moment. A session that has stopped has none but that."""
        runs = self._run.failure is None
        yield self._gauge("sabot_table_running", "1 while the table's session runs", int(runs))
        if not runs:
            return
        self._rows.follow()
        snapshot = self._run.read(lambda session: session.snapshot())
        yield from self._machine(snapshot["device"])
        yield self._gauge("sabot_table_record_row", "the newest row of the record", snapshot["newest_row"])
        yield self._gauge("sabot_table_journal_row", "the newest row of the journal", self._client.loop.rows)
        yield from self._of_service()
        if self._level in (FloorLevel.ROUNDS, FloorLevel.ALL):
            yield from self._play(snapshot)

    def _gauge(self, name: str, words: str, value: float) -> Metric:
        found = GaugeMetricFamily(name, words, labels=["table"])
        found.add_metric([self._name], value)
        return found

    def _counter(self, name: str, words: str, value: float) -> Metric:
        found = CounterMetricFamily(name, words, labels=["table"])
        found.add_metric([self._name], value)
        return found

    def _machine(self, device: Json) -> Iterator[Metric]:
        up = self._client.link is LinkState.UP
        yield self._gauge("sabot_table_machine_up", "1 while the machine answers", int(up))
        raised = CounterMetricFamily("sabot_table_faults", "faults by cause", labels=["table", "fault"])
        for fault, count in sorted(self._rows.faults.items()):
            raised.add_metric([self._name, fault], count)
        stopped = "1 while a half of the machine is stopped by it"
        now = GaugeMetricFamily("sabot_table_fault", stopped, labels=["table", "fault", "place"])
        for each in device["faults"]:
            now.add_metric([self._name, _of(FAULTS, each["fault"]), _of(PLACES, each["place"])], 1)
        yield from (raised, now)

    def _of_service(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "sabot_table_requests", "requests to the pages by class of answer", labels=["table", "code"]
        )
        for code, count in self._service.app.requests.by_class.items():
            requests.add_metric([self._name, code], count)
        yield requests
        yield self._gauge("sabot_table_pages", "open streams of pages", self._service.app.views.all_readers)

    def _play(self, snapshot: Json) -> Iterator[Metric]:
        counts = self._rows.kinds
        yield self._counter("sabot_table_rounds", "rounds that were collected, void or not", counts[ROUND])
        yield self._counter("sabot_table_voids", "rounds that were void", counts[VOID])
        notes = len(snapshot["notes"])
        yield self._gauge("sabot_table_notes", "notes of the floor that nobody has read", notes)
        labels = ["table", "kind", "who"]
        needs = GaugeMetricFamily("sabot_table_needs", "needs that are open", labels=labels)
        when = "since when the oldest is open, UTC by the table's clock"
        since = GaugeMetricFamily("sabot_table_need_since_seconds", when, labels=labels)
        counted: Counter[tuple[str, str]] = Counter()
        oldest: dict[tuple[str, str], int] = {}
        for each in snapshot["needs"]:
            key = str(each["kind"]), _who(each["roles"])
            counted[key] += 1
            oldest[key] = min(oldest.get(key, each["since_s"]), each["since_s"])
        for key, count in sorted(counted.items()):
            needs.add_metric([self._name, *key], count)
            since.add_metric([self._name, *key], oldest[key])
        yield from (needs, since)


def _of(known: frozenset[str], name: object) -> str:
    """A name of a fixed list: a newer machine's words make no label."""
    return str(name) if name in known else UNKNOWN


def _who(roles: list[str]) -> str:
    """Who may meet a need: the dealer alone or with others, others only, or the machine by itself."""
    return DEALER if DEALER in roles else "floor" if roles else "machine"


def serve_table_metrics(
    metrics: TableMetrics, publishers: Sequence[TablePublisher], port: int
) -> WSGIServer:
    """Offer a table's metrics in a thread until ``shutdown()``; port 0 takes any. `NotServed` if not."""
    registry = CollectorRegistry()
    registry.register(metrics)
    registry.register(PublisherMetrics(publishers))
    try:
        server, _ = start_http_server(port, LOOPBACK, registry)
    except OSError as error:
        raise NotServed(f"metrics on port {port}: {error}", "Choose another --metrics-port.") from error
    return server
