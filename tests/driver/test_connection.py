"""The driver's connection without port, threads and disk: each of them is the test."""

import struct

import pytest
from pytest_mock import MockerFixture
from tests.driver.connection_ends import Ends

from sabot_driver.connection import FIRST_PAUSE_MS, LONGEST_PAUSE_MS
from sabot_driver.errors import (
    DeviceFaulted,
    DeviceTimeout,
    JournalBusy,
    JournalFull,
    LinkLost,
    NoAnswer,
    NotSabot,
)
from sabot_driver.journal import JournalBatch
from sabot_driver.link_state import LinkState
from sabot_driver.received_events import ReceivedEvent, parse_entry
from sabot_protocol.host.messages import (
    CallFloor,
    DeviceFaultDetail,
    Fault,
    FaultRaised,
    Locate,
    Located,
    Place,
)
from sabot_protocol.notifications import EventReceived, RequestAnswered

YEAR_2026 = 1_767_225_600


def test_a_clock_that_was_on_its_way_when_the_session_ended_is_told_anew() -> None:
    """The device would go on with the time of the session before."""
    ends = Ends()
    ends.connect()
    batch = ends.connection.write_ahead.take_batch()
    assert batch is not None
    ends.connection.batch_written(batch, ends.now)
    assert ends.connection.poll(ends.now)  # it is sent, and lost
    ends.lose_cable()
    ends.utc_s += 3600
    ends.connect()
    ends.write()
    assert ends.device.utc()[0] == ends.utc_s


def test_a_clock_that_the_device_refuses_is_not_told_again_and_again() -> None:
    """Each write to the disk would cost a number and a command that is refused."""
    ends = Ends()
    ends.fail_memory()
    ends.connect()
    ends.write()
    assert not ends.device.utc()[2]
    given = ends.connection.protocol.next_number
    for _ in range(3):
        ends.device.emit("located", 1)
        ends.settle()
        ends.write()
    assert ends.connection.protocol.next_number == given


def test_events_of_a_batch_that_failed_are_written_before_those_that_came_meanwhile() -> None:
    ends = Ends()
    ends.connect()
    ends.write()
    ends.device.emit("located", 1)
    ends.settle()
    batch = ends.connection.write_ahead.take_batch()
    assert batch is not None
    ends.device.emit("located", 2)
    ends.settle()
    ends.connection.batch_failed(batch, JournalFull("full"))
    ends.write()
    assert [each.n for each in ends.journal.entries()] == list(range(1, ends.device.events.last + 1))


@pytest.mark.parametrize("utc_s", [0, YEAR_2026 - 1, 1 << 32], ids=["1970", "2025", "2106"])
def test_a_wrong_clock_of_the_computer_is_told_and_a_right_one_is_set_in_the_next_session(utc_s: int) -> None:
    """A clock before 2026 or after 2106 does not fit the message: it ended the driver."""
    ends = Ends()
    ends.utc_s = utc_s
    ends.connect()
    ends.write()
    assert ends.connection.link is LinkState.UP
    (told,) = [each for each in ends.connection.take_notices() if each.kind == "clock_not_set"]
    assert "this computer's is wrong" in told.text
    assert told.error is not None
    assert told.error.advice == "Set this computer's date and time."
    assert not ends.device.utc()[2]
    _, asked = ends.ask(CallFloor(1), 5000)
    ends.write()
    assert ends.done == [("call_floor", (1,))]
    assert asked in [end.future for end in ends.connection.completions if end.error is None]
    ends.lose_cable()
    ends.now += 10_000
    ends.utc_s = YEAR_2026
    ends.connect()
    ends.write()
    assert ends.device.utc()[0] == YEAR_2026
    assert "clock_not_set" not in [each.kind for each in ends.connection.take_notices()]


def test_an_event_with_a_value_that_nobody_knows_is_acknowledged_and_kept(
    ends: Ends, mocker: MockerFixture
) -> None:
    """A newer device has a fault that this driver does not know; what follows it comes too."""
    told = mocker.spy(ends.connection.protocol, "acknowledge")
    known = FaultRaised(Fault.CARD_STUCK, Place.EXIT, 3, "look").pack()
    for unknown in (b"\xfa" + known[1:], known[:1] + b"\xfa" + known[2:]):
        head = struct.pack("<IIIH", ends.device.boot_id, ends.now, 0, 0)
        ends.device.events.add(FaultRaised.ID, 0, head + unknown)
        ends.device.emit("located", 1)
        ends.settle()
        ends.write()
        strange, after = [parse_entry(each) for each in ends.journal.entries()][-2:]
        assert isinstance(strange, ReceivedEvent)
        assert (strange.message, strange.raw) == (None, (FaultRaised.ID, unknown))
        assert isinstance(after, ReceivedEvent)
        assert after.message == Located(1)
    assert ends.connection.link is LinkState.UP
    assert told.call_args.args == (ends.device.boot_id, ends.device.events.last)


def test_a_command_that_is_given_up_keeps_none_behind_it(ends: Ends) -> None:
    """The second has no record to wait for, and was held only because of the first."""
    first, _ = ends.ask(CallFloor(1), 100)
    _, second = ends.ask(Locate(1), 5000)
    ends.connection.write_ahead.take_batch()  # which the disk does not end
    ends.wait(50)
    assert ends.done == []
    ends.wait(100)
    ended = [end.error.__class__ for end in ends.connection.completions if end.future is not second]
    assert ended == [JournalBusy]
    assert ends.done == [("locate", (1,))]
    assert first not in ends.journal.ended or ends.journal.ended[first] == "not_executed"


@pytest.mark.parametrize("sent", [False, True])
def test_a_time_out_says_whether_the_command_can_have_been_sent(ends: Ends, sent: bool) -> None:
    """'The command may have been executed' was said of one that never left the computer."""
    if not sent:
        ends.lose_cable()
    number, _ = ends.connection.request(ends.now, CallFloor(1), 500)
    batch = ends.connection.write_ahead.take_batch()
    assert batch is not None
    ends.journal.write(batch, 0)
    ends.connection.batch_written(batch, ends.now)
    if sent:
        assert ends.connection.poll(ends.now)  # it is sent, and lost
        ends.lose_cable()
    ends.wait(600)
    (end,) = ends.connection.completions
    assert isinstance(end.error, DeviceTimeout)
    assert (end.error.number, end.error.may_be_sent) == (number, sent)
    assert ("never sent" in end.error.advice) is not sent
    assert ends.done == []
    ends.write()
    kept = ends.journal.command(number)
    assert kept is not None
    assert kept.outcome == (None if sent else "not_executed")


def test_an_interrupted_end_of_a_held_command_does_not_stop_a_full_disk(ends: Ends) -> None:
    """Ctrl-C came when the time of a held command was up. The next failure of the disk was a KeyError.

    The journal writer began again and failed again, and commands that waited behind it were never sent.
    """
    number, future = ends.ask(CallFloor(1), 100)
    batch = ends.connection.write_ahead.take_batch()
    assert batch is not None
    ends.now += 200
    ends.connection.protocol.poll(ends.now)  # its time is up, and who polled is interrupted here
    ends.connection.recover(ends.now)
    assert [(end.future, type(end.error)) for end in ends.connection.completions] == [(future, JournalBusy)]
    assert ends.journal.ended[number] == "not_executed"
    _, later = ends.ask(CallFloor(0), 5000)
    ends.connection.batch_failed(batch, JournalFull("full"))
    ends.now += 1000
    ends.connect()
    ends.settle()
    assert ends.done == [("call_floor", (0,))]
    assert {future, later} <= {end.future for end in ends.connection.completions}


def test_events_of_a_lost_memory_acknowledge_none_of_the_new_one(ends: Ends, mocker: MockerFixture) -> None:
    """The disk was slow, and the device came back without its memory, in boot 1 again, meanwhile."""
    told = mocker.spy(ends.connection.protocol, "acknowledge")
    event = EventReceived(1, 2, 0, 0, 0, 0, 1, b"")
    ends.connection.batch_written(JournalBatch([(b"old!", event)]), ends.now)
    told.assert_not_called()
    ends.connection.batch_written(JournalBatch([(ends.device.memory_id, event)]), ends.now)
    told.assert_called_once_with(1, 2)


def test_a_command_that_is_held_when_the_client_closes_was_not_executed(ends: Ends) -> None:
    """Its record may be on its way to the disk, and must not ask the next run what became of it."""
    number, _ = ends.ask(CallFloor(1), 5000)
    ends.connection.close(ends.now)
    assert ends.journal.ended == {number: "not_executed"}


def test_a_command_without_a_number_batch_written_fails_at_once_when_the_disk_does() -> None:
    """Its number cannot be sent, and waiting for it would take the whole time-out."""
    ends = Ends()
    ends.connect()
    _, future = ends.ask(CallFloor(1), 60_000)
    batch = ends.connection.write_ahead.take_batch()
    assert batch is not None
    ends.connection.batch_failed(batch, JournalFull("full"))
    assert JournalFull in [type(end.error) for end in ends.connection.completions if end.future is future]


def test_a_silent_device_and_one_that_speaks_another_language_are_told_apart() -> None:
    for data, problem in ((b"", NoAnswer), (b"$GPGGA,123519,4807.038,N\r\n\0", NotSabot)):
        ends = Ends()
        ends.connection.port_opening()
        ends.connection.port_opened(ends.now)
        while ends.connection.link is LinkState.PROVING:
            ends.connection.receive(data, ends.now)
            ends.connection.poll(ends.now)
            ends.now += 100
        assert type(ends.connection.problem) is problem


def test_after_an_interruption_the_device_repeats_no_event_that_waits_for_the_disk(ends: Ends) -> None:
    """The journal takes each event once, so a repeated one would end the session."""
    ends.write()
    before = ends.journal.last_id()
    ends.device.emit("located", 1)
    ends.settle()
    ends.connection.recover(ends.now)
    ends.port.close()
    ends.connect()
    ends.device.emit("located", 2)
    ends.settle()
    ends.write()
    rows = list(ends.journal.after(before))
    assert [row.body for row in rows if row.message == Located.ID] == [b"\1", b"\2"]
    assert [row.n for row in rows] == list(range(rows[0].n, rows[0].n + len(rows)))


def test_an_interruption_at_the_very_first_event_loses_no_event(mocker: MockerFixture) -> None:
    """Nothing is on disk and nothing waits for it: the device must tell everything from the beginning."""
    ends = Ends()
    broken = mocker.patch.object(ends.connection.write_ahead, "add_event", side_effect=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        ends.connect()
    mocker.stop(broken)
    ends.connection.recover(ends.now)
    ends.port.close()
    ends.connect()
    for _ in range(2):  # the clock that is set then tells an event too
        ends.write()
    assert [each.n for each in ends.journal.entries()] == list(range(1, ends.device.events.last + 1))


def test_pauses_grow_up_to_a_bound_and_begin_anew_after_a_session() -> None:
    """A cable that was out for a night is found again within seconds."""
    ends = Ends()
    for _ in range(20):
        ends.connection.port_opening()
        ends.connection.port_lost(ends.now, LinkLost("pulled"))
    assert not ends.connection.wants_port(ends.now + LONGEST_PAUSE_MS // 2 - 1)
    assert ends.connection.wants_port(ends.now + LONGEST_PAUSE_MS)
    ends.connect()
    ends.lose_cable()
    assert ends.connection.wants_port(ends.now + FIRST_PAUSE_MS)


def test_a_fault_of_the_boot_before_says_nothing_of_where_one_is_now(ends: Ends) -> None:
    """The device names only the fault in a refusal; place and steps come from the event of this boot."""
    refused = DeviceFaultDetail(Fault.CARD_STUCK)
    places = []
    for reboots in (False, True):
        if reboots:
            ends.reboot()
        else:
            ends.device.emit("fault_raised", Fault.CARD_STUCK, Place.EXIT, 3, "look at the exit")
            ends.settle()
        number, _ = ends.connection.request(ends.now, CallFloor(1), 5000)
        ends.connection._answered(RequestAnswered(number, CallFloor.ID, refused.CODE, refused.pack()))
        error = ends.connection.completions.pop().error
        assert isinstance(error, DeviceFaulted)
        places.append((error.place, error.steps))
    assert places == [(Place.EXIT, "look at the exit"), (None, "")]
