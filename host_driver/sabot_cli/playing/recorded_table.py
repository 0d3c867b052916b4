"""The procedure of one table with its people and its record. It knows no device."""

import json
import time
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from sabot_cli.output import Output
from sabot_cli.playing.table_record import SavedTable, TableRecord
from sabot_driver.errors import SabotError
from sabot_table.errors import BadSave, RuleViolation
from sabot_table.procedure import Attribution, Order, TableProcedure, TableRole
from sabot_table.procedure.context import TableContext
from sabot_table.procedure.memory import PackState
from sabot_table.ruleset import RuleSet

P = ParamSpec("P")
T = TypeVar("T")
# Orders that are carried out on the device; all others are for people and are only printed.
ON_THE_DEVICE = ("void-round", "remove-pack", "discard")


class GameInPlay(SabotError):
    """A round lies on the layout that this rule set cannot go on with."""

    advice = "Play it to its end under the rule set it was begun with."


def utc_s() -> int:
    """The time for what people do."""
    return int(time.time())


class RecordedTable:
    """One table's procedure with the names of its people; restored as it was when there is a record."""

    def __init__(
        self,
        rules: RuleSet,
        output: Output,
        record: TableRecord,
        names: dict[TableRole, str] | None = None,
        now_s: Callable[[], int] = utc_s,
    ) -> None:
        self.rules = rules
        self.output = output
        self.record = record
        self.now_s = now_s
        self._names = names or {}
        self.at = 0
        """The last event of the journal that the procedure has taken in."""
        self.open_orders: list[Order] = []
        """Orders that whoever leads the table has to carry out on the device."""
        self.resumed = False
        self.procedure = TableProcedure(rules)
        saved = record.load()
        if saved is not None:
            self._restore(saved)

    def _restore(self, saved: SavedTable) -> None:
        try:
            self.procedure = TableProcedure.restore(self.rules, saved.state)
        except BadSave as error:
            if _in_play(saved.state):
                raise GameInPlay(f"a round is in play at this table: {error}") from error
            self.output.tell("new_table", f"[yellow]{error}: the table begins anew[/yellow]", why=str(error))
            return
        self.at, self.resumed = saved.at, True

    # -- what happens ---------------------------------------------------------------------------

    def by(self, role: TableRole) -> Attribution:
        """Somebody in a role, now."""
        return Attribution(self._names.get(role, str(role)), role, self.now_s())

    @property
    def table(self) -> TableContext:
        """The table's state."""
        return self.procedure.table

    def do(
        self,
        action: Callable[Concatenate[Attribution, P], T],
        role: TableRole,
        *args: P.args,
        **details: P.kwargs,
    ) -> T:
        """One action of a person; `RuleViolation` with the clause if the rules forbid it."""
        result = action(self.by(role), *args, **details)
        self._pass_orders()
        return result

    def device(
        self, action: Callable[Concatenate[Attribution, P], object], *args: P.args, **details: P.kwargs
    ) -> None:
        """Something that the device reports. A rule that forbids it is printed: the device did it already."""
        try:
            self.do(action, TableRole.DEVICE, *args, **details)
        except RuleViolation as refused:
            self.tell_refused(refused)

    def tell_refused(self, refused: RuleViolation) -> None:
        """The rules forbid something: it is said with its clause, and nothing has changed."""
        self.output.tell(
            "refused",
            f"[yellow]refused:[/yellow] {refused}",
            what=refused.what,
            clause=refused.clause,
            do=refused.do,
        )

    def _pass_orders(self) -> None:
        for order in self.table.take_orders():
            if order.do in ON_THE_DEVICE:
                self.open_orders.append(order)
            self.output.tell("order", _words(order), do=order.do, details=dict(order.details))

    def take_order(self, do: str) -> Order | None:
        """An order of this kind that is still to be carried out."""
        for order in self.open_orders:
            if order.do == do:
                self.open_orders.remove(order)
                return order
        return None

    def keep(self) -> None:
        """Everything that has happened goes on record, before anything follows from it."""
        log = self.table.take_log()
        saved = SavedTable(self.table.save(), self.at)
        self.record.keep(log, saved)

    # -- what is there --------------------------------------------------------------------------

    def has(self, pack_id: int) -> bool:
        """Whether the procedure knows this pack at the table."""
        return any(each.pack_id == pack_id for each in self.table.packs())

    def pack(self, pack_id: int) -> PackState:
        """A pack that is at the table."""
        return self.table.pack(pack_id)

    @property
    def playing(self) -> int:
        """The pack of the round in play; 0 if there is none."""
        return 0 if self.table.memory.round is None else self.table.memory.round.pack_id


def _in_play(saved: str) -> bool:
    """Whether a saved table that cannot be restored had wagers on the layout."""
    try:
        read = json.loads(saved)
    except ValueError:
        return False
    return isinstance(read, dict) and read.get("round") is not None


def _words(order: Order) -> str | None:
    """What a person is told of an order; nothing where the round itself tells it."""
    said = {name: str(value) for name, value in order.details.items()}
    match order.do:
        case "mark-out-of-order":
            return f"[red]the {said['unit']} is to be covered or marked out of order[/red]"
        case "collect-vigorish":
            return f"vigorish of seat {said['seat']}: {said['cents']} cents"
        case "discard":
            return f"to the discards: {said['cards']} and {said['unseen']} unseen"
        case "announce" if said["text"] == "last hand":
            return "[bold]last hand of this shoe[/bold]"
    return None
