"""Commands that are loaded when they are asked for, so that ``sabot --help`` is quick."""

from importlib import import_module
from typing import NamedTuple

import click


class LazyCommand(NamedTuple):
    """A command by the place of its function."""

    module: str
    summary: str
    """Its first sentence, for the list of commands."""

    def load(self, name: str) -> click.Command:
        """The command; its function has the command's name, or the name and ``_`` (``round_``)."""
        module = import_module(self.module)
        found = getattr(module, name.replace("-", "_"), None) or getattr(module, f"{name}_")
        if not isinstance(found, click.Command):
            raise TypeError(f"{self.module}.{name} is no click command but {found!r}")
        return found
