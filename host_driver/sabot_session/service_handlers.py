"""What a technician's acts and the dealer's stop do, and when they are offered."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sabot_protocol.host import messages
from sabot_protocol.host.messages import Calibration, ShoeState, ShufflerState
from sabot_session import service_acts as acts
from sabot_session.act_base import Act
from sabot_session.device_side import OVER
from sabot_session.outcomes import ActRefused
from sabot_session.rows import Json
from sabot_table.procedure import Attribution, TableRole

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep

SHUFFLER_SERVICEABLE = frozenset(
    {
        ShufflerState.IDLE,
        ShufflerState.JAMMED,
        ShufflerState.DOOR_OPEN,
        ShufflerState.UNPROVED,
        ShufflerState.OUT_OF_ORDER,
    }
)
SHOE_SERVICEABLE = frozenset(
    {
        ShoeState.EMPTY,
        ShoeState.BLOCKED,
        ShoeState.JAMMED,
        ShoeState.DOOR_OPEN,
        ShoeState.UNPROVED,
        ShoeState.OUT_OF_ORDER,
    }
)
"""Where service may begin, as the device has it (docs/modes.md)."""
SHUFFLER_STANDS = SHUFFLER_SERVICEABLE | {ShufflerState.SERVICE}
SHOE_STANDS = SHOE_SERVICEABLE | {ShoeState.SERVICE}
"""Halves that stand and begin nothing by themselves: a stop has nothing to stop."""


def round_is_open(session: "SessionStep") -> bool:
    """Whether cards of a round may still come out of the machine, or wagers lie for one."""
    table = session.procedure.table
    playing = table.memory.round
    if session.state.device.open_round:
        return True
    return playing is not None and (table.state not in OVER or playing.cards_in_device)


def in_service(session: "SessionStep") -> bool:
    """Whether both halves are in service."""
    device = session.state.device
    return (device.shuffler, device.shoe) == (ShufflerState.SERVICE, ShoeState.SERVICE)


def may_stop(session: "SessionStep") -> bool:
    """Whether the machine may be stopped: no round is open, and a half works, or has a pack to go on with."""
    device = session.state.device
    stands = device.shuffler in SHUFFLER_STANDS and device.shoe in SHOE_STANDS
    return device.up and not device.survey and not stands and not round_is_open(session)


def may_begin(session: "SessionStep") -> bool:
    """Whether service may begin now."""
    device = session.state.device
    fits = device.shuffler in SHUFFLER_SERVICEABLE and device.shoe in SHOE_SERVICEABLE
    return device.up and not device.survey and fits and not round_is_open(session)


def may_test(session: "SessionStep") -> bool:
    """Whether the machine can test itself: it is idle and empty."""
    device = session.state.device
    at_rest = (device.shuffler, device.shoe) == (ShufflerState.IDLE, ShoeState.EMPTY)
    return device.up and not device.survey and at_rest and not round_is_open(session)


def offered(session: "SessionStep") -> Iterator[type[Act]]:
    """The acts of this module that are possible now."""
    if session.state.stranger is not None:
        return
    if may_stop(session):
        yield acts.StopMachine
    if may_begin(session):
        yield acts.BeginService
    if may_test(session):
        yield acts.SelfTest
    if session.state.device.up and in_service(session):
        yield from (acts.EndService, acts.JogPart, acts.Calibrate)


def _check(session: "SessionStep", act: Act, why: str) -> None:
    if type(act) in set(offered(session)):
        return
    device = session.state.device
    if not device.up:
        why = "the link to the device is down"
    elif device.survey:
        why = "the device has not told its state yet; try again in a moment"
    raise ActRefused(f"{act.NAME}: {why}")


def stop_machine(session: "SessionStep", act: acts.StopMachine, by: Attribution, act_id: str) -> None:
    """Both halves halt. The device asks for no other proof than the table's."""
    _check(session, act, "a round is open, or the machine stands")
    session.row("stop_machine", session.actor(by))
    session.queue(messages.Stop())


def begin_service(session: "SessionStep", act: acts.BeginService, by: Attribution, act_id: str) -> None:
    """The device enters service."""
    _check(session, act, "a round is open, or cards inside are proved: empty the machine first")
    session.row("begin_service", session.actor(by))
    session.queue(messages.ServiceMode(1), TableRole.SERVICE, act_id)


def end_service(session: "SessionStep", act: acts.EndService, by: Attribution, act_id: str) -> None:
    """The device leaves service and tests itself."""
    _check(session, act, "the machine is not in service")
    session.row("end_service", session.actor(by))
    session.queue(messages.ServiceMode(0), TableRole.SERVICE, act_id)


def self_test(session: "SessionStep", act: acts.SelfTest, by: Attribution, act_id: str) -> None:
    """The device tests both halves."""
    _check(session, act, "the machine must be idle and empty, and no round open")
    session.row("self_test", session.actor(by))
    session.queue(messages.SelfTest(), by.role, act_id)


def jog(session: "SessionStep", act: acts.JogPart, by: Attribution, act_id: str) -> None:
    """On record before anything moves. The steps themselves carry the technician's key to the device."""
    _check(session, act, "the machine is not in service")
    session.row("jog", session.actor(by), {"part": act.part})


def calibrate(session: "SessionStep", act: acts.Calibrate, by: Attribution, act_id: str) -> None:
    """The device takes the value, or refuses one outside its limits."""
    _check(session, act, "the machine is not in service")
    data: dict[str, Json] = {"what": act.what, "value": act.value, "was": act.was}
    session.row("calibrate", session.actor(by), data)
    what = Calibration[act.what.upper()]
    session.queue(messages.Calibrate(what, act.value), TableRole.SERVICE, act_id)


HANDLERS: Mapping[type[Act], Callable[["SessionStep", Any, Attribution, str], None]] = {
    acts.StopMachine: stop_machine,
    acts.BeginService: begin_service,
    acts.EndService: end_service,
    acts.SelfTest: self_test,
    acts.JogPart: jog,
    acts.Calibrate: calibrate,
}
