"""The entry point by which `sabot play` finds simulated people for an emulated table."""

from collections.abc import Mapping

from sabot_driver import Credential
from sabot_simulators.endpoints.in_process import people_at
from sabot_simulators.simulated_staff import SimulatedRegister, SimulatedStaff, Table


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
    ) -> SimulatedStaff:
        """People at the device of this URL, with keys that it knows.

        They see cards that no reader told only if this process emulates the device.
        """
        people = people_at(url)
        seen = None if people is None else people.hands.__getitem__
        return SimulatedStaff(table, wagers, floor, service, seen)
