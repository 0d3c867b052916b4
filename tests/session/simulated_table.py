"""A table on an emulated device of this process, with simulated people who meet its needs."""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sabot_cli.device_access import provision_simulator_keys
from sabot_driver import Client, Credential, connect
from sabot_driver.keyring import read_key
from sabot_driver.user_files import UserFiles
from sabot_protocol.host.messages import Role
from sabot_session.needs import NeedKind
from sabot_session.record import SqliteRecord
from sabot_session.rows import NumberedRow
from sabot_session.session import TableSession
from sabot_session.threaded_session import ThreadedSession
from sabot_simulators.endpoints.in_process import people_at
from sabot_simulators.manual_shoe import ManualShoe
from sabot_simulators.simulated_staff import SimulatedRegister, SimulatedStaff
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import RuleSet, load
from sabot_table.wager_acceptance import every_wager

TIMEOUT_S = 120.0
PATIENCE_S = 120.0  # a limit for what fails, not a measure
MOST_S = 900.0  # of one call, if rows go on coming
SEATS = 2


def fixed_nonce(shuffle_id: int) -> bytes:
    """The same nonce for the same shuffle in every run."""
    return hashlib.sha256(b"nonce %d" % shuffle_id).digest()


class SimulatedTable:
    """A session with its staff."""

    def __init__(
        self, client: Client, run: ThreadedSession, staff: SimulatedStaff, record: SqliteRecord
    ) -> None:
        self.client = client
        self.run = run
        self.staff = staff
        self.record = record

    def play(
        self, done: Callable[["SimulatedTable"], bool], leave: frozenset[NeedKind] = frozenset()
    ) -> None:
        """Meet needs until something is so; AssertionError with the needs if the table stands still.

        A busy computer is slow, so only a record without a new row counts as standing still.
        """
        newest, ends, last = -1, 0.0, time.monotonic() + MOST_S
        while not done(self):
            cursor = self.run.read(lambda session: session.cursor)
            if cursor != newest:
                newest, ends = cursor, time.monotonic() + PATIENCE_S
            if self.staff.meet_one(leave) is None:
                self.run.wait_changed(cursor, 0.05)
            if time.monotonic() > min(ends, last):
                words = [each.words for each in self.run.needs()]
                state = self.run.read(lambda session: session.state)
                raise AssertionError(f"needs {words}, refused {self.staff.refused[-3:]}, state {state}")

    def rounds(self, count: int) -> None:
        """Play until so many rounds are collected, void or not."""
        self.play(lambda table: len(table.rows("collect")) >= count)

    def rows(self, *kinds: str) -> list[NumberedRow]:
        """Rows of these kinds; all without one."""
        return list(self.record.rows_of_kind(*kinds) if kinds else self.record.all_rows())

    def need(self, kind: NeedKind) -> Any:
        """The need of this kind; None if there is none."""
        return next((each for each in self.run.needs() if each.kind is kind), None)

    def until(self, kind: NeedKind) -> Any:
        """Meet every other need until this one is there."""
        self.play(lambda table: table.need(kind) is not None, frozenset({kind}))
        return self.need(kind)

    def cut_power(self) -> None:
        """Cut the emulated device's power and give it back."""
        port: Any = self.client.loop.transport
        port.port.bench.served.reboot()


def staff_of(
    table: ThreadedSession,
    rules: RuleSet,
    files: UserFiles,
    client: Client,
    seats: int,
    method: DealingMethod | None = None,
    cards: Callable[[int], Sequence[Sequence[str]]] | None = None,
) -> SimulatedStaff:
    """Simulated people with keys of the emulated device; players at so many seats make every wager.

    ``cards`` tells what people see of a round, if another process emulates the device.
    """
    key = read_key(files.floor_key(client.identity.serial))
    floor, service = Credential(Role.FLOOR, key), Credential(Role.SERVICE, key)
    wagers = {seat: made for seat, made in every_wager(rules).items() if seat <= seats}
    people = people_at(client.url)
    seen = cards if people is None else people.hands.__getitem__
    cut_shoe = None if people is None else people.cut_shoe
    manual = ManualShoe(rules.cards.decks)
    return SimulatedStaff(
        table, wagers, floor, service, seen, method=method, cut_shoe=cut_shoe, manual=manual
    )


@contextmanager
def simulated_table(
    tmp_path: Path,
    query: str = "seed=1",
    *,
    rules: RuleSet | str = "md-three-card-baccarat",
    seats: int = SEATS,
    record: SqliteRecord | None = None,
    simulators_key: bool = True,
    now_s: Callable[[], int] | None = None,
    journal: Path | None = None,
    method: DealingMethod | None = None,
) -> Iterator[SimulatedTable]:
    """A table on ``sim://?query``."""
    rules = load(rules) if isinstance(rules, str) else rules
    record = record or SqliteRecord(None)
    options = {} if now_s is None else {"now_s": now_s}
    with connect(f"sim://?{query}", journal=journal, timeout=TIMEOUT_S) as client:
        files = UserFiles(tmp_path)
        provision_simulator_keys(files, client, TIMEOUT_S)
        session = TableSession(rules, record, SimulatedRegister(), nonce=fixed_nonce)
        with ThreadedSession(session, client, simulators_key=simulators_key, **options) as run:
            staff = staff_of(run, rules, files, client, seats, method)
            yield SimulatedTable(client, run, staff, record)
