"""Frames: a payload and its CRC-32, COBS-encoded in one block, ended by 0x00.

A frame on the wire is ``COBS(payload + crc32(payload) little-endian) + 0x00``. Payload and CRC
together are at most 253 bytes, so a COBS code never reaches 0xFF and the block never splits:
encoding and decoding only replace zeros by the distance to the next one, and back, in place.
"""

import binascii
import struct
import sys

from sabot_protocol.errors import FrameSize

DELIMITER = b"\x00"
CRC_SIZE = 4
MAX_PAYLOAD = 249
MAX_BLOCK = MAX_PAYLOAD + CRC_SIZE + 1  # encoded, without the delimiter

# Why a frame was bad.
BAD_CRC = "crc"  # the checksum does not fit the payload
BAD_LENGTH = "length"  # too short to hold a checksum and at least one byte
BAD_OVERRUN = "overrun"  # no delimiter within the longest allowed block
BAD_ENCODING = "encoding"  # a COBS code points past the end of the block

_crc32 = binascii.crc32
_pack = struct.pack
_pack_into = struct.pack_into
_ONE = b"\x01"
_GOOD_RESIDUE = 0x2144DF1C  # CRC-32 of any data followed by its own CRC-32


def encode_by_parts(payload: bytes | bytearray) -> bytearray:
    """``encode`` for a computer: up to three times as fast, allocates an object for each zero."""
    if not 0 < len(payload) <= MAX_PAYLOAD:
        raise _wrong_size(payload)
    data = bytes(payload) + _pack("<I", _crc32(payload))
    frame = bytearray(_ONE + data.replace(DELIMITER, _ONE) + DELIMITER)  # right where zeros follow each other
    code = 0
    for part in data.split(DELIMITER):
        if part:
            frame[code] = len(part) + 1
            code += len(part)
        code += 1
    return frame


def encode_in_place(payload: bytes | bytearray) -> bytearray:
    """``encode`` for a board: nothing is allocated but the frame."""
    size = len(payload)
    if not 0 < size <= MAX_PAYLOAD:
        raise _wrong_size(payload)
    frame = bytearray(size + 6)
    end = size + 5
    frame[1 : size + 1] = payload
    _pack_into("<I", frame, size + 1, _crc32(payload))
    code = 0
    zero = frame.find(DELIMITER, 1, end)
    while zero >= 0:
        frame[code] = zero - code
        code = zero
        zero = frame.find(DELIMITER, zero + 1, end)
    frame[code] = end - code
    return frame


def _wrong_size(payload: bytes | bytearray) -> FrameSize:
    return FrameSize("payload of %d bytes; a frame holds 1 to %d" % (len(payload), MAX_PAYLOAD))


# The frame for a payload with its delimiter; FrameSize if it does not fit.
encode = encode_in_place if sys.implementation.name == "micropython" else encode_by_parts


class Decoder:
    """Turns chunks of bytes into payloads, in bounded memory.

    After any garbage it is in step again at the next delimiter. Empty blocks (two delimiters
    in a row) mean nothing, so a sender may flush a line with a delimiter of its own.

    ``append`` and ``next_frame`` copy nothing: a payload lies in the decoder's own memory and is good until
    the next one is asked for. ``feed`` copies each payload.
    """

    def __init__(self) -> None:
        self._block = bytearray(MAX_BLOCK)
        self._view = memoryview(self._block)
        self._used = 0
        self._overrun = False
        self._chunk: bytes | bytearray = b""
        self._chunk_view = memoryview(b"")
        self._at = 0
        self.payload = self._view[:0]
        self.error: str | None = None

    def feed(self, chunk: bytes | bytearray) -> list[tuple[bytes | None, str | None]]:
        """Take the next bytes; return what they complete, in order.

        Each item is ``(payload, None)`` for a good frame and ``(None, reason)`` for a bad one.
        """
        found: list[tuple[bytes | None, str | None]] = []
        self.append(chunk)
        while self.next_frame():
            found.append((None, self.error) if self.error else (bytes(self.payload), None))
        return found

    def unread(self) -> int:
        """How many bytes ``next_frame`` has not looked at yet."""
        return len(self._chunk) - self._at

    def append(self, chunk: bytes | bytearray) -> None:
        """Take the next bytes, for ``next_frame``; those that it has not read yet come first."""
        if self._at < len(self._chunk):
            chunk = bytes(self._chunk_view[self._at :]) + chunk
        self._chunk = chunk
        self._chunk_view = memoryview(chunk)
        self._at = 0

    def next_frame(self) -> bool:
        """Whether the bytes complete one more frame: ``error`` says why it is, or ``payload`` holds it."""
        while True:
            start = self._at
            end = self._chunk.find(DELIMITER, start)
            if end < 0:
                end = self._at = len(self._chunk)
                self._keep(start, end)
                return False
            self._at = end + 1
            self._keep(start, end)
            if self._used:
                self.error = self._finish()
                return True

    def _keep(self, start: int, end: int) -> None:
        used = self._used
        total = used + end - start
        if self._overrun or total > MAX_BLOCK:
            self._overrun = True
            self._used = MAX_BLOCK
        elif total > used:
            self._block[used:total] = self._chunk_view[start:end]
            self._used = total

    def _finish(self) -> str | None:
        """Decode the block where it lies; say what is wrong with it, if anything is."""
        block = self._block
        size = self._used
        self._used = 0
        if self._overrun:
            self._overrun = False
            return BAD_OVERRUN
        at = 0
        while at < size:
            code = block[at]
            block[at] = 0
            at += code
        if at != size:
            return BAD_ENCODING
        if size < CRC_SIZE + 2:
            return BAD_LENGTH
        if _crc32(self._view[1:size]) != _GOOD_RESIDUE:
            return BAD_CRC
        self.payload = self._view[1 : size - CRC_SIZE]
        return None
