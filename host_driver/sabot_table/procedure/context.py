"""What all parts of the procedure share: rules, memory, the two state machines, refusals, orders, the log."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from transitions import Machine

from sabot_table.cards import DECK_CARDS
from sabot_table.errors import RuleViolation
from sabot_table.house_policy import HousePolicy
from sabot_table.procedure.memory import PackState, RoundState, TableMemory
from sabot_table.procedure.vocabulary import Attribution, Order, TableRole
from sabot_table.progressive import Meters
from sabot_table.rule_text_files import STAYS, ActionRule
from sabot_table.rule_texts import DealingMethod, GameKind
from sabot_table.ruleset import RuleSet
from sabot_table.settlement import CardSource
from sabot_table.text_vocabulary import PACK_STATES, TABLE_STATES


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
                    "source": list(row.sources),
                    "dest": None if row.dest == STAYS else row.dest,
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

    def __init__(self, rules: RuleSet, memory: TableMemory, policy: HousePolicy | None = None) -> None:
        self.rules = rules
        self.policy = policy or HousePolicy(name=rules.name)
        self.memory = memory
        self._orders: list[Order] = []
        self._log: list[tuple[Attribution, str]] = []
        self._rows: Mapping[str, ActionRule] = self.policy.rows(rules.fixed.rows)
        self._pack_rows: Mapping[str, ActionRule] = self.policy.rows(rules.fixed.pack_rows)
        self._table = StateMachine(TABLE_STATES, self._rows.values())
        self._pack = StateMachine(PACK_STATES, self._pack_rows.values())

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
        return tuple(self._rows[each] for each in self._table.allowed(self.state))

    def expects_of(self, pack_id: int) -> tuple[ActionRule, ...]:
        """The same for a pack."""
        return tuple(self._pack_rows[each] for each in self._pack.allowed(self.pack(pack_id).state))

    # -- checking and moving --------------------------------------------------------------------

    def has(self, action: str) -> bool:
        """Whether this table's text has an act, of the table or on a pack."""
        return action in self._rows or action in self._pack_rows

    def rule(self, action: str) -> ActionRule | None:
        """The row of an act, of the table or on a pack, as the house allows it; None if there is none."""
        return self._rows.get(action) or self._pack_rows.get(action)

    def clause(self, key: str) -> str:
        """The clause of this table's text for an act or a ground (`text_vocabulary`)."""
        return self.rules.fixed.clause(key)

    def refuse(self, what: str, key: str, do: str) -> RuleViolation:
        """A refusal by the clause that this table's text has for an act or a ground."""
        return RuleViolation(what, self.clause(key), do)

    def check(self, action: str, by: Attribution) -> None:
        """Refuse an act that the text does not have, that its row does not allow now, or not to this role."""
        row = self._row(self._rows, action)
        if action not in self._table.allowed(self.state):
            allowed = ", ".join(self._table.allowed(self.state))
            what = f"{words(action)} while {TABLE_STATES[self.state]}"
            raise RuleViolation(what, row.clause, f"now: {allowed}")
        self._check_role(row, by)

    def check_pack(self, action: str, pack: PackState, by: Attribution) -> None:
        """The same for an act on a pack."""
        row = self._row(self._pack_rows, action)
        if self.state == "closed":
            raise RuleViolation(f"{words(action)} at a closed table", row.clause, "open the table first")
        if action not in self._pack.allowed(pack.state):
            allowed = ", ".join(self._pack.allowed(pack.state)) or "nothing"
            what = f"{words(action)} of pack {pack.pack_id}, which is {PACK_STATES[pack.state]}"
            raise RuleViolation(what, row.clause, f"now: {allowed}")
        self._check_role(row, by)

    def _row(self, rows: Mapping[str, ActionRule], action: str) -> ActionRule:
        row = rows.get(action)
        if row is None:
            text = self.rules.fixed
            do = "do without it; void the round if it is wrong"
            raise RuleViolation(f"{words(action)}, which {text.key} does not have", self.clause(action), do)
        return row

    def _check_role(self, row: ActionRule, by: Attribution) -> None:
        if by.role not in row.who:
            what = f"{words(row.action)} by {by.who} as {by.role}"
            raise RuleViolation(what, row.clause, f"this is for {' or '.join(row.who)}")

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
            raise self.refuse("no round is in play", "open_bets", "open bets first")
        return self.memory.round

    def pack(self, pack_id: int) -> PackState:
        """The pack with this id that is still at the table."""
        for each in self.memory.packs:
            if each.pack_id == pack_id and each.state != "removed":
                return each
        raise self.refuse(f"there is no pack {pack_id}", "packs", "use one that was received here")

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
        """Whether a shuffler is in use at this table: two packs need one.

        A failed shoe ends its use too: packs leave the machine only through the shoe.
        """
        return self.rules.cards.alternating and not self.memory.units

    def hours(self) -> int | None:
        """How long a pack may be used by the method in use now; None: nothing limits it."""
        return self.policy.most_hours(self.method, self.rules.hours(self.method))

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
        return self.memory.save()

    # -- checks that several parts share --------------------------------------------------------

    def check_marked(self) -> None:
        """Refuse another method before a failed unit is covered or marked (MD3 13.E)."""
        for unit, how in self.memory.units.items():
            if how == "failed":
                what = f"the {unit} failed and is not marked"
                do = "cover it or put the out-of-order sign on it first"
                raise self.refuse(what, "mark_out_of_order", do)

    def check_round(self, round_id: int, what: str, key: str = "cards_known") -> None:
        """Refuse what the device reports of another round than the one in play."""
        if round_id != self.round.round_id:
            do = f"round {self.round.round_id} is played"
            raise self.refuse(f"{what} of round {round_id}", key, do)

    def check_source(self, source: CardSource, by: Attribution) -> None:
        """Refuse cards of the exit reader from a person, and typed cards from the device."""
        if (source is CardSource.READER) != (by.role is TableRole.DEVICE):
            what = f"cards from the {source} told by {by.role}"
            raise self.refuse(what, "cards_known", "say who saw them")

    def check_typed(self) -> None:
        """Refuse to change what the exit reader saw."""
        if self.round.source != CardSource.DEALER:
            do = "void the round if it is wrong"
            raise self.refuse("other cards than the reader saw", "cards_known", do)


def words(action: str) -> str:
    """An action's name as people say it."""
    return action.replace("_", " ")
