"""What the host's end and each port of the device have in common: frames in, sorted by their first byte."""

from sabot_protocol.frame import Decoder
from sabot_protocol.record import Record
from sabot_protocol.session import CLEAR_TO_DEVICE, CLEAR_TO_HOST, SEALED_TO_DEVICE, SEALED_TO_HOST


class WireEnd:
    """One end of a cable."""

    def __init__(self, is_host: bool) -> None:
        self.record = Record()
        self._decoder = Decoder()
        to_us = (CLEAR_TO_HOST, SEALED_TO_HOST)
        to_them = (CLEAR_TO_DEVICE, SEALED_TO_DEVICE)
        if not is_host:
            to_us, to_them = to_them, to_us
        self._clear_way, self._sealed_way = to_us
        self._own_ways = to_them

    def receive(self, data: bytes, now: int) -> None:
        """Take bytes from the cable."""
        decoder = self._decoder
        decoder.put(data)
        while decoder.next():
            self._frame(now)

    def _frame(self, now: int) -> None:
        """Deal with the frame that the decoder holds."""
        record = self.record
        decoder = self._decoder
        if decoder.bad is not None:
            record.count("bad_" + decoder.bad)
            return
        record.frames_in += 1
        payload = decoder.payload
        way = payload[0]
        if way == self._sealed_way:
            self._sealed(payload, now)
        elif way == self._clear_way:
            self._clear(bytes(payload), now)
        elif way in self._own_ways:
            record.reflected += 1
        else:
            record.malformed += 1

    def _sealed(self, payload: memoryview, now: int) -> None:
        raise NotImplementedError

    def _clear(self, payload: bytes, now: int) -> None:
        raise NotImplementedError
