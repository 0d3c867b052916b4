"""What several of the technician's commands do: prove who it is, begin and end service, await a self-test."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import DeviceOptions, open_device
from sabot_cli.output import Output
from sabot_cli.people_keys import KEY_FILE, person_credential
from sabot_driver import Client, Credential, ReceivedEvent
from sabot_driver.certified import Authority
from sabot_driver.device_values import SensorReadings, name_of, parse_status
from sabot_driver.errors import SabotError
from sabot_driver.jogging import read_sensors
from sabot_driver.self_test import SelfTestResult
from sabot_protocol.host.messages import Role, Sensor, ServiceMode, ShoeState, ShufflerState

SELF_TEST_S = 60.0
UNJUDGED = (Sensor.TRAY, Sensor.HEIGHT)  # cards in the tray and a stack's height are no defects

service_key_option = click.option("--service-key", type=KEY_FILE, help="the technician's key file")


class NoSelfTest(SabotError):
    """The device did not report the result of its self-test."""

    advice = "Look at its display, then at 'sabot status' and 'sabot service log'."


@dataclass
class Technician:
    """A device that this program owns, and what the technician authorises requests with."""

    client: Client
    credential: Authority
    output: Output
    timeout: float

    def sensors(self) -> SensorReadings:
        """All sensors now, by name."""
        return read_sensors(self.client, self.timeout)

    @contextmanager
    def in_service(self) -> Iterator[None]:
        """Service mode for as long as the context lasts; the machine then tests itself.

        A machine that is in service already stays in service.
        """
        now = parse_status(self.client.status(self.timeout))
        if (now.shuffler, now.shoe) == (ShufflerState.SERVICE, ShoeState.SERVICE):
            yield
            return
        self.client.ask(ServiceMode(1), self.timeout, self.credential)
        try:
            yield
        finally:
            here = self.client.loop.rows
            self.client.ask(ServiceMode(0), self.timeout, self.credential)
            tell_self_test(self.output, await_self_test(self.client, here), None)


@contextmanager
def technician(state: CliContext, options: DeviceOptions, key: Path | None) -> Iterator[Technician]:
    """The device as its owner, with the technician's credential checked before anything moves."""
    with open_device(state, options, owner=True) as client:
        credential = person_credential(state, client, Role.SERVICE, key)
        if isinstance(credential, Credential):
            credential.slot_among(client.key_slots(options.timeout))
        yield Technician(client, credential, state.output, options.timeout)


def await_self_test(client: Client, after: int, limit_s: float = SELF_TEST_S) -> SelfTestResult:
    """The results of both halves that come after a row; NoSelfTest if they do not come in time."""
    found = SelfTestResult()
    ends = time.monotonic() + limit_s
    while not found.complete:
        left = ends - time.monotonic()
        if left <= 0:
            raise NoSelfTest(f"the self-test did not end within {limit_s:.0f} s")
        for event in client.events(after, timeout=min(left, 1.0)):
            after = event.id
            if found.hear(event.message if isinstance(event, ReceivedEvent) else None):
                break
    return found


def tell_self_test(output: Output, result: SelfTestResult, sensors: SensorReadings | None) -> bool:
    """Say the result of each half and of each switch; whether all is well."""
    for half, passed in sorted(result.passed.items()):
        words = "[green]passed[/green]" if passed else "[red]failed[/red]"
        output.tell("half_tested", f"{name_of(half)} half: {words}", half=name_of(half), passed=passed)
    for fault in result.faults:
        output.tell(
            "fault",
            f"[red]{name_of(fault.fault).replace('_', ' ')} at {name_of(fault.place)}[/red]: {fault.steps}",
            fault=name_of(fault.fault),
            place=name_of(fault.place),
            steps=fault.steps,
        )
    if sensors is None:
        return result.ok
    well = True
    if not output.as_json:
        output.console.print("each switch, its level, and what 'on' means:")
    for each in sensors.sensors:
        judged = each.sensor not in UNJUDGED
        good = each.is_at_rest or not judged
        well = well and good
        mark = "[green]ok     [/green]" if good else "[red]differs[/red]"
        expected = "" if good else f" (expected {_level(each.at_rest)})"
        output.tell(
            "switch",
            f"{mark} {each.name:<14} {_level(each.level):<6} {each.meaning}{expected}",
            sensor=each.name,
            level=each.level,
            at_rest=each.at_rest,
            judged=judged,
            ok=good,
        )
    return result.ok and well


def _level(level: bool | None) -> str:
    return "hidden" if level is None else "on" if level else "off"


def wait_until(condition: Callable[[], bool], limit_s: float, pause_s: float = 0.05) -> bool:
    """Whether a condition became true within a time."""
    ends = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() >= ends:
            return False
        time.sleep(pause_s)
    return True
