"""Rows of a table, as a session would commit them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.session.hand_table import HandTable
from tests.session.scripted_rounds import scripted_rounds
from tests.session.simulated_table import simulated_table
from tests.session.stray_events import Phase, PhaseRecord

from sabot_driver.credentials import Credential
from sabot_protocol.host.messages import Role
from sabot_session import pin_hash
from sabot_session.people import PeopleRegister
from sabot_session.record import SqliteRecord
from sabot_session.row_kinds import BY_NAME, By
from sabot_session.rows import Actor, Authentication, DeviceEventId, Json, Row, SavedSession
from sabot_table.procedure import TableRole
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import load

MakeRow = Callable[..., Row]
EVENT = DeviceEventId("SABOT001", "00112233", 1, 7)
ACTORS = {
    By.PEOPLE: Actor("d1", TableRole.DEALER, Authentication.SIGNED_IN),
    By.BUTTON: Actor("d1", TableRole.DEALER, Authentication.SENSED),
    By.SENSED: Actor("", TableRole.DEVICE, Authentication.SENSED),
    By.DEVICE: Actor("", TableRole.DEVICE, Authentication.SENSED),
    By.FLOOR: Actor("f1", TableRole.FLOOR, Authentication.BADGE_AND_PIN),
    By.CONTROLLER: Actor("", TableRole.CONTROLLER, Authentication.SENSED),
    By.PROGRAM: Actor("", TableRole.PROGRAM, Authentication.PROGRAM),
    By.ANYONE: Actor("d1", TableRole.DEALER, Authentication.SIGNED_IN),
}

STRAY_DAYS = (
    ("md-three-card-baccarat", "seed=1&fault=stuck@exit:72", 3),
    ("wa-three-card-baccarat", "seed=1", 1),
    ("baccarat-six-deck", "seed=1&capacity=batch", 1),
)


@pytest.fixture
def make_row() -> MakeRow:
    """A row of a kind, by somebody who can have done it; ``actor``, ``at_s`` and so on replace the usual."""

    def make(
        kind: str,
        round_id: int = 0,
        actor: Actor | None = None,
        at_s: int = 1_000,
        clause: str = "",
        act_id: str = "",
        **data: Json,
    ) -> Row:
        who = ACTORS[BY_NAME[kind].by] if actor is None else actor
        return Row(kind, at_s, who, data, round_id, clause, act_id, EVENT)

    return make


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a table's record will be; its folder is not there yet."""
    return tmp_path / "table" / "T1.table.db"


@pytest.fixture
def _quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrypt with little work: the register keeps the parameters beside each hash."""
    monkeypatch.setattr(pin_hash, "LOG2_N", 4)


@pytest.fixture
def register(_quick_hashes: None) -> Iterator[PeopleRegister]:
    """A dealer with a PIN, and a floor with badge and key."""
    with PeopleRegister(None) as people:
        people.enrol("dana", "Dana Deal", [TableRole.DEALER], "2468", "service1", 100)
        people.enrol("flo", "Flo Or", [TableRole.FLOOR, TableRole.DEALER], "13579", "service1", 100)
        people.give_badge("flo", "0012345678", "service1", 101)
        people.give_key("flo", Credential(Role.FLOOR, b"f" * 32), "service1", 102)
        yield people


@pytest.fixture
def played(path: Path) -> Iterator[SqliteRecord]:
    """A record of rounds of every sort."""
    with SqliteRecord(path) as record:
        record.commit(scripted_rounds(), SavedSession("{}", 0))
        yield record


@pytest.fixture
def record(tmp_path: Path) -> Iterator[SqliteRecord]:
    """An empty record in a file."""
    with SqliteRecord(tmp_path / "T1.table.db") as opened:
        yield opened


@pytest.fixture
def table() -> HandTable:
    """Two seats bet at a table that never had a link to a machine."""
    return HandTable(load("md-three-card-baccarat"), {1: {"ante": 2000}, 2: {"ante": 2000}})


@pytest.fixture(scope="module")
def phases(tmp_path_factory: pytest.TempPathFactory) -> list[Phase]:
    """The phases of a few rounds under three texts."""
    found: list[Phase] = []
    for rules, query, rounds in STRAY_DAYS:
        record, folder = PhaseRecord(rules), tmp_path_factory.mktemp("day")
        with simulated_table(
            folder, query, rules=rules, record=record, method=DealingMethod.AUTOMATED_SHOE
        ) as table:
            table.rounds(rounds)
        found += record.phases
    return found
