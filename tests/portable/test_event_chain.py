"""The chain of events: hashes, keys and tags, checkpoints, named gaps, power cuts, keys in the chip."""

import struct
from hashlib import sha256

from chained import BEGUN, CHECKPOINT, HEAD, LOST, BrokenChain, Follower, events_of, key_of, name_of
from pair import Pair
from world import KEY, SERIAL, Rng

from sabot_firmware.critical import CriticalMemory
from sabot_protocol.codec import CODEC, enum_number
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import DeviceIdentity, DeviceProtocol, Executor
from sabot_protocol.errors import MemoryFailed
from sabot_protocol.event_chain import EventChain, first_hash
from sabot_protocol.handshake import ClearExchange
from sabot_protocol.key_store import KeyStore
from sabot_protocol.notifications import EventReceived
from sabot_protocol.record_store import RecordStore
from sabot_protocol.wire_constants import DEVICE
from sabot_simulators.chips import PowerCut, SimFram

PROVISIONED = enum_number("ChainReason", "provisioned")
MEMORY_LOST = enum_number("ChainReason", "memory_lost")
OVERFLOW, REBOOT = 1, 2
CHIP = 13312  # bytes: enough for the records of the device's end
FIRST_KEY = b"the first key of a chain, 32 by."


def ask_provision(port, now):
    """Send a device its key, over the wire."""
    fields = CODEC.named("provision").fields
    values = [KEY if field[0] == "device_key" else b"n" * field[2] for field in fields]
    question = ClearExchange(CODEC, "provision", tuple(values), now)
    port.receive(question.poll(now), now)
    question.receive(port.poll(now))
    return question


def provision(pair):
    assert ask_provision(pair.port, pair.now).answer is not None
    return pair


def new_pair(**others):
    """A device provisioned a moment ago, its owner, and the first key of its chain."""
    pair = provision(Pair(provisioned=False, **others)).connect()
    said, values = pair.ask("chain_key")
    assert said == "ok"
    return pair, values[3]


def names(events):
    return [each[0] for each in events]


def device_on(chip, rng):
    """A device over a chip, as after power-up."""
    memory = CriticalMemory(chip)
    return DeviceProtocol(DeviceIdentity(SERIAL, "Sabot test", "0.0", 2), memory, Executor(), rng.bytes, 1000)


def chained_device(chip, rng):
    """A device over a new chip whose chain begins with FIRST_KEY."""
    device = device_on(chip, rng)
    device.begin_chain(PROVISIONED, FIRST_KEY)
    device.keys.set(DEVICE, KEY)
    return device


# -- hashes, tags, checkpoints --------------------------------------------------------------------


def test_the_chain_begins_at_provisioning_and_every_checkpoint_fits():
    pair, first_key = new_pair()
    for n in range(40):
        pair.device.emit("located", 1 + n)
    pair.device.emit("round_ended", 1, 1, 16, 52)
    events = events_of(pair.device)
    assert names(events)[:3] == [0x80, BEGUN, CHECKPOINT]
    follower = Follower(SERIAL, first_key)
    follower.boot(events)
    assert follower.index == pair.device.chain.index == len(events) - 1  # all but ``booted``
    assert names(events)[-1] == CHECKPOINT
    assert follower.hash == pair.device.chain.hash


def test_a_checkpoint_is_every_sixteenth_event_and_follows_each_rounds_end():
    pair = provision(Pair(provisioned=False))
    device = pair.device
    device.checkpoint()
    begin = device.events.last
    for n in range(50):
        device.emit("located", 1 + n)
    there = [at + 1 for at, id in enumerate(names(events_of(device))) if id == CHECKPOINT]
    there = [n + device.events.first - 1 - begin for n in there]
    assert [n for n in there if n > 0] == [16, 32, 48]
    device.emit("round_voided", 1, 1)
    assert names(events_of(device))[-2:] == [0x96, CHECKPOINT]
    before = device.events.last
    device.checkpoint()  # nothing has happened since
    assert device.events.last == before


def test_a_changed_event_breaks_the_chain():
    pair, first_key = new_pair()
    for n in range(20):
        pair.device.emit("located", 1 + n)
    events = events_of(pair.device)
    for at in range(2, len(events) - 1):
        for byte in (0, 1, 2, 6, 10, 14, len(events[at]) - 1):
            changed = bytearray(events[at])
            changed[byte] ^= 1
            try:
                Follower(SERIAL, first_key).boot(events[:at] + [bytes(changed)] + events[at + 1 :])
            except (BrokenChain, AssertionError):
                continue
            last = max([each for each in range(len(events)) if events[each][0] == CHECKPOINT])
            assert at >= last, (at, byte)  # only the tail is not covered


def test_another_first_key_makes_no_tag_fit():
    pair, _ = new_pair()
    try:
        Follower(SERIAL, FIRST_KEY).boot(events_of(pair.device))
    except BrokenChain as error:
        assert "tag" in str(error)
    else:
        raise AssertionError("another key passes")


def test_the_newest_checkpoint_is_made_on_demand_and_kept():
    pair, _ = new_pair()
    pair.device.emit("located", 3)
    before = pair.device.events.last
    said, (event,) = pair.ask("checkpoint")
    assert said == "ok"
    assert event == events_of(pair.device)[-1]
    assert struct.unpack_from("<I", event, 2)[0] == before + 1
    assert pair.ask("checkpoint") == ("ok", (event,))  # no event has come since
    assert pair.memory.load("checkpoint") == event
    received = pair.happened(EventReceived)[-1]
    assert (received.message, received.n) == (CHECKPOINT, before + 1)


def test_the_owners_detaching_ends_with_a_checkpoint():
    pair, first_key = new_pair()
    pair.ask("detach")
    assert names(events_of(pair.device))[-2:] == [0x82, CHECKPOINT]
    Follower(SERIAL, first_key).boot(events_of(pair.device))


def test_a_device_that_was_never_provisioned_chains_nothing():
    pair = Pair(provisioned=False)
    pair.device.emit("located", 1)
    pair.device.checkpoint()
    assert names(events_of(pair.device)) == [0x80, 0x85]
    assert pair.device.chain.index == 0


def test_a_device_with_keys_and_no_chain_begins_one_at_its_next_boot():
    pair = Pair()
    events = events_of(pair.device)
    assert names(events) == [0x80, BEGUN, CHECKPOINT]
    assert events[1][HEAD] == enum_number("ChainReason", "first_boot")
    Follower(SERIAL).boot(events)
    assert pair.connect().ask("chain_key")[0] == "provisioning_closed"


def test_a_new_chain_names_the_end_of_the_one_before():
    pair, first_key = new_pair()
    device = pair.device
    follower = Follower(SERIAL, first_key)
    device.begin_chain(PROVISIONED, FIRST_KEY)
    events = events_of(device)
    at = [each for each in range(len(events)) if events[each][0] == BEGUN][1]
    assert events[at - 1][0] == CHECKPOINT
    follower.boot(events[:at])
    _, _, index, hash = CODEC.named("chain_begun").unpack(events[at][HEAD:])
    assert (index, hash) == (follower.index, follower.hash)
    second = Follower(SERIAL, FIRST_KEY)
    second.boot(events[at:])
    assert second.checkpoints == [1]


# -- the first key --------------------------------------------------------------------------------


def test_one_session_gets_the_first_key_as_often_as_it_asks():
    pair, first_key = new_pair()
    assert pair.ask("chain_key")[1][3] == first_key
    assert len(pair.events("chain_key_given")) == 1
    frames = b"".join(pair.back)
    assert first_key not in frames
    pair.host.disconnect()
    pair.settle()
    pair.connect()
    assert pair.ask("chain_key")[0] == "provisioning_closed"


def test_the_first_key_is_gone_once_provisioning_is_over():
    for end in ("command", "time", "restart"):
        pair = provision(Pair(provisioned=False)).connect()
        if end == "command":
            pair.ask("locate", 1)
        elif end == "time":
            pair.now += 601000
            pair.device.tick(pair.now)
        else:
            pair.boot()
        if end != "command":
            pair.host.disconnect()
            pair.connect()
        pair.wait(50)
        assert pair.ask("chain_key")[0] == "provisioning_closed", end
        assert pair.device._first_key is None, end


def test_the_first_key_is_in_no_record():
    memory = RecordStore()
    pair, first_key = new_pair(memory=memory)
    for name in ("keys", "chain", "checkpoint", "boot", "events", "hosts", "proofs"):
        assert first_key not in (memory.load(name) or b""), name
    pair.ask("locate", 3)
    for slot in range(16):
        assert first_key not in (memory.load("command.%d" % slot) or b"")


# -- gaps -----------------------------------------------------------------------------------------


def test_a_reboot_names_what_the_owner_had_not_acknowledged():
    pair, first_key = new_pair()
    device = pair.device
    had = device.events.last
    seen = events_of(device)
    device.acknowledge(1, had)
    for n in range(5):
        device.emit("located", 1 + n)
    pair.boot()
    events = events_of(pair.device)
    assert names(events) == [0x80, LOST, CHECKPOINT]
    follower = Follower(SERIAL, first_key)
    follower.boot(seen)
    before = follower.index
    follower.boot(events)
    assert follower.gaps == [(REBOOT, 1, had, 1, had + 5, 5, before + 5)]


def test_a_gap_spans_the_boots_that_nobody_acknowledged():
    pair, first_key = new_pair()
    had = pair.device.events.last
    pair.device.acknowledge(1, had)
    pair.device.emit("located", 1)
    follower = Follower(SERIAL, first_key)
    follower.boot(events_of(pair.device)[:-1])
    pair.boot()
    pair.boot()  # whose event about the first gap is lost as well
    events = events_of(pair.device)
    follower.boot(events)
    assert follower.gaps == [(REBOOT, 1, had, 2, 3, 4, follower.index - len(events))]


def test_a_reboot_without_loss_names_no_gap():
    pair, first_key = new_pair()
    follower = Follower(SERIAL, first_key)
    pair.device.emit("located", 1)
    pair.device.acknowledge(1, pair.device.events.last)
    pair.device.emit("located", 1)  # saves what is acknowledged
    follower.boot(events_of(pair.device))
    for _ in range(3):
        pair.boot()
        pair.device.acknowledge(pair.device.boot_id, pair.device.events.last)
        pair.device.emit("located", 1)
        follower.boot(events_of(pair.device))


def test_an_overflow_is_named_once_the_owner_reads_again():
    pair, first_key = new_pair()
    device, store = pair.device, pair.device.events
    had = store.last
    device.acknowledge(1, had)
    seen = events_of(device)
    for n in range(100):
        device.emit("located", 1 + n % 60)
    lost_to = store.first - 1
    device.acknowledge(1, store.first + 5)  # not enough room yet
    events = events_of(device)
    assert LOST not in names(events)
    assert events[-1][0] != CHECKPOINT
    device.acknowledge(1, store.last)
    events += events_of(device)[-3:]
    assert names(events)[-3:] == [CHECKPOINT, LOST, CHECKPOINT]
    _, from_boot, from_n, to_boot, to_n, count, index, before, after = CODEC.named("events_lost").unpack(
        [each for each in events if each[0] == LOST][0][HEAD:]
    )
    assert (from_boot, from_n, to_boot) == (1, had, 1)
    assert to_n >= lost_to
    assert (count, index) == (to_n - had, to_n - 1)
    follower = Follower(SERIAL, first_key)
    follower.boot(seen)
    assert follower.hash == before
    follower.hash, follower.index = after, index
    for event in [each for each in events if struct.unpack_from("<I", each, 2)[0] > to_n]:
        follower._take(event)
    assert follower.hash == device.chain.hash
    device.acknowledge(1, store.last)
    assert len([each for each in events_of(device) if each[0] == LOST]) == 1


# -- power cuts and failing memory ----------------------------------------------------------------


def lives(chip, rng, steps):
    """Events of three boots, the first cut after so many bytes; what was ever shown, boot by boot."""
    shown = []
    for life in range(3):
        device = None
        if life == 0:
            chip.power.cut_after(steps)
        try:
            device = device_on(chip, rng)
            for n in range(3):
                device.emit("located", 1 + n)
                if n == 1:
                    device.acknowledge(device.boot_id, device.events.last - 1)
            device.checkpoint()
        except PowerCut:
            chip.power.restore()
        if device is not None:
            shown.append(events_of(device))
    chip.power.restore()
    return shown


def test_a_cut_after_any_byte_leaves_one_chain():
    rng = Rng(7)
    begun = SimFram(CHIP)
    first = events_of(chained_device(begun, rng))
    whole = SimFram(CHIP)
    whole.cells[:] = begun.cells
    lives(whole, Rng(8), 1 << 30)
    for steps in range(0, 3300, 11):
        chip = SimFram(CHIP)
        chip.cells[:] = begun.cells
        follower = Follower(SERIAL, FIRST_KEY)
        follower.boot(first)
        for events in lives(chip, Rng(8), steps):
            follower.boot(events)
        assert follower.checkpoints[-1] == follower.index - 1, steps


def test_events_go_on_without_tags_while_the_memory_fails():
    chip, rng = SimFram(CHIP), Rng(3)
    device = chained_device(chip, rng)
    follower = Follower(SERIAL, FIRST_KEY)
    chip.failing = 1 << 30
    for n in range(20):
        device.emit("located", 1 + n)
    assert CHECKPOINT not in names(events_of(device))[-20:]
    chip.failing = 0
    before = events_of(device)
    device.checkpoint()
    assert events_of(device) == before  # the last event is not saved yet
    device.emit("located", 30)
    device.checkpoint()
    follower.boot(events_of(device))
    assert follower.checkpoints[-1] == follower.index - 1


def test_a_cut_before_the_memory_works_again_reuses_no_key():
    chip, rng = SimFram(CHIP), Rng(3)
    device = chained_device(chip, rng)
    device.acknowledge(1, device.events.last)
    device.emit("located", 1)
    proved = device.chain.index
    events = events_of(device)
    chip.failing = 1 << 30
    device.emit("located", 2)
    device.checkpoint()
    assert names(events_of(device))[-1] == 0x85
    chip.failing = 0
    again = device_on(chip, rng)
    follower = Follower(SERIAL, FIRST_KEY)
    follower.boot(events)
    assert follower.index == proved
    follower.boot(events_of(again))


def test_a_checkpoint_that_cannot_be_saved_is_not_shown():
    chip, rng = SimFram(CHIP), Rng(3)
    device = chained_device(chip, rng)
    device.emit("located", 1)
    chip.failing = 1 << 30
    before = events_of(device)
    device.checkpoint()
    assert events_of(device) == before
    chip.failing = 0
    device.emit("located", 2)
    device.checkpoint()
    Follower(SERIAL, FIRST_KEY).boot(events_of(device))


def test_a_chain_whose_record_is_damaged_begins_anew_and_says_so():
    chip, rng = SimFram(CHIP), Rng(3)
    device = chained_device(chip, rng)
    at = bytes(chip.cells).find(device.chain.hash)
    chip.flip(at, 3)
    again = device_on(chip, rng)
    events = events_of(again)
    assert names(events)[:3] == [0x80, BEGUN, CHECKPOINT]
    assert events[1][HEAD] == MEMORY_LOST
    assert again.memory_id != device.memory_id
    Follower(SERIAL).boot(events)


def test_damage_of_other_records_does_not_end_the_chain():
    chip, rng = SimFram(CHIP), Rng(3)
    device = chained_device(chip, rng)
    follower = Follower(SERIAL, FIRST_KEY)
    follower.boot(events_of(device))
    record = CriticalMemory(chip).load("boot")
    chip.flip(bytes(chip.cells).find(record), 1)
    again = device_on(chip, rng)
    assert again.boot_id == 1
    assert again.memory_id != device.memory_id
    follower.boot(events_of(again))
    lost = [each for each in events_of(again) if each[0] == LOST]
    assert [each[HEAD] for each in lost] == [enum_number("GapReason", "memory_lost")]


def test_provisioning_whose_chain_cannot_be_saved_changes_nothing():
    chip, rng = SimFram(CHIP), Rng(3)
    device = device_on(chip, rng)
    port = DevicePort(device)
    chip.failing = 1 << 30
    assert ask_provision(port, 1000).failure == "memory_failed"
    assert not device.chain.begun()
    assert device.keys.get(DEVICE) is None


def test_a_new_chain_that_cannot_be_saved_leaves_the_hash_of_the_acknowledged_event_right():
    chip = SimFram(CHIP)
    device = chained_device(chip, Rng(4))
    seen = [each for each in events_of(device) if device.events._index_of(name_of(each)[1])]
    hash = first_hash(SERIAL, device.memory_id, device.boot_id)
    device.renew_memory_id()
    chip.failing = 1 << 30
    try:
        device.begin_chain(PROVISIONED, b"another first key, 32 bytes long")
        raise AssertionError("the chain was begun")
    except MemoryFailed:
        chip.failing = 0
    device.acknowledge(device.boot_id, name_of(seen[-1])[1])
    device.emit("located", 1)
    for each in seen:
        hash = sha256(hash + each).digest()
    assert CriticalMemory(chip).load("chain")[56:88] == hash


def test_what_is_acknowledged_in_a_later_boot_has_the_hash_of_the_whole_chain():
    chip = SimFram(CHIP)
    chained_device(chip, Rng(4))
    device = device_on(chip, Rng(6))
    device.acknowledge(device.boot_id, device.events.last)
    hash = device.chain.hash
    device.emit("located", 1)
    assert CriticalMemory(chip).load("chain")[56:88] == hash


# -- keys in the chip -----------------------------------------------------------------------------


def test_no_older_key_of_the_chain_is_in_the_chip_after_any_event():
    chip, rng = SimFram(CHIP), Rng(5)
    device = chained_device(chip, rng)
    for n in range(40):
        device.emit("located", 1 + n)
        dump = bytes(chip.cells)
        index = device.chain.index
        for older in range(index + 1):
            assert key_of(FIRST_KEY, older) not in dump, (n, older)
        assert key_of(FIRST_KEY, index + 1) in dump


def test_a_cut_at_any_step_of_a_save_leaves_no_older_key_once_the_record_was_read_again():
    """Both slots are looked at: after the save, and after a cut as soon as the record was read."""
    begun = SimFram(CHIP)
    chained_device(begun, Rng(5))
    event = bytes(30)
    for saves in (1, 2):  # each slot is the newer one once
        steps, done = 0, False
        while not done:
            chip = SimFram(CHIP)
            chip.cells[:] = begun.cells
            chain = EventChain(CriticalMemory(chip))
            for n in range(saves - 1):
                chain.extend(event, 1, n)
            before = chain.index
            chip.power.cut_after(steps)
            try:
                chain.extend(event, 1, saves)
                done = True
            except PowerCut:
                chip.power.restore()
                chain = EventChain(CriticalMemory(chip))
                assert chain.index in (before, before + 1), steps
            dump = bytes(chip.cells)
            for older in range(chain.index + 1):
                assert key_of(FIRST_KEY, older) not in dump, (saves, steps, older)
            assert key_of(FIRST_KEY, chain.index + 1) in dump, (saves, steps)
            steps += 1
        assert steps > 100


def test_no_replaced_key_of_a_person_is_in_the_chip():
    begun = SimFram(CHIP)
    old, new = b"o" * 31 + b"1", b"n" * 31 + b"2"
    KeyStore(CriticalMemory(begun)).set(4, old, 4, 4711)
    for steps in list(range(0, 1300, 17)) + [None]:
        chip = SimFram(CHIP)
        chip.cells[:] = begun.cells
        keys = KeyStore(CriticalMemory(chip))
        chip.power.cut_after(steps)
        try:
            keys.set(4, new, 4, 4711)
        except PowerCut:
            chip.power.restore()
            keys = KeyStore(CriticalMemory(chip))
        held = keys.get(4)
        dump = bytes(chip.cells)
        assert held in dump
        assert (new if held == old else old) not in dump, steps
