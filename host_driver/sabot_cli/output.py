"""What the command line says: for a person, or one JSON object a line."""

import json
import re
import sys
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from rich.console import Console
from rich.errors import MarkupError
from rich.markup import escape
from rich.text import Text

from sabot_driver.errors import (
    AmbiguousDevice,
    BadCredential,
    BadUrl,
    DeviceFaulted,
    DeviceTimeout,
    JournalDamaged,
    KeyExposed,
    KeyMissing,
    KeysLost,
    LinkLost,
    NoDevice,
    NotProvisioned,
    OwnerHeld,
    PortBusy,
    PortDenied,
    SabotError,
    VersionMismatch,
    WrongDevice,
)
from sabot_flash.errors import BadImage, BoardBusy, NoApplication, NotWritten
from sabot_serve.errors import CredentialRefused, ServiceGone, ServiceRunning
from sabot_session.errors import NotAuthenticated, PersonUnknown, RecordHeld

SHOWN = "\n\t"
OTHER_TAG = re.compile(r"(?<!\\)\[(?!/?(?:red|green|yellow|dim|bold|bold yellow)\])")
"""What would begin a tag of rich that none of our texts has."""
SCHEMA = 1
"""The version of the JSON objects; it rises when a field changes its meaning or goes away."""

OK, FAILED, USAGE, NO_DEVICE, AMBIGUOUS, NOT_VERIFIED, IN_PROGRESS, FAULT = 0, 1, 2, 3, 4, 5, 6, 7


class NotVerified(SabotError):
    """Evidence, a certificate or a package that does not hold what it must."""


_CODES: tuple[tuple[tuple[type[SabotError], ...], int], ...] = (
    ((BadUrl, NoApplication), USAGE),
    ((AmbiguousDevice,), AMBIGUOUS),
    ((WrongDevice, NotProvisioned, KeysLost, KeyMissing, KeyExposed, BadCredential), NOT_VERIFIED),
    ((VersionMismatch, JournalDamaged), NOT_VERIFIED),
    ((BadImage, NotWritten), NOT_VERIFIED),
    ((NotAuthenticated, PersonUnknown, CredentialRefused, NotVerified), NOT_VERIFIED),
    ((OwnerHeld, BoardBusy, RecordHeld, ServiceRunning), IN_PROGRESS),
    ((DeviceFaulted,), FAULT),
    ((NoDevice, PortBusy, PortDenied, LinkLost, DeviceTimeout, ServiceGone), NO_DEVICE),
)


def exit_code(error: SabotError) -> int:
    """The exit code that stands for an error."""
    for kinds, code in _CODES:
        if isinstance(error, kinds):
            return code
    return FAILED


class Output:
    """Where a command's words go. Colour only on a terminal."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json
        self.simulator: bool | None = None
        """Whether the device is emulated, once that is known; it is then said in every object."""
        # At a terminal lines end between words; in a file or a pipe a sentence stays one line.
        self.console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
        self.errors = Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())

    def tell(self, event: str, text: str | None = None, /, **fields: Any) -> None:
        """Say something: the object in JSON, or the words (rich markup) to a person."""
        if self.as_json:
            said: dict[str, Any] = {"v": SCHEMA, "event": event, "at": utc(datetime.now(UTC))}
            if self.simulator is not None:
                said["simulator"] = self.simulator
            line = json.dumps({**said, **fields}, ensure_ascii=False)
            sys.stdout.write("".join(map(_json_character, line)) + "\n")
            sys.stdout.flush()
        elif text is not None:
            _print(self.console, text)

    def busy(self, text: str) -> AbstractContextManager[object]:
        """A spinner with a text for a person, as long as the context lasts; nothing in JSON."""
        return nullcontext() if self.as_json else self.console.status(text)

    def error(self, error: SabotError) -> int:
        """Say what went wrong and what to do; the exit code."""
        code = exit_code(error)
        if self.as_json:
            self.tell("error", error=type(error).__name__, message=str(error), advice=error.advice, exit=code)
        else:
            _print(self.errors, f"[red]{escape(str(error))}[/red]")
            if error.advice:
                _print(self.errors, escape(error.advice))
        return code


def plain_text(text: str) -> str:
    """A text that a terminal shows and does not obey: "?" for control characters but line ends.

    Such are escape sequences, marks that turn the reading direction, and bytes that were no UTF-8.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in SHOWN else "?" for each in text)


def _print(console: Console, text: str) -> None:
    """Print a text with our own markup. A tag of any other name is shown, as whatever people wrote."""
    safe = OTHER_TAG.sub(r"\\\g<0>", plain_text(text))
    try:
        console.print(safe)
    except MarkupError:  # somebody wrote the end of a tag
        console.print(Text(plain_text(text)))


def _json_character(each: str) -> str:
    """A character of a line of JSON; one that a terminal could obey is escaped, as JSON allows it."""
    if each.isprintable():
        return each
    return json.dumps(each)[1:-1]


def utc(moment: datetime) -> str:
    """A moment as JSON has it: ISO 8601, UTC, milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def plain(value: Any) -> Any:
    """A value as JSON has it: enum members by name, bytes as hex digits, containers member by member."""
    if isinstance(value, Enum):
        return (value.name or str(value.value)).lower()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value if isinstance(value, int | float | str | bool) or value is None else str(value)
