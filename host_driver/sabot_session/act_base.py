"""The base of every act: its name, the roles that may give it, and the rule text's row for it."""

from dataclasses import dataclass
from typing import ClassVar

from sabot_table.procedure import TableRole

D, F, S = TableRole.DEALER, TableRole.FLOOR, TableRole.SERVICE


@dataclass(frozen=True, slots=True)
class Act:
    """The base of every act."""

    NAME: ClassVar[str] = ""
    ROLES: ClassVar[tuple[TableRole, ...]] = ()
    ACTION: ClassVar[str] = ""
    """The act of the rule text that it is; the text's row, and the house policy, may allow it to fewer roles.

    "" where no rule text has a row for it.
    """
