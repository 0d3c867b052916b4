"""``sabot``: the command line's entrance, and the exit codes.

Each command is loaded when it is asked for. So ``sabot --help`` needs neither the driver nor the rules.
"""

import logging
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points

import click

from sabot_cli.lazy import Lazy
from sabot_cli.state import State

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
ADDED = "sabot.commands"
"""The group of entry points by which an installed package adds a command."""

COMMANDS = {
    "audit": Lazy("sabot_cli.audit", "Prove shuffles after their reveal."),
    "bundle": Lazy("sabot_cli.recording", "Gather what support needs in one archive."),
    "capture": Lazy("sabot_cli.recording", "Write what a device says to a file for Wireshark."),
    "devices": Lazy("sabot_cli.commands", "Find devices, and ask each who it is."),
    "doctor": Lazy("sabot_cli.doctor", "Look for what could be wrong on this computer."),
    "evict": Lazy("sabot_cli.keys", "Take the device from the host that owns it."),
    "flash": Lazy("sabot_cli.flash", "Put an application onto a board (RP2040)."),
    "journal": Lazy("sabot_cli.journal", "What devices have told this computer, on disk."),
    "key": Lazy("sabot_cli.keys", "Whose keys a device has, and changing them."),
    "odds": Lazy("sabot_cli.rules", "Count exactly what every wager of a rule set is worth."),
    "play": Lazy("sabot_cli.play", "Open a table and play rounds by its rules."),
    "provision": Lazy("sabot_cli.commands", "Give a new device its key, and keep it here."),
    "replay": Lazy("sabot_cli.recording", "Show a capture, frame by frame; keys are hidden."),
    "rng": Lazy("sabot_cli.rng", "The device's randomness, for a laboratory."),
    "rules": Lazy("sabot_cli.rules", "List the rule sets, or the clauses behind them."),
    "shuffle": Lazy("sabot_cli.commands", "Have a registered deck shuffled, and wait for its count."),
    "status": Lazy("sabot_cli.commands", "How a device is at this moment, as an observer."),
    "table": Lazy("sabot_cli.commands", "Names for the tables of this computer."),
    "watch": Lazy("sabot_cli.commands", "Show events as they come, as an observer."),
}


class Commands(click.Group):
    """Our commands, and those that installed packages add."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command by name."""
        return sorted({*COMMANDS, *(entry.name for entry in entry_points(group=ADDED))})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command, loaded now; None if there is none of this name."""
        found = self._declared(cmd_name)
        return found.load(cmd_name) if isinstance(found, Lazy) else found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands; those that are lazy are not loaded for it."""
        rows = []
        for name in self.list_commands(ctx):
            found = self._declared(name)
            if found is not None:
                rows.append((name, found.summary if isinstance(found, Lazy) else found.get_short_help_str()))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _declared(self, name: str) -> Lazy | click.Command | None:
        if name in COMMANDS:
            return COMMANDS[name]
        for entry in entry_points(group=ADDED, name=name):
            loaded = entry.load()
            if isinstance(loaded, (Lazy, click.Command)):
                return loaded
        return None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sabot", prog_name="sabot")
@click.option("-v", "--verbose", count=True, help="say what the driver does; twice: in detail")
def cli(verbose: int) -> None:
    """Drive a card shuffler and dealing shoe, or an emulated one (--device sim://)."""
    if verbose:
        logging.basicConfig(
            level=logging.DEBUG if verbose > 1 else logging.INFO, format="%(name)s: %(message)s"
        )
    else:
        logging.getLogger("sabot").addHandler(logging.NullHandler())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. Errors are said with advice, never as a traceback."""
    state = State()
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
    except Exception as error:
        from sabot_driver.errors import SabotError

        if not isinstance(error, SabotError):
            raise
        return state.output.error(error)


def main() -> None:
    """The ``sabot`` script."""
    sys.exit(run())
