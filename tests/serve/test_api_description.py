"""The description of the API is made from types, names every address, and real answers have those types."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import Route
from tests.plain_http import NO_TLS
from tests.serve.page_client import PageClient
from tests.serve.served_table import EVERYBODY, served_table

from sabot_serve.api_description import ADDRESSES, Refusal

pytestmark = pytest.mark.slow
ASKED_OTHERWISE = ("/api/sign-in", "/api/sign-out", "/api/acts", "/api/jog/")
"""Below, and where the technician's page is tested."""
BODIES: dict[str, Any] = {
    "/api/acts": {"act_id": "described-1", "need": None, "seen": 0, "act": "call_floor", "data": {}},
}


def test_every_address_is_described_and_answers_as_it_says(tmp_path: Path) -> None:
    with served_table(tmp_path, simulated=EVERYBODY) as table, PageClient(table) as page:
        page.enter()
        table.wait(lambda found: bool(found.rows("settle")))
        app = table.service.app
        routes = {
            (method, each.path)
            for each in app.asgi.routes
            if isinstance(each, Route) and each.path.startswith("/api/")
            for method in (each.methods or set()) - {"HEAD"}
        }
        assert routes == {(each.method, each.path) for each in ADDRESSES}
        told = page.http.get("/api/description").json()
        assert [each["path"] for each in told["addresses"]] == [each.path for each in ADDRESSES]
        assert told["acts"]["no_more_bets"]["properties"]["wagers"]
        token = app.access.local_token
        with httpx.Client(
            base_url=table.address, headers={"Authorization": f"Bearer {token}"}, verify=NO_TLS
        ) as local:
            for each in ADDRESSES:
                if each.answer is None or each.path.startswith(ASKED_OTHERWISE):
                    continue
                path = each.path.replace("{round_id}", "1")
                body = {"token": table.token()} if path == "/api/enter" else {}
                if each.method == "GET":
                    answer = local.get(path, params={"after": "0"})
                else:
                    answer = local.post(path, json=body)
                assert answer.status_code == 200, f"{path}: {answer.text}"
                each.answer.model_validate_json(answer.text)
            Refusal.model_validate_json(local.post("/api/acts", json={}).text)
            Refusal.model_validate_json(httpx.get(f"{table.address}/api/snapshot", verify=NO_TLS).text)


def test_answers_about_people_are_as_described(page: PageClient) -> None:
    kinds = {each.path: each.answer for each in ADDRESSES}
    for path, answer in (
        ("/api/sign-in", page.sign_in()),
        ("/api/acts", page.post("/api/acts", BODIES["/api/acts"])),
        ("/api/sign-out", page.post("/api/sign-out", {})),
    ):
        kind = kinds[path]
        assert kind is not None
        assert answer.status_code == 200, answer.text
        kind.model_validate_json(answer.text)
