"""``sabot``: the command line's entrance, and the exit codes."""

import logging
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points, version
from typing import Any

import click

from sabot_cli import commands, doctor, journal, recording, rules
from sabot_cli.betting import Book, NotDealtHere
from sabot_cli.device import Chosen, State, device_options, opened
from sabot_cli.output import FAILED, OK, USAGE, Output
from sabot_cli.play import play as play_rounds
from sabot_driver.errors import SabotError
from sabot_driver.places import Places
from sabot_protocol.host.messages import Role
from sabot_table.errors import TableError

COMMANDS = "sabot.commands"
INTERRUPTED = 130


class Commands(click.Group):
    """Our commands, and those that installed packages add; one that cannot be loaded is left out."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command by name."""
        added = {entry.name for entry in entry_points(group=COMMANDS)}
        return sorted({*super().list_commands(ctx), *added})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command."""
        found = super().get_command(ctx, cmd_name)
        if found is not None:
            return found
        for entry in entry_points(group=COMMANDS, name=cmd_name):
            loaded = entry.load()
            if isinstance(loaded, click.Command):
                return loaded
        return None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("sabot"), prog_name="sabot")
@click.option("-v", "--verbose", count=True, help="say what the driver does; twice: in detail")
def cli(verbose: int) -> None:
    """Drive a card shuffler and dealing shoe, or an emulated one (--device sim://)."""
    if verbose:
        logging.basicConfig(
            level=logging.DEBUG if verbose > 1 else logging.INFO, format="%(name)s: %(message)s"
        )
    else:
        logging.getLogger("sabot").addHandler(logging.NullHandler())


@cli.command()
@device_options
@click.option("--rounds", type=click.IntRange(1), default=6, show_default=True)
@click.option("--players", type=click.IntRange(1, 16), default=6, show_default=True)
@click.option("--seed", type=int, help="make a run repeatable; emulated devices only")
@click.option(
    "--fault", "faults", multiple=True, metavar="NAME[@PLACE][:CARD]", help="plan a fault (repeatable)"
)
@click.option("--rules", "rule_set", metavar="RULESET", help="settle each round by this rule set")
@click.option(
    "--wagers", metavar="auto|FILE", default="auto", show_default=True, help="what is wagered, with --rules"
)
@click.option("--floor-key", type=click.Path(), help="the floor's key file, to register decks")
@click.pass_obj
def play(
    state: State,
    /,
    rounds: int,
    players: int,
    seed: int | None,
    faults: tuple[str, ...],
    rule_set: str | None,
    wagers: str,
    floor_key: str | None,
    **options: Any,
) -> int:
    """Register and shuffle two decks, deal rounds, and show counts and alternation."""
    book = None if rule_set is None else _read_book(rule_set, wagers, players)
    if book is not None:
        players = len(book.seats)
    settings = [("fault", each) for each in faults]
    if seed is not None:
        settings.insert(0, ("seed", str(seed)))
    with opened(state, Chosen(**options), owner=True, settings=settings) as client:
        raise_role = commands.role_raiser(state, client, options["timeout"], floor_key)
        raise_role(Role.FLOOR)
        about = client.identity
        hello = {
            "device": client.url,
            "serial": about.serial.decode("ascii", "replace"),
            "model": about.model,
            "version": about.version,
            "protocol": [about.major, about.minor],
            "rounds": rounds,
            "players": players,
            "seed": seed,
            "faults": list(faults),
            "ruleset": None if book is None else book.rules.name,
            "ruleset_sha256": None if book is None else book.rules.sha256,
        }
        return play_rounds(
            client, state.output, rounds, players, options["timeout"], hello, raise_role, book
        )


def _read_book(rule_set: str, wagers: str, players: int) -> Book:
    try:
        return Book.read(rule_set, wagers, players)
    except (TableError, NotDealtHere) as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"{wagers} cannot be read: {error.strerror}") from None


for each in (
    commands.devices,
    commands.status,
    commands.watch,
    commands.shuffle,
    commands.table,
    commands.provision,
    rules.rules,
    rules.odds,
    doctor.doctor,
    recording.capture,
    recording.replay,
    recording.bundle,
    journal.journal,
):
    cli.add_command(each)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. Errors are said with advice, never as a traceback."""
    state = State(Output(), Places())
    try:
        result = cli.main(args=arguments, prog_name="sabot", standalone_mode=False, obj=state)
        return result if isinstance(result, int) else OK
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.UsageError as error:
        if state.output.as_json:
            state.output.tell(
                "error", error="UsageError", message=error.format_message(), advice="", exit=USAGE
            )
        else:
            error.show()
        return USAGE
    except click.ClickException as error:
        error.show()
        return FAILED
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SabotError as error:
        return state.output.error(error)


def main() -> None:
    """The ``sabot`` script."""
    sys.exit(run())
