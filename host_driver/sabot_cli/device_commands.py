"""Commands for one device: find it, show status and events, shuffle a deck, name its table."""

import contextlib
import dataclasses
import time
from enum import IntEnum
from typing import Any

import click
from rich.markup import escape
from rich.table import Table as Shown

from sabot_cli.at_table.lines_printer import fold_for
from sabot_cli.cli_context import CliContext, json_option
from sabot_cli.device_access import (
    DeviceOptions,
    device_options,
    open_device,
)
from sabot_cli.help_text import example
from sabot_cli.output import FAULT, IN_PROGRESS, NO_DEVICE, NOT_VERIFIED, OK, Output, plain, utc
from sabot_cli.running_service import attached_client
from sabot_driver import Client, LostEvents, Notice, ReceivedEvent
from sabot_driver.device_values import DeviceStatus, meaning_of, name_of, parse_status
from sabot_driver.discovery import find_devices
from sabot_driver.errors import NotAllowed
from sabot_driver.serial_numbers import format_serial
from sabot_protocol.host.message_base import Message, astuple
from sabot_protocol.host.messages import (
    DeckCounted,
    FaultRaised,
    Forbidden,
    IdentityFlag,
    Shuffle,
    ShufflerChanged,
    ShufflerState,
    StatusFlag,
    StatusReport,
)
from sabot_serve.service_client import ServiceClient

SECONDS = click.FloatRange(min=0, min_open=True)
QUIET_S = 0.5  # a device that has told nothing for so long has told everything
LONGEST_BACKLOG_S = 5.0
ATTACHED_POLL_S = 0.2
SHUFFLE_S = 180.0

pass_state = click.make_pass_decorator(CliContext)


@click.command(epilog=example("sabot devices --device sim://"))
@json_option
@click.option("--device", "urls", metavar="URL", multiple=True, help="ask here too (repeatable)")
@pass_state
def devices(state: CliContext, urls: tuple[str, ...]) -> int:
    """Find devices, and ask each who it is.

    Exit codes: 0 at least one answers, 1 the file of tables is damaged, 2 usage, 3 no device.
    """
    output = state.output
    with output.busy("asking who is there"):
        found = find_devices() + find_devices(list(urls))
        for entry in state.user_files.tables().values():
            if entry.url not in [each.url for each in found]:
                found += find_devices([entry.url])
    for each in found:
        about = each.identity
        if about is None:
            assert each.error is not None
            output.tell(
                "device",
                f"{each.url}  [red]{each.error}[/red]",
                url=each.url,
                serial=None,
                error=type(each.error).__name__,
                message=str(each.error),
                advice=each.error.advice,
            )
            continue
        serial = format_serial(about.serial)
        label = "[bold yellow]SIMULATOR[/bold yellow]  " if each.simulator else ""
        new = "" if about.flags & IdentityFlag.PROVISIONED else ", new: it has no key yet"
        output.tell(
            "device",
            label + escape(f"{each.url}  {serial}  {about.model} {about.version}{new}"),
            url=each.url,
            serial=serial,
            model=about.model,
            version=about.version,
            protocol=[about.major, about.minor],
            provisioned=bool(about.flags & IdentityFlag.PROVISIONED),
            simulator=each.simulator,
        )
    if not found:
        output.tell("none", "No device was found. Check cable and power; 'sabot doctor' looks further.")
        return NO_DEVICE
    return OK


def status_fields(report: StatusReport) -> dict[str, Any]:
    """A status as JSON has it."""
    now = parse_status(report)
    return {
        "shuffler": name_of(now.shuffler),
        "shoe": name_of(now.shoe),
        "fault": None if now.fault is None else name_of(now.fault),
        "round_id": now.round_id,
        "stack": now.stack,
        "round_open": now.round_open,
        "owned": now.owned,
        "clock": name_of(now.clock),
        "utc_s": report.utc_s or None,
        "uptime_s": now.uptime_s,
    }


def tell_status(output: Output, serial: str, report: StatusReport) -> None:
    """A status, for a person or a program."""
    if not output.as_json:
        shown = Shown(show_header=False, box=None, pad_edge=False)
        for name, words in status_words(parse_status(report)):
            shown.add_row(name, words)
        output.console.print(shown)
    output.tell("status", None, serial=serial, **status_fields(report))


def status_words(now: DeviceStatus) -> list[tuple[str, str]]:
    """A status in words and local time: each line's name, and what it says (rich markup)."""
    if now.round_id is None:
        game = "none yet"
    elif now.round_open:
        game = f"{now.round_id} is open, {now.stack} stack{'' if now.stack == 1 else 's'} dealt"
    else:
        game = f"none is open; the newest is {now.round_id}"
    moment = "not set" if now.at is None else now.at.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    return [
        ("shuffler", _state_words(now.shuffler)),
        ("shoe", _state_words(now.shoe)),
        ("fault", "none" if now.fault is None else f"[red]{_state_words(now.fault)}[/red]"),
        ("round", game),
        ("owner", "a host owns the device" if now.owned else "no host owns the device"),
        ("clock", f"{moment} ({meaning_of(now.clock)})"),
        ("running", duration(now.uptime_s)),
    ]


def _state_words(state: IntEnum | int) -> str:
    return f"{name_of(state).replace('_', ' ')}: {meaning_of(state)}"


def duration(seconds: int) -> str:
    """A length of time in its two largest units."""
    for unit, size, lesser, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if seconds >= size:
            return f"{seconds // size} {unit} {seconds % size // part} {lesser}"
    return f"{seconds} s"


@click.command(epilog=example("sabot status --device sim://"))
@device_options
@pass_state
def status(state: CliContext, /, options: DeviceOptions) -> int:
    """How a device is at this moment, as an observer or by the program that runs its table.

    Exit codes: 0 done, 2 usage, 3 no device, 4 several devices, 5 not verified.
    """
    attached = attached_client(state, options)
    if attached is not None:
        _say_attached(state.output, attached)
        tell_status(state.output, str(attached.about["serial"]), attached.status())
        return OK
    with open_device(state, options, owner=False) as client:
        serial = format_serial(client.identity.serial)
        tell_status(state.output, serial, client.status(options.timeout))
    return OK


def _say_attached(output: Output, attached: ServiceClient) -> None:
    """Which device it is, and who owns it."""
    about = attached.about
    output.simulator = bool(about["simulator"])
    if not output.as_json:
        label = "[bold yellow]SIMULATOR[/bold yellow]  " if about["simulator"] else ""
        words = f"{about['model']} {about['firmware']}, {about['serial']}, at {about['url']}"
        output.console.print(f"{label}{escape(words)}, which process {attached.at.pid} owns")


def message_fields(message: Message) -> dict[str, Any]:
    """A message's fields as JSON has them."""
    names = [each.name for each in dataclasses.fields(message)]  # type: ignore[arg-type]
    return dict(zip(names, map(plain, astuple(message)), strict=True))


def event_fields(event: ReceivedEvent | LostEvents) -> dict[str, Any]:
    """An event as JSON has it."""
    if isinstance(event, LostEvents):
        return {
            "name": event.name,
            "reason": plain(event.reason),
            "size": event.size,
            "after": list(event.after),
            "before": list(event.before),
        }
    fields = {} if event.message is None else message_fields(event.message)
    return {
        "name": event.name,
        "boot": event.boot_id,
        "n": event.n,
        "ticks_ms": event.ticks_ms,
        "device_utc": None if event.at is None else utc(event.at),
        "clock": plain(event.quality),
        "fields": fields,
    }


def tell_event(
    output: Output, event: ReceivedEvent | LostEvents, /, dated: bool = False, **more: Any
) -> None:
    """One event, for a person (with its date, if asked for) or a program (with more fields)."""
    fields = {**more, **event_fields(event)}
    if isinstance(event, LostEvents):
        size = "an unknown number of" if event.size is None else str(event.size)
        output.tell("device_event", f"[red]{size} events are lost ({fields['reason']})[/red]", **fields)
        return
    moment = (event.at or event.received).astimezone().strftime("%Y-%m-%d %H:%M:%S" if dated else "%H:%M:%S")
    words = " ".join(f"{name}={value}" for name, value in fields["fields"].items())
    style = "red" if isinstance(event.message, FaultRaised) else "bold"
    text = fold_for(output, f"{moment}  {event.boot_id}/{event.n:<5} {event.name} {words}".rstrip())
    output.tell("device_event", text.replace(event.name, f"[{style}]{event.name}[/{style}]", 1), **fields)


def _newest(client: Client) -> int:
    """The last event that the device had already told when we came: those come first, one after the other."""
    newest, ends = -1, time.monotonic() + LONGEST_BACKLOG_S
    while client.loop.rows != newest and time.monotonic() < ends:
        newest = client.loop.rows
        time.sleep(QUIET_S)
    return newest


@click.command(epilog=example("sabot watch --seconds 1 --device sim://"))
@device_options
@click.option("--seconds", type=SECONDS, default=None, help="stop after so long; without it, Ctrl-C does")
@click.option("--all", "everything", is_flag=True, help="begin with what the device still has")
@pass_state
def watch(state: CliContext, /, seconds: float | None, everything: bool, options: DeviceOptions) -> int:
    """Show events as they come, as an observer or by the program that runs the table.

    Exit codes: 0 done, 2 usage, 3 no device, 4 several devices, 5 not verified.
    """
    output = state.output
    attached = attached_client(state, options)
    if attached is not None:
        return _watch_attached(output, attached, seconds, everything)
    with open_device(state, options, owner=False) as client:
        client.listen(lambda notice: _tell_notice(output, notice))
        tell_status(output, format_serial(client.identity.serial), client.status(options.timeout))
        after = 0 if everything else _newest(client)
        began = time.monotonic()
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                left = None
                if seconds is not None:
                    left = seconds - (time.monotonic() - began)
                    if left <= 0:
                        break
                for event in client.events(after, timeout=1.0 if left is None else min(left, 1.0)):
                    after = event.id
                    tell_event(output, event)
    return OK


def _watch_attached(output: Output, attached: ServiceClient, seconds: float | None, everything: bool) -> int:
    """Show the events of a device that another process owns."""
    _say_attached(output, attached)
    tell_status(output, str(attached.about["serial"]), attached.status())
    ends = None if seconds is None else time.monotonic() + seconds
    up = True
    after: int | None = 0 if everything else None
    with contextlib.suppress(KeyboardInterrupt):
        while ends is None or time.monotonic() < ends:
            events, newest, linked = attached.device_events(after)
            for event in events:
                tell_event(output, event)
            after = events[-1].id if events else newest if after is None else after
            if linked != up:
                up, words = linked, "the device answers" if linked else "the device does not answer"
                output.tell("link", f"[dim]{words}[/dim]", kind="up" if linked else "down", text=words)
            if not events:
                time.sleep(ATTACHED_POLL_S)
    return OK


def _tell_notice(output: Output, notice: Notice) -> None:
    output.tell("link", f"[dim]{notice.text}[/dim]", kind=notice.kind, text=notice.text)


@click.command(epilog=example("sabot shuffle 1 --table BAC-07"))
@device_options
@click.argument("deck_id", type=click.IntRange(1, 0xFFFFFFFF))
@pass_state
def shuffle(state: CliContext, /, deck_id: int, options: DeviceOptions) -> int:
    """Have a registered deck shuffled, and wait for its count.

    Exit codes: 0 all counted, 1 refused, 2 usage, 3 no device, 5 not proved, 6 busy, 7 the machine stopped.
    """
    output = state.output
    with open_device(state, options, owner=True) as client:
        now = client.status(options.timeout)
        if now.flags & StatusFlag.ROUND_OPEN and now.shuffler != ShufflerState.IDLE:
            output.tell("busy", "A round is open and the shuffler half is busy.", **status_fields(now))
            return IN_PROGRESS
        here = client.loop.rows
        try:
            begun = client.ask(Shuffle(deck_id), options.timeout)
        except NotAllowed as error:
            if error.reason is Forbidden.NO_SUCH_DECK:
                error.advice = "Register decks first: 'sabot play' does so when it opens a table."
            raise
        output.tell(
            "shuffle_begun", f"shuffle {begun.shuffle_id} begun", shuffle_id=begun.shuffle_id, deck_id=deck_id
        )
        with output.busy("shuffling"):
            for event in client.events(here, timeout=SHUFFLE_S):
                told = event.message if isinstance(event, ReceivedEvent) else None
                if isinstance(told, DeckCounted) and told.shuffle_id == begun.shuffle_id:
                    right = told.count == told.expected
                    colour = "green" if right else "red"
                    output.tell(
                        "shuffle",
                        f"[{colour}]{told.count} of {told.expected} cards[/{colour}]",
                        shuffle_id=told.shuffle_id,
                        deck_id=deck_id,
                        count=told.count,
                        expected=told.expected,
                    )
                    return OK if right else NOT_VERIFIED
                if isinstance(told, FaultRaised):
                    tell_event(output, event)
                    return FAULT
                if isinstance(told, ShufflerChanged) and told.state is ShufflerState.IDLE:
                    break
    output.tell("shuffle", "[red]The count was not proved.[/red]", deck_id=deck_id, count=None, expected=52)
    return NOT_VERIFIED
