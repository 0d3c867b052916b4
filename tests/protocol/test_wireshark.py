"""Captures, and the generated Wireshark dissector run by the real tshark against the codec's own reading."""

import io
import os
import random
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.sweeps import Amount

from sabot_protocol import frame, meanings, schema, session, wire_constants
from sabot_protocol.codec import CODEC, MessageCodec, enum_number
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import Caller, DeviceIdentity, DeviceProtocol, Executor
from sabot_protocol.errors import FieldError, Refusal
from sabot_protocol.generate.wireshark import READ_AS, render
from sabot_protocol.handshake import ClearExchange
from sabot_protocol.host.capture import CaptureDamaged, CapturedFrame, CaptureWriter, read_capture
from sabot_protocol.host_protocol import HostProtocol
from sabot_protocol.record_store import RecordStore
from sabot_protocol.wire_constants import EVENT_HEADER, EVENT_HEADER_SIZE, RESOLVE

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("tshark")]  # whether it runs scripts is tried once

ROOT = Path(__file__).parents[2]
DISSECTOR = ROOT / "protocol" / "wireshark" / "sabot.lua"
PAGE = ROOT / "docs" / "wireshark.md"
KEY = bytes(range(32))
START_US = 1_790_000_000_000_000

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


# -- tshark -----------------------------------------------------------------------------------------------


@dataclass
class Dissected:
    """One packet as tshark reads it: each field's values, and the words it shows them with."""

    values: dict[str, list[str]] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)
    outbound: bool | None = None


def run(capture: Path, script: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run tshark on a capture, with no settings or plugins of the user's."""
    command = ["tshark", "-r", str(capture), "-X", f"lua_script:{script}", *arguments]
    settings = {**os.environ, "HOME": str(capture.parent), "WIRESHARK_CONFIG_DIR": str(capture.parent)}
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=settings, check=False)


@cache
def runs_scripts() -> bool:
    """Whether tshark runs Lua scripts here: 4.4 does not for root. It is tried once, which takes a second."""
    with tempfile.TemporaryDirectory() as folder:
        capture, probe = write(Path(folder) / "one.pcapng", FRAMES[:1]), Path(folder) / "probe.lua"
        probe.write_text('print("a script runs")')
        return "a script runs" in run(capture, probe, "-c", "1").stdout


def tshark(capture: Path, *arguments: str) -> str:
    """What tshark prints with our dissector. Skips where it runs no scripts at all."""
    if not runs_scripts():
        pytest.skip("tshark runs no Lua scripts here: run the tests as another user than root")
    done = run(capture, DISSECTOR, *arguments)
    assert done.returncode == 0, done.stderr
    assert "lua" not in done.stderr.lower(), done.stderr
    assert "Lua Error" not in done.stdout
    return done.stdout


def dissect(capture: Path, *arguments: str) -> list[Dissected]:
    """Every packet of a capture, with all its fields."""
    packets = []
    for packet in ElementTree.fromstring(tshark(capture, "-T", "pdml", *arguments)):
        found = Dissected()
        for each in packet.iter("field"):
            name, shown = each.get("name", ""), each.get("show", "")
            if name == "frame.packet_flags_direction":
                found.outbound = int(shown, 0) == 2
            if name.startswith("sabot.") and not name.startswith("sabot.expert."):
                found.values.setdefault(name, []).append({"True": "1", "False": "0"}.get(shown, shown))
                found.words.setdefault(name, []).append(each.get("showname", ""))
        packets.append(found)
    return packets


def infos(capture: Path, *arguments: str) -> list[str]:
    """The Info column of every packet."""
    return tshark(capture, "-o", 'gui.column.format:"Info","%i"', *arguments).splitlines()


def ends(capture: Path, *arguments: str) -> list[list[str]]:
    """The Source and Destination columns of every packet."""
    columns = 'gui.column.format:"Source","%s","Destination","%d"'
    lines = tshark(capture, "-T", "tabs", "-o", columns, *arguments).splitlines()
    return [[cell.strip() for cell in line.split("\t") if cell.strip(" \u2192")] for line in lines]


def write(path: Path, frames: Iterable[CapturedFrame]) -> Path:
    """A capture file with these frames."""
    with path.open("wb") as stream:
        writer = CaptureWriter(stream)
        for each in frames:
            writer.add(each.frame, each.at_us, bool(each.to_device))
    return path


# -- what the project's own code reads in a frame ---------------------------------------------------------


def expected(wire: bytes) -> dict[str, list[str]]:
    """Every field the dissector must show for a good frame, and no other."""
    ((payload, why),) = frame.Decoder().feed(wire)
    assert payload is not None, why
    (crc,) = struct.unpack("<I", unstuffed(wire)[-4:])
    fields = {"sabot.crc": [f"0x{crc:08x}"], "sabot.direction": [str(payload[0])]}
    if payload[0] in (wire_constants.CLEAR_TO_DEVICE, wire_constants.CLEAR_TO_HOST):
        message = CODEC.find(payload[1])
        assert message is not None
        fields["sabot.message"] = [str(message.id)]
        fields.update(values_of(message, message.name, payload[2:]))
        return fields
    header = struct.unpack_from(wire_constants.HEADER, payload)
    body = payload[wire_constants.HEADER_SIZE : -wire_constants.MAC_SIZE]
    names = ("session", "counter", "seq", "ack", "sack", "kind", "message", "flags", "request_id")
    for name, value in zip(names, header[1:], strict=True):
        fields["sabot." + name] = [str(value)]
    fields["sabot.mac"] = [payload[-wire_constants.MAC_SIZE :].hex(":")]
    kind, id, mark, number = header[6:]
    fields.update(body_of(kind, id, mark, number, body))
    return fields


def body_of(kind: int, id: int, mark: int, number: int, body: bytes) -> dict[str, list[str]]:
    """The fields of a sealed packet's body and of what its mark means."""
    fields: dict[str, list[str]] = {}
    message, prefix = CODEC.find(id), ""
    if kind == wire_constants.REQUEST:
        fields["sabot.resolve"] = [str(mark & RESOLVE)]
        if mark & RESOLVE and not body:
            return fields
    elif kind == wire_constants.ANSWER:
        fields["sabot.status"] = [str(mark)]
        if mark:
            message, prefix = CODEC.error(mark), "error."
    elif kind == wire_constants.EVENT:
        fields["sabot.event.clock"] = [str(mark)]
        fields.update(integers(EVENT_HEADER, body, "event", ("boot_id", "ticks_ms", "utc_s", "utc_ms")))
        body = body[EVENT_HEADER_SIZE:]
    elif kind == wire_constants.EVENT_ACK:
        return integers("<I", body, "event_ack", ("boot_id",))
    elif kind == wire_constants.GAP:
        fields["sabot.gap.reason"], fields["sabot.gap.size"] = [str(mark)], [str(number)]
        fields.update(integers("<IIII", body, "gap", ("from_boot", "from_n", "to_boot", "to_n")))
        return fields
    else:
        return fields
    assert message is not None
    fields.update(values_of(message, prefix + message.name, body))
    return fields


def integers(format: str, body: bytes, prefix: str, names: Iterable[str]) -> dict[str, list[str]]:
    """A struct's integers as fields."""
    values = struct.unpack_from(format, body)
    return {f"sabot.{prefix}.{name}": [str(value)] for name, value in zip(names, values, strict=True)}


def values_of(message: MessageCodec, prefix: str, body: bytes) -> dict[str, list[str]]:
    """A message's values, as the codec unpacks them and as tshark prints them."""
    fields: dict[str, list[str]] = {}
    flag_sets: dict[str, Any] = dict(schema.FLAGS)
    for row, value in zip(message.fields, message.unpack(body), strict=True):
        name = f"sabot.{prefix}.{row[0]}"
        flags = flag_sets.get(row[2] if row[1] == "flags" else READ_AS.get((prefix, row[0]), ""), ())
        if isinstance(value, bytes):
            fields[name] = [value.hex(":")]
        elif isinstance(value, tuple):
            if value:  # a list without items is shown by nothing
                fields[name] = [str(item) for item in value]
        else:
            fields[name] = [f"0x{value:04x}" if flags else str(value)]
        for flag, bit in flags:
            fields[f"{name}.{flag}"] = [str(int(value & bit != 0))]
    return fields


def unstuffed(wire: bytes) -> bytes:
    """A frame's payload and CRC."""
    block, at, data = wire[:-1], 0, b""
    while at < len(block):
        data += block[at + 1 : at + block[at]] + b"\0"
        at += block[at]
    return data[:-1]


# -- a real conversation ----------------------------------------------------------------------------------


class Table(Executor):
    """Deals stack 2 of round 5 and nothing else."""

    device: DeviceProtocol

    def execute(self, name: str, values: tuple[Any, ...], caller: Caller) -> tuple[Any, ...]:
        """Carry out dispense_stack; refuse the rest with details."""
        if name == "dispense_stack" and values == (5, 2):
            self.device.emit("stack_dispensed", 5, 2, 3)
            self.device.emit("buttons", 3)
            return ()
        raise Refusal("stale", (5, 1))


class Conversation:
    """Both ends on one cable, in virtual time, with every frame kept."""

    def __init__(self) -> None:
        self.random = random.Random(7).randbytes
        self.memory = RecordStore()
        self.now = 0
        self.frames: list[CapturedFrame] = []
        self.boot()
        self.host = HostProtocol(KEY, CommandNumbers(b"HOSTID01"), self.random)

    def boot(self) -> None:
        """Switch the device on."""
        table = Table()
        identity = DeviceIdentity(b"SERIAL01", "sabot", "0.1 é", 2)
        self.device = DeviceProtocol(identity, self.memory, table, self.random, self.now, event_capacity=6)
        table.device = self.device
        self.port = DevicePort(self.device)

    def ask_clear(self, name: str, *values: Any) -> ClearExchange:
        """Ask outside a session."""
        question = ClearExchange(CODEC, name, values, self.now)
        self.carry(question.poll(self.now), True)
        question.receive(self.carry(self.port.poll(self.now), False))
        return question

    def request(self, name: str, *values: Any) -> int:
        """Ask in the session, and let both ends talk until it is quiet."""
        number = self.host.request(CODEC.named(name).id, CODEC.pack(name, *values), self.now)
        self.talk()
        return number

    def talk(self) -> None:
        """Let both ends talk until delayed acknowledgements are out as well."""
        for _ in range(40):
            self.now += 5
            self.carry(self.host.poll(self.now), True)
            self.host.receive(self.carry(self.port.poll(self.now), False), self.now)
        self.host.take_notifications()

    def carry(self, data: bytes, to_device: bool) -> bytes:
        """Bytes over the cable, kept frame by frame."""
        for part in data.split(b"\0")[:-1]:
            self.frames.append(CapturedFrame(part + b"\0", START_US + self.now * 1000, to_device))
        if to_device:
            self.port.receive(data, self.now)
        return data


def conversation() -> list[CapturedFrame]:
    """Everything a table's day has: first key, session, commands, refusals, lost events, a restart."""
    wire = Conversation()
    assert wire.ask_clear("identify").answer is not None
    wire.host.connect(wire.now)
    wire.talk()  # refused: it has no key yet
    assert wire.ask_clear("reset_statement", bytes(16), b"").answer is not None
    assert wire.ask_clear("provision", bytes(16), KEY, bytes(32)).answer is not None
    wire.host.connect(wire.now)
    wire.talk()
    assert wire.host.up
    wire.request("set_clock", 1790000000, 250)
    wire.request("status")
    dispensed = wire.request("dispense_stack", 5, 2)
    wire.request("dispense_stack", 5, 2)
    wire.request("open_round", 6, 1)  # refused as stale
    wire.request("remove_deck", 5, enum_number("RemoveReason", "hours"))  # refused: not the floor
    wire.request("counters")
    wire.request("trace", 0)
    wire.host.resolve(dispensed, CODEC.named("dispense_stack").id, wire.host.memory_id, wire.now)
    wire.talk()
    for stack in range(1, 10):  # more than the device keeps
        wire.device.emit("stack_taken", 5, stack)
    wire.talk()
    wire.host.acknowledge(*wire.host.position)
    wire.talk()
    wire.device.emit("buttons", 1)  # lost with the restart
    wire.boot()
    wire.host.request(CODEC.named("status").id, b"", wire.now)
    for _ in range(8):
        wire.talk()
    assert wire.host.up
    wire.carry(wire.host.close(wire.now), True)
    return wire.frames


def sealed(kind: int, message: int, mark: int, number: int, body: bytes) -> bytes:
    """One sealed packet as a frame; events, gaps and answers go to the host."""
    to_device = kind in (wire_constants.REQUEST, wire_constants.EVENT_ACK)
    one = session.Session(KEY, bytes(range(50, 82)), to_device)
    return bytes(frame.encode(one.seal(number & 255, 200, 0x8001, kind, message, mark, number, body)))


def examples(rows: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Values for a message: every limit, every member of every enum, every flag."""
    columns = [list(choices(row)) for row in rows]
    for turn in range(max((len(column) for column in columns), default=1)):
        yield tuple(column[turn % len(column)] for column in columns)


def choices(row: tuple[Any, ...]) -> Iterator[Any]:
    """Values for a field, both ends of what is allowed first."""
    type = row[1]
    if type == "enum":
        yield from CODEC.enum_values(row[2])
    elif type == "flags":
        yield from (0, CODEC.flag_mask(row[2]), *(bit for _, bit in dict(schema.FLAGS)[row[2]]))
    elif type == "bytes":
        yield from (bytes(row[2]), bytes(each & 0xFF for each in range(200, 200 + row[2])))
    elif type == "blob":
        yield from (bytes(range(row[2])), bytes(row[3]))
    elif type == "text":
        yield from ("x" * row[2], "é" * (row[3] // 2), "Öffne die Tür"[: row[3]])
    elif type == "array":
        yield from ((row[5],) * row[3], tuple(row[6] - index for index in range(row[4])))
    else:
        yield from (row[2], row[3])
        yield from range(max(row[2] + 1, 0), min(row[3], 24))  # every member of an enum it may stand for


def carrying(message: MessageCodec, turn: int, number: int, body: bytes) -> bytes:
    """A message's fields, or an error's details, in a frame of the kind they travel in."""
    if message.kind == "clear":
        return bytes(frame.encode(bytes((1 + turn % 2, message.id)) + body))
    if message.kind == "error":
        return sealed(wire_constants.ANSWER, CODEC.named("shuffle").id, message.id, number, body)
    if message.kind == "event":
        head = struct.pack(EVENT_HEADER, 0xFFFFFFFE, 0x3FFFFFFF, 1790000000, 999)
        return sealed(wire_constants.EVENT, message.id, turn % 3, number, head + body)
    return sealed(
        wire_constants.ANSWER if message.kind == "answer" else wire_constants.REQUEST,
        message.id,
        0,
        number,
        body,
    )


def every_message() -> list[bytes]:
    """Every message and every error of the schema, with all their limits, as frames."""
    frames = []
    messages = [CODEC.named(row[1]) for row in schema.MESSAGES]
    for message in (*messages, *(CODEC.error_named(row[1]) for row in schema.ERRORS)):
        for turn, values in enumerate(examples(message.fields)):
            frames.append(carrying(message, turn, 0xFFFFFFFF - turn, message.pack(values)))
    return frames


def captured(frames: Iterable[bytes]) -> Iterator[CapturedFrame]:
    """Frames a millisecond apart, going where they say they go."""
    for at_ms, wire in enumerate(frames):
        yield CapturedFrame(wire, START_US + at_ms * 1000, (wire[1:2] or b"\0")[0] % 2 == 1)


# -- the dissector ----------------------------------------------------------------------------------------


def test_the_checked_in_dissector_is_the_schema_s() -> None:
    assert DISSECTOR.read_text(encoding="utf-8") == render(), "write it again: see docs/wireshark.md"


def test_every_number_that_stands_for_a_name_is_read_so() -> None:
    names = {name for name, _ in (*schema.ENUMS, *schema.FLAGS)}
    owned = [(row[1], each) for row in schema.MESSAGES for each in row[5]]
    owned += [("error." + row[1], each) for row in schema.ERRORS for each in row[2]]
    plain = {(owner, each[0]) for owner, each in owned if each[1] not in ("enum", "flags")}
    texts = {**meanings.FIELDS, **{"error." + key: text for key, text in meanings.DETAILS.items()}}
    for key, text in texts.items():
        owner, _, name = key.rpartition(".")
        found = re.search(r"(?:number|bits) of (?:an? |the )?([A-Z]\w+)", text)
        if found and found[1] in names and (owner, name) in plain:
            assert READ_AS.get((owner, name)) == found[1], key
    for owner, name in READ_AS:
        assert owner == "" or (owner, name) in plain, "%s has no plain number %s" % (owner, name)


@needs_tshark
def test_a_conversation_is_shown_as_the_ends_mean_it(tmp_path: Path) -> None:
    frames = conversation()
    packets = dissect(write(tmp_path / "day.pcapng", frames))
    assert len(packets) == len(frames)
    for each, packet in zip(frames, packets, strict=True):
        assert packet.values == expected(each.frame)
        assert packet.outbound is each.to_device
    kinds = {packet.values["sabot.kind"][0] for packet in packets if "sabot.kind" in packet.values}
    assert kinds == {"0", "1", "2", "3", "4", "5", "6"}
    clear = {
        packet.values["sabot.message"][0] for packet in packets if packet.values["sabot.direction"][0] in "12"
    }
    assert clear == {str(row[0]) for row in schema.MESSAGES if row[2] == "clear"}
    assert {packet.values.get("sabot.resolve", ["0"])[0] for packet in packets} == {"0", "1"}
    gaps = [packet.words["sabot.gap.reason"][0] for packet in packets if "sabot.gap.reason" in packet.values]
    assert set(gaps) == {"reason: overflow (1)", "reason: reboot (2)"}


@needs_tshark
def test_the_info_column_reads_like_a_log(tmp_path: Path) -> None:
    lines = infos(write(tmp_path / "day.pcapng", conversation()))
    for line in (
        "CLEAR identify",
        "REQUEST #2 dispense_stack round_id=5 stack=2",
        "ANSWER #2 done",
        "ANSWER #4 open_round refused: stale round_id=5 stack=1",
        "ANSWER #5 remove_deck refused: wrong_role role=table",
        "REQUEST #2 (resolve only) dispense_stack",
        "EVENT 1:1 booted reason=power",
        "CLOSE",
        "EVENT 1:9 buttons pressed=left|right",
    ):
        assert line in lines
    assert any(re.fullmatch(r"EVENT_ACK up to 1:\d+", line) for line in lines)
    assert any(re.fullmatch(r"GAP overflow: \d+ events lost between 1:\d+ and 1:\d+", line) for line in lines)
    assert any(re.fullmatch(r"ACK \d+ sack=0x0000", line) for line in lines)
    assert ends(tmp_path / "day.pcapng")[:2] == [["host", "device"], ["device", "host"]]


@needs_tshark
def test_every_message_and_error_is_shown_with_every_field_and_name(tmp_path: Path) -> None:
    frames = every_message()
    packets = dissect(write(tmp_path / "all.pcapng", captured(frames)))
    seen: set[str] = set()
    for wire, packet in zip(frames, packets, strict=True):
        assert packet.values == expected(wire)
        seen.update(packet.values)
        for name, word in names_in(packet):
            assert word in packet.words[name][0]
    owned = [(row[1], each[0]) for row in schema.MESSAGES for each in row[5]]
    owned += [("error." + row[1], each[0]) for row in schema.ERRORS for each in row[2]]
    assert {f"sabot.{owner}.{name}" for owner, name in owned} <= seen


@cache
def members() -> list[tuple[str, dict[int, str]]]:
    """Each field that has an enum's or an error's number, with the words of the numbers."""
    enums: dict[str, dict[int, str]] = {}
    for name, members in schema.ENUMS:
        enums[name] = {number: member for member, number in members}
    enums["error"] = {row[0]: row[1] for row in schema.ERRORS}
    enums["message"] = {row[0]: row[1] for row in schema.MESSAGES}
    read_as = {**READ_AS, ("", "status"): "error"}
    for row in schema.MESSAGES:
        read_as.update({(row[1], each[0]): str(each[2]) for each in row[5] if each[1] == "enum"})
    return [
        (f"sabot.{owner}.{name}" if owner else f"sabot.{name}", enums.get(enum, {}))
        for (owner, name), enum in read_as.items()
    ]


def names_in(packet: Dissected) -> Iterator[tuple[str, str]]:
    """The words an enum's or an error's number must be shown with."""
    for full, words in members():
        for value in packet.values.get(full, ()):
            member = words.get(int(value, 0))
            if member is not None:
                yield full, f"{member} ({int(value)})"


@needs_tshark
def test_damaged_frames_are_shown_with_the_decoder_s_reason(tmp_path: Path) -> None:
    good = sealed(wire_constants.REQUEST, CODEC.named("status").id, 0, 1, b"")
    frames = [
        good[:-8] + bytes((good[-8] ^ 0x10,)) + good[-7:],
        bytes((good[0] + 200,)) + good[1:],
        b"\xff" + good[1:],
        b"\x05abcd\0",
        b"\x01\0",
        b"\x01\x01\x01\x01\x01\0",
        bytes((255,)) + b"\x07" * 260 + b"\0",
        good,
    ]
    dice = random.Random(5)
    for _ in range(300):
        spoilt = bytearray(good)
        for _ in range(dice.randint(1, 3)):
            spoilt[dice.randrange(len(spoilt) - 1)] = dice.randint(1, 255)
        frames.append(bytes(spoilt))
    reasons = []
    packets = dissect(write(tmp_path / "bad.pcapng", captured(frames)))
    for wire, packet in zip(frames, packets, strict=True):
        ((payload, why),) = frame.Decoder().feed(wire)
        assert packet.values.get("sabot.bad", [None]) == [why]
        assert ("sabot.kind" in packet.values) is (payload is not None)
        reasons.append(why)
    assert set(reasons) == {None, "crc", "length", "overrun", "encoding"}
    assert infos(tmp_path / "bad.pcapng")[0] == "BAD FRAME crc"


@needs_tshark
def test_a_body_is_called_malformed_exactly_when_the_codec_refuses_it(
    tmp_path: Path, amount: Amount
) -> None:
    dice = random.Random(11)
    cases: list[tuple[MessageCodec, bytes]] = []
    messages = [CODEC.named(row[1]) for row in schema.MESSAGES]
    for message in (*messages, *(CODEC.error_named(row[1]) for row in schema.ERRORS)):
        for values in islice(examples(message.fields), amount(2, full=5)):
            cases += [(message, body) for body in spoiled(message.pack(values), dice)]
    overlong, surrogate, beyond, cut, ace_of_spades = "c080 e08080", "eda080", "f4908080", "e282", "f09f82a1"
    for text in f"{overlong} {surrogate} {beyond} {cut} {ace_of_spades} ff e0a080".split():
        version = bytes.fromhex(text)
        cases.append((CODEC.named("component_is"), bytes((1, *bytes(32), len(version))) + version))
    refused = 0
    frames = [carrying(message, 0, 1, body) for message, body in cases]
    packets = dissect(write(tmp_path / "spoiled.pcapng", captured(frames)))
    for (message, body), packet in zip(cases, packets, strict=True):
        try:
            message.unpack(body)
            wrong = False
        except FieldError:
            wrong = True
            refused += 1
        assert ("sabot.malformed" in packet.values) is wrong, (message.name, body.hex())
    assert len(cases) / 4 < refused < len(cases)


def spoiled(body: bytes, dice: random.Random) -> Iterator[bytes]:
    """A body as it is, cut, too long, and with a byte changed."""
    yield body
    yield body + bytes((dice.randrange(256),))
    if body:
        yield body[: dice.randrange(len(body))]
        for _ in range(4):
            at = dice.randrange(len(body))
            yield body[:at] + bytes((dice.choice((0, 1, 18, 127, 128, 255)),)) + body[at + 1 :]


@needs_tshark
def test_what_no_version_knows_yet_is_shown_and_said(tmp_path: Path) -> None:
    identify = CODEC.named("identify").id
    frames = [
        sealed(wire_constants.REQUEST, 0xEE, 0, 1, b"abc"),
        sealed(wire_constants.ANSWER, CODEC.named("status").id, 0, 1, b""),
        sealed(wire_constants.ANSWER, CODEC.named("status").id, 99, 1, b"new"),
        sealed(wire_constants.EVENT, CODEC.named("booted").id, 1, 1, b"short"),
        sealed(wire_constants.GAP, 0, 1, 4, b"short"),
        sealed(wire_constants.EVENT_ACK, 0, 0, 4, b""),
        sealed(9, 0, 0, 4, b"body"),
        bytes(frame.encode(bytes((wire_constants.CLEAR_TO_DEVICE, identify)) + b"later")),
        bytes(frame.encode(bytes((wire_constants.CLEAR_TO_DEVICE,)))),
        bytes(frame.encode(bytes((wire_constants.SEALED_TO_HOST, 1, 2)))),
        bytes(frame.encode(b"\x77what")),
        bytes(frame.encode(b"\x01\xfe")),
    ]
    packets = dissect(write(tmp_path / "new.pcapng", captured(frames)))
    said = [packet.values.get("sabot.malformed", [""])[0] for packet in packets]
    assert said == [
        "no message has the id 0xee",
        "status may not be sent so",
        "",
        "event.ticks_ms: too short by 3 bytes",
        "gap.from_n: too short by 3 bytes",
        "event_ack.boot_id: too short by 4 bytes",
        "no kind of packet is 9",
        "",
        "too short for a message",
        "too short for a sealed packet",
        "no payload begins with 0x77",
        "no message has the id 0xfe",
    ]
    assert packets[2].values["sabot.extra"] == [b"new".hex(":")]
    assert packets[7].values["sabot.extra"] == [b"later".hex(":")]
    assert infos(tmp_path / "new.pcapng")[2] == "ANSWER #1 status refused: error 99"


@needs_tshark
def test_a_stream_over_tcp_can_be_decoded_as_sabot(tmp_path: Path) -> None:
    one, two = every_message()[5:7]
    stream = one + b"\0" + two + one
    capture = tmp_path / "tcp.pcap"
    with capture.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for start, end in ((0, 3), (3, len(one) + len(two)), (len(one) + len(two), len(stream))):
            part = stream[start:end]
            tcp = struct.pack(">HHIIBBHHH", 5000, 4000, 1 + start, 1, 0x50, 0x18, 1000, 0, 0)
            here = b"\x7f\0\0\1"
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(part), 0, 0, 9, 6, 0, here, here)
            packet = ip + tcp + part
            file.write(struct.pack("<IIII", 0, start, len(packet), len(packet)) + packet)
    packets = dissect(capture, "-d", "tcp.port==4000,sabot")
    crcs = [crc for packet in packets for crc in packet.values.get("sabot.crc", ())]
    assert crcs == [expected(wire)["sabot.crc"][0] for wire in (one, two, one)]
    assert not any("sabot.bad" in packet.values for packet in packets)
    assert ends(capture, "-d", "tcp.port==4000,sabot")[1] == ["127.0.0.1", "127.0.0.1"]


@needs_tshark
def test_the_filters_of_the_page_work_and_find_something(tmp_path: Path) -> None:
    damaged = CapturedFrame(b"\x05abcd\0", START_US, True)
    raised = sealed(
        wire_constants.EVENT, 0x97, 1, 9, struct.pack(EVENT_HEADER, 1, 2, 3, 4) + b"\x01\x02\x03\x00\x00"
    )
    malformed = sealed(wire_constants.REQUEST, 0xEE, 0, 1, b"")
    frames = [*conversation(), damaged, *captured([raised, malformed])]
    capture = write(tmp_path / "day.pcapng", frames)
    filters = re.findall(r"^\| `(sabot[^`]*)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(filters) > 5
    together = [each for each in filters if "," not in each]  # a comma separates them
    table = tshark(capture, "-q", "-z", ",".join(["io,stat,0", *together]))
    (row,) = [line for line in table.splitlines() if "<>" in line]
    counts = dict(zip(together, map(int, row.strip("|").split("|")[1::2]), strict=True))
    counts |= {each: len(infos(capture, "-Y", each)) for each in filters if "," in each}
    assert all(0 < counts[each] < len(frames) for each in filters), counts


# -- captures ---------------------------------------------------------------------------------------------

FRAMES = [
    CapturedFrame(b"\x02a\0", START_US, True),
    CapturedFrame(b"", START_US + 1, False),
    CapturedFrame(bytes(255), 0, False),
    CapturedFrame(b"four", 2**63 + 5, True),
]


def file_of(frames: Iterable[CapturedFrame]) -> bytes:
    stream = io.BytesIO()
    writer = CaptureWriter(stream)
    for each in frames:
        writer.add(each.frame, each.at_us, bool(each.to_device))
    return stream.getvalue()


def test_a_capture_gives_back_what_was_written() -> None:
    assert list(read_capture(io.BytesIO(file_of(FRAMES)))) == FRAMES
    assert list(read_capture(io.BytesIO(file_of([])))) == []
    assert list(read_capture(io.BytesIO(file_of(FRAMES) + file_of(FRAMES)))) == FRAMES + FRAMES


@needs_tshark
def test_tshark_reads_the_times_and_directions_written(tmp_path: Path) -> None:
    capture = write(tmp_path / "few.pcapng", FRAMES[:3])
    wanted = ("-e", "frame.time_epoch", "-e", "frame.len", "-e", "frame.encap_type")
    shown = tshark(capture, "-T", "fields", *wanted)
    times, sizes, types = zip(*(line.split("\t") for line in shown.splitlines()), strict=True)
    assert [float(time) for time in times] == [1790000000.0, 1790000000.000001, 0.0]
    assert sizes == ("3", "0", "255")
    assert set(types) == {"45"}  # Wireshark's own number for USER0


def block(order: str, type: int, body: bytes) -> bytes:
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", type) + length + body + length


def section(order: str) -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order: str, options: bytes = b"", link_type: int = 147) -> bytes:
    return block(order, 1, struct.pack(order + "HHI", link_type, 0, 0) + options)


def packet(order: str, ticks: int, data: bytes, options: bytes = b"", interface: int = 0) -> bytes:
    head = struct.pack(order + "IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
    return block(order, 6, head + data + bytes(-len(data) % 4) + options)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("resolution", "ticks", "at_us"),
    [(None, 5_000_001, 5_000_001), (9, 5_000_001_999, 5_000_001), (3, 51, 51_000), (0x81, 3, 1_500_000)],
)
def test_captures_of_others_are_read(order: str, resolution: int | None, ticks: int, at_us: int) -> None:
    comment = struct.pack(order + "HH", 1, 5) + b"hello\0\0\0"
    options = comment
    if resolution is not None:
        options += struct.pack(order + "HH", 9, 1) + bytes((resolution, 0, 0, 0))
    flags = comment + struct.pack(order + "HHI", 2, 4, 0xFFFFFFFD)
    statistics = block(order, 5, bytes(12))
    data = section(order) + interface(order, options) + packet(order, ticks, b"frame", flags) + statistics
    end = struct.pack(order + "HH", 0, 0)
    data += packet(order, ticks, b"frame", end + struct.pack(order + "HHI", 2, 4, 1))
    told = [CapturedFrame(b"frame", at_us, False), CapturedFrame(b"frame", at_us, None)]
    assert list(read_capture(io.BytesIO(data))) == told


SECTION = section("<")
HEAD = SECTION + interface("<")
PACKET = packet("<", 1, b"frame")
BAD_RESOLUTION = struct.pack("<HHI", 9, 2, 0)
TOO_LONG = struct.pack("<IIIII", 0, 0, 0, 9, 9) + bytes(8)
CUT = struct.pack("<IIIII", 0, 0, 0, 4, 9) + bytes(4)


@pytest.mark.parametrize(
    ("data", "offset", "what"),
    [
        (b"", 0, "the file is empty"),
        (b"\xd4\xc3\xb2\xa1" + bytes(20), 0, "not a pcapng file"),
        (b"\x0a\x0d", 0, "not a pcapng file"),
        (b"\x0a\x0d\x0d\x0a" + bytes(24), 0, "byte-order magic"),
        (HEAD + PACKET + PACKET[:7], len(HEAD + PACKET), "ends after 7 bytes of a block of at least 12"),
        (HEAD + PACKET[:-1], len(HEAD), "the file ends after 39 bytes of a block of 40"),
        (HEAD + PACKET[:-4] + bytes(4), len(HEAD), "begins with the length 40 and ends with 0"),
        (HEAD + struct.pack("<III", 6, 41, 0), len(HEAD), "cannot be 41 bytes long"),
        (HEAD + struct.pack("<III", 6, 8, 0), len(HEAD), "a block cannot be 8 bytes long"),
        (HEAD + struct.pack("<III", 6, 0x7FFFFFF0, 0), len(HEAD), "cannot be 2147483632 bytes long"),
        (SECTION + PACKET, len(SECTION), "a packet of interface 0; 0 described"),
        (HEAD + SECTION + PACKET, len(HEAD + SECTION), "a packet of interface 0; 0 described"),
        (SECTION + interface("<", link_type=1), len(SECTION), "link type 1; frames of Sabot have 147"),
        (SECTION + block("<", 1, bytes(4)), len(SECTION), "an interface description of 4 bytes"),
        (SECTION + interface("<", BAD_RESOLUTION), len(SECTION), "if_tsresol of 2 bytes"),
        (HEAD + block("<", 6, bytes(16)), len(HEAD), "a packet block of 16 bytes"),
        (HEAD + block("<", 6, TOO_LONG), len(HEAD), "9 bytes in a block of 8"),
        (HEAD + block("<", 6, CUT), len(HEAD), "cut to 4 of its 9 bytes"),
        (HEAD + packet("<", 1, b"", struct.pack("<HHI", 2, 9, 0)), len(HEAD), "option 2 of 9 bytes runs"),
        (HEAD + packet("<", 1, b"", struct.pack("<HHI", 2, 2, 0)), len(HEAD), "epb_flags of 2 bytes"),
    ],
)
def test_a_damaged_capture_says_what_and_where(data: bytes, offset: int, what: str) -> None:
    with pytest.raises(CaptureDamaged, match=re.escape(what)) as caught:
        list(read_capture(io.BytesIO(data)))
    assert caught.value.offset == offset
    assert f"at byte {offset}:" in str(caught.value)


def test_frames_before_the_damage_are_still_given() -> None:
    data = file_of(FRAMES)
    for cut in range(1, len(data)):
        given = []
        try:
            for each in read_capture(io.BytesIO(data[:cut])):
                given.append(each)
        except CaptureDamaged as damage:
            assert damage.offset <= cut  # noqa: PT017
        assert given == FRAMES[: len(given)]
