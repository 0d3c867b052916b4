"""Money: integer cents. What a line pays on a stake, and the vigorish on it."""

from fractions import Fraction
from typing import TYPE_CHECKING

from sabot_table.errors import WagerRefused
from sabot_table.paytables import Paytable

if TYPE_CHECKING:
    from sabot_table.ruleset import RuleSet

VIGORISH = Fraction(5, 100)  # of the amount won (MD3 12.A, MDM 12.C)
ROUND_UP_TO_CENTS = 25  # (MD3 12.A(1), MDM 12.D(1))


def net_odds(paytable: Paytable, line: str) -> Fraction:
    """What a line brings to 1, after unrounded vigorish."""
    odds = paytable.odds(line)
    return odds - odds * VIGORISH if line in paytable.vigorish else odds


def payout(rules: "RuleSet", paytable: Paytable, line: str, stake_cents: int, seat: int) -> tuple[int, int]:
    """(what is won besides the stake, the vigorish on it); a stake that would split a cent is refused."""
    won = paytable.odds(line) * stake_cents
    vigorish = won * VIGORISH if line in paytable.vigorish else Fraction(0)
    if rules.vigorish.rounding == "up25":
        vigorish = Fraction(-(-vigorish // ROUND_UP_TO_CENTS) * ROUND_UP_TO_CENTS)
    for amount in (won, vigorish):
        if amount.denominator != 1:
            step = (amount / stake_cents).denominator
            raise WagerRefused(
                seat,
                paytable.wager,
                f"{stake_cents} cents bring {float(amount)} cents",
                paytable.clause,
                f"stake a multiple of {step} cents",
            )
    return int(won), int(vigorish)
