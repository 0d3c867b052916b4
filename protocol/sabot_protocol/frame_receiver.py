"""What the host's end and each port of the device have in common: frames in, sorted by their first byte."""

from sabot_protocol.diagnostics import Diagnostics
from sabot_protocol.frame import Decoder
from sabot_protocol.wire_constants import CLEAR_TO_DEVICE, CLEAR_TO_HOST, SEALED_TO_DEVICE, SEALED_TO_HOST


class FrameReceiver:
    """One end of a cable."""

    def __init__(self, is_host: bool) -> None:
        self.diagnostics = Diagnostics()
        self._decoder = Decoder()
        to_us = (CLEAR_TO_HOST, SEALED_TO_HOST)
        to_them = (CLEAR_TO_DEVICE, SEALED_TO_DEVICE)
        if not is_host:
            to_us, to_them = to_them, to_us
        self._clear_direction, self._sealed_direction = to_us
        self._own_directions = to_them

    def receive(self, data: bytes, now: int) -> None:
        """Take bytes from the cable."""
        decoder = self._decoder
        decoder.append(data)
        while decoder.next_frame():
            self._dispatch_frame(now)

    def _dispatch_frame(self, now: int) -> None:
        """Handle the frame that the decoder holds."""
        diagnostics = self.diagnostics
        decoder = self._decoder
        if decoder.error is not None:
            diagnostics.count("bad_" + decoder.error)
            return
        diagnostics.frames_in += 1
        payload = decoder.payload
        direction = payload[0]
        if direction == self._sealed_direction:
            self._receive_sealed(payload, now)
        elif direction == self._clear_direction:
            self._receive_clear(bytes(payload), now)
        elif direction in self._own_directions:
            diagnostics.reflected += 1
        else:
            diagnostics.malformed += 1

    def _receive_sealed(self, payload: memoryview, now: int) -> None:
        raise NotImplementedError

    def _receive_clear(self, payload: bytes, now: int) -> None:
        raise NotImplementedError
