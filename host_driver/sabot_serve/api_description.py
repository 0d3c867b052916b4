"""What programs may ask a table's service, made from the types of requests and answers.

``GET /api/description`` tells it. A test asks every address and holds its answer against the type here.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue

from sabot_serve import act_forms
from sabot_serve.requests import ActRequest
from sabot_serve.technician_routes import (
    MoveRequest,
    PermitRequest,
    PressRequest,
    ReleaseRequest,
    RenewRequest,
)
from sabot_web.requests import EnterRequest, ShownCredential


class Answer(BaseModel):
    """The base: nothing but what is named."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Entered(Answer):
    """A browser was let in; its cookie is in the answer's head."""

    entered: bool
    csrf: str


class Invited(Answer):
    """A one-time token."""

    token: str


class SignedIn(Answer):
    """Who is signed in at this page, and whether they deal at the table; if not, why."""

    person: str
    deals: bool
    message: str


class SignedOut(Answer):
    """Nobody is signed in at this page."""

    person: str


class ActTaken(Answer):
    """The first row of the act; ``repeated``: it was taken before."""

    row: int
    repeated: bool


class RowTold(Answer):
    """Who did what when: a row of the record without its data."""

    number: int
    kind: str
    at_s: int
    person: str
    role: str
    how: str
    round: int
    clause: str


class RowsTold(Answer):
    """Rows after a number, 500 at most."""

    rows: list[RowTold]


class Refusal(Answer):
    """Why a request was refused, and what to do; every status but 200 has it."""

    error: str
    message: str
    advice: str


class About(Answer):
    """The table and its device; see `sabot_serve.local_api`."""

    version: int
    table: str
    ruleset: str
    serial: str
    model: str
    firmware: str
    url: str
    simulator: bool
    boot_id: int
    kept: bool
    simulated_people: bool
    pages: bool


class WholeRows(Answer):
    """Rows as their canonical text (RFC 8785), and the last number that was looked at."""

    rows: list[str]
    last: int


class WholeRound(Answer):
    """The rows of a round, and what its wagers will pay if they are not settled."""

    rows: list[str]
    preview: dict[str, JsonValue] | None


class Checkpoints(Answer):
    """The newest signed checkpoints of record and journal, as lines that the floor keeps."""

    lines: list[str]


class DeviceStatus(Answer):
    """The device's ``status_report``, its body in hexadecimal digits."""

    body: str


class DeviceEvents(Answer):
    """Rows of the device's journal, its newest row, and whether the device has a link."""

    events: list[dict[str, JsonValue]]
    newest: int
    up: bool


class JogPermitted(Answer):
    """Lets this page jog one part, for a while."""

    permit: str


class JogHeld(Answer):
    """The roller turns; the next renewal shows this token."""

    token: str


class JogReleased(Answer):
    """The roller stands."""

    released: bool


class JogMoved(Answer):
    """The axis has moved."""

    moved: bool


@dataclass(frozen=True, slots=True)
class Address:
    """One address: who may ask it, with what, and what it answers. None: no body, or JSON of the session."""

    method: str
    path: str
    who: str
    request: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None


BROWSER, ANYBODY, LOCAL = "browser or local program", "anybody with a one-time token", "local program"
PAGE = "browser"
ADDRESSES = (
    Address("POST", "/api/enter", ANYBODY, EnterRequest, Entered),
    Address("POST", "/api/invite", LOCAL, None, Invited),
    Address("POST", "/api/sign-in", PAGE, ShownCredential, SignedIn),
    Address("POST", "/api/sign-out", PAGE, None, SignedOut),
    Address("POST", "/api/acts", BROWSER, ActRequest, ActTaken),
    Address("GET", "/api/snapshot", BROWSER),
    Address("GET", "/api/description", BROWSER),
    Address("GET", "/api/rows", BROWSER, None, RowsTold),
    Address("GET", "/api/rounds/{round_id}", BROWSER),
    Address("GET", "/api/events/{channel}", BROWSER),
    Address("POST", "/api/jog/permit", BROWSER, PermitRequest, JogPermitted),
    Address("POST", "/api/jog/press", BROWSER, PressRequest, JogHeld),
    Address("POST", "/api/jog/renew", BROWSER, RenewRequest, JogHeld),
    Address("POST", "/api/jog/release", BROWSER, ReleaseRequest, JogReleased),
    Address("POST", "/api/jog/move", BROWSER, MoveRequest, JogMoved),
    Address("GET", "/api/local/about", LOCAL, None, About),
    Address("GET", "/api/local/rows", LOCAL, None, WholeRows),
    Address("GET", "/api/local/rounds/{round_id}", LOCAL, None, WholeRound),
    Address("GET", "/api/local/checkpoints", LOCAL, None, Checkpoints),
    Address("GET", "/api/local/status", LOCAL, None, DeviceStatus),
    Address("GET", "/api/local/device-events", LOCAL, None, DeviceEvents),
)


def description() -> dict[str, Any]:
    """Every address and every act, with JSON Schema for what they take and answer."""
    return {
        "addresses": [
            {
                "method": each.method,
                "path": each.path,
                "who": each.who,
                "request": _schema(each.request),
                "answer": _schema(each.answer),
            }
            for each in ADDRESSES
        ],
        "refusal": _schema(Refusal),
        "acts": act_forms.description(),
    }


def _schema(kind: type[BaseModel] | None) -> dict[str, Any] | None:
    return None if kind is None else kind.model_json_schema()
