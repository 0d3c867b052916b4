"""Processes that are killed (-9): a program that runs a table until a need is there, and an emulated device.

They are forked from one process that has imported everything, so that a case costs little.
"""

import contextlib
import json
import multiprocessing
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.session.simulated_table import staff_of

from sabot_cli.at_table.running_table import RunningTable, run_table
from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import DeviceOptions
from sabot_cli.main import run as sabot
from sabot_cli.output import Output
from sabot_cli.people_keys import table_credentials
from sabot_driver.errors import SabotError
from sabot_driver.user_files import UserFiles
from sabot_session.acts import parse_act
from sabot_session.needs import Need, NeedKind
from sabot_simulators.endpoints.control_client import CardsOverSocket
from sabot_simulators.simulated_staff import FLOOR, SimulatedPerson, SimulatedStaff
from sabot_table.errors import RuleViolation
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import load

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__, "sabot_simulators.endpoints.simulate", "sabot_cli.play_command"])
WAIT_S = 0.1
LOOK_S = 0.01
PATIENCE_S = 120.0
ASK_S = 20.0

HANDS, KEYLESS = "hands", "keyless"
Plan = tuple[tuple[str, str, dict[str, Any]], ...]
"""What people do besides the usual: at which need, which act, with which data; one after the other.

The act `HANDS` is a line for the emulated machine's control socket. `KEYLESS` is an act of a floor person
whose key the machine does not know."""


# -- the program --------------------------------------------------------------------------------


def reach(
    table: RunningTable, staff: SimulatedStaff, cards: CardsOverSocket, kind: NeedKind, plan: Plan
) -> Need:
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
            _, name, data = left[0]
            if name == KEYLESS:
                told = {key: value for key, value in data.items() if key != "act"}
                table.run.act(KEYLESS, None, 0, SimulatedPerson(FLOOR), parse_act(data["act"], told))
            elif name != HANDS:
                staff.give(parse_act(name, data))
            elif not cards.ask(data["line"]).startswith("ok"):
                table.run.wait_changed(cursor, WAIT_S)  # nothing lies there yet
                continue
            left.pop(0)
        elif found is not None and not left:
            return found
        elif staff.meet_one(frozenset() if left else frozenset({kind})) is None:
            table.run.wait_changed(cursor, WAIT_S)
    words = [each.words for each in table.needs()]
    raise TimeoutError(f"{kind} has not come; left {left}, needed {words}, refused {staff.refused[-3:]}")


def _program(told: Connection, home: Path, at: "At", kind: str, rules: str, plan: Plan) -> None:
    state = CliContext(Output(as_json=True), UserFiles(home))
    options = DeviceOptions(at.url, None, None, ASK_S, simulator=True)
    with run_table(state, options, lambda record: load(rules), real_people=False) as table:
        cards = CardsOverSocket(at.control)
        table_credentials(state, table.client, None)
        staff = staff_of(
            table.run, load(rules), UserFiles(home), table.client, 1, DealingMethod.AUTOMATED_SHOE, cards
        )
        try:
            told.send({"words": reach(table, staff, cards, NeedKind(kind), plan).words})
        except (SabotError, RuleViolation, TimeoutError) as error:
            told.send({"error": repr(error)})
        time.sleep(PATIENCE_S)


@contextmanager
def program_at(home: Path, at: "At", kind: str, rules: str, plan: Plan) -> Iterator[str]:
    """A program that has come to a need; its words. It is killed at the end."""
    hear, tell = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=_program, args=(tell, home, at, kind, rules, plan), daemon=True)
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


@dataclass(frozen=True)
class At:
    """Where an emulated device is: its URL, and the socket for what hands do."""

    url: str
    control: Path


def _device(state: Path, port: int, control: Path, options: tuple[str, ...]) -> None:
    files = ("--state", str(state), "--control", str(control))
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
        sabot(["simulate", "--tcp", str(port), "--speed", "max", *files, *options])


@contextmanager
def device(state: Path, port: int, *options: str) -> Iterator[At]:
    """An emulated device, whose memory is in a file. It is killed at the end."""
    folder = tempfile.mkdtemp()  # a socket's path must be short
    control = Path(folder) / "control"
    process = FORKS.Process(target=_device, args=(state, port, control, options), daemon=True)
    process.start()
    try:
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(LOOK_S)
        yield At(f"socket://127.0.0.1:{port}", control)
    finally:
        process.kill()
        process.join()
        shutil.rmtree(folder)


def plan_of(*steps: tuple[str, str, dict[str, Any]]) -> Plan:
    """A plan, checked to be data."""
    json.dumps(steps)
    return steps
