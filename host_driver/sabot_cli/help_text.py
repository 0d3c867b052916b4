"""What a command's help shows: a group's commands in whole sentences, and an example that the suite runs."""

import click

LONGEST_SENTENCE = 200


class Group(click.Group):
    """A group of commands. Its help has the whole first sentence of each; click would cut it with "..."."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, each.get_short_help_str(LONGEST_SENTENCE))
            for name, each in found
            if each is not None and not each.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def example(command: str) -> str:
    """A command's ``epilog``: an example on a line of its own, which click does not wrap."""
    return "\b\nExample:\n  " + command
