"""Frames: a payload and its CRC-32, COBS-encoded in one block, ended by 0x00.

A frame on the wire is ``COBS(payload + crc32(payload) little-endian) + 0x00``. Payload and CRC
together are at most 253 bytes, so a COBS code never reaches 0xFF and the block never splits:
encoding and decoding only replace zeros by the distance to the next one, and back, in place.
"""

import binascii
import struct

from sabot_protocol.errors import FrameTooLong

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
_pack_into = struct.pack_into
_GOOD_RESIDUE = 0x2144DF1C  # CRC-32 of any data followed by its own CRC-32


def encode(payload: bytes | bytearray) -> bytearray:
    """The frame for ``payload`` with its delimiter; FrameTooLong if it does not fit."""
    size = len(payload)
    if size > MAX_PAYLOAD:
        raise FrameTooLong("payload of %d bytes; a frame holds %d" % (size, MAX_PAYLOAD))
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


class Decoder:
    """Turns chunks of bytes into payloads, in bounded memory.

    After any garbage it is in step again at the next delimiter. Empty blocks (two delimiters
    in a row) mean nothing, so a sender may flush a line with a delimiter of its own.
    """

    def __init__(self) -> None:
        self._block = bytearray(MAX_BLOCK)
        self._view = memoryview(self._block)
        self._used = 0
        self._overrun = False

    def feed(self, chunk: bytes) -> list[tuple[bytes | None, str | None]]:
        """Take the next bytes; return what they complete, in order.

        Each item is ``(payload, None)`` for a good frame and ``(None, reason)`` for a bad one.
        """
        found: list[tuple[bytes | None, str | None]] = []
        start = 0
        while True:
            end = chunk.find(DELIMITER, start)
            if end < 0:
                self._keep(chunk, start, len(chunk))
                return found
            self._keep(chunk, start, end)
            start = end + 1
            if self._used:
                found.append(self._finish())

    def _keep(self, chunk: bytes, start: int, end: int) -> None:
        used = self._used
        total = used + end - start
        if self._overrun or total > MAX_BLOCK:
            self._overrun = True
            self._used = MAX_BLOCK
        elif total > used:
            self._block[used:total] = chunk[start:end]
            self._used = total

    def _finish(self) -> tuple[bytes | None, str | None]:
        block = self._block
        size = self._used
        self._used = 0
        if self._overrun:
            self._overrun = False
            return None, BAD_OVERRUN
        at = 0
        while at < size:
            code = block[at]
            block[at] = 0
            at += code
        if at != size:
            return None, BAD_ENCODING
        if size < CRC_SIZE + 2:
            return None, BAD_LENGTH
        if _crc32(self._view[1:size]) != _GOOD_RESIDUE:
            return None, BAD_CRC
        return bytes(self._view[1 : size - CRC_SIZE]), None
