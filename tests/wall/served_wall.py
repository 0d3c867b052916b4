"""The wall as ``sabot floor serve`` serves it, in a thread; and a browser's requests to it."""

import json
import re
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Self

import httpx
from tests.plain_http import NO_TLS
from tests.wall.spoken_floor import SpokenFloor

from sabot_floor.wall.archive_reader import ArchiveReader
from sabot_floor.wall.serving import WallService
from sabot_floor.wall.wall_model import WallSettings
from sabot_session.people import PeopleRegister
from sabot_table.procedure import TableRole

CSRF = re.compile(r'<meta name="csrf" content="([^"]+)">')
PEOPLE = {"anna": ("41700001", "2749"), "ben": ("41700002", "8351")}
"""Badge and PIN of each floor person."""
DEALER_PIN = "6182"
PATIENCE_S = 60.0


def register() -> PeopleRegister:
    """Two people of the floor, and a dealer."""
    found = PeopleRegister(None)
    for person, (badge, pin) in PEOPLE.items():
        found.enrol(person, person.title(), [TableRole.FLOOR], pin, "test", 0)
        found.give_badge(person, badge, "test", 0)
    found.enrol("dora", "Dora", [TableRole.DEALER], DEALER_PIN, "test", 0)
    return found


class ServedWall:
    """A served wall, as a test uses it."""

    def __init__(self, service: WallService, people: PeopleRegister, spoken: SpokenFloor) -> None:
        self.service = service
        self.people = people
        self.spoken = spoken
        self._thread = threading.Thread(target=service.run, daemon=True)

    def start(self) -> None:
        """Listen."""
        self._thread.start()
        self.wait(lambda: self.service.started)

    def stop(self) -> None:
        """End the service."""
        self.service.stop()
        self._thread.join(PATIENCE_S)

    @property
    def address(self) -> str:
        return self.service.address

    def token(self) -> str:
        return self.service.app.access.invite(time.time())

    def enter_url(self) -> str:
        return f"{self.address}/enter#{self.token()}"

    def rows(self) -> list[dict[str, Any]]:
        """The tables as the wall shows them, in order."""
        view = self.client_view()
        return [view[f"t.{name}"] for name in view["order"]]

    def client_view(self) -> dict[str, Any]:
        token = self.service.app.access.local_token
        answer = httpx.get(
            f"{self.address}/api/snapshot", headers={"Authorization": f"Bearer {token}"}, verify=NO_TLS
        )
        found: dict[str, Any] = answer.json()
        return found

    def wait(self, done: Callable[[], bool]) -> None:
        """Wait until something is so."""
        ends = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < ends
            time.sleep(0.05)

    def wait_order(self, *names: str) -> None:
        """Wait until these tables are first, and their alarms are in the bucket."""

        def first() -> bool:
            found = self.rows()[: len(names)]
            written = all(it["revision"] for each in found for it in each["attentions"])
            return [each["name"] for each in found] == list(names) and written

        self.wait(first)


@contextmanager
def served_wall(
    spoken: SpokenFloor, archive: ArchiveReader | None = None, settings: WallSettings | None = None
) -> Iterator[ServedWall]:
    """Serve the wall of a site."""
    people = register()
    service = WallService(
        spoken.servers, spoken.site, people, archive, port=0, settings=settings or WallSettings(silent_s=3.0)
    )
    wall = ServedWall(service, people, spoken)
    wall.start()
    try:
        yield wall
    finally:
        wall.stop()
        people.close()


class WallClient:
    """Sends what the wall's pages send."""

    def __init__(self, wall: ServedWall) -> None:
        self.wall = wall
        self.http = httpx.Client(
            base_url=wall.address, headers={"Origin": wall.address}, timeout=60.0, verify=NO_TLS
        )
        self.csrf = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def enter(self) -> Self:
        """Be let in by a one-time token, and load the page."""
        answer = self.http.post("/api/enter", json={"token": self.wall.token()})
        assert answer.status_code == 200, answer.text
        found = CSRF.search(self.http.get("/wall").text)
        assert found is not None
        self.csrf = found[1]
        return self

    def post(self, path: str, body: Any) -> httpx.Response:
        return self.http.post(path, json=body, headers={"X-Sabot-CSRF": self.csrf})

    def sign_in(self, person: str, pin: str = "") -> httpx.Response:
        badge, right = PEOPLE[person]
        return self.post("/api/sign-in", {"badge": badge, "pin": pin or right, "role": "floor"})

    def alarm(self, table: str, kind: str) -> dict[str, Any]:
        """An alarm as the page would send it."""
        row = next(each for each in self.wall.rows() if each["name"] == table)
        found = next(each for each in row["attentions"] if each["kind"] == kind)
        return {"table": table, "kind": kind, "revision": found["revision"]}

    def events(self, channel: str) -> Generator[tuple[str, Any]]:
        """The events of a stream."""
        with self.http.stream("GET", f"/api/events/{channel}") as stream:
            assert stream.status_code == 200
            kind = ""
            for line in stream.iter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)
