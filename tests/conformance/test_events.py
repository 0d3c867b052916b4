"""Events: numbered, once, in order, across everything that happens to cables, power and programs."""

import itertools
from pathlib import Path

import pytest
from tests.conformance.table import Table
from tests.conformance.targets import Target, eventually

from sabot_driver import Client, LostEvents, ReceivedEvent
from sabot_protocol.host.messages import (
    Booted,
    ClockQuality,
    GapReason,
    HostStarted,
    Locate,
    Located,
    OwnerChanged,
)


def told(client: Client) -> list[ReceivedEvent | LostEvents]:
    """Everything in the journal."""
    return list(client.events(0, timeout=0))


def located(client: Client) -> list[int]:
    """The seconds of every ``located`` event, in order."""
    return [
        each.message.seconds
        for each in told(client)
        if isinstance(each, ReceivedEvent) and isinstance(each.message, Located)
    ]


def in_step(events: list[ReceivedEvent | LostEvents]) -> bool:
    """Whether the numbers of each boot have no hole and nothing twice, gaps apart."""
    for before, after in itertools.pairwise(events):
        if isinstance(before, ReceivedEvent) and isinstance(after, ReceivedEvent):
            follows = after.boot_id == before.boot_id and after.n == before.n + 1
            if not follows and not (after.boot_id > before.boot_id and after.n == 1):
                return False
    return True


def test_the_first_event_of_a_boot_is_that_it_booted(client: Client, table: Table) -> None:
    table.wait_for(Booted, 0)
    first = next(iter(client.events(0)))
    assert isinstance(first, ReceivedEvent)
    assert isinstance(first.message, Booted)
    assert first.n == 1


def test_events_are_numbered_without_a_hole(client: Client, table: Table) -> None:
    for seconds in range(1, 21):
        client.ask(Locate(seconds))
    table.wait_for(Located, 0, seconds=20)
    assert located(client) == list(range(1, 21))
    assert in_step(told(client))


def test_an_event_carries_ticks_utc_and_quality(client: Client, table: Table) -> None:
    client.ask(Locate(1))
    table.wait_for(Located, 0)
    event = told(client)[-1]
    assert isinstance(event, ReceivedEvent)
    assert event.quality is ClockQuality.SET
    assert event.at is not None
    assert abs((event.at - event.received).total_seconds()) < 60
    assert event.ticks_ms >= 0


def test_a_host_that_starts_is_told(client: Client, table: Table) -> None:
    assert table.wait_for(HostStarted, 0).host_id == client.journal.host_id


def test_the_owner_is_told(client: Client, table: Table) -> None:
    assert table.wait_for(OwnerChanged, 0, owner=client.journal.host_id)


def test_more_events_than_the_window_arrive(client: Client, table: Table) -> None:
    futures = [client.submit(Locate(each), 30)[1] for each in range(1, 51)]
    for future in futures:
        future.result(30)
    table.wait_for(Located, 0, seconds=50)
    assert located(client) == list(range(1, 51))


def test_a_callback_hears_what_the_iterator_hears(client: Client, table: Table) -> None:
    heard: list[int] = []
    client.on_event(lambda event: heard.append(event.id), after=0)
    client.ask(Locate(7))
    table.wait_for(Located, 0, seconds=7)
    assert eventually(lambda: len(heard) == len(told(client)))
    assert heard == [each.id for each in told(client)]


def test_two_readers_hear_everything(client: Client, table: Table) -> None:
    client.ask(Locate(9))
    table.wait_for(Located, 0, seconds=9)
    assert [each.id for each in told(client)] == [each.id for each in told(client)]


def test_a_named_reader_goes_on_where_it_was(client: Client, target: Target, tmp_path: Path) -> None:
    client.ask(Locate(1))
    Table(client).wait_for(Located, 0)
    seen = [each.id for each in itertools.islice(client.events(reader="till", timeout=60), 3)]
    client.close()
    again = target.connect(journal=tmp_path / "journal.db")
    first = next(iter(again.events(reader="till", timeout=60)))
    assert first.id == seen[-1], "the last one was handed out but the next was never asked for"


def test_a_program_that_restarts_misses_nothing_and_hears_nothing_twice(
    client: Client, target: Target, tmp_path: Path
) -> None:
    client.ask(Locate(1))
    Table(client).wait_for(Located, 0, seconds=1)
    client.close()
    again = target.connect(journal=tmp_path / "journal.db")
    again.ask(Locate(2))
    Table(again).wait_for(Located, 0, seconds=2)
    assert located(again) == [1, 2]
    assert in_step(told(again))


def test_a_replacement_computer_gets_what_the_device_still_has(client: Client, target: Target) -> None:
    client.ask(Locate(3))
    Table(client).wait_for(Located, 0, seconds=3)
    client.close()
    other = target.connect()
    Table(other).wait_for(Located, 0, seconds=3)
    assert in_step(told(other))


def test_what_was_overwritten_is_a_gap_with_its_size(client: Client, target: Target, tmp_path: Path) -> None:
    client.ask(Locate(1))
    Table(client).wait_for(Located, 0, seconds=1)
    client.close()
    other = target.connect()
    for _ in range(150):
        other.ask(Locate(2))
    other.close()
    again = target.connect(journal=tmp_path / "journal.db")
    again.ask(Locate(3))
    Table(again).wait_for(Located, 0, seconds=3)
    gaps = [each for each in told(again) if isinstance(each, LostEvents)]
    assert [each.reason for each in gaps] == [GapReason.OVERFLOW]
    events = [each for each in told(again) if isinstance(each, ReceivedEvent)]
    missing = events[-1].n - len(events)
    assert gaps[0].size == missing > 0


@pytest.mark.needs("hands")
def test_events_go_on_after_the_cable_was_pulled(client: Client, target: Target, table: Table) -> None:
    client.ask(Locate(1))
    table.wait_for(Located, 0, seconds=1)
    target.pull()
    target.plug()
    client.ask(Locate(2), timeout=30)
    table.wait_for(Located, 0, seconds=2)
    assert located(client) == [1, 2]
    assert in_step(told(client))


@pytest.mark.needs("hands")
def test_a_reboot_is_noticed_and_told(client: Client, target: Target, table: Table) -> None:
    notices: list[str] = []
    client.listen(lambda notice: notices.append(notice.kind))
    boot = client.peer
    assert boot is not None
    here = table.now
    target.reboot()
    client.status(timeout=30)
    table.wait_for(Booted, here)
    assert "rebooted" in notices
    assert client.peer is not None
    assert client.peer.boot_id == boot.boot_id + 1


@pytest.mark.needs("hands")
def test_events_of_two_boots_are_in_step(client: Client, target: Target, table: Table) -> None:
    client.ask(Locate(1))
    table.wait_for(Located, 0, seconds=1)
    target.reboot()
    client.status(timeout=30)
    client.ask(Locate(2))
    table.wait_for(Located, 0, seconds=2)
    assert located(client) == [1, 2]
    assert in_step(told(client))


@pytest.mark.needs("hands", "cables")
def test_an_observer_hears_the_same_events(client: Client, target: Target, table: Table) -> None:
    observer = target.connect(owner=False, transport=target.second_way())
    client.ask(Locate(5))
    table.wait_for(Located, 0, seconds=5)
    Table(observer).wait_for(Located, 0, seconds=5)
    mine = [(each.boot_id, each.n) for each in told(client) if isinstance(each, ReceivedEvent)]
    theirs = [(each.boot_id, each.n) for each in told(observer) if isinstance(each, ReceivedEvent)]
    assert mine == theirs
