"""What the acts about seats, wagers and players do."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sabot_session import seat_acts as acts
from sabot_session import unexplained
from sabot_session.act_base import Act
from sabot_session.device_side import OVER
from sabot_session.outcomes import NoDealer
from sabot_session.rows import Json
from sabot_session.session_state import RoundProgress
from sabot_table.procedure import Attribution

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep


def sit(session: "SessionStep", act: acts.Sit, by: Attribution, act_id: str) -> None:
    """A player takes a seat."""
    session.do(session.procedure.betting.sit, by, act.seat, told={"seat": act.seat})


def leave(session: "SessionStep", act: acts.Leave, by: Attribution, act_id: str) -> None:
    """A player leaves; the seat bets no more."""
    session.do(session.procedure.betting.leave, by, act.seat, told={"seat": act.seat})
    session.state.bets.pop(act.seat, None)


def open_bets(session: "SessionStep", act: Act, by: Attribution, act_id: str) -> None:
    """Collect the round before, and open the next one for bets. Refused while no dealer is signed in."""
    unexplained.check_none(session.state)
    if session.state.dealer is None:
        raise NoDealer("opening a round: no dealer is signed in")
    procedure, table = session.procedure, session.procedure.table
    session.finish_round(by)
    session.reports.load_if_ready(by.at_s)
    serial = session.state.device.serial
    session.do(procedure.betting.open_bets, by, told={"dealer": by.who, "serial": serial})
    session.state.round = RoundProgress(table.round.round_id)


def place_wager(session: "SessionStep", act: acts.PlaceWager, by: Attribution, act_id: str) -> None:
    """A wager is made or raised."""
    table = session.procedure.table
    if table.state in ("between", *OVER):
        open_bets(session, act, by, act_id)
    if table.state == "betting" and act.seat not in table.memory.seated:
        session.do(session.procedure.betting.sit, by, act.seat, told={"seat": act.seat})
    session.do(session.procedure.betting.place_wager, by, act.seat, act.wager, act.cents)
    data: dict[str, Json] = {"seat": act.seat, "wager": act.wager, "cents": act.cents}
    session.row("place_wager", session.actor(by), data, table.clause("place_wager"), table.round.round_id)


def withdraw_wager(session: "SessionStep", act: acts.WithdrawWager, by: Attribution, act_id: str) -> None:
    """A wager is taken back."""
    playing = session.procedure.table.memory.round
    cents = 0 if playing is None else playing.wagers.get(act.seat, {}).get(act.wager, 0)
    told: dict[str, Json] = {"seat": act.seat, "wager": act.wager, "cents": cents}
    session.do(session.procedure.betting.withdraw_wager, by, act.seat, act.wager, told=told)


def return_bets(session: "SessionStep", act: acts.ReturnBets, by: Attribution, act_id: str) -> None:
    """All wagers go back. The record keeps the round's number, so the next round has another one."""
    table = session.procedure.table
    playing = table.memory.round
    number = 0 if playing is None else playing.round_id
    session.do(session.procedure.betting.return_bets, by)
    table.number_after(number)
    session.state.round = None


def take_wagers(session: "SessionStep", act: Any, by: Attribution, act_id: str) -> None:
    """The floor takes the wagers of one seat."""
    dealt = session.procedure.three_card
    action = dealt.forfeit if isinstance(act, acts.Forfeit) else dealt.abandon
    session.do(action, by, act.seat, told={"seat": act.seat})


def idle(session: "SessionStep", act: acts.Idle, by: Attribution, act_id: str) -> None:
    """Nobody plays."""
    if session.procedure.table.state in OVER:
        session.reports.collect(by.at_s)
    session.do(session.procedure.idle, by)


def player_arrives(session: "SessionStep", act: acts.PlayerArrives, by: Attribution, act_id: str) -> None:
    """Play begins again."""
    session.do(session.procedure.player_arrives, by)


HANDLERS: Mapping[type[Act], Callable[["SessionStep", Any, Attribution, str], None]] = {
    acts.Sit: sit,
    acts.Leave: leave,
    acts.OpenBets: open_bets,
    acts.PlaceWager: place_wager,
    acts.WithdrawWager: withdraw_wager,
    acts.ReturnBets: return_bets,
    acts.Forfeit: take_wagers,
    acts.Abandon: take_wagers,
    acts.Idle: idle,
    acts.PlayerArrives: player_arrives,
}
