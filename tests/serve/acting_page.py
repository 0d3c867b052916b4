"""Pages of a service that may be killed at any moment: one that gives every act, and ones that only look.

They do what ``live.js`` does: connect again with the cursor, and send an act without an answer again under
its id. They keep what they were told, so that it can be compared with the record.
"""

import contextlib
import json
import secrets
import threading
import time
from collections.abc import Mapping
from typing import Any

import httpx
from tests.serve.served_process import DEALER, DEALER_PIN, ServedProcess

from sabot_session.acts import ACTS, act_data
from sabot_session.needs import Need, NeedKind
from sabot_simulators.simulated_staff import SimulatedStaff
from sabot_table.procedure import TableRole

AGAIN_S = 0.3
ASK_S = 10.0
QUIET_S = 3.0
LOST = (httpx.TransportError, json.JSONDecodeError)


class LookingPage:
    """An open page: it follows the table's snapshot in a thread."""

    def __init__(self, served: ServedProcess) -> None:
        self.served = served
        self.http = served.client(timeout=ASK_S)
        served.enter(self.http)
        self.snapshot: dict[str, Any] = {}
        self.heard_s = 0.0
        self.connections = 0
        self.highest_row = 0
        self.rounds: dict[int, Any] = {}
        """What the page was told of each round that was over."""
        self.problem: BaseException | None = None
        self._cursor = ""
        self._closing = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing = True
        self._thread.join()
        self.http.close()

    def _run(self) -> None:
        try:
            while not self._closing:
                with contextlib.suppress(*LOST):
                    self._stream()
                time.sleep(AGAIN_S)
        except BaseException as error:  # noqa: BLE001 - whoever waits for this page must hear of it
            self.problem = error

    def _stream(self) -> None:
        headers = {"Last-Event-ID": self._cursor} if self._cursor else {}
        with self.http.stream("GET", "/api/events/table", headers=headers, timeout=QUIET_S) as stream:
            assert stream.status_code == 200, f"a page that was let in got {stream.status_code}"
            self.connections += 1
            kind = cursor = ""
            for line in stream.iter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "id":
                    cursor = value
                elif name == "data":
                    self.heard_s = time.monotonic()
                    if kind == "change":
                        self._take(cursor, json.loads(value))
                if self._closing:
                    return

    def _take(self, cursor: str, data: Mapping[str, Any]) -> None:
        run = cursor.partition(".")[0]
        assert data["full"] or run == self._cursor.partition(".")[0], "changes of one run on top of another"
        self.snapshot = dict(data["parts"]) if data["full"] else {**self.snapshot, **data["parts"]}
        self._cursor = cursor
        newest = int(self.snapshot["newest_row"])
        assert newest >= self.highest_row, f"row {self.highest_row} was told, now {newest} is the newest"
        self.highest_row = newest
        last = self.snapshot["last_round"]
        if last is not None:
            self.rounds[last["round_id"]] = last

    def wait_heard(self, patience_s: float) -> None:
        """Wait until the page has heard something from now on; AssertionError if it does not."""
        began = time.monotonic()
        while self.heard_s < began:
            if self.problem is not None:
                raise AssertionError("the page failed") from self.problem
            assert time.monotonic() < began + patience_s, "the page has not recovered"
            time.sleep(0.02)


class _Hands:
    """What a simulated person needs to know which act meets a need; the page sends it."""

    def needs(self) -> list[Need]:
        return []

    def act(self, *_: object) -> Any:
        raise NotImplementedError


class ActingPage:
    """Dealer and floor at one page: they meet every need, one act after the other."""

    def __init__(self, page: LookingPage, wagers: Mapping[int, Mapping[str, int]]) -> None:
        self.page = page
        self._staff = SimulatedStaff(_Hands(), wagers)
        self.done: dict[str, int] = {}
        """Acts that the service confirmed, by id: the row that it named."""
        self.refused: set[str] = set()
        """Acts that the service refused at the first attempt: nothing may be on record of them."""
        self.repeated = 0
        self.sent_again = 0
        self.sending = threading.Event()
        """Set while an act is on its way."""
        self.problem: BaseException | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; an act that is on its way is finished first."""
        self._closing = True
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._closing:
                if not self._meet_one():
                    time.sleep(0.03)
        except BaseException as error:  # noqa: BLE001 - whoever waits for this page must hear of it
            self.problem = error

    def _meet_one(self) -> bool:
        shown = self.page.snapshot
        for told in shown.get("needs", ()):
            roles = [TableRole(each) for each in told["roles"]]
            if not told["acts"] or not {TableRole.DEALER, TableRole.FLOOR} & set(roles):
                continue
            if told["kind"] == NeedKind.SIGN_IN:
                body = {"person": DEALER, "pin": DEALER_PIN}
                return self._post("/api/sign-in", body) is not None
            need = Need(
                told["id"], NeedKind(told["kind"]), tuple(roles), told["words"], told["clause"],
                tuple(told["acts"]), told["since_s"], told["seen"], told["details"],
            )  # fmt: skip
            if self._give(need):
                return True
        return False

    def _give(self, need: Need) -> bool:
        act = self._staff.act_for(need)
        role = next(each for each in ACTS[act.NAME].ROLES if each in need.roles)
        act_id = secrets.token_hex(8)
        body = {
            "act_id": act_id,
            "need": need.id,
            "seen": need.seen,
            "act": act.NAME,
            "data": act_data(act),
            "credential": None if role is TableRole.DEALER else self.page.served.floor_credential(),
        }
        before = self.sent_again
        self.sending.set()
        told = self._post("/api/acts", body)
        self.sending.clear()
        if told is None:
            if self.sent_again == before:
                self.refused.add(act_id)
            return False
        self.done[act_id] = int(told["row"])
        self.repeated += bool(told["repeated"])
        return True

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The answer to a request, however often it must be sent; None if it was refused."""
        while True:
            try:
                answer = self.page.http.post(path, json=body)
                if answer.status_code >= 500:
                    raise httpx.TransportError(f"it answered {answer.status_code}")
                told = answer.json()
                assert answer.status_code != 403 or told["error"] != "csrf", "the page was let in, and is not"
                return told if answer.status_code == 200 else None
            except LOST:
                self.sent_again += 1
                time.sleep(AGAIN_S)
