"""The evaluator of each wager, by what it depends on: showdown, totals, or the first four cards."""

from collections.abc import Callable
from typing import Any

from sabot_table.rule_texts import GameKind
from sabot_table.wagers import first_four, mini, three_card

Evaluator = Callable[[Any], tuple[str, ...]]

SHOWDOWN: dict[str, Evaluator] = {
    "ante": three_card.ante,
    "three-kings": three_card.three_kings,
    "tie": three_card.tie,
    "dragon-bonus": three_card.dragon_bonus,
}
TOTALS: dict[str, Evaluator] = {
    "banker": mini.banker,
    "player": mini.player,
    "tie": mini.tie,
    "dragon-bonus-player": mini.dragon_bonus_player,
    "dragon-bonus-banker": mini.dragon_bonus_banker,
    "dragon-7": mini.dragon_7,
    "panda-8": mini.panda_8,
    "fortune-7": mini.fortune_7,
    "one-up": mini.one_up,
    "golden-8": mini.golden_8,
    "heavenly-9": mini.heavenly_9,
    "blazing-7s": mini.blazing_7s,
    "cover-all": mini.cover_all,
    "lucky-6": mini.lucky_6,
}
FIRST_FOUR: dict[str, Evaluator] = {
    "any-pair-player": first_four.any_pair_player,
    "any-pair-banker": first_four.any_pair_banker,
    "lucky-nines": first_four.lucky_nines,
    "jackpot": first_four.jackpot,
}
BY_GAME: dict[GameKind, dict[str, Evaluator]] = {
    GameKind.THREE_CARD: SHOWDOWN,
    GameKind.MINI: TOTALS | FIRST_FOUR,
}
