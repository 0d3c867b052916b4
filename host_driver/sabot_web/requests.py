"""What pages and programs send: credentials and tokens, as checked values."""

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError
from starlette.requests import Request

from sabot_driver.credentials import Credential
from sabot_house import statements
from sabot_house.errors import BadStatement
from sabot_house.proof import ShownCertificate
from sabot_protocol.host.messages import Role
from sabot_protocol.wire_constants import KEY_SIZE
from sabot_session.people import Presented
from sabot_web.errors import Refused

Short = Annotated[str, StringConstraints(max_length=64)]
Body = TypeVar("Body", bound=BaseModel)
JSON_TYPE = "application/json"
LONGEST_NUMBER = 16


class Part(BaseModel):
    """The base: nothing but what is named, and no value taken for another."""

    # Values are not cached: pydantic would keep PINs, and up to 16,384 other texts.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, cache_strings="keys")


class ShownCredential(Part):
    """What a person shows: an id, a badge, a key file's text or a certificate, and a PIN."""

    pin: Short
    person: Short = ""
    badge: Short = ""
    key: Annotated[str, StringConstraints(max_length=256)] = ""
    role: Literal["dealer", "floor", "service"] = "floor"
    """Whose key file it is."""
    certificate: Annotated[str, StringConstraints(max_length=4096)] = ""
    """A certificate of the house, as its file has it; ``proof`` is signed with its key."""
    proof: Annotated[str, StringConstraints(max_length=4096)] = ""
    simulated: Literal["", "dealer", "floor", "service"] = ""
    """The simulated person to act as, at an emulated table that somebody plays at a terminal."""

    def presented(self) -> Presented:
        """The same for the register of people."""
        key = read_key_text(self.key, Role[self.role.upper()]) if self.key.strip() else None
        return Presented(self.pin, self.person.strip(), self.badge.strip(), key, self._held())

    def _held(self) -> ShownCertificate | None:
        if not self.certificate:
            return None
        try:
            return ShownCertificate(
                statements.read(self.certificate, statements.CERTIFICATE, "the certificate"),
                statements.read(self.proof, statements.PROOF, "the proof"),
            )
        except BadStatement as error:
            raise Refused(400, "no_certificate", str(error), error.advice) from error


class EnterRequest(Part):
    """A browser shows its one-time token."""

    token: Short


def read_key_text(text: str, role: Role) -> Credential:
    """The credential in a key file's text: 64 hexadecimal digits and perhaps the person's number."""
    digits, _, number = text.strip().partition(" ")
    try:
        key = bytes.fromhex(digits)
        person = int(number) if number.strip() else 0
    except ValueError:
        key, person = b"", 0
    if len(key) != KEY_SIZE:
        raise Refused(400, "no_key", "this file is no key file", "Choose the key file on your own medium.")
    return Credential(role, key, person)


def read_number(name: str, text: str) -> int:
    """A number that a request names; `Refused` for anything that the record could not have."""
    if not (text.isascii() and text.isdigit() and len(text) < LONGEST_NUMBER):
        raise Refused(400, "bad_request", f"{name}: this is no number of the record")
    return int(text)


async def read_body(request: Request, kind: type[Body]) -> Body:
    """The checked body of a request; `Refused` if it is no JSON of this shape."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != JSON_TYPE:
        raise Refused(415, "not_json", f"a request has the type {JSON_TYPE}")
    try:
        return kind.model_validate_json(await request.body())
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(each) for each in first["loc"])
        raise Refused(400, "bad_request", f"{where or 'the body'}: {first['msg']}") from None
