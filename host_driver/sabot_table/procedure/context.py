"""What all parts of the procedure share: rules, memory, the two state machines, refusals, orders, the log."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from transitions import Machine

from sabot_table.cards import DECK_CARDS
from sabot_table.errors import RuleViolation
from sabot_table.procedure.action_table import (
    PACK_ACTIONS,
    PACK_STATES,
    TABLE_ACTIONS,
    TABLE_STATES,
    ActionRule,
)
from sabot_table.procedure.memory import PackState, RoundState, TableMemory
from sabot_table.procedure.vocabulary import Attribution, DeviceUnit, Order, TableRole
from sabot_table.progressive import Meters
from sabot_table.rule_texts import DealingMethod, GameKind
from sabot_table.ruleset import RuleSet
from sabot_table.settlement import CardSource

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
    """One table: its rules and memory, who may do what when, and what it asks for.

    The parts of the procedure work on it. An action checks everything before it changes anything.
    """

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
        return DECK_CARDS * self.rules.cards.decks

    @property
    def burns(self) -> bool:
        """Whether a shoe serves many rounds. Such a shoe burns cards before its first round."""
        return not self.rules.fixed.every_round

    def turns(self) -> list[int]:
        """Who gets cards: the betting seats clockwise from the dealer's left, then the dealer (0)."""
        return [seat for seat in self.rules.clockwise() if seat in self.round.wagers] + [0]

    def uses_shuffler(self) -> bool:
        """Whether a shuffler is in use at this table: two packs need one."""
        return self.rules.cards.alternating and DeviceUnit.SHUFFLER not in self.memory.units

    def meters(self) -> Meters | None:
        """The progressive meters as they stand; None where Royal 9 is not offered."""
        if self.rules.royal_9 is None:
            return None
        if self.memory.meters is None:
            return Meters.initial(self.rules.royal_9)
        return Meters.restore(self.rules.royal_9, self.memory.meters)

    def number_after(self, round_id: int) -> None:
        """Number the next rounds from here on, because a device takes no number twice. Ignored in a round."""
        if self.memory.round is None:
            self.memory.rounds = max(self.memory.rounds, round_id)

    def save(self) -> str:
        """The table's memory as JSON, for `TableProcedure.restore`."""
        return json.dumps(asdict(self.memory), sort_keys=True)

    # -- checks that several parts share --------------------------------------------------------

    def check_marked(self) -> None:
        """Refuse another method before a failed unit is covered or marked (MD3 13.E)."""
        for unit, how in self.memory.units.items():
            if how == "failed":
                what = f"the {unit} failed and is not marked"
                raise self.refuse(what, "13.E", "5.A", "cover it or put the out-of-order sign on it first")

    def check_round(self, round_id: int, what: str, md3: str = "11.B", mdm: str = "11.A") -> None:
        """Refuse what the device reports of another round than the one in play."""
        if round_id != self.round.round_id:
            do = f"round {self.round.round_id} is played"
            raise self.refuse(f"{what} of round {round_id}", md3, mdm, do)

    def check_source(self, source: CardSource, by: Attribution) -> None:
        """Refuse cards of the exit reader from a person, and typed cards from the device."""
        if (source is CardSource.READER) != (by.role is TableRole.DEVICE):
            what = f"cards from the {source} told by {by.role}"
            raise self.refuse(what, "11.B", "11.A", "say who saw them")

    def check_typed(self) -> None:
        """Refuse to change what the exit reader saw."""
        if self.round.source != CardSource.DEALER:
            do = "void the round if it is wrong"
            raise self.refuse("other cards than the reader saw", "11.B", "11.A", do)

    def only_mini(self, what: str, section: str) -> None:
        """Refuse at a three-card table what only mini baccarat has."""
        if self.three_card:
            raise self.refuse(what, "13.C", section, "this game has none; void the round if it is wrong")


def words(action: str) -> str:
    """An action's name as people say it."""
    return action.replace("_", " ")
