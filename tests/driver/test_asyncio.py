"""The asyncio client: the same core, awaited; cancelling leaves the link usable."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.targets import Pty
from tests.driver.chaos import nothing_left_behind

from sabot_driver import Credential, LinkState, ReceivedEvent, aio
from sabot_driver.errors import Closed, DeviceTimeout, LinkLost, NoDevice, WrongRole
from sabot_protocol.host.messages import Back, Locate, RegisterDeck, Role, Status

KEY = bytes(range(32))


@asynccontextmanager
async def shoe(folder: Path) -> AsyncIterator[tuple[Pty, aio.AsyncClient]]:
    target = Pty(folder)
    url = str(target.link)
    client = await aio.connect(url, simulator=True, keyring=target.keyring, journal=folder / "journal.db")
    try:
        yield target, client
    finally:
        await client.close()
        target.close()


def run(test: Callable[[Path], Coroutine[Any, Any, None]], folder: Path) -> None:
    with nothing_left_behind():
        asyncio.run(test(folder))


def test_requests_and_typed_errors(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (_, client):
            assert client.link is LinkState.UP
            assert client.simulator
            assert (await client.status()).uptime_s >= 0
            with pytest.raises(WrongRole):
                await client.ask(RegisterDeck(1, Back.RED, int(time.time())))
            slot = await client.set_key(Role.FLOOR, KEY)
            floor = Credential(Role.FLOOR, KEY, slot=slot)
            assert await client.ask(RegisterDeck(1, Back.RED, int(time.time())), by=floor)

    run(test, tmp_path)


def test_many_at_once(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (_, client):
            answers = await asyncio.gather(*(client.status(20) for _ in range(200)))
            assert len(answers) == 200

    run(test, tmp_path)


def test_the_loop_goes_on_meanwhile(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (target, client):
            target.pull()
            turns = 0

            async def turn() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            turning = asyncio.create_task(turn())
            with pytest.raises(LinkLost):
                await client.status(0.2)
            turning.cancel()
            assert turns > 10

    run(test, tmp_path)


def test_events_are_awaited(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (_, client):

            async def read() -> list[int]:
                heard: list[int] = []
                async for event in client.events(after=0):
                    heard.append(event.id)
                    if event.name == "located":
                        break
                return heard

            reading = asyncio.create_task(read())
            await client.ask(Locate(1))
            heard = await asyncio.wait_for(reading, 30)
            assert heard == list(range(1, len(heard) + 1))

    run(test, tmp_path)


def test_a_reader_of_both_shells_has_one_place(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (_, client):
            await client.ask(Locate(1))
            seen = []
            async for event in client.events(reader="till", timeout=5):
                seen.append(event.id)
                if event.name == "located":
                    break
            rest = itertools.islice(client.blocking.events(reader="till", timeout=5), 1)
            assert [each.id for each in rest] == seen[-1:]

    run(test, tmp_path)


def test_events_end_when_nothing_comes_or_it_is_closed(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (_, client):
            early = [each async for each in client.events(after=0, timeout=0.2)]
            assert [each async for each in client.events(after=early[-1].id, timeout=0.05)] == []

            async def read() -> int:
                return len([each async for each in client.events(after=0) if isinstance(each, ReceivedEvent)])

            reading = asyncio.create_task(read())
            await asyncio.sleep(0.05)
            await client.close()
            assert await asyncio.wait_for(reading, 30) > 0

    run(test, tmp_path)


def test_cancelling_leaves_the_link_usable(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (target, client):
            for delay in (0.0, 0.001, 0.01):
                target.served.call(lambda: None)
                asking = asyncio.create_task(client.ask(Status(), 30))
                await asyncio.sleep(delay)
                asking.cancel()
                await asyncio.wait([asking], timeout=30)
                assert asking.cancelled() or asking.result()
            assert (await client.status()).uptime_s >= 0

    run(test, tmp_path)


def test_a_cancelled_question_is_not_asked_again(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (target, client):
            await client.status()
            target.pull()
            end = client.blocking.loop.connection.protocol
            while client.link is LinkState.UP:
                await asyncio.sleep(0.005)
            before = end.waiting()
            asking = asyncio.create_task(client.ask(Status(), 300))
            while end.waiting() == before:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.02)  # it waits for the answer now
            asking.cancel()
            await asyncio.wait([asking], timeout=30)
            assert asking.cancelled()
            while end.waiting() > before:
                assert time.monotonic() < ends, "nobody gave the question up"
                await asyncio.sleep(0.005)
            target.plug()
            assert (await client.status(30)).uptime_s >= 0

    ends = time.monotonic() + 30
    run(test, tmp_path)


def test_a_time_out_is_a_time_out(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (target, client):
            target.served.close()
            with pytest.raises(DeviceTimeout):
                await client.ask(Locate(1), 0.2)

    run(test, tmp_path)


def test_notices_come_in_the_loop(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (target, client):
            down = asyncio.Event()
            client.listen(lambda notice: down.set() if notice.kind == "down" else None)
            target.pull()
            await asyncio.wait_for(down.wait(), 30)

    run(test, tmp_path)


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        with pytest.raises(NoDevice):
            await aio.connect("/dev/ttyNOT-THERE")

    run(test, tmp_path)


def test_a_connect_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        target = Pty(folder)
        named = {"keyring": target.keyring, "simulator": True}
        connecting = asyncio.create_task(aio.connect(str(target.link), **named))
        await asyncio.sleep(0)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await asyncio.get_running_loop().shutdown_default_executor()
        await asyncio.sleep(0.2)
        target.close()

    run(test, tmp_path)


def test_a_closed_client_says_so(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (_, client):
            await client.close()
            with pytest.raises((Closed, RuntimeError)):
                await client.status()

    run(test, tmp_path)
