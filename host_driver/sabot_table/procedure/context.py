"""What every part of the procedure stands on: memory, the two machines, refusals and orders."""

from collections.abc import Callable, Iterable
from typing import Any

from transitions import Machine

from sabot_table.errors import RuleViolation
from sabot_table.procedure.action_table import (
    PACK_ACTIONS,
    PACK_STATES,
    TABLE_ACTIONS,
    TABLE_STATES,
    ActionRule,
)
from sabot_table.procedure.memory import PackState, RoundState, TableMemory
from sabot_table.procedure.vocabulary import Attribution, Order
from sabot_table.rule_texts import DealingMethod, GameKind
from sabot_table.ruleset import RuleSet

TABLE_ROWS = {row.action: row for row in TABLE_ACTIONS}
PACK_ROWS = {row.action: row for row in PACK_ACTIONS}


class StateMachine:
    """A state, moved by a `transitions` machine that is made of rows."""

    state: str
    trigger: Callable[[str], bool]

    def __init__(self, states: Iterable[str], rows: Iterable[ActionRule]) -> None:
        known = list(states)
        self._machine = Machine(
            model=self,
            states=known,
            initial=known[0],
            auto_transitions=False,
            transitions=[
                {
                    "trigger": row.action,
                    "source": row.sources.split(),
                    "dest": None if row.dest == "=" else row.dest,
                }
                for row in rows
            ],
        )
        self._allowed = {each: list(self._machine.get_triggers(each)) for each in known}

    def allowed(self, state: str) -> list[str]:
        """What may happen in a state, in the order of the rows."""
        return self._allowed[state]

    def after(self, state: str, action: str) -> str:
        """Where an action leads from a state."""
        self._machine.set_state(state)
        self.trigger(action)
        return self.state


class TableContext:
    """Memory, and who may do what when. Every action checks all it needs before it changes anything."""

    def __init__(self, rules: RuleSet, memory: TableMemory) -> None:
        self.rules = rules
        self.memory = memory
        self._orders: list[Order] = []
        self._log: list[tuple[Attribution, str]] = []
        self._table = StateMachine(TABLE_STATES, TABLE_ACTIONS)
        self._pack = StateMachine(PACK_STATES, PACK_ACTIONS)

    # -- what others see ------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """Where the table is, one of ``TABLE_STATES``."""
        return self.memory.state

    @property
    def method(self) -> DealingMethod:
        """How cards are dealt now."""
        return DealingMethod(self.memory.method)

    @property
    def three_card(self) -> bool:
        """Whether it is the three-card game."""
        return self.rules.game is GameKind.THREE_CARD

    def take_orders(self) -> tuple[Order, ...]:
        """What must be done since the last call."""
        orders, self._orders = tuple(self._orders), []
        return orders

    def take_log(self) -> tuple[tuple[Attribution, str], ...]:
        """Who did what since the last call."""
        log, self._log = tuple(self._log), []
        return log

    def expects(self) -> tuple[ActionRule, ...]:
        """What may happen at the table now, by the table of states; guards may still refuse it."""
        return tuple(TABLE_ROWS[each] for each in self._table.allowed(self.state))

    def expects_of(self, pack_id: int) -> tuple[ActionRule, ...]:
        """The same for a pack."""
        return tuple(PACK_ROWS[each] for each in self._pack.allowed(self.pack(pack_id).state))

    # -- checking and moving --------------------------------------------------------------------

    def clause(self, md3: str, mdm: str) -> str:
        """The clause of this table's text."""
        return {
            "MD3": f"MD3 {md3}", "MDM": f"MDM {mdm}", "WA3": self.rules.fixed.irregularity_clause,
            "BAC": self.rules.fixed.irregularity_clause,
        }[self.rules.text]  # fmt: skip

    def refuse(self, what: str, md3: str, mdm: str, do: str) -> RuleViolation:
        """A refusal by this table's text."""
        return RuleViolation(what, self.clause(md3, mdm), do)

    def check(self, action: str, by: Attribution) -> None:
        """Refuse an action whose row does not allow it now, or not to this role."""
        row = TABLE_ROWS[action]
        if action not in self._table.allowed(self.state):
            allowed = ", ".join(self._table.allowed(self.state))
            what = f"{words(action)} while {TABLE_STATES[self.state]}"
            raise self.refuse(what, row.md3, row.mdm, f"now: {allowed}")
        self._check_role(row, by)

    def check_pack(self, action: str, pack: PackState, by: Attribution) -> None:
        """The same for an action on a pack."""
        row = PACK_ROWS[action]
        if self.state == "closed":
            raise self.refuse(f"{words(action)} at a closed table", row.md3, row.mdm, "open the table first")
        if action not in self._pack.allowed(pack.state):
            allowed = ", ".join(self._pack.allowed(pack.state)) or "nothing"
            what = f"{words(action)} of pack {pack.pack_id}, which is {PACK_STATES[pack.state]}"
            raise self.refuse(what, row.md3, row.mdm, f"now: {allowed}")
        self._check_role(row, by)

    def _check_role(self, row: ActionRule, by: Attribution) -> None:
        if by.role not in row.who:
            wanted = " or ".join(row.who)
            what = f"{words(row.action)} by {by.who} as {by.role}"
            raise self.refuse(what, row.md3, row.mdm, f"this is for {wanted}")

    def move(self, action: str, by: Attribution) -> None:
        """Go where the row leads, and write down who did it."""
        self.memory.state = self._table.after(self.memory.state, action)
        self.note(action, by)

    def move_pack(self, action: str, pack: PackState, by: Attribution) -> None:
        """The same for a pack."""
        pack.state = self._pack.after(pack.state, action)
        self.note(f"{action} {pack.pack_id}", by)

    def note(self, action: str, by: Attribution) -> None:
        """Write down who did what, and the newest time anyone told."""
        self.memory.newest_s = max(self.memory.newest_s, by.at_s)
        self._log.append((by, action))

    def order(self, do: str, **details: Any) -> None:
        """Ask for something."""
        self._orders.append(Order(do, details))

    # -- what is there --------------------------------------------------------------------------

    @property
    def round(self) -> RoundState:
        """The round in play."""
        if self.memory.round is None:
            raise self.refuse("no round is in play", "7.C", "8.B", "open bets first")
        return self.memory.round

    def pack(self, pack_id: int) -> PackState:
        """The pack with this id that is still at the table."""
        for each in self.memory.packs:
            if each.pack_id == pack_id and each.state != "removed":
                return each
        raise self.refuse(f"there is no pack {pack_id}", "3.A", "3.A", "use one that was received here")

    def packs(self) -> list[PackState]:
        """Those still at the table."""
        return [each for each in self.memory.packs if each.state != "removed"]

    @property
    def pack_cards(self) -> int:
        """Cards in a pack."""
        return 52 * self.rules.cards.decks


def words(action: str) -> str:
    """An action's name as people say it."""
    return action.replace("_", " ")
