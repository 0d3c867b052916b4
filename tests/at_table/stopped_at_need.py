"""Processes that are killed (-9): a program that runs a table until a need is there, and an emulated device.

They are forked from one process that has imported everything, so that a case costs little.
"""

import contextlib
import json
import multiprocessing
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from sabot_cli.at_table.running_table import RunningTable, run_table
from sabot_cli.at_table.simulated_people import Staff
from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import DeviceOptions
from sabot_cli.main import run as sabot
from sabot_cli.output import Output
from sabot_cli.people_keys import table_credentials
from sabot_driver.errors import SabotError
from sabot_driver.user_files import UserFiles
from sabot_protocol.host.messages import Role
from sabot_session.acts import parse_act
from sabot_session.needs import Need, NeedKind
from sabot_table.ruleset import load
from sabot_table.wager_acceptance import every_wager

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__, "sabot_simulators.endpoints.simulate", "sabot_cli.play_command"])
WAIT_S = 0.1
PATIENCE_S = 120.0
ASK_S = 20.0
SAVED_S = 1.2  # an emulated device writes its memory to the file twice a second

Plan = tuple[tuple[str, str, dict[str, Any]], ...]
"""What people do besides the usual: at which need, which act, with which data; one after the other."""


# -- the program --------------------------------------------------------------------------------


def reach(table: RunningTable, staff: Staff, kind: NeedKind, plan: Plan) -> Need:
    """Run the table until a need of this kind is there; all others are met."""
    ends, left = time.monotonic() + PATIENCE_S, list(plan)
    while time.monotonic() < ends:
        cursor = table.run.read(lambda session: session.cursor)
        if not table.run.read(lambda session: session.state.simulated_people):
            table.run.wait_changed(cursor, WAIT_S)  # the device has not proved yet that it is emulated
            continue
        needs = table.needs()
        found = next((each for each in needs if each.kind is kind), None)
        if left and any(each.kind == left[0][0] for each in needs):
            _, name, data = left.pop(0)
            staff.give(parse_act(name, data))
        elif found is not None and not left:
            return found
        elif staff.meet_one(frozenset() if left else frozenset({kind})) is None:
            table.run.wait_changed(cursor, WAIT_S)
    raise TimeoutError(f"{kind} has not come; needed: {[each.words for each in table.needs()]}")


def _program(told: Connection, home: Path, url: str, kind: str, rules: str, plan: Plan) -> None:
    state = CliContext(Output(as_json=True), UserFiles(home))
    options = DeviceOptions(url, None, None, ASK_S, simulator=True)
    with run_table(state, options, lambda record: load(rules), real_people=False) as table:
        assert table.simulated is not None
        keys = table_credentials(state, table.client, None)
        wagers = {1: dict(every_wager(load(rules))[1])}
        staff = table.simulated.staff(table.run, url, wagers, keys(Role.FLOOR), keys(Role.SERVICE))
        try:
            told.send({"words": reach(table, staff, NeedKind(kind), plan).words})
        except (SabotError, TimeoutError) as error:
            told.send({"error": repr(error)})
        time.sleep(PATIENCE_S)


@contextmanager
def program_at(home: Path, url: str, kind: str, rules: str, plan: Plan) -> Iterator[str]:
    """A program that has come to a need; its words. It is killed at the end."""
    hear, tell = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=_program, args=(tell, home, url, kind, rules, plan), daemon=True)
    process.start()
    try:
        assert hear.poll(2 * PATIENCE_S), "the program says nothing"
        said = hear.recv()
        assert "error" not in said, said
        yield said["words"]
    finally:
        process.kill()
        process.join()


# -- the device ---------------------------------------------------------------------------------


def _device(state: Path, port: int, options: tuple[str, ...]) -> None:
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
        sabot(["simulate", "--tcp", str(port), "--speed", "max", "--state", str(state), *options])


@contextmanager
def device(state: Path, port: int, *options: str) -> Iterator[str]:
    """An emulated device, whose memory is in a file; its URL. It is killed at the end."""
    process = FORKS.Process(target=_device, args=(state, port, options), daemon=True)
    process.start()
    try:
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(WAIT_S)
        yield f"socket://127.0.0.1:{port}"
        time.sleep(SAVED_S)
    finally:
        process.kill()
        process.join()


def free_port() -> int:
    """A TCP port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def plan_of(*steps: tuple[str, str, dict[str, Any]]) -> Plan:
    """A plan, checked to be data."""
    json.dumps(steps)
    return steps
