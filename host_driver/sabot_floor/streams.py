"""The stream and the buckets of a site: their settings, and how they come to be (docs/floor.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nats.js import JetStreamContext
from nats.js.api import (
    DiscardPolicy,
    ExternalStream,
    KeyValueConfig,
    RetentionPolicy,
    StorageType,
    StreamConfig,
    StreamSource,
)
from nats.js.errors import NotFoundError

from sabot_floor.errors import BadName, StreamDiffers
from sabot_floor.names import SiteNames, bucket_stream
from sabot_floor.payloads import LARGEST, MOST_VALUE

HEADQUARTERS_STREAM = "sabot_all_rows"
DAY_S = 24 * 3600
HEADERS = 16 * 1024


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """What a site chooses. All else is the same everywhere."""

    replicas: int = 3
    max_age_s: int = 14 * DAY_S
    """Far above the longest outage of the archive; an alarm comes at a quarter of it."""
    max_bytes: int = 64 * 1024**3
    quota: int = 1_000_000
    """Messages of one chain of one table, so that one table cannot take the others' place.

    Twice of what a table that is played day and night writes in 14 days.
    """
    duplicate_window_s: float = 120.0
    bucket_bytes: int = 256 * 1024**2


def rows_config(names: SiteNames, settings: StreamSettings) -> StreamConfig:
    """The stream of rows. A full stream refuses; it never drops what was not archived."""
    return StreamConfig(
        name=names.stream,
        subjects=[names.rows()],
        retention=RetentionPolicy.LIMITS,
        discard=DiscardPolicy.NEW,
        discard_new_per_subject=True,
        max_bytes=settings.max_bytes,
        max_age=settings.max_age_s,
        max_msg_size=LARGEST + HEADERS,
        max_msgs_per_subject=settings.quota,
        storage=StorageType.FILE,
        num_replicas=settings.replicas,
        deny_delete=True,
        deny_purge=True,
        allow_direct=True,
        duplicate_window=settings.duplicate_window_s,
    )


def headquarters_config(sites: Sequence[str], settings: StreamSettings) -> StreamConfig:
    """The stream of headquarters: it *sources* the rows of each site, whose JetStream domain has its name."""
    external = {site: ExternalStream(api=f"$JS.{site}.API") for site in sites}
    return StreamConfig(
        name=HEADQUARTERS_STREAM,
        retention=RetentionPolicy.LIMITS,
        discard=DiscardPolicy.NEW,
        max_bytes=settings.max_bytes,
        max_age=settings.max_age_s,
        max_msg_size=LARGEST + HEADERS,
        storage=StorageType.FILE,
        num_replicas=settings.replicas,
        deny_delete=True,
        deny_purge=True,
        allow_direct=True,
        sources=[StreamSource(name=SiteNames(site).stream, external=external[site]) for site in sites],
    )


async def set_up_headquarters(
    js: JetStreamContext, sites: Sequence[str], settings: StreamSettings
) -> list[str]:
    """Create or extend the stream of headquarters; the sites that are new. No site is ever taken away."""
    if not sites:
        raise BadName("headquarters without a site", "Name each site.")
    try:
        there = (await js.stream_info(HEADQUARTERS_STREAM)).config
    except NotFoundError:
        await js.add_stream(headquarters_config(sites, settings))
        return list(sites)
    known = {each.name for each in there.sources or ()}
    new = [site for site in sites if SiteNames(site).stream not in known]
    if new:
        added = headquarters_config(new, settings).sources or []
        there.sources = [*(there.sources or ()), *added]
        await js.update_stream(there)
    return new


async def set_up(js: JetStreamContext, names: SiteNames, settings: StreamSettings) -> list[str]:
    """Create what is missing and name it. `StreamDiffers` if something is there with other settings."""
    created = []
    wanted = rows_config(names, settings)
    try:
        _compare(wanted, (await js.stream_info(names.stream)).config)
    except NotFoundError:
        await js.add_stream(wanted)
        created.append(names.stream)
    for bucket in (names.state_bucket, names.alarm_bucket):
        try:
            await js.stream_info(bucket_stream(bucket))
        except NotFoundError:
            await js.create_key_value(
                KeyValueConfig(
                    bucket=bucket,
                    history=1,
                    max_value_size=MOST_VALUE + HEADERS,
                    max_bytes=settings.bucket_bytes,
                    storage=StorageType.FILE,
                    replicas=settings.replicas,
                    direct=True,
                )
            )
            created.append(bucket)
    return created


_COMPARED = (
    "subjects", "retention", "discard", "discard_new_per_subject", "max_bytes", "max_age", "max_msg_size",
    "max_msgs_per_subject", "storage", "num_replicas", "deny_delete", "deny_purge", "allow_direct",
)  # fmt: skip


def _compare(wanted: StreamConfig, there: StreamConfig) -> None:
    def of(config: Any, name: str) -> Any:
        value = getattr(config, name)
        return getattr(value, "value", value)  # an answer has an enum's text

    differ = [
        f"{name} is {of(there, name)}, not {of(wanted, name)}"
        for name in _COMPARED
        if of(there, name) != of(wanted, name)
    ]
    if differ:
        raise StreamDiffers(f"stream {wanted.name}: {'; '.join(differ)}")
