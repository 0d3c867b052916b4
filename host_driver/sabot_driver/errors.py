"""What can go wrong between a program and its device, as types.

Every error says what happened and, in ``advice``, what to do about it. Those that have a built-in relative
derive from it too, so that ``except TimeoutError`` and ``except ConnectionError`` work as one expects.
"""

import contextlib
from typing import ClassVar

from sabot_protocol.codec import CODEC
from sabot_protocol.errors import FieldError
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import ErrorDetail
from sabot_protocol.host.messages import Fault, Forbidden, Half, Place, Role, ShoeState, ShufflerState
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
    """A device URL that nothing here can open."""

    advice = "Use a serial port (/dev/ttyACM0, COM3), socket://HOST:PORT, usb://SERIAL or sim://."


class BadSerial(SabotError, ValueError):
    """Not a serial number."""

    advice = "Eight letters and digits, or sixteen hexadecimal digits, as 'sabot devices' shows them."


class KeyIsSet(SabotError):
    """Somebody has that key already."""

    advice = "Use the file it is in, or have service set another one."


class NoDevice(SabotError, FileNotFoundError):
    """There is no such port, or nothing that could be a device."""

    advice = "Check cable and power; 'sabot devices' lists what is found. --device sim:// emulates a device."


class AmbiguousDevice(SabotError):
    """More than one device fits; ``matches`` are their URLs."""

    def __init__(self, matches: list[str]) -> None:
        super().__init__(
            f"{len(matches)} devices fit: " + ", ".join(matches),
            "Say which one is meant: --device URL, or --table NAME.",
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

    advice = "Close the other program; 'sabot doctor' says which one it is, where the system tells."


# -- the link -----------------------------------------------------------------------------------


class LinkLost(SabotError, ConnectionError):
    """The cable, the port or the session is gone, and did not come back in the time given."""

    advice = "Check cable and power; the driver goes on trying by itself."


class NoAnswer(LinkLost):
    """Something is connected, but it does not answer as a Sabot device does."""

    advice = "Check that this is the right port and that the device has power; plug it in again."


class NotSabot(NoAnswer):
    """What comes from the port are no frames of ours."""

    advice = "Another kind of device is on this port, or its speed is wrong: see 'sabot devices'."


class DeviceTimeout(SabotError, TimeoutError):
    """No answer in the time given. With a command's ``number``, ``Client.resolve`` tells its end."""

    advice = "A command may have been executed: resolve it by its number before repeating it."

    def __init__(self, message: str, number: int | None = None, request: str = "") -> None:
        super().__init__(message, None if number is not None else "Ask again, or check the device.")
        self.number = number
        self.request = request


class DeviceRebooted(SabotError, ConnectionResetError):
    """The device restarted before this was sent: it was not executed."""

    advice = "Read the status and begin again from what it tells; a round that was open is void."


class SessionEnded(SabotError, ConnectionAbortedError):
    """It was meant for a session that has ended, such as a person's elevation: it was not carried out."""

    advice = "Ask again in the new session."


class WrongDevice(SabotError):
    """A device answers, but not the one that was expected, or it cannot prove that it is."""

    advice = (
        "If the device was exchanged, set its table up anew ('sabot table set'); if not, check the cables."
    )


class NotProvisioned(SabotError):
    """A new device without a key: it accepts nothing but identification and provisioning."""

    advice = "Give it a key over a cable you trust: 'sabot provision --device URL'."
    had_key_advice = (
        "This machine had a key. Was the contact in its logic compartment held? If so, give it a new key: "
        "'sabot provision --replace'. If not, it may be an impostor: find out what is on the cable."
    )
    """The advice where this computer knows a key of a machine with that serial number."""


class KeysLost(SabotError):
    """The device's keys are damaged: it identifies itself and refuses everything else."""

    advice = (
        "Take it out of play. Service holds the contact in the logic compartment for 5 s, then provisions "
        "it; if that does not help, the controller is replaced."
    )


class KeyMissing(SabotError):
    """This computer has no key for that device."""

    advice = "Copy the device's key file from the computer that provisioned it, readable by its owner only."


class KeyExposed(SabotError, PermissionError):
    """A key file can be read by others; it is not used."""

    advice = "Take the rights of group and others away (chmod 600), and have service change the key."


class VersionMismatch(SabotError):
    """Driver and device speak different versions: only identification, status and updates work."""

    advice = "Update the side with the lower version; updates work between any two versions."


class Closed(SabotError, ValueError):
    """The client was closed."""

    advice = "Connect again."


class Forked(SabotError, RuntimeError):
    """This client was made in another process, of which this one is a fork: it has no threads here."""

    advice = "Connect in the process that uses the client; start processes with 'spawn'."


# -- the journal --------------------------------------------------------------------------------


class JournalError(SabotError, OSError):
    """The journal cannot be used."""

    advice = "Check the disk and the rights of the folder the journal is in."


class JournalFull(JournalError):
    """The journal cannot be written: nothing is acknowledged any more, and no round may be opened."""

    advice = "Make room on the disk; the driver goes on by itself, the device keeps its events meanwhile."


class JournalBusy(JournalError, TimeoutError):
    """The disk, or another program that holds the journal's write lock, let a write wait for too long.

    A command that ends so was not sent and is not executed.
    """

    advice = "Ask again; if it lasts, find the program that holds the file, or check the disk."


class JournalDamaged(JournalError):
    """The journal is not what it should be, or belongs to another device."""

    advice = "Put the file aside and start with a new one: docs/driver.md says what that means."


class JournalMissing(JournalError, FileNotFoundError):
    """There is no such journal."""

    advice = "'sabot journal show' lists those of this computer."


class CaptureIncomplete(SabotError, OSError):
    """Not every frame that passed is in the capture."""

    advice = "Make room on the disk, or name another file; what is in the file can be read."


# -- refusals -----------------------------------------------------------------------------------


class Refused(SabotError):
    """The device refused a request, and nothing has happened.

    ``detail`` is what it said; None if this version does not know the error or cannot read its details.
    """

    NAME: ClassVar[str] = ""

    def __init__(self, request: str, detail: ErrorDetail | None, code: int, extra: str = "") -> None:
        kind = messages.ERRORS_BY_CODE.get(code) if detail is None else detail
        what = "error %d, which this version does not know" % code if kind is None else kind.MEANING
        super().__init__(f"{request}: {what}{extra}", "" if kind is None else kind.REMEDY)
        self.request = request
        self.detail = detail
        self.code = code


class WrongRole(Refused, PermissionError):
    """The session's role may not ask for this; ``may`` are the roles that could."""

    NAME = "wrong_role"

    def __init__(self, request: str, detail: ErrorDetail | None, code: int) -> None:
        asked = messages.BY_NAME.get(request)
        self.may = sorted(Role(each) for each in getattr(asked, "ROLES", ()))
        super().__init__(request, detail, code, f" It takes {_listed([each.name for each in self.may])}.")


class WrongState(Refused):
    """Not in the state the machine is in; ``allowed`` are the states in which it would be."""

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
        extra = f" It is {getattr(self.state, 'name', self.state)}."
        if self.allowed:
            extra += f" It would be allowed when {_listed([each.name for each in self.allowed])}."
        super().__init__(request, detail, code, extra)


class NotAllowed(Refused):
    """A rule forbids it now; ``reason`` says which."""

    NAME = "not_allowed"

    def __init__(self, request: str, detail: ErrorDetail | None, code: int) -> None:
        number = getattr(detail, "reason", 0)
        known = {each.value: each for each in Forbidden}
        self.reason: Forbidden | int = known.get(number, number)
        meaning = MEMBERS.get(f"Forbidden.{getattr(self.reason, 'name', '').lower()}", str(number))
        super().__init__(request, detail, code, f" Why: {meaning}.")


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
    """The command speaks of another round or stack than the machine is at."""

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
    """Nobody can say whether or how far the command was executed; it was asked for and never guessed."""


class Interrupted(OutcomeUnknown):
    """The command was begun, then the power went."""

    NAME = "interrupted"


class Forgotten(OutcomeUnknown):
    """The device no longer knows what became of the command."""

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
        """The same, with what the event of the fault has told."""
        self.place = place
        self.steps = steps
        if steps:
            self.advice = steps
        return self


class BadCredential(Refused, PermissionError):
    """The proof does not fit the person's key."""

    NAME = "bad_credential"


class NumberAhead(Refused):
    """The command's number is further ahead than the device allows; it was not executed."""

    NAME = "number_ahead"


class NotSupported(Refused, NotImplementedError):
    """This device cannot do that."""

    NAME = "not_supported"


_KINDS = {
    each.NAME: each
    for each in (
        WrongRole, WrongState, NotAllowed, NotOwner, OwnerHeld, Stale, NotExecuted, Interrupted, Forgotten,
        DeviceFaulted, BadCredential, NumberAhead, NotSupported,
    )
}  # fmt: skip


def refusal(request: str, code: int, body: bytes) -> Refused | VersionMismatch:
    """The error for what a device answered instead of an answer."""
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
