"""``make pace``: rounds on an emulated machine at real speed, with touches and seconds of each."""

import sys
import tempfile
from pathlib import Path

from tests.session import simulated_table as tables

from sabot_session.pace import paces

ROUNDS = 6


def main() -> None:
    """Play and print; more than two touches in a round fail."""
    tables.PATIENCE_S = 600.0
    with (
        tempfile.TemporaryDirectory() as name,
        tables.simulated_table(Path(name), "seed=1&speed=1&dealer_ms=600", seats=6) as table,
    ):
        table.rounds(ROUNDS)
        found = paces(table.record.rows(0, 100_000))
    for each in found:
        times = f"dealt in {each.dealt_s} s, over in {each.seconds} s"
        sys.stdout.write(f"round {each.round_id}: {each.touches} touches, {times}\n")
    assert len(found) >= ROUNDS
    assert max(each.touches for each in found) <= 2


if __name__ == "__main__":
    main()
