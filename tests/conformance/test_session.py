"""Sessions: who is there, who may come in, and what a bad line does to them."""

import os
import threading
from pathlib import Path

import pytest
from tests.conformance.targets import Target

from sabot_driver import Client, Keyring, LinkState
from sabot_driver.clock import Clock
from sabot_driver.errors import Closed, KeyMissing, OwnerHeld, SabotError, WrongDevice
from sabot_driver.unsecured_exchange import UnsecuredExchange
from sabot_protocol import frame
from sabot_protocol.host.messages import Counters, IdentityFlag, Status


def test_it_says_what_it_is(client: Client, target: Target) -> None:
    assert client.identity.model
    says_so = bool(client.identity.flags & IdentityFlag.SIMULATOR)
    assert says_so == target.simulator or not target.hands


def test_the_serial_number_it_says_is_the_one_it_proves(client: Client) -> None:
    assert client.peer is not None
    assert client.peer.serial == client.identity.serial


def test_a_session_comes_up_and_this_host_owns_the_device(client: Client) -> None:
    assert client.link is LinkState.UP
    assert client.peer is not None
    assert client.peer.owner
    assert not client.peer.limited


def test_a_device_that_has_a_key_keeps_it(client: Client, target: Target) -> None:
    client.close()
    with UnsecuredExchange(target.way(), "x", Clock(), 5) as exchange:  # noqa: SIM117
        with pytest.raises(SabotError, match="already provisioned"):
            exchange.provision(client.identity.serial, os.urandom(32))


def test_the_same_key_again_is_no_harm(client: Client, target: Target) -> None:
    client.close()
    key = target.keyring.find(client.identity.serial, client.simulator)
    assert key is not None
    with UnsecuredExchange(target.way(), "x", Clock(), 5) as exchange:
        exchange.provision(client.identity.serial, key)


def test_a_host_with_another_key_is_not_let_in(client: Client, target: Target) -> None:
    client.close()
    with pytest.raises(WrongDevice, match="key"):
        target.connect(key=os.urandom(32))


def test_a_host_without_the_key_is_told_so(client: Client, target: Target, tmp_path: Path) -> None:
    client.close()
    target.keyring = Keyring(tmp_path / "empty")
    with pytest.raises(KeyMissing):
        target.connect()


def test_another_device_than_expected_is_refused(client: Client, target: Target) -> None:
    client.close()
    with pytest.raises(WrongDevice, match="not OTHER001"):
        target.connect(serial=b"OTHER001")


def test_the_same_host_comes_back(client: Client, target: Target, tmp_path: Path) -> None:
    client.close()
    again = target.connect(journal=tmp_path / "journal.db")
    assert again.link is LinkState.UP
    assert again.status().uptime_s >= 0


def test_another_host_may_own_it_when_the_first_has_gone(client: Client, target: Target) -> None:
    client.close()
    other = target.connect()
    assert other.peer is not None
    assert other.peer.owner


@pytest.mark.needs("cables")
def test_a_second_owner_is_refused_with_who_holds_it(client: Client, target: Target) -> None:
    with pytest.raises(OwnerHeld) as refused:
        target.connect(transport=target.second_way())
    assert refused.value.holder == client.journal.host_id.hex()
    assert client.status()


@pytest.mark.needs("cables")
def test_an_observer_watches_beside_the_owner(client: Client, target: Target) -> None:
    observer = target.connect(owner=False, transport=target.second_way())
    assert observer.peer is not None
    assert not observer.peer.owner
    assert observer.status().flags == client.status().flags


def test_garbage_before_the_session_is_no_harm(target: Target) -> None:
    way = target.way()
    way.open()
    way.write(bytes(range(1, 256)) + b"\x00\x00" + os.urandom(100) + b"\x00")
    way.close()
    assert target.connect().link is LinkState.UP


def test_garbage_in_the_session_is_no_harm(client: Client) -> None:
    sessions = client.loop.connection.protocol.diagnostics.sessions
    for size in (1, 30, 250, 2000):
        client.loop.transport.write(os.urandom(size).replace(b"\x00", b"\x01") + b"\x00")
        assert client.status().uptime_s >= 0
    assert client.loop.connection.protocol.diagnostics.sessions == sessions


def test_a_frame_cut_short_costs_nothing_but_itself(client: Client) -> None:
    whole = bytes(frame.encode(bytes(40)))
    client.loop.transport.write(whole[:20])
    client.loop.transport.write(b"\x00")
    assert client.status()


def test_a_frame_without_end_is_given_up(client: Client) -> None:
    client.loop.transport.write(b"\x42" * 5000)
    assert client.status(timeout=60)


def test_bad_frames_are_counted(client: Client) -> None:
    before = sum(client.ask(Counters()).values[2:7])
    client.loop.transport.write(b"\x05abcd\x00")
    assert sum(client.ask(Counters()).values[2:7]) > before


def test_many_requests_at_once_are_all_answered(client: Client) -> None:
    futures = [client.submit(Status(), 20)[1] for _ in range(100)]
    assert all(future.result(25).uptime_s >= 0 for future in futures)


def test_threads_share_one_client(client: Client) -> None:
    answers: list[int] = []

    def ask() -> None:
        for _ in range(20):
            answers.append(client.status(20).uptime_s)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert len(answers) == 120


def test_a_closed_client_says_so(client: Client) -> None:
    client.close()
    with pytest.raises(Closed):
        client.status()


def test_closing_ends_what_was_asked(client: Client) -> None:
    _, future = client.submit(Status(), 30)
    client.close()
    assert future.done()


def test_an_answer_nobody_waits_for_is_dropped(client: Client) -> None:
    number, future = client.submit(Status())
    client.abandon(number)
    assert client.status()
    assert not future.done() or future.result().uptime_s >= 0
