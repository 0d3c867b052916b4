"""A program that commits rows until it is killed: ``python record_writer.py PATH`` prints each number."""

import sys
from pathlib import Path

from sabot_session.record import SqliteRecord
from sabot_session.rows import Actor, Authentication, Row, SavedSession
from sabot_table.procedure import TableRole


def main(path: Path) -> None:
    """Commit for as long as there is a reader."""
    dealer = Actor("d1", TableRole.DEALER, Authentication.PIN)
    with SqliteRecord(path) as record:
        for turn in range(100_000):
            rows = [Row("idle", turn, dealer), Row("player_arrives", turn, dealer, act_id=f"act-{turn}")]
            sys.stdout.write(f"{record.commit(rows, SavedSession(str(turn), turn))}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
