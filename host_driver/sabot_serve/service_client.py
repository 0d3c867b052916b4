"""A program of this computer asks the process that runs a table, by what ``service.json`` tells.

Reading shows the local token. To give acts the program is let in as a browser is, by a one-time token that it
asks for; a person then signs in, or shows a credential with the act. This module needs none of the libraries
of the extra ``serve``.
"""

import contextlib
import http.client
import json
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from sabot_driver.journal import JournalEntry
from sabot_driver.received_events import LostEvents, ReceivedEvent, parse_entry
from sabot_protocol.host.messages import StatusReport
from sabot_serve.errors import CredentialRefused, OtherVersion, ServiceGone, ServiceRefused
from sabot_serve.service_file import UNIX, UNIX_HOST, ServiceAddress
from sabot_session.canonical import read_row
from sabot_session.rows import NumberedRow

ASK_S = 10.0
QUIET_S = 3.0  # a stream that tells nothing for so long is broken: beats come every half second
VERSION = 1
LONGEST_LINE = 4 * 1024 * 1024  # of a stream: a snapshot is far shorter
ANY_ADDRESS = ("0.0.0.0", "::", "[::]")
NOT_PROVED = ("not_authenticated", "pin_delayed", "too_many_failures")
"""How a service names that a person did not prove who they are."""


class ServiceClient:
    """Requests to the process that runs a table. Safe to use from several threads."""

    def __init__(self, at: ServiceAddress, timeout_s: float = ASK_S) -> None:
        self.at = at
        self._timeout_s = timeout_s
        self._cookie = ""
        self._csrf = ""
        self.about: Mapping[str, Any] = {}
        """The table and its device, once `check` has asked."""

    def check(self) -> Mapping[str, Any]:
        """What this table is; `ServiceGone` if nothing answers, `OtherVersion` if we could not read it."""
        self.about = self.get("/api/local/about")
        version = self.about.get("version")
        if version != VERSION:
            raise OtherVersion(f"process {self.at.pid} runs this table with another version of this program")
        return self.about

    # -- reading --------------------------------------------------------------------------------

    def get(self, path: str, **query: object) -> Any:
        """An answer as JSON."""
        at = f"{path}?{urlencode(query)}" if query else path
        return self._ask("GET", at, None, self._local())

    def rows(self, after: int, *kinds: str) -> Iterator[NumberedRow]:
        """Rows of the record after a number, of these kinds or all, oldest first."""
        while True:
            found = self.get("/api/local/rows", after=after, kinds=",".join(kinds))
            yield from (read_row(each.encode()) for each in found["rows"])
            if found["last"] == after:
                return
            after = found["last"]

    def round(self, round_id: int) -> tuple[list[NumberedRow], Mapping[str, Any] | None]:
        """The rows of a round, and what its wagers will pay if they are not settled."""
        found = self.get(f"/api/local/rounds/{round_id}")
        return [read_row(each.encode()) for each in found["rows"]], found["preview"]

    def checkpoints(self) -> list[str]:
        """The newest signed checkpoints of record and journal, as lines that the floor keeps."""
        return [str(each) for each in self.get("/api/local/checkpoints")["lines"]]

    def status(self) -> StatusReport:
        """The device's state, as the device answers now."""
        return StatusReport.unpack(bytes.fromhex(self.get("/api/local/status")["body"]))

    def device_events(self, after: int | None) -> tuple[list[ReceivedEvent | LostEvents], int, bool]:
        """Events after a row of the device's journal (None: none yet), the newest row, and the link."""
        found = self.get("/api/local/device-events", **({} if after is None else {"after": after}))
        return [parse_entry(_entry(each)) for each in found["events"]], found["newest"], found["up"]

    def stream(self, after: str, opened: Callable[[Callable[[], None]], None]) -> Iterator[tuple[str, Any]]:
        """Changes of the table's snapshot and beats: cursor and data, "" and None for a beat.

        ``opened`` gets a function that ends the stream. `ServiceGone` when the stream ends.
        """
        connection = self._connection(QUIET_S)
        try:
            headers = {"Host": self._host, **self._local()}
            if after:
                headers["Last-Event-ID"] = after
            connection.request("GET", "/api/events/table", headers=headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise _refused(answer.status, answer.read())
            opened(lambda: _shut(connection))
            yield from _events(answer)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._gone(error) from error
        finally:
            connection.close()
        raise self._gone("the stream ended")

    # -- acting ---------------------------------------------------------------------------------

    def invite(self) -> str:
        """A one-time token for a browser."""
        return str(self._ask("POST", "/api/invite", {}, self._local())["token"])

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """A request that may change something, as the person who is signed in here; lets us in first."""
        if not self._cookie:
            self._enter()
        try:
            return self._ask("POST", path, body, self._entered())
        except ServiceRefused as refused:
            if refused.reason not in ("not_let_in", "csrf"):
                raise
            self._enter()  # it was let in by a process that has ended
            return self._ask("POST", path, body, self._entered())

    def _enter(self) -> None:
        headers = {"Origin": self._origin, **self._local()}
        answer, cookie = self._answer("POST", "/api/enter", {"token": self.invite()}, headers)
        self._cookie, self._csrf = cookie, str(answer["csrf"])

    def _entered(self) -> dict[str, str]:
        return {"Cookie": self._cookie, "X-Sabot-CSRF": self._csrf, "Origin": self._origin}

    def move(self, at: ServiceAddress) -> None:
        """Go on with another process that runs the table now."""
        if at != self.at:
            self.at, self._cookie, self._csrf = at, "", ""

    # -- HTTP -----------------------------------------------------------------------------------

    def _local(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.at.token}"}

    @property
    def _origin(self) -> str:
        return f"http://{UNIX_HOST}" if self.at.address.startswith(UNIX) else self.at.address

    @property
    def _host(self) -> str:
        return urlsplit(self._origin).netloc

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        address = self.at.address
        if address.startswith(UNIX):
            return _UnixConnection(address.removeprefix(UNIX), timeout_s)
        parts = urlsplit(address)
        host = "127.0.0.1" if parts.hostname in ANY_ADDRESS else parts.hostname or ""
        if parts.scheme != "https":
            return http.client.HTTPConnection(host, parts.port, timeout=timeout_s)
        # Exactly the certificate that the file names: it need not have this computer's name.
        trusted = ssl.create_default_context(cafile=self.at.certificate or None)
        trusted.check_hostname = False
        trusted.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return http.client.HTTPSConnection(host, parts.port, timeout=timeout_s, context=trusted)

    def _ask(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Any:
        return self._answer(method, path, body, headers)[0]

    def _answer(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> tuple[Any, str]:
        """The answer, and the cookie that it sets."""
        sent = {"Host": self._host, **headers}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        connection = self._connection(self._timeout_s)
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            told = answer.read()
            if answer.status != 200:
                raise _refused(answer.status, told)
            return json.loads(told), (answer.getheader("set-cookie") or "").partition(";")[0]
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._gone(error) from error
        finally:
            connection.close()

    def _gone(self, why: object) -> ServiceGone:
        return ServiceGone(f"process {self.at.pid}, which runs this table, does not answer: {why}")


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__(UNIX_HOST, timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _shut(connection: http.client.HTTPConnection) -> None:
    """End a stream that another thread reads."""
    at = connection.sock
    if at is not None:
        with contextlib.suppress(OSError):  # it has ended
            at.shutdown(socket.SHUT_RDWR)


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    kind = cursor = ""
    while line := answer.readline(LONGEST_LINE):
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "id":
            cursor = value
        elif name == "data":
            yield (cursor, json.loads(value)) if kind == "change" else ("", None)


def _refused(status: int, body: bytes) -> ServiceRefused:
    try:
        told = json.loads(body)
        kind = CredentialRefused if told["error"] in NOT_PROVED else ServiceRefused
        return kind(str(told["message"]), str(told["advice"]), status, str(told["error"]))
    except (ValueError, KeyError, TypeError):
        return ServiceRefused(f"the process that runs this table answered {status}", "", status)


def _entry(told: Mapping[str, Any]) -> JournalEntry:
    gap_from = told["gap_from"]
    return JournalEntry(
        **{
            **told,
            "memory_id": bytes.fromhex(told["memory_id"]),
            "body": bytes.fromhex(told["body"]),
            "gap_from": None if gap_from is None else (gap_from[0], gap_from[1]),
        }
    )
