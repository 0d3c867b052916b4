"""The sensors on a full screen, by name, as they change."""

from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.table import Table

from sabot_cli.output import Output
from sabot_cli.terminal_keys import QUIT_KEYS, KeyPresses
from sabot_driver.device_values import ROLLERS, SensorReading, SensorReadings
from sabot_protocol.host.messages import Sensor

REFRESH_S = 0.1


def tell_sensors(output: Output, read: SensorReadings) -> None:
    """All sensors once: one object in JSON, a line each for a person."""
    output.tell(
        "sensors",
        None,
        sensors={each.name: each.level for each in read.sensors},
        height_um=read.height_um,
        rollers_um=dict(zip(ROLLERS, read.rollers_um, strict=True)),
    )
    if not output.as_json:
        for each in read.sensors:
            output.console.print(f"{each.name:<14} {level_text(each):<6} {each.meaning}")
        for line in _measured(read):
            output.console.print(line)


def level_text(each: SensorReading) -> str:
    """A level for a person."""
    return "hidden" if each.level is None else "on" if each.level else "off"


class SensorChanges:
    """The readings of a while: the newest, and how often each sensor has changed."""

    def __init__(self, read: SensorReadings) -> None:
        self.now = read
        self.changes = dict.fromkeys(Sensor, 0)

    def add(self, read: SensorReadings) -> list[Sensor]:
        """The next readings; the sensors that changed."""
        changed = [
            each.sensor
            for each, before in zip(read.sensors, self.now.sensors, strict=True)
            if each.level is not None and before.level is not None and each.level != before.level
        ]
        for sensor in changed:
            self.changes[sensor] += 1
        self.now = read
        return changed


def screen(seen: SensorChanges) -> Table:
    """The screen: two columns of sensors, then height and encoders; 24 lines of 80 columns hold it."""
    shown = Table(box=None, pad_edge=False, expand=False, title="Sensors (q ends)", title_justify="left")
    for _ in range(2):
        shown.add_column("sensor", width=15, no_wrap=True)
        shown.add_column("level", width=12, no_wrap=True)
        shown.add_column("changes", width=8, no_wrap=True)
    readings = seen.now.sensors
    half = (len(readings) + 1) // 2
    for at in range(half):
        row: list[str] = []
        for each in readings[at::half]:
            colour = "dim" if each.level is None else "bold green" if each.level else "white"
            changes = seen.changes[each.sensor]
            row += [each.name, f"[{colour}]{level_text(each)}[/{colour}]", str(changes) if changes else ""]
        shown.add_row(*row)
    for line in _measured(seen.now):
        name, _, value = line.partition(":")
        shown.add_row(name, value.strip())
    return shown


def _measured(read: SensorReadings) -> list[str]:
    def mm(value: int | None) -> str:
        return "hidden" if value is None else f"{value / 1000:.2f} mm"

    lines = [f"height: {mm(read.height_um)}"]
    return lines + [f"{name} roller: {mm(um)}" for name, um in zip(ROLLERS, read.rollers_um, strict=True)]


def watch_sensors(console: Console, read: Callable[[], SensorReadings]) -> SensorChanges:
    """Show the sensors on the whole screen until a key ends it; what was seen."""
    seen = SensorChanges(read())
    with KeyPresses() as keys, Live(screen(seen), console=console, screen=True, auto_refresh=False) as live:
        while keys.read(REFRESH_S) not in QUIT_KEYS:
            seen.add(read())
            live.update(screen(seen), refresh=True)
    return seen
