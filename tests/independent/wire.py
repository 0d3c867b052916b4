"""Frames, the fields of messages, keys and sealed packets, written from the page's text."""

from __future__ import annotations

import hashlib
import hmac
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from tests.independent.page import COUNTERS, ENUMS, IDS, MESSAGES, Field, Message

Value = int | bytes | str | tuple[int, ...]

MAX_PAYLOAD = 249
MAX_BLOCK = 254
OVERHEAD = 26  # of a sealed packet: 18 bytes before the body, 8 after it

CLEAR_TO_DEVICE, CLEAR_TO_HOST, SEALED_TO_DEVICE, SEALED_TO_HOST = 1, 2, 3, 4
BARE, REQUEST, ANSWER, EVENT, EVENT_ACK, GAP, CLOSE = range(7)
RESOLVE = 1

_INTEGERS = {"u8": "B", "u16": "H", "u32": "I", "i8": "b", "i16": "h", "i32": "i", "enum": "B", "flags": "H"}


class Values(dict[str, Value]):
    """The values of a message's fields, by their names."""

    def number(self, name: str) -> int:
        """A value that is a number."""
        value = self[name]
        assert isinstance(value, int)
        return value

    def data(self, name: str) -> bytes:
        """A value that is bytes."""
        value = self[name]
        assert isinstance(value, bytes)
        return value


class FieldError(ValueError):
    """A field that is not as its table says; 255 stands for the length of the message."""

    def __init__(self, index: int) -> None:
        super().__init__(f"field {index} is not allowed")
        self.index = index


# frames


def encode_frame(payload: bytes) -> bytes:
    """The frame of a payload: COBS(payload + crc) and the delimiter."""
    if not 1 <= len(payload) <= MAX_PAYLOAD:
        raise ValueError("a payload has 1 to 249 bytes")
    data = payload + struct.pack("<I", zlib.crc32(payload))
    return b"".join(bytes([len(part) + 1]) + part for part in data.split(b"\0")) + b"\0"


def decode_block(block: bytes) -> bytes:
    """The payload of a frame without its delimiter; the ValueError of a bad one names the reason."""
    if len(block) > MAX_BLOCK:
        raise ValueError("overrun")
    data = bytearray(block)
    at = 0
    while at < len(data):
        code = data[at]
        if not code:
            raise ValueError("encoding")
        data[at] = 0
        at += code
    if at != len(data):
        raise ValueError("encoding")
    if len(data) - 1 < 5:
        raise ValueError("length")
    payload = bytes(data[1:-4])
    if zlib.crc32(payload) != int.from_bytes(data[-4:], "little"):
        raise ValueError("crc")
    return payload


class FrameDecoder:
    """Finds payloads in chunks of any size, and counts what it drops."""

    def __init__(self, counters: dict[str, int] | None = None) -> None:
        self.counters = dict.fromkeys(COUNTERS, 0) if counters is None else counters
        self._kept = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take a chunk and return the payloads of the good frames that it ends."""
        payloads = []
        for byte in chunk:
            if byte:
                self._kept += bytes([byte])[: MAX_BLOCK + 1 - len(self._kept)]
            elif self._kept:
                try:
                    payloads.append(decode_block(bytes(self._kept)))
                    self.counters["frames_in"] += 1
                except ValueError as reason:
                    self.counters[f"bad_{reason}"] += 1
                self._kept.clear()
        return payloads


# fields


def _allowed(spec: Field, value: Value | None) -> bool:
    """Whether a value is one that the field's table allows."""
    if spec.type in _INTEGERS:
        if not isinstance(value, int) or not spec.low <= value <= spec.high:
            return False
        if spec.type == "enum":
            return value in ENUMS[spec.names]
        return spec.type != "flags" or not value & ~sum(ENUMS[spec.names])
    if isinstance(value, str):
        return spec.type == "text" and spec.low <= len(value.encode()) <= spec.high
    if isinstance(value, tuple):
        return spec.type == "array" and spec.low <= len(value) <= spec.high
    return spec.type in ("bytes", "blob") and isinstance(value, bytes) and spec.low <= len(value) <= spec.high


def encode_fields(message: Message, values: Mapping[str, Value]) -> bytes:
    """The fields' bytes; FieldError names one that is missing or not allowed."""
    if set(values) - {spec.name for spec in message.fields}:
        raise FieldError(255)
    out = b""
    for index, spec in enumerate(message.fields):
        value = values.get(spec.name)
        if not _allowed(spec, value):
            raise FieldError(index)
        if isinstance(value, int):
            out += struct.pack(f"<{_INTEGERS[spec.type]}", value)
        elif isinstance(value, tuple):
            out += struct.pack(f"<B{len(value)}{_INTEGERS[spec.names]}", len(value), *value)
        elif value is not None:
            data = value.encode() if isinstance(value, str) else value
            out += (b"" if spec.type == "bytes" else bytes([len(data)])) + data
    return out


def _fixed(spec: Field) -> int:
    """The size of a field of fixed size; 0 for the others."""
    return spec.high if spec.type == "bytes" else struct.calcsize("<" + _INTEGERS.get(spec.type, ""))


def decode_fields(message: Message, data: bytes, longer: bool = False) -> Values:
    """The fields' values; bytes behind the last one pass if the message may be longer, as frozen ones may."""
    values = Values()
    at = 0

    def take(size: int) -> bytes:
        nonlocal at
        if at + size > len(data):  # only of a field with a length byte, which is named itself
            raise FieldError(index)
        at += size
        return data[at - size : at]

    for index, spec in enumerate(message.fields):
        value: Value
        piece = sum(takewhile(bool, map(_fixed, message.fields[index:])))
        if at + piece > len(data):  # fields of fixed size are read in one piece
            raise FieldError(255)
        if spec.type in _INTEGERS:
            (value,) = struct.unpack(f"<{_INTEGERS[spec.type]}", take(_fixed(spec)))
        elif spec.type == "bytes":
            value = take(spec.high)
        elif spec.type == "array":
            items = f"<{take(1)[0]}{_INTEGERS[spec.names]}"
            value = struct.unpack(items, take(struct.calcsize(items)))
        else:
            value = take(take(1)[0])
            if spec.type == "text":
                try:
                    value = value.decode()
                except UnicodeDecodeError:
                    raise FieldError(index) from None
        if not _allowed(spec, value):
            raise FieldError(index)
        values[spec.name] = value
    if at != len(data) and not longer:
        raise FieldError(255)
    return values


def encode_clear(name: str, values: Mapping[str, Value], direction: int = CLEAR_TO_DEVICE) -> bytes:
    """The payload of a clear message."""
    return bytes([direction, IDS[name]]) + encode_fields(MESSAGES[IDS[name]], values)


def decode_clear(payload: bytes) -> tuple[str, Values]:
    """The name and fields of a clear message; ValueError if it is none, or does not fit."""
    message = MESSAGES.get(payload[1]) if len(payload) > 1 else None
    if message is None or message.kind != "clear":
        raise ValueError("malformed")
    return message.name, decode_fields(message, payload[2:], longer=True)


# keys


def mac(key: bytes, data: bytes, size: int = 32) -> bytes:
    """The first bytes of HMAC-SHA-256."""
    return hmac.new(key, data, hashlib.sha256).digest()[:size]


def provision_proof(key: bytes, nonce: bytes, serial: bytes) -> bytes:
    """What a device proves a new key with."""
    return mac(key, b"provisioned" + nonce + serial, 16)


def slot_key(key: bytes, serial: bytes, slot: int) -> bytes:
    """What a device stores of a person's key."""
    return mac(key, serial + bytes([slot]))


def elevation_proof(
    key: bytes, transcript: bytes, slot: int, message: int, number: int, body: bytes
) -> bytes:
    """What a person's slot key authorises one request with."""
    what = struct.pack("<BBBI", 1, slot, message, number) + hashlib.sha256(body).digest()
    return mac(key, b"elevation" + transcript + what, 16)


def certificate_text(
    house: bytes, key: bytes, until_s: int, person: str, roles: Sequence[str], site: str
) -> bytes:
    """A certificate's text; its id is the first 16 bytes of its hash."""
    names = ",".join(f'"{each}"' for each in roles)
    told = f'{{"house":"{house.hex()}","key":"{key.hex()}","not_after_s":{until_s},"person":"{person}",'
    return f'{told}"roles":[{names}],"site":"{site}","v":1}}'.encode()


def revocations_text(house: bytes, number: int, ids: Sequence[bytes]) -> bytes:
    """What a house signs to revoke certificates."""
    listed = ",".join(f'"{each.hex()}"' for each in ids)
    told = f'{{"house":"{house.hex()}","number":{number},"revoked":[{listed}],"v":1}}'
    return b"sabot revocations 1\n" + told.encode()


def certificate_proof(transcript: bytes, role: int, message: int, number: int, body: bytes) -> bytes:
    """What a person signs to authorise one request."""
    what = struct.pack("<BBI", role, message, number) + hashlib.sha256(body).digest()
    return b"sabot elevation 1\n" + transcript + what


def hide(pad_key: bytes, message: int, number: int, secret: bytes) -> bytes:
    """Hide a key for its way over the wire; the same again brings it back."""
    pad = mac(pad_key, struct.pack("<BI", message, number))
    return bytes(a ^ b for a, b in zip(secret, pad, strict=True))


@dataclass(frozen=True)
class Keys:
    """All that a handshake derives."""

    transcript: bytes
    session: int
    device_proof: bytes
    host_proof: bytes
    to_device: bytes
    to_host: bytes
    pad: bytes

    @classmethod
    def derive(cls, key: bytes, hello: bytes, challenge: bytes) -> Keys:
        """Take the device key and both messages' fields as sent, without way and id."""
        transcript = hashlib.sha256(
            b"sabot session 1" + bytes([len(hello)]) + hello + challenge[16:]
        ).digest()
        return cls(
            transcript,
            int.from_bytes(transcript[:2], "little"),
            mac(key, b"device proof" + transcript, 16),
            mac(key, b"host proof" + transcript, 16),
            mac(key, b"to device" + transcript),
            mac(key, b"to host" + transcript),
            mac(key, b"pad" + transcript),
        )


# packets

_HEADER = struct.Struct("<BHIBBHBBBI")


@dataclass(frozen=True)
class Packet:
    """What a sealed packet says."""

    direction: int
    session: int
    counter: int
    seq: int
    ack: int
    sack: int
    kind: int
    message: int = 0
    flags: int = 0
    request_id: int = 0
    body: bytes = b""

    def seal(self, key: bytes) -> bytes:
        """The payload, with its MAC."""
        *head, _ = vars(self).values()
        data = _HEADER.pack(*head) + self.body
        return data + mac(key, data, 8)

    @classmethod
    def read(cls, payload: bytes) -> Packet:
        """Read a payload of at least 26 bytes, without a look at its MAC."""
        return replace(cls(*_HEADER.unpack_from(payload)), body=payload[_HEADER.size : -8])


def is_sealed_with(payload: bytes, key: bytes) -> bool:
    """Whether a payload's MAC was made with this key."""
    return hmac.compare_digest(mac(key, payload[:-8], 8), payload[-8:])
