"""What all commands share. The driver is loaded only when a command needs it, not for ``sabot --help``."""

import logging
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from sabot_cli.output import Output
    from sabot_driver.user_files import UserFiles

F = TypeVar("F", bound=Callable[..., Any])


class CliContext:
    """Where a command's words go, and where this computer keeps its files."""

    def __init__(self, output: "Output | None" = None, user_files: "UserFiles | None" = None) -> None:
        self.arguments: list[str] = []
        """How the program was called, without its name."""
        if output is not None:
            self.output = output
        if user_files is not None:
            self.user_files = user_files

    @cached_property
    def output(self) -> "Output":
        """Where words go: the terminal, unless the command was given another."""
        from sabot_cli.output import Output

        return Output()

    @cached_property
    def user_files(self) -> "UserFiles":
        """Where keys, journals and tables are kept."""
        from sabot_driver.user_files import UserFiles

        return UserFiles()


def log_to_terminal(verbose: int) -> None:
    """Say what the driver does: nothing, in short (1) or in detail (2)."""
    if verbose:
        level = logging.DEBUG if verbose > 1 else logging.INFO
        logging.basicConfig(level=level, format="%(name)s: %(message)s", force=True)
    else:
        logging.getLogger("sabot").addHandler(logging.NullHandler())


def _verbose(context: click.Context, _: click.Parameter, value: int) -> int:
    if value:
        log_to_terminal(value)
    return value


verbose_option = click.option(
    "-v", "--verbose", count=True, expose_value=False, callback=_verbose,
    help="say what the driver does; twice: in detail",
)  # fmt: skip
"""``-v`` for a command or a group of commands; so it may stand anywhere."""


def json_option(command: F) -> F:
    """``--json`` and ``-v`` for a command."""

    def chosen(context: click.Context, _: click.Parameter, value: bool) -> bool:
        state: CliContext = context.obj
        state.output.as_json = value
        return value

    option = click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=chosen,
        is_eager=True,
        help="one JSON object a line",
    )
    return verbose_option(option(command))
