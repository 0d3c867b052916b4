"""Bringing up a machine, in the order of docs/porting.md, and the sheet that says what was found."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from sabot_cli.service.jogging import AXIS_S, jog_step, travelled_um
from sabot_cli.service.machine_work import UNJUDGED, Technician, wait_until
from sabot_driver.device_values import name_of
from sabot_driver.jogging import ROLLER_OF
from sabot_driver.self_test import SelfTestResult
from sabot_driver.serial_numbers import format_serial
from sabot_protocol.host.messages import Component, ComponentQuery, Jog, Part, Sensor

LEASE_UM = 250_000  # a roller that is jogged once turns for 250 ms at 1,000 um a millisecond
TOLERANCE = 0.05
ELEVATOR_UM = 10_000
HEIGHT_NOISE_UM = 50
HAND_S = 60.0
BY_HAND = tuple(each for each in Sensor if each not in (Sensor.HEIGHT, Sensor.HOT, Sensor.SUPPLY_LOW))
"""What a technician covers, presses or opens by hand. Heat and supply need an instrument."""
LATER = (
    ("a deck is shuffled once: 52 by three counts, no retry", "sabot shuffle DECK"),
    ("the same deck is shuffled ten times: 52 each, no retry", "sabot shuffle DECK"),
)


@dataclass
class Check:
    """One line of the sheet."""

    name: str
    found: str
    ok: bool | None
    """None: not done by the program, to be filled in by hand."""


@dataclass
class BringUp:
    """The checks made so far."""

    checks: list[Check] = field(default_factory=list)
    on_check: Callable[[Check], None] = lambda check: None

    def add(self, name: str, found: str, ok: bool | None) -> None:
        """One more line."""
        self.checks.append(Check(name, found, ok))
        self.on_check(self.checks[-1])

    @property
    def ok(self) -> bool:
        """Whether nothing has failed."""
        return all(each.ok is not False for each in self.checks)


def check_self_test(sheet: BringUp, result: SelfTestResult) -> None:
    """Step 1: both halves have tested themselves."""
    for half, passed in sorted(result.passed.items()):
        faults = ", ".join(f"{name_of(each.fault)} at {name_of(each.place)}" for each in result.faults)
        sheet.add(
            f"self-test of the {name_of(half)} half", "passed" if passed else faults or "failed", passed
        )


def check_at_rest(sheet: BringUp, who: Technician) -> None:
    """Every sensor has its level of an empty machine with closed doors."""
    wrong = [
        each.name for each in who.sensors().sensors if not each.is_at_rest and each.sensor not in UNJUDGED
    ]
    sheet.add("every sensor is at its level of rest", ", ".join(wrong) or "all", not wrong)


def check_by_hand(
    sheet: BringUp, who: Technician, ask: Callable[[Sensor], bool], limit_s: float = HAND_S
) -> None:
    """Step 2: the technician works each sensor by hand; its bit follows, and only that one.

    ``ask`` tells the technician what to do and says whether that is to be done at all.
    """
    for sensor in BY_HAND:
        if ask(sensor):
            found, good = _follow(who, sensor, limit_s)
            sheet.add(f"{name_of(sensor)} follows the hand", found, good)
        else:
            sheet.add(f"{name_of(sensor)} follows the hand", "", None)


def _follow(who: Technician, sensor: Sensor, limit_s: float) -> tuple[str, bool]:
    """What one sensor did while the technician worked it, and whether that is as it should be."""
    before = who.sensors()
    others: set[str] = set()

    def changed() -> bool:
        now = who.sensors()
        for each, was in zip(now.sensors, before.sensors, strict=True):
            if each.level != was.level and each.sensor not in (sensor, Sensor.HEIGHT):
                others.add(each.name)
        return now[sensor].level != before[sensor].level

    followed = wait_until(changed, limit_s)
    back = followed and wait_until(lambda: not changed(), limit_s)
    found = "followed and came back" if back else "followed, stayed" if followed else "did not follow"
    if others:
        found += f"; also {', '.join(sorted(others))}"
    return found, back and not others


def check_rollers(sheet: BringUp, who: Technician) -> None:
    """Step 3: each roller turns one lease forward and one back; its encoder says how far."""
    for part, roller in ROLLER_OF.items():
        for direction, way in ((1, "forward"), (-1, "back")):
            before = who.sensors().rollers_um[roller] or 0
            who.client.ask(Jog(part, direction), who.timeout, who.credential)
            turned = travelled_um(who, roller, before)
            good = abs(turned * direction - LEASE_UM) <= TOLERANCE * LEASE_UM
            sheet.add(
                f"{name_of(part)} roller turns {way} for 250 ms",
                f"{turned / 1000:.1f} mm of 250.0 ±5 %",
                good,
            )


def check_elevator(sheet: BringUp, who: Technician) -> None:
    """Step 4: the elevator goes to 10 mm and home again; the height does not change."""
    height = who.sensors().height_um or 0
    up = jog_step(who, Part.ELEVATOR, ELEVATOR_UM, AXIS_S, lambda _: False)
    sheet.add(
        "elevator leaves its switch and arrives at 10 mm", "arrived" if up.arrived else "did not", up.arrived
    )
    change = abs((who.sensors().height_um or 0) - height)
    sheet.add("the height reading does not change", f"{change} um", change <= HEIGHT_NOISE_UM)
    down = jog_step(who, Part.ELEVATOR, 0, AXIS_S, lambda _: False)
    found = "elevator_home is on" if down.arrived else "elevator_home stayed off"
    sheet.add("elevator comes home", found, down.arrived)


def sheet_text(sheet: BringUp, who: Technician, url: str) -> str:
    """The sheet as text of 78 columns, to be printed, completed by hand and signed."""
    about = who.client.identity
    lines = [
        "BRING-UP SHEET",
        "",
        f"serial number   {format_serial(about.serial)}",
        f"model           {about.model} {about.version}",
        f"protocol        {about.major}.{about.minor}, schema {about.schema.hex()}",
    ]
    for component in Component:
        told = who.client.ask(ComponentQuery(component), who.timeout)
        lines.append(f"{name_of(component):<15} {told.version}")
        lines.append(f"  SHA-256 {told.sha256.hex()}")
    simulator = "  (SIMULATOR)" if who.client.simulator else ""
    lines += [
        f"connected at    {url}{simulator}",
        f"date            {datetime.now().astimezone().strftime('%Y-%m-%d %H:%M %Z')}",
        "",
    ]
    for number, each in enumerate(sheet.checks, 1):
        mark = "[ ]" if each.ok is None else "ok " if each.ok else "NO "
        lines.append(f"{number:>2}. {mark} {each.name}")
        if each.found:
            lines.append(f"        {each.found}")
    lines += ["", "technician      ____________________   signature ____________________", ""]
    return "\n".join(lines)
