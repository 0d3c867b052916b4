"""A NATS server of this computer, names of sites, written tables, and a table that was really played."""

import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.floor.packed_rows import SITE
from tests.floor.postgresql import postgresql, programs
from tests.floor.running_floor import RunningFloor
from tests.floor.secured_site import SecuredSite
from tests.session.simulated_table import simulated_table

from sabot_floor.archive_store import ArchiveStore
from sabot_floor.connection import Servers
from sabot_session.needs import NeedKind
from sabot_session.record import SqliteRecord
from sabot_simulators.floor.servers import Site
from sabot_simulators.floor.written_table import WrittenTable

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server without users. It does not sync: no test here cuts its power."""
    with Site(tmp_path_factory.mktemp("nats"), sync="1m") as site:
        yield site


@pytest.fixture
def site_name() -> str:
    """A site that no other test has."""
    return f"s{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def floor(server: Site, site_name: str, tmp_path: Path) -> RunningFloor:
    """The floor of a test; enter it in the test's event loop."""
    return RunningFloor(tmp_path, site_name, Servers(server.urls))


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Callable[[str], WrittenTable]]:
    """Makes tables whose rows the test writes."""
    made: list[WrittenTable] = []

    def make(name: str) -> WrittenTable:
        table = WrittenTable(tmp_path / f"pc-{name}-{len(made)}", name)
        made.append(table)
        return table

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Journal and record of two rounds on an emulated machine."""
    folder = tmp_path_factory.mktemp("played")
    journal, path = folder / "journal.db", folder / "record.db"
    record = SqliteRecord(path)
    with simulated_table(folder, record=record, journal=journal) as table:
        snapshots = []
        for _ in range(2):
            for kind in (NeedKind.EXPOSE, NeedKind.BETS):
                table.until(kind)
                snapshots.append(table.run.read(lambda session: session.snapshot()))
        table.play(lambda each: bool(each.rows("shuffle_revealed")))
    record.close()
    (folder / "snapshots.json").write_text(json.dumps(snapshots), encoding="utf-8")
    return journal, path


@pytest.fixture(scope="session")
def snapshots_of_play(played: tuple[Path, Path]) -> list[dict[str, Any]]:
    """Snapshots of these rounds: before and after cards were exposed."""
    text = played[0].with_name("snapshots.json").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(text)
    return found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ArchiveStore]:
    """An empty archive."""
    found = ArchiveStore(str(tmp_path / "archive.db"), SITE)
    yield found
    found.close()


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredSite]:
    """A server with TLS and users."""
    found = SecuredSite(tmp_path_factory.mktemp("secured"))
    with found.site:
        yield found


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """A real PostgreSQL; skips where there is none."""
    where = programs()
    if where is None:
        pytest.skip("postgresql is not installed")
    with postgresql(where) as url:
        yield url
