"""The evaluator of each wager, by what it depends on: showdown, totals, or the first four cards.

The public functions of a wager module are its evaluators: ``mini.lucky_6`` evaluates the wager ``lucky-6``.
"""

from collections.abc import Callable
from inspect import getmembers, isfunction
from types import ModuleType
from typing import Any

from sabot_table.rule_texts import GameKind
from sabot_table.wagers import first_four, mini, three_card

Evaluator = Callable[[Any], tuple[str, ...]]


def _wagers_in(module: ModuleType) -> dict[str, Evaluator]:
    return {
        name.replace("_", "-"): function
        for name, function in getmembers(module, isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    }


SHOWDOWN = _wagers_in(three_card)
TOTALS = _wagers_in(mini)
FIRST_FOUR = _wagers_in(first_four)
BY_GAME: dict[GameKind, dict[str, Evaluator]] = {
    GameKind.THREE_CARD: SHOWDOWN,
    GameKind.MINI: TOTALS | FIRST_FOUR,
}
