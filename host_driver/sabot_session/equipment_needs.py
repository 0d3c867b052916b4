"""What a machine asks for that cannot be used (MD3 13.E)."""

from collections.abc import Iterator

from sabot_protocol.host.messages import ShoeState, ShufflerState
from sabot_session import equipment_acts as acts
from sabot_session.act_base import D, F, S
from sabot_session.needs import NeedForm, NeedKind
from sabot_session.session_state import DeviceState
from sabot_table.procedure.context import TableContext


def equipment_needs(table: TableContext, device: DeviceState, asked: bool) -> Iterator[NeedForm]:
    """A failed half is marked; service returns the machine. ``asked``: a request to return is under way."""
    clause = table.clause("mark_out_of_order")
    for unit, how in table.memory.units.items():
        if how == "failed":
            words = f"the {unit} cannot be used: cover it or put its sign on it"
            act = acts.MarkOutOfOrder.NAME
            details = {"unit": unit}
            yield NeedForm(NeedKind.MARK_OUT_OF_ORDER, (D, F), words, clause, (act,), unit, details)
    latched = device.shoe == ShoeState.OUT_OF_ORDER or device.shuffler == ShufflerState.OUT_OF_ORDER
    if latched and not asked:
        words = "the machine is out of order: service repairs it and returns it to use"
        yield NeedForm(NeedKind.OUT_OF_ORDER, (S,), words, clause, (acts.ReturnToService.NAME,))
