"""A table that another process runs, at this terminal: a second face of the same session.

A thread follows the table's snapshot. While the other process does not answer, the table's one need is to
wait for it; this program looks for it again, because it may have been restarted at another address.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from sabot_driver.errors import SabotError
from sabot_serve.errors import OtherVersion, ServiceGone, ServiceRefused
from sabot_serve.service_client import ServiceClient
from sabot_serve.service_file import ServiceAddress, find_service
from sabot_session import row_data as d
from sabot_session.acts import Act, SignIn, act_data
from sabot_session.errors import NotAuthenticated
from sabot_session.needs import Need, NeedKind
from sabot_session.outcomes import ActDone, ActRefused
from sabot_session.people import Presented
from sabot_session.round_history import Round, build_round
from sabot_session.rows import NumberedRow
from sabot_session.snapshot import VERSION
from sabot_table.procedure import TableRole
from sabot_table.ruleset import RuleSet, load

START_S = 10.0
AGAIN_S = 0.5  # between two looks for the process that runs the table
REPEAT_S = 15.0  # how long an act without an answer is sent again, under its id
WAITING = Need(
    "waiting",
    NeedKind.LINK,
    (),
    "the program that runs this table does not answer; this one goes on when it does",
    "",
    (),
    0,
    0,
)


@dataclass(frozen=True, slots=True)
class SimulatedRole:
    """The simulated person of a role, at a table that somebody else plays with simulated people."""

    role: TableRole


class AttachedTable:
    """The face of a table that another process runs; use it as a context manager."""

    own_client = None
    ends_with_us = False
    failure: BaseException | None = None

    def __init__(self, folder: Path, at: ServiceAddress) -> None:
        """Ask what the table is; `ServiceGone`, `OtherVersion` if it cannot be shown."""
        self._folder = folder
        self._client = ServiceClient(at)
        about = self._client.check()
        self.name = str(about["table"])
        self.rules: RuleSet = load(str(about["ruleset"]))
        self.boot_id = int(about["boot_id"])
        self.about = about
        self.dealer_here = ""
        """The dealer who signed in at this terminal."""
        self._cursor = ""
        self._snapshot: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._first = threading.Event()
        self._closing = threading.Event()
        self._connected = False
        self._end_stream: Callable[[], None] = _nothing
        self._problem: SabotError | None = None
        self._thread = threading.Thread(target=self._follow, name="sabot-attached", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._first.wait(START_S) or self._problem is not None:
            self.close()
            raise self._problem or ServiceGone(f"process {self._client.at.pid} told nothing of its table")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the thread. The table goes on."""
        self._closing.set()
        self._end_stream()
        self._thread.join()

    # -- the snapshot ---------------------------------------------------------------------------

    def _follow(self) -> None:
        while not self._closing.is_set():
            try:
                for cursor, data in self._client.stream(self._cursor, self._opened):
                    self._take(cursor, data)
            except (ServiceGone, ServiceRefused):
                self._connected = False
            except OtherVersion as error:
                self._problem = error
                self._first.set()
                return
            if not self._closing.wait(AGAIN_S):
                self._look_again()

    def _opened(self, end: Callable[[], None]) -> None:
        self._end_stream = end
        if self._closing.is_set():
            end()

    def _take(self, cursor: str, data: Any) -> None:
        if data is not None:
            parts = data["parts"]
            with self._lock:
                self._snapshot = parts if data["full"] else {**self._snapshot, **parts}
                version = self._snapshot.get("version")
            if version != VERSION:
                raise OtherVersion("the program that runs this table shows it in another version")
            self._cursor = cursor
            self._first.set()
        self._connected = True

    def _look_again(self) -> None:
        """The process may have been started again: its file says where it is now."""
        try:
            found = find_service(self._folder)
        except SabotError:
            return  # the file is being written; the next look finds it
        if found is not None:
            self._client.move(found)

    def snapshot(self) -> Mapping[str, Any]:
        """The newest snapshot that was told."""
        with self._lock:
            return self._snapshot

    def needs(self) -> list[Need]:
        """What must happen now; to wait, while the process does not answer."""
        if not self._connected:
            return [WAITING]
        return [_need(each) for each in self.snapshot()["needs"]]

    # -- the record -----------------------------------------------------------------------------

    def rows(self, after: int, *kinds: str) -> Iterable[NumberedRow]:
        """Rows after a number. Those of a process that does not answer come when it does."""
        if not kinds and after >= self.snapshot()["newest_row"]:
            return
        try:
            yield from self._client.rows(after, *kinds)
        except ServiceGone:
            self._connected = False

    def round(self, round_id: int) -> Round:
        """A round as the record tells it."""
        rows, preview = self._client.round(round_id)
        found = build_round(rows)
        if preview is None:
            return found
        settled = d.Settled.model_validate(preview, strict=False)
        return replace(found, facts=replace(found.facts, settled=settled))

    def commitment(self, shuffle_id: int) -> tuple[str, str] | None:
        """Not told to a second face; the row of the reveal has both."""
        return None

    def checkpoints(self) -> list[str]:
        """The newest signed checkpoints, as the process that runs the table tells them."""
        return self._client.checkpoints()

    # -- acts -----------------------------------------------------------------------------------

    def act(self, act_id: str, need_id: str | None, seen: int, credential: object, act: Act) -> ActDone:
        """Give an act. Without an answer it is sent again under its id, so that it is done once."""
        if isinstance(credential, Presented) and credential.person:
            signs_in, deals = isinstance(act, SignIn), self.snapshot()["table"]["dealer"]
            if signs_in or credential.person == deals:  # anybody else would relieve the dealer
                self._sign_in(credential, signs_in)
                if signs_in:
                    return ActDone(int(self.snapshot()["newest_row"]))
                credential = None
        body = {
            "act_id": act_id,
            "need": need_id,
            "seen": seen,
            "act": act.NAME,
            "data": act_data(act),
            "credential": _shown(credential),
        }
        done = self._send("/api/acts", body)
        return ActDone(int(done["row"]), bool(done["repeated"]))

    def _sign_in(self, who: Presented, at_table: bool) -> None:
        told = self._send("/api/sign-in", {"person": who.person, "pin": who.pin})
        self.dealer_here = str(told["person"])
        if not told["deals"]:
            words = f"{told['person']} is signed in here and does not deal: {told['message']}"
            raise ActRefused(words) if at_table else NotAuthenticated(words)

    def _send(self, path: str, body: Mapping[str, Any]) -> Any:
        ends = time.monotonic() + REPEAT_S
        while True:
            try:
                return self._client.post(path, body)
            except ServiceGone:
                self._connected = False
                if time.monotonic() > ends or self._closing.wait(AGAIN_S):
                    raise
                self._look_again()


def _nothing() -> None:
    """Ends a stream that has not begun."""


def _need(told: Mapping[str, Any]) -> Need:
    return Need(
        str(told["id"]),
        NeedKind(told["kind"]),
        tuple(TableRole(each) for each in told["roles"]),
        str(told["words"]),
        str(told["clause"]),
        tuple(told["acts"]),
        int(told["since_s"]),
        int(told["seen"]),
        told["details"],
    )


def _shown(credential: object) -> dict[str, str] | None:
    """A credential as the service takes it."""
    if credential is None:
        return None
    if isinstance(credential, SimulatedRole):
        return {"pin": "", "simulated": str(credential.role)}
    assert isinstance(credential, Presented)
    shown = {"pin": credential.pin, "person": credential.person, "badge": credential.badge}
    key = credential.key
    if key is not None:
        number = f" {key.person}" if key.person else ""
        shown |= {"key": f"{key.key.hex()}{number}", "role": key.role.name.lower()}
    if credential.certificate is not None:
        held = credential.certificate
        shown |= {"certificate": held.certificate.line(), "proof": held.proof.line()}
    return shown
