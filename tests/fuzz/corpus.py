"""The seed corpus: inputs made of real frames, so that a fuzzer begins where real traffic goes."""

from __future__ import annotations

import random
from pathlib import Path

from tests.fuzz import targets
from tests.fuzz.monitored_wire import ALL_ERRORS, ALL_MESSAGES, REQUESTS, Wire, allowed

from sabot_protocol.codec import CODEC
from sabot_protocol.wire_constants import CLEAR_TO_DEVICE, CLEAR_TO_HOST, SEALED_TO_DEVICE, SEALED_TO_HOST

FOLDER = Path(__file__).resolve().parent / "corpus"
_NAMES = [name for name, _ in targets.TARGETS]
_FORGERIES = [name for name, _ in targets.FORGERIES]
_CLEAR = (CLEAR_TO_DEVICE, CLEAR_TO_HOST)
_SEALED = (SEALED_TO_DEVICE, SEALED_TO_HOST)
_KIND_AT = 11  # of a sealed payload
_KINDS = ("bare", "request", "answer", "event", "event_ack", "gap")


def name_of(payload: bytes) -> str:
    """What a real payload is, in words fit for a file name."""
    if payload[0] in _CLEAR:
        message = CODEC.find(payload[1])
        return "clear" if message is None else message.name
    if payload[0] not in _SEALED:
        return "unknown"
    message = CODEC.find(payload[_KIND_AT + 1])
    kind = _KINDS[payload[_KIND_AT]]
    return kind if message is None else "%s-%s" % (kind, message.name)


def inputs() -> dict[str, bytes]:
    """Every seed by file name."""
    wire = Wire(0)
    found: dict[str, bytes] = {}

    def add(target: str, name: str, *records: bytes) -> None:
        found["%s-%s" % (target, name)] = bytes((_NAMES.index(target),)) + b"".join(records)

    payload_op = _FORGERIES.index("random_payload")
    for target, payloads in (
        ("device", wire.old_to_device + wire.to_device),
        ("host", wire.old_to_host + wire.to_host),
    ):
        for payload in payloads:
            add(target, name_of(payload), targets.record(payload_op, payload))
        for op, name in enumerate(_FORGERIES):
            some = (bytes((at, 1, at, 8, at, 3, 1, at)) for at in range(4))
            add(target, "forge-" + name, *(targets.record(op, data) for data in some))
    add("unprovisioned", "all", *(targets.record(payload_op, payload) for payload in wire.old_to_device[:6]))
    add("decoder", "to-device", *(targets.record(0, targets.framed(payload)) for payload in wire.to_device))
    add("decoder", "to-host", *(targets.record(1, payload) for payload in wire.to_host))
    source = random.Random(0)
    every = enumerate(ALL_MESSAGES + ALL_ERRORS)
    packed = [(index, each.pack(allowed(each, source))) for index, each in every]
    add("codec", "messages", *(targets.record(index, fields) for index, fields in packed[:30]))
    add("codec", "events-errors", *(targets.record(index, fields) for index, fields in packed[30:]))
    how = (
        targets.SEQ_NEXT
        | targets.ACK_NEXT
        | targets.A_REQUEST
        | targets.GOOD_BODY
        | targets.NEAR_NUMBER
        | targets.GOOD_PROOF
    )
    each_request = [targets.inside_record(how, index, 3, b"\x01%d" % index) for index in range(len(REQUESTS))]
    again = targets.record(targets.AGAIN, b"\x03")
    add("inside", "requests", *each_request)
    add("inside", "again", *each_request[:8], again, again)
    add("inside", "reconnect", *each_request[:8], targets.record(targets.RECONNECT, b""), again)
    add("inside", "reboot", *each_request[8:16], targets.record(targets.REBOOT, b""), again)
    kinds = [targets.inside_record(how, index, 0, b"%d" % index) for index in range(len(ALL_MESSAGES))]
    ask = targets.record(targets.AGAIN, b"")
    add("inside_host", "messages", ask, *kinds[10:20], ask, *kinds[-8:])
    return found


def write_corpus(folder: Path) -> int:
    """Make the folder hold these seeds and nothing else; returns how many."""
    folder.mkdir(parents=True, exist_ok=True)
    seeds = inputs()
    for path in folder.iterdir():
        if path.name not in seeds:
            path.unlink()
    for name, data in seeds.items():
        (folder / name).write_bytes(data)
    return len(seeds)
