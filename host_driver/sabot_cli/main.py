"""``sabot``: the command line's entrance, and the exit codes.

Each command is loaded when it is asked for. So ``sabot --help`` needs neither the driver nor the rules.
"""

import shutil
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import entry_points

import click

from sabot_cli.cli_context import CliContext, log_to_terminal
from sabot_cli.lazy_command import LazyCommand
from sabot_evidence.core_dumps import forbid_core_dumps

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
ADDED = "sabot.commands"
"""The group of entry points by which an installed package adds a command."""

COMMANDS = {
    "audit": LazyCommand("sabot_cli.audit_command", "Prove shuffles after their reveal."),
    "bundle": LazyCommand("sabot_cli.capture_commands", "Gather what support needs in one archive."),
    "capture": LazyCommand("sabot_cli.capture_commands", "Write what a device says to a file for Wireshark."),
    "completion": LazyCommand(
        "sabot_cli.completion_command", "Print what makes your shell complete sabot's commands."
    ),
    "deck": LazyCommand(
        "sabot_cli.table_commands", "The decks of a table: from their arrival to their destination."
    ),
    "devices": LazyCommand("sabot_cli.device_commands", "Find devices, and ask each who it is."),
    "doctor": LazyCommand("sabot_cli.doctor", "Look for what could be wrong on this computer."),
    "evidence": LazyCommand(
        "sabot_cli.evidence_commands", "Verify, export, show and countersign what tables have written."
    ),
    "evict": LazyCommand("sabot_cli.key_commands", "Take the device from the host that owns it."),
    "fault": LazyCommand(
        "sabot_cli.table_commands", "Why the machine stopped, what to do, and saying that it is done."
    ),
    "flash": LazyCommand("sabot_cli.flash_command", "Put an application onto a board (RP2040)."),
    "floor": LazyCommand("sabot_cli.floor_commands", "Many tables of a site: their archive, keys, export."),
    "house": LazyCommand("sabot_cli.house_commands", "Certificates of people, signed by the house."),
    "journal": LazyCommand("sabot_cli.journal_commands", "What devices have told this computer, on disk."),
    "key": LazyCommand("sabot_cli.key_commands", "Whose keys a device has, and changing them."),
    "lab-package": LazyCommand(
        "sabot_cli.lab_commands", "What a test laboratory needs of a build, in one signed archive."
    ),
    "odds": LazyCommand("sabot_cli.rules_commands", "Count exactly what every wager of a rule set is worth."),
    "people": LazyCommand("sabot_cli.people_commands", "The people who may act at tables of this computer."),
    "play": LazyCommand(
        "sabot_cli.play_command", "Run a table: its needs in one line, acts by key, every round on record."
    ),
    "provision": LazyCommand("sabot_cli.provision_command", "Give a new device its key, and keep it here."),
    "replay": LazyCommand("sabot_cli.capture_commands", "Show a capture, frame by frame; keys are hidden."),
    "rng": LazyCommand("sabot_cli.rng_commands", "The device's randomness, for a laboratory."),
    "round": LazyCommand(
        "sabot_cli.round_commands",
        "Show a round, or act on it: hold, release, dispute, correct, countersign.",
    ),
    "rounds": LazyCommand("sabot_cli.round_commands", "List the rounds of a table's record."),
    "rules": LazyCommand("sabot_cli.rules_commands", "List the rule sets, or the clauses behind them."),
    "serve": LazyCommand("sabot_cli.serve_command", "Serve a table's pages to browsers."),
    "service": LazyCommand(
        "sabot_cli.service.commands", "What a technician does: test, look, move, calibrate."
    ),
    "shuffle": LazyCommand(
        "sabot_cli.device_commands", "Have a registered deck shuffled, and wait for its count."
    ),
    "status": LazyCommand("sabot_cli.device_commands", "How a device is at this moment, as an observer."),
    "table": LazyCommand("sabot_cli.table_commands", "Names for the tables of this computer."),
    "watch": LazyCommand("sabot_cli.device_commands", "Show events as they come, as an observer."),
}


class Commands(click.Group):
    """Our commands, and those that installed packages add."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command by name."""
        return sorted({*COMMANDS, *(entry.name for entry in entry_points(group=ADDED))})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command, loaded now; None if there is none of this name."""
        found = self._declared(cmd_name)
        return found.load(cmd_name) if isinstance(found, LazyCommand) else found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name; an unknown name is refused with the names nearest to it."""
        name = args[0]
        if self._declared(name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            near = get_close_matches(name, self.list_commands(ctx))
            hint = f"Did you mean {' or '.join(near)}?" if near else "'sabot --help' lists the commands."
            ctx.fail(f"No such command '{name}'. {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands; those that are lazy are not loaded for it."""
        rows = []
        for name in self.list_commands(ctx):
            found = self._declared(name)
            if found is not None:
                rows.append(
                    (name, found.summary if isinstance(found, LazyCommand) else found.get_short_help_str())
                )
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _declared(self, name: str) -> LazyCommand | click.Command | None:
        if name in COMMANDS:
            return COMMANDS[name]
        for entry in entry_points(group=ADDED, name=name):
            loaded = entry.load()
            if isinstance(loaded, (LazyCommand, click.Command)):
                return loaded
        return None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sabot", prog_name="sabot")
@click.option("-v", "--verbose", count=True, help="say what the driver does; twice: in detail")
def cli(verbose: int) -> None:
    """Drive a card shuffler and dealing shoe, or an emulated one (--device sim://)."""
    log_to_terminal(verbose)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. Errors are said with advice, never as a traceback."""
    state = CliContext()
    state.arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        result = cli.main(args=arguments, prog_name="sabot", standalone_mode=False, obj=state)
        return result if isinstance(result, int) else OK
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:  # its message is the whole help
        click.echo(error.format_message(), err=True)
        return USAGE
    except click.UsageError as error:
        told = _in_our_words(error)
        if state.output.as_json:
            message = told.format_message()
            state.output.tell("error", error="UsageError", message=message, advice="", exit=USAGE)
        else:
            _show_usage(told)
        return USAGE
    except click.ClickException as error:
        error.show()
        return FAILED
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:
        from sabot_driver.errors import SabotError

        if isinstance(error, SabotError):
            return state.output.error(error)
        if isinstance(error, OSError) and error.filename is not None:
            from sabot_cli.written_files import file_error

            return state.output.error(file_error(error))
        raise


def _in_our_words(error: click.UsageError) -> click.UsageError:
    """The error. A number's type is not click's; an argument too many may be a table's name."""
    told = error.format_message()
    for clicks, ours in (("a valid integer range", "a whole number"), ("a valid float range", "a number")):
        if clicks in told:
            return click.UsageError(told.replace(clicks, ours), error.ctx)
    options = [] if error.ctx is None else [each for it in error.ctx.command.params for each in it.opts]
    if error.message.startswith("Got unexpected extra argument") and "--table" in options:
        return click.UsageError(f"{error.message}. A table is named with --table NAME.", error.ctx)
    return error


def _show_usage(error: click.UsageError) -> None:
    """Say a usage error; at a terminal lines end between words."""
    if not sys.stderr.isatty() or error.ctx is None:
        error.show()
        return
    from sabot_cli.at_table.lines_printer import fold

    width = shutil.get_terminal_size().columns
    lines = [error.ctx.get_usage(), f"Try '{error.ctx.command_path} --help' for help.", ""]
    for line in f"Error: {error.format_message()}".split("\n"):
        lines += fold(line, width)
    click.echo("\n".join(lines), err=True)


def main() -> None:
    """The ``sabot`` script."""
    forbid_core_dumps()
    sys.exit(run())
