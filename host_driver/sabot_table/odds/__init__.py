"""Exact odds: what each wager and each paytable is worth, counted with the code that settles."""

from sabot_table.odds.house_edge import OddsOutcome, WagerOdds, odds

__all__ = ["OddsOutcome", "WagerOdds", "odds"]
