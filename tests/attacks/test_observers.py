"""Attacks by a host that may only look on, and by numbers."""

import pytest
from pair import BY_FLOOR, Pair
from tests.attacks.two_hosts import OBSERVERS_KEY, beside, watched
from world import HOST_ID, KEY

from sabot_protocol import device_protocol
from sabot_protocol.codec import CODEC
from sabot_protocol.host_protocol import OWNER
from sabot_protocol.wire_constants import OBSERVERS, REQUEST

DISPENSE = CODEC.named("dispense_stack")
RESOLVE = 1


def _say(host: Pair, mark: int, number: int) -> None:
    assert host.host._link is not None
    host.host._link.send(REQUEST, DISPENSE.id, mark, number, DISPENSE.pack((5, 1)) if not mark else b"")
    host.settle()


def test_an_observer_writes_nothing_into_the_ledger() -> None:
    """An observer with the owner's host id sent RESOLVE for 0xFFFFFFF0.

    Every later command of the owner was then an old one, and was refused for ever.
    """
    pair = watched()
    watcher = beside(pair, OBSERVERS_KEY, HOST_ID, OBSERVERS)
    newest = pair.device.ledger.newest(HOST_ID)
    for mark in (RESOLVE, 0):
        for number in (newest + 1, 0x7FFFFFFF, 0xFFFFFFF0):
            _say(watcher, mark, number)
    assert pair.device.ledger.newest(HOST_ID) == newest
    assert pair.shoe.done == []
    assert pair.ask("dispense_stack", 5, 1)[0] == "ok"


def test_an_observer_does_not_become_the_owner() -> None:
    """One key served observers and owners: a screen in the pit could take the device between rounds."""
    pair = watched()
    pair.port.close()
    watcher = beside(pair, OBSERVERS_KEY, b"PIT-WALL", OBSERVERS, OWNER)
    assert not watcher.host.up
    assert pair.device.owner is None
    beside(pair, OBSERVERS_KEY, b"PIT-WALL")
    assert pair.device.owner is None


def test_an_observer_does_not_inherit_the_owners_session() -> None:
    """A handshake with the owner's host id on the owner's cable kept the ownership, whoever had made it."""
    pair = watched()
    twin = beside(pair, OBSERVERS_KEY, HOST_ID, OBSERVERS)
    twin.port = pair.port
    twin.connect(0)
    assert pair.device.owner is None
    _say(twin, 0, 1)
    assert pair.shoe.done == []


def test_one_command_does_not_use_up_a_hosts_numbers() -> None:
    """One command numbered near 2^32, by a damaged journal or a mistake, disabled its host for ever."""
    pair = Pair().connect()
    newest = pair.device.ledger.newest(HOST_ID)
    for number in (newest + 4097, 0x7FFFFFFF, 0xFFFFFFF0):
        _say(pair, 0, number)
    assert pair.device.ledger.newest(HOST_ID) == newest
    assert pair.ask("dispense_stack", 5, 1)[0] == "ok"


def test_jumps_do_not_use_up_the_numbers_of_every_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with the device key used up its numbers by RESOLVE, 4,096 at a time, in a few minutes.

    When it had made the device forget that host, its last number stood for all hosts that are not on record:
    none of them could give a command any more.
    """
    monkeypatch.setattr(device_protocol, "MAX_SKIPPED", 20 * 4096)  # 4,096 jumps take too long
    pair = Pair().connect()
    for jump in range(100):
        _say(pair, RESOLVE if jump % 2 else 0, pair.device.ledger.newest(HOST_ID) + 4096)
    assert pair.device.ledger.newest(HOST_ID) <= 21 * 4096
    pair.port.close()
    spare = beside(pair, KEY, b"SPARE-PC", mode=OWNER)
    for _ in range(100):
        _say(spare, RESOLVE, pair.device.ledger.newest(b"SPARE-PC") + 4096)
    assert pair.device.ledger.newest(b"SPARE-PC") <= 21 * 4096
    spare.port.close()
    pair.connect()
    assert pair.ask("dispense_stack", 5, 1)[0] == "ok"


def test_the_floor_can_take_the_device_from_a_host_that_will_not_let_go() -> None:
    """A host that only kept its session alive kept the device for ever, and no person could do anything."""
    pair = watched()
    second = beside(pair, KEY, b"SPARE-PC")
    watcher = beside(pair, OBSERVERS_KEY, b"PIT-WALL", OBSERVERS)
    assert watcher.ask("evict_owner", HOST_ID, by=BY_FLOOR)[0] == "wrong_role"
    assert second.ask("evict_owner", HOST_ID)[0] == "wrong_role"
    pair.shoe.flags = 0x0004  # a round is open
    assert second.ask("evict_owner", HOST_ID, by=BY_FLOOR)[0] == "wrong_state"
    assert pair.device.owner is pair.port
    pair.shoe.flags = 0
    assert second.ask("evict_owner", HOST_ID, by=BY_FLOOR)[0] == "ok"
    second.connect()
    assert pair.device.owner is second.port
    assert [each[0] for each in pair.events("owner_evicted")] == [HOST_ID]


def test_a_program_that_ends_leaves_the_device_free() -> None:
    """After a clean exit the device stayed with the host that was gone, for the 5 s of the link's silence."""
    pair = Pair().connect()
    pair.port.receive(pair.host.close(pair.now), pair.now)
    spare = beside(pair, KEY, b"SPARE-PC", mode=OWNER)
    assert pair.device.owner is spare.port
