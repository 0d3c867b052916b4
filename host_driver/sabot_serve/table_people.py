"""Whose word counts at a served table: the dealer at a page, people with credentials, simulated people.

The session asks here who somebody is while it takes an act, so nothing can change between the two.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sabot_driver.credentials import Credential
from sabot_session.errors import NotAuthenticated
from sabot_session.people import Authenticated, PeopleRegister, Presented
from sabot_session.rows import Actor, Authentication
from sabot_table.procedure import TableRole


class Register(Protocol):
    """Who somebody is by what they show."""

    def authenticate(self, shown: Any, at_s: int, /) -> Authenticated:
        """The person; `SabotError` if it proves nobody."""


@dataclass(frozen=True, slots=True)
class AtPage:
    """The credential of the dealer who signed in at a page of this service."""

    person: str = field(default="")


class DealerElsewhere(NotAuthenticated):
    """The person at the page is not the dealer who is signed in at the table."""

    advice = "The dealer of this table acts, or is relieved between rounds."


class ServedPeople:
    """The people of a served table. ``dealer`` tells who is signed in at the table at this moment."""

    def __init__(
        self,
        register: Register | None,
        simulated: Register | None = None,
        keys: Mapping[str, Credential] | None = None,
    ) -> None:
        """``simulated`` knows the simulated people; ``keys`` are what people hold on an emulated device.

        Without a register only simulated people act.
        """
        self._register = register
        self._simulated = simulated
        self._keys = keys or {}
        self.dealer: Callable[[], Actor | None] = lambda: None

    def authenticate(self, shown: Any, at_s: int, /) -> Authenticated:
        """Who somebody is; see `Register.authenticate`."""
        if isinstance(shown, AtPage):
            return self._at_page(shown)
        if isinstance(shown, Presented) and self._register is not None:
            who = self._register.authenticate(shown, at_s)
            key = who.key or self._keys.get(who.person)
            return Authenticated(who.person, who.roles, who.how, key)
        if self._simulated is None:
            raise NotAuthenticated("this is nobody at this table")
        return self._simulated.authenticate(shown, at_s)

    def _at_page(self, shown: AtPage) -> Authenticated:
        dealer = self.dealer()
        if dealer is None or not shown.person or dealer.person != shown.person:
            who = "nobody" if dealer is None else dealer.person
            here = shown.person or "nobody"
            raise DealerElsewhere(f"{here} is signed in at this page, and {who} deals at this table")
        if isinstance(self._register, PeopleRegister) and self._register.find(shown.person).removed:
            raise NotAuthenticated(f"{shown.person} was removed from the register of people")
        return Authenticated(shown.person, frozenset({TableRole.DEALER}), Authentication.SIGNED_IN)
