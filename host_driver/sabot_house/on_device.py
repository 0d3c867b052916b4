"""What a device of the house is shown: a person's certificate for its requests, and the revocations."""

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from sabot_driver import Client, Notice
from sabot_driver.certified import CHECK_S, Certified
from sabot_driver.errors import Closed, DeviceTimeout, LinkLost, SabotError
from sabot_evidence.errors import SigningKeyUnusable
from sabot_evidence.signing_key import SigningKey, read_signing_key
from sabot_house import statements
from sabot_house.errors import BadProof, BadStatement, WrongRole
from sabot_house.statements import Statement
from sabot_protocol.errors import FieldError
from sabot_protocol.host.messages import Certificate, Role
from sabot_protocol.house_lines import ROLES, certificate_line, certificate_text
from sabot_protocol.schema import MAX_REVOKED
from sabot_protocol.wire_constants import CERTIFICATE_ID

LOOK_S = 60.0  # how often a new list is looked for
log = logging.getLogger("sabot")
BITS = {name: 1 << role for role, name in ROLES}


def certified(made: Statement, key: SigningKey, role: Role, source: str = "") -> Certified:
    """A certificate's holder, as a device is asked with ``by``.

    `WrongRole` if the certificate is not for this role; `BadStatement` if no device can hold it: its site or
    its person has letters that are not ASCII, or it is too long.
    """
    told = made.told
    if role.name.lower() not in told["roles"]:
        raise WrongRole(f"the certificate of {told['person']} is not for {role.name.lower()}")
    shown = Certificate(
        bytes.fromhex(told["key"]),
        told["not_after_s"],
        told["person"],
        sum(BITS[each] for each in told["roles"] if each in BITS),
        told["site"],
        made.signature,
    )
    house = bytes.fromhex(told["house"])
    text = certificate_text(house, shown.key, shown.not_after_s, shown.person, shown.roles, shown.site)
    try:
        shown.pack()
        fits = text == made.text.encode() and bool(certificate_line(text))
    except FieldError:
        fits = False
    if not fits:
        raise BadStatement(
            f"the certificate of {told['person']} cannot be shown to a device",
            "The house signs one with a site of up to 24 printable ASCII characters, without quotes.",
        )
    return Certified(role, shown, key.sign, source)


def certified_file(path: Path, role: Role) -> Certified:
    """The holder of a certificate's file with the key beside it: ``dana.cert`` and ``dana.pem``."""
    made = statements.read_file(path, statements.CERTIFICATE)
    try:
        key = read_signing_key(path.with_suffix(".pem"))
    except SigningKeyUnusable as error:
        raise BadProof(str(error), f"Keep the key file beside {path.name}. {error.advice}") from error
    return certified(made, key, role, str(path))


def fits_a_device(made: Statement) -> bool:
    """Whether a device has room for this list of revocations."""
    return len(made.told["revoked"]) <= MAX_REVOKED


def hand_over(client: Client, made: Statement, timeout: float = CHECK_S) -> bool:
    """Give a device the house's list of revocations; False if the device belongs to no house.

    `BadStatement` for a list that is longer than a device keeps; errors of the client otherwise.
    """
    told = made.told
    if not fits_a_device(made):
        many = len(told["revoked"])
        raise BadStatement(
            f"the list of revocations names {many} certificates, and a device keeps {MAX_REVOKED}",
            "Devices keep their older list. Table PCs take the new one.",
        )
    ids = b"".join(bytes.fromhex(each) for each in told["revoked"])
    assert len(ids) == len(told["revoked"]) * CERTIFICATE_ID
    return client.hand_over_revocations(told["number"], ids, made.signature, timeout)


class RevocationsKept(AbstractContextManager["RevocationsKept"]):
    """Hands the newest list to a device in each session, and a newer one soon after it is there.

    It does so in a thread, and ends with the client. A list that the device refuses is logged, and not handed
    over again in this session: each refusal of a signature is an event on the device.
    """

    def __init__(
        self, client: Client, newest: Callable[[], Statement | None], look_s: float = LOOK_S
    ) -> None:
        """``newest`` gives the list that this computer has, None without one."""
        self._client = client
        self._newest = newest
        self._look_s = look_s
        self._handed: object = None  # the number that was handed over in this session
        self._sessions = 0
        self._due = threading.Event()
        self._closing = False
        self._unlisten = client.listen(self._heard)
        threading.Thread(target=self._run, name="sabot-revocations", daemon=True).start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        self._due.set()
        self._unlisten()

    def _heard(self, notice: Notice) -> None:
        if notice.kind == "up":
            self._sessions += 1
            self._handed = None  # it may be another device, or one that has lost its list
            self._due.set()

    def _run(self) -> None:
        while not self._closing:
            try:
                self._hand_over()
            except Closed:
                return
            except SabotError as error:
                log.info("the list of revocations was not handed over yet: %s", error)
            self._due.wait(self._look_s)
            self._due.clear()

    def _hand_over(self) -> None:
        made = self._newest()
        if made is None or made.told["number"] == self._handed:
            return
        sessions = self._sessions
        try:
            hand_over(self._client, made)
        except (DeviceTimeout, LinkLost):
            raise
        except SabotError as error:
            log.warning("the device does not take the list of revocations: %s", error)
        if sessions == self._sessions:
            self._handed = made.told["number"]
