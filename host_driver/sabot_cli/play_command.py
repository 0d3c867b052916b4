"""``sabot play``: a table at a terminal, or played by simulated people."""

from pathlib import Path

import click

from sabot_cli.at_table.act_entry import Identification
from sabot_cli.at_table.attached_table import AttachedTable, SimulatedRole
from sabot_cli.at_table.lines_printer import LinesPrinter
from sabot_cli.at_table.running_table import RunningTable, run_table
from sabot_cli.at_table.simulated_play import play_simulated
from sabot_cli.at_table.terminal_table import TerminalTable
from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import DeviceOptions, device_options, find_device, is_emulator
from sabot_cli.help_text import example
from sabot_cli.people_keys import KEY_FILE, table_credentials
from sabot_cli.running_service import running_service
from sabot_cli.table_records import USUAL_RULES, rules_of_record
from sabot_cli.terminal_keys import at_terminal
from sabot_cli.wager_plan import WagerPlan
from sabot_driver.errors import SabotError
from sabot_driver.serial_numbers import format_serial
from sabot_protocol.host.messages import Role
from sabot_serve.errors import ServiceRunning
from sabot_serve.service_file import ServiceAddress
from sabot_table.cards import DECK_CARDS
from sabot_table.errors import TableError, WagerRefused
from sabot_table.procedure import TableRole
from sabot_table.rule_texts import GameKind
from sabot_table.ruleset import RuleSet

AUTO_ROUNDS = 6


class NoPeople(SabotError):
    """A table without people: nobody at the keyboard, and none may be simulated."""


@click.command(epilog=example("sabot play --device sim:// --auto --rounds 2"))
@device_options
@click.option(
    "--auto",
    is_flag=True,
    help="simulated people play; for emulated devices, and the default without a terminal",
)
@click.option(
    "--people", "real_people", is_flag=True, help="people of the register act, at an emulated device too"
)
@click.option("--rounds", type=click.IntRange(1), help=f"leave after so many; with --auto {AUTO_ROUNDS}")
@click.option(
    "--players", type=click.IntRange(1), help="seats that bet; without it six, or as many as there are"
)
@click.option("--seed", type=int, help="make a run repeatable; emulated devices only")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[@PLACE][:CARD|+SECONDS|~CHANCE]",
    help="plan a fault (repeatable)",
)
@click.option(
    "--rules",
    "rule_set",
    metavar="RULESET",
    help=f"the rule set; without it the table's own, or {USUAL_RULES}",
)
@click.option(
    "--wagers", metavar="auto|FILE", default="auto", show_default=True, help="what is usually wagered"
)
@click.option("--cover", type=int, metavar="N", help="the shoe's cover card lies N cards above the bottom")
@click.option("--floor-key", type=KEY_FILE, help="the floor's key file; each act asks for the PIN")
@click.pass_obj
def play(
    state: CliContext,
    /,
    auto: bool,
    real_people: bool,
    rounds: int | None,
    players: int | None,
    seed: int | None,
    faults: tuple[str, ...],
    rule_set: str | None,
    wagers: str,
    cover: int | None,
    floor_key: Path | None,
    options: DeviceOptions,
) -> int:
    """Run a table: its needs in one line, acts by key, every round on record.

    At a terminal people run the table. Press ? for the keys. A person proves who they are with a PIN and,
    for the floor and service, with a key file or badge ('sabot people'). There is no time limit.

    If another program runs the table, this terminal joins it: the same needs, acts and rounds.

    With --auto simulated people play. They exist only at an emulated device (--device sim://).

    Exit codes: 0 done, 2 usage, 3 the device does not answer, 5 not verified or against the rules, 6 in use,
    7 the machine cannot be used, 130 left with Ctrl-C.
    """
    settings = [("fault", each) for each in faults]
    if seed is not None:
        settings.insert(0, ("seed", str(seed)))
    if rule_set is not None:
        settings += _shoe_settings(state, options, _read_book(rule_set, wagers, players), cover)
    elif cover is not None:
        raise click.UsageError("--cover is for mini baccarat: name its rule set with --rules")
    if auto and real_people:
        raise click.UsageError("--auto and --people exclude each other")
    if state.output.as_json and real_people:
        raise click.UsageError("--json is for simulated people; 'sabot rounds --json' tells of the others")

    def choose(record: Path | None) -> RuleSet:
        return _read_book(rule_set or rules_of_record(record) or USUAL_RULES, wagers, players).rules

    by_hand = at_terminal() and not state.output.as_json and not auto
    ours = bool(settings) or not by_hand  # what is asked for belongs to an emulated device of this process
    private = ours and is_emulator(find_device(state, options).url)
    running = None if private else running_service(state, options)
    if running is not None:
        if settings or not by_hand:
            raise ServiceRunning(
                f"process {running[1].pid} runs this table; simulated people, faults and a seed are its own"
            )
        return _join(state, *running, rule_set, wagers, players, rounds, floor_key, options.timeout)
    with run_table(
        state,
        options,
        choose,
        real_people=real_people,
        settings=settings,
        seed=seed,
        offer=not private,
    ) as table:
        book = _read_book(rule_set or table.rules.name, wagers, players)
        if not by_hand and table.simulated is None:
            raise NoPeople(
                f"{table.name} has a machine, and nobody is at this terminal",
                "Run 'sabot play' at a terminal. Simulated people play only at an emulated device.",
            )
        if auto and table.simulated is None:
            raise NoPeople(
                f"{table.name} has a machine: simulated people may not act there",
                "Leave --auto away and run the table at a terminal.",
            )
        if not by_hand:
            _check_limits(table, book)
        _say_hello(state, table, rounds, book, seed, faults)
        return _run(state, table, book, by_hand, rounds, floor_key, options.timeout, cover)


def _run(
    state: CliContext,
    table: RunningTable,
    book: WagerPlan,
    by_hand: bool,
    rounds: int | None,
    floor_key: Path | None,
    timeout: float,
    cover: int | None,
) -> int:
    printer = LinesPrinter(state.output)
    simulated = None
    if table.simulated is not None:
        credential = table_credentials(state, table.client, floor_key)
        keys = credential(Role.FLOOR), credential(Role.SERVICE)
        simulated = table.simulated.staff(table.run, table.client.url, book.wagers, *keys, cover)
        table.simulated_person = simulated.credential
    if simulated is not None and not by_hand:
        return play_simulated(table, simulated, state.output, printer, rounds or AUTO_ROUNDS, timeout)
    who = Identification(None if simulated is None else simulated.credential)
    if floor_key is not None:
        who.held[TableRole.FLOOR] = str(floor_key)
    if simulated is not None:
        printer.print(
            "You act as simulated people, and the record says so. --people takes those of the register."
        )
    return TerminalTable(table, state.output, printer, who, book.wagers, timeout).run(rounds)


def _join(
    state: CliContext,
    folder: Path,
    running: ServiceAddress,
    rule_set: str | None,
    wagers: str,
    players: int | None,
    rounds: int | None,
    floor_key: Path | None,
    timeout: float,
) -> int:
    """Show a table that another process runs, and give acts there."""
    printer = LinesPrinter(state.output)
    with AttachedTable(folder, running) as table:
        book = _read_book(table.rules.name, wagers, players)
        if rule_set is not None and _read_book(rule_set, wagers, players).rules.sha256 != book.rules.sha256:
            raise ServiceRunning(f"process {running.pid} runs this table under {table.rules.name}")
        about = table.about
        state.output.simulator = bool(about["simulator"])
        label = "SIMULATOR  " if about["simulator"] else ""
        printer.print(f"{label}{about['model']} {about['firmware']}, {about['serial']}, at {about['url']}")
        printer.print(f"Process {running.pid} runs this table; this terminal is another face of it.")
        who = Identification(
            SimulatedRole if about["simulated_people"] else None, dealer_here=lambda: table.dealer_here
        )
        if floor_key is not None:
            who.held[TableRole.FLOOR] = str(floor_key)
        return TerminalTable(table, state.output, printer, who, book.wagers, timeout).run(rounds)


def _say_hello(
    state: CliContext,
    table: RunningTable,
    rounds: int | None,
    book: WagerPlan,
    seed: int | None,
    faults: tuple[str, ...],
) -> None:
    about = table.client.identity
    state.output.tell(
        "hello",
        None,
        table=table.name,
        device=table.client.url,
        serial=format_serial(about.serial),
        model=about.model,
        version=about.version,
        protocol=[about.major, about.minor],
        rounds=rounds or AUTO_ROUNDS,
        players=len(book.seats),
        seed=seed,
        faults=list(faults),
        ruleset=book.rules.name,
        ruleset_sha256=book.rules.sha256,
    )


def _read_book(rule_set: str, wagers: str, players: int | None) -> WagerPlan:
    try:
        return WagerPlan.read(rule_set, wagers, players)
    except TableError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"{wagers} cannot be read: {error.strerror}") from None


def _check_limits(table: RunningTable, book: WagerPlan) -> None:
    """Refuse wagers of simulated people that the house's limits forbid: nobody is there to change them."""
    policy = table.run.read(lambda session: session.procedure.table.policy)
    try:
        for seat, made in book.wagers.items():
            policy.check_most(table.rules, seat, made)
            policy.check_least(table.rules, seat, made)
    except WagerRefused as refused:
        raise click.UsageError(f"--wagers: {refused} (house policy '{policy.name}')") from None


def _shoe_settings(
    state: CliContext, options: DeviceOptions, book: WagerPlan, cover: int | None
) -> list[tuple[str, str]]:
    """What an emulated device must be for a rule set; a cover card that may not lie there is refused."""
    url = find_device(state, options).url
    emulated = is_emulator(url)
    if cover is not None:
        _check_cover(book, cover, emulated)
    batch = emulated and book.rules.game is GameKind.MINI and "capacity=" not in url
    return [("capacity", "batch")] if batch else []


def _check_cover(book: WagerPlan, cover: int, emulated: bool) -> None:
    text = book.rules.fixed
    if text.cover is None or not emulated:
        raise click.UsageError("--cover is for mini baccarat on an emulated device; elsewhere one is asked")
    least = text.cover.above_bottom
    most = DECK_CARDS * book.rules.cards.decks - least - text.cut.from_bottom
    if not least <= cover <= most:
        where = f"the cover card lies {least} to {most} cards above the bottom"
        raise click.UsageError(f"{where} ({text.clause('place_cover')})")
