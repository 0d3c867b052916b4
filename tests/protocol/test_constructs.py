"""Any payload that can be captured becomes a tree of names, and back the same bytes."""

import hmac
import struct

import pytest

from sabot_protocol import frame, session, wire_constants
from sabot_protocol.host import messages
from sabot_protocol.host.constructs import (
    FRAME,
    PAYLOAD,
    NotReadable,
    build_frame,
    parse_frame,
    parse_payload,
)
from sabot_protocol.wire_constants import EVENT_HEADER, RESOLVE

STATUS = messages.StatusReport(1000, 1800000000, 1, 4, 3, 0, 3, 77, 2)
STUCK = messages.FaultRaised(messages.Fault.CARD_STUCK, messages.Place.ENTRY, 2, "Öffne die Tür")


def sealed(kind: int, message: int, mark: int, number: int, body: bytes) -> bytes:
    """A packet as the device's end of a session makes it."""
    device = session.Session(bytes(32), bytes(range(32)), False)
    return bytes(device.seal(7, 8, 5, kind, message, mark, number, body))


def test_a_sealed_packet_has_the_header_the_session_gave_it() -> None:
    packet = sealed(wire_constants.BARE, 0, 0, 0, b"")
    parsed = parse_payload(packet)
    assert (parsed.direction, parsed.kind, parsed.name) == ("sealed to host", "bare", None)
    assert parsed.header == {
        "direction": wire_constants.SEALED_TO_HOST,
        "session": 0x0100,
        "counter": 1,
        "seq": 7,
        "ack": 8,
        "sack": 5,
        "kind": wire_constants.BARE,
        "message": 0,
        "flags": 0,
        "request_id": 0,
    }
    assert parsed.mac == packet[-8:]


def test_a_sealed_packet_is_laid_out_as_documented() -> None:
    """Written down a second time, because the constructs follow whatever the session has."""
    key = hmac.digest(bytes(32), b"to host" + bytes(range(32)), "sha256")
    packet = struct.pack("<BHIBBHBBBI", 4, 0x0100, 1, 7, 8, 5, 2, 0x3F, 0, 123456789) + b"body"
    mac = hmac.digest(key, packet, "sha256")[:8]
    assert sealed(wire_constants.ANSWER, 0x3F, 0, 123456789, b"body") == packet + mac


def test_an_answer_shows_its_fields() -> None:
    parsed = parse_payload(sealed(wire_constants.ANSWER, STATUS.ID, 0, 5, STATUS.pack()))
    assert (parsed.kind, parsed.name, parsed.refused) == ("answer", "status_report", False)
    assert parsed.fields["round_id"] == 77


def test_a_refusal_shows_the_error_and_its_details() -> None:
    stale = messages.StaleDetail(77, 2)
    parsed = parse_payload(sealed(wire_constants.ANSWER, 0x55, stale.CODE, 5, stale.pack()))
    assert (parsed.name, parsed.refused) == ("stale", True)
    assert parsed.fields == {"round_id": 77, "stack": 2}


def test_an_event_shows_names_of_enums_and_flags() -> None:
    head = struct.pack(EVENT_HEADER, 3, 4000, 1800000000, 250)
    parsed = parse_payload(sealed(wire_constants.EVENT, STUCK.ID, 1, 9, head + STUCK.pack()))
    assert parsed.fields == {"fault": "card_stuck", "place": "entry", "cards": 2, "steps": "Öffne die Tür"}
    assert (parsed.header["boot_id"], parsed.header["utc_ms"]) == (3, 250)
    both = messages.ButtonFlag.LEFT | messages.ButtonFlag.RIGHT
    parsed = parse_payload(sealed(wire_constants.EVENT, 0x86, 1, 9, head + messages.Buttons(both).pack()))
    assert parsed.fields == {"pressed": ("left", "right")}


def test_a_gap_shows_both_its_ends() -> None:
    parsed = parse_payload(sealed(wire_constants.GAP, 0, 2, 12, struct.pack("<IIII", 3, 40, 4, 1)))
    ends = {key: parsed.header[key] for key in ("from_boot", "from_n", "to_boot", "to_n")}
    assert ends == {"from_boot": 3, "from_n": 40, "to_boot": 4, "to_n": 1}


def test_a_question_what_became_of_a_command_need_not_repeat_it() -> None:
    parsed = parse_payload(sealed(wire_constants.REQUEST, 0x55, RESOLVE, 5, b""))
    assert (parsed.kind, parsed.name, parsed.rest) == ("request", "dispense_stack", b"")


def test_what_a_later_version_says_is_kept_as_bytes() -> None:
    parsed = parse_payload(sealed(wire_constants.ANSWER, 0xEE, 0, 5, b"new"))
    assert (parsed.name, parsed.rest) == (None, b"new")
    assert parse_payload(sealed(wire_constants.ANSWER, 0x10, 200, 5, b"why")).rest == b"why"
    assert parse_payload(sealed(99, 0, 0, 0, b"what")).kind == "kind 99"


@pytest.mark.parametrize(
    "payload",
    [
        bytes((wire_constants.CLEAR_TO_DEVICE, 0x01)),
        bytes((wire_constants.CLEAR_TO_HOST, 0x09)) + messages.NoSession(3, 500).pack(),
        bytes((wire_constants.CLEAR_TO_HOST, 0x3E)) + b"a later version's",
        sealed(wire_constants.BARE, 0, 0, 0, b""),
        sealed(wire_constants.REQUEST, 0x55, 0, 5, messages.DispenseStack(77, 2).pack()),
        sealed(wire_constants.ANSWER, STATUS.ID, 0, 5, STATUS.pack()),
        sealed(wire_constants.ANSWER, 0x55, 8, 5, messages.StaleDetail(77, 2).pack()),
        sealed(wire_constants.EVENT, STUCK.ID, 1, 9, struct.pack(EVENT_HEADER, 3, 4, 5, 6) + STUCK.pack()),
        sealed(wire_constants.EVENT_ACK, 0, 0, 9, struct.pack("<I", 3)),
        sealed(wire_constants.GAP, 0, 2, 12, struct.pack("<IIII", 3, 40, 4, 1)),
    ],
    ids=lambda payload: parse_payload(payload).kind,
)
def test_a_tree_is_built_back_to_the_same_bytes(payload: bytes) -> None:
    assert PAYLOAD.build(PAYLOAD.parse(payload)) == payload
    assert build_frame(payload) == frame.encode(payload)
    assert parse_frame(bytes(frame.encode(payload))) == payload


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        pytest.param(b"", "neither clear nor sealed", id="empty"),
        pytest.param(b"\x09\x01", "neither clear nor sealed", id="unknown way"),
        pytest.param(sealed(wire_constants.BARE, 0, 0, 0, b"")[:20], "body", id="cut in the MAC"),
        pytest.param(sealed(wire_constants.BARE, 0, 0, 0, b"")[:9], "sack", id="cut in the header"),
        pytest.param(sealed(wire_constants.BARE, 0, 0, 0, b"x"), "body", id="bare with a body"),
        pytest.param(
            sealed(wire_constants.REQUEST, 0x55, 0, 5, bytes((1, 0, 0, 0, 18))), "stack", id="bad field"
        ),
    ],
)
def test_what_is_not_readable_says_where(payload: bytes, said: str) -> None:
    with pytest.raises(NotReadable, match=said):
        parse_payload(payload)


def test_a_damaged_frame_is_not_read() -> None:
    damaged = bytearray(build_frame(b"\x01\x01"))
    damaged[2] ^= 2
    with pytest.raises(NotReadable, match="wrong checksum"):
        parse_frame(bytes(damaged))
    assert FRAME.parse(build_frame(b"\x01\x01")).payload == b"\x01\x01"
