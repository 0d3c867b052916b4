"""The simulated people at an emulated table, which runs in this process.

They see cards that the wire never carries, and they cut a shoe where the program says. The package that
emulates devices offers them through the entry-point group ``sabot.table_people``: a function that takes the
device's URL and returns its ``TablePeople``, or None if it does not emulate that device here.
"""

from importlib.metadata import entry_points
from typing import Protocol

from sabot_driver import Client

GROUP = "sabot.table_people"


class TablePeople(Protocol):
    """Simulated people at one table."""

    hands: dict[int, list[list[str]]]
    """The cards of each stack or draw that they took, by round, such as ``KS``; round 0: burnt cards."""

    def cut_shoe(self, from_top: int | None, cover_above: int | None) -> None:
        """Cut the next batch after so many cards from the top (None: in the middle).

        The cover card goes in above so many cards from the bottom (None: there is no cover card).
        """


def people_at(client: Client) -> TablePeople | None:
    """The simulated people at a client's device; None if it is a real one or another process emulates it."""
    if not client.simulator:
        return None
    for entry in entry_points(group=GROUP):
        people: TablePeople | None = entry.load()(client.url)
        if people is not None:
            return people
    return None
