"""Why something ended, as one of our errors: the wire's names for it in, typed errors with advice out."""

from sabot_driver.errors import (
    Closed,
    DeviceRebooted,
    DeviceTimeout,
    KeyMissing,
    KeysLost,
    LinkLost,
    NoAnswer,
    NotProvisioned,
    NotSabot,
    OutcomeUnknown,
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


def link_error(url: str, reason: str, garbage: bool) -> SabotError:
    """Why a session ended or did not begin; ``garbage`` if bytes came and none of them was a frame."""
    if reason == NO_ANSWER:
        if garbage:
            return NotSabot(f"{url}: what comes from there is not from a Sabot device")
        return NoAnswer(f"{url}: nothing answers")
    if reason == DEVICE_NOT_PROVED or reason == "bad_proof":
        return WrongDevice(f"{url}: the device does not have the key this table knows it by")
    if reason == WRONG_DEVICE:
        return WrongDevice(f"{url}: another device answers than the one expected")
    if reason == "not_provisioned":
        return NotProvisioned(f"{url}: the device has no key any more", NotProvisioned.had_key_advice)
    if reason == "keys_damaged":
        return KeysLost(f"{url}: the device's keys are damaged")
    if reason == "no_such_key":
        return KeyMissing(f"{url}: the device takes no observers", "Have service set its observers' key.")
    if reason == "bad_field":
        return KeyMissing(f"{url}: the device does not take this host's id")
    return LinkLost(f"{url}: the session is over ({reason.replace('_', ' ')})")


def wrong_kind(url: str, serial: bytes, emulated: bool) -> WrongDevice:
    """A simulator where a machine is expected, or the other way round."""
    who = format_serial(serial)
    if emulated:
        return WrongDevice(
            f"{url}: {who} is a simulator, not a machine",
            "If you started this simulator yourself, add --simulator. If not, find out what is on the cable.",
        )
    return WrongDevice(f"{url}: {who} is a machine, not a simulator", "Leave out --simulator.")


def attach_error(url: str, refused: AttachRefused) -> SabotError:
    """Why the device does not take this host as its owner or observer."""
    error = refusal("attach", refused.status, refused.body)
    if getattr(error, "code", 0) == messages.BadFieldDetail.CODE:
        return WrongDevice(
            f"{url}: the device has not come as far as this journal says; it was reset, or the "
            "journal is of another one",
            "Put the journal aside and start with a new one: docs/driver.md says what that means.",
        )
    return error


def request_error(name: str, reason: str, command: int | None, problem: SabotError | None) -> SabotError:
    """Why a request ended without an answer: its name, its number if it is a command, what ails the link."""
    if reason == TIMED_OUT:
        if problem is not None and command is None:
            lost = LinkLost(f"{name}: {problem}", problem.advice)
            lost.__cause__ = problem
            return lost
        why = f" The link is down: {problem}" if problem is not None else ""
        return DeviceTimeout(f"{name}: no answer in the time given.{why}", command, name)
    if reason == DEVICE_REBOOTED:
        return DeviceRebooted(f"{name}: the device restarted before this was sent; it was not executed")
    if reason == FORGOTTEN:
        return refusal(name, messages.ForgottenDetail.CODE, b"")
    if reason == VERSION_MISMATCH:
        return VersionMismatch(f"{name}: the device's version does not have this message; not executed")
    if reason == SESSION_ENDED:
        return SessionEnded(f"{name}: the session it was meant for has ended")
    if reason == NUMBER_USED:
        return SessionEnded(
            f"{name}: not executed; this host's journal is older than what the device remembers of it"
        )
    assert reason == TOO_LONG, reason
    return SabotError(f"{name}: longer than the device's frames; not executed", "Send less at once.")


def outcome(error: SabotError | None) -> str | None:
    """What the journal keeps of a command's end; None while nobody knows and it can still be asked."""
    if error is None:
        return "done"
    if isinstance(error, OutcomeUnknown):
        return "unknown"
    if isinstance(error, DeviceTimeout | Closed):
        return None
    return "not_executed"
