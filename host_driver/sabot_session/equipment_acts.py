"""Acts about a machine that cannot be used (MD3 13.E)."""

from dataclasses import dataclass
from typing import Literal

from sabot_session.act_base import Act, D, F, S
from sabot_table.procedure.vocabulary import DeviceUnit


@dataclass(frozen=True, slots=True)
class ReportUnitFailed(Act):
    """People say that a half of the machine cannot be used. A round that it deals is void (MD3 13.D)."""

    NAME = "report_unit_failed"
    ROLES = (D, F)
    ACTION = "unit_failed"

    unit: DeviceUnit
    why: str = "it cannot be used"


@dataclass(frozen=True, slots=True)
class MarkOutOfOrder(Act):
    """A failed half is covered, or has its sign: only then another way to deal may be used."""

    NAME = "mark_out_of_order"
    ROLES = (D, F)
    ACTION = "mark_out_of_order"

    unit: DeviceUnit
    how: Literal["covered", "sign"]


@dataclass(frozen=True, slots=True)
class Repaired(Act):
    """The floor says that a half may be used again."""

    NAME = "repaired"
    ROLES = (F,)
    ACTION = "repaired"

    unit: DeviceUnit
    why: str = ""


@dataclass(frozen=True, slots=True)
class ReturnToService(Act):
    """Service has acted on a machine that is out of order; it tests itself and may be used again."""

    NAME = "return_to_service"
    ROLES = (S,)


ACTS: tuple[type[Act], ...] = (ReportUnitFailed, MarkOutOfOrder, Repaired, ReturnToService)
