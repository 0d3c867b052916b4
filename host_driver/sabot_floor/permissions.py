"""Who may publish and subscribe to what on a site's servers. What is not listed is refused by the server."""

from dataclasses import dataclass

from sabot_floor.connection import inbox_of
from sabot_floor.names import (
    CHAINS,
    SiteNames,
    archived_key,
    bucket_stream,
    check_table,
    claim_key,
    state_key,
)

WATCHING = ("CREATE", "INFO", "DELETE")  # what watching a bucket needs of its consumer


@dataclass(frozen=True, slots=True)
class Permissions:
    """Subjects of one user."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def table_permissions(names: SiteNames, table: str) -> Permissions:
    """A table publishes its own rows, state and heartbeat, and reads its own newest messages.

    It answers a note on a subject of its own. ``allow_responses`` would let it publish anywhere: a table
    hears its own heartbeat, and could name another table's subject as the reply subject of one.
    """
    check_table(table)
    bucket = bucket_stream(names.state_bucket)
    rows = tuple(names.rows(table, chain) for chain in CHAINS)
    own = tuple(names.key_subject(key) for key in (state_key(table), claim_key(table)))
    read = tuple(names.key_subject(key) for key in (claim_key(table), archived_key(table)))
    return Permissions(
        publish=(
            *rows,
            names.beat(table),
            names.alarm(table),
            names.noted(table),
            *own,
            *(f"$JS.API.DIRECT.GET.{names.stream}.{each}" for each in rows),
            *(f"$JS.API.DIRECT.GET.{bucket}.{each}" for each in read),
        ),
        subscribe=(f"{inbox_of(table)}.>", names.ask(table), names.note(table), names.beat(table)),
    )


def archive_permissions(names: SiteNames) -> Permissions:
    """The archive creates the stream, consumes it, reports and raises alarms. It cannot delete a stream."""
    return Permissions(
        publish=(
            "$JS.API.INFO",
            "$JS.API.STREAM.INFO.*",
            "$JS.API.STREAM.CREATE.*",
            f"$JS.API.CONSUMER.*.{names.stream}",
            f"$JS.API.CONSUMER.*.{names.stream}.>",
            f"$JS.API.CONSUMER.MSG.NEXT.{names.stream}.*",
            f"$JS.API.CONSUMER.DURABLE.CREATE.{names.stream}.*",
            f"$JS.API.DIRECT.GET.{bucket_stream(names.alarm_bucket)}.>",
            f"$JS.ACK.{names.stream}.>",
            names.key_subject(archived_key("*")),
            f"$KV.{names.alarm_bucket}.>",
            names.ask("*"),
            names.archive_beat,
        ),
        subscribe=(f"{inbox_of('archive')}.>", names.beat(), names.alarm()),
    )


def wall_permissions(names: SiteNames) -> Permissions:
    """The wall reads states and alarms, takes alarms and sends notes. It publishes no row."""
    buckets = [bucket_stream(each) for each in (names.state_bucket, names.alarm_bucket)]
    return Permissions(
        publish=(
            *(f"$JS.API.STREAM.INFO.{each}" for each in (names.stream, *buckets)),
            *(
                f"$JS.API.CONSUMER.CREATE.{each}" for each in buckets
            ),  # nats-py: an ordered consumer has no name
            *(f"$JS.API.CONSUMER.{verb}.{each}.>" for each in buckets for verb in WATCHING),
            *(f"$JS.FC.{each}.>" for each in buckets),  # its flow control
            *(f"$JS.API.DIRECT.GET.{each}.>" for each in buckets),
            f"$KV.{names.alarm_bucket}.>",
            names.note("*"),
        ),
        subscribe=(f"{inbox_of('wall')}.>", names.beat(), names.noted(), names.archive_beat),
    )


def release_permissions(names: SiteNames) -> Permissions:
    """A person who gives claims free, and sets up stream and buckets."""
    return Permissions(
        publish=(
            "$JS.API.INFO",
            "$JS.API.STREAM.INFO.*",
            "$JS.API.STREAM.CREATE.*",
            names.key_subject(claim_key("*")),
        ),
        subscribe=(f"{inbox_of('admin')}.>",),
    )
