"""Keys and people: slots, elevations for one request, observers, wrong proofs, ends of sessions."""

from hashlib import sha256

from pair import (
    BY_FLOOR,
    BY_SERVICE,
    FLOOR_KEY,
    FLOOR_PERSON,
    FLOOR_SLOT,
    SERVICE_KEY,
    SERVICE_PERSON,
    Pair,
    frames,
    other,
    payload,
)
from world import HOST_ID, KEY, SERIAL

from sabot_protocol import frame, ticks
from sabot_protocol.codec import CODEC, enum_number
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.device_port import DevicePort
from sabot_protocol.errors import MemoryFailed
from sabot_protocol.handshake import ClearExchange
from sabot_protocol.host_protocol import OBSERVER, OWNER, HostProtocol
from sabot_protocol.key_store import KeyStore
from sabot_protocol.notifications import AttachRefused, EventReceived, SessionDown
from sabot_protocol.record_store import RecordStore
from sabot_protocol.session import elevation_proof, slot_key
from sabot_protocol.wire_constants import DEVICE, OBSERVERS, REQUEST

OTHER_KEY = b"x" * 32
OBSERVER_KEY = b"o" * 32
SERVICE = enum_number("Role", "service")
FLOOR = enum_number("Role", "floor")
TABLE = enum_number("Role", "table")
CLEAR = CODEC.named("mark_out_of_order")
ROUND_OPEN = 0x0004


def provisioned():
    """A device that was given its key a moment ago, and its owner."""
    pair = Pair(provisioned=False)
    question = ClearExchange(CODEC, "provision", provisioning(KEY), pair.now)
    pair.port.receive(question.poll(pair.now), pair.now)
    question.receive(pair.port.poll(pair.now))
    assert question.answer is not None
    return pair.connect()


def provisioning(key):
    """The values of ``provision``, whatever other fields it has."""
    values = []
    for field in CODEC.named("provision").fields:
        values.append(key if field[0] == "device_key" else b"n" * field[2])
    return tuple(values)


def person(slot=5, role=FLOOR, number=99, key=FLOOR_KEY):
    return slot, role, number, slot_key(key, SERIAL, slot)


# -- elevations ---------------------------------------------------------------------------------


def test_an_elevation_authorises_one_request():
    pair = Pair().people().connect()
    assert pair.ask("mark_out_of_order") == ("wrong_role", (TABLE,))
    assert pair.ask("mark_out_of_order", by=BY_FLOOR)[0] == "ok"
    assert pair.ask("mark_out_of_order") == ("wrong_role", (TABLE,))
    assert pair.ask("dispense_stack", 5, 1, by=BY_FLOOR)[0] == "ok"  # it takes nothing away
    assert [name for name, _ in pair.shoe.done] == ["mark_out_of_order", "dispense_stack"]
    caller = pair.shoe.callers[0]
    assert (caller.role, caller.person, caller.is_owner) == (FLOOR, FLOOR_PERSON, True)
    used = pair.events("elevation_used")
    assert [each[:5] for each in used] == [
        (HOST_ID, FLOOR_SLOT, FLOOR, FLOOR_PERSON, CLEAR.id),
        (HOST_ID, FLOOR_SLOT, FLOOR, FLOOR_PERSON, CODEC.named("dispense_stack").id),
    ]


def raw_elevation(pair, key, message, number, body, slot=FLOOR_SLOT, scheme=1, proof=None):
    hash = sha256(body).digest()
    if proof is None:
        derived = slot_key(key, SERIAL, slot)
        proof = elevation_proof(derived, pair.host.transcript, scheme, slot, message, number, hash)
    return pair.ask("elevate", scheme, slot, message, number, hash, proof)


def test_an_elevation_is_bound_to_the_requests_number_id_and_body():
    register = CODEC.named("void_round")
    good = register.pack((5, 1))
    for message, ahead, body in (
        (register.id, 0, register.pack((6, 1))),
        (register.id, 1, good),
        (CODEC.named("clear_fault").id, 0, good),
    ):
        pair = Pair().people().connect()
        number = pair.host.next_number
        assert raw_elevation(pair, FLOOR_KEY, message, number + ahead, body)[0] == "ok"
        assert pair.ask_packed(CLEAR.id, b"")[0] == "wrong_role"
    pair = Pair().people().connect()
    number = pair.host.next_number
    assert raw_elevation(pair, FLOOR_KEY, CLEAR.id, number, b"") == ("ok", (FLOOR, FLOOR_PERSON))
    assert pair.ask_packed(CLEAR.id, b"")[0] == "ok"


def test_an_elevation_for_another_body_of_the_same_request_is_none():
    pair = Pair().people().connect()
    play = CODEC.named("play_one_deck")
    assert raw_elevation(pair, FLOOR_KEY, play.id, pair.host.next_number, play.pack((1,)))[0] == "ok"
    assert pair.ask("play_one_deck", 0)[0] == "wrong_role"
    assert pair.shoe.done == []


def test_a_proof_shown_again_is_refused_and_its_number_only_rises():
    pair = Pair().people().connect()
    number = pair.host.next_number
    hash = sha256(b"").digest()
    derived = slot_key(FLOOR_KEY, SERIAL, FLOOR_SLOT)
    proof = elevation_proof(derived, pair.host.transcript, 1, FLOOR_SLOT, CLEAR.id, number, hash)
    again = (1, FLOOR_SLOT, CLEAR.id, number, hash, proof)
    assert pair.ask("elevate", *again)[0] == "ok"
    assert pair.ask("elevate", *again) == ("bad_credential", (FLOOR_SLOT,))
    assert pair.ask("mark_out_of_order")[0] == "wrong_role"
    pair.connect()
    assert pair.ask("elevate", *again) == ("bad_credential", (FLOOR_SLOT,))  # of another session
    assert raw_elevation(pair, FLOOR_KEY, CLEAR.id, 50, b"")[0] == "ok"
    assert raw_elevation(pair, FLOOR_KEY, CLEAR.id, 49, b"")[0] == "bad_credential"
    assert pair.shoe.done == []


def test_an_elevation_names_a_number_that_its_request_can_have():
    evict = CODEC.named("evict_owner")
    for message, number in ((CLEAR.id, 0), (CLEAR.id, 0x80000000), (evict.id, 0), (evict.id, 0x7FFFFFFF)):
        pair = Pair().people().connect()
        refused = ("bad_credential", (FLOOR_SLOT,))
        assert raw_elevation(pair, FLOOR_KEY, message, number, b"") == refused, (message, number)
    assert raw_elevation(pair, FLOOR_KEY, evict.id, 0x80000100, b"")[0] == "ok"
    assert raw_elevation(pair, FLOOR_KEY, evict.id, 0x80000100, b"") == refused


def test_a_query_has_no_number_of_a_command():
    pair = Pair().connect()
    status = CODEC.named("status")
    for number in (0, 1, 0x7FFFFFFF):
        pair.port.requests.request(status.id, 0, number, b"")
        message, error, answered, _ = pair.port.answers.pop()
        assert (message, error, answered) == (status.id, CODEC.error_named("number_ahead").id, number)
    pair.port.requests.request(status.id, 0, 0x80000000, b"")
    assert pair.port.answers.pop()[1] == 0


def test_an_elevation_ends_with_its_session_and_with_its_key():
    for ending in ("session", "key", "removed", "detach"):
        pair = Pair().people().connect()
        number = pair.host.next_number + (1 if ending in ("key", "removed") else 0)
        if ending in ("key", "removed"):
            second = other(pair, mode=OBSERVER)
            assert raw_elevation(pair, FLOOR_KEY, CLEAR.id, number, b"")[0] == "ok"
            pair.device.keys.set(FLOOR_SLOT, OTHER_KEY, FLOOR, FLOOR_PERSON)
            pair.device.end_sessions(FLOOR_SLOT, second.port)
            pair.host._numbers.take()
        else:
            assert raw_elevation(pair, FLOOR_KEY, CLEAR.id, number, b"")[0] == "ok"
            if ending == "session":
                pair.connect()
            else:
                assert pair.ask("detach")[0] == "ok"
                pair.connect()
        assert pair.ask_packed(CLEAR.id, b"")[0] == "wrong_role", ending
        assert pair.shoe.done == []


def test_an_elevation_ends_when_another_cable_owns_the_device():
    """What was proved for the owner's session does not authorise a session that only looks on."""
    pair = Pair().people().connect()
    trace = CODEC.named("trace")
    number = pair.host._next_query + 1
    assert raw_elevation(pair, FLOOR_KEY, trace.id, number, trace.pack((0,)))[0] == "ok"
    pair.device.set_owner(None)
    assert pair.ask("trace", 0)[0] == "wrong_role"


def test_what_is_wrong_with_an_elevation_has_a_name():
    pair = Pair().people().connect()
    number = pair.host.next_number
    assert raw_elevation(pair, FLOOR_KEY, CLEAR.id, number, b"", scheme=3) == ("not_supported", ())
    assert raw_elevation(pair, FLOOR_KEY, CLEAR.id, number, b"", slot=9) == ("no_such_key", (9,))
    assert raw_elevation(pair, KEY, CLEAR.id, number, b"", slot=DEVICE) == ("no_such_key", (DEVICE,))
    assert raw_elevation(pair, SERVICE_KEY, CLEAR.id, number, b"") == ("bad_credential", (FLOOR_SLOT,))
    # the host tells the person's error, not what the device then said to the request
    assert pair.ask("mark_out_of_order", by=(FLOOR_SLOT, OTHER_KEY)) == ("bad_credential", (FLOOR_SLOT,))
    assert pair.ask("mark_out_of_order", by=(9, OTHER_KEY)) == ("no_such_key", (9,))
    assert pair.shoe.done == []


def test_an_authorised_command_lost_with_its_session_is_executed_once_in_the_next():
    pair = Pair().people().connect()
    number = pair.host.request(CLEAR.id, b"", pair.now, by=BY_FLOOR)
    pair.host.poll(pair.now)  # both frames are lost with the cable
    pair.connect()
    assert pair.answer(number)[0] == "ok"
    number = pair.host.request(CLEAR.id, b"", pair.now, by=BY_FLOOR)
    pair.port.receive(pair.host.poll(pair.now), pair.now)
    pair.port.poll(pair.now)  # executed; the answer is lost
    pair.connect()
    assert pair.answer(number)[0] == "ok"
    assert len(pair.shoe.done) == 2


def test_an_authorised_request_passes_the_smallest_window():
    pair = Pair(window=1).people().connect()
    numbers = [pair.host.request(CLEAR.id, b"", pair.now, by=BY_FLOOR) for _ in range(3)]
    pair.settle()
    assert [pair.answer(number)[0] for number in numbers] == ["ok"] * 3
    assert len(pair.shoe.done) == 3


def test_an_authorised_command_is_only_resolved_after_a_reboot():
    pair = Pair().people().connect()
    number = pair.host.request(CLEAR.id, b"", pair.now, by=BY_FLOOR)
    pair.host.poll(pair.now)  # lost
    pair.boot()
    pair.connect()
    assert pair.answer(number) == ("not_executed", ())
    assert pair.shoe.done == []


def test_a_query_can_be_authorised():
    pair = Pair().connect()
    lab = enum_number("Role", "lab")
    pair.device.keys.set(6, slot_key(OTHER_KEY, SERIAL, 6), lab, 3)
    assert pair.ask("rng_samples", 1, 16)[0] == "wrong_role"
    for _ in range(3):
        assert pair.ask("rng_samples", 1, 16, by=(6, OTHER_KEY)) == ("ok", (1, bytes(16)))
    assert [name for name, _ in pair.shoe.done] == ["rng_samples"] * 3


def test_an_elevation_is_used_up_by_a_query_too():
    pair = Pair().connect()
    pair.device.keys.set(6, slot_key(OTHER_KEY, SERIAL, 6), enum_number("Role", "lab"), 3)
    samples, number = CODEC.named("rng_samples"), 0xF0000000
    body = samples.pack((1, 16))
    assert raw_elevation(pair, OTHER_KEY, samples.id, number, body, slot=6)[0] == "ok"
    for _ in range(3):
        pair.host._link.send(REQUEST, samples.id, 0, number, body)
        pair.settle()
    assert [name for name, _ in pair.shoe.done] == ["rng_samples"]


# -- slots --------------------------------------------------------------------------------------


def test_provisioning_fills_slots_and_then_they_are_closed():
    for ending in ("detach", "close", "command", "time", "restart"):
        pair = provisioned()
        assert pair.ask("key_slots")[1][0] == 1
        assert pair.ask("set_key", *person())[0] == "ok"
        assert pair.ask("set_key", *person())[0] == "wrong_role"  # not empty any more
        assert pair.ask("set_key", OBSERVERS, 0, 0, OBSERVER_KEY)[0] == "ok"
        if ending == "detach":
            pair.ask("detach")
        elif ending == "close":
            pair.port.receive(pair.host.close(pair.now), pair.now)
        elif ending == "command":
            pair.ask("dispense_stack", 5, 1)
        elif ending == "time":
            pair.now += 601_000
        else:
            pair.boot()
        pair.connect()
        assert pair.ask("set_key", *person(6, SERVICE)) == ("wrong_role", (TABLE,)), ending
        assert pair.ask("key_slots") == ("ok", (0, (0, 1, 5), (TABLE, 0, FLOOR), (0, 0, 99))), ending


def test_a_lost_cable_does_not_end_provisioning():
    pair = provisioned()
    pair.port.close()
    pair.connect()
    assert pair.ask("set_clock", 1800000000, 0)[0] == "ok"
    assert pair.ask("set_key", *person())[0] == "ok"


def test_service_fills_changes_and_empties_slots():
    pair = Pair().people().connect()
    assert pair.ask("set_key", *person())[0] == "wrong_role"
    assert pair.ask("set_key", *person(), by=BY_FLOOR)[0] == "wrong_role"
    assert pair.ask("remove_key", FLOOR_SLOT, by=BY_FLOOR)[0] == "wrong_role"
    assert pair.ask("set_key", *person(), by=BY_SERVICE)[0] == "ok"
    assert pair.device.keys.get(5) == slot_key(FLOOR_KEY, SERIAL, 5)
    assert pair.ask("set_key", *person(key=OTHER_KEY), by=BY_SERVICE)[0] == "ok"
    assert pair.ask("mark_out_of_order", by=(5, FLOOR_KEY)) == ("bad_credential", (5,))
    assert pair.ask("mark_out_of_order", by=(5, OTHER_KEY))[0] == "ok"
    assert pair.ask("remove_key", 5, by=BY_SERVICE)[0] == "ok"
    assert pair.ask("mark_out_of_order", by=(5, OTHER_KEY)) == ("no_such_key", (5,))
    assert pair.ask("remove_key", 5, by=BY_SERVICE) == ("no_such_key", (5,))
    assert pair.ask("remove_key", DEVICE, by=BY_SERVICE) == ("bad_field", (0,))
    assert pair.events("key_changed") == [(5, FLOOR, 99, HOST_ID, SERVICE_PERSON)] * 2
    assert pair.events("key_removed") == [(5, FLOOR, 99, HOST_ID, SERVICE_PERSON)]


def test_what_does_not_fit_a_slot_is_refused():
    pair = Pair().people().connect()
    for values, why in (
        ((14, FLOOR, 1, OTHER_KEY), ("no_such_key", (14,))),
        ((255, FLOOR, 1, OTHER_KEY), ("no_such_key", (255,))),
        ((5, FLOOR, 1, bytes(32)), ("bad_field", (3,))),
        ((5, TABLE, 1, OTHER_KEY), ("bad_field", (1,))),
        ((5, 77, 1, OTHER_KEY), ("bad_field", (1,))),
        ((DEVICE, FLOOR, 0, OTHER_KEY), ("bad_field", (1,))),
        ((OBSERVERS, 0, 7, OTHER_KEY), ("bad_field", (1,))),
    ):
        assert pair.ask("set_key", *values, by=BY_SERVICE) == why
    assert pair.device.keys.slots() == [0, 3, 4]


def test_all_slots_outlive_the_power():
    memory = RecordStore()
    keys = KeyStore(memory)
    keys.set(DEVICE, KEY)
    keys.set(OBSERVERS, OBSERVER_KEY)
    for slot in range(2, 14):
        keys.set(slot, bytes([slot]) * 32, FLOOR, 1000 + slot)
    keys.remove(7)
    again = KeyStore(memory)
    assert again.slots() == [slot for slot in range(14) if slot != 7]
    assert again.holder(13) == (FLOOR, 1013)
    assert again.get(13) == b"\x0d" * 32
    assert again.get(7) is None
    assert not again.open


def test_a_key_that_cannot_be_written_is_not_set():
    class Full(RecordStore):
        full = False

        def save(self, name, data):
            if self.full and name == "keys":
                raise MemoryFailed(name)
            super().save(name, data)

    pair = Pair(memory=Full()).people().connect()
    pair.memory.full = True
    assert pair.ask("set_key", *person(), by=BY_SERVICE)[0] == "memory_failed"
    assert pair.ask("remove_key", FLOOR_SLOT, by=BY_SERVICE)[0] == "memory_failed"
    assert pair.device.keys.slots() == [0, 3, 4]


def test_a_derived_key_is_good_for_one_device_and_one_slot():
    keys = [slot_key(FLOOR_KEY, serial, slot) for serial in (SERIAL, b"ANOTHER1") for slot in (2, 3)]
    for index in range(4):
        assert keys.count(keys[index]) == 1
        assert keys[index] != FLOOR_KEY


def test_a_key_on_the_wire_is_hidden_by_the_session_and_so_anew_in_each():
    pair = Pair().people().connect()
    derived = slot_key(OTHER_KEY, SERIAL, 5)
    number = pair.host.request(
        CODEC.named("set_key").id, CODEC.pack("set_key", 5, FLOOR, 9, derived), pair.now, by=BY_SERVICE
    )
    first = bodies(pair.host.poll(pair.now))  # lost with the cable
    pair.sent = []
    pair.connect()
    second = bodies(b"".join(pair.sent))
    assert pair.answer(number)[0] == "ok"
    assert pair.device.keys.get(5) == derived
    assert len(first) == len(second) == 1
    assert first[0][:6] == second[0][:6]
    assert first[0][6:] != second[0][6:]
    for each in (first[0][6:], second[0][6:]):
        assert each != derived


def bodies(data):
    """The bodies of the set_key requests in a stream of frames."""
    found = []
    for each in frames(data):
        inside = payload(each)
        if inside[0] == 3 and inside[11] == 1 and inside[12] == CODEC.named("set_key").id:
            found.append(inside[18:-8])
    return found


def test_each_request_has_a_pad_of_its_own():
    pair = Pair().connect()
    session = pair.host._link.session
    hidden = [session.hide(message, number, KEY) for message in (0x1D, 0xC2) for number in (1, 2)]
    for each in hidden:
        assert hidden.count(each) == 1
    assert pair.port.link.session.hide(0x1D, 1, hidden[0]) == KEY


# -- the device's own key -----------------------------------------------------------------------


def change_device_key(pair):
    return pair.host.request(
        CODEC.named("set_key").id, CODEC.pack("set_key", DEVICE, TABLE, 0, OTHER_KEY), pair.now, by=BY_SERVICE
    )


def test_a_new_device_key_does_not_strand_who_set_it_and_ends_all_others():
    pair = Pair().people().connect()
    second = other(pair, mode=OBSERVER)
    assert second.host.up
    number = change_device_key(pair)
    pair.settle()
    assert pair.answer(number)[0] == "ok"
    pair.wait(100)
    assert [each.reason for each in pair.happened(SessionDown)] == ["closed_by_peer"]
    pair.connect()
    assert pair.host.up
    assert pair.ask("dispense_stack", 5, 1)[0] == "ok"
    second.settle()
    assert [each.reason for each in second.happened(SessionDown)] == ["closed_by_peer"]
    second.connect()
    assert not second.host.up
    assert pair.events("key_changed") == [(DEVICE, TABLE, 0, HOST_ID, SERVICE_PERSON)]


def test_a_new_device_key_whose_answer_was_lost_is_found_by_trying_both():
    for arrives in (True, False):
        pair = Pair().people().connect()
        number = change_device_key(pair)
        out = pair.host.poll(pair.now)
        if arrives:
            pair.port.receive(out, pair.now)
            pair.port.poll(pair.now)  # lost
        pair.port.close()
        pair.connect()
        assert pair.answer(number)[0] == "ok"
        assert pair.device.keys.get(DEVICE) == OTHER_KEY
        pair.wait(100)
        pair.connect()
        assert pair.host.up
        assert pair.host.key == OTHER_KEY
        assert pair.host.other_key is None


def test_a_refused_device_key_leaves_the_old_one():
    pair = Pair().connect()
    body = CODEC.pack("set_key", DEVICE, TABLE, 0, OTHER_KEY)
    assert pair.ask_packed(CODEC.named("set_key").id, body) == ("wrong_role", (TABLE,))
    assert pair.host.key == KEY
    pair.connect()
    assert pair.host.up


def test_a_handshake_begun_with_the_old_key_is_not_finished_with_it():
    pair = Pair().people().connect()
    second = other(pair, mode=OBSERVER)
    second.port.close()
    second.host.connect(second.now, OBSERVER)
    second.port.receive(second.host.poll(second.now), second.now)
    second.host.receive(second.port.poll(second.now), second.now)
    pair.device.keys.set(DEVICE, OTHER_KEY)
    second.port.receive(second.host.poll(second.now), second.now)
    assert second.port.link is None
    assert pair.events("proofs_refused") == []


# -- observers ----------------------------------------------------------------------------------


def watched():
    pair = Pair().people()
    pair.device.keys.set(OBSERVERS, OBSERVER_KEY)
    return pair.connect()


def test_observers_have_a_key_of_their_own():
    pair = watched()
    assert pair.ask("dispense_stack", 5, 1)[0] == "ok"
    watcher = other(pair, OBSERVER_KEY, HOST_ID, OBSERVERS, OBSERVER)  # it may call itself what it likes
    assert watcher.host.up
    assert watcher.host._newest == 0
    assert not watcher.host._known
    assert pair.device.owner is pair.port
    assert watcher.ask("status")[0] == "ok"
    assert watcher.happened(EventReceived)
    newest = pair.device.ledger.newest(HOST_ID)
    for mark in (0, 1):
        watcher.host._link.send(1, CODEC.named("dispense_stack").id, mark, newest + 1, b"\x05\0\0\0\x02")
        watcher.settle()
    assert pair.device.ledger.newest(HOST_ID) == newest
    assert len(pair.shoe.done) == 1
    assert watcher.ask("trace", 0) == ("wrong_role", (0,))
    assert raw_elevation(watcher, FLOOR_KEY, CLEAR.id, 5, b"") == ("wrong_role", (0,))
    assert pair.ask("dispense_stack", 5, 2)[0] == "ok"


def test_an_observers_key_does_not_own():
    pair = watched()
    pair.port.close()
    watcher = other(pair, OBSERVER_KEY, HOST_ID, OBSERVERS)
    refused = watcher.happened(AttachRefused)
    assert [CODEC.error(each.status).name for each in refused] == ["wrong_role"]
    assert pair.device.owner is None


def test_the_wrong_slot_or_an_empty_one_refuses():
    pair = watched()
    for key, slot, why in (
        (OBSERVER_KEY, DEVICE, "device_not_proved"),
        (KEY, OBSERVERS, "device_not_proved"),
        (KEY, FLOOR_SLOT, "no_such_key"),
        (KEY, 200, "no_such_key"),
    ):
        assert [each.reason for each in other(pair, key, slot=slot).happened(SessionDown)] == [why]
    pair.device.keys.remove(OBSERVERS)
    refused = other(pair, OBSERVER_KEY, slot=OBSERVERS, mode=OBSERVER).happened(SessionDown)
    assert [each.reason for each in refused] == ["no_such_key"]


def test_an_observers_session_does_not_inherit_the_owners_on_the_same_cable():
    pair = watched()
    assert pair.device.owner is pair.port
    pair.host = HostProtocol(
        OBSERVER_KEY, CommandNumbers(HOST_ID), pair.rng.bytes, SERIAL, schema_hash=b"schema01", slot=OBSERVERS
    )
    pair.host.connect(pair.now, OBSERVER)
    pair.port.receive(pair.host.poll(pair.now), pair.now)
    pair.host.receive(pair.port.poll(pair.now), pair.now)
    pair.port.receive(pair.host.poll(pair.now), pair.now)  # proved, and not attached yet
    assert pair.port.slot == OBSERVERS
    assert pair.device.owner is None
    pair.settle()
    assert pair.host.up
    assert pair.ask("dispense_stack", 5, 1)[0] == "not_owner"


def test_changing_or_removing_the_observers_key_ends_their_sessions_only():
    for name, values in (("set_key", (OBSERVERS, 0, 0, OTHER_KEY)), ("remove_key", (OBSERVERS,))):
        pair = watched()
        watcher = other(pair, OBSERVER_KEY, b"WATCHER1", OBSERVERS, OBSERVER)
        assert pair.ask(name, *values, by=BY_SERVICE)[0] == "ok"
        assert watcher.port.link is None
        watcher.settle()
        assert [each.reason for each in watcher.happened(SessionDown)] == ["closed_by_peer"]
        assert pair.ask("dispense_stack", 5, 1)[0] == "ok"


# -- taking the device from its owner -----------------------------------------------------------


def test_the_floor_takes_the_device_from_its_owner_between_rounds():
    pair = Pair().people().connect()
    second = other(pair, mode=OBSERVER)
    book = pair.device.ledger.newest(b"OTHER-PC")
    assert second.ask("evict_owner", HOST_ID) == ("wrong_role", (0,))
    pair.shoe.flags = ROUND_OPEN
    assert second.ask("evict_owner", HOST_ID, by=BY_FLOOR)[0] == "wrong_state"
    assert pair.device.owner is pair.port
    pair.shoe.flags = 0
    for _ in range(2):  # the second time it does nothing
        assert second.ask("evict_owner", HOST_ID, by=BY_FLOOR)[0] == "ok"
    assert pair.device.owner is None
    assert pair.events("owner_evicted") == [(HOST_ID, b"OTHER-PC", FLOOR_PERSON)]
    assert pair.device.ledger.newest(b"OTHER-PC") == book
    assert pair.ask("dispense_stack", 5, 1) == ("not_owner", (bytes(8),))
    second.connect(OWNER)
    assert pair.device.owner is second.port
    assert second.ask("dispense_stack", 5, 1)[0] == "ok"


def test_only_the_owner_named_is_evicted_and_never_by_observers():
    pair = watched()
    second = other(pair, mode=OBSERVER)
    assert second.ask("evict_owner", b"SOMEBODY", by=BY_FLOOR)[0] == "ok"
    assert pair.device.owner is pair.port
    assert pair.ask("evict_owner", HOST_ID, by=BY_FLOOR) == ("bad_field", (0,))
    watcher = other(pair, OBSERVER_KEY, b"WATCHER1", OBSERVERS, OBSERVER)
    assert watcher.ask("evict_owner", HOST_ID, by=BY_FLOOR) == ("wrong_role", (0,))
    assert pair.device.owner is pair.port


def test_a_silent_owner_is_evicted_in_the_midst_of_a_round():
    pair = Pair().people().connect()
    second = other(pair, mode=OBSERVER)
    pair.shoe.flags = ROUND_OPEN
    pair.port.link._last_received_at = pair.now - 5000  # and nobody has polled that cable since
    assert second.ask("evict_owner", HOST_ID, by=BY_FLOOR)[0] == "ok"
    assert pair.device.owner is None


# -- wrong proofs -------------------------------------------------------------------------------


def wrong_proof(pair, port, nonce=b"w" * 16):
    """A handshake that ends in a wrong proof; the clear messages that the device says to it."""
    hello = CODEC.pack("hello", nonce, b"STRANGER", DEVICE, 1, 1, 0, b"schema01", 16, 249)
    port.receive(bytes(frame.encode(b"\x01\x05" + hello)), pair.now)
    said = [payload(each) for each in frames(port.poll(pair.now))]
    if port.handshake.pending is None:
        return said
    hash = port.handshake.pending[2]
    prove = CODEC.pack("prove", hash[0] | hash[1] << 8, bytes(16))
    port.receive(bytes(frame.encode(b"\x01\x07" + prove)), pair.now)
    return said + [payload(each) for each in frames(port.poll(pair.now))]


def errors(said):
    found = []
    for each in said:
        if each[:2] == b"\x02\x08":
            found.append(CODEC.error(each[18]).name)
    return found


def test_after_a_wrong_proof_no_handshake_on_that_cable_for_a_second():
    pair = Pair().people().connect()
    cable = DevicePort(pair.device)
    assert errors(wrong_proof(pair, cable)) == ["bad_proof"]
    for wait, error in ((0, "too_soon"), (999, "too_soon"), (1, "bad_proof")):
        pair.now += wait
        assert errors(wrong_proof(pair, cable, b"%016d" % wait)) == [error]
    second = other(pair, mode=OBSERVER)  # on another cable
    assert second.host.up
    assert pair.ask("dispense_stack", 5, 1)[0] == "ok"


def test_a_wrong_proof_delays_nobody_who_comes_when_the_ticks_have_wrapped():
    pair = Pair()
    assert errors(wrong_proof(pair, pair.port)) == ["bad_proof"]
    pair.now = ticks.add(pair.now, ticks.HALF + 1000)  # more than six days, in which nobody used this cable
    pair.connect()
    assert pair.host.up


def test_a_proved_session_on_the_same_cable_is_not_delayed_and_a_host_waits_the_second():
    pair = Pair().connect()
    assert errors(wrong_proof(pair, pair.port)) == ["bad_proof"]
    assert pair.ask("dispense_stack", 5, 1)[0] == "ok"
    pair.connect()  # its hello is refused, and repeated
    assert not pair.host.up
    pair.wait(2500)
    assert pair.host.up
    assert pair.ask("dispense_stack", 5, 2)[0] == "ok"


def test_wrong_elevations_delay_nobody():
    pair = Pair().people().connect()
    for _ in range(20):
        assert pair.ask("mark_out_of_order", by=(FLOOR_SLOT, OTHER_KEY))[0] == "bad_credential"
    assert pair.ask("mark_out_of_order", by=BY_FLOOR)[0] == "ok"
    pair.connect()
    assert pair.host.up


def test_wrong_proofs_are_told_at_once_then_folded_and_counted_for_good():
    pair = Pair().people().connect()
    for _ in range(5):
        pair.ask("mark_out_of_order", by=(FLOOR_SLOT, OTHER_KEY))
    assert pair.events("proofs_refused") == [(FLOOR_SLOT, 1, 1)]
    pair.wait(60_000, 1000)
    assert pair.events("proofs_refused") == [(FLOOR_SLOT, 1, 1), (FLOOR_SLOT, 4, 5)]
    wrong_proof(pair, DevicePort(pair.device))
    pair.boot()  # what no event has told is told by the next boot
    assert pair.events("proofs_refused") == [(255, 1, 6)]
    pair.wait(120_000, 1000)
    assert pair.events("proofs_refused") == [(255, 1, 6)]
    pair.boot()
    assert pair.events("proofs_refused") == []


def test_each_wrong_proof_is_written_once():
    pair = Pair().people().connect()
    written, save = [], pair.memory.save
    pair.memory.save = lambda name, data: (written.append(name), save(name, data))
    pair.ask("mark_out_of_order", by=(FLOOR_SLOT, OTHER_KEY))  # told at once
    assert written.count("proofs") == 1
    pair.ask("mark_out_of_order", by=(FLOOR_SLOT, OTHER_KEY))  # only counted
    assert written.count("proofs") == 2
    assert pair.memory.load("proofs") == bytes((2, 0, 0, 0, 1, 0, 0, 0))


def test_a_prove_that_belongs_to_no_handshake_is_not_a_wrong_proof():
    pair = Pair().connect()
    prove = CODEC.pack("prove", 1234, bytes(16))
    pair.port.receive(bytes(frame.encode(b"\x01\x07" + prove)), pair.now)
    assert pair.events("proofs_refused") == []
    assert pair.port.diagnostics.bad_proofs == 1


# -- the end of a session -----------------------------------------------------------------------


def test_a_clean_exit_releases_the_device_at_once():
    pair = Pair().connect()
    pair.port.receive(pair.host.close(pair.now), pair.now)
    assert pair.device.owner is None
    assert pair.port.link is None
    assert [each.reason for each in pair.host.take_notifications() if isinstance(each, SessionDown)] == [
        "closed"
    ]
    second = other(pair)
    assert pair.device.owner is second.port


def test_a_closing_packet_of_another_session_closes_nothing():
    pair = Pair().connect()
    closing = pair.host.close(pair.now)
    pair.connect()
    pair.port.receive(closing, pair.now)
    assert pair.device.owner is pair.port
    forged = bytearray(payload(frames(closing)[-1]))
    forged[1:3] = bytes([pair.port.link.session.id & 255, pair.port.link.session.id >> 8])
    pair.port.receive(bytes(frame.encode(bytes(forged))), pair.now)
    assert pair.device.owner is pair.port
    assert pair.port.diagnostics.bad_mac == 1


def test_after_an_unclean_exit_the_same_host_goes_on_at_once_on_any_cable():
    for same_cable in (True, False):
        pair = Pair().connect()
        again = HostProtocol(
            KEY, CommandNumbers(HOST_ID, 50), pair.rng.bytes, SERIAL, schema_hash=b"schema01"
        )
        if not same_cable:
            pair.port = DevicePort(pair.device)
        pair.host = again
        pair.connect()
        assert pair.host.up
        assert pair.device.owner is pair.port
        assert pair.ask("dispense_stack", 5, 1)[0] == "ok"


def test_what_was_acknowledged_is_told_before_the_close():
    pair = Pair().connect()
    pair.device.emit("located", 3)
    pair.settle()
    pair.host.acknowledge(pair.device.boot_id, pair.device.events.last)
    pair.port.receive(pair.host.close(pair.now), pair.now)
    assert pair.device.events.acknowledged == pair.device.events.last - 2  # then owner_changed, a checkpoint
    assert pair.device.owner is None
