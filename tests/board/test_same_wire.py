"""The same seed gives the same talk on the wire, in-process and on the emulated Pico, but for times."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sabot_protocol.codec import CODEC, MessageCodec, enum_number
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.errors import FieldError
from sabot_protocol.frame import Decoder
from sabot_protocol.handshake import ClearExchange
from sabot_protocol.host_protocol import HostProtocol
from sabot_protocol.notifications import EventReceived, RequestAnswered, RequestFailed
from sabot_protocol.session import slot_key
from sabot_protocol.wire_constants import (
    ANSWER,
    CLEAR_TO_DEVICE,
    CLEAR_TO_HOST,
    EVENT,
    EVENT_HEADER_SIZE,
    MAC_SIZE,
    REQUEST,
)
from sabot_simulators.command_sniffer import BODY, KIND, MARK, MESSAGE, NUMBER
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import EmulatedDevice, emulate

SEED = 11
HOST = b"TABLE-PC"
FLOOR = enum_number("Role", "floor")
TABLE = enum_number("Role", "table")
RED, BLUE = enum_number("Back", "red"), enum_number("Back", "blue")
UTC_S = 1_800_000_000
STEP_US = 5_000
LONGEST_US = 60_000_000
BOOT_ID = 4  # bytes of an event's header that are no time
TIMES = ("utc_s", "utc_ms", "left_s")  # fields of answers that are
# How many values of an event are before those that are measured times, or hashes and tags over times
NO_TIMES = {"chain_checkpoint": 3, "roller_times": 2}
SERIAL = 8  # the place of the serial number in an identity

Said = tuple[Any, ...]


class Talk:
    """A host in lock step with a device, and what was said over the cable: everything once, in order."""

    def __init__(self, device: EmulatedDevice) -> None:
        self._device = device
        self._port = device.plug()
        self._random = Random(SEED)
        self._key, self._floor_key = self._random.randbytes(32), self._random.randbytes(32)
        self._host = HostProtocol(self._key, CommandNumbers(HOST), self._random.randbytes, None)
        self._question: ClearExchange | None = None
        self._answers: dict[int, RequestAnswered | RequestFailed] = {}
        self._events: list[tuple[str, Said]] = []
        self._decoders = (Decoder(), Decoder())
        self.log: list[Said] = []

    # -- what is said ---------------------------------------------------------------------------

    def clear(self, name: str, *values: bytes) -> Said:
        """Ask without a session."""
        question = self._question = ClearExchange(CODEC, name, values, self._now_ms())
        self._until(lambda: question.answer is not None)
        self._question = None
        assert question.answer is not None
        return tuple(question.answer)

    def begin(self) -> None:
        """Give it its keys and a time, and let the floor in."""
        self.clear("provision", self._random.randbytes(16), self._key, self._random.randbytes(32))
        self._host.connect(self._now_ms())
        self._until(lambda: self._host.up)
        self.ask("set_clock", UTC_S, 0)
        key = slot_key(self._floor_key, self._serial(), FLOOR)  # the floor's slot has the number of its role
        self.ask("set_key", FLOOR, FLOOR, 7, key)

    def _serial(self) -> bytes:
        said = self._host._peer
        assert said is not None
        return said.serial

    def ask(self, name: str, *values: int | bytes) -> Said | None:
        """A request, by the floor if need be, and its answer; None if it is refused."""
        message = CODEC.named(name)
        by = None if message.roles & 1 << TABLE else (FLOOR, self._floor_key)
        number = self._host.request(message.id, message.pack(values), self._now_ms(), by=by)
        self._until(lambda: number in self._answers)
        answer = self._answers[number]
        assert isinstance(answer, RequestAnswered), answer
        said = CODEC.find(answer.message)
        return None if answer.status or said is None else said.unpack(answer.body)

    def wait_for(self, name: str, *values: int) -> Said:
        """The next event of a name that begins with these values."""
        found: list[Said] = []

        def came() -> bool:
            while self._events and not found:
                told, rest = self._events.pop(0)
                if told == name and rest[: len(values)] == values:
                    found.append(rest)
            return bool(found)

        self._until(came)
        return found[0]

    # -- how --------------------------------------------------------------------------------------

    def _now_ms(self) -> int:
        return self._device.now_us // 1000

    def _until(self, done: Callable[[], bool]) -> None:
        ends = self._device.now_us + LONGEST_US
        while not done():
            assert self._device.now_us < ends, self.log[-5:]
            now = self._now_ms()
            out = self._question.poll(now) if self._question else self._host.poll(now)
            if out:
                self._note(0, bytes(out))
                self._port.receive(bytes(out), now)
            self._device.tick(now)
            self._device.advance(self._device.now_us + STEP_US, 1 << 30)
            data = self._port.poll(self._now_ms())
            if data:
                self._note(1, bytes(data))
                self._hear(bytes(data))

    def _hear(self, data: bytes) -> None:
        if self._question is not None:
            self._question.receive(data)
            return
        self._host.receive(data, self._now_ms())
        for each in self._host.take_notifications():
            if isinstance(each, RequestAnswered | RequestFailed):
                self._answers[each.request_id] = each
            elif isinstance(each, EventReceived):
                message = CODEC.find(each.message)
                assert message is not None
                self._events.append((message.name, message.unpack(each.body)))
                self._host.acknowledge(each.boot_id, each.n)

    def _note(self, way: int, data: bytes) -> None:
        for payload, _ in self._decoders[way].feed(data):
            said = None if payload is None else read(bytes(payload))
            if said is not None and said not in self.log:
                self.log.append(said)


def read(payload: bytes) -> Said | None:
    """What a packet says, without times; None for mere acknowledgements."""
    if payload[0] in (CLEAR_TO_DEVICE, CLEAR_TO_HOST):
        return ("clear", payload[1:].hex())
    kind, number = payload[KIND], int.from_bytes(payload[NUMBER:BODY], "little")
    body, message = payload[BODY:-MAC_SIZE], CODEC.find(payload[MESSAGE])
    if message is None or kind not in (REQUEST, ANSWER, EVENT):
        return None
    if kind == EVENT:
        boot, body = body[:BOOT_ID], body[EVENT_HEADER_SIZE:]
        values = message.unpack(body)
        return ("event", boot.hex(), number, message.name, values[: NO_TIMES.get(message.name, len(values))])
    if kind == ANSWER and payload[MARK]:
        return ("refused", number, payload[MARK], body.hex())
    return ("request" if kind == REQUEST else "answer", number, message.name, values_of(message, body))


def values_of(message: MessageCodec, body: bytes) -> Said:
    """The values of a message, but for times."""
    try:
        values = message.unpack(body)
    except FieldError:
        return (body.hex(),)
    return tuple(value for value, field in zip(values, message.fields, strict=True) if field[0] not in TIMES)


def evening(talk: Talk) -> None:
    """Two decks shuffled, one of them with a nonce of the host's; a round of seven, refusals among it."""
    talk.begin()
    for deck, back in ((1, RED), (2, BLUE)):
        talk.ask("register_deck", deck, back, UTC_S)
    talk.ask("shuffle", 1)
    talk.wait_for("deck_counted", 1)
    talk.wait_for("shoe_changed", 3)
    talk.ask("commit_shuffle", 2)
    talk.ask("shuffle_with", 2, bytes(range(32)))
    talk.wait_for("deck_counted", 2)
    talk.wait_for("shuffler_changed", 4)  # what both halves do at once comes in the order of its times
    talk.ask("open_round", 1, 2)
    talk.ask("open_round", 1, 1)
    talk.ask("close_bets", 1, 7)
    for stack in range(1, 8):
        talk.ask("dispense_stack", 1, stack)
        talk.wait_for("stack_taken", 1, stack)
    talk.ask("end_round", 1)
    talk.wait_for("round_ended", 1)
    talk.wait_for("shoe_changed", 3)
    talk.ask("decks")
    talk.ask("last_round")


def heard(settings: DeviceSettings) -> tuple[bytes, dict[str, list[Said]]]:
    """The device's serial number, and what was said in an evening, by kind."""
    device = emulate(settings, 0)
    try:
        talk = Talk(device)
        serial: bytes = talk.clear("identify")[SERIAL]
        talk.log.clear()
        evening(talk)
    finally:
        device.close()
    by_kind: dict[str, list[Said]] = {}
    for kind, *rest in talk.log:
        by_kind.setdefault(kind, []).append(tuple(rest))
    return serial, by_kind


def test_the_same_seed_gives_the_same_talk_in_process_and_on_the_pico(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EmulatedDevice, "flags", 0)  # they are proved, and the image shows none
    serial, on_pico = heard(DeviceSettings(SEED, firmware="rp2040"))
    _, in_process = heard(DeviceSettings(SEED, serial=serial))
    for kind, said in in_process.items():
        assert on_pico[kind] == said, kind
    assert on_pico.keys() == in_process.keys() >= {"clear", "request", "answer", "event", "refused"}
    assert len(on_pico["event"]) > 40


def test_another_seed_gives_another_talk() -> None:
    """Else the test above would show nothing."""
    (_, one), (_, other) = heard(DeviceSettings(SEED)), heard(DeviceSettings(SEED + 1))
    assert one["clear"] != other["clear"]
    assert one["answer"] != other["answer"]
