"""Versions: a newer minor is refused by name, a mismatch never blocks identification, status or keys."""

from pair import BY_SERVICE, Pair, newer_codec

from sabot_protocol import schema
from sabot_protocol.codec import CODEC, Codec
from sabot_protocol.errors import RequestNotAllowed, UnknownMessage
from sabot_protocol.notifications import RequestFailed, SessionUp


def test_a_request_of_a_newer_minor_is_refused_by_name_before_it_is_sent():
    pair = Pair(host_codec=newer_codec(), host_schema_hash=b"schema02").connect()
    try:
        pair.host.request(0x7E, b"", pair.now)
    except RequestNotAllowed as error:
        assert "polish_roller" in str(error)
        assert "1.0" in str(error)
    else:
        raise AssertionError("sent")
    assert pair.ask("status")[0] == "ok"
    assert pair.ask("dispense_stack", 1, 1)[0] == "ok"


def test_one_that_was_waiting_for_a_session_fails_by_name():
    pair = Pair(host_codec=newer_codec(), host_schema_hash=b"schema02")
    number = pair.host.request(0x7E, b"", pair.now)
    pair.connect()
    assert [(each.request_id, each.reason) for each in pair.happened(RequestFailed)] == [
        (number, "version_mismatch")
    ]
    assert pair.ask("status")[0] == "ok"


def test_a_message_the_device_does_not_know_is_refused_and_the_link_lives():
    same_minor = Codec(schema.MESSAGES + ((0x7E, "polish_roller", "query", "done", "any", ()),))
    pair = Pair(host_codec=same_minor).connect()
    assert pair.ask_packed(0x7E, b"") == ("unknown_message", (0x7E,))
    assert pair.ask("status")[0] == "ok"


def test_an_event_of_a_newer_minor_reaches_the_host_as_its_number():
    row = (0xEE, "moonrise", "event", "", "", ())
    newer = Codec(schema.MESSAGES + (row,), (), (schema.MAJOR, schema.MINOR + 1))
    pair = Pair(codec=newer, host_codec=CODEC, schema_hash=b"schema02").connect()
    pair.device.emit("moonrise")
    pair.settle()
    assert pair.heard[-1].message == 0xEE
    assert pair.ask("status")[0] == "ok"


def mismatched():
    return (
        Pair(host_codec=Codec(version=(schema.MAJOR + 1, 0))).connect(),
        Pair(host_schema_hash=b"otherone").connect(),
    )


def test_a_mismatch_leaves_identification_status_and_keys():
    for pair in mismatched():
        assert pair.happened(SessionUp)[0].limited
        assert pair.ask("status")[0] == "ok"
        try:
            pair.host.request(CODEC.named("dispense_stack").id, CODEC.pack("dispense_stack", 1, 1), pair.now)
        except RequestNotAllowed as error:
            assert "dispense_stack" in str(error)
        else:
            raise AssertionError("sent")
        pair.host._limited = False  # a host that asks all the same
        assert pair.ask("dispense_stack", 1, 1) == ("version_mismatch", (schema.MAJOR, schema.MINOR))
        assert pair.shoe.done == []
        pair.people()
        assert pair.ask("set_key", 5, 4, 1, b"k" * 32, by=BY_SERVICE)[0] == "ok"
        assert pair.ask("remove_key", 5, by=BY_SERVICE)[0] == "ok"


def test_reserved_ids_are_nobodys():
    taken = [id for id, _, _, _, _, _ in schema.MESSAGES]
    names = [name for _, name, _, _, _, _ in schema.MESSAGES]
    for id, name in schema.RESERVED:
        assert id not in taken
        assert name not in names
        assert CODEC.find(id) is None


def test_frozen_messages_ignore_what_a_later_version_adds_and_others_do_not():
    status = CODEC.named("status_report")
    packed = status.pack((1, 2, 1, 0, 0, 0, 0, 0, 0))
    assert status.unpack(packed + b"more") == status.unpack(packed)
    locate = CODEC.named("locate")
    try:
        locate.unpack(locate.pack((5,)) + b"m")
    except Exception as error:
        assert "too many" in str(error)
    else:
        raise AssertionError("accepted")


def test_frozen_messages_hold_no_enums():
    for id, name, _, _, _, fields in schema.MESSAGES:
        if id < schema.FROZEN_BELOW:
            for field in fields:
                assert field[1] not in ("enum", "flags"), name


def test_what_is_not_a_request_cannot_be_asked():
    pair = Pair().connect()
    for name in ("status_report", "booted", "hello"):
        try:
            pair.host.request(CODEC.named(name).id, b"", pair.now)
        except UnknownMessage:
            pass
        else:
            raise AssertionError(name)
