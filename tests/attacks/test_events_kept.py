"""An attached owner loses no event because of what it asked for: below the reserve, commands are refused.

On the old code an owner whose acknowledgements were lost went on giving commands, and 6 to 44 of 300 events
were overwritten before it had them.
"""

import pytest
from tests.attacks.owners import SERIAL, Owner

from sabot_protocol import ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.event_store import RESERVE
from sabot_protocol.session import slot_key
from sabot_protocol.wire_constants import FIRST_PERSON

CAPACITY = 64
FLOOR_SLOT = FIRST_PERSON


def fill(owner: Owner, free: int) -> None:
    """Events happen until so few places are left; the owner has acknowledged none of them."""
    while owner.device.events.free() > free:
        owner.device.emit("located", 1)


def test_commands_are_refused_before_events_are_lost() -> None:
    """The command was executed, and its events took the places of others."""
    owner = Owner()
    fill(owner, RESERVE - 1)
    number = owner.request("locate", 5)
    owner.settle()
    assert owner.answered(number) is None  # the host keeps it and asks again
    assert owner.done == []
    assert owner.device.events.lost == 0


def test_what_was_refused_is_not_stored_and_is_executed_once_when_there_is_room() -> None:
    """There was no such refusal. One that is stored could never be tried again under its number."""
    owner = Owner()
    fill(owner, RESERVE - 1)
    number = owner.request("locate", 5)
    owner.settle()
    owner.acknowledge()
    owner.wait(200)
    assert owner.answered(number) == "ok"
    assert owner.done == [("locate", (5,))]
    assert owner.device.ledger.newest(owner.host_id) == number


@pytest.mark.parametrize(
    ("name", "values"),
    [("void_round", (1, 1)), ("stop", ()), ("clear_fault", (1,))],
)
def test_what_ends_something_is_executed_all_the_same(name: str, values: tuple[int, ...]) -> None:
    """A full store must not keep anybody from stopping the machine."""
    owner = Owner()
    fill(owner, 1)
    number = owner.request(name, *values)
    owner.settle()
    assert owner.answered(number) == "ok"
    assert owner.done == [(name, values)]


def test_a_query_that_causes_an_event_is_refused_and_others_are_answered() -> None:
    """Faces were told whether or not their event found a place."""
    owner = Owner()
    fill(owner, RESERVE - 1)
    faces, status = owner.request("faces", 1, 1), owner.request("status")
    owner.settle()
    assert owner.answered(faces) is None
    assert owner.answered(status) == "ok"
    assert owner.done == []


def test_a_host_that_comes_back_has_no_retry_left_over() -> None:
    """A session that ended within 50 ms of a busy answer left its time to retry behind, in the past.

    A caller that sleeps until ``deadline`` did not sleep any more: the driver's keeper took a whole core.
    """
    owner = Owner()
    fill(owner, RESERVE - 1)
    number = owner.request("locate", 5)
    owner.settle()
    owner.acknowledge()
    owner.settle()
    owner.reconnect()
    assert owner.answered(number) == "ok"
    owner.wait(100)
    due = owner.host.deadline()
    assert due is not None
    assert ticks.diff(due, owner.now) > 0


def test_what_was_too_much_in_one_session_is_not_in_the_next() -> None:
    """A command that was given up with its session would keep the first one of the next session waiting."""
    owner = Owner()
    fill(owner, RESERVE - 1)
    number = owner.request("locate", 1)
    owner.settle()
    owner.host.abandon(number)
    owner.acknowledge()
    owner.settle()
    owner.reconnect()
    later = owner.request("locate", 2)
    owner.settle()
    assert owner.answered(later) == "ok"


def test_an_authority_does_not_outlive_the_refusal_for_want_of_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent again without a new proof, the command is nobody's: what was proved before has ended."""
    owner = Owner()
    person = b"the floor's key of thirty-two by"
    key = slot_key(person, SERIAL, FLOOR_SLOT)
    owner.device.keys.set(FLOOR_SLOT, key, enum_number("Role", "floor"), 7)
    fill(owner, RESERVE - 1)
    owner.settle()
    number = owner.request("remove_deck", 1, 1, by=(FLOOR_SLOT, person))
    owner.settle()
    assert owner.answered(number) is None
    monkeypatch.setattr(owner.host, "_elevate", lambda *given: None)
    owner.acknowledge()
    owner.wait(300)
    assert owner.answered(number) == "wrong_role"
    assert owner.done == []


def test_an_owner_that_comes_back_acknowledges_again_and_is_not_kept_waiting() -> None:
    """An acknowledgement that was lost with its session must not block the table for ever."""
    owner = Owner()
    fill(owner, RESERVE - 1)
    owner.settle()
    owner.acknowledge()
    owner.host.poll(owner.now)  # lost
    owner.reconnect()
    number = owner.request("locate", 5)
    owner.settle()
    assert owner.answered(number) == "ok"


def test_a_gap_is_exact_if_the_reserve_runs_out_too() -> None:
    """Nothing was wrong with this: it must stay so."""
    owner = Owner(attached=False)
    for _ in range(CAPACITY + 30):
        owner.device.emit("located", 1)
    owner.reconnect()
    gaps, events = owner.gaps(), owner.events()
    assert [size for size, _, _ in gaps] == [owner.device.events.lost]
    assert (gaps[0][0] or 0) + len(events) == owner.device.events.last
    assert events == list(range(gaps[0][2], owner.device.events.last + 1))


def test_commands_on_their_way_behind_one_that_must_wait_wait_with_it() -> None:
    """Executed before it, they made it a command that never can be: one of many at once was lost."""
    owner = Owner()
    fill(owner, RESERVE - 1)
    owner.settle()
    numbers, sent = [], b""
    for seconds in (1, 2, 3):
        if seconds == 3:
            owner.acknowledge()  # comes between the second and the third
            sent += owner.host.poll(owner.now)
        numbers.append(owner.request("locate", seconds))
        sent += owner.host.poll(owner.now)
    owner.port.receive(sent, owner.now)
    assert owner.done == []
    numbers.append(owner.request("locate", 4))
    owner.wait(300)
    assert [owner.answered(number) for number in numbers] == ["ok"] * 4
    assert [values for _, values in owner.done] == [(1,), (2,), (3,), (4,)]


def test_a_command_that_is_given_up_keeps_no_other_waiting() -> None:
    """What waits for a number that never comes again would wait for ever."""
    owner = Owner()
    fill(owner, RESERVE - 1)
    number = owner.request("locate", 1)
    owner.settle()
    owner.host.abandon(number)
    owner.acknowledge()
    owner.wait(100)
    later = owner.request("locate", 2)
    owner.wait(300)
    assert owner.answered(later) == "ok"
    assert owner.done == [("locate", (2,))]


def test_what_a_person_authorised_is_authorised_again_when_it_waited() -> None:
    """The authority was used up by the refusal, and its number could not be authorised a second time."""
    owner = Owner()
    person = b"the floor's key of thirty-two by"
    key = slot_key(person, SERIAL, FLOOR_SLOT)
    owner.device.keys.set(FLOOR_SLOT, key, enum_number("Role", "floor"), 7)
    fill(owner, RESERVE - 1)
    owner.settle()
    numbers = [owner.request("remove_deck", deck_id, 1, by=(FLOOR_SLOT, person)) for deck_id in (1, 2)]
    owner.settle()
    assert owner.done == []
    owner.acknowledge()
    owner.wait(400)
    assert [owner.answered(number) for number in numbers] == ["ok", "ok"]
    assert owner.done == [("remove_deck", (1, 1)), ("remove_deck", (2, 1))]
