"""Whose word counts: a person at a page is the table's dealer, or gives no act."""

from pathlib import Path

import pytest

from sabot_driver.credentials import Credential
from sabot_protocol.host.messages import Role
from sabot_serve.demonstration import demonstration
from sabot_serve.table_people import AtPage, ServedPeople
from sabot_session.errors import NotAuthenticated, PersonUnknown
from sabot_session.people import PeopleRegister, Presented
from sabot_session.rows import Actor, Authentication
from sabot_table.procedure import TableRole

KEY = bytes(range(32))


def test_only_the_dealer_of_the_table_acts_at_a_page() -> None:
    shown = demonstration(KEY, 0)
    people = ServedPeople(shown.register)
    for dealer, here in ((None, "dana"), ("bob", "dana"), ("bob", ""), (None, "")):
        actor = None if dealer is None else Actor(dealer, TableRole.DEALER, Authentication.PIN)
        people.dealer = lambda actor=actor: actor  # type: ignore[misc]
        with pytest.raises(NotAuthenticated):
            people.authenticate(AtPage(here), 1)
    people.dealer = lambda: Actor("dealer", TableRole.DEALER, Authentication.PIN)
    who = people.authenticate(AtPage("dealer"), 1)
    assert (who.person, who.roles, who.how) == (
        "dealer",
        frozenset({TableRole.DEALER}),
        Authentication.SIGNED_IN,
    )
    shown.register.remove("dealer", "test", 2)
    with pytest.raises(NotAuthenticated, match="removed"):
        people.authenticate(AtPage("dealer"), 3)
    shown.register.close()


def test_without_simulated_people_nothing_else_is_anybody() -> None:
    shown = demonstration(KEY, 0)
    with pytest.raises(NotAuthenticated):
        ServedPeople(shown.register).authenticate("simulated dealer", 1)
    shown.register.close()


def test_people_of_a_demonstration_hold_keys_of_the_emulated_device() -> None:
    shown = demonstration(KEY, 0)
    people = ServedPeople(shown.register, None, shown.keys)
    badge, pin = shown.shown["floor"]
    who = people.authenticate(Presented(pin, badge=badge), 1)
    assert who.key == Credential(Role.FLOOR, KEY)
    assert who.roles == {TableRole.FLOOR}
    shown.register.close()


def test_people_enrolled_while_the_table_runs_are_known_at_once(tmp_path: Path) -> None:
    """`sabot people` is another program with the same file; the service need not be started again."""
    with PeopleRegister(tmp_path / "people.db") as served, PeopleRegister(tmp_path / "people.db") as other:
        people = ServedPeople(served)
        with pytest.raises(PersonUnknown):
            people.authenticate(Presented("2468", person="dana"), 1)
        other.enrol("dana", "Dana Deal", [TableRole.DEALER], "2468", "setup", 1)
        assert people.authenticate(Presented("2468", person="dana"), 2).person == "dana"
        other.remove("dana", "setup", 3)
        with pytest.raises((NotAuthenticated, PersonUnknown)):
            people.authenticate(Presented("2468", person="dana"), 4)


def test_without_a_register_only_simulated_people_are_anybody() -> None:
    with pytest.raises(NotAuthenticated):
        ServedPeople(None).authenticate(Presented("2468", person="dana"), 1)
