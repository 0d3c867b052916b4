"""A table without a machine whose people do what is needed."""

from tests.session.acted_table import NOW_S, Register

from sabot_session import acts
from sabot_session.acts import Act
from sabot_session.needs import Need, NeedKind
from sabot_session.outcomes import ActDone
from sabot_session.record import SqliteRecord
from sabot_session.round_history import Round, rounds_of
from sabot_session.session import TableSession
from sabot_simulators.manual_shoe import ManualShoe
from sabot_simulators.simulated_staff import SimulatedStaff
from sabot_table.procedure.vocabulary import DeviceUnit
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import RuleSet

NAMES = {"simulated dealer": "ben", "simulated floor": "anna", "simulated service": "sven"}
MANUAL = DealingMethod.MANUAL_SHOE


class HandTable:
    """A session whose people do what is needed; ben deals, anna is the floor."""

    def __init__(self, rules: RuleSet, wagers: dict[int, dict[str, int]]) -> None:
        self.record = SqliteRecord(None)
        self.session = TableSession(rules, self.record, Register())
        self.staff = SimulatedStaff(self, wagers, method=MANUAL, manual=ManualShoe(rules.cards.decks))
        self.staff.meet_one()
        for unit in DeviceUnit:
            self.staff.give(acts.ReportUnitFailed(unit))

    def needs(self) -> list[Need]:
        """What must happen now."""
        return self.session.needs()

    def act(self, act_id: str, need_id: str | None, seen: int, credential: object, act: Act) -> ActDone:
        """Give an act as the person who has the role of a simulated one."""
        who = NAMES[getattr(credential, "name", "simulated dealer")]
        return self.session.act(act_id, need_id, seen, who, act, NOW_S)

    def until(self, kind: NeedKind) -> Need:
        """Meet every other need until this one is there."""
        for _ in range(200):
            found = next((each for each in self.needs() if each.kind is kind), None)
            if found is not None:
                return found
            assert self.staff.meet_one() is not None, [each.words for each in self.needs()]
        raise AssertionError(f"{kind} does not come: {self.staff.refused[-3:]}")

    def rounds(self) -> dict[int, Round]:
        """The rounds on record."""
        return dict(rounds_of(self.record.rows(0, 10_000)))

    def kinds(self) -> list[str]:
        """Every row's kind."""
        return [each.row.kind for each in self.record.rows(0, 10_000)]
