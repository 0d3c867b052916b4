"""A house for an emulated Pico, and a person with a certificate of it."""

from collections.abc import Sequence
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sabot_protocol.codec import CODEC, enum_number
from sabot_protocol.house_lines import certificate_line, certificate_text, elevation_line, revocation_parts
from sabot_protocol.wire_constants import BY_CERTIFICATE
from sabot_simulators.rp2040.hosted_pico import HostedPico

OFFICE, DANA = (Ed25519PrivateKey.from_private_bytes(bytes([each]) * 32) for each in (1, 2))
HOUSE, KEY = (each.public_key().public_bytes_raw() for each in (OFFICE, DANA))
FLOOR = enum_number("Role", "floor")
LAST_S = 0xFFFFFFFF
FIELDS = (KEY, LAST_S, "dana", 1 << FLOOR, "MAIN")
PLAY = CODEC.named("play_one_deck")
PART = 9  # ids in one message


def certificate() -> tuple[int | str | bytes, ...]:
    """Dana's certificate, as it is shown."""
    return (*FIELDS, OFFICE.sign(certificate_line(certificate_text(HOUSE, *FIELDS))))


def proof(device: HostedPico, number: int, on: int) -> tuple[int | bytes, ...]:
    """Dana's proof for one command of this session."""
    hash = sha256(PLAY.pack((on,))).digest()
    line = elevation_line(device.host.transcript, FLOOR, PLAY.id, number, hash)
    return BY_CERTIFICATE, FLOOR, PLAY.id, number, hash, DANA.sign(line)


def bind(device: HostedPico) -> None:
    """The device belongs to the house, and has its first list."""
    device.ask("house_key", HOUSE, "MAIN", 0, 0, b"", role="service")
    hand_over(device, 1, ())


def hand_over(device: HostedPico, number: int, ids: Sequence[bytes]) -> None:
    """Give the device a list of revocations."""
    for first in range(0, max(len(ids), 1), PART):
        device.ask("revocations", number, len(ids), first, b"".join(ids[first : first + PART]), b"")
    signature = OFFICE.sign(b"".join(revocation_parts(HOUSE, number, b"".join(ids))))
    assert device.ask("revocations", number, len(ids), len(ids), b"", signature) == (1, number, 0)
