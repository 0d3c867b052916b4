"""A table's credential: its own subjects and keys, its own replies, and nothing else; revoked at once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js.errors import APIError
from tests.floor.running_floor import RunningFloor, eventually, run
from tests.floor.secured_site import SITE, SecuredSite

from sabot_floor.alarms import Alarms
from sabot_floor.connection import Servers, connect, newest, put
from sabot_floor.errors import FloorUnreachable
from sabot_floor.names import SiteNames, bucket_stream
from sabot_floor.site_users import UserKnown, UserUnknown
from sabot_floor.streams import StreamSettings, set_up
from sabot_simulators.floor.servers import Site
from sabot_simulators.floor.written_table import WrittenTable

pytestmark = pytest.mark.slow

NAMES = SiteNames(SITE)
STATE = bucket_stream(NAMES.state_bucket)
SMALL = StreamSettings(replicas=1, max_bytes=64 * 1024**2)
Make = Callable[[str], WrittenTable]


class Denied:
    """Collects what the server refuses."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def __call__(self, error: Exception) -> None:
        self.said.append(str(error))


async def _client(secured: SecuredSite, user: str, denied: Denied, inbox: str | None = None) -> Client:
    return await connect(secured.servers(user, inbox), user, lambda: None, denied)


async def _set_up(secured: SecuredSite) -> None:
    client = await _client(secured, "archive", Denied())
    await set_up(client.jetstream(), NAMES, SMALL)
    await client.close()


def test_the_floor_works_with_tls_and_keys(secured: SecuredSite, written: Make, tmp_path: Path) -> None:
    tables = [written("t01"), written("t02")]
    floor = RunningFloor(tmp_path, SITE, secured.servers("archive"), SMALL)

    async def scenario() -> None:
        async with floor:
            for each in tables:
                each.write(20)
                floor.publish(each, servers=secured.servers(each.name))
            await floor.archived(*tables)
            await eventually(lambda: len(floor.archive.matching) == 4)

    run(scenario())


@pytest.mark.parametrize(
    "subject",
    [
        NAMES.rows("t02", "record"),
        NAMES.rows("t01", "wagers"),
        NAMES.beat("t02"),
        NAMES.alarm("t02"),
        NAMES.ask("t02"),
        NAMES.note("t01"),
        NAMES.note("t02"),
        NAMES.noted("t02"),
        NAMES.archive_beat,
        NAMES.key_subject("state.t02"),
        NAMES.key_subject("claim.t02"),
        NAMES.key_subject("archived.t01"),
        NAMES.alarm_subject("t01", "second_publisher"),
        "_INBOX_t02.x",
        f"$JS.API.STREAM.DELETE.{NAMES.stream}",
        f"$JS.API.STREAM.PURGE.{NAMES.stream}",
        f"$JS.API.STREAM.UPDATE.{NAMES.stream}",
        f"$JS.API.STREAM.INFO.{NAMES.stream}",
        f"$JS.API.STREAM.MSG.GET.{NAMES.stream}",
        f"$JS.API.STREAM.MSG.DELETE.{NAMES.stream}",
        f"$JS.API.CONSUMER.CREATE.{NAMES.stream}",
        f"$JS.API.CONSUMER.MSG.NEXT.{NAMES.stream}.archive",
        f"$JS.API.DIRECT.GET.{NAMES.stream}",
        f"$JS.API.DIRECT.GET.{NAMES.stream}.{NAMES.rows('t02', 'record')}",
        f"$JS.API.DIRECT.GET.{STATE}.{NAMES.key_subject('state.t02')}",
    ],
)
def test_a_table_may_not_publish(secured: SecuredSite, subject: str) -> None:
    async def scenario() -> None:
        denied = Denied()
        client = await _client(secured, "t01", denied)
        await client.publish(subject, b"{}")
        await eventually(lambda: bool(denied.said))
        assert "permissions violation for publish" in denied.said[0].lower()
        await client.close()

    run(scenario())


@pytest.mark.parametrize(
    "subject",
    [">", "sabot.>", NAMES.rows(), NAMES.rows("t02", "record"), NAMES.beat(), NAMES.ask("t02"),
     NAMES.note("t02"), NAMES.noted("t01"), NAMES.noted("t02"), "_INBOX.>",
     "_INBOX_t02.>", "_INBOX_archive.>", "$JS.ACK.>", "$KV.>"],
)  # fmt: skip
def test_a_table_may_not_read(secured: SecuredSite, subject: str) -> None:
    async def scenario() -> None:
        denied = Denied()
        client = await _client(secured, "t01", denied)
        await client.subscribe(subject)
        await client.flush()
        await eventually(lambda: bool(denied.said))
        assert "permissions violation for subscription" in denied.said[0].lower()
        await client.close()

    run(scenario())


def test_a_table_reads_its_own_newest_row(secured: SecuredSite) -> None:
    async def scenario() -> None:
        await _set_up(secured)
        client = await _client(secured, "t01", Denied())
        subject = NAMES.rows("t01", "record")
        before = await newest(client, NAMES.stream, subject, 10)
        seq = await put(client, subject, b"x", 0 if before is None else before.seq, 10)
        found = await newest(client, NAMES.stream, subject, 10)
        assert found is not None
        assert (found.seq, found.data) == (seq, b"x")
        await client.close()

    run(scenario())


def test_without_a_key_a_certificate_or_with_another_key_nobody_comes_in(secured: SecuredSite) -> None:
    good = secured.servers("t01")

    async def refused(servers: object) -> None:
        with pytest.raises(FloorUnreachable):
            await connect(servers, "test", lambda: None)  # type: ignore[arg-type]

    async def scenario() -> None:
        await refused(replace(good, nkey_seed=None))
        await refused(replace(good, ca=None))
        plain = tuple(each.replace("tls://", "nats://") for each in good.urls)
        await refused(replace(good, urls=plain, ca=None))

    run(scenario())


def test_a_revoked_table_loses_its_connection_and_cannot_return(secured: SecuredSite) -> None:
    """Also on a server that was down meanwhile: it starts with the file of users as it is then."""

    async def scenario() -> None:
        server = secured.site.servers[0]
        secured.users.change(add=["t09", "t10"])
        server.reload()
        closed = asyncio.Event()
        client = await _retry(lambda: connect(secured.servers("t09"), "t09", closed.set))
        other = await _retry(lambda: connect(secured.servers("t10"), "t10", lambda: None))
        closed.clear()  # an attempt before the server had read its file of users has ended too
        secured.users.change(revoke=["t09"])
        server.reload()
        await asyncio.wait_for(closed.wait(), 60)
        assert client.is_closed
        assert other.is_connected
        with pytest.raises(FloorUnreachable):
            await connect(secured.servers("t09"), "t09", lambda: None)
        await other.close()
        server.stop()
        secured.users.change(revoke=["t10"])
        server.start()
        server.wait()
        with pytest.raises(FloorUnreachable):
            await connect(secured.servers("t10"), "t10", lambda: None)

    run(scenario())


async def _retry(make: Callable[[], Awaitable[Client]]) -> Client:
    """A reload takes a moment."""
    for _ in range(100):
        try:
            return await make()
        except FloorUnreachable:
            await asyncio.sleep(0.1)
    raise AssertionError("not let in")


def test_users_are_added_and_revoked_whole_or_not_at_all(secured: SecuredSite) -> None:
    before = secured.users.names()
    with pytest.raises(UserKnown):
        secured.users.change(add=["t50", "t01"])
    with pytest.raises(UserUnknown):
        secured.users.change(add=["t51"], revoke=["t52"])
    assert secured.users.names() == before


def test_one_table_cannot_take_the_others_place(server: Site, site_name: str) -> None:
    """A table that has filled its quota is refused; another one still publishes."""
    names = SiteNames(site_name)

    async def scenario() -> None:
        client = await connect(Servers(server.urls), "test", lambda: None)
        await set_up(client.jetstream(), names, replace(SMALL, quota=20))
        for _ in range(20):
            await put(client, names.rows("t01", "record"), b"x" * 1000, None, 10)
        with pytest.raises(APIError, match="maximum messages per subject exceeded"):
            await put(client, names.rows("t01", "record"), b"x", None, 10)
        with pytest.raises(APIError, match="message size exceeds maximum allowed"):
            await put(client, names.rows("t02", "record"), b"x" * 300 * 1024, None, 10)
        await put(client, names.rows("t01", "device"), b"x", None, 10)
        await put(client, names.rows("t02", "record"), b"x", None, 10)
        await client.close()

    run(scenario())


def test_an_alarm_is_raised_once_until_it_ends(secured: SecuredSite) -> None:
    async def scenario() -> None:
        await _set_up(secured)
        archive = await _client(secured, "archive", Denied())
        alarms = Alarms(archive, NAMES, "archive")
        raising = [alarms.raise_("t01", "test", "a test") for _ in range(3)]
        assert sorted(await asyncio.gather(*raising)) == [False, False, True]
        assert await alarms.end("t01", "test")
        assert not await alarms.end("t01", "test")
        assert await alarms.raise_("t01", "test", "again")
        await archive.close()

    run(scenario())
