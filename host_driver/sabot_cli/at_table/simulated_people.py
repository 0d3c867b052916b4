"""Simulated people at an emulated table: they meet its needs.

The package that emulates devices offers them through the entry-point group ``sabot.simulated_people``. The
session takes their acts only where the device proved that it is emulated, with a key of the simulators'
store, and records them as simulated.
"""

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, Protocol

from sabot_driver import Credential
from sabot_driver.errors import SabotError
from sabot_session.acts import Act
from sabot_session.needs import Need, NeedKind
from sabot_session.outcomes import ActDone
from sabot_session.session import People
from sabot_session.threaded_session import ThreadedSession
from sabot_table.procedure import TableRole

GROUP = "sabot.simulated_people"


class NoSimulatedPeople(SabotError):
    """Nothing installed here simulates people."""

    advice = "Install the simulators, or play at a terminal."


class Staff(Protocol):
    """Simulated dealer, floor and service of one table."""

    refused: list[str]
    """What the session refused, in words."""

    def meet_one(self, leave: frozenset[NeedKind] = frozenset()) -> Need | None:
        """Meet the most urgent need that people can meet, except those kinds; None if there is none."""

    def give(self, act: Act, need: Need | None = None) -> ActDone:
        """Give an act in the first role that may give it."""

    def credential(self, role: TableRole) -> object:
        """The simulated person of a role."""


class SimulatedPeople(Protocol):
    """What the entry point gives."""

    def register(self) -> People:
        """The register of people for the session."""

    def staff(
        self,
        table: ThreadedSession,
        url: str,
        wagers: Mapping[int, Mapping[str, int]],
        floor: Credential,
        service: Credential,
        cover: int | None = None,
    ) -> Staff:
        """People at the device of this URL, with its keys; ``cover``: cards below the cover card."""


def simulated_people() -> SimulatedPeople:
    """The simulated people that an installed package offers; `NoSimulatedPeople` if none does."""
    for entry in entry_points(group=GROUP):
        found: Any = entry.load()
        made: SimulatedPeople = found()
        return made
    raise NoSimulatedPeople("no package here simulates people")
