"""Days of a table whose program is killed again and again, and ``make kill-days``: 200 kills in ten days.

The device is in another process than the program, with a fixed seed and fixed nonces, so each day deals the
same cards. A kill comes when the record has reached a random row, or while the program starts. Results are
kept in ``build/kill-days.json``: a second run on the same commit goes on where the first one stopped.
"""

import argparse
import contextlib
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.session.killed_table import CUT_FROM_TOP, SHOES, Day
from tests.warm_start import WarmPopen

from sabot_cli.device_access import provision_simulator_keys
from sabot_driver import Keyring, connect
from sabot_driver.user_files import UserFiles
from sabot_session.record import RecordReader
from sabot_session.rows import Authentication, Json, Row
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import emulate
from sabot_simulators.endpoints.control_socket import ControlSocket
from sabot_simulators.endpoints.device_server import DeviceServer, wire_ms
from sabot_simulators.endpoints.tcp import TcpListener

ROOT = Path(__file__).parent.parent.parent
STATE = ROOT / "build" / "kill-days.json"
PROGRAM = Path(__file__).with_name("killed_table.py")
PATIENCE_S = 900.0
STARTING = 0.15  # of the kills come while the program starts
START_S = 1.5
LOOK_S = 0.01
ADDED = ("interruption", "identify", "command_answered", "record_restored")
"""Rows about interruptions, which an undisturbed day does not have."""
ASKED_AGAIN = ("set_game", "register_pack", "remove", "authorise_simulated", "laid_in", "empty_machine")
"""A request with a person's credential is not sent again after a kill: the person acts again."""
TIMES = ("until_s", "last_s", "minutes")
DAYS = (
    *(Day("md-three-card-baccarat", 12) for _ in range(4)),
    *(Day("wa-three-card-baccarat", 12) for _ in range(2)),
    *(Day("md-mini-baccarat", 10) for _ in range(3)),
    Day("baccarat-six-deck", 6),
)


@dataclass(frozen=True)
class Played:
    """What a day left: the rows of its rounds, what people did around them, how many rows there are."""

    rounds: list[str]
    around: Counter[str]
    rows: int
    kills: int


@contextlib.contextmanager
def machine(folder: Path, day: Day) -> Iterator[str]:
    """The day's device at a TCP port, with its keys in the folder; its URL."""
    device = emulate(DeviceSettings(seed=1, capacity="batch" if day.rules in SHOES else "deck"), wire_ms())
    if day.rules in SHOES and device.people is not None:
        device.people.cut_shoe(CUT_FROM_TOP, SHOES[day.rules])
    served, listener = DeviceServer(device), TcpListener()
    control = ControlSocket(folder / "control", served)
    served.listen(listener)
    options: dict[str, Any] = {"keyring": Keyring(folder), "journal": folder / "journal.db"}
    try:
        with connect(listener.url, simulator=True, **options) as client:
            provision_simulator_keys(UserFiles(folder), client, PATIENCE_S)
        yield listener.url
    finally:
        control.close()
        served.close()
    assert served.failure is None


def play(folder: Path, day: Day, kills: int, rows: int, seed: int) -> Played:
    """Play a day, killed so many times before it has so many rows; what it left."""
    folder.mkdir()
    choose = random.Random(seed)
    due = sorted(choose.randrange(1, max(2, rows)) for _ in range(kills))
    with machine(folder, day) as url:
        for at in due:
            if not _killed(folder, url, day, at, choose):
                break
        host = _start(folder, url, day)
        with host:
            assert host.wait(PATIENCE_S) == 0
    with RecordReader(folder / "table.db") as record:
        told = [each.row for each in record.all_rows()]
    return _played(told, day)


def _start(folder: Path, url: str, day: Day) -> WarmPopen:
    return WarmPopen(
        [url, str(folder), day.rules, str(day.rounds)], program=str(PROGRAM), stdout=subprocess.PIPE
    )


def _killed(folder: Path, url: str, day: Day, at: int, choose: random.Random) -> bool:
    """Run the program and kill it; False if it ended before."""
    with _start(folder, url, day) as host:
        if choose.random() < STARTING:
            time.sleep(choose.uniform(0.0, START_S))
        else:
            ends = time.monotonic() + PATIENCE_S
            while _rows(folder) < at and host.poll() is None:
                assert time.monotonic() < ends, f"row {at} did not come"
                time.sleep(LOOK_S)
            time.sleep(choose.uniform(0.0, 0.1))
        if host.poll() is not None:
            assert host.returncode == 0, f"the program ended with {host.returncode}"
            return False
        host.send_signal(signal.SIGKILL)
    return True


def _rows(folder: Path) -> int:
    path = folder / "table.db"
    if not path.exists():
        return 0
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as record:
            return int(record.execute("SELECT coalesce(max(number), 0) FROM rows").fetchone()[0])
    except sqlite3.OperationalError:  # the file is just made
        return 0


def _played(rows: Sequence[Row], day: Day) -> Played:
    last = day.rounds - 1  # what people still do about the last round may not be done when the day ends
    kept = [row for row in rows if row.kind not in (*ADDED, *ASKED_AGAIN)]
    told = [
        repr((row.kind, row.actor, row.round_id, row.clause, _without_numbers(row.data, rows)))
        for row in kept
        if 0 < row.round_id <= last
    ]
    done = next((at for at, row in enumerate(kept) if row.round_id == day.rounds), len(kept))
    around = [
        repr((row.kind, row.actor, row.clause, _without_numbers(row.data, rows)))
        for row in kept[:done]
        if row.round_id == 0 and row.actor.how not in (Authentication.SENSED, Authentication.PROGRAM)
    ]
    kills = sum(row.kind == "interruption" for row in rows)
    return Played(sorted(told), Counter(around), len(rows), kills)


def _without_numbers(data: Mapping[str, Json], rows: Sequence[Row]) -> dict[str, Json]:
    """A row that names another one names its kind: rows about interruptions shift the numbers."""
    told = {name: value for name, value in data.items() if name not in TIMES}
    if isinstance(told.get("row"), int):
        told["row"] = rows[int(str(told["row"])) - 1].kind
    return told


def differences(calm: Played, killed: Played) -> list[str]:
    """What the killed day has more or less than the undisturbed one."""
    pairs = ((Counter(calm.rounds), Counter(killed.rounds)), (calm.around, killed.around))
    found = []
    for before, after in pairs:
        found += [f"missing: {each}" for each in (before - after).elements()]
        found += [f"added: {each}" for each in (after - before).elements()]
    return found


def commit() -> str:
    """The commit that is tried, marked if files differ from it."""
    git = ("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*")
    return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Play the days and compare each with the undisturbed one."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--fresh", action="store_true", help="forget earlier results")
    chosen = options.parse_args()
    STATE.parent.mkdir(exist_ok=True)
    kept: dict[str, Any] = {} if chosen.fresh or not STATE.exists() else json.loads(STATE.read_text())
    if kept.get("commit") != commit():
        kept = {"commit": commit(), "days": {}}
    results, calm = kept["days"], dict[Day, Played]()
    for number, day in enumerate(DAYS, 1):
        if str(number) in results:
            continue
        with tempfile.TemporaryDirectory() as name:
            began = time.monotonic()
            if day not in calm:
                calm[day] = play(Path(name) / "calm", day, 0, 0, 0)
            kills = chosen.kills * number // len(DAYS) - chosen.kills * (number - 1) // len(DAYS)
            killed = play(Path(name) / "killed", day, kills, calm[day].rows, number)
        found = differences(calm[day], killed)
        results[str(number)] = {
            "rules": day.rules, "rounds": day.rounds, "kills": kills, "interruptions": killed.kills,
            "rows": len(killed.rounds) + killed.around.total(), "differences": found,
            "seconds": round(time.monotonic() - began),
        }  # fmt: skip
        STATE.write_text(json.dumps(kept, indent=1))
        sys.stdout.write(f"day {number}: {json.dumps(results[str(number)])}\n")
        sys.stdout.flush()
    wrong = [number for number, each in results.items() if each["differences"]]
    sys.exit(f"days {', '.join(wrong)} differ" if wrong else 0)


if __name__ == "__main__":
    main()
