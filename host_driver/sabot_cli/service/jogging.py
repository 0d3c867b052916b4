"""Jogging one part: a key press is one step. The program renews the roller's lease while the step lasts."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from sabot_cli.service.machine_work import Technician, wait_until
from sabot_cli.terminal_keys import QUIT_KEYS, KeyPresses
from sabot_driver.device_values import meaning_of
from sabot_driver.jogging import LEASE_S, MOST_ELEVATOR_UM, ROLLER_OF, RollerLease, has_arrived, turned_um
from sabot_protocol.host.messages import Jog, Part

MOST_STEP_S = 1.0
RENEW_S = 0.08  # a third of the device's lease of 250 ms
LAST_RENEWAL_S = MOST_STEP_S - 2 * LEASE_S
"""When a step's last renewal leaves at the latest. The device executes it within one lease or refuses it, so
the lease ends within the step, also if the order to stop is late or lost."""
AXIS_S = 3.0
ELEVATOR_STEP_UM = 1000


@dataclass(frozen=True, slots=True)
class JogStep:
    """One step of a part."""

    part: Part
    amount: int
    turned_um: int | None
    """How far a roller turned; None for an axis."""
    arrived: bool | None
    """Whether an axis arrived; None for a roller."""
    seconds: float

    @property
    def words(self) -> str:
        """The step for a person."""
        if self.turned_um is not None:
            return f"{meaning_of(self.part)} turned {self.turned_um / 1000:.1f} mm in {self.seconds:.2f} s"
        return f"{meaning_of(self.part)} {'arrived' if self.arrived else '[red]did not arrive[/red]'}"


def jog_step(
    who: Technician, part: Part, amount: int, seconds: float, stopped: Callable[[float], bool]
) -> JogStep:
    """One step. ``stopped`` waits so many seconds at most and says whether somebody wants to stop.

    A roller turns until the step is over or ``stopped`` says so. If this program dies, the roller stops when
    its lease ends.
    """
    return _turn(who, part, amount, seconds, stopped) if part in ROLLER_OF else _move(who, part, amount)


def _turn(
    who: Technician, part: Part, direction: int, seconds: float, stopped: Callable[[float], bool]
) -> JogStep:
    roller, lease = ROLLER_OF[part], RollerLease(who.client, part, direction, who.timeout)
    before = who.sensors().rollers_um[roller] or 0
    began = time.monotonic()
    lease.begin(who.credential)
    try:
        stands = time.monotonic() + LEASE_S  # at the latest
        ends = began + seconds
        while (left := min(ends, stands) - time.monotonic()) > 0 and not stopped(min(left, RENEW_S)):
            if time.monotonic() - began > LAST_RENEWAL_S:
                continue
            if not lease.renew():
                break  # it ended before this renewal: the roller stands
            stands = time.monotonic() + LEASE_S
    finally:
        lease.end()
    took = min(time.monotonic(), stands) - began
    return JogStep(part, direction, travelled_um(who, roller, before), None, took)


def travelled_um(who: Technician, roller: int, before: int) -> int:
    """How far a roller has turned since an earlier reading, once it stands."""
    last: list[int] = []

    def stands() -> bool:
        last.append(who.sensors().rollers_um[roller] or 0)
        return len(last) > 1 and last[-1] == last[-2]

    wait_until(stands, AXIS_S)
    return turned_um(before, last[-1])


def _move(who: Technician, part: Part, amount: int) -> JogStep:
    began = time.monotonic()
    who.client.ask(Jog(part, amount), who.timeout, who.credential)
    arrived = wait_until(lambda: has_arrived(who.sensors(), part, amount), AXIS_S)
    return JogStep(part, amount, None, arrived, time.monotonic() - began)


def jog_by_keys(who: Technician, part: Part, seconds: float) -> list[JogStep]:
    """Each press of an arrow is one step; any key stops a roller; q ends. All steps made."""
    steps: list[JogStep] = []
    position = 0
    with KeyPresses() as keys:
        who.output.console.print(
            f"Jogging {meaning_of(part)}: → or f one step forward, ← or b one step back, q ends.\n"
            "Any key stops a roller that turns. Keep hands out of the machine."
        )
        while (key := keys.read(3600.0)) not in QUIT_KEYS:
            direction = {"right": 1, "up": 1, "f": 1, "left": -1, "down": -1, "b": -1}.get(key or "")
            if direction is None:
                continue
            amount = direction
            if part is Part.ELEVATOR:
                position = min(max(position + direction * ELEVATOR_STEP_UM, 0), MOST_ELEVATOR_UM)
                amount = position
            elif part not in ROLLER_OF:
                amount = 1 if direction > 0 else 0
            step = jog_step(who, part, amount, seconds, lambda wait: keys.read(wait) is not None)
            steps.append(step)
            who.output.console.print(step.words)
    return steps
