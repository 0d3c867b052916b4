"""Simulated dealer and floor of an emulated table: they watch its needs and give acts.

They act for nobody: the session records every act as a simulated person's, and it takes them only where the
device proved that it is a simulator. The physical part (cards laid in, stacks taken, jams cleared) is done by
`SimulatedPeople` at the emulated machine.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sabot_driver import Credential
from sabot_driver.errors import SabotError
from sabot_session import acts
from sabot_session.acts import Act
from sabot_session.needs import Need, NeedKind
from sabot_session.outcomes import ActDone, ActRefused
from sabot_session.people import Authenticated
from sabot_session.rows import Authentication
from sabot_table.errors import RuleViolation
from sabot_table.procedure import TableRole
from sabot_table.procedure.vocabulary import RemovalReason, Verdict

DEALER, FLOOR, SERVICE = "simulated dealer", "simulated floor", "simulated service"
ROLES = {DEALER: TableRole.DEALER, FLOOR: TableRole.FLOOR, SERVICE: TableRole.SERVICE}


class NotSimulated(SabotError):
    """A credential that is no simulated person's."""

    advice = "At an emulated table with simulated people only those act."


@dataclass(frozen=True, slots=True)
class SimulatedPerson:
    """The credential of a simulated person; ``key`` is on the emulated device."""

    name: str
    key: Credential | None = field(default=None, repr=False)


class SimulatedRegister:
    """The register of people of a table at which only simulated people are."""

    def authenticate(self, credential: object, at_s: int) -> Authenticated:
        """A simulated person; `NotSimulated` for anything else."""
        if not isinstance(credential, SimulatedPerson) or credential.name not in ROLES:
            raise NotSimulated("this is no simulated person")
        role = ROLES[credential.name]
        return Authenticated(credential.name, frozenset({role}), Authentication.SIMULATED, credential.key)


class Table(Protocol):
    """What the staff needs of a session."""

    def needs(self) -> list[Need]:
        """What must happen now."""

    def act(self, act_id: str, need_id: str | None, seen: int, credential: object, act: Act) -> ActDone:
        """Give an act."""


class SimulatedStaff:
    """A dealer, the floor and service, who do at once what is needed."""

    def __init__(
        self,
        table: Table,
        wagers: Mapping[int, Mapping[str, int]],
        floor: Credential | None = None,
        service: Credential | None = None,
        seen: Callable[[int], Sequence[Sequence[str]]] | None = None,
    ) -> None:
        """``seen`` tells the cards of a round's stacks as they lie on the emulated table."""
        self._table = table
        self.wagers = wagers
        self._seen = seen
        self._people = {
            TableRole.DEALER: SimulatedPerson(DEALER),
            TableRole.FLOOR: SimulatedPerson(FLOOR, floor),
            TableRole.SERVICE: SimulatedPerson(SERVICE, service),
        }
        self.refused: list[str] = []
        """What the session refused, in words."""

    def credential(self, role: TableRole) -> SimulatedPerson:
        """The person of a role."""
        return self._people[role]

    def meet_one(self, leave: frozenset[NeedKind] = frozenset()) -> Need | None:
        """Meet the most urgent need that people can meet, except those kinds; None if there is none."""
        for need in self._table.needs():
            if need.acts and need.kind not in leave and self.meet(need):
                return need
        return None

    def meet(self, need: Need) -> bool:
        """Give the act that a need asks for; whether it was accepted."""
        try:
            self.give(self.act_for(need), need)
        except (ActRefused, RuleViolation) as error:
            self.refused.append(str(error))
            return False
        return True

    def give(self, act: Act, need: Need | None = None) -> ActDone:
        """Give an act in the first role that may give it."""
        roles = act.ROLES if need is None else [each for each in act.ROLES if each in need.roles]
        seen = 0 if need is None else need.seen
        who = self._people[roles[0]]
        return self._table.act(secrets.token_hex(8), None if need is None else need.id, seen, who, act)

    def act_for(self, need: Need) -> Act:
        """The act that meets a need, as a careful person would give it."""
        details, kind = need.details, need.kind
        pack_id = details.get("pack_id")
        if kind is NeedKind.PREPARE_PACK:
            return acts.parse_act(need.acts[0], {"pack_id": pack_id})
        if kind is NeedKind.RECEIVE_PACK:
            back = str(details["back"])
            return acts.ReceivePack(back, f"BAG-{back}", "simulated security")
        if kind is NeedKind.REMOVE_PACK:
            return acts.RemovePack(_number(pack_id), RemovalReason(str(details["reason"])))
        if kind is NeedKind.BETS:
            return acts.NoMoreBets(self.wagers)
        if kind is NeedKind.DETERMINE:
            return acts.Determine(Verdict(str(details["advice"])))
        if kind is NeedKind.TYPE_HANDS:
            return self._hands_as_they_lie(need)
        if kind is NeedKind.CLEAR_FAULT:
            return acts.ClearFault(str(details["fault"]))
        if kind is NeedKind.MARK_OUT_OF_ORDER:
            return acts.parse_act(need.acts[0], {"unit": details["unit"], "how": "sign"})
        if kind is NeedKind.DECIDE_DISPUTE:
            told = {"surveillance": "simulated", "decision": "the hands are as shown", "machine_wrong": False}
            return acts.parse_act(need.acts[0], {"row": details["row"], **told})
        if kind is NeedKind.CONFIRM_CORRECTION:
            return acts.parse_act(need.acts[0], {"row": details["row"]})
        if kind is NeedKind.SWAP_MACHINE:
            return acts.parse_act(need.acts[0], {"serial": details["serial"]})
        if kind is NeedKind.COUNTERSIGN:
            return acts.Countersign(_number(details["row"]))
        return acts.parse_act(need.acts[0], {} if pack_id is None else {"pack_id": pack_id})

    def _hands_as_they_lie(self, need: Need) -> Act:
        stacks = [] if self._seen is None else self._seen(_number(need.details["round_id"]))
        seats = need.details["hands"]
        assert isinstance(seats, Sequence)
        return acts.TypeHands({_number(seat): tuple(hand) for seat, hand in zip(seats, stacks, strict=True)})


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
