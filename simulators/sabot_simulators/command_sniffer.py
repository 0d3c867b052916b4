"""Reads commands and answers from the bytes on a cable, for firmware that cannot report its commands.

Packets are authenticated, not encrypted. Each command and each result is reported once, however often it is
retransmitted and over however many cables.
"""

from typing import Any

from sabot_protocol.codec import CODEC
from sabot_protocol.errors import FieldError
from sabot_protocol.frame import Decoder
from sabot_protocol.wire_constants import (
    ANSWER,
    CLEAR_TO_DEVICE,
    MAC_SIZE,
    OVERHEAD,
    REQUEST,
    RESOLVE,
    SEALED_TO_DEVICE,
    SEALED_TO_HOST,
)
from sabot_simulators.emulated_device import EmulatedDevice
from sabot_simulators.simulated_people import WATCHED_COMMANDS

SESSION = slice(1, 3)
KIND, MESSAGE, MARK, NUMBER, BODY = 11, 12, 13, 14, 18  # offsets in a sealed packet
HELLO = bytes((CLEAR_TO_DEVICE, CODEC.named("hello").id))
HOST = slice(18, 26)  # of a hello: way, message, nonce, host
IDS = {CODEC.named(name).id: name for name in WATCHED_COMMANDS}
REMEMBERED = 256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_protocol.codec import Values


class CommandSniffer:
    """Reports to a device the commands that its people have to do with."""

    def __init__(self, device: EmulatedDevice) -> None:
        self._device = device
        self._open: dict[tuple[bytes, int], tuple[str, Values]] = {}  # by host and number: not answered yet
        self._answered: dict[tuple[bytes, int], None] = {}

    def request(self, host: bytes, payload: bytes) -> bool:
        """A request on its way to the device; whether the people did anything for it."""
        name = IDS.get(payload[MESSAGE])
        key = (host, _number(payload))
        if name is None or key in self._answered or payload[MARK] & RESOLVE:
            return False
        try:
            values = CODEC.named(name).unpack(payload[BODY:-MAC_SIZE])
        except FieldError:
            return False
        _remember(self._open, key, (name, values))
        return self._device.before_command(name, values)

    def answer(self, host: bytes, payload: bytes) -> None:
        """An answer on its way to the host."""
        key = (host, _number(payload))
        asked = self._open.pop(key, None)
        if asked is None:
            return
        _remember(self._answered, key, None)
        if payload[MARK]:
            self._device.command_refused()
        else:
            self._device.command_accepted(*asked)


class CableTap:
    """Decodes both directions of one cable."""

    def __init__(self, overheard: CommandSniffer) -> None:
        self._overheard = overheard
        self._host = b""  # whose numbers these are
        self._session = b""  # the id of the session that the device has proved here
        self._to_device = Decoder()
        self._to_host = Decoder()

    def host_said(self, data: bytes) -> bool:
        """Bytes on their way to the device; whether the people did anything for them."""
        did = False
        for payload, _ in self._to_device.feed(data):
            if payload is None:
                continue
            if payload[:2] == HELLO:
                self._host = payload[HOST]
            elif _is_sealed(payload, SEALED_TO_DEVICE, REQUEST) and payload[SESSION] == self._session:
                did |= self._overheard.request(self._host, payload)
        return did

    def device_said(self, data: bytes) -> None:
        """Bytes on their way to the host."""
        for payload, _ in self._to_host.feed(data):
            if payload is None or len(payload) < OVERHEAD or payload[0] != SEALED_TO_HOST:
                continue
            self._session = payload[SESSION]  # the device seals only for a host that has proved its key
            if payload[KIND] == ANSWER:
                self._overheard.answer(self._host, payload)


def _is_sealed(payload: bytes, way: int, kind: int) -> bool:
    return payload[0] == way and len(payload) >= OVERHEAD and payload[KIND] == kind


def _remember(kept: "dict[tuple[bytes, int], Any]", key: tuple[bytes, int], value: object) -> None:
    """Keep it, and not more than a link can ever send again."""
    kept[key] = value
    if len(kept) > REMEMBERED:
        del kept[next(iter(kept))]


def _number(payload: bytes) -> int:
    return int.from_bytes(payload[NUMBER:BODY], "little")
