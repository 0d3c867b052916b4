"""``sabot``: the command line's entrance, and the exit codes."""

import logging
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points, version

import click

from sabot_cli import audit, commands, doctor, flash, journal, keys, play, recording, rng, rules
from sabot_cli.device import State
from sabot_cli.output import FAILED, OK, USAGE, Output
from sabot_driver.errors import SabotError
from sabot_driver.places import Places

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


for each in (
    commands.devices,
    commands.status,
    commands.watch,
    play.play,
    commands.shuffle,
    commands.table,
    commands.provision,
    keys.key,
    keys.evict,
    rules.rules,
    rules.odds,
    doctor.doctor,
    flash.flash,
    recording.capture,
    recording.replay,
    recording.bundle,
    journal.journal,
    audit.audit,
    rng.rng,
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
