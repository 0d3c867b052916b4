"""What can be wrong with a table's record and with its people, as typed errors.

The message says what happened and where; ``advice`` says what to do.
"""

from sabot_driver.errors import SabotError


class BadRow(SabotError, ValueError):
    """A row that no record takes: its kind is unknown, or its data or its actor do not fit the kind."""

    advice = "This is a defect of the program: nothing was recorded. Report it with the log."
