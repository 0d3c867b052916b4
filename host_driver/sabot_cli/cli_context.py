"""What all commands share. The driver is loaded only when a command needs it, not for ``sabot --help``."""

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


def json_option(command: F) -> F:
    """``--json`` for a command."""

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
    return option(command)
