"""Two casinos, each a JetStream domain, and headquarters that source both streams: every row once."""

import asyncio
import json
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from tests.floor.running_floor import RunningFloor, eventually, run

from sabot_floor.connection import Servers, connect
from sabot_floor.names import SiteNames
from sabot_floor.payloads import RowMessage
from sabot_floor.server_files import Server, server_text
from sabot_floor.streams import HEADQUARTERS_STREAM, StreamSettings, set_up_headquarters
from sabot_simulators.floor.servers import Site
from sabot_simulators.floor.written_table import WrittenTable
from sabot_simulators.free_port import free_port

SITES = ("harbour", "hill")
SOURCED_S = 180.0  # a limit for what fails, not a measure
SMALL = StreamSettings(replicas=1, max_bytes=2**27, bucket_bytes=2**24)
Key = tuple[str, str, str, int]


@dataclass
class Operator:
    """Headquarters and two casinos."""

    headquarters: Site
    casinos: dict[str, Site]


@contextmanager
def operator(folder: Path) -> Iterator[Operator]:
    """Three servers; those of the casinos connect to headquarters."""
    leaf = free_port()
    with ExitStack() as stack:
        head = stack.enter_context(Site(folder / "head", sync="1m", domain="head", leaf_port=leaf))
        address = [f"nats://127.0.0.1:{leaf}"]
        casinos = {
            site: stack.enter_context(Site(folder / site, sync="1m", domain=site, headquarters=address))
            for site in SITES
        }
        yield Operator(head, casinos)


def connected(headquarters: Site) -> bool:
    """Whether the servers of both casinos are connected."""
    url = f"http://127.0.0.1:{headquarters.servers[0].server.http_port}/leafz"
    with urllib.request.urlopen(url, timeout=20) as answer:
        return int(json.load(answer)["leafnodes"]) == len(SITES)


async def rows_at(js: JetStreamContext, expected: int) -> Counter[Key]:
    """How often each row is in the stream of headquarters, once so many are there and no more come."""
    config = ConsumerConfig(deliver_policy=DeliverPolicy.ALL, ack_policy=AckPolicy.NONE)
    found: Counter[Key] = Counter()
    reader = await js.pull_subscribe("", stream=HEADQUARTERS_STREAM, config=config)
    ends = asyncio.get_running_loop().time() + SOURCED_S
    while asyncio.get_running_loop().time() < ends:
        try:
            messages = await reader.fetch(100, timeout=1)
        except TimeoutError:
            messages = []
        for each in messages:
            told = RowMessage.read(each.data)
            site = each.subject.split(".")[1]
            assert each.subject == SiteNames(site).rows(told.table, told.chain)
            for row in told.rows:
                found[site, told.chain, told.source, row.n] += 1
        if not messages and sum(found.values()) >= expected:
            break
    await reader.unsubscribe()
    return found


def expected_of(tables: dict[str, WrittenTable]) -> Counter[Key]:
    """Every row of the tables' files, once."""
    found: Counter[Key] = Counter()
    for site, table in tables.items():
        for source in table.sources():
            for row in source.rows(0, 10_000):
                found[site, source.chain, source.source, row.n] += 1
            source.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("away", [False, pytest.param(True, marks=pytest.mark.full)])
def test_rows_of_two_casinos_reach_headquarters_once_each(
    tmp_path: Path, written: Callable[[str], WrittenTable], away: bool
) -> None:
    """Both casinos have a table t01: subjects tell them apart. ``away``: headquarters are killed for a while.

    After a start the server takes up to a minute until it sources again: that case is in ``make test-full``.
    """
    tables = {site: written("t01") for site in SITES}

    async def scenario(operator: Operator) -> None:
        floors = {
            site: RunningFloor(tmp_path, site, Servers(operator.casinos[site].urls), SMALL) for site in SITES
        }
        async with floors["harbour"], floors["hill"]:
            publishers = []
            for site, table in tables.items():
                table.write(60)
                publishers.append(floors[site].publish(table))
                await floors[site].archived(table)
            head = Servers(operator.headquarters.urls)
            client = await connect(head, "headquarters", lambda: None)
            js = client.jetstream(timeout=30)
            await eventually(lambda: connected(operator.headquarters))
            assert await set_up_headquarters(js, SITES[:1], SMALL) == ["harbour"]
            assert await set_up_headquarters(js, SITES, SMALL) == ["hill"]
            assert await set_up_headquarters(js, SITES, SMALL) == []
            expected = expected_of(tables)
            assert await rows_at(js, expected.total()) == expected
            heard: list[str] = []
            await client.subscribe("sabot.>", cb=partial(_hear, heard))
            await _cannot_change(client)
            beats = [each.beats + 2 for each in publishers]
            await eventually(lambda: all(it.beats >= n for it, n in zip(publishers, beats, strict=True)))
            assert set(heard) == {SiteNames("harbour").rows("t01", "device")}  # no heartbeat
            await client.close()
            if not away:
                return
            operator.headquarters.servers[0].kill()
            for site, table in tables.items():
                table.write(60)
                await floors[site].archived(table)  # a casino does not wait for headquarters
            operator.headquarters.servers[0].start()
            operator.headquarters.servers[0].wait()
            client = await connect(head, "headquarters", lambda: None)
            expected = expected_of(tables)
            assert await rows_at(client.jetstream(timeout=30), expected.total()) == expected
            await client.close()

    with operator(tmp_path) as servers:
        run(scenario(servers))


async def _hear(heard: list[str], message: Msg) -> None:
    heard.append(message.subject)


async def _cannot_change(client: Client) -> None:
    """Headquarters read a casino's stream; they delete, purge and change nothing, and speak for no table."""
    names = SiteNames("harbour")
    name, casino = names.stream, client.jetstream(timeout=10, domain="harbour")
    info = await casino.stream_info(name)
    for refused in (casino.delete_stream(name), casino.purge_stream(name), casino.update_stream(info.config)):
        with pytest.raises((Error, TimeoutError)):
            await refused
    for _ in range(3):
        await client.publish(names.rows("t01", "device"), b"a row of headquarters")
    await client.flush()
    assert (await casino.stream_info(name)).state.messages == info.state.messages


def test_a_casinos_server_without_a_domain_is_refused(tmp_path: Path) -> None:
    made = Server("n1", 4222, tmp_path, headquarters=["nats://head:7422"])
    with pytest.raises(ValueError, match="no JetStream domain"):
        server_text(made)
