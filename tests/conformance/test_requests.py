"""Requests: typed answers, typed refusals, roles, keys and the clock."""

import os
import time

import pytest
from tests.conformance.table import FLOOR, FLOOR_KEY, FLOOR_PERSON, Table
from tests.conformance.targets import Target

from sabot_driver import Client, Credential
from sabot_driver.errors import (
    BadCredential,
    KeyMissing,
    LinkLost,
    NotAllowed,
    NotOwner,
    NotSupported,
    Refused,
    WrongRole,
)
from sabot_protocol.errors import FieldError
from sabot_protocol.host.messages import (
    Back,
    ClearFault,
    ClockChanged,
    ClockQuality,
    ComponentQuery,
    Counters,
    DispenseStack,
    Elevate,
    ElevationUsed,
    Fault,
    Forbidden,
    KeyChanged,
    KeyRemoved,
    KeySlot,
    Locate,
    Located,
    MarkOutOfOrder,
    ProofsRefused,
    RegisterDeck,
    RemoveDeck,
    RemoveReason,
    Role,
    SetClock,
    Shuffle,
    StatusFlag,
    Trace,
)

FLOOR_SLOT = 3
REGISTER = RegisterDeck(1, Back.RED, int(time.time()))


def test_status_says_who_owns_it_and_that_it_knows_the_time(client: Client) -> None:
    client.ask(SetClock(int(time.time()), 0))
    status = client.status()
    assert status.flags & StatusFlag.OWNED
    assert status.flags & StatusFlag.CLOCK_KNOWN


def test_uptime_never_goes_back(client: Client) -> None:
    seen = [client.status().uptime_s for _ in range(5)]
    assert seen == sorted(seen)


def test_the_host_sets_the_clock_by_itself(client: Client, table: Table) -> None:
    assert table.wait_for(ClockChanged, 0).quality is ClockQuality.SET
    assert abs(client.status().utc_s - time.time()) < 60


def test_a_step_of_the_clock_is_told(client: Client, table: Table) -> None:
    table.wait_for(ClockChanged, 0)
    here = table.now
    client.ask(SetClock(int(time.time()) + 1000, 0))
    assert abs(table.wait_for(ClockChanged, here).step_s - 1000) < 60


def test_a_value_out_of_range_is_refused_before_it_is_sent(client: Client) -> None:
    next_number = client.loop.connection.protocol.next_number
    with pytest.raises(FieldError, match="stack"):
        client.ask(DispenseStack(1, 200))
    assert client.loop.connection.protocol.next_number == next_number, "no request was made of it"
    assert client.status()


def test_what_takes_the_floor_says_so(client: Client) -> None:
    with pytest.raises(WrongRole, match="FLOOR") as refused:
        client.ask(RegisterDeck(1, Back.RED, int(time.time())))
    assert refused.value.may == [Role.FLOOR]
    assert isinstance(refused.value, PermissionError)
    assert refused.value.advice


def test_marking_it_out_of_order_takes_floor_or_service(client: Client) -> None:
    with pytest.raises(WrongRole) as refused:
        client.ask(MarkOutOfOrder())
    assert refused.value.may == [Role.FLOOR, Role.SERVICE]


def test_the_table_clears_a_fault_that_needs_no_tool(client: Client) -> None:
    with pytest.raises(NotAllowed) as refused:  # there is none: but nobody asks for the floor
        client.ask(ClearFault(Fault.MISFEED))
    assert refused.value.reason is Forbidden.NO_SUCH_FAULT


def test_a_role_without_a_key_cannot_be_had(client: Client) -> None:
    with pytest.raises(KeyMissing, match="no key of floor"):
        client.ask(REGISTER, by=Credential(Role.FLOOR, FLOOR_KEY))
    with pytest.raises(Refused, match="No key is set"):
        client.ask(REGISTER, by=FLOOR)


def test_the_owner_of_a_new_device_sets_an_empty_slot_and_the_role_can_be_had(table: Table) -> None:
    slot = table.client.set_key(Role.FLOOR, FLOOR_KEY, FLOOR_PERSON)
    held = table.client.key_slots()
    assert (held.open, held.slots, held.roles) == (1, (0, slot), (Role.TABLE, Role.FLOOR))
    assert held.persons == (0, FLOOR_PERSON)
    assert table.client.ask(REGISTER, by=Credential(Role.FLOOR, FLOOR_KEY))


def test_an_elevation_is_for_one_command(table: Table) -> None:
    table.floor()
    table.client.ask(REGISTER, by=FLOOR)
    with pytest.raises(WrongRole):
        table.client.ask(RemoveDeck(1, RemoveReason.FLOOR_ORDER))
    table.client.ask(RemoveDeck(1, RemoveReason.FLOOR_ORDER), by=FLOOR)


def test_an_elevation_shown_again_is_refused(table: Table) -> None:
    table.floor()
    number = 0x90000000
    proof = bytes(16)
    with pytest.raises(BadCredential):
        table.client.ask(Elevate(1, FLOOR_SLOT, RegisterDeck.ID, number, bytes(32), proof))
    with pytest.raises(NotSupported):
        table.client.ask(Elevate(3, FLOOR_SLOT, RegisterDeck.ID, number, bytes(32), proof))


def test_wrong_credentials_lock_nobody_out_and_are_told(table: Table) -> None:
    table.floor()
    here = table.now
    for _ in range(7):
        with pytest.raises(BadCredential):
            table.client.ask(REGISTER, by=Credential(Role.FLOOR, os.urandom(32), slot=FLOOR_SLOT))
    table.client.ask(REGISTER, by=FLOOR)
    assert table.wait_for(ProofsRefused, here).slot == FLOOR_SLOT


def test_slots_are_closed_once_the_device_was_used(table: Table) -> None:
    table.floor()
    with pytest.raises(WrongRole):
        table.client.set_key(Role.FLOOR, os.urandom(32), slot=FLOOR_SLOT)
    table.client.ask(Locate(1))
    with pytest.raises(WrongRole):
        table.client.set_key(Role.SERVICE, os.urandom(32))
    table.client.ask(REGISTER, by=FLOOR)


def test_service_sets_and_removes_keys(table: Table) -> None:
    client = table.client
    table.floor()
    service = Credential(Role.SERVICE, os.urandom(32), 77)
    client.set_key(Role.SERVICE, service.key, 77)
    client.ask(Locate(1))
    here = table.now
    client.remove_key(FLOOR_SLOT, service)
    assert table.wait_for(KeyRemoved, here, slot=FLOOR_SLOT).by == 77
    with pytest.raises(Refused, match="No key is set"):
        client.ask(REGISTER, by=FLOOR)
    client.set_key(Role.FLOOR, FLOOR_KEY, 5, FLOOR_SLOT, service)
    client.ask(REGISTER, by=FLOOR)


@pytest.mark.slow
def test_a_new_device_key_does_not_strand_its_client(table: Table) -> None:
    client = table.client
    service = Credential(Role.SERVICE, os.urandom(32))
    client.set_key(Role.SERVICE, service.key)
    client.set_device_key(os.urandom(32), service)
    client.ask(Locate(1), 60)
    assert client.status(60)


@pytest.mark.slow
def test_observers_have_a_key_of_their_own(target: Target, table: Table) -> None:
    key = os.urandom(32)
    table.client.set_observers_key(key)
    table.client.close()
    watcher = target.connect(key=key, slot=KeySlot.OBSERVER, owner=False)
    assert watcher.status(60)
    with pytest.raises(NotOwner):
        watcher.ask(Locate(1), 60)
    watcher.close()
    with pytest.raises((LinkLost, WrongRole)):
        target.connect(key=key, slot=KeySlot.OBSERVER, owner=True, timeout=3.0)


def test_a_key_of_zeros_is_nobodys_secret(client: Client) -> None:
    with pytest.raises(Refused, match="value is not allowed"):
        client.set_key(Role.DEALER, bytes(32))


def test_a_new_key_is_told_by_an_event(client: Client, table: Table) -> None:
    here = table.now
    client.set_key(Role.LAB, os.urandom(32), 8, 9)
    told = table.wait_for(KeyChanged, here, slot=9)
    assert (told.role, told.person, told.by) == (Role.LAB, 8, 0)


def test_who_authorised_a_command_is_told_by_an_event(client: Client, table: Table) -> None:
    table.floor()
    here = table.now
    client.ask(REGISTER, by=FLOOR)
    told = table.wait_for(ElevationUsed, here)
    assert (told.role, told.person, told.request) == (Role.FLOOR, FLOOR_PERSON, RegisterDeck.ID)
    assert told.host_id == client.journal.host_id


def test_an_elevation_adds_to_what_the_owner_may(table: Table) -> None:
    table.open()
    table.open_round()


def test_what_a_device_cannot_do_it_says(client: Client) -> None:
    with pytest.raises(NotSupported):
        client.ask(ComponentQuery(255))


def test_it_shows_itself(client: Client, table: Table) -> None:
    here = table.now
    client.ask(Locate(3))
    assert table.wait_for(Located, here).seconds == 3


def test_counters_rise(client: Client) -> None:
    before = client.ask(Counters()).values
    client.status()
    after = client.ask(Counters()).values
    assert after[0] > before[0]
    assert all(late >= early for late, early in zip(after, before, strict=True))


def test_the_trace_has_the_last_headers(client: Client) -> None:
    client.status()
    trace = client.ask(Trace(0))
    assert trace.kept > 0
    assert len(trace.headers) % 16 == 0


def test_an_observer_reads_and_does_not_command(target: Target) -> None:
    observer = target.connect(owner=False)
    assert observer.status()
    with pytest.raises(NotOwner):
        observer.ask(Shuffle(1))
