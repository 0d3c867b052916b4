"""A programmer's usual mistakes: each error says what is wrong, before anything is sent to a device."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sabot_driver import Client, aio, connect
from sabot_driver.errors import BadUrl, Closed, NoDevice, WrongDevice, refusal
from sabot_driver.serial_numbers import parse_serial
from sabot_driver.transports import CHECK_NETWORK, opening_error
from sabot_protocol.host.messages import Role, Status, WrongRoleDetail

KEY = bytes(range(32))


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"url": None}, TypeError, "a device URL is a string, not None"),
        ({"url": " "}, BadUrl, "the device URL is empty"),
        ({"url": "sim:/BAC-07"}, BadUrl, "the URL begins with sim://"),
        ({"url": "simm://"}, BadUrl, "protocol 'simm' not known"),
        ({"key": b"short"}, ValueError, "a key is 32 bytes, not 5 bytes"),
        ({"key": "k" * 32}, ValueError, "a key is 32 bytes, not str"),
        ({"serial": "SB000123"}, TypeError, "serial is bytes, not 'SB000123'"),
        ({"serial": parse_serial("SB000123")}, WrongDevice, "this is SIM00001, not SB000123"),
        ({"journal": "journal.db"}, TypeError, "journal is a pathlib.Path, not 'journal.db'"),
        ({"timeout": "5"}, TypeError, "a time-out is a number of seconds, not '5'"),
    ],
)
def test_connecting(arguments: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as caught:
        connect(**{"url": "sim://", **arguments})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda client: client.ask("status"), "not 'status'"),
        (lambda client: client.ask(Status), "write Status(…)"),
        (lambda client: client.ask(Status(), by=KEY), "by is a Credential, not bytes"),
        (lambda client: client.ask(Status(), timeout=None), "a time-out is a number of seconds, not None"),
    ],
)
def test_asking(sim_client: Client, ask: Callable[[Client], Any], words: str) -> None:
    with pytest.raises(TypeError) as caught:
        ask(sim_client)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "use",
    [
        lambda client: client.status(),
        lambda client: client.wait_up(),
        lambda client: list(client.events(after=0, timeout=1)),
        lambda client: list(client.events(reader="pit-display", timeout=1)),
        lambda client: client.on_event(print),
    ],
)
def test_a_closed_client(closed_client: Client, use: Callable[[Client], Any]) -> None:
    assert closed_client.loop.rows, "events of the closed journal could be asked for"
    with pytest.raises(Closed, match=r"sim://.*: the client was closed"):
        use(closed_client)


def test_a_reader_whose_client_is_closed_meanwhile() -> None:
    client = connect("sim://?seed=1")
    events = client.events(reader="pit-display", after=0, timeout=10)
    next(events)
    client.close()
    assert list(events) == [], "it ends"


def test_an_awaited_reader_whose_client_is_closed_meanwhile() -> None:
    async def main() -> None:
        client = await aio.connect("sim://?seed=1")
        events = client.events(reader="pit-display", after=0, timeout=10)
        await anext(events)
        await client.close()
        assert [each async for each in events] == [], "it ends"
        with pytest.raises(Closed):
            await anext(client.events(after=0, timeout=5))

    asyncio.run(main())


def test_a_wrong_role_says_which_key_it_takes() -> None:
    detail = WrongRoleDetail(Role.TABLE)
    floor = refusal("register_deck", detail.CODE, detail.pack())
    assert "Allowed roles: FLOOR." in str(floor)
    assert "--floor-key FILE" in floor.advice
    service = refusal("set_key", detail.CODE, detail.pack())
    assert "Allowed roles: SERVICE." in str(service), "not the table, which has just been refused"
    observer = WrongRoleDetail(Role.OBSERVER)
    assert "as owner" in refusal("open_round", observer.CODE, observer.pack()).advice


def test_nobody_listens_on_the_network() -> None:
    error = opening_error("rfc2217://localhost:1", OSError("Connection refused"))
    assert isinstance(error, NoDevice)
    assert error.advice == CHECK_NETWORK
