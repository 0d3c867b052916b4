"""The asyncio client: the same core, awaited; cancelling leaves the link usable."""

import asyncio
import itertools
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture
from tests.conformance.targets import Pty, eventually
from tests.driver.chaos import nothing_left_behind
from tests.driver.injected_errors import StrikeAt
from tests.sweeps import Amount

from sabot_driver import Credential, LinkState, ReceivedEvent, aio
from sabot_driver.asyncio_loop import WriterPort
from sabot_driver.errors import (
    Closed,
    DeviceTimeout,
    Forked,
    KeyMissing,
    LinkLost,
    NoDevice,
    PortBusy,
    SabotError,
    WrongRole,
)
from sabot_protocol.host.messages import Back, CallFloor, Locate, RegisterDeck, Role, Status

pytestmark = pytest.mark.slow

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
        async with shoe(folder) as (target, client):
            await client.ask(Locate(1))
            seen = []
            async for event in client.events(reader="till", timeout=60):
                seen.append(event.id)
                if event.name == "located":
                    break
            await client.close()
            with target.connect(journal=folder / "journal.db") as again:
                rest = itertools.islice(again.events(reader="till", timeout=60), 1)
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
            end = client.loop.connection.protocol
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
        url = str(target.link)
        named: dict[str, Any] = {"keyring": target.keyring, "simulator": True, "journal": folder / "j.db"}
        connecting = asyncio.create_task(aio.connect(url, **named))
        await asyncio.sleep(0)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting

        async def connect_again() -> None:
            for _ in range(1000):
                with suppress(PortBusy):  # port or journal, until the thread of the first one has ended
                    await (await aio.connect(url, **named)).close()
                    return
                await asyncio.sleep(0.01)
            pytest.fail("what the first one opened is still held")

        await connect_again()
        target.close()

    run(test, tmp_path)


def test_a_closed_client_says_so(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (_, client):
            await client.close()
            with pytest.raises(Closed):
                await client.status()

    run(test, tmp_path)


def test_a_credential_whose_slot_is_asked_for_keeps_no_other_task_waiting(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (target, client):
            await client.status()
            target.pull()
            while client.link is LinkState.UP:
                await asyncio.sleep(0.005)
            floor = asyncio.ensure_future(client.ask(CallFloor(1), 60, Credential(Role.FLOOR, KEY)))
            await asyncio.sleep(0)
            with pytest.raises(LinkLost):
                await client.status(0.2)
            assert not floor.done()
            target.plug()
            with pytest.raises(KeyMissing):
                await floor

    run(test, tmp_path)


def test_a_request_cancelled_at_any_turn_leaves_the_link_usable(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (_, client):
            for turns in range(25):
                asking = asyncio.create_task(client.ask(CallFloor(turns % 2), 30))
                for _ in range(turns):
                    await asyncio.sleep(0)
                asking.cancel()
                await asyncio.wait([asking])
                assert asking.cancelled() or asking.result()
            assert (await client.status(30)).uptime_s >= 0
            assert client.loop.failure is None
            assert {each.outcome for each in await client.resolve_open(30)} <= {"done", "not_executed"}

    run(test, tmp_path)


@pytest.mark.parametrize("error", [MemoryError, RuntimeError])
def test_an_exception_at_any_call_in_the_event_loop_leaves_the_client_alive(
    error: type[Exception], tmp_path: Path, amount: Amount
) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (_, client):
            n, strike = 1, StrikeAt(1, error)
            while n == 1 or strike.where:
                strike = StrikeAt(n, error)
                sys.setprofile(strike)
                try:
                    with suppress(SabotError, error):
                        await client.ask(CallFloor(n % 2), 5)
                finally:
                    sys.setprofile(None)
                assert (await client.status(30)).uptime_s >= 0, strike.where
                n += amount(61, full=3, campaign=1)
            assert n > 100, "a request makes hundreds of calls"

    run(test, tmp_path)


def test_a_write_that_fails_costs_the_session_and_no_more(tmp_path: Path, mocker: MockerFixture) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (_, client):
            notices: list[str] = []
            client.listen(lambda notice: notices.append(notice.kind))
            write = mocker.patch.object(client.loop.transport, "write", side_effect=LinkLost("no way out"))
            with pytest.raises(LinkLost):
                await client.status(0.3)
            assert write.called
            mocker.stopall()
            assert (await client.status(30)).uptime_s >= 0
            assert notices[0] == "down"
            assert notices[-1] == "up"

    run(test, tmp_path)


def test_a_port_that_takes_no_bytes_stops_no_other_task(tmp_path: Path, mocker: MockerFixture) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (_, client):
            write, go_on = client.loop.transport.write, threading.Event()

            def wait_first(data: bytes) -> None:
                go_on.wait(30)
                write(data)

            mocker.patch.object(client.loop.transport, "write", wait_first)
            asking = asyncio.create_task(client.status(30))
            await asyncio.sleep(0.05)  # the event loop goes on
            assert not asking.done()
            go_on.set()
            assert (await asking).uptime_s >= 0

    run(test, tmp_path)


def test_the_device_is_told_that_the_session_ends(tmp_path: Path) -> None:
    """The close packet is written before the port is closed: another program may own the device at once."""

    async def test(folder: Path) -> None:
        target = Pty(folder)
        url = str(target.link)
        for _ in range(5):
            async with await aio.connect(url, simulator=True, keyring=target.keyring) as client:
                await client.status()
            assert eventually(lambda: target.python.end.owner is None, 5)
        target.close()

    run(test, tmp_path)


def test_a_client_belongs_to_one_event_loop_and_one_process(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (_, client):
            with pytest.raises(RuntimeError, match="another event loop"):
                await asyncio.to_thread(asyncio.run, client.status())
            client.loop._pid += 1
            with pytest.raises(Forked):
                await client.status()
            await client.close()  # does nothing in a child
            client.loop._pid -= 1
            assert await client.status()

    run(test, tmp_path)


def test_a_close_that_is_cancelled_goes_on(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        async with shoe(folder) as (_, client):
            closing = asyncio.create_task(client.close())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            await client.close()
            assert client.link is LinkState.CLOSED

    run(test, tmp_path)


def test_an_event_loop_that_ends_before_the_client_frees_the_port(tmp_path: Path) -> None:
    async def test(folder: Path) -> None:
        client = await aio.connect(str(target.link), simulator=True, keyring=target.keyring)
        kept.append(client)

    target = Pty(tmp_path)
    kept: list[aio.AsyncClient] = []
    asyncio.run(test(tmp_path))
    target.served.call(lambda: target.python.end.emit("located", 1))  # the reader notices it then

    def connected() -> bool:
        with suppress(PortBusy), target.connect(timeout=30) as again:
            return again.status(30).uptime_s >= 0
        return False

    assert eventually(connected)
    kept[0].loop._stop_threads()
    target.close()


def test_steps_that_fail_outside_the_loop_are_repeated(tmp_path: Path, mocker: MockerFixture) -> None:
    """The time-out of a request is kept although the step that must set its timer failed."""

    async def test(folder: Path) -> None:
        async with shoe(folder) as (target, client):
            target.served.close()
            asking = asyncio.create_task(client.ask(Locate(1), 0.5))
            await asyncio.sleep(0.05)
            until = client.loop.clock.seconds_until
            effects = itertools.chain([MemoryError()] * 3, itertools.repeat(None))

            def fail_at_first(tick: int) -> float:
                error = next(effects)
                if error is not None:
                    raise error
                return until(tick)

            mocker.patch.object(client.loop.clock, "seconds_until", fail_at_first)
            client.loop._ready()
            with pytest.raises(DeviceTimeout) as found:
                await asking
            assert "the driver itself" not in str(found.value)

    run(test, tmp_path)


class SlowPort:
    """Stands for a reader port: it has bytes, and its writes wait."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.done: list[str] = []
        self.inputs: list[bytes] = []

    def start_open(self) -> None:
        self.done.append("open")

    def start_close(self) -> None:
        self.done.append("close")
        self.inputs.clear()

    def take(self) -> list[bytes]:
        taken, self.inputs = self.inputs, []
        return taken

    def write(self, data: bytes) -> None:
        self.go_on.wait(30)
        self.done.append(data.decode())

    def join(self) -> None:
        self.done.append("join")


def test_a_closing_that_waits_for_a_write_hides_what_the_old_opening_reads() -> None:
    slow = SlowPort()
    port = WriterPort(slow, lambda: None)  # type: ignore[arg-type]
    port.start_open()
    assert eventually(lambda: slow.done == ["open"])
    slow.inputs.append(b"heard")
    assert port.take() == [b"heard"]
    port.write(b"close packet")
    port.start_close()
    slow.inputs.append(b"late")
    assert port.take() == []
    slow.go_on.set()
    port.stop()
    assert slow.done == ["open", "close packet", "close", "join"]
    assert port.take() == []
