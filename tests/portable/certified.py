"""A pair whose device belongs to a house, and a person with a certificate of that house."""

from hashlib import sha256

from house_signed import HOUSE_SECRET, NEW_SECRET
from pair import Pair
from signer import Signer

from sabot_protocol.codec import CODEC, enum_name
from sabot_protocol.house_lines import certificate_line, certificate_text, elevation_line, revocation_parts
from sabot_protocol.record_store import RecordStore
from sabot_protocol.wire_constants import BY_CERTIFICATE, LAST_COMMAND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOW_S = 1800000000
UNTIL_S = NOW_S + 3600
SITE = "MAIN"
DEALER, FLOOR, SERVICE = 2, 3, 4
HOUSE, OTHER_HOUSE = Signer(HOUSE_SECRET), Signer(NEW_SECRET)
DANA, THIEF = Signer(b"dana's key of thirty-two bytes.."), Signer(b"the key of a thief, 32 bytes....")
PART = 9  # ids in one message


class Paper:
    """A certificate, as its holder shows it."""

    def __init__(
        self,
        key: Signer = DANA,
        roles: int = 1 << FLOOR,
        person: str = "dana",
        until_s: int = UNTIL_S,
        site: str = SITE,
        house: Signer = HOUSE,
    ) -> None:
        self.key = key
        self.fields = (key.public, until_s, person, roles, site)
        text = certificate_text(house.public, *self.fields)
        self.id = sha256(text).digest()[:16]
        self.signature = house.sign(certificate_line(text))

    def shown(self) -> tuple:  # type: ignore[type-arg]
        return self.fields + (self.signature,)


class House(Pair):
    """The pair, with its house; ``known`` says whether the device has a list of revocations."""

    def __init__(self, known: bool = True, capacity: int = 64, memory: "RecordStore | None" = None) -> None:
        super().__init__(capacity=capacity, memory=memory)
        self.proofs = 0
        self.device.house.write(HOUSE.public, SITE, 0)
        self.people().connect()
        self.ask("set_clock", NOW_S, 0)
        if known:
            assert self.hand_over(1, b"") == ("ok", (1, 1, 0))

    def hand_over(
        self, number: int, ids: bytes, house: Signer = HOUSE, signature: "bytes | None" = None
    ) -> "Any":
        """The answer to the last part of a list."""
        count = len(ids) // 16
        for first in range(0, max(count, 1), PART):
            said = self.ask("revocations", number, count, first, ids[16 * first : 16 * (first + PART)], b"")
            if said[0] != "ok" or said[1][:2] == (1, number):
                return refusal(said)
        if signature is None:
            signature = house.sign(b"".join(revocation_parts(house.public, number, ids)))
        return refusal(self.ask("revocations", number, count, count, b"", signature))

    def show(self, paper: Paper) -> "Any":
        return refusal(self.ask("certificate", *paper.shown()))

    def proof(
        self,
        paper: Paper,
        name: str,
        *values: object,
        role: int = FLOOR,
        number: "int | None" = None,
        key: "Signer | None" = None,
        transcript: "bytes | None" = None,
    ) -> tuple:  # type: ignore[type-arg]
        """The fields of an elevation for a request."""
        message = CODEC.named(name)
        hash = sha256(message.pack(values)).digest()
        if number is None:
            self.proofs += 1
            number = self.proofs
        text = elevation_line(transcript or self.host.transcript, role, message.id, number, hash)
        return BY_CERTIFICATE, role, message.id, number, hash, (key or paper.key).sign(text)

    def elevate(self, paper: Paper, name: str, *values: object, **others: "Any") -> "Any":
        return refusal(self.ask("elevate", *self.proof(paper, name, *values, **others)))

    def begin(self, name: str, *values: object) -> int:
        """Send a query whose answer takes a while; its number."""
        number = self.host.request(CODEC.named(name).id, CODEC.named(name).pack(values), self.now)
        assert number > LAST_COMMAND
        for _ in range(4):
            self.port.receive(self.host.poll(self.now), self.now)
            self.host.receive(self.port.poll(self.now), self.now)
        return number


def refusal(said: "tuple[str, tuple]") -> "Any":  # type: ignore[type-arg]
    """The reason by its name, if a certificate was refused; else what was said."""
    if said[0] != "certificate_refused":
        return said
    return enum_name("CertificateReason", said[1][0])
