"""A table's program that is killed: it runs the session of one table until so many rounds are collected.

Command line: the device's URL, the folder of keys, journal and record, and the number of rounds.
"""

import sys
import time
from pathlib import Path

from tests.session.simulated_table import SEATS, fixed_nonce, staff_of

from sabot_driver import Keyring, connect
from sabot_driver.user_files import UserFiles
from sabot_session.record import SqliteRecord
from sabot_session.session import TableSession
from sabot_session.threaded_session import ThreadedSession
from sabot_simulators.simulated_staff import SimulatedRegister
from sabot_table.ruleset import load

PATIENCE_S = 60.0


def run(url: str, folder: Path, rounds: int) -> None:
    """Play until so many rounds are on record."""
    rules = load("md-three-card-baccarat")
    options = {"keyring": Keyring(folder), "journal": folder / "journal.db", "simulator": True}
    with connect(url, **options) as client, SqliteRecord(folder / "table.db") as record:  # type: ignore[arg-type]
        files = UserFiles(folder)
        session = TableSession(rules, record, SimulatedRegister(), nonce=fixed_nonce)
        with ThreadedSession(session, client, simulators_key=True) as table:
            staff = staff_of(table, rules, files, client, SEATS)
            sys.stdout.write("up\n")
            sys.stdout.flush()
            ends = time.monotonic() + PATIENCE_S
            while len(record.rows_of_kind("collect")) < rounds:
                newest = table.read(lambda session: session.cursor)
                if staff.meet_one() is None:
                    table.wait_changed(newest, 0.05)
                if time.monotonic() > ends:
                    words = [each.words for each in table.needs()]
                    raise AssertionError(f"needs {words}, refused {staff.refused[-3:]}")


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
