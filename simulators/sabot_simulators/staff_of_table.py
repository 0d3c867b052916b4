"""The entry point by which `sabot play` finds simulated people for an emulated table."""

from collections.abc import Mapping, Sequence

from sabot_driver import Credential
from sabot_driver.errors import SabotError
from sabot_simulators.endpoints.in_process import people_at
from sabot_simulators.simulated_staff import SimulatedRegister, SimulatedStaff, Table
from sabot_table.rule_texts import DealingMethod


class CardsNotSeen(SabotError):
    """Cards that simulated people cannot see: another process emulates the device."""

    advice = "Play at a terminal, or use a device of this process (--device sim://)."


class StaffOfTable:
    """Makes the register and the staff of a table at which only simulated people are."""

    def register(self) -> SimulatedRegister:
        """The register of people for the session."""
        return SimulatedRegister()

    def staff(
        self,
        table: Table,
        url: str,
        wagers: Mapping[int, Mapping[str, int]],
        floor: Credential,
        service: Credential,
        cover: int | None = None,
    ) -> SimulatedStaff:
        """People at the device of this URL, with keys that it knows; ``cover``: cards below the cover card.

        They see cards that no reader told only if this process emulates the device.
        """
        people = people_at(url)
        staff = SimulatedStaff(
            table,
            wagers,
            floor,
            service,
            _not_seen if people is None else people.hands.__getitem__,
            method=DealingMethod.AUTOMATED_SHOE,
            cut_shoe=None if people is None else people.cut_shoe,
        )
        staff.cover_above = cover
        return staff


def _not_seen(round_id: int) -> Sequence[Sequence[str]]:
    raise CardsNotSeen(f"simulated people must tell cards of round {round_id} that no reader told")
