"""Captures every frame of a device's traffic for Wireshark.

A thread of its own writes the file, so that a slow or full disk does not delay the traffic.
"""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, BinaryIO

from sabot_driver.credentials import SECRET_MESSAGES
from sabot_driver.transports import Transport
from sabot_protocol import frame
from sabot_protocol.host.capture import CaptureWriter
from sabot_protocol.host.messages import BY_ID, Provision
from sabot_protocol.wire_constants import (
    ANSWER,
    CLEAR_TO_DEVICE,
    HEADER_SIZE,
    KEY_SIZE,
    MAC_SIZE,
    NONCE_SIZE,
    OVERHEAD,
    REQUEST,
    SEALED_TO_DEVICE,
    SEALED_TO_HOST,
)

log = logging.getLogger("sabot")

MAX_WAITING = 10_000  # frames in memory that are not in the file; more are left out of it, and counted
STOP_S = 5.0


class CapturingTransport:
    """A transport that records all traffic of the transport below. Keys in it are overwritten with zeros."""

    def __init__(self, transport: Transport, stream: BinaryIO, utc_us: Callable[[], int]) -> None:
        self._transport = transport
        self.url = transport.url
        self._writer = CaptureWriter(stream)
        self._stream = stream
        self._utc_us = utc_us
        self._lock = threading.Lock()
        self._partial = {True: b"", False: b""}
        self._waiting: SimpleQueue[tuple[bytes, int, bool] | None] = SimpleQueue()
        self._writer_thread: threading.Thread | None = None
        self.frames = 0
        """How many are in the file; all that came, after a close and if nothing failed."""
        self.missed = 0
        """How many are not, because the file could not be written, or not fast enough."""
        self.failure: Exception | None = None
        """Why the file cannot be written."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def open(self) -> None:
        """Open the transport below."""
        self._transport.open()
        if self._writer_thread is None:
            self._writer_thread = threading.Thread(target=self._write_down, name="sabot-capture", daemon=True)
            self._writer_thread.start()

    def read(self) -> bytes:
        """Read, and record what was received."""
        data = self._transport.read()
        if data:
            self._note(data, to_device=False)
        return data

    def write(self, data: bytes) -> None:
        """Record the bytes, and write them."""
        self._note(data, to_device=True)
        self._transport.write(data)

    def wake(self) -> None:
        """Wake the transport below."""
        self._transport.wake()

    def close(self) -> None:
        """Close the transport below, and write the frames that wait."""
        self._transport.close()
        thread, self._writer_thread = self._writer_thread, None
        if thread is not None:
            self._waiting.put(None)
            thread.join(STOP_S)

    def _note(self, data: bytes, to_device: bool) -> None:
        with self._lock:
            *whole, rest = (self._partial[to_device] + data).split(b"\x00")
            self._partial[to_device] = rest[-frame.MAX_PAYLOAD * 2 :]
            for each in whole:
                if each and self._waiting.qsize() < MAX_WAITING:
                    self._waiting.put((each + b"\x00", self._utc_us(), to_device))
                elif each:
                    self.missed += 1

    def _write_down(self) -> None:
        while (each := self._waiting.get()) is not None:
            framed, at_us, to_device = each
            if self.failure is None:
                try:
                    self._writer.add(redacted(framed), at_us, to_device)
                    self.frames += 1
                    continue
                except (OSError, ValueError) as error:
                    self._failed(error)
            self.missed += 1
        try:
            self._stream.flush()
        except (OSError, ValueError) as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        if self.failure is None:
            self.failure = error
            log.warning("the capture ends here; the connection continues: %s", error)


def redacted(framed: bytes) -> bytes:
    """The same frame, without the key if it carries one, and without the MAC over that key.

    A hidden key counts too: who has the device key and the session's handshake can compute its pad.
    """
    for payload, _ in frame.Decoder().feed(framed):
        if payload is None:
            continue
        if payload[:2] == bytes((CLEAR_TO_DEVICE, Provision.ID)):
            return bytes(frame.encode(payload[: 2 + NONCE_SIZE] + bytes(len(payload) - 2 - NONCE_SIZE)))
        if payload[0] in _SEALED and len(payload) >= OVERHEAD + KEY_SIZE and _has_secret(payload):
            kept = len(payload) - KEY_SIZE - MAC_SIZE
            return bytes(frame.encode(payload[:kept] + bytes(KEY_SIZE + MAC_SIZE)))
    return framed


def _has_secret(payload: bytes) -> bool:
    """Whether a sealed packet is a request or an answer whose body ends in a secret."""
    kind, message = payload[_KIND], BY_ID.get(payload[_KIND + 1])
    return kind in (REQUEST, ANSWER) and message is not None and message.NAME in SECRET_MESSAGES


_SEALED = (SEALED_TO_DEVICE, SEALED_TO_HOST)
_KIND = HEADER_SIZE - 7  # kind, message, mark and number end the header
