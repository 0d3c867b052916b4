"""``sabot rules`` and ``sabot odds``: the rule sets, their clauses, and what every wager is worth."""

import json
from importlib import resources
from typing import Any

import click
from rich.markup import escape
from rich.table import Table as Shown

from sabot_cli.at_table.lines_printer import fold_for
from sabot_cli.cli_context import CliContext, json_option
from sabot_cli.help_text import example
from sabot_cli.output import OK
from sabot_table import odds as worth
from sabot_table import ruleset
from sabot_table.errors import TableError

pass_state = click.make_pass_decorator(CliContext)


@click.command(epilog=example("sabot rules --clauses md-three-card-baccarat"))
@json_option
@click.argument("name", metavar="[RULESET]", required=False)
@click.option("--clauses", is_flag=True, help="the regulators' clauses and the tests that prove each")
@pass_state
def rules(state: CliContext, clauses: bool, name: str | None) -> int:
    """List the rule sets, or the clauses behind them.

    With a rule set's name: only that one, or only the clauses of its rule text. The tests that prove a clause
    are named; the last line is a command that runs them, in a checkout of the sources.

    Exit codes: 0 done, 2 there is no such rule set.
    """
    output = state.output
    try:
        chosen = None if name is None else ruleset.load(name)
    except TableError as error:
        raise click.UsageError(str(error)) from None
    if clauses:
        tests: list[str] = []
        for each in _clauses():
            if chosen is None or each["clause"].split()[0] == chosen.text:
                tests += each["tests"]
                text = fold_for(output, f"{each['clause']}  ({each['duty']})  {each['says']}")
                shown = _by_file(each["tests"]) if output.console.is_terminal else each["tests"]
                output.tell("clause", escape("\n    ".join([text, *shown])), **each)
        files = " ".join(dict.fromkeys(test.partition("::")[0] for test in tests))
        output.tell("run", f"to run them: .venv/bin/python -m pytest {files}", files=files.split())
        return OK
    for name in ruleset.names() if chosen is None else [chosen.name]:
        found = ruleset.load(name)
        output.tell(
            "ruleset",
            fold_for(output, f"{name:<40} {found.title}"),
            ruleset=name,
            title=found.title,
            ruleset_sha256=found.sha256,
            text=found.text,
            decks=found.cards.decks,
            wagers=list(found.offered),
        )
    return OK


@click.command(epilog=example("sabot odds md-three-card-baccarat"))
@json_option
@click.argument("name", metavar="RULESET")
@click.option("--decks", type=int, help="decks in the shoe; as the rule set says if not given")
@click.option("--wager", metavar="NAME", help="this wager only")
@pass_state
def odds(state: CliContext, name: str, decks: int | None, wager: str | None) -> int:
    """Count exactly what every wager of a rule set is worth.

    Exit codes: 0 done, 2 there is no such rule set or wager.
    """
    try:
        counted = worth.odds(ruleset.load(name), decks, wager)
    except TableError as error:
        raise click.UsageError(str(error)) from None
    shown = Shown("wager", "paytable", "house edge", "decks", title=name)
    for each in counted:
        said = {key: value for key, value in each.to_json().items() if key not in ("v", "event")}
        state.output.tell("odds", None, **said)
        shown.add_row(each.wager, each.paytable or "", f"{float(each.house_edge):.4%}", str(each.decks))
    if not state.output.as_json:
        state.output.console.print(shown)
    return OK


def _by_file(tests: list[str]) -> list[str]:
    """The tests of a clause, by file: both names in one line are wider than a terminal."""
    files: dict[str, list[str]] = {}
    for test in tests:
        file, _, name = test.partition("::")
        files.setdefault(file, []).append(name)
    return [
        line for file, names in files.items() for line in (file, *(f"  {name}" for name in names if name))
    ]


def _clauses() -> list[dict[str, Any]]:
    """Every clause with the tests that prove it, as the suite has them on record."""
    text = resources.files("sabot_table").joinpath("clauses.json").read_text(encoding="utf-8")
    listed: list[dict[str, Any]] = json.loads(text)
    return listed
