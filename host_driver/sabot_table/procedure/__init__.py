"""The procedure of a table: what may happen next, who may do it, and what the rules refuse."""

from sabot_table.procedure.events import By, Order, Role
from sabot_table.procedure.table import Table

__all__ = ["By", "Order", "Role", "Table"]
