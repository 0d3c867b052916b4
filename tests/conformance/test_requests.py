"""Requests: typed answers, typed refusals, roles, keys and the clock."""

import os
import time

import pytest
from tests.conformance.table import FLOOR_KEY, Table
from tests.conformance.targets import Target

from sabot_driver import Client
from sabot_driver.errors import (
    BadCredential,
    LockedOut,
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
    Fault,
    Forbidden,
    KeyChanged,
    KeySlot,
    Locate,
    Located,
    MarkOutOfOrder,
    RegisterDeck,
    Role,
    RoleChanged,
    SetClock,
    Shuffle,
    StatusFlag,
    Trace,
)


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
    next_number = client.line.core.record.next_number
    with pytest.raises(FieldError, match="stack"):
        client.ask(DispenseStack(1, 200))
    assert client.line.core.record.next_number == next_number, "no request was made of it"
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
    with pytest.raises(Refused, match="No key is set"):
        client.elevate(Role.FLOOR, FLOOR_KEY)


def test_the_owner_sets_an_empty_slot_and_the_role_can_be_had(table: Table) -> None:
    table.client.set_key(KeySlot.FLOOR, FLOOR_KEY)
    raised = table.client.elevate(Role.FLOOR, FLOOR_KEY, 60)
    assert (raised.role, raised.seconds) == (Role.FLOOR, 60)


def test_a_role_is_given_back(table: Table) -> None:
    table.floor()
    assert table.client.ask(Elevate(Role.TABLE, 1, bytes(16))).role == Role.TABLE
    with pytest.raises(WrongRole):
        table.client.ask(RegisterDeck(1, Back.RED, int(time.time())))


def test_a_wrong_credential_costs_a_try(client: Client) -> None:
    client.set_key(KeySlot.FLOOR, FLOOR_KEY)
    with pytest.raises(BadCredential):
        client.elevate(Role.FLOOR, os.urandom(32))
    assert client.elevate(Role.FLOOR, FLOOR_KEY).role == Role.FLOOR


def test_five_wrong_credentials_lock_the_role_out(client: Client) -> None:
    client.set_key(KeySlot.FLOOR, FLOOR_KEY)
    for _ in range(4):
        with pytest.raises(BadCredential):
            client.elevate(Role.FLOOR, os.urandom(32))
    with pytest.raises(LockedOut):
        client.elevate(Role.FLOOR, os.urandom(32))
    with pytest.raises(LockedOut):
        client.elevate(Role.FLOOR, FLOOR_KEY)


def test_a_full_slot_is_for_service(client: Client) -> None:
    client.set_key(KeySlot.FLOOR, FLOOR_KEY)
    with pytest.raises(WrongRole):
        client.set_key(KeySlot.FLOOR, os.urandom(32))
    assert client.elevate(Role.FLOOR, FLOOR_KEY).role == Role.FLOOR


def test_a_key_of_zeros_is_nobodys_secret(client: Client) -> None:
    with pytest.raises(Refused, match="value is not allowed"):
        client.set_key(KeySlot.DEALER, bytes(32))


def test_a_new_key_is_told_by_an_event(client: Client, table: Table) -> None:
    here = table.now
    client.set_key(KeySlot.LAB, os.urandom(32))
    assert table.wait_for(KeyChanged, here, slot=KeySlot.LAB)


def test_a_change_of_role_is_told_by_an_event(client: Client, table: Table) -> None:
    here = table.now
    table.floor()
    told = table.wait_for(RoleChanged, here)
    assert (told.role, told.host_id) == (Role.FLOOR, client.journal.host_id)


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
