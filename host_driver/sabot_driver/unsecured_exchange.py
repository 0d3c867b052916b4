"""Questions in clear, outside a session: who is there, and giving a new device its key."""

import os
import threading
import time
from types import TracebackType
from typing import Any

from sabot_driver.clock import Clock
from sabot_driver.errors import NoAnswer, NotSabot, SabotError, WrongDevice
from sabot_driver.transports import Transport
from sabot_protocol.codec import CODEC
from sabot_protocol.handshake import NO_ANSWER, ClearExchange
from sabot_protocol.host.message_base import from_values
from sabot_protocol.host.messages import Identity, IdentityFlag
from sabot_protocol.session import NONCE_SIZE, provision_proof

STOP_S = 10.0
ENTROPY_SIZE = 32
MAX_WAITING = 65536  # bytes in memory that nobody has looked at; more wait in the port

Values = tuple[Any, ...]


class UnsecuredExchange:
    """A cable held open for questions; all of them together end within the time-out."""

    def __init__(self, transport: Transport, url: str, clock: Clock, timeout: float) -> None:
        self._transport = transport
        self._url = url
        self._clock = clock
        self._timeout = timeout
        self._ends_at = time.monotonic() + timeout
        self._stopped = False
        self._simulator = False  # as the last identity said
        self._changed = threading.Condition()
        self._data = b""
        self._error: SabotError | None = None
        self._thread = threading.Thread(target=self._read, name="sabot-asking", daemon=True)

    def __enter__(self) -> "UnsecuredExchange":
        self._transport.open()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._transport.wake()
        self._thread.join(STOP_S)
        self._transport.close()

    def identify(self) -> Identity:
        """Who is on the cable; nothing of it is proved. NoAnswer if nobody says anything in time."""
        said = [_printable(each) if isinstance(each, str) else each for each in self._ask("identify", ())]
        identity = from_values(Identity, tuple(said))
        self._simulator = bool(identity.flags & IdentityFlag.SIMULATOR)
        return identity

    def provision(self, serial: bytes, key: bytes) -> None:
        """Give a new device its key, over a cable that is trusted for this once."""
        nonce = os.urandom(NONCE_SIZE)
        # A simulator is to give the same cards for the same seed: nothing is added to its generator.
        entropy = bytes(ENTROPY_SIZE) if self._simulator else os.urandom(ENTROPY_SIZE)
        (proof,) = self._ask("provision", (nonce, key, entropy))
        if proof != provision_proof(key, nonce, serial):
            raise WrongDevice(f"{self._url}: the device does not prove that it has taken the key")

    def _ask(self, name: str, values: Values) -> Values:
        clock = self._clock
        question = ClearExchange(CODEC, name, values, clock.now_ms())
        heard = 0
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
            data = self._get(max(wait, 0.0))
            heard += len(data)
            question.receive(data)
            if question.answer is not None:
                return question.answer
        if question.failure is not None and question.failure != NO_ANSWER:
            why = question.failure.replace("_", " ")
            raise SabotError(f"{self._url}: the device refuses '{name}': {why}", "See 'sabot doctor'.")
        if heard:
            raise NotSabot(f"{self._url}: what comes from there ({heard} bytes) is not from a Sabot device")
        raise NoAnswer(f"{self._url}: nothing answers in {self._timeout:g} s")

    def _read(self) -> None:
        """Read in a thread, because a transport's read may wait longer than a question can."""
        while not self._stopped:
            try:
                data = self._transport.read()
            except Exception as error:  # noqa: BLE001 (a transport's own mistake; who asks is told of it)
                why = SabotError(f"{self._url}: {error!r}", "Report this with 'sabot bundle'.")
                with self._changed:
                    self._error = error if isinstance(error, SabotError) else why
                    self._changed.notify_all()
                return
            with self._changed:
                self._changed.wait_for(lambda: len(self._data) < MAX_WAITING or self._stopped)
                self._data += data
                self._changed.notify_all()

    def _get(self, seconds: float) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._data or self._error, seconds)
            if not self._data and self._error is not None:
                raise self._error
            data, self._data = self._data, b""
            self._changed.notify_all()
            return data


def _printable(text: str) -> str:
    """A device's text without control and formatting characters: it may come from an impostor."""
    return "".join(each if each.isprintable() else "?" for each in text)
