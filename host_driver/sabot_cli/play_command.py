"""``sabot play``: the command. What it does is in ``sabot_cli.playing``."""

from pathlib import Path

import click

from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import DeviceOptions, device_options, find_device, is_emulator, open_device
from sabot_cli.output import IN_PROGRESS
from sabot_cli.people_keys import KEY_FILE, table_credentials
from sabot_cli.playing.irregularity_reports import IRREGULARITIES, BadReport, IrregularityReport
from sabot_cli.playing.recorded_table import GameInPlay
from sabot_cli.playing.table_run import play_rounds
from sabot_cli.wager_plan import WagerPlan
from sabot_driver.serial_numbers import format_serial
from sabot_table.cards import DECK_CARDS
from sabot_table.errors import TableError
from sabot_table.procedure import TableRole
from sabot_table.rule_texts import GameKind

PLAYERS = 6


@click.command()
@device_options
@click.option("--rounds", type=click.IntRange(1), default=6, show_default=True)
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
    help=f"what people report that no sensor sees (repeatable): {', '.join(IRREGULARITIES)}",
)
@click.option("--rules", "rule_set", metavar="RULESET", help="settle each round by this rule set")
@click.option(
    "--wagers", metavar="auto|FILE", default="auto", show_default=True, help="what is wagered, with --rules"
)
@click.option(
    "--typed", metavar="FILE|-", help="cards as the dealer types them, a line a hand, where no reader is"
)
@click.option("--cover", type=int, metavar="N", help="the shoe's cover card lies N cards above the bottom")
@click.option("--dealer", "dealer_name", metavar="NAME", default="dealer", help="who deals, for the record")
@click.option("--floor", "floor_name", metavar="NAME", default="floor", help="who supervises, for the record")
@click.option("--floor-key", type=KEY_FILE, help="the floor's key file, to register decks")
@click.pass_obj
def play(
    state: CliContext,
    /,
    rounds: int,
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
    """Open a table and play rounds by its rules.

    Cards are shuffled, dealt and counted, wagers settled. Without a machine, --device sim:// emulates one.
    """
    if rule_set is None and wagers != "auto":
        raise click.UsageError("--wagers takes --rules: without a rule set nothing is settled")
    book = WagerPlan.plain(players) if rule_set is None else _read_book(rule_set, wagers, players)
    settings = [("fault", each) for each in faults]
    if seed is not None:
        settings.insert(0, ("seed", str(seed)))
    url = find_device(state, options).url
    emulated = is_emulator(url)
    if book.rules.game is GameKind.MINI and emulated and "capacity=" not in url:
        settings.append(("capacity", "batch"))
    if cover is not None:
        _check_cover(book, cover, emulated)
    told = _read_reports(reports)
    with open_device(state, options, owner=True, settings=settings) as client:
        credential = table_credentials(state, client, floor_key)
        about = client.identity
        ruleset = book.rules if book.settled else None
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
            faults=list(faults),
            ruleset=None if ruleset is None else ruleset.name,
            ruleset_sha256=None if ruleset is None else ruleset.sha256,
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
                record=None if journal is None else state.user_files.table_record(journal),
                names={TableRole.DEALER: dealer_name, TableRole.FLOOR: floor_name},
                seed=seed,
                typed=typed,
                cover=cover,
                reports=told,
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
