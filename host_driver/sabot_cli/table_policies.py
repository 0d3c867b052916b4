"""The house policy of a table: kept with the table's name, and in force whoever runs the table.

It is found by the device, so that a table's device named by its URL goes by the table's policy too.
"""

from pathlib import Path

from sabot_cli.cli_context import CliContext
from sabot_driver.errors import SabotError
from sabot_driver.user_files import TableEntry
from sabot_table.errors import HousePolicyError
from sabot_table.house_policy import HousePolicy, load_policy, parse_policy
from sabot_table.ruleset import RuleSet


class PolicyUnfit(SabotError):
    """A house policy that cannot be read, is laxer than the rule text, or is of another game."""

    advice = "Correct the file; docs/table.md shows one. The table is not run without it."


def policy_of(state: CliContext, entry: TableEntry | None, rules: RuleSet) -> HousePolicy | None:
    """The policy that a table goes by, None if it has none.

    `PolicyGone` if its text is not there, `PolicyUnfit` if it does not fit the rule set.
    """
    text = None if entry is None else state.user_files.policy(entry)
    if entry is None or text is None:
        return None
    try:
        return parse_policy(text, rules, f"house policy of {entry.name}")
    except HousePolicyError as error:
        raise PolicyUnfit(str(error)) from error


def keep_policy(state: CliContext, path: Path, rules: RuleSet) -> str:
    """Check a policy against the rule set of its table and keep it; its name for `TableEntry`."""
    try:
        load_policy(path, rules)
    except HousePolicyError as error:
        raise PolicyUnfit(str(error)) from error
    return state.user_files.keep_policy(path.read_text(encoding="utf-8"))
