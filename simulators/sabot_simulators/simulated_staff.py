"""Simulated dealer and floor of an emulated table: they watch its needs and give acts.

They act for nobody: the session records every act as a simulated person's, and it takes them only where the
device proved that it is a simulator. The physical part (cards laid in, stacks taken, jams cleared) is done by
`SimulatedPeople` at the emulated machine.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from sabot_driver import Credential
from sabot_driver.errors import SabotError
from sabot_session import acts, dealing_acts
from sabot_session.acts import Act
from sabot_session.needs import Need, NeedKind
from sabot_session.outcomes import ActDone, ActRefused
from sabot_session.people import Authenticated
from sabot_session.rows import Authentication
from sabot_simulators.manual_shoe import ManualShoe
from sabot_table.cards import card
from sabot_table.errors import RuleViolation
from sabot_table.procedure import TableRole
from sabot_table.procedure.vocabulary import RemovalReason, Verdict
from sabot_table.rule_texts import DealingMethod

DEALER, FLOOR, SERVICE = "simulated dealer", "simulated floor", "simulated service"
RELIEF = "simulated relief dealer"
ROLES = {
    DEALER: TableRole.DEALER,
    RELIEF: TableRole.DEALER,
    FLOOR: TableRole.FLOOR,
    SERVICE: TableRole.SERVICE,
}


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
        *,
        method: DealingMethod | None = None,
        cut_shoe: Callable[[int | None, int | None], None] | None = None,
        manual: ManualShoe | None = None,
    ) -> None:
        """``seen`` tells the cards of a round's stacks or draws as they lie on the emulated table.

        ``method`` is how the floor opens the table. ``cut_shoe`` cuts a batch for the machine's shoe.
        ``manual`` is the shoe that the dealer deals from by hand.
        """
        self._table = table
        self.wagers = wagers
        self._seen = seen
        self._method = method
        self._cut_shoe = cut_shoe
        self._cut: int | None = None
        self.manual = manual or ManualShoe(1)
        self.from_top: int | None = None
        """Where players cut, cards from the top; None: in the middle."""
        self.cover_above: int | None = None
        """Where the second cover card goes, cards above the bottom; None: as low as is allowed."""
        self._people = {
            TableRole.DEALER: SimulatedPerson(DEALER),
            TableRole.FLOOR: SimulatedPerson(FLOOR, floor),
            TableRole.SERVICE: SimulatedPerson(SERVICE, service),
        }
        self.refused: list[str] = []
        """What the session refused, in words."""

    def relieve(self, name: str) -> None:
        """Another simulated dealer signs in and deals from now on."""
        self.deal_as(name)
        self.give(acts.SignIn())

    def deal_as(self, name: str) -> None:
        """Act as this simulated dealer, who is signed in."""
        self._people[TableRole.DEALER] = SimulatedPerson(name)

    def attend(self, table: Table) -> None:
        """Go on at this session, such as one that was restored; what the people saw they still know."""
        self._table = table

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
        shoe = self._of_shoe(need)
        if shoe is not None:
            return shoe
        if kind is NeedKind.OPEN_TABLE:
            return acts.OpenTable(self._method)
        if kind is NeedKind.CHANGE_METHOD:
            return dealing_acts.ChangeMethod(
                DealingMethod(_texts(details["methods"])[0]), "the machine failed"
            )
        if kind is NeedKind.COLLECT_VIGORISH:
            return dealing_acts.CollectVigorish(_number(details["seat"]))
        if kind is NeedKind.COUNT_STUB and dealing_acts.PassStub.NAME not in need.acts:
            return dealing_acts.CountStub(_number(details["expected"]))
        if kind is NeedKind.PREPARE_PACK:
            return acts.parse_act(need.acts[0], {"pack_id": pack_id})
        if kind is NeedKind.RECEIVE_PACK:
            back = str(details["back"])
            return acts.ReceivePack(back, f"BAG-{back}", "simulated security")
        if kind in (NeedKind.REMOVE_PACK, NeedKind.REPLACE_PACK):
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
        if kind in (NeedKind.COUNTERSIGN, NeedKind.UNEXPLAINED):
            return acts.Countersign(_number(details["row"]))
        return acts.parse_act(need.acts[0], {} if pack_id is None else {"pack_id": pack_id})

    def _of_shoe(self, need: Need) -> Act | None:
        """Acts about a pack on its way into a shoe, and about single cards."""
        details, kind = need.details, need.kind
        if kind is NeedKind.CUT:
            least, most = _number(details["least"]), _number(details["most"])
            self._cut = (least + most) // 2 if self.from_top is None else self.from_top
            return dealing_acts.CutPack(_number(details["pack_id"]), self._cut, _number(details["seat"]))
        if kind is NeedKind.PLACE_COVER:
            above = _number(details["least"]) if self.cover_above is None else self.cover_above
            self._tell_cut(self._cut, above)
            return dealing_acts.PlaceCover(_number(details["pack_id"]), above)
        if kind is NeedKind.LAY_IN:
            if self._cut is None:
                self._tell_cut(0, None)
            self._cut = None
        if kind is NeedKind.LOAD:
            self.manual.shuffle()
        if kind is NeedKind.BURN:
            (first,) = self._cards(need, 1)
            if "draws" not in details:
                self.manual.burn(card(first).burns)
            return dealing_acts.Burn(_number(details["pack_id"]), first)
        if kind is NeedKind.TYPE_CARDS:
            one, two, three, four = self._cards(need, 4)
            return dealing_acts.Announce((one, three), (two, four))
        if kind is NeedKind.TYPE_THIRD:
            to: Literal["player", "banker"] = "player" if details["to"] == "player" else "banker"
            return dealing_acts.TurnThird(to, *self._cards(need, 1))
        if kind is NeedKind.NAME_CARD:
            return dealing_acts.ReportExposed(*self._cards(need, 1))
        return None

    def _tell_cut(self, from_top: int | None, above: int | None) -> None:
        if self._cut_shoe is not None:
            self._cut_shoe(from_top, above)

    def _cards(self, need: Need, count: int) -> list[str]:
        """Cards as they lie: those that the machine dealt, or the next ones of the manual shoe."""
        known = _texts(need.details.get("known", ()))
        draws = need.details.get("draws")
        if draws is None:
            return [*known, *(self.manual.draw() for _ in range(count - len(known)))]
        stacks = [] if self._seen is None else self._seen(_number(need.details["round_id"]))
        assert isinstance(draws, Sequence)
        return [stacks[_number(draw) - 1][0] if draw else known.pop(0) for draw in draws]

    def _hands_as_they_lie(self, need: Need) -> Act:
        seats = need.details["hands"]
        if "by_hand" in need.details:
            assert isinstance(seats, Sequence)
            hands = self.manual.hands([_number(each) for each in seats])
            return acts.TypeHands(hands)
        stacks = [] if self._seen is None else self._seen(_number(need.details["round_id"]))
        assert isinstance(seats, Sequence)
        return acts.TypeHands({_number(seat): tuple(hand) for seat, hand in zip(seats, stacks, strict=True)})


def _texts(value: object) -> list[str]:
    assert isinstance(value, Sequence)
    return [str(each) for each in value]


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
