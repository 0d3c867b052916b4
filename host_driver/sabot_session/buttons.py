"""The machine's two buttons: the two touches of a round, without a screen.

The left one is "no more bets" with the seats of the round before, the right one "exposed, finished". A press
belongs to the dealer who is signed in. It does nothing where the table does not need that touch.
"""

from typing import TYPE_CHECKING

from sabot_protocol.host.messages import ButtonFlag
from sabot_session import act_handlers, acts
from sabot_session.needs import NeedKind
from sabot_session.rows import Actor, Authentication
from sabot_table.procedure import Attribution, TableRole

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep

TOUCHES: dict[ButtonFlag, NeedKind] = {ButtonFlag.LEFT: NeedKind.BETS, ButtonFlag.RIGHT: NeedKind.EXPOSE}


def pressed(session: "SessionStep", which: int, now_s: int) -> None:
    """A button was pressed. Raises the procedure's `RuleViolation` if the rules refuse the touch now."""
    dealer = session.state.dealer
    if dealer is None:
        return
    needed = session.needed()
    wanted = [kind for flag, kind in TOUCHES.items() if which & flag and kind in needed]
    if not wanted:
        return
    session.acting(Actor(dealer.person, TableRole.DEALER, Authentication.SENSED))
    by = Attribution(dealer.person, TableRole.DEALER, now_s)
    if wanted[0] is NeedKind.EXPOSE:
        act_handlers.expose(session, acts.Expose(), by, "")
    elif session.state.bets or session.procedure.table.state == "betting":
        act_handlers.no_more_bets(session, acts.NoMoreBets(), by, "")
