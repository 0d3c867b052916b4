"""``sabot completion``: the script by which a shell completes commands, options and names of tables."""

import click
from click.shell_completion import get_completion_class

from sabot_cli.cli_context import CliContext, json_option
from sabot_cli.help_text import example
from sabot_cli.output import OK

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_SABOT_COMPLETE"


@click.command(epilog=example("sabot completion bash > sabot-completion.bash"))
@json_option
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print what makes your shell complete sabot's commands.

    bash: write it to a file and source that file in ~/.bashrc. zsh: the same in ~/.zshrc. fish: write it to
    ~/.config/fish/completions/sabot.fish. Commands, options and names of tables are completed.

    Exit codes: 0 done, 2 usage.
    """
    state: CliContext = context.obj
    kind = get_completion_class(shell)
    assert kind is not None
    text = kind(context.find_root().command, {}, "sabot", VARIABLE).source()
    if state.output.as_json:
        state.output.tell("completion", shell=shell, script=text)
    else:
        click.echo(text)
    return OK
