"""What another machine or table PC asks of service and floor."""

from collections.abc import Iterator

from sabot_session import swap_acts as acts
from sabot_session.act_base import F, S
from sabot_session.needs import NeedForm, NeedKind
from sabot_session.session_state import SessionState


def swap_needs(state: SessionState) -> Iterator[NeedForm]:
    """A machine that is not this table's; a table PC that the floor has not confirmed."""
    stranger, kind = state.stranger, NeedKind.SWAP_MACHINE
    if stranger is not None:
        serial, details = stranger.serial, {"serial": stranger.serial, "before": state.device.serial}
        if stranger.installed_by:
            words = f"confirm machine {serial}, and that no card is left in {state.device.serial}"
            yield NeedForm(kind, (F,), words, "", (acts.SwapMachine.NAME,), "floor", details)
        else:
            words = f"machine {serial} answers, not {state.device.serial}: service says that it is installed"
            yield NeedForm(kind, (S,), words, "", (acts.InstallMachine.NAME,), "service", details)
    if state.installed_pc is not None:
        words = f"confirm this table PC: it continues record {state.installed_pc.before}"
        yield NeedForm(NeedKind.SWAP_PC, (F,), words, "", (acts.SwapPc.NAME,))
