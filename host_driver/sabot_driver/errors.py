"""The driver's errors, as types.

The message of an error says what happened and where; its ``advice`` says what to do. Errors with a built-in
counterpart derive from it too, so that ``except TimeoutError`` and ``except ConnectionError`` catch them.
"""

import contextlib
from typing import ClassVar

from sabot_protocol.codec import CODEC
from sabot_protocol.errors import FieldError
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import ErrorDetail
from sabot_protocol.host.messages import (
    CertificateReason,
    Fault,
    Forbidden,
    Half,
    Place,
    Role,
    ShoeState,
    ShufflerState,
)
from sabot_protocol.meanings import MEMBERS


class SabotError(Exception):
    """The base of every error of the driver."""

    advice: str = ""

    def __init__(self, message: str, advice: str | None = None) -> None:
        super().__init__(message)
        if advice is not None:
            self.advice = advice


# -- finding and opening ------------------------------------------------------------------------


class BadUrl(SabotError, ValueError):
    """A device URL that the driver does not understand."""

    advice = "Use a serial port (/dev/ttyACM0, COM3), socket://HOST:PORT, usb://SERIAL or sim://."


class BadSerial(SabotError, ValueError):
    """A text that is not a serial number."""

    advice = "Give eight letters and digits, or sixteen hexadecimal digits, as 'sabot devices' shows them."


class KeyIsSet(SabotError):
    """A key that is to be created exists already."""

    advice = "Use the key file that exists, or have service set another key."


class NoDevice(SabotError, FileNotFoundError):
    """The port does not exist, or no device is connected."""

    advice = "Check cable and power; 'sabot devices' lists what is found. --device sim:// emulates a device."


class AmbiguousDevice(SabotError):
    """More than one device fits; ``matches`` are their URLs."""

    def __init__(self, matches: list[str]) -> None:
        super().__init__(
            f"{len(matches)} devices fit: " + ", ".join(matches),
            "Select one: --device URL, or --table NAME.",
        )
        self.matches = matches


class PortDenied(SabotError, PermissionError):
    """The operating system does not let this user open the port."""

    advice = (
        "On Linux, add the user to the group that owns the port (often 'dialout') and log in again, or "
        "install the udev rule of docs/driver.md."
    )


class PortBusy(SabotError, BlockingIOError):
    """Another program has the port or the device's journal open."""

    advice = "Close the other program; 'sabot doctor' names it, if the system tells."


# -- the link -----------------------------------------------------------------------------------


class LinkLost(SabotError, ConnectionError):
    """The port or the session was lost, and did not come back within the time-out."""

    advice = "Check cable and power; the driver keeps trying to reconnect."


class NoAnswer(LinkLost):
    """The port is open, but no Sabot device answers."""

    advice = "Check that this is the right port and that the device has power; plug it in again."


class NotSabot(NoAnswer):
    """The port sends bytes that are not Sabot frames."""

    advice = "Another kind of device is on this port, or its speed is wrong: see 'sabot devices'."


class DeviceTimeout(SabotError, TimeoutError):
    """No answer within the time-out. For a command, ``Client.resolve(number)`` tells its outcome.

    ``may_be_sent`` is False if the link was down all the time: the command was never sent, so it was not
    executed.
    """

    advice = "The command may have been executed: resolve it by its number before you repeat it."

    def __init__(
        self, message: str, number: int | None = None, request: str = "", may_be_sent: bool = True
    ) -> None:
        advice = None
        if number is None:
            advice = "Repeat the request, or check the device."
        elif not may_be_sent:
            advice = "The command was never sent and is not executed: repeat it when the link is up again."
        super().__init__(message, advice)
        self.number = number
        self.request = request
        self.may_be_sent = may_be_sent


class DeviceRebooted(SabotError, ConnectionResetError):
    """The device restarted before the request was sent: it was not executed."""

    advice = "Read the status and continue from there; a round that was open is void."


class SessionEnded(SabotError, ConnectionAbortedError):
    """The request belonged to a session that has ended (an elevation, for example): it was not executed."""

    advice = "Repeat the request in the new session."


class WrongDevice(SabotError):
    """Another device than the expected one answers, or the device cannot prove its identity."""

    advice = (
        "If the device was exchanged, set its table up anew ('sabot table set'); if not, check the cables."
    )


class NotProvisioned(SabotError):
    """The device is new and has no key: it accepts only identification and provisioning."""

    advice = "Give it a key over a cable you trust: 'sabot provision --device URL'."
    had_key_advice = (
        "This machine had a key. Was the contact in its logic compartment held? If so, give it a new key: "
        "'sabot provision --replace'. If not, it may be an impostor: find out what is on the cable."
    )
    """The advice where this computer knows a key of a machine with that serial number."""


class KeysLost(SabotError):
    """The device's keys are damaged: it accepts only identification."""

    advice = (
        "Take it out of play. Service holds the contact in the logic compartment for 5 s, then provisions "
        "it; if that does not help, the controller is replaced."
    )


class ResetRequired(SabotError):
    """The device's keys were cleared, and it belongs to a house that has not signed for this reset."""

    advice = (
        "The house's office signs a reset statement ('sabot house reset'); give it with "
        "'sabot provision --reset-statement FILE'. 'sabot house show' tells house and reset count."
    )


class ResetRefused(SabotError):
    """A reset statement that is not for this device and this reset."""

    advice = "The house's office signs one for this serial number and count: 'sabot house reset'."


class KeyMissing(SabotError):
    """This computer has no key for that device."""

    advice = "Copy the device's key file from the computer that provisioned it, readable by its owner only."


class KeyExposed(SabotError, PermissionError):
    """Other users can read a key file; the driver does not use it."""

    advice = "Remove the rights of group and others (chmod 600), and have service change the key."


class VersionMismatch(SabotError):
    """Driver and device speak different versions: only identification, status and updates work."""

    advice = "Update the side with the lower version; updates work between any two versions."


class Closed(SabotError, ValueError):
    """The client was closed."""

    advice = "Connect again."


class Forked(SabotError, RuntimeError):
    """The client was made before this process was forked: its threads are in the parent."""

    advice = "Connect in the process that uses the client; start processes with 'spawn'."


# -- the journal --------------------------------------------------------------------------------


class JournalError(SabotError, OSError):
    """The journal cannot be used."""

    advice = "Check the disk and the rights of the folder the journal is in."


class JournalFull(JournalError):
    """The journal cannot be written: no event is acknowledged, and no round can be opened."""

    advice = "Free space on the disk; the driver continues by itself, and the device keeps its events."


class JournalBusy(JournalError, TimeoutError):
    """A write to the journal took too long: the disk is slow, or another program holds the write lock.

    A command that ends with this error was not sent and is not executed.
    """

    advice = "Repeat the request; if it fails again, find the program that locks the file, or check the disk."


class JournalDamaged(JournalError):
    """The journal cannot be read, or belongs to another device."""

    advice = "Put it aside with 'sabot journal aside'; docs/driver.md says what a new one means."


class JournalMissing(JournalError, FileNotFoundError):
    """The journal does not exist."""

    advice = "'sabot journal show' lists the journals of this computer."


class CaptureIncomplete(SabotError, OSError):
    """Frames are missing from the capture."""

    advice = "Free space on the disk, or use another file. The frames in the file can be read."


# -- refusals -----------------------------------------------------------------------------------


class Refused(SabotError):
    """The device refused a request and did not execute it.

    ``detail`` is its reason; None if this version does not know the error or cannot read its details.
    ``why`` is the reason in words, without the request.
    """

    NAME: ClassVar[str] = ""

    def __init__(self, request: str, detail: ErrorDetail | None, code: int, extra: str = "") -> None:
        kind = messages.ERRORS_BY_CODE.get(code) if detail is None else detail
        what = "error %d, which this version does not know" % code if kind is None else kind.MEANING
        super().__init__(f"{request}: {what}{extra}", "" if kind is None else kind.REMEDY)
        self.request = request
        self.why = f"{what}{extra}".rstrip(".")
        self.detail = detail
        self.code = code


class WrongRole(Refused, PermissionError):
    """The role does not allow this request; ``may`` are the roles that do."""

    NAME = "wrong_role"

    def __init__(self, request: str, detail: ErrorDetail | None, code: int) -> None:
        asked = messages.BY_NAME.get(request)
        self.may = sorted(Role(each) for each in getattr(asked, "ROLES", ()))
        own = getattr(detail, "role", None)
        others = [each for each in self.may if each != own]  # its own role may, but not now
        roles = _listed([each.name for each in others or self.may])
        super().__init__(request, detail, code, f" Allowed roles: {roles}.")
        people = [each.name.lower() for each in others if each in (Role.FLOOR, Role.SERVICE, Role.LAB)]
        if people:
            options = _listed([f"--{each}-key FILE" for each in people])
            self.advice = (
                f"It takes the key of {_listed(people)}: {options} on the command line, "
                "by=Credential(…) in a program."
            )
        elif Role.TABLE in others:
            self.advice = "Only the device's owner may: connect with the device's key, as owner."


class WrongState(Refused):
    """The machine's state does not allow this; ``allowed`` are the states that do."""

    NAME = "wrong_state"

    def __init__(self, request: str, detail: ErrorDetail | None, code: int) -> None:
        states: type[ShoeState] | type[ShufflerState] = ShoeState
        if getattr(detail, "half", 0) == Half.SHUFFLER:
            states = ShufflerState
        known = {each.value: each for each in states}
        state = getattr(detail, "state", 0)
        allowed = getattr(detail, "allowed", 0)
        self.state: ShoeState | ShufflerState | int = known.get(state, state)
        self.allowed = [each for number, each in known.items() if allowed >> number & 1]
        halves: dict[int, str] = {Half.SHUFFLER: "The shuffler", Half.SHOE: "The shoe"}
        half = halves.get(getattr(detail, "half", 0), "It")
        extra = f" {half} is {getattr(self.state, 'name', self.state)}."
        if self.allowed:
            extra += f" It would be allowed when {_listed([each.name for each in self.allowed])}."
        super().__init__(request, detail, code, extra)
        cards_rest = self.state is ShoeState.READY or self.state is ShufflerState.STORED
        if cards_rest and any(each is ShoeState.EMPTY or each is ShufflerState.IDLE for each in self.allowed):
            self.advice += " 'sabot service empty' takes every card out of the machine."
        elif self.state is ShoeState.BLOCKED:
            self.advice = (
                "A card may lie between shoe and exit. The floor opens the shoe's door, looks, closes it and "
                "gives 'purge' at the table: 'sabot play'. docs/recovery.md has the other ways."
            )


class NotAllowed(Refused):
    """A rule forbids this now; ``reason`` says which."""

    NAME = "not_allowed"

    def __init__(self, request: str, detail: ErrorDetail | None, code: int) -> None:
        number = getattr(detail, "reason", 0)
        known = {each.value: each for each in Forbidden}
        self.reason: Forbidden | int = known.get(number, number)
        meaning = MEMBERS.get(f"Forbidden.{getattr(self.reason, 'name', '').lower()}", str(number))
        super().__init__(request, detail, code, f" Why: {meaning}.")
        self.why = meaning


class NotOwner(Refused):
    """Another host owns the device, or none does."""

    NAME = "not_owner"


class OwnerHeld(Refused, BlockingIOError):
    """Another host owns the device; ``holder`` is its id in hexadecimal."""

    NAME = "owner_held"

    def __init__(self, request: str, detail: ErrorDetail | None, code: int) -> None:
        self.holder = bytes(getattr(detail, "owner", b"")).hex()
        super().__init__(request, detail, code, f" Its id is {self.holder}.")


class Stale(Refused):
    """The command names another round or stack than the machine's present one."""

    NAME = "stale"

    def __init__(self, request: str, detail: ErrorDetail | None, code: int) -> None:
        self.round_id = getattr(detail, "round_id", 0)
        self.stack = getattr(detail, "stack", 0)
        at = f"round {self.round_id}, stack {self.stack}" if self.round_id else "no round"
        super().__init__(request, detail, code, f" It is at {at}.")


class NotExecuted(Refused):
    """The command was never executed and never will be."""

    NAME = "not_executed"


class OutcomeUnknown(Refused):
    """It is unknown whether or how far the command was executed: the device's ledger does not tell."""


class Interrupted(OutcomeUnknown):
    """Power failed while the command was being executed."""

    NAME = "interrupted"


class Forgotten(OutcomeUnknown):
    """The device's ledger no longer holds the command."""

    NAME = "forgotten"


class DeviceFaulted(Refused):
    """A fault stops the machine; ``fault``, ``place`` and ``steps`` say which, where and what to do."""

    NAME = "device_fault"

    def __init__(self, request: str, detail: ErrorDetail | None, code: int) -> None:
        number = getattr(detail, "fault", 0)
        known = {each.value: each for each in Fault}
        self.fault: Fault | int = known.get(number, number)
        self.place: Place | None = None
        self.steps = ""
        super().__init__(request, detail, code, f" The fault is {getattr(self.fault, 'name', number)}.")

    def located(self, place: Place, steps: str) -> "DeviceFaulted":
        """Add place and steps from the fault's event."""
        self.place = place
        self.steps = steps
        if steps:
            self.advice = steps
        return self


class BadCredential(Refused, PermissionError):
    """The credential does not match the person's key on the device."""

    NAME = "bad_credential"

    def presented(self, role: str, source: str) -> "BadCredential":
        """The same error with the role, and the file the key came from if it is known."""
        where = f" in {source}" if source else ""
        self.args = (
            f"{self.request}: the key of {role}{where} is not the one that the device has for {role}",
        )
        self.advice = (
            f"Give the right key file (--{role}-key FILE); 'sabot key list' tells whose keys it has."
        )
        return self


class CertificateNotAccepted(Refused, PermissionError):
    """The device does not accept a certificate, its proof or a list of revocations; ``reason`` says why."""

    NAME = "certificate_refused"

    def __init__(self, request: str, detail: ErrorDetail | None, code: int) -> None:
        number = getattr(detail, "reason", 0)
        known = {each.value: each for each in CertificateReason}
        self.reason: CertificateReason | int = known.get(number, number)
        meaning = MEMBERS.get(f"CertificateReason.{getattr(self.reason, 'name', '').lower()}", str(number))
        super().__init__(request, detail, code, f" Why: {meaning}.")


class NumberAhead(Refused):
    """The command's number is further ahead than the device allows; it was not executed."""

    NAME = "number_ahead"


class NotSupported(Refused, NotImplementedError):
    """The device does not support this request."""

    NAME = "not_supported"


_KINDS = {
    each.NAME: each
    for each in (
        WrongRole, WrongState, NotAllowed, NotOwner, OwnerHeld, Stale, NotExecuted, Interrupted, Forgotten,
        DeviceFaulted, BadCredential, CertificateNotAccepted, NumberAhead, NotSupported,
    )
}  # fmt: skip


def refusal(request: str, code: int, body: bytes) -> Refused | VersionMismatch:
    """The error for a device's refusal: its code and its details."""
    kind = messages.ERRORS_BY_CODE.get(code)
    detail: ErrorDetail | None = None
    with contextlib.suppress(FieldError):  # a newer device's details, say
        detail = None if kind is None else kind.unpack(body)
    if isinstance(detail, messages.VersionMismatchDetail):
        ours = CODEC.version
        theirs = f"{detail.major}.{detail.minor}"
        return VersionMismatch(f"{request}: the device speaks {theirs}, this driver {ours[0]}.{ours[1]}")
    return _KINDS.get("" if kind is None else kind.NAME, Refused)(request, detail, code)


def _listed(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
