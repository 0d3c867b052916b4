"""Acts of people: checked, committed, done once; refused with the reason, and then nothing has changed."""

from collections.abc import Sequence

import pytest
from tests.session.acted_table import NOW_S, Register

from sabot_session import acts
from sabot_session.acts import Act
from sabot_session.equipment_acts import MarkOutOfOrder, ReportUnitFailed
from sabot_session.errors import RecordFull
from sabot_session.needs import NeedKind
from sabot_session.outcomes import ActRefused, NeedGone, NotYours, StateChanged
from sabot_session.record import SqliteRecord
from sabot_session.rows import Authentication, Row, SavedSession
from sabot_session.session import TableSession
from sabot_table.errors import RuleViolation
from sabot_table.house_policy import parse_policy
from sabot_table.procedure import TableRole
from sabot_table.procedure.vocabulary import DeviceUnit
from sabot_table.ruleset import load
from sabot_table.text_vocabulary import EVERY_ACT


class FullRecord(SqliteRecord):
    """A record whose disk is full at the next commit."""

    full = False

    def commit(self, rows: Sequence[Row], saved: SavedSession) -> int:
        """As usual, or `RecordFull`."""
        if self.full:
            raise RecordFull("the disk is full")
        return super().commit(rows, saved)


def session_of(record: SqliteRecord) -> TableSession:
    session = TableSession(load("md-three-card-baccarat"), record, Register())
    session.tick(NOW_S)
    return session


def give(session: TableSession, act: Act, by: object, act_id: str = "") -> None:
    """An act that meets a need, as a person gives it who sees the newest state."""
    need = next(each for each in session.needs() if act.NAME in each.acts)
    session.act(act_id or f"{act.NAME} {session.cursor}", need.id, session.cursor, by, act, NOW_S)


def test_an_act_is_recorded_with_its_person_role_and_authentication() -> None:
    record = SqliteRecord(None)
    give(session_of(record), acts.OpenTable(), "anna")
    (opened,) = record.rows()
    assert opened.row.actor.person == "anna"
    assert (opened.row.actor.role, opened.row.actor.how) == (TableRole.FLOOR, Authentication.BADGE_AND_PIN)
    assert (opened.row.kind, opened.row.clause, opened.row.at_s) == ("open_table", "MD3 4.A", NOW_S)


def test_a_repeated_act_returns_its_row_and_does_nothing() -> None:
    record = SqliteRecord(None)
    session = session_of(record)
    give(session, acts.OpenTable(), "anna", "one")
    again = session.act("one", "open_table-1", 0, "anna", acts.OpenTable(), NOW_S)
    assert (again.row, again.repeated, len(record.rows())) == (1, True, 1)


def test_a_need_that_is_gone_is_refused_with_who_met_it() -> None:
    session = session_of(SqliteRecord(None))
    need = session.needs()[0]
    give(session, acts.OpenTable(), "anna")
    with pytest.raises(NeedGone) as refused:
        session.act("two", need.id, session.cursor, "cleo", acts.OpenTable(), NOW_S)
    assert refused.value.by == "anna"


def test_a_need_that_ended_by_itself_was_not_done_before() -> None:
    """No act met it in this run: the machine did, or what asked for it is over."""
    session = session_of(SqliteRecord(None))
    with pytest.raises(NeedGone, match=r"open_table: this is no longer needed$") as refused:
        session.act("two", "gone-1", session.cursor, "anna", acts.OpenTable(), NOW_S)
    assert refused.value.by == ""


def test_an_act_on_an_older_form_of_a_need_is_refused() -> None:
    session = session_of(SqliteRecord(None))
    give(session, acts.OpenTable(), "anna")
    need = next(each for each in session.needs() if each.kind is NeedKind.SIGN_IN)
    with pytest.raises(StateChanged):
        session.act("two", need.id, need.seen - 1, "ben", acts.SignIn(), NOW_S)


@pytest.mark.parametrize("by", ["ben", None], ids=["dealer", "nobody signed in"])
def test_an_act_of_another_role_is_refused(by: str | None) -> None:
    record = SqliteRecord(None)
    session = session_of(record)
    with pytest.raises(NotYours) as refused:
        give(session, acts.OpenTable(), by)
    assert not record.rows()
    words = (
        "open table: this is an act of floor; ben is dealer" if by else "this is for floor, with a credential"
    )
    assert words in str(refused.value)


@pytest.mark.rule("MD3 13.E")
def test_the_house_may_allow_an_act_to_fewer_roles() -> None:
    rules = load("md-three-card-baccarat")
    policy = parse_policy('name = "pit"\n[acts.mark_out_of_order]\nwho = "floor"\n', rules)
    record = SqliteRecord(None)
    session = TableSession(rules, record, Register(), policy=policy)
    session.tick(NOW_S)
    give(session, acts.OpenTable(), "anna")
    session.act("failed", None, session.cursor, "ben", ReportUnitFailed(DeviceUnit.SHOE), NOW_S)
    with pytest.raises(NotYours):
        give(session, MarkOutOfOrder(DeviceUnit.SHOE, "sign"), "ben")
    give(session, MarkOutOfOrder(DeviceUnit.SHOE, "sign"), "anna")
    kinds = [each.kind for each in session.needs()]
    assert kinds == [NeedKind.SIGN_IN, NeedKind.CHANGE_METHOD, NeedKind.RECEIVE_PACK]
    told = [(each.row.kind, each.row.actor.person, each.row.clause) for each in record.rows(after=2)]
    assert told == [("unit_failed", "ben", "MD3 13.E"), ("mark_out_of_order", "anna", "MD3 13.E")]


def test_each_act_names_an_act_that_rule_texts_know() -> None:
    assert {each.ACTION for each in acts.ACTS.values()} - {""} <= EVERY_ACT
    assert all(each.NAME and each.ROLES for each in acts.ACTS.values())


def test_an_act_that_does_not_meet_its_need_is_refused() -> None:
    session = session_of(SqliteRecord(None))
    with pytest.raises(ActRefused):
        session.act("one", session.needs()[0].id, 0, "anna", acts.EmptyMachine(), NOW_S)


def test_a_failed_commit_changes_nothing() -> None:
    record = FullRecord(None)
    session = session_of(record)
    record.full = True
    with pytest.raises(RecordFull):
        give(session, acts.OpenTable(), "anna", "one")
    assert [each.kind for each in session.needs()] == [NeedKind.OPEN_TABLE]
    record.full = False
    give(session, acts.OpenTable(), "anna", "one")
    assert [each.row.kind for each in record.rows()] == ["open_table"]


def test_a_refusal_of_the_rules_changes_nothing() -> None:
    record = SqliteRecord(None)
    session = session_of(record)
    give(session, acts.OpenTable(), "anna")
    with pytest.raises(RuleViolation):
        session.act("two", None, session.cursor, "anna", acts.ReceivePack("green", "B1"), NOW_S)
    assert [each.row.kind for each in record.rows()] == ["open_table"]


def test_dealers_change_between_rounds_and_the_signed_in_dealer_needs_no_pin() -> None:
    record = SqliteRecord(None)
    session = session_of(record)
    give(session, acts.OpenTable(), "anna")
    give(session, acts.SignIn(), "ben")
    session.act("three", None, session.cursor, "cleo", acts.SignIn(), NOW_S)
    session.act("four", None, session.cursor, None, acts.CallFloor("a dispute"), NOW_S)
    rows = [(each.row.kind, each.row.actor.person, each.row.actor.how) for each in record.rows(after=1)]
    badge = Authentication.BADGE_AND_PIN
    assert rows == [
        ("sign_in", "ben", badge),
        ("sign_out", "ben", badge),
        ("sign_in", "cleo", badge),
        ("call_floor", "cleo", Authentication.SIGNED_IN),
    ]


def test_a_restored_session_goes_on() -> None:
    record = SqliteRecord(None)
    session = session_of(record)
    give(session, acts.OpenTable(), "anna")
    give(session, acts.SignIn(), "ben")
    again = TableSession(load("md-three-card-baccarat"), record, Register())
    assert [each.id for each in again.needs()] == [each.id for each in session.needs()]
    assert again.state.dealer == session.state.dealer


@pytest.mark.parametrize("name", list(acts.ACTS))
def test_no_act_happens_without_a_person(name: str) -> None:
    """On a device that is no emulator: nobody signed in, or a simulated person. Every act is refused."""
    record = SqliteRecord(None)
    session = session_of(record)
    session.link(True, NOW_S, serial="SABOT001", memory_id="00112233", model="machine", emulated=False)
    data = {
        "pack_id": 1, "reason": "damaged", "back": "red", "bag": "B1", "hands": {}, "verdict": "misdealt",
        "why": "so", "row": 1, "fault": "misfeed", "unit": "shoe", "how": "sign",
        "round_id": 1, "seat": 1, "wager": "ante", "cents": 100, "surveillance": "CAM-7", "decision": "so",
        "machine_wrong": False, "method": "manual-shoe", "from_top": 26, "above_bottom": 14, "first": "KH",
        "stub": 43, "player": ["2H", "3H"], "banker": ["4H", "5H"], "to": "player", "card": "6H",
        "serial": "SABOT002", "before": "record", "rows": 1, "part": "feed", "what": "card_um",
        "value": 301, "was": 300, "note_id": "0" * 16,
    }  # fmt: skip
    kind = acts.ACTS[name]
    act = acts.parse_act(name, {each: data[each] for each in kind.__dataclass_fields__ if each in data})
    for nobody in (None, "simulated dealer"):
        with pytest.raises(NotYours):
            session.act(f"{name} {nobody}", None, session.cursor, nobody, act, NOW_S)
    assert not record.rows()
    assert all(each.name not in ("register_deck", "clear_fault") for each in session.state.outbox)
