"""Listening to a line: every frame that passes, as a capture for Wireshark."""

import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from sabot_driver.transports import Transport
from sabot_protocol import frame
from sabot_protocol.host.capture import CaptureWriter
from sabot_protocol.host.messages import Provision
from sabot_protocol.session import CLEAR_TO_DEVICE, NONCE_SIZE


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
    """The same frame, without the key if it carries one."""
    for payload, _ in frame.Decoder().feed(framed):
        if payload is not None and payload[:2] == bytes((CLEAR_TO_DEVICE, Provision.ID)):
            return bytes(frame.encode(payload[: 2 + NONCE_SIZE] + bytes(len(payload) - 2 - NONCE_SIZE)))
    return framed
