"""Typed errors for the wire protocol's reasons."""

from sabot_driver.errors import (
    Closed,
    DeviceRebooted,
    DeviceTimeout,
    JournalError,
    KeyMissing,
    KeysLost,
    LinkLost,
    NoAnswer,
    NotProvisioned,
    NotSabot,
    OutcomeUnknown,
    OwnerHeld,
    PortBusy,
    PortDenied,
    SabotError,
    SessionEnded,
    VersionMismatch,
    WrongDevice,
    refusal,
)
from sabot_driver.serial_numbers import format_serial
from sabot_protocol.handshake import DEVICE_NOT_PROVED, NO_ANSWER, WRONG_DEVICE
from sabot_protocol.host import messages
from sabot_protocol.host_protocol import (
    DEVICE_REBOOTED,
    FORGOTTEN,
    NUMBER_USED,
    SESSION_ENDED,
    TIMED_OUT,
    TOO_LONG,
    VERSION_MISMATCH,
)
from sabot_protocol.notifications import AttachRefused

PERMANENT = (
    WrongDevice,
    NotProvisioned,
    KeyMissing,
    KeysLost,
    OwnerHeld,
    PortDenied,
    PortBusy,
    JournalError,
)
"""Errors of a first connection that trying again does not cure: ``connect`` raises them at once."""


def link_error(url: str, reason: str, garbage: bool) -> SabotError:
    """Why a session ended or did not begin; ``garbage`` if bytes were received, but no frame."""
    if reason == NO_ANSWER:
        if garbage:
            return NotSabot(f"{url}: the bytes received are not from a Sabot device")
        return NoAnswer(f"{url}: no device answers")
    if reason == DEVICE_NOT_PROVED or reason == "bad_proof":
        return WrongDevice(
            f"{url}: the device does not have the key that this program uses for it",
            "Use this device's own key file. If its key was changed from another computer, copy the key file "
            "from there. If the device was exchanged, set its table up again ('sabot table set'). If none of "
            "this happened, check what is on the cable.",
        )
    if reason == WRONG_DEVICE:
        return WrongDevice(f"{url}: another device than the expected one answers")
    if reason == "not_provisioned":
        return NotProvisioned(f"{url}: the device has no key any more", NotProvisioned.had_key_advice)
    if reason == "keys_damaged":
        return KeysLost(f"{url}: the device's keys are damaged")
    if reason == "no_such_key":
        return KeyMissing(f"{url}: the device has no observers' key", "Have service set its observers' key.")
    if reason == "bad_field":
        return KeyMissing(f"{url}: the device does not accept this host's id")
    return LinkLost(f"{url}: the session is over ({reason.replace('_', ' ')})")


def wrong_kind(url: str, serial: bytes, emulated: bool) -> WrongDevice:
    """A simulator answers where a machine is expected, or a machine where a simulator is."""
    who = format_serial(serial)
    if emulated:
        return WrongDevice(
            f"{url}: {who} is a simulator, not a machine",
            "If you started this simulator yourself, add --simulator (in a program: simulator=True). "
            "If not, check what is connected.",
        )
    return WrongDevice(f"{url}: {who} is a machine, not a simulator", "Leave out --simulator.")


def attach_error(url: str, refused: AttachRefused) -> SabotError:
    """Why the device does not accept this host as its owner or observer."""
    error = refusal("attach", refused.status, refused.body)
    if getattr(error, "code", 0) == messages.BadFieldDetail.CODE:
        return WrongDevice(
            f"{url}: this journal has later events than the device; the device was reset, or the "
            "journal belongs to another device",
            "Put the journal aside with 'sabot journal aside'; docs/driver.md says what that means.",
        )
    return error


def request_error(
    name: str, reason: str, command: int | None, problem: SabotError | None, may_be_sent: bool = True
) -> SabotError:
    """Why a request ended without an answer. ``problem`` is why the link is down, if it is.

    ``may_be_sent`` False: there was no session in its time, so that it was never sent.
    """
    if reason == TIMED_OUT:
        if problem is not None and command is None:
            lost = LinkLost(f"{name}: {problem}", problem.advice)
            lost.__cause__ = problem
            return lost
        why = f" The link is down: {problem}" if problem is not None else ""
        what = "no answer within the time-out" if may_be_sent else "not sent within the time-out"
        return DeviceTimeout(f"{name}: {what}.{why}", command, name, may_be_sent)
    if reason == DEVICE_REBOOTED:
        return DeviceRebooted(f"{name}: the device restarted before this was sent; it was not executed")
    if reason == FORGOTTEN:
        return refusal(name, messages.ForgottenDetail.CODE, b"")
    if reason == VERSION_MISMATCH:
        return VersionMismatch(f"{name}: the device's version does not have this request; not executed")
    if reason == SESSION_ENDED:
        return SessionEnded(f"{name}: the session of this request has ended")
    if reason == NUMBER_USED:
        return SessionEnded(
            f"{name}: not executed; the device has newer commands of this host than the journal: "
            "an old journal was restored"
        )
    assert reason == TOO_LONG, reason
    return SabotError(f"{name}: too long for the device's frames; not executed", "Send less in one request.")


def outcome(error: SabotError | None) -> str | None:
    """A command's outcome for the journal; None while the device can still be asked for it."""
    if error is None:
        return "done"
    if isinstance(error, OutcomeUnknown):
        return "unknown"
    if isinstance(error, DeviceTimeout) and not error.may_be_sent:
        return "not_executed"
    if isinstance(error, DeviceTimeout | Closed):
        return None
    return "not_executed"
