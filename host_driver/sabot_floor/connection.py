"""Connections to the floor's servers: addresses, credential, TLS; entries of buckets by subject."""

import asyncio
import contextlib
import ssl
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats
import nats.errors
from nats.aio.client import Client
from nats.js.errors import APIError, NotFoundError

from sabot_floor.errors import FloorSettingsDamaged, FloorUnreachable
from sabot_floor.names import check_name, check_table

CONNECT_S = 5
PING_S = 10
PINGS = 2
END_S = 3
EXPECTED = "Nats-Expected-Last-Subject-Sequence"
WRONG_SEQUENCE = 10071  # JetStream's error code: wrong last sequence


LOST = (OSError, nats.errors.Error, TimeoutError)
"""What an operation on a connection may raise; JetStream's own errors are among them."""


@dataclass(frozen=True, slots=True)
class Servers:
    """How to reach the servers, and as whom."""

    urls: tuple[str, ...]
    nkey_seed: Path | None = None
    """The file with the user's seed; None where servers ask for none."""
    ca: Path | None = None
    """The certificate authority of the servers' certificates; None: those that the system trusts."""
    inbox: str = "_INBOX"
    """The prefix of replies; a table has one of its own, so that no other reads them."""


@dataclass(frozen=True, slots=True)
class TableSettings:
    """One table on a floor, as the file of ``sabot serve --floor`` says it."""

    site: str
    table: str
    pit: str
    servers: Servers


def inbox_of(table: str) -> str:
    """The prefix of a table's replies."""
    return f"_INBOX_{table}"


def read_settings(path: Path) -> TableSettings:
    """The settings of a table; `FloorSettingsDamaged` says what is wrong with the file."""
    try:
        told: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FloorSettingsDamaged(f"{path}: {error}") from error
    unknown = set(told) - {"site", "table", "pit", "servers", "nkey_seed", "ca"}
    if unknown:
        raise FloorSettingsDamaged(f"{path}: unknown key '{min(unknown)}'")
    try:
        site, table, urls = told["site"], told["table"], told["servers"]
    except KeyError as error:
        raise FloorSettingsDamaged(f"{path}: the key {error} is missing") from error
    if not isinstance(urls, list) or not urls or not all(isinstance(each, str) for each in urls):
        raise FloorSettingsDamaged(f"{path}: 'servers' is not a list of addresses")
    files = {name: path.parent / told[name] for name in ("nkey_seed", "ca") if name in told}
    servers = Servers(tuple(urls), files.get("nkey_seed"), files.get("ca"), inbox_of(check_table(table)))
    return TableSettings(check_name(site, "site"), table, str(told.get("pit", "")), servers)


async def connect(
    servers: Servers,
    name: str,
    closed: Callable[[], None],
    failed: Callable[[Exception], None] = lambda _: None,
) -> Client:
    """One connection that is not renewed: its owner connects again, so that it reads its place anew.

    ``closed`` is called once when it has ended. `FloorUnreachable` if no server takes it.
    """

    async def on_closed() -> None:
        closed()

    async def on_error(error: Exception) -> None:
        failed(error)

    options: dict[str, Any] = {}
    if servers.nkey_seed is not None:
        options["nkeys_seed"] = str(servers.nkey_seed)
    if any(each.startswith("tls://") for each in servers.urls) or servers.ca is not None:
        options["tls"] = ssl.create_default_context(cafile=None if servers.ca is None else str(servers.ca))
    client = Client()
    try:
        async with asyncio.timeout(CONNECT_S * 2):
            await client.connect(
                list(servers.urls),
                name=name,
                allow_reconnect=False,
                max_reconnect_attempts=1,  # of each server, before the first connection
                reconnect_time_wait=0,
                connect_timeout=CONNECT_S,
                ping_interval=PING_S,
                max_outstanding_pings=PINGS,
                inbox_prefix=servers.inbox,
                closed_cb=on_closed,
                error_cb=on_error,
                **options,
            )
    except (OSError, nats.errors.Error, TimeoutError, ssl.SSLError) as error:
        await end(client)
        raise FloorUnreachable(f"{', '.join(servers.urls)}: {error or type(error).__name__}") from error
    return client


async def end(client: Client) -> None:
    """Close a connection; one whose peer does not answer is given up after a while."""
    with contextlib.suppress(*LOST):
        async with asyncio.timeout(END_S):
            await client.close()


@dataclass(frozen=True, slots=True)
class Entry:
    """The newest message of a subject."""

    seq: int
    data: bytes


async def newest(client: Client, stream: str, subject: str, timeout: float) -> Entry | None:
    """The newest message of a subject; None if there is none. Any replica may answer, so it may be old."""
    js = client.jetstream(timeout=timeout)
    try:
        found = await js.get_msg(stream, subject=subject, direct=True)
    except NotFoundError:
        return None
    return Entry(int(found.seq or 0), found.data or b"")


async def put(client: Client, subject: str, data: bytes, expected: int | None, timeout: float) -> int:
    """Publish to a stream; the message's sequence. ``expected`` is that of the subject's newest message."""
    headers = None if expected is None else {EXPECTED: str(expected)}
    ack = await client.jetstream().publish(subject, data, timeout=timeout, headers=headers)
    return ack.seq


def is_wrong_sequence(error: BaseException) -> bool:
    """Whether a message was refused because another one is the subject's newest."""
    return isinstance(error, APIError) and error.err_code == WRONG_SEQUENCE
