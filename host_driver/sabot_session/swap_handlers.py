"""What the acts about another machine or table PC do. Numbers of rounds and packs continue."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sabot_session import swap_acts as acts
from sabot_session.act_base import Act
from sabot_session.device_side import CARDS_OUT
from sabot_session.outcomes import ActRefused
from sabot_session.rows import Json
from sabot_session.session_state import DeviceState, InstalledPc
from sabot_table.errors import RuleViolation
from sabot_table.procedure import Attribution

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep


def install_machine(session: "SessionStep", act: acts.InstallMachine, by: Attribution, act_id: str) -> None:
    """Service says which machine stands here now."""
    stranger = _stranger(session, act)
    session.row("install_machine", session.actor(by), {"serial": stranger.serial})
    stranger.installed_by = by.who


def swap_machine(session: "SessionStep", act: acts.SwapMachine, by: Attribution, act_id: str) -> None:
    """From now on the table plays with the other machine. What it says of itself is asked for."""
    stranger, table, before = _stranger(session, act), session.procedure.table, session.state.device
    if not stranger.installed_by:
        raise ActRefused("swap_machine: service has not said that this machine is installed")
    if table.state in (*CARDS_OUT, "betting"):
        what, do = "another machine in a round", "void the round first, or give the bets back"
        raise RuleViolation(what, table.clause("identify"), do)
    data: dict[str, Json] = {
        "before": before.serial,
        "after": stranger.serial,
        "service": stranger.installed_by,
    }
    session.row("swap_machine", session.actor(by), data)
    session.state.outbox = []  # the machine before answers no more
    session.state.device = DeviceState(doubtful=[each.pack_id for each in table.packs()])
    session.machine_changed(stranger.journal_at)
    session.machine.link(stranger.up, stranger.serial, stranger.memory_id, stranger.model)
    if session.state.round is not None:
        session.state.round.device_done = True
    session.state.stranger = None


def _stranger(session: "SessionStep", act: Any) -> Any:
    found = session.state.stranger
    if found is None or found.serial != act.serial:
        raise ActRefused(f"{act.NAME}: no machine {act.serial} answers here")
    return found


def install_pc(session: "SessionStep", act: acts.InstallPc, by: Attribution, act_id: str) -> None:
    """Service says which record this one continues; only in a record without rounds, at a closed table."""
    table = session.procedure.table
    if table.memory.highest_pack or table.state != "closed":  # the machine may tell of rounds before
        raise ActRefused("install_pc: this record has begun already")
    data: dict[str, Json] = {"before": act.before, "rows": act.rows, "round_id": act.round_id}
    session.row("install_pc", session.actor(by), data)
    session.state.installed_pc = InstalledPc(act.before, act.rows, act.round_id, by.who)


def swap_pc(session: "SessionStep", act: acts.SwapPc, by: Attribution, act_id: str) -> None:
    """Rounds are numbered on from the record before."""
    found = session.state.installed_pc
    if found is None:
        raise ActRefused("swap_pc: service has not said which record this one continues")
    data: dict[str, Json] = {
        "before": found.before,
        "rows": found.rows,
        "round_id": found.round_id,
        "service": found.service,
    }
    session.row("swap_pc", session.actor(by), data)
    session.procedure.table.number_after(found.round_id)
    session.state.installed_pc = None


HANDLERS: Mapping[type[Act], Callable[["SessionStep", Any, Attribution, str], None]] = {
    acts.InstallMachine: install_machine,
    acts.SwapMachine: swap_machine,
    acts.InstallPc: install_pc,
    acts.SwapPc: swap_pc,
}
