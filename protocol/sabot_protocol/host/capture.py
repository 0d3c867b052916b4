"""Captures of the wire as pcapng files, one frame a packet, for Wireshark and for replaying in tests.

Written here because python-pcapng, the library for it on PyPI, has no types, was last released in 2022 and
does not say where in a file the damage is.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

LINK_TYPE = 147  # LINKTYPE_USER0; protocol/wireshark/sabot.lua reads it

_SECTION = 0x0A0D0D0A
_SECTION_BYTES = b"\n\r\r\n"  # a palindrome: the same in either byte order
_INTERFACE = 1
_ENHANCED_PACKET = 6
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_OPTION_END = 0
_IF_TSRESOL = 9
_EPB_FLAGS = 2
_MICROSECONDS = 6  # if_tsresol: units of 10 ** -6 s
_INBOUND = 1
_OUTBOUND = 2
_DIRECTION = 3  # the bits of epb_flags
_MAX_BLOCK = 16 * 1024 * 1024  # longer than any block this project's tools write; a longer length is damage


class CaptureDamaged(ValueError):
    """A capture file that cannot be read: says what is wrong and at which byte of the file."""

    def __init__(self, offset: int, what: str) -> None:
        super().__init__("damaged capture at byte %d: %s" % (offset, what))
        self.offset = offset
        self.what = what


@dataclass(frozen=True)
class CapturedFrame:
    """One frame as it was on the wire, with its delimiter; None if the file does not tell its direction."""

    frame: bytes
    at_us: int
    to_device: bool | None


class CaptureWriter:
    """Writes frames to a pcapng stream; every ``add`` leaves a complete file behind."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._block(_SECTION, struct.pack("<IHHq", _BYTE_ORDER_MAGIC, 1, 0, -1))
        resolution = _option(_IF_TSRESOL, bytes((_MICROSECONDS,)))
        self._block(_INTERFACE, struct.pack("<HHI", LINK_TYPE, 0, 0) + resolution + _option(_OPTION_END, b""))

    def add(self, frame: bytes, at_us: int, to_device: bool) -> None:
        """Add a frame that was on the wire ``at_us`` microseconds after 1970-01-01 UTC.

        Frames to the device are outbound, as seen from the host that captures them.
        """
        size = len(frame)
        head = struct.pack("<IIIII", 0, at_us >> 32, at_us & 0xFFFFFFFF, size, size)
        flags = _option(_EPB_FLAGS, struct.pack("<I", _OUTBOUND if to_device else _INBOUND))
        self._block(_ENHANCED_PACKET, head + _padded(frame) + flags + _option(_OPTION_END, b""))

    def _block(self, type: int, body: bytes) -> None:
        length = struct.pack("<I", len(body) + 12)
        self._stream.write(struct.pack("<I", type) + length + body + length)


def read_capture(stream: BinaryIO) -> Iterator[CapturedFrame]:
    """The frames of a pcapng stream in file order, whoever wrote it.

    Blocks of other types are passed over. CaptureDamaged if the file is cut, broken, of another link type or
    not pcapng at all; the frames before the damage have been given by then.
    """
    offset = 0
    order = ""
    units: list[int] = []  # each interface's timestamp units a second
    while True:
        head = stream.read(12)
        if not head:
            if not order:
                raise CaptureDamaged(0, "the file is empty")
            return
        if head[:4] == _SECTION_BYTES:
            order, units = _byte_order(head, offset), []
        elif not order:
            raise CaptureDamaged(offset, "this is not a pcapng file: it does not begin with a section header")
        type, body = _rest_of_block(stream, head, order, offset)
        if type == _INTERFACE:
            units.append(_interface(body, order, offset))
        elif type == _ENHANCED_PACKET:
            yield _packet(body, order, units, offset)
        offset += len(body) + 12


def _byte_order(head: bytes, offset: int) -> str:
    for order in "<>":
        if head[8:] == struct.pack(order + "I", _BYTE_ORDER_MAGIC):
            return order
    raise CaptureDamaged(offset, "a section header without the byte-order magic 0x1A2B3C4D")


def _rest_of_block(stream: BinaryIO, head: bytes, order: str, offset: int) -> tuple[int, bytes]:
    """The block's type and body, its two lengths checked against each other."""
    if len(head) < 12:
        raise CaptureDamaged(offset, "the file ends after %d bytes of a block of at least 12" % len(head))
    type, length = struct.unpack_from(order + "II", head)
    if length < 12 or length % 4 or length > _MAX_BLOCK:
        raise CaptureDamaged(offset, "a block cannot be %d bytes long" % length)
    block = head + stream.read(length - 12)
    if len(block) < length:
        raise CaptureDamaged(offset, "the file ends after %d bytes of a block of %d" % (len(block), length))
    (again,) = struct.unpack_from(order + "I", block, length - 4)
    if again != length:
        raise CaptureDamaged(offset, "a block begins with the length %d and ends with %d" % (length, again))
    return type, block[8 : length - 4]


def _interface(body: bytes, order: str, offset: int) -> int:
    """An interface's timestamp units a second."""
    if len(body) < 8:
        raise CaptureDamaged(offset, "an interface description of %d bytes; it has at least 8" % len(body))
    (link_type,) = struct.unpack_from(order + "H", body)
    if link_type != LINK_TYPE:
        raise CaptureDamaged(offset, "link type %d; frames of Sabot have %d" % (link_type, LINK_TYPE))
    resolution = _find_option(body, 8, _IF_TSRESOL, order, offset)
    if resolution is None:
        return 10**6
    if len(resolution) != 1:
        raise CaptureDamaged(offset, "if_tsresol of %d bytes; it has 1" % len(resolution))
    exponent = resolution[0] & 0x7F
    return int((2 if resolution[0] & 0x80 else 10) ** exponent)


def _packet(body: bytes, order: str, units: list[int], offset: int) -> CapturedFrame:
    if len(body) < 20:
        raise CaptureDamaged(offset, "a packet block of %d bytes; it has at least 20" % len(body))
    interface, high, low, size, was = struct.unpack_from(order + "IIIII", body)
    if interface >= len(units):
        raise CaptureDamaged(offset, "a packet of interface %d; %d described" % (interface, len(units)))
    if size > len(body) - 20:
        raise CaptureDamaged(offset, "a packet of %d bytes in a block of %d" % (size, len(body) - 20))
    if size != was:
        raise CaptureDamaged(offset, "a packet cut to %d of its %d bytes" % (size, was))
    flags = _find_option(body, 20 + size + -size % 4, _EPB_FLAGS, order, offset)
    if flags is not None and len(flags) != 4:
        raise CaptureDamaged(offset, "epb_flags of %d bytes; they have 4" % len(flags))
    direction = 0 if flags is None else struct.unpack(order + "I", flags)[0] & _DIRECTION
    at_us = (high << 32 | low) * 10**6 // units[interface]
    return CapturedFrame(body[20 : 20 + size], at_us, {_OUTBOUND: True, _INBOUND: False}.get(direction))


def _find_option(body: bytes, at: int, wanted: int, order: str, offset: int) -> bytes | None:
    """The value of the first option of a kind, or None; CaptureDamaged if the options run past the block."""
    while at + 4 <= len(body):
        code, size = struct.unpack_from(order + "HH", body, at)
        if code == _OPTION_END:
            return None
        if at + 4 + size > len(body):
            raise CaptureDamaged(offset, "option %d of %d bytes runs past its block" % (code, size))
        if code == wanted:
            return body[at + 4 : at + 4 + size]
        at += 4 + size + -size % 4
    return None


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
