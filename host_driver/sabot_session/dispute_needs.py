"""What doubted rounds and a call of the dealer ask of the floor."""

from collections.abc import Iterator

from sabot_session.act_base import F
from sabot_session.acts import FloorComes
from sabot_session.dispute_acts import ConfirmCorrection, DecideDispute, DeclineCorrection
from sabot_session.needs import NeedForm, NeedKind
from sabot_session.session_state import SessionState


def dispute_needs(state: SessionState) -> Iterator[NeedForm]:
    """Calls, disputes without a decision, corrections without the floor's word."""
    if state.called:
        words = f"the dealer calls the floor: {state.called}"
        yield NeedForm(NeedKind.FLOOR_COMES, (F,), words, "", (FloorComes.NAME,))
    for open_one in state.disputes:
        yield NeedForm(
            NeedKind.DECIDE_DISPUTE,
            (F,),
            f"decide the dispute about round {open_one.round_id}: {open_one.why}",
            "",
            (DecideDispute.NAME,),
            str(open_one.row),
            {"row": open_one.row, "round_id": open_one.round_id},
        )
    for proposed in state.corrections:
        yield NeedForm(
            NeedKind.CONFIRM_CORRECTION,
            (F,),
            f"confirm or decline the dealer's correction of round {proposed.round_id}",
            "",
            (ConfirmCorrection.NAME, DeclineCorrection.NAME),
            str(proposed.row),
            {"row": proposed.row, "round_id": proposed.round_id, "dealer": proposed.dealer},
        )
