"""Acts of a technician at the machine, and the stop that dealers have."""

from dataclasses import dataclass
from typing import Literal

from sabot_session.act_base import Act, D, F, S

PartName = Literal["feed", "insert", "deal", "elevator", "gripper", "shelf", "pusher"]
CalibrationName = Literal["blade_um", "card_um"]


@dataclass(frozen=True, slots=True)
class StopMachine(Act):
    """The dealer halts both halves, as if their doors had been opened; only while no round is open."""

    NAME = "stop_machine"
    ROLES = (D, F)


@dataclass(frozen=True, slots=True)
class BeginService(Act):
    """Service begins: nothing inside the machine is proved from now on, and its parts may be jogged."""

    NAME = "begin_service"
    ROLES = (S,)


@dataclass(frozen=True, slots=True)
class EndService(Act):
    """Service ends: the machine tests itself."""

    NAME = "end_service"
    ROLES = (S,)


@dataclass(frozen=True, slots=True)
class SelfTest(Act):
    """An idle, empty machine tests both halves."""

    NAME = "self_test"
    ROLES = (F, S)


@dataclass(frozen=True, slots=True)
class JogPart(Act):
    """Service moves one part by hand-held steps for a while; the device asks for the key at each step."""

    NAME = "jog"
    ROLES = (S,)

    part: PartName


@dataclass(frozen=True, slots=True)
class Calibrate(Act):
    """Service sets one calibration value; ``was`` is the value that the technician saw."""

    NAME = "calibrate"
    ROLES = (S,)

    what: CalibrationName
    value: int
    was: int


ACTS: tuple[type[Act], ...] = (StopMachine, BeginService, EndService, SelfTest, JogPart, Calibrate)
