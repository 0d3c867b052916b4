"""A served table, and clients of it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.plain_http import NO_TLS
from tests.serve.page_client import PageClient
from tests.serve.served_table import ServedTable, served_table
from tests.session.simulated_table import SimulatedTable, simulated_table

from sabot_session import pin_hash
from sabot_session.needs import NeedKind


@pytest.fixture(autouse=True)
def _quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrypt with little work: the register keeps the parameters beside each hash."""
    monkeypatch.setattr(pin_hash, "LOG2_N", 4)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ServedTable]:
    """A served table whose floor and service are simulated; the dealer is the test."""
    with served_table(tmp_path) as found:
        yield found


@pytest.fixture
def page(table: ServedTable) -> Iterator[PageClient]:
    """A browser that was let in."""
    with PageClient(table) as found:
        found.enter()
        yield found


def at_rest(table: ServedTable) -> bool:
    """Both halves of the machine have looked at themselves after their start, and the session knows it."""
    return "begin_service" in {each["act"] for each in table.snapshot()["offers"]}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[ServedTable]:
    """A closed table with nobody at it, whose machine is slower than any clock of this computer."""
    with served_table(tmp_path, "seed=1&speed=0.3", simulated=()) as found:
        found.wait(at_rest)
        yield found


@pytest.fixture
def technician(machine: ServedTable) -> Iterator[PageClient]:
    """The technician's browser, with the machine in service."""
    with PageClient(machine) as found:
        found.enter()
        done = found.act("begin_service", credential=found.credential("service"))
        assert done.status_code == 200, done.text
        machine.wait(lambda table: table.snapshot()["device"]["shoe"] == "service")
        yield found


@pytest.fixture
def local(table: ServedTable) -> Iterator[httpx.Client]:
    """A program of this computer."""
    headers = {"Authorization": f"Bearer {table.service.app.access.local_token}"}
    with httpx.Client(base_url=table.address, headers=headers, verify=NO_TLS) as found:
        yield found


def until_only_bets(simulated: SimulatedTable) -> None:
    """Play until bets are the only need: the other deck is ready, too."""
    simulated.play(
        lambda table: [each.kind for each in table.run.needs()] == [NeedKind.BETS], frozenset({NeedKind.BETS})
    )


@pytest.fixture(scope="session")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Snapshots of one table: before bets, with hands dealt, and settled."""
    found = {}
    with simulated_table(tmp_path_factory.mktemp("snapshots")) as simulated:
        look: Callable[[], Any] = lambda: simulated.run.read(lambda session: session.snapshot())  # noqa: E731
        until_only_bets(simulated)
        found["bets"] = look()
        simulated.until(NeedKind.EXPOSE)
        found["expose"] = look()
        simulated.until(NeedKind.BETS)
        found["settled"] = look()
    return found
