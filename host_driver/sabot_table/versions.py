"""Versions of a device's components, compared as numbers part by part (WA3 versions)."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING

from sabot_table.errors import RuleViolation, TableError

if TYPE_CHECKING:
    from sabot_table.ruleset import RuleSet

CLAUSE = "WA3 versions"


class NotAVersion(TableError, ValueError):
    """A text that is no version."""


def version(text: str) -> tuple[int, ...]:
    """The numbers of a version: "3.3.027" and "v3.3.27" are the same."""
    parts = text.strip().removeprefix("v").split(".")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise NotAVersion(f"'{text}' is not a version")
    return tuple(int(part) for part in parts)


def at_least(text: str, least: str) -> bool:
    """Whether one version is the other or higher; a part that is not there counts as 0."""
    for ours, wanted in zip_longest(version(text), version(least), fillvalue=0):
        if ours != wanted:
            return ours > wanted
    return True


def check_components(rules: "RuleSet", model: str, versions: Mapping[str, str]) -> None:
    """Refuse a device whose model is not approved or not listed, or whose components are too old.

    A rule set without approved models and minimums takes any device.
    """
    approved = rules.dealing.approved
    if approved and model not in approved:
        what = f"the model '{model}' is not approved"
        raise RuleViolation(what, rules.fixed.clause("approval"), f"use one of {', '.join(approved)}")
    if not rules.components:
        return
    if model not in rules.components:
        listed = ", ".join(rules.components)
        do = f"use one of {listed}, or list it in the rule set"
        raise RuleViolation(f"the model '{model}' is not listed", CLAUSE, do)
    for component, least in rules.components[model].items():
        have = versions.get(component)
        if have is None:
            raise RuleViolation(
                f"{model} tells no version of {component}", CLAUSE, f"it must be {least} or higher"
            )
        if not _readable(have) or not at_least(have, least):
            raise RuleViolation(
                f"{component} of {model} is {have}", CLAUSE, f"update it to {least} or higher"
            )


def _readable(text: str) -> bool:
    try:
        version(text)
    except NotAVersion:
        return False
    return True
