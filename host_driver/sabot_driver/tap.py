"""Listening to a line: every frame that passes, as a capture for Wireshark."""

import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from sabot_driver.credentials import SECRET_MESSAGES
from sabot_driver.transports import Transport
from sabot_protocol import frame
from sabot_protocol.host.capture import CaptureWriter
from sabot_protocol.host.messages import BY_ID, Provision
from sabot_protocol.link import REQUEST
from sabot_protocol.session import (
    CLEAR_TO_DEVICE,
    HEADER_SIZE,
    KEY_SIZE,
    MAC_SIZE,
    NONCE_SIZE,
    OVERHEAD,
    SEALED_TO_DEVICE,
)


class Tap:
    """A transport that passes everything on and writes it down. A key on its way is blotted out."""

    def __init__(self, way: Transport, stream: BinaryIO, utc_us: Callable[[], int]) -> None:
        self._way = way
        self.url = way.url
        self._writer = CaptureWriter(stream)
        self._stream = stream
        self._utc_us = utc_us
        self._lock = threading.Lock()
        self._partial = {True: b"", False: b""}
        self.frames = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._way, name)

    def open(self) -> None:
        """Open the line below."""
        self._way.open()

    def read(self, seconds: float | None = None) -> bytes:
        """Read, and note what came."""
        data = self._way.read(seconds)
        if data:
            self._note(data, to_device=False)
        return data

    def write(self, data: bytes) -> None:
        """Note what goes, and write it."""
        self._note(data, to_device=True)
        self._way.write(data)

    def wake(self) -> None:
        """Wake the line below."""
        self._way.wake()

    def close(self) -> None:
        """Close the line below; the capture is complete as far as it goes."""
        self._way.close()
        with self._lock:
            if not self._stream.closed:
                self._stream.flush()

    def _note(self, data: bytes, to_device: bool) -> None:
        with self._lock:
            if self._stream.closed:
                return
            *whole, rest = (self._partial[to_device] + data).split(b"\x00")
            self._partial[to_device] = rest[-frame.MAX_PAYLOAD * 2 :]
            for each in whole:
                if each:
                    self.frames += 1
                    self._writer.add(redacted(each + b"\x00"), self._utc_us(), to_device)


def redacted(framed: bytes) -> bytes:
    """The same frame, without the key if it carries one, and without the MAC over that key.

    A hidden key counts too: who has the device key and the session's handshake can compute its pad.
    """
    for payload, _ in frame.Decoder().feed(framed):
        if payload is None:
            continue
        if payload[:2] == bytes((CLEAR_TO_DEVICE, Provision.ID)):
            return bytes(frame.encode(payload[: 2 + NONCE_SIZE] + bytes(len(payload) - 2 - NONCE_SIZE)))
        if payload[0] == SEALED_TO_DEVICE and len(payload) >= OVERHEAD + KEY_SIZE and _has_secret(payload):
            kept = len(payload) - KEY_SIZE - MAC_SIZE
            return bytes(frame.encode(payload[:kept] + bytes(KEY_SIZE + MAC_SIZE)))
    return framed


def _has_secret(payload: bytes) -> bool:
    """Whether a sealed packet is a request whose body ends in a secret."""
    kind, message = payload[_KIND], BY_ID.get(payload[_KIND + 1])
    return kind == REQUEST and message is not None and message.NAME in SECRET_MESSAGES


_KIND = HEADER_SIZE - 7  # kind, message, mark and number end the header
