"""The interface of a way of dealing: what it asks of the machine and of people.

`DealingWays.now` chooses the way by game and method. It returns None if the machine deals stacks: the code
for stacks is in `device_side`, `device_reports` and `table_needs`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from sabot_protocol.host.message_base import Message, Request
from sabot_session.hand_dealing import HandDealing
from sabot_session.needs import NeedForm
from sabot_session.pack_delivery import PackDelivery
from sabot_session.session_state import GameState, SessionState
from sabot_session.shoe_dealing import ShoeDealing
from sabot_table.procedure import TableProcedure
from sabot_table.rule_texts import DealingMethod

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep


class DealingWay(Protocol):
    """How cards come from a pack into the hands.

    ``hear``, ``executed``, ``failed`` and ``go_on`` change the state. The other methods only read it.
    """

    def game(self, hours: int) -> GameState:
        """What the machine must be set to; ``hours`` is how long a pack may be used."""

    def request(self) -> Request[Any] | None:
        """What the machine is asked for now."""

    def needs(self) -> Iterator[NeedForm]:
        """What people must do now, for the round and for the pack that is dealt next."""

    def may_close_bets(self) -> bool:
        """Whether a round can begin with "no more bets" now."""

    def hear(self, session: "SessionStep", told: Message, now_s: int) -> bool:
        """Take in an event of the machine. True: `DeviceReports` does nothing more with it."""

    def executed(
        self, session: "SessionStep", request: Request[Any], answer: Message | None, now_s: int
    ) -> bool:
        """Take in that the machine executed a request. True: `DeviceReports` does nothing more with it."""

    def failed(self, session: "SessionStep", request: Request[Any], reason: int | None) -> None:
        """Take in that the machine refused a request, and the ``reason`` if it gave one."""

    def go_on(self, session: "SessionStep", now_s: int) -> None:
        """Run the actions that follow from the state without an act or an event."""


class DealingWays:
    """The ways to deal of one table."""

    def __init__(self, state: SessionState, procedure: TableProcedure) -> None:
        self._state = state
        self._table = procedure.table
        self.delivery = PackDelivery(state, procedure)
        self.shoe = ShoeDealing(state, procedure, self.delivery)
        self.hand = HandDealing(state, procedure, self.delivery)

    def now(self) -> DealingWay | None:
        """How cards are dealt now, in the round in play or in the next one; None: in stacks."""
        playing = self._table.memory.round
        method = self._table.method if playing is None else DealingMethod(playing.method)
        if method is not DealingMethod.AUTOMATED_SHOE:
            return self.hand
        return None if self._table.three_card else self.shoe

    def machine_serves(self) -> bool:
        """Whether the machine is used at all: no half of it failed (MD3 13.E)."""
        return not self._table.memory.units
