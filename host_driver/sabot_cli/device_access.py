"""The options that name a device, finding that device, and opening it."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlencode, urlsplit

import click
from rich.markup import escape

from sabot_cli.cli_context import CliContext, json_option
from sabot_cli.table_process import refuse_while_running
from sabot_driver import Client, connect
from sabot_driver.capturing_transport import CapturingTransport
from sabot_driver.clock import Clock
from sabot_driver.discovery import find_devices, only_device
from sabot_driver.error_mapping import wrong_kind
from sabot_driver.errors import BadUrl, CaptureIncomplete, PortBusy, SabotError
from sabot_driver.keyring import read_key, write_key
from sabot_driver.private_files import open_new
from sabot_driver.serial_numbers import format_serial, parse_serial
from sabot_driver.transports import Transport, is_simulator, transport_for
from sabot_driver.unsecured_exchange import UnsecuredExchange
from sabot_driver.user_files import TableEntry, UserFiles
from sabot_protocol.host.messages import Identity, IdentityFlag, Role
from sabot_protocol.wire_constants import KEY_SIZE

SIMULATED_PERSON = 1  # who has the keys of emulated devices


@dataclass(frozen=True)
class DeviceOptions:
    """The options of one command that say which device, and how it is spoken to."""

    device: str | None
    table: str | None
    capture: Path | None
    timeout: float
    simulator: bool = False


def table_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Names of tables that begin so, for the shell."""
    try:
        return [name for name in UserFiles().tables() if name.startswith(begun)]
    except SabotError:
        return []


timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(0.1, 600),
    default=10.0,
    show_default=True,
    metavar="S",
    help="the longest wait for one answer",
)


def device_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--device``, ``--table``, ``--simulator``, ``--capture``, ``--timeout``, ``--json``.

    The command gets all but the last as one argument, ``options``.
    """
    options = [
        click.option("--device", "device", metavar="URL", help="port, socket://, usb://SERIAL or sim://"),
        click.option(
            "--table",
            metavar="NAME",
            shell_complete=table_names,
            help="a table of this computer: see 'sabot table list'",
        ),
        click.option(
            "--simulator", is_flag=True, help="the device is one you emulate; not needed for sim://"
        ),
        click.option("--capture", type=click.Path(path_type=Path), help="write every frame to a pcapng file"),
        timeout_option,
    ]

    @wraps(command)
    def call(*args: Any, **given: Any) -> Any:
        names = [each.name for each in fields(DeviceOptions)]
        return command(*args, options=DeviceOptions(**{name: given.pop(name) for name in names}), **given)

    wrapped: Callable[..., Any] = call
    for option in reversed(options):
        wrapped = option(wrapped)
    return json_option(wrapped)


def find_device(state: CliContext, chosen: DeviceOptions) -> TableEntry:
    """Where the device is: as told, by the table's name, or the only one there is."""
    if chosen.device is not None and chosen.table is not None:
        raise click.UsageError("--device and --table exclude each other")
    if chosen.device is not None:
        if chosen.device in state.user_files.tables():
            name = chosen.device
            raise click.UsageError(f"'{name}' is a table, not a URL: use --table {name}")
        return TableEntry("", chosen.device, simulator=chosen.simulator or is_simulator(chosen.device))
    if chosen.table is not None:
        entry = state.user_files.table(chosen.table)
        if chosen.simulator and not entry.simulator:
            raise click.UsageError(f"the table '{entry.name}' has a machine, not a simulator")
        return entry
    return TableEntry("", only_device(find_devices()).url, simulator=chosen.simulator)


def identify_device(entry: TableEntry, timeout: float) -> Identity:
    """Who answers at a URL, without a session; `WrongDevice` if it is of another kind than expected."""
    with UnsecuredExchange(transport_for(entry.url), entry.url, Clock(), timeout) as asking:
        about = asking.identify()
    if entry.simulator != bool(about.flags & IdentityFlag.SIMULATOR):
        raise wrong_kind(entry.url, about.serial, not entry.simulator)
    return about


def is_emulator(url: str) -> bool:
    """Whether a URL makes an emulated device, whose settings are in its query."""
    parts = urlsplit(url)
    return parts.scheme == "sim" or (parts.scheme == "usb" and "backend=sim" in parts.query)


def with_settings(url: str, settings: list[tuple[str, str]]) -> str:
    """A URL of an emulated device with more settings."""
    if not settings:
        return url
    if not is_emulator(url):
        raise click.UsageError("--seed and --fault are for an emulated device (--device sim://)")
    return url + ("&" if urlsplit(url).query else "?") + urlencode(settings, safe="@:")


@contextmanager
def open_device(
    state: CliContext,
    chosen: DeviceOptions,
    *,
    owner: bool,
    settings: list[tuple[str, str]] | None = None,
    fill: bool = True,
) -> Iterator[Client]:
    """The device, for as long as the command needs it; labelled SIMULATOR if it is one.

    A new emulated device is given keys of people too, unless the caller does that (``fill``).
    """
    entry = find_device(state, chosen)
    url = with_settings(entry.url, settings or [])
    serial = None if entry.serial is None else parse_serial(entry.serial)
    with ExitStack() as stack:
        way: Transport = transport_for(url)
        if chosen.capture is not None:
            try:
                stream = open_new(chosen.capture)
            except OSError as error:
                advice = "Name a file that can be written, in a folder that exists."
                raise BadUrl(f"{chosen.capture}: {error.strerror or error}", advice) from error
            way = tap = CapturingTransport(way, stream, Clock.utc_us)
            stack.callback(_end_capture, tap, stream, chosen.capture)
        journal = _journal(state, url, entry.simulator) if owner else None
        how: dict[str, Any] = {
            "serial": serial,
            "keyring": state.user_files.keyring,
            "timeout": chosen.timeout,
        }
        how["simulator"] = entry.simulator
        try:
            client = connect(url, owner=owner, journal=journal, transport=way, **how)
        except BadUrl as error:
            if not settings:
                raise
            raise click.UsageError(str(error).removeprefix(f"{url}: ")) from error
        except PortBusy:
            refuse_while_running(state, entry)
            raise
        if client.is_new and client.simulator and fill:
            if not owner:
                client.close()
                client = connect(url, owner=True, transport=way, **how)
            with closing_on_error(client):
                provision_simulator_keys(state.user_files, client, chosen.timeout)
            if not owner:
                client.close()
                client = connect(url, owner=False, transport=way, **how)
        stack.enter_context(client)
        state.output.simulator = client.simulator
        if not state.output.as_json:
            label = "[bold yellow]SIMULATOR[/bold yellow]  " if client.simulator else ""
            about = client.identity
            serial_text = format_serial(about.serial)
            words = escape(f"{about.model} {about.version}, {serial_text}, at {url}")
            state.output.console.print(label + words)
        yield client


def _end_capture(tap: CapturingTransport, stream: BinaryIO, path: Path) -> None:
    """Close a capture's file; CaptureIncomplete if not everything is in it."""
    failure: Exception | None = tap.failure
    try:
        stream.close()
    except OSError as error:
        failure = failure or error
    if failure is not None or tap.missed:
        words = "" if failure is None else f": {failure}"
        raise CaptureIncomplete(f"{path}: {tap.missed} frames are missing from the capture{words}")


@contextmanager
def closing_on_error(client: Client) -> Iterator[None]:
    """Close a client if what is done with it fails."""
    try:
        yield
    except BaseException:
        client.close()
        raise


def provision_simulator_keys(user_files: UserFiles, client: Client, timeout: float) -> None:
    """Give a new emulated device the keys of its people: one key of ours, in a slot for each role."""
    path = user_files.floor_key(client.identity.serial)
    if not path.exists():
        write_key(path, os.urandom(KEY_SIZE))
    key = read_key(path)
    if client.key_slots(timeout).open:  # or somebody else has provisioned it at the same moment
        for role in (Role.FLOOR, Role.SERVICE, Role.LAB):
            client.set_key(role, key, SIMULATED_PERSON, timeout=timeout)


def _journal(state: CliContext, url: str, simulator: bool) -> "Callable[[bytes], Path] | None":
    """The journal on disk, but for an emulated device that lives only in this process."""
    if is_emulator(url):
        return None
    return lambda serial: state.user_files.journal(serial, simulator)
