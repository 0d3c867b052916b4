"""Requests outside a session: identify a device, and provision a new one with its key."""

import contextlib
import os
import threading
import time
from queue import Empty, Queue
from types import TracebackType
from typing import Any

from sabot_driver.clock import Clock
from sabot_driver.errors import NoAnswer, NotSabot, ResetRefused, ResetRequired, SabotError, WrongDevice
from sabot_driver.transports import Transport
from sabot_protocol.codec import CODEC
from sabot_protocol.handshake import NO_ANSWER, ClearExchange
from sabot_protocol.host.message_base import from_values
from sabot_protocol.host.messages import Identity, IdentityFlag, ResetIs
from sabot_protocol.session import provision_proof
from sabot_protocol.wire_constants import NONCE_SIZE

STOP_S = 10.0
ENTROPY_SIZE = 32
RESET_S = 30.0  # a board checks a signature for seconds

Values = tuple[Any, ...]


class UnsecuredExchange:
    """A port held open for unsecured requests, which together end within the time-out."""

    def __init__(self, transport: Transport, url: str, clock: Clock, timeout: float) -> None:
        self._transport = transport
        self._url = url
        self._clock = clock
        self._timeout = timeout
        self._ends_at = time.monotonic() + timeout
        self._stopped = False
        self._simulator = False  # as the last identity said
        self._received: Queue[bytes | Exception] = Queue(1)  # what comes meanwhile waits in the port
        self._thread = threading.Thread(target=self._read, name="sabot-unsecured", daemon=True)

    def __enter__(self) -> "UnsecuredExchange":
        self._transport.open()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped = True
        self._transport.wake()
        self._get(0)  # lets a thread go on that waits to put something
        self._thread.join(STOP_S)
        self._transport.close()

    def identify(self) -> Identity:
        """How the device identifies itself, unproved. NoAnswer if nothing answers in time."""
        values = [_printable(each) if isinstance(each, str) else each for each in self._ask("identify", ())]
        identity = from_values(Identity, tuple(values))
        self._simulator = bool(identity.flags & IdentityFlag.SIMULATOR)
        return identity

    def provision(self, serial: bytes, key: bytes) -> None:
        """Give a new device its key. The key travels unencrypted: the cable must be trusted."""
        nonce = os.urandom(NONCE_SIZE)
        # A simulator deals the same cards for the same seed: its generator gets no entropy from here.
        entropy = bytes(ENTROPY_SIZE) if self._simulator else os.urandom(ENTROPY_SIZE)
        (proof,) = self._ask("provision", (nonce, key, entropy))
        if proof != provision_proof(key, nonce, serial):
            raise WrongDevice(f"{self._url}: the device does not prove that it has taken the key")

    def reset_state(self) -> ResetIs:
        """The house that the device belongs to and its reset count, unproved."""
        return from_values(ResetIs, self._ask("reset_statement", (os.urandom(NONCE_SIZE), b"")))

    def show_reset(self, signature: bytes) -> None:
        """Show a house's signature for this reset; ResetRefused if the device does not accept it."""
        self._ends_at = max(self._ends_at, time.monotonic() + RESET_S)
        answer = from_values(ResetIs, self._ask("reset_statement", (os.urandom(NONCE_SIZE), signature)))
        if answer.bound and not answer.accepted:
            raise ResetRefused(f"{self._url}: the device does not accept the reset statement")
        self._ends_at = max(self._ends_at, time.monotonic() + self._timeout)

    def _ask(self, name: str, values: Values) -> Values:
        clock = self._clock
        question = ClearExchange(CODEC, name, values, clock.now_ms())
        received = 0
        while time.monotonic() < self._ends_at:
            out = question.poll(clock.now_ms())
            if out:
                self._transport.write(out)
            if question.failure is not None:
                break
            due = question.deadline()
            wait = self._ends_at - time.monotonic()
            if due is not None:
                wait = min(wait, clock.seconds_until(due))
            data = self._get(wait)
            if isinstance(data, SabotError):
                raise data
            if isinstance(data, Exception):
                raise SabotError(f"{self._url}: {data!r}", "Report this with 'sabot bundle'.") from data
            received += len(data)
            question.receive(data)
            if question.answer is not None:
                return question.answer
        if question.failure is not None and question.failure != NO_ANSWER:
            why = question.failure.replace("_", " ")
            if question.failure == "reset_required":
                raise ResetRequired(f"{self._url}: the device belongs to a house and takes no key without it")
            if name == "reset_statement" and question.failure == "bad_proof":
                raise ResetRefused(f"{self._url}: the signature does not fit this device and this reset")
            raise SabotError(f"{self._url}: the device refuses '{name}': {why}", "See 'sabot doctor'.")
        if received:
            raise NotSabot(f"{self._url}: the {received} bytes received are not from a Sabot device")
        raise NoAnswer(f"{self._url}: no device answered in {self._timeout:.3g} s")

    def _read(self) -> None:
        """Read in a thread, because a transport's read may wait longer than a request can."""
        while not self._stopped:
            try:
                self._received.put(self._transport.read())
            except Exception as error:  # noqa: BLE001 (raised in the thread that waits)
                self._received.put(error)
                return

    def _get(self, seconds: float) -> bytes | Exception:
        """What was read, or the error that ended reading; nothing after so many seconds."""
        with contextlib.suppress(Empty):
            return self._received.get(seconds > 0, seconds)
        return b""


def _printable(text: str) -> str:
    """A device's text without control and formatting characters: it may come from an impostor."""
    return "".join(each if each.isprintable() else "?" for each in text)
