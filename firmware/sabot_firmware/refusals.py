"""Refusals by a rule: the answer ``not_allowed`` with its reason."""

from sabot_protocol.codec import enum_number
from sabot_protocol.errors import Refusal


def forbidden(reason: str) -> Refusal:
    """A refusal by a rule, named as in ``Forbidden``."""
    return Refusal("not_allowed", (enum_number("Forbidden", reason),))


def refuse(reason: str | None) -> None:
    """Raise the refusal that a decision names; None means that nothing speaks against it."""
    if reason is not None:
        raise forbidden(reason)
