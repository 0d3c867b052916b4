"""``sabot play``: a table at a terminal, or played by simulated people.

Three Card Baccarat runs on the table's session (``sabot_cli.at_table``), mini baccarat still on
``sabot_cli.playing``.
"""

from pathlib import Path

import click

from sabot_cli.at_table.act_entry import Identification
from sabot_cli.at_table.lines_printer import LinesPrinter
from sabot_cli.at_table.running_table import RunningTable, run_table
from sabot_cli.at_table.simulated_play import play_simulated
from sabot_cli.at_table.terminal_table import TerminalTable
from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import DeviceOptions, device_options, find_device, is_emulator, open_device
from sabot_cli.help_text import example
from sabot_cli.output import IN_PROGRESS
from sabot_cli.people_keys import KEY_FILE, table_credentials
from sabot_cli.playing.irregularity_reports import IRREGULARITIES, BadReport, IrregularityReport
from sabot_cli.playing.recorded_table import GameInPlay
from sabot_cli.playing.table_run import play_rounds
from sabot_cli.terminal_keys import at_terminal
from sabot_cli.wager_plan import WagerPlan
from sabot_driver.errors import SabotError
from sabot_driver.serial_numbers import format_serial
from sabot_protocol.host.messages import Role
from sabot_session.errors import RecordFailed
from sabot_session.record import RecordReader
from sabot_session.record_opening import rules_in_play
from sabot_table.cards import DECK_CARDS
from sabot_table.errors import TableError
from sabot_table.procedure import TableRole
from sabot_table.rule_texts import GameKind
from sabot_table.ruleset import RuleSet

PLAYERS = 6
USUAL_RULES = "md-three-card-baccarat"
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
@click.option("--players", type=click.IntRange(1, 16), default=PLAYERS, show_default=True)
@click.option("--seed", type=int, help="make a run repeatable; emulated devices only")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[@PLACE][:CARD|+SECONDS|~CHANCE]",
    help="plan a fault (repeatable)",
)
@click.option(
    "--report",
    "reports",
    multiple=True,
    metavar="ROUND:WHAT[=CARD]",
    help=f"mini baccarat: what people report that no sensor sees (repeatable): {', '.join(IRREGULARITIES)}",
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
@click.option(
    "--typed", metavar="FILE|-", help="mini baccarat: cards as the dealer types them, a line a hand"
)
@click.option("--cover", type=int, metavar="N", help="the shoe's cover card lies N cards above the bottom")
@click.option("--dealer", "dealer_name", metavar="NAME", default="dealer", help="mini baccarat: who deals")
@click.option("--floor", "floor_name", metavar="NAME", default="floor", help="mini baccarat: who supervises")
@click.option("--floor-key", type=KEY_FILE, help="the floor's key file; each act asks for the PIN")
@click.pass_obj
def play(
    state: CliContext,
    /,
    auto: bool,
    real_people: bool,
    rounds: int | None,
    players: int,
    seed: int | None,
    faults: tuple[str, ...],
    reports: tuple[str, ...],
    rule_set: str | None,
    wagers: str,
    typed: str | None,
    cover: int | None,
    dealer_name: str,
    floor_name: str,
    floor_key: Path | None,
    options: DeviceOptions,
) -> int:
    """Run a table: its needs in one line, acts by key, every round on record.

    At a terminal people run the table. Press ? for the keys. A person proves who they are with a PIN and,
    for the floor and service, with a key file or badge ('sabot people'). There is no time limit.

    With --auto simulated people play. They exist only at an emulated device (--device sim://).

    Exit codes: 0 done, 2 usage, 3 the device does not answer, 5 not verified or against the rules, 6 in use,
    7 the machine cannot be used, 130 left with Ctrl-C.
    """
    settings = [("fault", each) for each in faults]
    if seed is not None:
        settings.insert(0, ("seed", str(seed)))
    if rule_set is not None:
        book = _read_book(rule_set, wagers, players)
        if book.rules.game is GameKind.MINI:
            return _play_mini(
                state, options, book, rounds or AUTO_ROUNDS, settings, seed, cover, _read_reports(reports),
                typed, {TableRole.DEALER: dealer_name, TableRole.FLOOR: floor_name}, floor_key,
            )  # fmt: skip
    for given, name in ((reports, "--report"), (typed, "--typed"), (cover, "--cover")):
        if given:
            raise click.UsageError(f"{name} is for mini baccarat; here people act by key, also on sim://")
    if auto and real_people:
        raise click.UsageError("--auto and --people exclude each other")
    if state.output.as_json and real_people:
        raise click.UsageError("--json is for simulated people; 'sabot rounds --json' tells of the others")

    def choose(record: Path | None) -> RuleSet:
        return _read_book(rule_set or _rules_of(record), wagers, players).rules

    by_hand = at_terminal() and not state.output.as_json and not auto
    with run_table(state, options, choose, real_people=real_people, settings=settings, seed=seed) as table:
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
        _say_hello(state, table, rounds, book, seed, faults)
        return _run(state, table, book, by_hand, rounds, floor_key, options.timeout)


def _run(
    state: CliContext,
    table: RunningTable,
    book: WagerPlan,
    by_hand: bool,
    rounds: int | None,
    floor_key: Path | None,
    timeout: float,
) -> int:
    printer = LinesPrinter(state.output)
    simulated = None
    if table.simulated is not None:
        credential = table_credentials(state, table.client, floor_key)
        keys = credential(Role.FLOOR), credential(Role.SERVICE)
        simulated = table.simulated.staff(table.run, table.client.url, book.wagers, *keys)
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


def _rules_of(record: Path | None) -> str:
    """The rule set under which the table is open, or the usual one."""
    if record is None or not record.exists():
        return USUAL_RULES
    try:
        with RecordReader(record) as reader:
            return rules_in_play(reader) or USUAL_RULES
    except RecordFailed:
        return USUAL_RULES  # opening it says what is wrong


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


def _play_mini(
    state: CliContext,
    options: DeviceOptions,
    book: WagerPlan,
    rounds: int,
    settings: list[tuple[str, str]],
    seed: int | None,
    cover: int | None,
    reports: list[IrregularityReport],
    typed: str | None,
    names: dict[TableRole, str],
    floor_key: Path | None,
) -> int:
    url = find_device(state, options).url
    emulated = is_emulator(url)
    if emulated and "capacity=" not in url:
        settings.append(("capacity", "batch"))
    if cover is not None:
        _check_cover(book, cover, emulated)
    with open_device(state, options, owner=True, settings=settings) as client:
        credential = table_credentials(state, client, floor_key)
        about = client.identity
        state.output.tell(
            "hello",
            None,
            device=client.url,
            serial=format_serial(about.serial),
            model=about.model,
            version=about.version,
            protocol=[about.major, about.minor],
            rounds=rounds,
            players=len(book.seats),
            seed=seed,
            ruleset=book.rules.name,
            ruleset_sha256=book.rules.sha256,
        )
        journal = client.journal.path
        try:
            return play_rounds(
                client,
                state.output,
                book,
                rounds=rounds,
                timeout=options.timeout,
                credential=credential,
                record=None if journal is None else journal.with_suffix(".mini.table.db"),
                names=names,
                seed=seed,
                typed=typed,
                cover=cover,
                reports=reports,
            )
        except GameInPlay as error:
            state.output.error(error)
            return IN_PROGRESS
        except OSError as error:
            if typed is not None and error.filename == typed:
                raise click.UsageError(f"{typed} cannot be read: {error.strerror}") from None
            raise


def _read_book(rule_set: str, wagers: str, players: int) -> WagerPlan:
    try:
        return WagerPlan.read(rule_set, wagers, players)
    except TableError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"{wagers} cannot be read: {error.strerror}") from None


def _read_reports(reports: tuple[str, ...]) -> list[IrregularityReport]:
    try:
        return [IrregularityReport.parse(each) for each in reports]
    except BadReport as error:
        raise click.UsageError(str(error)) from None


def _check_cover(book: WagerPlan, cover: int, emulated: bool) -> None:
    text = book.rules.fixed
    if text.cover is None or not emulated:
        raise click.UsageError("--cover is for mini baccarat on an emulated device; elsewhere one is asked")
    least = text.cover.above_bottom
    most = DECK_CARDS * book.rules.cards.decks - least - text.cut.from_bottom
    if not least <= cover <= most:
        where = f"the cover card lies {least} to {most} cards above the bottom"
        raise click.UsageError(f"{where} ({text.clause('place_cover')})")
