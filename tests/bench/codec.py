"""Typed object to bytes to typed object, and frames alone, without any port between."""

import binascii
from collections.abc import Callable, Iterator

from cobs import cobs  # type: ignore[import-untyped]
from pymodbus.framer import FramerRTU
from pymodbus.pdu import DecodePDU
from pymodbus.pdu.register_message import ReadHoldingRegistersResponse
from smp.os_management import EchoWriteRequest
from tests.bench import ends
from tests.bench.measure import Figure, repeated, take_turns

from sabot_protocol import frame
from sabot_protocol.host.message_base import Message
from sabot_protocol.host.messages import CountersAre, Fault, FaultRaised, Place
from sabot_protocol.session import Session
from sabot_protocol.wire_constants import CLEAR_TO_HOST, EVENT

SIZE = 37  # of every frame compared, in bytes
TEXT = "Open the shuffler door. "  # 24 characters
GOAL = 2.0


# -- the contenders -----------------------------------------------------------------------------


def plain(message: Message) -> Callable[[], object]:
    """Sabot, a typed message in a frame of its own."""
    kind = type(message)
    head = bytes((CLEAR_TO_HOST, message.ID))
    decoder = frame.Decoder()

    def once() -> object:
        decoder.append(frame.encode(head + message.pack()))
        decoder.next_frame()
        return kind.unpack(bytes(decoder.payload[2:]))

    assert len(frame.encode(head + message.pack())) == SIZE
    assert once() == message
    return once


def authenticated(message: Message) -> Callable[[], object]:
    """Sabot, the same message sealed and opened: 24 bytes and two MACs more."""
    kind = type(message)
    device = Session(ends.KEY, bytes(32), is_host=False)
    host = Session(ends.KEY, bytes(32), is_host=True)
    decoder = frame.Decoder()

    def once() -> object:
        packet = device.seal(1, 2, 0, EVENT, message.ID, 0, 1000, message.pack())
        decoder.append(frame.encode(packet))
        decoder.next_frame()
        assert host.open(decoder.payload)
        return kind.unpack(bytes(host.body))

    assert once() == message
    return once


def pymodbus() -> Callable[[], object]:
    """pymodbus: a response with 16 registers through its RTU framer, CRC-16 included."""
    framer = FramerRTU(DecodePDU(is_server=False))
    registers = [0, 1, 60000, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
    response = ReadHoldingRegistersResponse(dev_id=1, registers=registers)

    def once() -> object:
        _, heard = framer.handleFrame(framer.buildFrame(response), 1, 0)
        return heard

    assert len(framer.buildFrame(response)) == SIZE
    heard = once()
    assert isinstance(heard, ReadHoldingRegistersResponse)
    assert heard.registers == registers
    return once


def smp() -> Callable[[], object]:
    """Smp: an echo request made, turned into bytes and loaded again; it has no checksum at this layer."""

    def once() -> object:
        return EchoWriteRequest.loads(EchoWriteRequest(d=TEXT).BYTES)

    assert len(EchoWriteRequest(d=TEXT).BYTES) == SIZE
    return once


def sabot_frame(payload: bytes) -> Callable[[], object]:
    """Sabot's frame encoded and decoded."""
    decoder = frame.Decoder()

    def once() -> object:
        decoder.append(frame.encode(payload))
        decoder.next_frame()
        return decoder.payload

    assert once() == payload
    return once


def byte_by_byte(payload: bytes) -> Callable[[], object]:
    """The loop everybody writes first: COBS a byte at a time, and ``binascii.crc32``."""

    def encode(data: bytes) -> bytes:
        out = bytearray((0,))
        code_at = 0
        for byte in data:
            if byte:
                out.append(byte)
            else:
                out[code_at] = len(out) - code_at
                code_at = len(out)
                out.append(0)
        out[code_at] = len(out) - code_at
        out.append(0)
        return bytes(out)

    def decode(block: bytes) -> bytes:
        out = bytearray()
        at = 0
        while block[at]:
            code = block[at]
            for byte in block[at + 1 : at + code]:
                out.append(byte)
            at += code
            if block[at]:
                out.append(0)
        return bytes(out)

    def once() -> object:
        sent = encode(payload + binascii.crc32(payload).to_bytes(4, "little"))
        heard = decode(sent)
        if binascii.crc32(heard[:-4]).to_bytes(4, "little") != heard[-4:]:
            raise ValueError
        return heard[:-4]

    assert once() == payload
    return once


def cobs_package(payload: bytes) -> Callable[[], object]:
    """The ``cobs`` package, written in C, and ``binascii.crc32``."""

    def once() -> object:
        sent = cobs.encode(payload + binascii.crc32(payload).to_bytes(4, "little")) + b"\x00"
        heard: bytes = cobs.decode(sent[:-1])
        if binascii.crc32(heard[:-4]).to_bytes(4, "little") != heard[-4:]:
            raise ValueError
        return heard[:-4]

    assert once() == payload
    return once


# -- the figures --------------------------------------------------------------------------------


def typed(count: int, rounds: int) -> Iterator[Figure]:
    """Typed messages against both peers."""
    text = FaultRaised(Fault.CARD_STUCK, Place.ENTRY, 2, TEXT)
    numbers = CountersAre((0, 1, 60000, 4, 5, 6, 7))
    like = {"FaultRaised": plain(text), "CountersAre": plain(numbers)}
    more = {
        "FaultRaised, authenticated": authenticated(text),
        "CountersAre, authenticated": authenticated(numbers),
    }
    peers = {"pymodbus RTU": pymodbus(), "smp": smp()}
    contenders = {name: repeated(once) for name, once in {**like, **more, **peers}.items()}
    rates = take_turns(contenders, count, rounds)
    for name in (*like, *more):
        for peer in peers:
            goal = None if "authenticated" in name else GOAL  # no peer authenticates
            yield rates.figure("typed object → bytes → typed object", name, peer, goal)


def frames(count: int, rounds: int) -> Iterator[Figure]:
    """Frames alone, against a bare loop and a library in C."""
    for what, size in (("short", 31), ("long", 245)):
        payload = bytes([index * 7 & 255 for index in range(size)])
        contenders = {
            f"{what} frame": repeated(sabot_frame(payload)),
            "bare COBS+CRC loop": repeated(byte_by_byte(payload)),
            "cobs package (C) + CRC": repeated(cobs_package(payload)),
        }
        rates = take_turns(contenders, count, rounds)
        for reference in ("bare COBS+CRC loop", "cobs package (C) + CRC"):
            yield rates.figure(f"frame of {size + 6} bytes", f"{what} frame", reference)
