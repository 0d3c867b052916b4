"""Metrics of publisher and archive for Prometheus, read when they are asked for."""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sabot_floor.archive import Archive
from sabot_floor.publisher import TablePublisher

LOOPBACK = "127.0.0.1"


class ArchiveMetrics(Collector):
    """What the archive does."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def collect(self) -> Iterator[Metric]:
        """The metrics of this moment."""
        archive = self._archive
        up = "1 while the archive is connected to the floor's servers"
        yield GaugeMetricFamily("sabot_archive_connected", up, int(archive.connected))
        yield CounterMetricFamily("sabot_archive_rows", "rows committed by this run", archive.rows)
        again = "rows that came again with the same hash"
        yield CounterMetricFamily("sabot_archive_rows_again", again, archive.again)
        yield GaugeMetricFamily("sabot_archive_pending", "messages not delivered yet", archive.pending)
        behind = "age of the oldest message of the newest batch"
        yield GaugeMetricFamily("sabot_archive_behind_seconds", behind, archive.behind_s)
        same = GaugeMetricFamily(
            "sabot_archive_reconciled", "1 if count and hash were the table's", labels=["table", "chain"]
        )
        for (table, chain), matches in sorted(archive.matching.items()):
            same.add_metric([table, chain], int(matches))
        yield same


class PublisherMetrics(Collector):
    """What publishers of this process do."""

    def __init__(self, publishers: Iterable[TablePublisher]) -> None:
        self._publishers = list(publishers)

    def collect(self) -> Iterator[Metric]:
        """The metrics of this moment."""
        up = GaugeMetricFamily("sabot_publisher_connected", "1 while connected", labels=["table"])
        refused = GaugeMetricFamily(
            "sabot_publisher_refused", "1 if another publisher has the table", labels=["table"]
        )
        labels = ["table", "chain"]
        published = GaugeMetricFamily("sabot_publisher_row", "the newest acknowledged row", labels=labels)
        sent = CounterMetricFamily("sabot_publisher_messages", "acknowledged messages", labels=labels)
        back = CounterMetricFamily("sabot_publisher_errors", "how often it went back", labels=labels)
        rows = GaugeMetricFamily("sabot_publisher_behind_rows", "rows that are not published", labels=labels)
        age = GaugeMetricFamily(
            "sabot_publisher_behind_seconds", "age of the oldest row that is not published", labels=labels
        )
        for each in self._publishers:
            up.add_metric([each.table], int(each.connected))
            refused.add_metric([each.table], int(each.refused is not None))
            for chain in each.chains:
                key = [each.table, chain.source.chain]
                published.add_metric(key, chain.published)
                sent.add_metric(key, chain.messages)
                back.add_metric(key, chain.errors)
                rows.add_metric(key, chain.behind_rows)
                age.add_metric(key, chain.behind_s)
        yield from (up, refused, published, sent, back, rows, age)


def serve_archive_metrics(archive: Archive, port: int) -> None:
    """Offer the archive's metrics on a port of this computer, in a thread, until the program ends."""
    registry = CollectorRegistry()
    registry.register(ArchiveMetrics(archive))
    start_http_server(port, LOOPBACK, registry)
