"""Whose word counts: a person at a page is the table's dealer, or gives no act."""

import pytest

from sabot_driver.credentials import Credential
from sabot_protocol.host.messages import Role
from sabot_serve.demonstration import demonstration
from sabot_serve.table_people import AtPage, ServedPeople
from sabot_session.errors import NotAuthenticated
from sabot_session.people import Presented
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
    people.dealer = lambda: Actor("dana", TableRole.DEALER, Authentication.PIN)
    who = people.authenticate(AtPage("dana"), 1)
    assert (who.person, who.roles, who.how) == (
        "dana",
        frozenset({TableRole.DEALER}),
        Authentication.SIGNED_IN,
    )
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
