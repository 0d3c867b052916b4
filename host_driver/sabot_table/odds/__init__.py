"""Exact odds of each wager by each paytable, counted with the same code that settles."""

from sabot_table.odds.house_edge import OddsOutcome, WagerOdds, odds

__all__ = ["OddsOutcome", "WagerOdds", "odds"]
