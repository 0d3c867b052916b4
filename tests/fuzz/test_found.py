"""What fuzzing has found, one test each, as small as it gets."""

from __future__ import annotations

import struct

import pytest
from tests.fuzz import monitored_wire, targets

from sabot_protocol.codec import CODEC
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.errors import RequestNotAllowed
from sabot_protocol.host_protocol import HostProtocol
from sabot_protocol.link import Link
from sabot_protocol.notifications import SessionDown
from sabot_protocol.wire_constants import ANSWER, BARE, EVENT, GAP, REQUEST

STATUS = CODEC.named("status").id


def host_link(wire: monitored_wire.Wire) -> Link:
    """The host's running link."""
    link = wire.host._link
    assert link is not None
    return link


def device_says(
    wire: monitored_wire.Wire, kind: int, message: int, flags: int, number: int, body: bytes
) -> None:
    """An authentic packet from the device, the next one the host expects."""
    link = host_link(wire)
    packet = wire.link().session.seal(link._expected, link._next_seq, 0, kind, message, flags, number, body)
    wire.host.receive(targets.framed(packet), wire.now)


def test_the_clock_s_last_second_does_not_stop_the_device() -> None:
    """set_clock allows 0xFFFFFFFF; a second later status and every event raised."""
    wire = monitored_wire.Wire(0, worked=False)
    wire.until_answered(wire.ask("set_clock", 0xFFFFFFFF, 0))
    wire.now += 1500
    wire.until_answered(wire.ask("status"))
    wire.device.emit("located", 5)


def test_a_host_that_took_no_answers_can_take_them_later() -> None:
    """60 requests without an acknowledgement, then acknowledgements: the answers must come out."""
    wire = monitored_wire.Wire(0, worked=False)
    session = host_link(wire).session
    link = wire.link()
    acknowledged = link._next_seq
    for number in range(100, 160):
        packet = session.seal(link._expected, acknowledged, 0, REQUEST, STATUS, 0, number, b"")
        wire.port.receive(targets.framed(packet), wire.now)
        wire.port.poll(wire.now)
    assert wire.port.diagnostics.busy > 0
    for _ in range(10):
        wire.now += 50
        packet = session.seal(link._expected, link._next_seq, 0, BARE, 0, 0, 0, b"")
        wire.port.receive(targets.framed(packet), wire.now)
        wire.port.poll(wire.now)
    assert wire.port.answers == []


def test_an_answer_to_number_0_is_a_late_answer() -> None:
    """Also when its body is not what attached looks like: it raised FieldError, or reported Up again."""
    wire = monitored_wire.Wire(0, worked=False)
    device_says(wire, ANSWER, CODEC.named("attached").id, 0, 0, b"")
    device_says(wire, ANSWER, CODEC.named("attached").id, 0, 0, CODEC.pack("attached", 1, 1, 0, bytes(8)))
    assert wire.host.take_notifications() == []


def test_a_gap_up_to_number_0_does_not_stop_the_host() -> None:
    """The next connect raised FieldError."""
    wire = monitored_wire.Wire(0, worked=False)
    device_says(wire, GAP, 0, 1, 0, struct.pack("<IIII", 1, 1, 1, 0))
    wire.host.disconnect()
    wire.connect()


def test_a_session_out_of_step_goes_down_once() -> None:
    """Two events delivered together, both out of step."""
    wire = monitored_wire.Wire(0, worked=False)
    link = host_link(wire)
    session = wire.link().session
    body = struct.pack("<IIIH", wire.device.boot_id, 0, 0, 0) + b"\x05"
    located = CODEC.named("located").id
    for ahead, n in ((1, 98), (0, 90)):
        packet = session.seal(link._expected + ahead, link._next_seq, 0, EVENT, located, 0, n, body)
        wire.host.receive(targets.framed(packet), wire.now)
    assert [type(each) for each in wire.host.take_notifications()] == [SessionDown]


def test_a_host_called_nobody_is_refused() -> None:
    """It became an owner that nobody sees, and its first command made the ledger forget every other host."""
    wire = monitored_wire.Wire(0, worked=False)
    with pytest.raises(RequestNotAllowed):
        HostProtocol(wire.key, CommandNumbers(bytes(8)), wire.random)
    wire.host = HostProtocol(wire.key, CommandNumbers(b"TABLE-P2"), wire.random)
    wire.host._numbers.host_id = bytes(8)
    wire.host.connect(wire.now)
    wire.pump()
    assert [each.reason for each in wire.happened if isinstance(each, SessionDown)] == ["bad_field"]
    assert wire.device.owner_id() == b"TABLE-PC"
