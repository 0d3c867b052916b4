"""Offers: acts that people may give now although no need asks for them, such as a report or a hold.

Faces show them beside the needs. An offer follows from the table's state; a guard of the procedure may still
refuse the act, and says why.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabot_session import acts, dealing_acts, note_acts, service_handlers
from sabot_session.act_base import Act
from sabot_table.procedure import TableRole

if TYPE_CHECKING:
    from sabot_session.session import TableSession

BY_RULE: tuple[tuple[type[Act], str], ...] = (
    (acts.ReportFaceUp, "face_up_card"),
    (acts.ReportWrongNumber, "wrong_number"),
    (acts.ReportShoeFailed, "shoe_failed"),
    (acts.VoidRound, "void"),
    (acts.CloseTable, "close_table"),
    (acts.Sit, "sit"),
    (acts.Leave, "leave"),
    (acts.OpenBets, "open_bets"),
    (acts.PlaceWager, "place_wager"),
    (acts.WithdrawWager, "withdraw_wager"),
    (acts.ReturnBets, "return_bets"),
    (acts.Forfeit, "forfeit"),
    (acts.Abandon, "abandon"),
    (acts.Idle, "idle"),
    (acts.ReportUnitFailed, "unit_failed"),
    (dealing_acts.ReportDrawnInError, "drawn_in_error"),
    (dealing_acts.ReportThird, "unauthorised_third"),
    (dealing_acts.ReportExposed, "card_exposed"),
    (dealing_acts.ReportTooFew, "too_few_cards"),
    (dealing_acts.ReportCover, "cover_card"),
    (dealing_acts.ChangeMethod, "change_method"),
    (dealing_acts.PlayOnePack, "play_one_pack"),
)
"""Acts that the rule text allows in some states, each with the action of the text."""
CHANGE_OF_DEALERS = ("closed", "between", "idle", "collecting", "voided")


@dataclass(frozen=True, slots=True)
class Offer:
    """An act that may be given now, by whom, and by which clause."""

    act: str
    roles: tuple[TableRole, ...]
    clause: str = ""


def offers(session: "TableSession") -> list[Offer]:
    """Every act that is possible now without a need."""
    return [*_of_people(session), *_of_rules(session), *_of_round(session)]


def _of_people(session: "TableSession") -> Iterator[Offer]:
    dealer, state = session.state.dealer, session.procedure.table.state
    if dealer is not None:
        yield _offer(acts.CallFloor)
        if state in CHANGE_OF_DEALERS:
            yield _offer(acts.SignIn)  # a dealer relieves another
            yield _offer(acts.SignOut)
    if session.state.notes:
        yield _offer(note_acts.ReadNote)


def _of_rules(session: "TableSession") -> Iterator[Offer]:
    allowed = {each.action: each for each in session.procedure.table.expects()}
    for act, action in BY_RULE:
        if action in allowed:
            roles = tuple(each for each in act.ROLES if each in allowed[action].who)
            if roles:
                yield Offer(act.NAME, roles, allowed[action].clause)


def _of_round(session: "TableSession") -> Iterator[Offer]:
    state = session.state
    if set(state.unfed) - set(state.holds):
        yield _offer(acts.Hold)
    if session.procedure.table.memory.rounds:
        yield _offer(acts.OpenDispute)
        yield _offer(acts.ProposeCorrection)
    if session.procedure.table.memory.units:
        yield _offer(acts.Repaired)
    for act in service_handlers.offered(session):
        yield _offer(act)


def _offer(act: type[Act]) -> Offer:
    return Offer(act.NAME, act.ROLES)
