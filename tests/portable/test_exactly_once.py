"""Commands exactly once, whatever is lost; events exactly once, or named in a gap."""

import struct

from pair import BY_FLOOR, Pair
from world import HOST_ID, KEY, CutMemory, PowerCut

from sabot_protocol import ledger, ticks
from sabot_protocol.codec import CODEC
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.device_port import DevicePort
from sabot_protocol.errors import MemoryDamaged, MemoryFailed, Refusal, RequestNotAllowed
from sabot_protocol.event_chain import EventChain
from sabot_protocol.event_store import EventStore
from sabot_protocol.host_protocol import NUMBER_USED, OBSERVER, HostProtocol
from sabot_protocol.ledger import Ledger
from sabot_protocol.notifications import (
    EventGap,
    EventReceived,
    RequestAnswered,
    RequestFailed,
    SessionDown,
    SessionUp,
)
from sabot_protocol.record_store import COMMAND_SIZE, COMMAND_SLOTS, RECORDS, RecordStore
from sabot_protocol.wire_constants import GAP

DISPENSE = CODEC.named("dispense_stack")


def dispense(pair, round_id=5, stack=1):
    return pair.host.request(DISPENSE.id, DISPENSE.pack((round_id, stack)), pair.now)


def lose_answer(pair):
    """Let the device hear and execute what the host says, and lose its answer with the cable."""
    pair.port.receive(pair.host.poll(pair.now), pair.now)
    pair.port.poll(pair.now)


def test_a_lost_answer_never_dispenses_a_second_stack():
    pair = Pair().connect()
    number = dispense(pair)
    lose_answer(pair)
    assert len(pair.shoe.done) == 1
    pair.connect()
    assert pair.answer(number)[0] == "ok"
    assert len(pair.shoe.done) == 1
    assert pair.port.diagnostics.repeats == 1


def test_a_refusal_is_an_answer_and_is_repeated_too():
    pair = Pair().connect()
    pair.shoe.refuse = Refusal("stale", (4, 2))
    number = dispense(pair)
    lose_answer(pair)
    pair.shoe.refuse = None
    pair.connect()
    assert pair.answer(number) == ("stale", (4, 2))
    assert pair.shoe.done == []


def test_bad_values_are_refused_before_the_core_sees_them():
    pair = Pair().connect()
    assert pair.ask_packed(DISPENSE.id, bytes(5)) == ("bad_field", (0,))
    assert pair.ask_packed(DISPENSE.id, b"\x01\x00\x00\x00\x12") == ("bad_field", (1,))
    assert pair.ask_packed(DISPENSE.id, bytes(4)) == ("bad_field", (255,))
    assert pair.shoe.done == []


def test_after_a_reboot_the_ledger_says_executed():
    pair = Pair().connect()
    number = dispense(pair)
    lose_answer(pair)
    pair.boot()
    pair.connect()
    assert pair.answer(number)[0] == "ok"
    assert len(pair.shoe.done) == 1


def test_after_a_reboot_the_ledger_says_not_executed_and_keeps_its_word():
    pair = Pair().connect()
    number = dispense(pair)
    pair.host.poll(pair.now)  # lost
    pair.boot()
    pair.connect()
    assert pair.answer(number) == ("not_executed", ())
    assert pair.shoe.done == []
    assert pair.device.ledger.state_of(HOST_ID, number) == ledger.EXECUTED  # decided: never later


def test_after_a_reboot_the_ledger_says_interrupted():
    pair = Pair().connect()
    number = dispense(pair)
    pair.device.ledger.finish = no_power
    try:
        pair.port.receive(pair.host.poll(pair.now), pair.now)
    except KeyboardInterrupt:
        pass
    pair.boot()
    pair.connect()
    assert pair.answer(number) == ("interrupted", ())
    assert len(pair.shoe.done) == 1


def no_power(*_):
    raise KeyboardInterrupt


def test_a_command_that_was_never_sent_is_not_executed_after_a_reboot():
    pair = Pair(window=1).connect()
    first = dispense(pair, 5, 1)
    second = dispense(pair, 5, 2)
    lose_answer(pair)
    pair.boot()
    pair.connect()
    assert pair.answer(first)[0] == "ok"
    assert [(each.request_id, each.reason) for each in pair.happened(RequestFailed)] == [
        (second, "device_rebooted")
    ]
    assert len(pair.shoe.done) == 1


def test_a_device_that_lost_its_memory_says_so_and_nobody_guesses():
    pair = Pair().connect()
    number = dispense(pair)
    lose_answer(pair)
    keys = pair.memory.load("keys")
    pair.memory = RecordStore()
    pair.memory.save("keys", keys)
    pair.boot()
    pair.connect()
    assert [(each.request_id, each.reason) for each in pair.happened(RequestFailed)] == [
        (number, "forgotten")
    ]
    gaps = pair.happened(EventGap)
    assert [(gap.reason, gap.size) for gap in gaps] == [(3, None)]
    assert len(pair.shoe.done) == 1


def test_damaged_memory_is_new_memory():
    class Damaged(RecordStore):
        damaged = False

        def load(self, name):
            if self.damaged and name == "command.0":
                raise MemoryDamaged(name)
            return super().load(name)

    pair = Pair(memory=Damaged()).connect()
    assert pair.ask("dispense_stack", 5, 1)[0] == "ok"
    before = pair.device.memory_id
    pair.memory.damaged = True
    pair.boot()
    assert pair.device.memory_id != before
    assert pair.device.ledger.newest(HOST_ID) == 0
    pair.memory.damaged = False
    pair.boot()
    assert pair.device.ledger.newest(HOST_ID) == 0


def test_a_cut_while_damaged_memory_was_wiped_leaves_nothing_old():
    pair = Pair().connect()
    assert pair.ask("dispense_stack", 5, 1)[0] == "ok"
    before = pair.device.memory_id
    pair.memory.save("boot", b"")  # as far as the wiping came
    pair.boot()
    assert pair.device.memory_id != before
    assert pair.device.ledger.newest(HOST_ID) == 0


def test_a_cut_while_the_memory_id_is_renewed_leaves_no_old_id_without_its_commands():
    """The commands went first: after a cut the same device said of an executed one that it was not."""
    writes, done = 0, False
    while not done:
        writes += 1
        pair = Pair(memory=CutMemory()).connect()
        assert pair.ask("dispense_stack", 5, 1)[0] == "ok"
        before, newest = pair.device.memory_id, pair.device.ledger.newest(HOST_ID)
        pair.memory.cut_in = writes
        try:
            pair.device.renew_memory_id()
            done = True
        except PowerCut:
            pass
        pair.memory.cut_in = None
        pair.boot()
        if pair.device.memory_id == before:
            assert pair.device.ledger.newest(HOST_ID) == newest
        else:
            assert pair.device.ledger.newest(HOST_ID) == 0
    assert pair.device.memory_id != before
    assert writes > 16


def test_a_new_memory_id_names_each_loss_once():
    """The events of earlier boots were told as lost once more, also to a host that had them."""
    pair = Pair().connect()
    pair.device.emit("located", 1)
    pair.settle()
    pair.boot()
    pair.device.renew_memory_id()  # as a device does at the start after which its records are damaged
    pair.happened(EventGap)
    pair.connect()
    gaps = pair.happened(EventGap)
    assert [(gap.reason, gap.size) for gap in gaps] == [(3, None)]
    events = pair.device.events
    assert events.gap_after(0, 0) is None
    made = events.last
    pair.boot()
    assert pair.device.events.gap_after(0, 0) == (2, made, 0, 0, pair.device.boot_id, 1)


def test_memory_that_cannot_be_written_stops_commands():
    class Full(RecordStore):
        full = False

        def save(self, name, data):
            if self.full:
                raise MemoryFailed(name)
            super().save(name, data)

    pair = Pair(memory=Full()).connect()
    pair.memory.full = True
    assert pair.ask("dispense_stack", 5, 1) == ("memory_failed", ())
    assert pair.shoe.done == []
    assert pair.ask("status")[0] == "ok"
    pair.device.emit("located", 1)
    pair.settle()
    assert pair.happened(EventReceived)[-1].n == pair.device.events.last
    assert pair.device.events.unsaved


def test_a_command_given_up_can_be_resolved_by_its_number():
    pair = Pair().connect()
    number = dispense(pair)
    lose_answer(pair)
    pair.host.abandon(number)
    unsent = 500
    pair.connect()
    pair.host.resolve(number, DISPENSE.id, pair.host.memory_id, pair.now)
    pair.settle()
    assert pair.answer(number)[0] == "ok"
    pair.host.resolve(unsent, DISPENSE.id, pair.host.memory_id, pair.now)
    pair.settle()
    assert pair.answer(unsent) == ("not_executed", ())
    pair.host.resolve(unsent, DISPENSE.id, b"othr", pair.now)
    pair.settle()
    assert [(each.request_id, each.reason) for each in pair.happened(RequestFailed)] == [
        (unsent, "forgotten")
    ]


def test_the_ledger_of_many_hosts():
    memory = RecordStore()
    book = Ledger(memory, {})
    hosts = [b"HOST%04d" % n for n in range(12)]
    for n in range(7):
        book.begin(hosts[n], 10)
        book.finish(hosts[n], 10, 63, 0, b"")
    for number in range(1, 40):
        book.begin(HOST_ID, number)
        book.finish(HOST_ID, number, 63, 0, b"%d" % number)
    for again in (book, reloaded(memory)):
        for n in range(7):  # all gone from the ledger, none forgotten
            assert again.state_of(hosts[n], 10) == ledger.FORGOTTEN
            assert again.state_of(hosts[n], 11) == ledger.NEW
        assert again.knows_host(b"NEWCOMER")
        assert again.state_of(HOST_ID, 23) == ledger.FORGOTTEN
        assert again.state_of(HOST_ID, 24) == ledger.EXECUTED
        assert again.answer(HOST_ID, 39) == (63, 0, b"39")
        assert again.state_of(HOST_ID, 40) == ledger.NEW
    for n in range(7, 12):
        for number in range(10, 30):
            book.begin(hosts[n], number)
            book.finish(hosts[n], number, 63, 0, b"")
    for again in (book, reloaded(memory)):
        assert not again.knows_host(hosts[0])  # forgotten, and known to be
        kept = [host for host in hosts + [HOST_ID] if again.newest(host)]
        assert len(kept) >= 8
        assert again.knows_host(HOST_ID)
        assert not again.knows_host(b"NEWCOMER")


def reloaded(memory):
    records = {}
    for name, size in RECORDS:
        record = memory.load(name)
        if record:
            assert len(record) <= size, name
            records[name] = record
    return Ledger(memory, records)


def test_a_host_the_device_may_have_forgotten_is_not_obeyed_blindly():
    pair = Pair().connect()
    number = dispense(pair)
    lose_answer(pair)
    book = pair.device.ledger
    for n in range(12):
        for other in range(1, 20):
            book.begin(b"HOST%04d" % n, other)
            book.finish(b"HOST%04d" % n, other, 63, 0, b"")
    pair.connect()
    assert [(each.request_id, each.reason) for each in pair.happened(RequestFailed)] == [
        (number, "forgotten")
    ]
    assert len(pair.shoe.done) == 1


def forget_everybody(book):
    for n in range(12):
        for other in range(1, 20):
            book.begin(b"HOST%04d" % n, other)
            book.finish(b"HOST%04d" % n, other, 63, 0, b"")


def test_a_new_host_may_give_commands_though_others_were_forgotten():
    pair = Pair()
    forget_everybody(pair.device.ledger)
    pair.connect()
    assert pair.ask("dispense_stack", 5, 1)[0] == "ok"
    pair.boot()
    pair.connect()
    assert pair.ask("dispense_stack", 5, 2)[0] == "ok"
    assert len(pair.shoe.done) == 2
    assert len(pair.device.ledger._hosts) <= 9


def test_a_forgotten_command_is_not_resolved_as_not_executed():
    pair = Pair().connect()
    memory_id = pair.host.memory_id
    forget_everybody(pair.device.ledger)
    pair.host = HostProtocol(KEY, CommandNumbers(b"LATECOME", 50), pair.rng.bytes, schema_hash=b"schema01")
    pair.port.close()
    pair.connect()
    pair.host._known = True  # a host that asks all the same
    pair.host.resolve(3, DISPENSE.id, memory_id, pair.now)
    pair.settle()
    assert pair.answer(3) == ("forgotten", ())


def test_what_became_of_a_command_is_told_only_to_the_owner():
    pair = Pair().connect()
    number = dispense(pair)
    lose_answer(pair)
    first, pair.host = (
        pair.host,
        HostProtocol(KEY, CommandNumbers(b"OTHER-PC"), pair.rng.bytes, schema_hash=b"schema01"),
    )
    pair.connect()
    other_port, pair.port = pair.port, DevicePort(pair.device)
    pair.host = first
    pair.connect(OBSERVER)
    later = dispense(pair)
    pair.settle()
    assert pair.answer(later) == ("not_owner", (b"OTHER-PC",))
    assert pair.host.is_pending(number)  # it waits: nobody has told, and nobody guesses
    newest = pair.device.ledger.newest(HOST_ID)
    pair.host.resolve(newest + 1, DISPENSE.id, pair.host.memory_id, pair.now)
    pair.settle()
    assert pair.device.ledger.newest(HOST_ID) == newest
    other_port.close()
    pair.connect()
    assert pair.answer(number)[0] == "ok"
    assert len(pair.shoe.done) == 1


def test_a_repeated_command_refused_to_a_host_that_lost_the_device_is_not_taken_for_its_end():
    pair = Pair().connect()
    number = dispense(pair)
    lose_answer(pair)
    first, pair.host = (
        pair.host,
        HostProtocol(KEY, CommandNumbers(b"OTHER-PC"), pair.rng.bytes, schema_hash=b"schema01"),
    )
    pair.connect()
    pair.host = first
    pair.host.connect(pair.now)  # as owner, which it is not when the command comes
    pair.port.receive(pair.host.poll(pair.now), pair.now)
    pair.host.receive(pair.port.poll(pair.now), pair.now)
    pair.port.receive(pair.host.poll(pair.now), pair.now)
    pair.host.receive(pair.port.poll(pair.now), pair.now)
    pair.port.receive(pair.host.poll(pair.now), pair.now)
    pair.host.receive(pair.port.poll(pair.now), pair.now)  # attached
    pair.device.set_owner(None)
    pair.settle()
    assert pair.host.is_pending(number)
    pair.connect()
    assert pair.answer(number)[0] == "ok"


def test_a_command_too_far_ahead_is_refused_and_decides_nothing():
    """One command numbered near 2^32 made every later command of its host an old one, for ever."""
    pair = Pair().connect()
    newest = pair.device.ledger.newest(HOST_ID)
    for number in (0, newest + 4097, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
        for mark in (0, 1):
            pair.host._link.send(1, DISPENSE.id, mark, number, DISPENSE.pack((5, 1)))
            pair.settle()
            assert pair.device.ledger.newest(HOST_ID) == newest
    assert pair.shoe.done == []
    pair.host._numbers.next = newest + 4096
    assert pair.ask("dispense_stack", 5, 1)[0] == "ok"
    assert pair.ask("dispense_stack", 5, 2)[0] == "ok"


def test_a_host_that_is_far_ahead_of_a_device_without_memory_steps_up():
    pair = Pair()
    pair.host._numbers.next = 100_000
    waiting = dispense(pair)
    pair.connect()
    assert pair.host.up
    assert waiting == 100_000
    assert pair.answer(waiting)[0] == "ok"
    assert pair.ask("dispense_stack", 5, 2)[0] == "ok"
    assert [values for _, values in pair.shoe.done] == [(5, 1), (5, 2)]


def test_a_host_steps_up_although_an_older_command_is_not_answered():
    """The older command is known to the device: the device needs no step for it, but for the next one."""
    pair = Pair().connect()
    older = dispense(pair)
    lose_answer(pair)
    pair.host._numbers.next = 10_000
    pair.connect()
    assert pair.answer(older)[0] == "ok"
    assert pair.ask("dispense_stack", 5, 2)[0] == "ok"
    assert [values for _, values in pair.shoe.done] == [(5, 1), (5, 2)]


def test_a_number_before_a_ledger_that_is_just_full_was_never_executed():
    """With as many commands as slots none has left the ledger; with one more the oldest may have."""
    book = Ledger(RecordStore(), {})
    for number in range(2, 2 + COMMAND_SLOTS):
        book.finish(HOST_ID, number, DISPENSE.id, 0, b"")
    assert book.state_of(HOST_ID, 1) == ledger.SKIPPED
    book.finish(HOST_ID, 2 + COMMAND_SLOTS, DISPENSE.id, 0, b"")
    assert book.state_of(HOST_ID, 1) == ledger.FORGOTTEN


def test_a_forgotten_host_goes_on_above_every_number_that_was_forgotten():
    pair = Pair().connect()
    book = pair.device.ledger
    book.begin(b"THE-HIGH", 3000)
    book.finish(b"THE-HIGH", 3000, 63, 0, b"")
    forget_everybody(book)
    assert not book.knows_host(b"THE-HIGH")
    assert book.newest(b"NEWCOMER") == 3000
    for again in (book, reloaded(pair.memory)):
        assert again.newest(b"NEWCOMER") == 3000
        assert again.state_of(b"THE-HIGH", 2999) == ledger.FORGOTTEN
    pair.host = HostProtocol(KEY, CommandNumbers(b"NEWCOMER"), pair.rng.bytes, schema_hash=b"schema01")
    pair.port.close()
    pair.connect()
    assert pair.ask("dispense_stack", 5, 1)[0] == "ok"
    assert book.newest(b"NEWCOMER") == 3001


def test_queries_and_commands_have_numbers_of_their_own():
    pair = Pair().connect()
    before = pair.host.next_number
    for _ in range(5):
        assert pair.ask("status")[0] == "ok"
    assert pair.host.next_number == before
    assert pair.host.request(CODEC.named("status").id, b"", pair.now) > 0x7FFFFFFF


def test_a_ledger_that_cannot_be_written_after_the_deed_never_says_not_executed():
    class Failing(RecordStore):
        after = -1

        def save(self, name, data):
            if name.startswith("command") and self.after >= 0:
                self.after -= 1
                if self.after < 0:
                    raise MemoryFailed(name)
            super().save(name, data)

    pair = Pair(memory=Failing()).connect()
    pair.memory.after = 1  # begun is written, the answer is not
    number = dispense(pair)
    pair.settle()
    assert pair.answer(number) == ("interrupted", ())
    assert len(pair.shoe.done) == 1
    pair.memory.after = -1
    assert pair.ask("dispense_stack", 5, 2)[0] == "ok"
    pair.boot()
    pair.connect()
    pair.host.resolve(number, DISPENSE.id, pair.host.memory_id, pair.now)
    pair.settle()
    assert pair.answer(number) == ("interrupted", ())


def test_an_unsent_command_does_not_run_on_a_device_with_another_memory():
    pair = Pair(window=1).connect()
    first = dispense(pair, 5, 1)
    second = dispense(pair, 5, 2)
    lose_answer(pair)
    keys = pair.memory.load("keys")
    pair.memory = RecordStore()
    pair.memory.save("keys", keys)
    pair.boot()
    assert pair.device.boot_id == 1
    pair.connect()
    ends = sorted([(each.request_id, each.reason) for each in pair.happened(RequestFailed)])
    assert ends == [(first, "forgotten"), (second, "device_rebooted")]
    assert len(pair.shoe.done) == 1


def test_a_command_sent_before_an_update_is_resolved_after_it():
    pair = Pair().connect()
    number = dispense(pair)
    lose_answer(pair)
    pair.schema_hash = b"newer001"
    pair.boot()
    pair.connect()
    assert pair.happened(SessionUp)[-1].limited
    assert pair.answer(number)[0] == "ok"


def test_a_number_passed_over_is_told_from_one_forgotten():
    book = Ledger(RecordStore(), {})
    for number in range(2, 60, 2):
        book.begin(HOST_ID, number)
        book.finish(HOST_ID, number, 63, 0, b"")
    assert book.state_of(HOST_ID, 57) == ledger.SKIPPED
    assert book.state_of(HOST_ID, 58) == ledger.EXECUTED
    assert book.state_of(HOST_ID, 3) == ledger.FORGOTTEN
    assert book.state_of(HOST_ID, 59) == ledger.NEW


def test_every_answer_to_a_command_fits_the_ledger():
    from sabot_protocol import schema

    for _, name, kind, answer, _, _ in schema.MESSAGES:
        if kind == "command":
            assert greatest(CODEC.named(answer)) <= ledger.MAX_ANSWER, name
    for _, name, details in schema.ERRORS:
        assert greatest(CODEC.error_named(name)) <= ledger.MAX_ANSWER, name
        assert details is not None
    assert COMMAND_SIZE * COMMAND_SLOTS < 4096


def greatest(message):
    """The most bytes a message's fields can take."""
    size = 0
    for field in message.fields:
        kind = field[1]
        if kind == "bytes":
            size += field[2]
        elif kind in ("blob", "text"):
            size += 1 + field[3]
        elif kind == "array":
            size += 1 + field[4] * {"u8": 1, "u16": 2, "u32": 4, "i32": 4}[field[2]]
        else:
            size += {"u8": 1, "i8": 1, "enum": 1, "u16": 2, "i16": 2, "flags": 2, "u32": 4, "i32": 4}[kind]
    return size


def test_answers_and_events_fit_the_smallest_frame_a_host_may_advertise():
    from sabot_protocol import schema
    from sabot_protocol.wire_constants import OVERHEAD

    for _, name, kind, _, _, _ in schema.MESSAGES:
        if kind == "answer":
            assert greatest(CODEC.named(name)) <= 192 - OVERHEAD, name
        elif kind == "event":
            assert greatest(CODEC.named(name)) + 14 <= 192 - OVERHEAD, name
        elif kind == "clear":
            assert greatest(CODEC.named(name)) + 2 <= 192, name


def test_a_host_with_an_old_disk_goes_on_above_the_numbers_the_device_knows():
    """A journal restored from a backup: a used number would get an old command's answer, unexecuted."""
    pair = Pair().connect()
    for stack in (1, 2, 3):
        assert pair.ask("dispense_stack", 5, stack)[0] == "ok"
    done = len(pair.shoe.done)
    pair.host = HostProtocol(KEY, CommandNumbers(HOST_ID), pair.rng.bytes, schema_hash=b"schema01")
    pair.heard = []
    early = dispense(pair, 5, 4)  # asked before anybody could know
    pair.connect()
    failed = [each for each in pair.heard if isinstance(each, RequestFailed) and each.request_id == early]
    assert [each.reason for each in failed] == [NUMBER_USED]
    assert len(pair.shoe.done) == done
    assert pair.ask("dispense_stack", 5, 5)[0] == "ok"
    assert pair.shoe.done[done:] == [("dispense_stack", (5, 5))]


def test_numbers_end():
    numbers = CommandNumbers(HOST_ID, 0x7FFFFFFF)
    assert numbers.take() == 0x7FFFFFFF
    try:
        numbers.take()
    except RequestNotAllowed as error:
        assert "new host id" in str(error)
    else:
        raise AssertionError("a number that does not fit")


# -- events -------------------------------------------------------------------------------------


def events(pair):
    return [(each.boot_id, each.n) for each in pair.happened(EventReceived)]


def test_events_are_told_once_across_reconnects():
    pair = Pair().connect()
    pair.device.emit("located", 1)
    pair.port.poll(pair.now)  # lost
    pair.device.emit("located", 2)
    pair.connect()
    pair.device.emit("located", 3)
    pair.settle()
    last = pair.device.events.last
    assert events(pair) == [(1, n) for n in range(1, last + 1)]
    assert pair.happened(EventGap) == []


def test_an_event_is_acknowledged_only_by_its_owner_and_again_after_a_reconnect():
    pair = Pair().connect()
    pair.host.acknowledge(1, 1)
    pair.host.poll(pair.now)  # lost
    assert pair.device.events.acknowledged == 0
    pair.connect()
    assert pair.device.events.acknowledged == 1
    pair.host.acknowledge(1, 99)  # more than there is: ignored
    pair.settle()
    assert pair.device.events.acknowledged == 1
    pair.connect(OBSERVER)
    pair.host.acknowledge(1, 2)
    pair.settle()
    assert pair.device.events.acknowledged == 1


def test_each_request_fails_when_its_own_time_is_up():
    pair = Pair()  # nobody answers
    status = CODEC.named("status").id
    late = pair.host.request(status, b"", pair.now, 300)
    soon = pair.host.request(status, b"", pair.now, 100)
    for number, ms in ((soon, 100), (late, 300)):
        due = pair.host.deadline()
        assert due == ticks.add(pair.now, ms)
        pair.host.poll(ticks.add(due, -1))
        assert pair.host.take_notifications() == []
        pair.host.poll(due)
        (failed,) = pair.host.take_notifications()
        assert (failed.request_id, failed.reason) == (number, "timed_out")
    assert pair.host.deadline() is None


def test_uptime_passes_the_wrap_of_the_ticks_and_never_goes_back():
    pair = Pair().connect()
    device, now = pair.device, pair.now
    device.tick(now)
    began = device.uptime_s()
    for step in range(1, 7):  # more than the ticks can count
        now = ticks.add(now, 1 << 28)
        device.tick(now)
        assert 0 <= device.uptime_s() - began - step * (1 << 28) // 1000 <= 1
    uptime = device.uptime_s()
    device.tick(ticks.add(now, -5000))  # another cable's older time
    assert device.uptime_s() == uptime
    assert device.now() == now


def test_an_acknowledgement_takes_back_no_other():
    pair = Pair().connect()
    events = pair.device.events
    boot, last = events.boot_id, events.last
    assert last > 1
    events.acknowledge(boot, last)
    events.acknowledge(boot, 1)  # an older one
    assert events.unacknowledged() == 0
    pair.device.emit("buttons", 1)
    events.acknowledge(boot + 1, last + 1)  # of another boot
    events.acknowledge(boot, last + 2)  # of an event that has not been
    assert events.unacknowledged() == 1


def test_overflow_is_a_gap_with_its_size():
    pair = Pair(capacity=5).connect()
    before = pair.device.events.last
    pair.host.acknowledge(1, before)
    pair.settle()
    pair.host.disconnect()
    for n in range(12):
        pair.device.emit("located", n + 1)
    pair.connect()
    gap = pair.happened(EventGap)[0]
    assert (gap.reason, gap.after) == (1, (1, before))
    assert gap.size == gap.before[1] - before - 1
    assert gap.size + len(events(pair)) == pair.device.events.last
    assert pair.device.events.lost == gap.size


def test_a_reboot_is_a_gap_with_its_size():
    pair = Pair().connect()
    pair.host.disconnect()
    had = pair.device.events.last
    for n in range(7):
        pair.device.emit("located", n + 1)
    pair.boot()
    pair.boot()
    pair.connect()
    gap = pair.happened(EventGap)[0]
    of_boot_2 = 3  # booted, events_lost, chain_checkpoint
    assert (gap.reason, gap.size, gap.after, gap.before) == (2, 7 + of_boot_2, (1, had), (3, 1))


def test_a_reboot_that_lost_nothing_is_no_gap():
    pair = Pair().connect()
    pair.boot()
    pair.host.disconnect()
    pair.connect()
    assert pair.happened(EventGap) == []
    assert (2, 1) in events(pair)


def test_a_gap_over_more_boots_than_are_on_record_has_no_size():
    pair = Pair().connect()
    for _ in range(9):
        pair.boot()
    pair.host.disconnect()
    pair.connect()
    assert [(gap.reason, gap.size) for gap in pair.happened(EventGap)] == [(2, None)]


def test_replay_from_any_number():
    pair = Pair().connect()
    for n in range(10):
        pair.device.emit("located", n + 1)
    pair.settle()
    last = pair.device.events.last
    for start in range(last + 1):
        reader = HostProtocol(
            KEY, CommandNumbers(HOST_ID, 1000 * (start + 1)), pair.rng.bytes, schema_hash=b"schema01"
        )
        reader.resume_from(pair.device.memory_id, 1, start)
        pair.host = reader
        pair.heard = []
        pair.connect()
        assert events(pair) == [(1, n) for n in range(start + 1, pair.device.events.last + 1)]
        assert not pair.happened(SessionUp)[0].rebooted


def test_a_position_that_has_not_been_is_refused():
    pair = Pair().connect()
    last = pair.device.events.last
    assert pair.ask("attach", 1, 1, last + 1) == ("bad_field", (2,))
    assert pair.ask("attach", 1, 2, 0) == ("bad_field", (1,))
    assert pair.ask("attach", 1, 1, last)[0] == "ok"


def test_a_host_program_started_again_is_noticed_and_a_reconnect_is_not_taken_for_one():
    pair = Pair().connect()
    pair.connect()
    pair.host = HostProtocol(KEY, CommandNumbers(HOST_ID, 1000), pair.rng.bytes, schema_hash=b"schema01")
    pair.connect()
    started = CODEC.named("host_started")
    runs = {}
    for each in pair.happened(EventReceived):
        if each.message == started.id:
            runs[(each.boot_id, each.n)] = started.unpack(each.body)
    assert len(runs) == 2
    assert pair.port.host_run in [run for _, run in runs.values()]


def test_an_event_skipped_without_a_word_ends_the_session():
    pair = Pair().connect()
    pair.host.position = (1, 0)
    pair.device.emit("located", 1)
    pair.settle()
    assert [each.reason for each in pair.happened(SessionDown)] == ["events_out_of_step"]


def test_a_gap_that_leads_back_ends_the_session():
    """A host that went back would put the same events into its journal a second time."""
    for reason in (1, 2):
        pair = Pair().connect()
        boot_id, n = pair.host.position
        assert n > 2
        body = struct.pack("<IIII", boot_id, n, boot_id, n - 1)
        pair.port.link.send(GAP, 0, reason, 1, body)
        pair.settle()
        assert [each.reason for each in pair.happened(SessionDown)] == ["events_out_of_step"]
        assert pair.host.position == (boot_id, n)
        assert pair.happened(EventGap) == []


def test_an_acknowledgement_is_not_meant_for_another_memory():
    """A device that lost its memory begins with boot 1 again: what was on disk are not its events."""
    pair = Pair().connect()
    pair.device.emit("located", 1)
    pair.settle()
    pair.host.acknowledge(*pair.host.position)
    pair.settle()
    assert pair.device.events.unacknowledged() == 0
    keys = pair.memory.load("keys")
    pair.memory = RecordStore()
    pair.memory.save("keys", keys)
    pair.boot()
    for n in range(10):
        pair.device.emit("located", n + 1)
    pair.connect()
    pair.settle()
    assert pair.device.boot_id == 1
    assert pair.device.events.acknowledged == 0


def test_the_clock_carries_its_milliseconds():
    pair = Pair().connect()
    assert pair.ask("set_clock", 1800000000, 900)[0] == "ok"
    told = []
    for step in (99, 1, 150, 849, 1):
        pair.now = ticks.add(pair.now, step)
        pair.device.tick(pair.now)
        told.append(pair.device.utc()[:2])
    first = 1800000000
    assert told == [(first, 999), (first + 1, 0), (first + 1, 150), (first + 1, 999), (first + 2, 0)]


def test_uptime_goes_on_when_the_ticks_wrap():
    pair = Pair()
    now, step = pair.now, 100_000_000
    for _ in range(12):  # the ticks wrap after 1,073,741,824 ms
        now = ticks.add(now, step)
        pair.device.tick(now)
    assert now < pair.now + 12 * step
    assert pair.device.uptime_s() == 12 * step // 1000


def test_events_carry_boot_ticks_utc_and_the_clocks_quality():
    pair = Pair().connect()
    first = pair.happened(EventReceived)[0]
    assert (first.utc_s, first.utc_ms, first.quality) == (0, 0, 0)
    assert pair.ask("set_clock", 1800000000, 250)[0] == "ok"
    pair.wait(2000, 1000)
    pair.device.emit("located", 1)
    pair.settle()
    last = pair.happened(EventReceived)[-1]
    assert (last.utc_s, last.utc_ms, last.quality) == (1800000002, 250, 1)
    assert last.ticks_ms == pair.now
    for _ in range(25):
        pair.now = ticks.add(pair.now, 3600 * 1000)
        pair.device.tick(pair.now)
    pair.connect()
    pair.device.emit("located", 1)
    pair.settle()
    assert pair.happened(EventReceived)[-1].quality == 2


def test_only_a_person_moves_the_clock_forward_by_more_than_a_day():
    pair = Pair().people().connect()
    assert pair.ask("set_clock", 1800000000, 0)[0] == "ok"  # the first one: it may have been off for weeks
    assert pair.ask("set_clock", 1800000000 + 86400, 0)[0] == "ok"
    assert pair.ask("set_clock", 1800000000 + 2 * 86400 + 1, 0) == ("wrong_role", (1,))
    assert pair.ask("set_clock", 1800000000, 0)[0] == "ok"  # back is always allowed
    assert pair.ask("set_clock", 0xFFFFFFFF, 0, by=BY_FLOOR)[0] == "ok"
    assert pair.ask("set_clock", 1800000000, 0)[0] == "ok"


def test_a_query_that_fails_is_refused_and_ends_nothing():
    pair = Pair().connect()
    pair.shoe.refuse = ZeroDivisionError()
    assert pair.ask("decks") == ("device_fault", (0,))
    pair.shoe.refuse = None
    assert pair.ask("decks") == ("device_fault", (0,))  # an answer that does not fit its fields
    assert pair.ask("status")[0] == "ok"


def test_a_command_whose_answer_cannot_be_packed_is_not_said_to_be_undone():
    pair = Pair().connect()
    execute = pair.shoe.execute
    pair.shoe.execute = lambda *given: execute(*given) + (-1,)
    number = dispense(pair)
    pair.settle()
    assert pair.answer(number)[0] == "interrupted"
    assert len(pair.shoe.done) == 1


def test_only_so_many_numbers_are_passed_over_in_a_boot():
    pair = Pair().connect()
    assert ledger.MAX_SKIPPED > 1024 * 1024
    pair.device.skipped = ledger.MAX_SKIPPED - 5
    newest = pair.device.ledger.newest(HOST_ID)
    for mark in (0, 1):
        pair.port.requests.request(DISPENSE.id, mark, newest + 10, DISPENSE.pack((5, 1)))
        assert pair.port.answers.pop()[1] == CODEC.error_named("number_ahead").id
    pair.port.requests.request(DISPENSE.id, 0, newest + 6, DISPENSE.pack((5, 1)))
    assert pair.port.answers.pop()[1] == 0
    pair.port.requests.request(DISPENSE.id, 0, newest + 7, DISPENSE.pack((5, 1)))  # nothing is passed over
    assert pair.port.answers.pop()[1] == 0
    pair.port.requests.request(DISPENSE.id, 0, newest + 9, DISPENSE.pack((5, 1)))
    assert pair.port.answers.pop()[1] == CODEC.error_named("number_ahead").id
    pair.wait(1000)
    pair.port.requests.request(DISPENSE.id, 0, newest + 9, DISPENSE.pack((5, 1)))
    assert pair.port.answers.pop()[1] == 0


def test_the_store_alone():
    store = EventStore(RecordStore(), {}, EventChain(RecordStore()), 1, 3)
    assert store.first == 1
    for n in range(5):
        assert store.add(1, 0, b"%d" % n) == n + 1
    assert (store.first, store.last, store.lost) == (3, 5, 2)
    assert store.get(3) == (1, 0, b"2")
    assert store.unacknowledged() == 5
    store.acknowledge(1, 5)
    assert store.unacknowledged() == 0
    store.add(1, 0, b"")
    assert store.lost == 2


def test_a_host_that_takes_no_answers_cannot_fill_the_device():
    pair = Pair().connect()
    status = CODEC.named("status").id
    for _ in range(100):
        pair.host._unanswered = 0
        pair.host.request(status, b"", pair.now)
        pair.port.receive(pair.host.poll(pair.now), pair.now)
        pair.host._link._in_flight = []
    assert len(pair.port.answers) <= 2 * pair.device.window
    assert pair.port.diagnostics.busy > 0


def test_a_second_cable_of_the_same_host_takes_over():
    pair = Pair().connect()
    old = pair.port
    pair.port = DevicePort(pair.device)
    pair.host.disconnect()
    pair.connect()
    assert pair.device.owner is pair.port
    assert old.link is not None
    assert pair.device.owner is not old
    assert [type(each) for each in pair.heard if isinstance(each, RequestAnswered)] == []


def test_a_request_that_is_held_is_sent_when_it_is_released():
    pair = Pair().connect()
    body = DISPENSE.pack((5, 1))
    number = pair.host.request(DISPENSE.id, body, pair.now, held=True)
    pair.settle()
    assert pair.ask("status")[0] == "ok", "a query does not wait for it"
    pair.connect()
    assert pair.shoe.done == [], "nor is it sent in another session"
    pair.host.release(number)
    pair.settle()
    assert pair.answer(number)[0] == "ok"
    pair.host.release(number)
    pair.settle()
    assert len(pair.shoe.done) == 1


def test_a_request_that_is_held_has_its_time_out():
    pair = Pair().connect()
    number = pair.host.request(DISPENSE.id, DISPENSE.pack((5, 1)), pair.now, 1000, held=True)
    pair.wait(1100)
    assert [(each.request_id, each.reason) for each in pair.happened(RequestFailed)] == [
        (number, "timed_out")
    ]
    pair.host.release(number)
    pair.settle()
    assert pair.shoe.done == []
