"""Stacks and rounds: each command once, whatever happens to the line."""

from pathlib import Path

import pytest
from tests.conformance.table import Table
from tests.conformance.targets import Target, eventually

from sabot_driver import Client, Journal, ReceivedEvent
from sabot_driver.errors import DeviceTimeout, SabotError, Stale
from sabot_driver.journal import CommandRecord, JournalBatch
from sabot_protocol.host.messages import DispenseStack, Locate, Located, OpenRound, ShoeState, StackDispensed


def stacks(client: Client) -> list[tuple[int, int]]:
    """Every stack told as dispensed."""
    return [
        (each.message.round_id, each.message.stack)
        for each in client.events(0, timeout=0)
        if isinstance(each, ReceivedEvent) and isinstance(each.message, StackDispensed)
    ]


def test_a_stack_has_three_cards(table: Table) -> None:
    table.open()
    table.open_round()
    assert table.stack(1).cards == 3


def test_stacks_come_in_order(table: Table) -> None:
    table.open()
    table.open_round(4)
    for stack in range(1, 5):
        table.stack(stack)
    assert stacks(table.client) == [(1, 1), (1, 2), (1, 3), (1, 4)]


def test_status_tells_round_and_stack(table: Table) -> None:
    table.open()
    table.open_round()
    table.stack(1)
    status = table.client.status()
    assert (status.round_id, status.stack) == (1, 1)


def test_a_stack_of_another_round_is_stale(table: Table) -> None:
    table.open()
    table.open_round()
    with pytest.raises(Stale) as refused:
        table.client.ask(DispenseStack(9, 1))
    assert refused.value.round_id == 1


def test_a_stack_twice_is_stale(table: Table, target: Target) -> None:
    table.open()
    table.open_round()
    table.stack(1)
    with pytest.raises(Stale):
        table.client.ask(DispenseStack(1, 1))
    assert stacks(table.client) == [(1, 1)]


def test_a_stack_out_of_turn_is_stale(table: Table) -> None:
    table.open()
    table.open_round()
    with pytest.raises(Stale) as refused:
        table.client.ask(DispenseStack(1, 3))
    assert refused.value.stack == 0


def test_a_stack_too_many_is_stale(table: Table) -> None:
    table.open()
    table.open_round(2)
    table.stack(1)
    table.stack(2)
    with pytest.raises(Stale):
        table.client.ask(DispenseStack(1, 3))


def test_a_refused_command_is_known_as_not_executed(table: Table) -> None:
    table.open()
    table.open_round()
    with pytest.raises(Stale):
        table.client.ask(DispenseStack(1, 2))
    assert table.client.journal.commands()[-1].outcome == "not_executed"


def test_every_command_is_on_record_with_its_end(table: Table) -> None:
    table.open()
    table.open_round()
    table.stack(1)
    commands = table.client.journal.commands()
    assert commands[-1].message == DispenseStack.ID
    assert {each.outcome for each in commands} == {"done"}


def test_a_command_can_be_resolved_by_its_number(table: Table) -> None:
    table.open()
    table.open_round()
    number, future = table.client.submit(DispenseStack(1, 1))
    future.result(10)
    assert table.client.resolve(number).outcome == "done"


@pytest.mark.needs("hands")
def test_a_stack_asked_for_over_a_pulled_cable_comes_once(table: Table, target: Target) -> None:
    table.open()
    table.open_round()
    target.pull()
    _, future = table.client.submit(DispenseStack(1, 1), 30)
    target.plug()
    future.result(35)
    table.wait_for(StackDispensed, 0)
    assert stacks(table.client) == [(1, 1)]
    assert target.dispensed() in (None, [(1, 1)])


@pytest.mark.needs("hands")
def test_cables_pulled_again_and_again_cost_no_stack(table: Table, target: Target) -> None:
    table.open()
    table.open_round(6)
    for stack in range(1, 7):
        _, future = table.client.submit(DispenseStack(1, stack), 30)
        target.pull()
        target.plug()
        future.result(35)
        table.wait_for(StackDispensed, 0, stack=stack)
        assert eventually(lambda: table.client.status(10).shoe == ShoeState.ROUND_OPEN)
    assert stacks(table.client) == [(1, each) for each in range(1, 7)]
    assert target.dispensed() in (None, stacks(table.client))


@pytest.mark.needs("hands")
def test_a_command_given_up_is_resolved_by_asking(table: Table, target: Target) -> None:
    table.open()
    table.open_round()
    target.pull()
    with pytest.raises(DeviceTimeout) as lost:
        table.client.ask(DispenseStack(1, 1), timeout=0.2)
    assert isinstance(lost.value, TimeoutError)
    assert lost.value.number is not None
    target.plug()
    table.client.wait_up(30)
    resolved = table.client.resolve(lost.value.number, 30)
    told = stacks(table.client)
    if resolved.outcome == "done":
        table.wait_for(StackDispensed, 0)
        told = stacks(table.client)
    assert told == ([(1, 1)] if resolved.outcome == "done" else [])


@pytest.mark.needs("hands")
def test_a_command_in_flight_at_a_reboot_is_never_guessed(table: Table, target: Target) -> None:
    table.open()
    table.open_round()
    _, future = table.client.submit(DispenseStack(1, 1), 30)
    target.reboot()
    table.client.status(timeout=30)
    error = future.exception(35)
    assert error is None or isinstance(error, SabotError)
    outcome = table.client.journal.commands()[-1].outcome
    assert outcome in ("done", "not_executed", "unknown")
    assert (error is None) == (outcome == "done")


def test_a_command_an_earlier_run_left_open_is_resolved(
    target: Target, client: Client, tmp_path: Path
) -> None:
    table = Table(client)
    table.open()
    table.open_round()
    client.ask(DispenseStack(1, 1))
    table.wait_for(StackDispensed, 0)
    client.close()
    with Journal(tmp_path / "journal.db") as journal:  # as if the program had died before the answer came
        last = journal.commands()[-1].number
        journal._do("UPDATE commands SET outcome = NULL WHERE number = ?", (last,))
    again = target.connect(journal=tmp_path / "journal.db")
    assert [(each.request, each.outcome) for each in again.resolved] == [("dispense_stack", "done")]
    assert stacks(again) == [(1, 1)]


def test_a_command_that_never_arrived_is_resolved_as_not_executed(
    target: Target, client: Client, tmp_path: Path
) -> None:
    client.ask(Locate(1))
    Table(client).wait_for(Located, 0)
    peer = client.peer
    assert peer is not None
    client.close()
    with Journal(tmp_path / "journal.db") as journal:  # on disk, but the program died before it was sent
        number = journal.numbers().take()
        given = CommandRecord(number, OpenRound.ID, OpenRound(1, 1).pack(), peer.memory_id, 0, None)
        journal.write(JournalBatch(commands=[given], reserve=number + 1), 0)
    again = target.connect(journal=tmp_path / "journal.db")
    assert [(each.request, each.outcome) for each in again.resolved] == [("open_round", "not_executed")]
    assert again.status().round_id == 0
