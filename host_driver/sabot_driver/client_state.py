"""What the blocking and the asyncio client share: what they know of their device. Nothing here waits."""

import contextlib
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sabot_driver.certified import Certified
from sabot_driver.credentials import Credential, check_key
from sabot_driver.errors import Closed, KeyMissing, LinkLost, OutcomeUnknown, Refused, SabotError
from sabot_driver.journal import Journal
from sabot_driver.link_state import LinkState, Peer
from sabot_driver.loop_shell import LoopShell
from sabot_driver.opened_device import OpenedDevice
from sabot_protocol.errors import RequestNotAllowed
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import Request
from sabot_protocol.host.messages import Elevate, IdentityFlag, KeySlotsAre, RemoveKey, Role, SetKey
from sabot_protocol.session import slot_key

TIMEOUT_S = 5.0
CONNECT_S = 10.0
GRACE_S = 5.0  # how late the driver itself may be

LoopT = TypeVar("LoopT", bound=LoopShell)


@dataclass(frozen=True, slots=True)
class Resolved:
    """The outcome of a command that this program, or an earlier run of it, gave up."""

    number: int
    request: str
    outcome: str
    """``done``, ``not_executed`` or ``unknown``."""

    @classmethod
    def refused(cls, number: int, kind: type[Request[Any]], error: Refused | OutcomeUnknown) -> "Resolved":
        """The outcome of a command that ended in an error: not executed, or unknown."""
        outcome = "unknown" if isinstance(error, OutcomeUnknown) else "not_executed"
        return cls(number, kind.NAME, outcome)


class ClientState(Generic[LoopT]):
    """One device as its client knows it."""

    def __init__(self, loop: LoopT, opened: OpenedDevice) -> None:
        self.loop = loop
        """What runs the connection, for tests."""
        self._keyring = opened.keyring
        self._held: KeySlotsAre | None = None  # the device's last answer
        self._proofs = 0  # elevations by certificate
        self.is_new = opened.keys.is_new
        """Whether this client provisioned the device, so that it may fill the key slots now."""
        self.identity = opened.identity
        """How the device identified itself before the session; the session has proved its serial number."""
        self.owner = opened.owner
        self.resolved: list[Resolved] = []
        """Outcomes, from the device's ledger, of the commands that an earlier run left open."""

    @property
    def url(self) -> str:
        """Where the device is."""
        return self.loop.connection.url

    @property
    def simulator(self) -> bool:
        """Whether the device is emulated, as its session proved."""
        peer = self.peer
        return bool((self.identity if peer is None else peer).flags & IdentityFlag.SIMULATOR)

    @property
    def link(self) -> LinkState:
        """The state of the link now."""
        self.loop.check_process()
        return self.loop.connection.link

    @property
    def peer(self) -> Peer | None:
        """The device as its last session proved it; None before the first one."""
        self.loop.check_process()
        return self.loop.connection.peer

    @property
    def journal(self) -> Journal:
        """The events and commands on disk."""
        return self.loop.journal

    def no_session(self, timeout: float) -> SabotError:
        """Why there is no session after a wait."""
        if self.loop.closed:
            return Closed(f"{self.url}: the client was closed")
        return self.loop.connection.problem or LinkLost(f"{self.url}: no session in {timeout} s")

    def _elevation(self, message: Request[Any], by: Certified) -> Elevate:
        """The next proof of a certificate's holder, for the session that runs."""
        if self.link is not LinkState.UP:
            raise self.loop.connection.problem or LinkLost(f"{self.url}: there is no session")
        self._proofs += 1
        try:
            return by.elevation(message, self.loop.connection.protocol.transcript, self._proofs)
        except RequestNotAllowed as error:  # the session ended at this moment
            raise LinkLost(f"{self.url}: there is no session") from error

    def known_slot(self, by: Credential) -> int | None:
        """The slot of a credential; None if the device must be asked for it."""
        if by.slot is None and self._held is not None:
            with contextlib.suppress(KeyMissing):
                return by.slot_among(self._held)
        return by.slot

    def _forget_slots(self, message: Request[Any]) -> None:
        """Ask for the slots again after a request that changes them.

        Called when the request's own credential has its slot: finding that one may have asked just now.
        """
        if isinstance(message, SetKey | RemoveKey):
            self._held = None

    def _set_key_message(self, slot: int, role: Role, person: int, key: bytes) -> SetKey:
        """The command that gives a person's key to the device, in the form for this device and slot."""
        check_key(key)
        return SetKey(slot, role, person, slot_key(key, self._proved_serial(), slot) if any(key) else key)

    def _proved_serial(self) -> bytes:
        peer = self.peer
        if peer is None:
            raise LinkLost(f"{self.url}: there was no session yet")
        return peer.serial

    def _given_up(self, number: int) -> tuple[type[Request[Any]], bytes]:
        """The kind of a command in the journal, and the memory id under which it was sent."""
        self.loop.check_process()
        self.loop.connection.check_ended(number)
        command = self.journal.command(number)
        if command is None:
            raise SabotError(
                f"this journal has no command {number}", "Use the number of a command of this device."
            )
        kind = messages.BY_ID[command.message]
        assert issubclass(kind, Request)
        return kind, command.memory_id or (self.peer.memory_id if self.peer is not None else b"")


def check_request(message: object, by: object) -> None:
    """TypeError for what is no request, or a ``by`` that authorises none; ValueError for a role not had."""
    if not isinstance(message, Request):
        hint = f": write {message.__name__}(…)" if isinstance(message, type) else ""
        raise TypeError(f"a request of sabot_protocol.host.messages is needed, not {message!r}{hint}")
    if isinstance(by, Certified):
        by.check()
    elif by is not None and not isinstance(by, Credential):
        raise TypeError(f"by is a Credential, not {type(by).__name__}: write by=Credential(role, key)")
