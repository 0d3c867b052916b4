"""A table of an emulated floor: firmware, driver, session, journal and record, with simulated people."""

from contextlib import ExitStack
from pathlib import Path

from sabot_cli.device_access import provision_simulator_keys
from sabot_driver import connect
from sabot_driver.keyring import read_key
from sabot_driver.user_files import UserFiles
from sabot_floor.connection import TableSettings
from sabot_floor.table_service import publish_table
from sabot_session.record import SqliteRecord
from sabot_session.record_opening import join_chains
from sabot_session.session import TableSession
from sabot_session.threaded_session import ThreadedSession
from sabot_simulators.attending_staff import AttendingStaff
from sabot_simulators.simulated_staff import SimulatedRegister
from sabot_table.procedure import TableRole
from sabot_table.ruleset import load
from sabot_table.wager_acceptance import every_wager

TIMEOUT_S = 120.0
PEOPLE = (TableRole.DEALER, TableRole.FLOOR, TableRole.SERVICE)
RULES = "md-three-card-baccarat"


class PlayedTable:
    """One table that is played and published until it is closed."""

    def __init__(
        self, folder: Path, settings: TableSettings, query: str, rules: str = RULES, pace_s: float = 1.5
    ) -> None:
        """``query`` is that of the device's URL; its serial number is made from the table's name."""
        self.name = settings.table
        serial = f"{settings.table.upper().replace('-', ''):0<8}"[:8]
        url = f"sim://{settings.table}?serial={serial}&{query}"
        files = UserFiles(folder)
        self.journal_path = folder / f"{settings.table}.db"
        self.record_path = folder / f"{settings.table}.table.db"
        with ExitStack() as stack:
            client = stack.enter_context(connect(url, journal=self.journal_path, timeout=TIMEOUT_S))
            provision_simulator_keys(files, client, TIMEOUT_S)
            record = SqliteRecord(self.record_path)
            stack.callback(record.close)
            join_chains(record, client.journal)
            chosen = load(rules)
            session = TableSession(chosen, record, SimulatedRegister(), table=settings.table)
            self.run = stack.enter_context(ThreadedSession(session, client, simulators_key=True))
            self.published = publish_table(settings, client, self.record_path, chosen, None, self.run)
            stack.callback(self.published.close)
            key = read_key(files.floor_key(client.identity.serial))
            wagers = every_wager(chosen)
            staff = AttendingStaff(self.run, url, key, wagers, PEOPLE, pace_s)
            stack.callback(staff.close)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """End people, publisher, session and device, in this order."""
        self._stack.close()
