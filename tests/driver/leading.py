"""A table led in a test: an emulated device in this process, and everything that was told, as values."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.table.croupier import named

from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import provision_simulator_keys
from sabot_cli.output import Output
from sabot_cli.people_keys import table_credentials
from sabot_cli.playing.card_entry import CardEntry, SimulatedEntry
from sabot_cli.playing.irregularity_reports import IrregularityReport
from sabot_cli.playing.recorded_table import RecordedTable, utc_s
from sabot_cli.playing.round_play import PlayedRound, RoundPlay
from sabot_cli.playing.shuffle_proofs import ShuffleProofs
from sabot_cli.playing.table_record import TableRecord
from sabot_cli.playing.table_run import table_class
from sabot_cli.wager_plan import WagerPlan
from sabot_driver import Client, connect
from sabot_driver.user_files import UserFiles
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_table.procedure import TableRole
from sabot_table.ruleset import RuleSet, load
from sabot_table.wager_acceptance import every_wager

TIMEOUT_S = 20.0


class Told(Output):
    """What would be on the screen."""

    def __init__(self) -> None:
        super().__init__(as_json=True)
        self.all: list[tuple[str, dict[str, Any]]] = []

    def tell(self, event: str, text: str | None = None, /, **fields: Any) -> None:
        """Kept."""
        self.all.append((event, fields))

    def of(self, event: str) -> list[dict[str, Any]]:
        """What was told of one kind."""
        return [fields for name, fields in self.all if name == event]


class Led:
    """A table with its rounds, and the machine below it."""

    def __init__(self, client: Client, table: RoundPlay, told: Told, played: list[PlayedRound]) -> None:
        self.client = client
        self.table = table
        self.told = told
        self.played = played

    @property
    def machine(self) -> SimulatedMachine:
        """The truth."""
        port: Any = self.client.loop.transport
        machine: SimulatedMachine = port.port.bench.device.machine
        return machine

    def on_device(self, what: Any) -> Any:
        """Do something on the device's own thread."""
        port: Any = self.client.loop.transport
        return port.port.bench.served.call(what)

    def open(self) -> None:
        """The table is open and everybody sits."""
        self.table.open_table()
        self.table.sit()

    def play(self, rounds: int = 1) -> PlayedRound:
        """So many rounds more; the last one."""
        for _ in range(rounds):
            self.table.prepare()
            self.table.play_round()
        return self.played[-1]

    def where(self, back: int) -> dict[str, int]:
        """How many cards with this back are where, without those places that have none."""
        zones = {zone: self.machine.count(zone, back) for zone in self.machine.truth()}
        return {zone: count for zone, count in zones.items() if count}


@contextmanager
def led(
    tmp_path: Path,
    rules: RuleSet | str,
    query: str = "seed=1",
    *,
    seats: int = 2,
    reports: tuple[str, ...] = (),
    card_entry: CardEntry | None = None,
    now_s: Any = utc_s,
    record: TableRecord | None = None,
) -> Iterator[Led]:
    """A table on ``sim://?query``."""
    rules = load(rules) if isinstance(rules, str) else rules
    wagers = {seat: made for seat, made in every_wager(rules).items() if seat <= seats}
    told, played = Told(), list[PlayedRound]()
    mini = "" if rules.cards.decks == 1 else "&capacity=batch"
    with connect(f"sim://?{query}{mini}", timeout=TIMEOUT_S) as client:
        user_files = UserFiles(tmp_path)
        provision_simulator_keys(user_files, client, TIMEOUT_S)
        credential = table_credentials(CliContext(told, user_files), client, None)
        kept = record or TableRecord(None)
        table = table_class(rules)(
            client,
            RecordedTable(rules, told, kept, now_s=now_s),
            ShuffleProofs(client, told, kept, TIMEOUT_S, int(parse_qs(query)["seed"][0])),
            TIMEOUT_S,
            credential,
            WagerPlan(rules, wagers),
            card_entry or SimulatedEntry(),
            played.append,
            [IrregularityReport.parse(each) for each in reports],
            patience_s=15.0,
        )
        yield Led(client, table, told, played)


def by_name(desk: RecordedTable) -> Callable[..., Any]:
    """People's actions by name, whichever part of the procedure has them."""

    def do(action: str, role: TableRole, *args: Any, **details: Any) -> Any:
        return desk.do(named(desk.procedure, action), role, *args, **details)

    return do
