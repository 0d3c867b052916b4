"""Days of a table whose program is killed again and again, and ``make kill-days``: 200 kills in ten days.

The device is in a process of its own, with a fixed seed and fixed nonces, so each day deals the same cards.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sabot_cli.device_access import provision_simulator_keys
from sabot_driver import Keyring, connect
from sabot_driver.user_files import UserFiles
from sabot_session.record import RecordReader
from sabot_session.rows import Json, Row
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import emulate
from sabot_simulators.endpoints.device_server import DeviceServer, wire_ms
from sabot_simulators.endpoints.tcp import TcpListener

PROGRAM = Path(__file__).with_name("killed_table.py")
ROUNDS = 3
ADDED = ("interruption", "identify", "command_answered", "record_restored")
"""Rows about interruptions, which an undisturbed day does not have."""


def start(url: str, folder: Path, rounds: int) -> "subprocess.Popen[bytes]":
    host = subprocess.Popen(
        [sys.executable, str(PROGRAM), url, str(folder), str(rounds)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert host.stdout is not None
    assert host.stdout.readline() == b"up\n"
    return host


def day(folder: Path, kills: int, seed: int, rounds: int = ROUNDS) -> list[Any]:
    """Play a day, killed so many times; what its rounds' rows say, with their actors."""
    folder.mkdir()
    device = emulate(DeviceSettings(seed=1), wire_ms())
    served = DeviceServer(device)
    listener = TcpListener()
    served.listen(listener)
    with connect(
        listener.url, keyring=Keyring(folder), journal=folder / "journal.db", simulator=True
    ) as client:
        provision_simulator_keys(UserFiles(folder), client, 20.0)
    choose, killed = random.Random(seed), 0
    try:
        while True:
            host = start(listener.url, folder, rounds)
            try:
                code = host.wait(choose.uniform(0.0, 0.5)) if killed < kills else host.wait(100)
            except subprocess.TimeoutExpired:
                killed += 1
                host.send_signal(signal.SIGKILL)
                host.wait()
                time.sleep(0.05)
                continue
            finally:
                assert host.stdout is not None
                host.stdout.close()
            assert code == 0
            break
    finally:
        served.close()
    assert served.failure is None
    with RecordReader(folder / "table.db") as record:
        rows = [each.row for each in record.all_rows()]
    assert len({row.act_id for row in rows if row.kind == "no_more_bets"}) >= rounds
    return [
        (row.kind, row.actor, row.round_id, row.clause, _without_numbers(row.data, rows))
        for row in rows
        if row.kind not in ADDED and 0 < row.round_id <= rounds
    ]


def _without_numbers(data: Mapping[str, Json], rows: Sequence[Row]) -> dict[str, Json]:
    """A row that names another one names its kind: rows about interruptions shift the numbers."""
    told = dict(data)
    if isinstance(told.get("row"), int):
        told["row"] = rows[int(str(told["row"])) - 1].kind
    return told


def main() -> None:
    """Play the days and compare each with the undisturbed one; a day that differs fails."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--days", type=int, default=10)
    chosen = options.parse_args()
    rounds = 12
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        calm = sorted(map(repr, day(folder / "calm", 0, 0, rounds)))
        for number in range(1, chosen.days + 1):
            killed = day(folder / str(number), chosen.kills // chosen.days, number, rounds)
            assert sorted(map(repr, killed)) == calm, f"day {number} differs"
            sys.stdout.write(
                f"day {number}: {chosen.kills // chosen.days} kills, {rounds} rounds, no difference\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
