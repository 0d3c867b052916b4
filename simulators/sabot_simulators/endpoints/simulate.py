"""``sabot simulate``: serves an emulated device and says where."""

import contextlib
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sabot_cli.cli_context import CliContext, json_option
from sabot_cli.device_commands import SECONDS
from sabot_cli.help_text import example
from sabot_cli.written_files import check_writable
from sabot_driver.errors import BadUrl, PortBusy
from sabot_simulators.device_settings import FIRMWARE, BadSetting, DeviceSettings
from sabot_simulators.emulated_device import EmulatedDevice, FirmwareMissing, emulate
from sabot_simulators.endpoints.control_socket import ControlSocket
from sabot_simulators.endpoints.device_server import DeviceServer, wire_ms
from sabot_simulators.endpoints.tcp import TcpListener
from sabot_simulators.mechanism.faults import KINDS

if TYPE_CHECKING:
    from sabot_simulators.saved_memory import MemoryFile

WAIT_S = 0.5
BOARDS = ("rp2040",)
"""Kinds of firmware that are a whole board."""


@click.command(epilog=example("sabot simulate --tcp 0 --seconds 1"))
@json_option
@click.option("--pty", "as_pty", is_flag=True, help="on a pseudo-terminal (the default where there is one)")
@click.option("--tcp", "port", type=click.IntRange(0, 65535), help="on this TCP port; 0 takes a free one")
@click.option("--link", type=click.Path(path_type=Path), help="a name for the pseudo-terminal")
@click.option("--seed", type=int, help="make it repeatable")
@click.option("--speed", default="1", show_default=True, help="machine seconds a second, or 'max'")
@click.option("--serial", default="SIM00001", show_default=True, help="eight characters, or 16 hexadecimal")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[@PLACE][:CARD|+SECONDS|~CHANCE]",
    help=f"of {', '.join(KINDS)}",
)
@click.option(
    "--capacity",
    type=click.Choice(("deck", "batch")),
    default="deck",
    show_default=True,
    help="what it holds: one deck, or a batch of up to eight",
)
@click.option("--no-reader", is_flag=True, help="without a card reader at the exit")
@click.option("--firmware", type=click.Choice(FIRMWARE), help=f"what it runs on; without, {FIRMWARE[0]}")
@click.option("--board", type=click.Choice(BOARDS), help="run the image of this board on an emulated one")
@click.option("--no-dealer", is_flag=True, help="nobody takes stacks and feeds the tray")
@click.option(
    "--control",
    type=click.Path(path_type=Path),
    help="a Unix socket for what hands do at the machine: 'presence on', 'door shoe open'",
)
@click.option(
    "--state",
    "memory",
    type=click.Path(path_type=Path, dir_okay=False),
    help="a file that keeps the device's memory over restarts; it is made if there is none",
)
@click.option("--seconds", type=SECONDS, help="stop after so long; without it, Ctrl-C does")
@click.pass_obj
def simulate(
    state: CliContext,
    as_pty: bool,
    port: int | None,
    link: Path | None,
    seed: int | None,
    speed: str,
    serial: str,
    faults: tuple[str, ...],
    capacity: str,
    no_reader: bool,
    firmware: str | None,
    board: str | None,
    no_dealer: bool,
    control: Path | None,
    memory: Path | None,
    seconds: float | None,
) -> int:
    """Serve an emulated device, and print its URL.

    On a pseudo-terminal, or with --tcp on a TCP port. Without --state each start is a new device: hosts give
    it keys anew, and the events of the old one are reported as lost.

    Exit codes: 0 ended, 1 a file cannot be used, 2 usage, 3 the port is in use.
    """
    if memory is not None and (board is not None or firmware not in (None, FIRMWARE[0])):
        raise click.UsageError(f"--state goes with --firmware {FIRMWARE[0]} only")
    if board is not None and firmware not in (None, board):
        raise click.UsageError(f"--board {board} has its own firmware; leave out --firmware")
    if link is not None and port is not None and not as_pty:
        raise click.UsageError("--link names a pseudo-terminal: add --pty, or leave out --tcp")
    dealer, kind = "none" if no_dealer else "auto", board or firmware or FIRMWARE[0]
    query = {"speed": [speed], "serial": [serial], "dealer": [dealer], "firmware": [kind]}
    query |= {"capacity": [capacity], "reader": ["none" if no_reader else "exit"]}
    if seed is not None:
        query["seed"] = [str(seed)]
    if faults:
        query["fault"] = list(faults)
    try:
        settings = DeviceSettings.from_query(query)
    except BadSetting as error:
        raise click.UsageError(str(error)) from error
    try:
        device = emulate(settings, wire_ms())
    except FirmwareMissing as error:
        raise click.UsageError(str(error)) from error
    kept = None if memory is None else _memory(memory, device)
    if seed is not None and kind == FIRMWARE[0] and (kept is None or not kept.loaded):
        _renew(device)
    served = DeviceServer(device)
    hands = None
    try:
        if control is not None:
            hands = _control(control, served)
        urls = []
        if port is not None:
            try:
                listener = TcpListener(port=port)
            except OSError as error:
                raise PortBusy(
                    f"TCP port {port}: {error.strerror}", "Another program has it; --tcp 0 takes a free port."
                ) from error
            served.listen(listener)
            urls.append(listener.url)
        if as_pty or port is None:
            urls.append(_terminal(served, link))
        output = state.output
        output.simulator = True
        with contextlib.suppress(KeyboardInterrupt):
            for url in urls:
                words = f"[bold yellow]SIMULATOR[/bold yellow]  {serial} at {url}"
                output.tell("serving", words, url=url, serial=serial)
            _wait(seconds)
    finally:
        if hands is not None:
            hands.close()
        served.close()
        device.close()
    return 0


def _memory(path: Path, device: EmulatedDevice) -> "MemoryFile":
    from sabot_simulators.python_device import WiredPythonDevice
    from sabot_simulators.saved_memory import BadMemoryFile, MemoryFile

    assert isinstance(device, WiredPythonDevice)
    check_writable(path)
    kept = MemoryFile(path, device)
    try:
        kept.open()  # kept.loaded says whether there was a file
    except BadMemoryFile as error:
        raise click.UsageError(f"--state {error}") from error
    return kept


def _renew(device: EmulatedDevice) -> None:
    from sabot_simulators.python_device import WiredPythonDevice

    assert isinstance(device, WiredPythonDevice)
    device.renew_memory_id()


def _wait(seconds: float | None) -> None:
    """Wait for the end: Ctrl-C, or so many seconds."""
    ends = None if seconds is None else time.monotonic() + seconds
    while ends is None or time.monotonic() < ends:
        threading.Event().wait(WAIT_S if ends is None else min(WAIT_S, max(ends - time.monotonic(), 0)))


def _control(path: Path, served: DeviceServer) -> ControlSocket:
    try:
        return ControlSocket(path, served)
    except OSError as error:
        raise click.UsageError(f"--control {path}: {error.strerror or error}") from error


def _terminal(served: DeviceServer, link: Path | None) -> str:
    try:
        from sabot_simulators.endpoints.pseudo_terminal import PseudoTerminal
    except ImportError as error:
        raise BadUrl("there are no pseudo-terminals on this system", "Use --tcp PORT.") from error
    try:
        terminal = PseudoTerminal(link)
    except OSError as error:
        raise click.UsageError(f"--link {link}: {error.strerror}") from error
    served.plug(terminal)
    return terminal.path
