"""Simulated people who attend a table that others use too: they do what is needed, at a person's pace.

The simulated dealer deals only while no other dealer is signed in. ``sabot serve`` finds this by the entry
point group ``sabot.table_staff``.
"""

import logging
import threading
import time
from collections.abc import Collection, Mapping
from typing import Protocol

from sabot_driver import Credential
from sabot_driver.errors import SabotError
from sabot_protocol.host.messages import Role
from sabot_session.acts import Act
from sabot_session.needs import Need, NeedKind
from sabot_session.outcomes import ActDone
from sabot_simulators.endpoints.in_process import people_at
from sabot_simulators.simulated_staff import DEALER, SimulatedRegister, SimulatedStaff
from sabot_table.procedure import TableRole
from sabot_table.rule_texts import DealingMethod

log = logging.getLogger("sabot")
AWAY_S = 20.0  # how long the simulated dealer waits after a person has signed out


class AttendedTable(Protocol):
    """What the staff needs of a session that runs."""

    def needs(self) -> list[Need]:
        """What must happen now."""

    def act(self, act_id: str, need_id: str | None, seen: int, credential: object, act: Act) -> ActDone:
        """Give an act."""

    def dealer(self) -> str | None:
        """The dealer who is signed in."""


class AttendingStaff:
    """A thread in which simulated people meet the needs of a table; close it before the table."""

    register = SimulatedRegister
    """Tells simulated people from others."""

    def __init__(
        self,
        table: AttendedTable,
        url: str,
        key: bytes,
        wagers: Mapping[int, Mapping[str, int]],
        roles: Collection[TableRole],
        pace_s: float,
    ) -> None:
        """``roles`` are those that simulated people play; ``pace_s`` lies between two acts."""
        people = people_at(url)
        seen = None if people is None else people.hands.__getitem__
        floor, service = Credential(Role.FLOOR, key), Credential(Role.SERVICE, key)
        self._table = table
        cut_shoe = None if people is None else people.cut_shoe
        method = DealingMethod.AUTOMATED_SHOE  # people who show a machine use it
        self._staff = SimulatedStaff(table, wagers, floor, service, seen, method=method, cut_shoe=cut_shoe)
        self._roles = frozenset(roles)
        self.leave: frozenset[NeedKind] = frozenset()
        """Needs that they leave to other people."""
        self._pace_s = pace_s
        self._seen_s = -AWAY_S  # when another dealer was here last
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="simulated-staff", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.wait(self._pace_s):
            try:
                self._meet_one()
            except SabotError as error:
                log.info("simulated people: %s", error)

    def _meet_one(self) -> None:
        dealer = self._table.dealer()
        if dealer not in (None, DEALER):
            self._seen_s = time.monotonic()
        for need in self._table.needs():
            ours = need.acts and need.kind not in self.leave and self._is_ours(need, dealer)
            if ours and self._staff.meet(need):
                return

    def _is_ours(self, need: Need, dealer: str | None) -> bool:
        if self._roles.isdisjoint(need.roles):
            return False
        if TableRole.DEALER not in need.roles:
            return True
        if need.kind is NeedKind.SIGN_IN:
            return TableRole.DEALER in self._roles and time.monotonic() - self._seen_s >= AWAY_S
        return TableRole.DEALER in self._roles and dealer == DEALER
