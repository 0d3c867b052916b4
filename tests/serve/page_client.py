"""A browser's requests to a served table, without a browser."""

import json
import re
import secrets
from collections.abc import Generator
from typing import Any, Self

import httpx
from tests.plain_http import NO_TLS
from tests.serve.served_table import ServedTable

CSRF = re.compile(r'<meta name="csrf" content="([^"]+)">')


class PageClient:
    """Sends what the dealer's page sends."""

    def __init__(self, table: ServedTable) -> None:
        self.table = table
        self.http = httpx.Client(
            base_url=table.address, headers={"Origin": table.address}, timeout=60.0, verify=NO_TLS
        )
        self.csrf = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def enter(self) -> None:
        """Be let in by a one-time token, and load the page."""
        answer = self.http.post("/api/enter", json={"token": self.table.token()})
        assert answer.status_code == 200, answer.text
        found = CSRF.search(self.http.get("/dealer").text)
        assert found is not None
        self.csrf = found[1]

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        """A request with this page's CSRF token."""
        return self.http.post(path, json=body, headers={"X-Sabot-CSRF": self.csrf, **headers})

    def sign_in(self, person: str = "dealer", pin: str | None = None) -> httpx.Response:
        """Somebody signs in at the page."""
        return self.post("/api/sign-in", {"person": person, "pin": pin or self.table.pin(person)})

    def act(
        self, act: str, need: Any = None, act_id: str = "", credential: Any = None, **data: Any
    ) -> httpx.Response:
        """Give an act, for a need or for none."""
        body = {
            "act_id": act_id or secrets.token_hex(8),
            "need": None if need is None else need.id,
            "seen": self.table.snapshot()["newest_row"] if need is None else need.seen,
            "act": act,
            "data": data,
            "credential": credential,
        }
        return self.post("/api/acts", body)

    def credential(self, person: str, pin: str | None = None) -> dict[str, str]:
        """What the floor or service shows with an act."""
        return {"badge": self.table.badge(person), "pin": pin or self.table.pin(person), "role": person}

    def events(self, channel: str = "dealer", after: str = "") -> Generator[tuple[str, str, Any]]:
        """The events of a stream: kind, cursor, data."""
        headers = {"Last-Event-ID": after} if after else {}
        with self.http.stream("GET", f"/api/events/{channel}", headers=headers) as stream:
            assert stream.status_code == 200
            kind = cursor = ""
            for line in stream.iter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "id":
                    cursor = value
                elif name == "data":
                    yield kind, cursor, json.loads(value)
