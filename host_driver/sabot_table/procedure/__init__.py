"""The procedure of a table: what may happen next, who may do it, and what the rules refuse."""

from sabot_table.procedure.table import TableProcedure
from sabot_table.procedure.vocabulary import Attribution, Order, TableRole

__all__ = ["Attribution", "Order", "TableProcedure", "TableRole"]
