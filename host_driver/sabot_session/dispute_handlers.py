"""What the acts about a doubted round do: holds, disputes, corrections."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sabot_session import dispute_acts as acts
from sabot_session import row_data as d
from sabot_session.act_base import Act
from sabot_session.corrections import corrected
from sabot_session.outcomes import ActRefused
from sabot_session.round_history import RoundUnknown
from sabot_session.rows import Json
from sabot_session.session_state import HeldPack, OpenDispute, ProposedCorrection
from sabot_table.errors import RuleViolation
from sabot_table.procedure import Attribution

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep


# -- holds --------------------------------------------------------------------------------------


def hold(session: "SessionStep", act: acts.Hold, by: Attribution, act_id: str) -> None:
    """A round's cards stay out of the tray."""
    table, unfed = session.procedure.table, session.state.unfed
    wanted = act.round_id or max(unfed.values(), default=0)
    pack_id = next((pack for pack, round_id in unfed.items() if round_id == wanted), 0)
    if act.round_id and not session.round_rows(act.round_id):
        raise RoundUnknown(f"the record has no round {act.round_id}")
    if not pack_id:
        which = f"the cards of round {wanted}" if wanted else "a round's cards"
        do = "they are in the tray or have left the table"
        raise RuleViolation(f"holding {which}", table.clause("collect"), do)
    if pack_id in session.state.holds:
        raise RuleViolation(f"holding the cards of round {wanted}", table.clause("collect"), "they are held")
    row = session.next_row
    session.row("hold", session.actor(by), {"why": act.why}, round_id=wanted)
    session.state.holds[pack_id] = HeldPack(row, wanted, act.why)


def release(session: "SessionStep", act: acts.Release, by: Attribution, act_id: str) -> None:
    """Held cards may be fed again."""
    held = session.state.holds.pop(act.pack_id, None)
    if held is None:
        clause = session.procedure.table.clause("collect")
        raise RuleViolation(f"releasing pack {act.pack_id}", clause, "it is not held")
    data: dict[str, Json] = {"row": held.row, "note": act.note}
    session.row("release", session.actor(by), data, round_id=held.round_id)


# -- disputes -----------------------------------------------------------------------------------


def open_dispute(session: "SessionStep", act: acts.OpenDispute, by: Attribution, act_id: str) -> None:
    """Somebody says that the screen is wrong."""
    round_id = act.round_id or session.procedure.table.memory.rounds
    if not session.round_rows(round_id):
        raise RoundUnknown(f"the record has no round {round_id}")
    row, serial = session.next_row, session.state.device.serial
    session.row("open_dispute", session.actor(by), {"why": act.why, "serial": serial}, round_id=round_id)
    session.state.disputes.append(OpenDispute(row, round_id, act.why))


def decide_dispute(session: "SessionStep", act: acts.DecideDispute, by: Attribution, act_id: str) -> None:
    """The floor decides."""
    found = next((each for each in session.state.disputes if each.row == act.row), None)
    if found is None:
        raise ActRefused(f"decide_dispute: row {act.row} opened no dispute, or it is decided")
    data: dict[str, Json] = {
        "row": act.row,
        "surveillance": act.surveillance,
        "decision": act.decision,
        "machine_wrong": act.machine_wrong,
    }
    session.row("decide_dispute", session.actor(by), data, round_id=found.round_id)
    session.state.disputes.remove(found)


# -- corrections --------------------------------------------------------------------------------


def propose_correction(
    session: "SessionStep", act: acts.ProposeCorrection, by: Attribution, act_id: str
) -> None:
    """The dealer says what a round really was; its settlement is computed again."""
    told = corrected(session.rules, session.round_rows(act.round_id), act)
    actor, row = session.actor(by), session.next_row
    proposed = d.CorrectionProposed(why=act.why, **told)
    session.row("propose_correction", actor, proposed.to_json(), round_id=act.round_id)
    kept = proposed.model_dump_json()
    session.state.corrections.append(ProposedCorrection(row, act.round_id, actor.person, actor.how, kept))


def confirm_correction(
    session: "SessionStep", act: acts.ConfirmCorrection, by: Attribution, act_id: str
) -> None:
    """The floor confirms; from now on the round is what it says."""
    found = _proposed(session, act)
    if found.dealer == by.who:
        raise ActRefused("confirm_correction: the person who proposed it cannot confirm it")
    told = d.CorrectionProposed.model_validate_json(found.told).to_json()
    data: dict[str, Json] = {**told, "dealer": found.dealer, "dealer_how": found.how, "counted": None}
    session.row("correct", session.actor(by), data, round_id=found.round_id)


def decline_correction(
    session: "SessionStep", act: acts.DeclineCorrection, by: Attribution, act_id: str
) -> None:
    """The floor declines; the round stays as it is."""
    found = _proposed(session, act)
    data: dict[str, Json] = {"row": act.row, "note": act.note}
    session.row("decline_correction", session.actor(by), data, round_id=found.round_id)


def _proposed(session: "SessionStep", act: Any) -> ProposedCorrection:
    found = next((each for each in session.state.corrections if each.row == act.row), None)
    if found is None:
        raise ActRefused(f"{act.NAME}: row {act.row} proposed no correction, or it is decided")
    session.state.corrections.remove(found)
    return found


HANDLERS: Mapping[type[Act], Callable[["SessionStep", Any, Attribution, str], None]] = {
    acts.Hold: hold,
    acts.Release: release,
    acts.OpenDispute: open_dispute,
    acts.DecideDispute: decide_dispute,
    acts.ProposeCorrection: propose_correction,
    acts.ConfirmCorrection: confirm_correction,
    acts.DeclineCorrection: decline_correction,
}
