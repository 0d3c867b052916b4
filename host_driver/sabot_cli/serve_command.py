"""``sabot serve``: one process owns a table's device, runs its session and serves its pages."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import DeviceOptions, device_options, find_device, is_emulator, open_device
from sabot_cli.help_text import example
from sabot_cli.output import IN_PROGRESS
from sabot_cli.people_keys import newest_list, simulators_key
from sabot_cli.table_policies import policy_of
from sabot_cli.table_process import service_folder
from sabot_cli.table_records import USUAL_RULES, checkpoint_lines, open_tables_record, rules_of_record
from sabot_driver import Client
from sabot_house.on_device import RevocationsKept
from sabot_serve.errors import ServiceRunning
from sabot_serve.service_client import ServiceClient
from sabot_serve.service_file import ServiceAddress, ServiceFile, find_service
from sabot_serve.table_people import ServedPeople
from sabot_session.asyncio_session import AsyncSession
from sabot_session.people import PeopleRegister
from sabot_session.session import TableSession
from sabot_session.threaded_session import ThreadedSession
from sabot_table.errors import TableError
from sabot_table.procedure import TableRole
from sabot_table.ruleset import RuleSet, load
from sabot_table.wager_acceptance import every_wager
from sabot_web.errors import ExtraMissing

if TYPE_CHECKING:
    from sabot_floor.connection import TableSettings
    from sabot_serve.demonstration import Demonstration
    from sabot_serve.running import TableService
    from sabot_table.house_policy import HousePolicy
    from sabot_table.rule_texts import FloorLevel

STAFF = "sabot.table_staff"
"""The group of entry points by which the simulators offer simulated people."""
PACE_S = 1.5
ROLES = [str(each) for each in (TableRole.DEALER, TableRole.FLOOR, TableRole.SERVICE)]


@dataclass(frozen=True)
class _Listening:
    """Where the service listens."""

    host: str
    port: int
    certificate: Path | None
    private_key: Path | None
    players_port: int | None
    metrics_port: int | None


@dataclass(frozen=True)
class _Staffing:
    """Who acts at the table."""

    emulated: bool
    """Whether simulated people may."""
    stored: bool
    """Whether the device's key and record are in the simulators' folder."""
    of_register: bool
    """Whether people of this computer's register do; else those of a demonstration."""
    simulated: list[TableRole]
    pace_s: float


KEY_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(epilog=example("sabot serve --device sim:// --port 0"))
@device_options
@click.option("--port", type=click.IntRange(0, 65535), default=8470, show_default=True, help="0 takes any")
@click.option(
    "--players-port", type=click.IntRange(0, 65535), help="a listener for the players' display; 0 takes any"
)
@click.option("--host", default="127.0.0.1", show_default=True, help="the address to listen on")
@click.option("--certificate", type=KEY_FILE, help="TLS certificate; needed beyond this computer")
@click.option("--private-key", type=KEY_FILE, help="the certificate's private key")
@click.option(
    "--rules", "rule_set", metavar="RULESET", help=f"the rule set; else the table's own, or {USUAL_RULES}"
)
@click.option(
    "--people", "real_people", is_flag=True, help="people of the register act, at an emulated device too"
)
@click.option(
    "--simulate",
    "roles",
    type=click.Choice(["nobody", *ROLES]),
    multiple=True,
    help="which people are simulated (repeatable; emulated devices only); all if not given",
)
@click.option(
    "--pace",
    type=click.FloatRange(0.01),
    default=PACE_S,
    show_default=True,
    help="seconds between acts of simulated people",
)
@click.option("--floor", "floor_file", type=KEY_FILE, help="publish to the site that this file names")
@click.option(
    "--metrics-port", type=click.IntRange(0, 65535), help="offer metrics on this computer's port; 0 takes any"
)
@click.pass_obj
def serve(
    state: CliContext,
    /,
    floor_file: Path | None,
    metrics_port: int | None,
    port: int,
    players_port: int | None,
    host: str,
    certificate: Path | None,
    private_key: Path | None,
    rule_set: str | None,
    real_people: bool,
    roles: tuple[str, ...],
    pace: float,
    options: DeviceOptions,
) -> int:
    """Serve a table's pages to browsers.

    The process owns the device and runs the table until Ctrl-C or SIGTERM ends it. A second 'sabot serve'
    for the same table prints a new address to enter by; 'sabot play', 'watch' and 'status' attach to it.

    Exit codes: 0 ended, 1 refused, 2 usage, 3 no device, 5 not verified, 6 served by another process,
    130 ended with Ctrl-C.
    """
    _need_extra()
    floor = None if floor_file is None else _floor_settings(floor_file)
    if rule_set is not None:
        _load(rule_set)  # a name that is none is told before anything is opened
    entry = find_device(state, options)
    folder = service_folder(state, entry)
    with ExitStack() as stack:
        try:
            held = stack.enter_context(ServiceFile(folder))
        except ServiceRunning:
            running = find_service(folder)
            if running is None:
                raise
            return _attach(state, running)
        client = stack.enter_context(open_device(state, options, owner=True))
        stack.enter_context(RevocationsKept(client, lambda: newest_list(state.user_files)))
        name = entry.name or "demonstration"
        listening = _Listening(host, port, certificate, private_key, players_port, metrics_port)
        simulated = [TableRole(each) for each in (roles or ROLES) if each != "nobody"]
        emulated = client.simulator and entry.simulator  # proved, and its key is of the simulators' store
        people = _Staffing(
            emulated, entry.simulator, real_people or not is_emulator(client.url), simulated, pace
        )
        _serve(state, client, people, rule_set, name, listening, held, floor, stack)
    return 0


def _load(name: str) -> RuleSet:
    try:
        return load(name)
    except TableError as error:
        raise click.UsageError(str(error)) from None


def _need_extra() -> None:
    try:
        import jinja2  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ExtraMissing(f"'sabot serve' needs {error.name}") from error


def _floor_settings(path: Path) -> "TableSettings":
    """The site that a table is published to."""
    try:
        from sabot_floor.connection import read_settings
    except ImportError as error:
        raise ExtraMissing(
            f"'sabot serve --floor' needs {error.name}", "Install it: pip install 'sabot[floor]'."
        ) from error
    return read_settings(path)


def _level_of_metrics(rules: RuleSet, policy: "HousePolicy | None") -> "FloorLevel":
    """What metrics may tell: that which may leave the table; `NothingMayLeave` where nothing may."""
    try:
        from sabot_floor.table_service import leaving_terms
    except ImportError as error:
        raise ExtraMissing(
            f"'sabot serve --metrics-port' needs {error.name}", "Install it: pip install 'sabot[floor]'."
        ) from error
    return leaving_terms(rules, policy).leaves


def _serve(
    state: CliContext,
    client: Client,
    staffing: _Staffing,
    rule_set: str | None,
    name: str,
    listening: _Listening,
    held: ServiceFile,
    floor: "TableSettings | None",
    stack: ExitStack,
) -> None:
    from sabot_serve.demonstration import demonstration
    from sabot_serve.local_api import Owned
    from sabot_serve.running import TableService

    journal = client.journal.path
    path = None if journal is None else state.user_files.record_of(client.identity.serial, staffing.stored)
    rules = _load(rule_set or rules_of_record(path) or USUAL_RULES)
    policy = policy_of(state, state.user_files.table_of(client.identity.serial, staffing.stored), rules)
    level = None if listening.metrics_port is None else _level_of_metrics(rules, policy)
    record = open_tables_record(state, client, path, rules)
    stack.callback(record.close)
    staff = _staff() if staffing.emulated else None
    shown: Demonstration | None = None
    if staffing.of_register:
        register = PeopleRegister(state.user_files.people)
    else:
        shown = demonstration(simulators_key(state, client), int(time.time()))
        register = shown.register
    stack.callback(register.close)
    keys = None if shown is None else shown.keys
    people = ServedPeople(register, None if staff is None else staff.register(), keys)
    session = TableSession(rules, record, people, table=name, policy=policy)
    people.dealer = lambda: session.state.dealer
    run = stack.enter_context(ThreadedSession(session, client, simulators_key=staffing.emulated))
    published = None
    if floor is not None:
        from sabot_floor.table_service import publish_table

        published = publish_table(floor, client, path, rules, policy, run)
        stack.callback(published.close)
    service = TableService(
        AsyncSession(run),
        people,
        record,
        host=listening.host,
        port=listening.port,
        certificate=listening.certificate,
        private_key=listening.private_key,
        players_port=listening.players_port,
        browsers=held.path.with_name("browsers.json") if journal is not None else None,
        owned=Owned(client, False, True, lambda: checkpoint_lines(client)),
    )
    if staff is not None and shown is not None and staffing.simulated:
        key = simulators_key(state, client)
        wagers = every_wager(rules)
        attending = staff(run, client.url, key, wagers, staffing.simulated, staffing.pace_s)
        stack.callback(attending.close)
    metrics = ""
    if level is not None:
        from sabot_floor.table_metrics import TableMetrics, serve_table_metrics

        shows = TableMetrics(name if floor is None else floor.table, level, run, record, client, service)
        publishers = [] if published is None else published.publishers
        offered = serve_table_metrics(shows, publishers, listening.metrics_port or 0)
        stack.callback(offered.server_close)
        stack.callback(offered.shutdown)
        metrics = f"http://127.0.0.1:{offered.server_port}/metrics"
    with _ending(service.stop):
        held.publish(service.address, service.app.access.local_token, listening.certificate)
        _tell(state, service, service.app.access.invite(time.time()), shown, metrics)
        service.run()


def _staff() -> Any:
    """The simulated people that an installed package offers; None if there are none."""
    for entry in entry_points(group=STAFF):
        return entry.load()
    return None


@contextmanager
def _ending(stop: Callable[[], None]) -> Iterator[None]:
    """A request to terminate ends the service in order."""
    before = signal.signal(signal.SIGTERM, lambda *_: stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _tell(
    state: CliContext, service: "TableService", token: str, shown: "Demonstration | None", metrics: str
) -> None:
    address = service.address
    enter = f"{address}/enter#{token}"
    known = {} if shown is None else shown.shown
    people = {who: {"badge": badge, "pin": pin} for who, (badge, pin) in known.items()}
    words = [f"Open in a browser, once and within 15 minutes: [bold]{escape(enter)}[/bold]"]
    for who, each in people.items():
        badge = f"badge {each['badge']}, " if each["badge"] else f"id {who}, "
        words.append(f"{who.capitalize()} of this demonstration: {badge}PIN {each['pin']}")
    players = service.players_address
    if players:
        words.append(f"Players' display: {players}")
    if metrics:
        words.append(f"Metrics: {metrics}")
    state.output.tell(
        "serving",
        "\n".join(words),
        address=address,
        enter=enter,
        players=players,
        people=people,
        metrics=metrics,
    )


def _attach(state: CliContext, running: ServiceAddress) -> int:
    """Another process runs the table: ask it for a new token."""
    client = ServiceClient(running)
    if not client.check()["pages"]:
        raise ServiceRunning(
            f"process {running.pid} plays this table at a terminal and has no pages",
            "End it there with q, then run 'sabot serve'. 'sabot play' joins it meanwhile.",
        )
    enter = f"{running.address}/enter#{client.invite()}"
    state.output.tell(
        "served",
        f"Process {running.pid} serves this table. Open in a browser, once: [bold]{escape(enter)}[/bold]",
        address=running.address,
        enter=enter,
        pid=running.pid,
    )
    return IN_PROGRESS
