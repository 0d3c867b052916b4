"""Acts about another machine or another table PC at a table. Service installs it, and the floor confirms."""

from dataclasses import dataclass

from sabot_session.act_base import Act, F, S


@dataclass(frozen=True, slots=True)
class InstallMachine(Act):
    """Service put another machine, a provisioned spare, at this table."""

    NAME = "install_machine"
    ROLES = (S,)

    serial: str


@dataclass(frozen=True, slots=True)
class SwapMachine(Act):
    """The floor confirms the machine that service installed, and that no card is left in the one before."""

    NAME = "swap_machine"
    ROLES = (F,)

    serial: str


@dataclass(frozen=True, slots=True)
class InstallPc(Act):
    """Service put another table PC here: it continues a record that it does not have.

    ``before`` is the id of that record, ``rows`` and ``round_id`` its newest row and round, as far as known.
    """

    NAME = "install_pc"
    ROLES = (S,)

    before: str
    rows: int
    round_id: int


@dataclass(frozen=True, slots=True)
class SwapPc(Act):
    """The floor confirms the table PC that service installed."""

    NAME = "swap_pc"
    ROLES = (F,)


ACTS: tuple[type[Act], ...] = (InstallMachine, SwapMachine, InstallPc, SwapPc)
