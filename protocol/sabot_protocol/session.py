"""Sealed packets: each proves its sender and session, and is accepted once.

A payload starts with one byte that says which way it goes and whether it is sealed. A sealed one is

    direction u8, session u16, counter u32, seq u8, ack u8, sack u16,
    kind u8, message u8, flags u8, request_id u32, body, mac 8 bytes

in little-endian order. The counter rises with every transmission, so a repeated, delayed or
reflected packet is never taken for a new one; the MAC covers everything before it.
"""

import struct
from hashlib import sha256

from sabot_protocol.mac import Mac, hmac_sha256, mac_matches
from sabot_protocol.wire_constants import (
    HEADER,
    HEADER_SIZE,
    KEY_SIZE,
    MAC_SIZE,
    OVERHEAD,
    PROOF_SIZE,
    SEALED_TO_DEVICE,
    SEALED_TO_HOST,
)

# Why a packet was dropped; each is a counter of the same name.
MALFORMED = "malformed"  # too short, or an unknown first byte
REFLECTED = "reflected"  # one of our own, come back
FOREIGN = "foreign"  # of another session
BAD_MAC = "bad_mac"  # changed, or made without the key
REPLAYED = "replayed"  # authentic, but not newer than the last one

_pack = struct.pack
_pack_into = struct.pack_into
_unpack_from = struct.unpack_from


def transcript(hello: bytes, challenge: bytes) -> bytes:
    """The 32 bytes that stand for one handshake.

    ``hello`` and ``challenge`` are the two messages' fields as sent, the challenge without its
    proof, so the keys depend on everything that both sides told of themselves.
    """
    return sha256(b"sabot session 1" + bytes((len(hello),)) + hello + challenge).digest()


def device_proof(key: bytes, transcript_hash: bytes) -> bytes:
    """What a device shows to prove that it has the key."""
    return hmac_sha256(key, b"device proof" + transcript_hash)[:PROOF_SIZE]


def host_proof(key: bytes, transcript_hash: bytes) -> bytes:
    """What a host shows to prove that it has the key."""
    return hmac_sha256(key, b"host proof" + transcript_hash)[:PROOF_SIZE]


def slot_key(person_key: bytes, serial: bytes, slot: int) -> bytes:
    """The key that a device stores for a person: good for this device and this slot only.

    ``serial`` must come from a proved handshake, or an impostor would be given another table's key.
    """
    return hmac_sha256(person_key, serial + bytes((slot,)))


def elevation_proof(
    key: bytes,
    transcript_hash: bytes,
    scheme: int,
    slot: int,
    message: int,
    request_id: int,
    body_sha256: bytes,
) -> bytes:
    """What a person's slot key shows to authorise one request of one session."""
    what = _pack("<BBBI", scheme, slot, message, request_id)
    return hmac_sha256(key, b"elevation" + transcript_hash + what + body_sha256)[:PROOF_SIZE]


def provision_proof(key: bytes, nonce: bytes, serial: bytes) -> bytes:
    """What a device shows to prove that it has taken a new key."""
    return hmac_sha256(key, b"provisioned" + nonce + serial)[:PROOF_SIZE]


class Session:
    """One proved session's two keys and counters, at one end."""

    def __init__(self, key: bytes, transcript_hash: bytes, is_host: bool) -> None:
        self.transcript = transcript_hash
        self.id = session_id(transcript_hash)
        to_device = Mac(hmac_sha256(key, b"to device" + transcript_hash))
        to_host = Mac(hmac_sha256(key, b"to host" + transcript_hash))
        self._pad = hmac_sha256(key, b"pad" + transcript_hash)
        if is_host:
            self._seal, self._open = to_device, to_host
            self._send_direction, self._receive_direction = SEALED_TO_DEVICE, SEALED_TO_HOST
        else:
            self._seal, self._open = to_host, to_device
            self._send_direction, self._receive_direction = SEALED_TO_HOST, SEALED_TO_DEVICE
        self.sent = 0
        self.received = 0
        self.head: tuple[int, ...] = ()  # of the packet opened last: direction, session, counter, seq, ...
        self.body: bytes | memoryview = b""
        self.dropped = ""

    def seal(
        self, seq: int, ack: int, sack: int, kind: int, message: int, flags: int, request_id: int, body: bytes
    ) -> bytearray:
        """One transmission, with a counter of its own."""
        self.sent += 1
        end = HEADER_SIZE + len(body)
        packet = bytearray(end + MAC_SIZE)
        _pack_into(
            HEADER,
            packet,
            0,
            self._send_direction,
            self.id,
            self.sent,
            seq,
            ack,
            sack,
            kind,
            message,
            flags,
            request_id,
        )
        packet[HEADER_SIZE:end] = body
        _pack_into("8s", packet, end, self._seal.digest(memoryview(packet)[:end]))  # its first 8 bytes
        return packet

    def hide(self, message: int, request_id: int, secret: bytes) -> bytes:
        """32 secret bytes hidden for their way to the device, or shown again: the call undoes itself.

        Each pad is used for one request of one session; a request sent again in another session gets another.
        """
        pad = hmac_sha256(self._pad, _pack("<BI", message, request_id))
        return bytes([pad[index] ^ secret[index] for index in range(KEY_SIZE)])

    def open(self, packet: bytes | memoryview) -> bool:
        """Whether the packet may be used; if so ``head`` and ``body`` hold it, if not ``dropped`` says why.

        The body is a part of the packet, and only good as long as that is.
        """
        size = len(packet)
        if size < OVERHEAD:
            self.dropped = MALFORMED
            return False
        head = _unpack_from(HEADER, packet)
        direction = head[0]
        if direction != self._receive_direction:
            self.dropped = REFLECTED if direction == self._send_direction else MALFORMED
            return False
        if head[1] != self.id:
            self.dropped = FOREIGN
            return False
        end = size - MAC_SIZE
        if not mac_matches(packet, end, self._open.digest(packet[:end])):
            self.dropped = BAD_MAC
            return False
        counter = head[2]
        if counter <= self.received:
            self.dropped = REPLAYED
            return False
        self.received = counter
        self.head = head
        self.body = packet[HEADER_SIZE:end]
        return True


def session_id(transcript_hash: bytes) -> int:
    """The short number that tells one session's packets from another's."""
    return transcript_hash[0] | transcript_hash[1] << 8
