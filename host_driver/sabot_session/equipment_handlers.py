"""What the acts about a failed machine do."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sabot_protocol.host import messages
from sabot_session import equipment_acts as acts
from sabot_session.act_base import Act
from sabot_table.procedure import Attribution, TableRole

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep


def report_unit_failed(
    session: "SessionStep", act: acts.ReportUnitFailed, by: Attribution, act_id: str
) -> None:
    """A half cannot be used; a round that it deals is void."""
    told = {"serial": session.state.device.serial, "unit": act.unit, "why": act.why}
    session.do(session.procedure.equipment.unit_failed, by, act.unit, told=told)


def mark_out_of_order(session: "SessionStep", act: acts.MarkOutOfOrder, by: Attribution, act_id: str) -> None:
    """A failed half is covered, or has its sign."""
    told = {"serial": session.state.device.serial, "unit": act.unit, "how": act.how}
    session.do(session.procedure.equipment.mark_out_of_order, by, act.unit, act.how, told=told)


def repaired(session: "SessionStep", act: acts.Repaired, by: Attribution, act_id: str) -> None:
    """A half may be used again."""
    told = {"serial": session.state.device.serial, "unit": act.unit, "why": act.why}
    session.do(session.procedure.equipment.repaired, by, act.unit, told=told)
    device = session.state.device  # people moved cards meanwhile: the machine is asked for everything
    session.machine.link(device.up, device.serial, device.memory_id, device.model)


def return_to_service(
    session: "SessionStep", act: acts.ReturnToService, by: Attribution, act_id: str
) -> None:
    """The machine tests itself, with the technician's credential."""
    session.row("return_to_service", session.actor(by), {}, session.procedure.table.clause("repaired"))
    session.queue(messages.ReturnToService(), TableRole.SERVICE, act_id)


HANDLERS: Mapping[type[Act], Callable[["SessionStep", Any, Attribution, str], None]] = {
    acts.ReportUnitFailed: report_unit_failed,
    acts.MarkOutOfOrder: mark_out_of_order,
    acts.Repaired: repaired,
    acts.ReturnToService: return_to_service,
}
