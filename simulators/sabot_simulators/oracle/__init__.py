"""Judges every claim of a device by the identity of the cards it is about."""

from sabot_simulators.oracle.claims import UNSEEN, Excuse, WrongClaim
from sabot_simulators.oracle.judge import Oracle

__all__ = ["UNSEEN", "Excuse", "Oracle", "WrongClaim"]
