"""A person with a certificate of the house, who authorises requests one by one by a signature."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from sabot_driver.credentials import Credential
from sabot_protocol.host.message_base import Request
from sabot_protocol.host.messages import (
    Certificate,
    CertificateReason,
    CertificateRefusedDetail,
    Elevate,
    Revocations,
    RevocationsAre,
    Role,
)
from sabot_protocol.house_lines import elevation_line
from sabot_protocol.wire_constants import BY_CERTIFICATE, CERTIFICATE_ID

CHECK_S = 60.0
"""Time-out of one signature's check, in s. It runs on while the device waits for the end of a shuffle."""
TRIES = 3  # a session may end between the elevation and its request
PART = 9  # ids in one message


@dataclass(frozen=True, slots=True)
class Certified:
    """Who authorises requests in a role: the certificate as the wire has it, and what signs with its key."""

    role: Role
    certificate: Certificate
    sign: Callable[[bytes], bytes] = field(repr=False, compare=False)
    source: str = field(default="", compare=False)
    """The file the certificate came from, for messages."""

    def check(self) -> None:
        """ValueError for a role that the certificate does not have."""
        if not self.certificate.roles >> self.role & 1:
            person, role = self.certificate.person, self.role.name.lower()
            raise ValueError(f"the certificate of {person} is not for {role}")

    def elevation(self, message: Request[Any], transcript: bytes, number: int) -> Elevate:
        """The proof for one request of the session with this transcript hash."""
        hash = sha256(message.pack()).digest()
        line = elevation_line(transcript, self.role, message.ID, number, hash)
        return Elevate(BY_CERTIFICATE, self.role, message.ID, number, hash, self.sign(line))


Authority = Credential | Certified
"""Who authorises a request: a person with a key slot, or one with a certificate."""


def not_shown(detail: object) -> bool:
    """Whether the device refuses an elevation because no certificate was shown on this cable."""
    return _is(detail, CertificateReason.NOT_SHOWN)


def no_house(detail: object) -> bool:
    """Whether the device belongs to no house."""
    return _is(detail, CertificateReason.NO_HOUSE)


def _is(detail: object, reason: CertificateReason) -> bool:
    return isinstance(detail, CertificateRefusedDetail) and detail.reason == reason


def list_parts(number: int, ids: bytes, signature: bytes, known: RevocationsAre) -> Iterable[Revocations]:
    """The messages that hand a list over; none if the device has it, as ``known`` says."""
    count = len(ids) // CERTIFICATE_ID
    if known.known and known.number >= number:
        return
    for first in range(0, count, PART):
        part = ids[CERTIFICATE_ID * first : CERTIFICATE_ID * (first + PART)]
        yield Revocations(number, count, first, part, b"")
    yield Revocations(number, count, count, b"", signature)
