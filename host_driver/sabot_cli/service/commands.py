"""``sabot service``: self-test, sensors, jog, calibration, wear, log, emptying, out of order, bring-up."""

import time
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table as Shown

from sabot_cli.cli_context import CliContext, verbose_option
from sabot_cli.device_access import DeviceOptions, device_options, open_device
from sabot_cli.device_commands import message_fields, tell_event
from sabot_cli.help_text import Group, example
from sabot_cli.output import FAULT, NOT_VERIFIED, OK, Output, plain, utc
from sabot_cli.service import bring_up as work
from sabot_cli.service.jogging import MOST_STEP_S, jog_by_keys, jog_step
from sabot_cli.service.machine_work import (
    Technician,
    await_self_test,
    service_key_option,
    technician,
    tell_self_test,
)
from sabot_cli.service.sensors_screen import tell_sensors, watch_sensors
from sabot_cli.terminal_keys import at_terminal
from sabot_cli.written_files import check_writable, write_text
from sabot_driver import ReceivedEvent
from sabot_driver.calibration import GUIDES, LIMITS_UM, read_calibration, value_before
from sabot_driver.device_log import AnyRow, DroppedRows, LogRow, read_log
from sabot_driver.device_values import WearReading, meaning_of, name_of, parse_wear
from sabot_driver.jogging import ROLLER_OF, read_sensors
from sabot_driver.journal_reader import read_entries
from sabot_driver.roller_trends import trends
from sabot_protocol.host.messages import (
    Calibrate,
    Calibration,
    Emptied,
    EmptyMachine,
    FaultRaised,
    Locate,
    MarkOutOfOrder,
    Part,
    ReturnToService,
    RollerTimes,
    SelfTest,
    Sensor,
    ShoeChanged,
    ShoeState,
    Wear,
)

pass_state = click.make_pass_decorator(CliContext)
PARTS = {name_of(each): each for each in Part}
CALIBRATIONS = {name_of(each): each for each in Calibration}


@click.group(cls=Group, epilog=example("sabot service self-test --device sim://"))
@verbose_option
def service() -> None:
    """What a technician does: test, look, move, calibrate.

    Exit codes: 0 ok, 1 refused, 2 usage, 3 no device, 4 several devices, 5 a wrong key or a value outside its
    limit, 6 another host owns the device, 7 a fault or a failed test. A machine takes --service-key FILE; an
    emulated device of this computer has its key here.
    """


@service.command("self-test", epilog=example("sabot service self-test --device sim://"))
@device_options
@service_key_option
@pass_state
def self_test(state: CliContext, /, service_key: Path | None, options: DeviceOptions) -> int:
    """Test both halves, and say the level of each switch.

    The machine must be idle and empty, its doors closed.

    Exit codes: 0 passed, 1 refused, 2 usage, 3 no device, 5 not verified, 6 in use, 7 it failed.
    """
    with technician(state, options, service_key) as who:
        here = who.client.loop.rows
        with state.output.busy("testing"):
            who.client.ask(SelfTest(), who.timeout, who.credential)
            result = await_self_test(who.client, here)
        well = tell_self_test(state.output, result, who.sensors())
    state.output.tell(
        "self_test", "[green]all is well[/green]" if well else "[red]not all is well[/red]", ok=well
    )
    return OK if well else FAULT


@service.command(epilog=example("sabot service sensors --once --device sim://"))
@device_options
@click.option("--once", is_flag=True, help="read them once, without the screen")
@pass_state
def sensors(state: CliContext, /, once: bool, options: DeviceOptions) -> int:
    """Show every sensor by name, live.

    It takes no key of a person and may run while the table plays: it is an observer's view. With --json, or
    without a terminal, the sensors are read once.

    Exit codes: 0 done, 2 usage, 3 no device, 4 several devices, 5 not verified.
    """
    with open_device(state, options, owner=False) as client:
        if once or state.output.as_json or not at_terminal():
            tell_sensors(state.output, read_sensors(client, options.timeout))
            return OK
        seen = watch_sensors(state.output.console, lambda: read_sensors(client, options.timeout))
    changed = [f"{name_of(each)} {times}" for each, times in seen.changes.items() if times]
    state.output.tell("changes", "changes seen: " + (", ".join(changed) or "none"))
    return OK


@service.command(epilog=example("sabot service jog feed forward --seconds 0.2 --device sim://"))
@device_options
@service_key_option
@click.argument("part", type=click.Choice(list(PARTS)))
@click.argument("direction", type=click.Choice(["forward", "back"]), required=False)
@click.option(
    "--seconds", type=click.FloatRange(0.05, MOST_STEP_S), default=MOST_STEP_S, show_default=True,
    help="how long one step of a roller lasts",
)  # fmt: skip
@click.option("--to", "to_um", type=click.IntRange(0, 140_000), metavar="UM", help="where the elevator goes")
@pass_state
def jog(
    state: CliContext,
    /,
    part: str,
    direction: str | None,
    seconds: float,
    to_um: int | None,
    service_key: Path | None,
    options: DeviceOptions,
) -> int:
    """Move one part: by keys, or one step forward or back.

    Without a direction each press of an arrow key is one step, and any key stops a roller. A roller turns
    only while this program renews its lease; it stops 250 ms after the program dies. Forward closes the
    gripper and sends carriage and pusher out; back brings them home. The machine is in service meanwhile and
    tests itself afterwards.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 5 not verified, 6 in use, 7 the machine stopped.
    """
    chosen = PARTS[part]
    if (to_um is not None) != (chosen is Part.ELEVATOR and (direction is not None or not at_terminal())):
        raise click.UsageError(
            "--to UM says where the elevator goes: 'sabot service jog elevator forward --to 5000'"
        )
    if direction is None and (state.output.as_json or not at_terminal()):
        raise click.UsageError("say 'forward' or 'back': there is no terminal to press keys at")
    with technician(state, options, service_key) as who, who.in_service():
        if direction is None:
            steps = jog_by_keys(who, chosen, seconds)
        else:
            amount = to_um if to_um is not None else _amount(chosen, direction == "forward")
            steps = [jog_step(who, chosen, amount, seconds, _sleeps)]
            state.output.tell("step", steps[0].words)
        for each in steps:
            state.output.tell(
                "jogged", None, part=part, amount=each.amount, turned_um=each.turned_um, arrived=each.arrived,
                seconds=round(each.seconds, 3),
            )  # fmt: skip
    return FAULT if any(each.arrived is False for each in steps) else OK


def _sleeps(wait: float) -> bool:
    time.sleep(wait)
    return False


def _amount(part: Part, forward: bool) -> int:
    if part in ROLLER_OF:
        return 1 if forward else -1
    return int(forward)


@service.command(
    epilog=example("sabot service calibrate card_um 302 --device sim://"),
    context_settings={"ignore_unknown_options": True},  # a value may be negative
)
@device_options
@service_key_option
@click.argument("name", type=click.Choice(list(CALIBRATIONS)), required=False)
@click.argument("value", type=int, required=False)
@click.option("--undo", is_flag=True, help="set the value again that was there before")
@pass_state
def calibrate(
    state: CliContext,
    /,
    name: str | None,
    value: int | None,
    undo: bool,
    service_key: Path | None,
    options: DeviceOptions,
) -> int:
    """Show the calibration, or set one value of it.

    Without a name both values are shown with their dates. With a name and no value the program says how to
    measure it and asks. --undo sets the value before the present one, which the device's own log tells.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 4 several devices, 5 not verified, 6 in use.
    """
    output = state.output
    if name is None:
        if undo:
            raise click.UsageError("say which value to undo: blade_um or card_um")
        with open_device(state, options, owner=False) as client:
            for each in Calibration:
                now = read_calibration(client, each, options.timeout)
                output.tell(
                    "calibration", f"{name_of(each)}: {now.words}; {meaning_of(each)}",
                    name=name_of(each), value=now.value, set_at=None if now.at is None else utc(now.at),
                )  # fmt: skip
        return OK
    if undo and value is not None:
        raise click.UsageError("--undo takes no value: it sets the one before")
    what = CALIBRATIONS[name]
    with technician(state, options, service_key) as who:
        old = read_calibration(who.client, what, who.timeout)
        output.tell("was", f"{name} is {old.words}")
        new = value_before(who.client, old, who.timeout) if undo else value
        if new is None:
            new = _ask_value(state, what)
        lowest, highest = LIMITS_UM[what]
        if not lowest <= new <= highest:
            raise click.UsageError(f"{name} is {lowest} to {highest} um; {new} is outside")
        with who.in_service():
            who.client.ask(Calibrate(what, new), who.timeout, who.credential)
        now = read_calibration(who.client, what, who.timeout)
        output.tell(
            "calibrated",
            f"{name} is {now.words}; it was {old.value}. To take that back: "
            f"sabot service calibrate {name} --undo",
            name=name, old=old.value, value=now.value, old_set_at=None if old.at is None else utc(old.at),
            set_at=None if now.at is None else utc(now.at),
        )  # fmt: skip
    return OK if now.value == new else NOT_VERIFIED


def _ask_value(state: CliContext, what: Calibration) -> int:
    if state.output.as_json or not at_terminal():
        raise click.UsageError(f"give the value: 'sabot service calibrate {name_of(what)} VALUE'")
    lowest, highest = LIMITS_UM[what]
    state.output.console.print(GUIDES[what])
    asked: int = click.prompt(f"new {name_of(what)} in um", type=click.IntRange(lowest, highest))
    if not click.confirm(f"set {name_of(what)} to {asked}?"):
        raise click.Abort
    return asked


@service.command(epilog=example("sabot service wear --device sim://"))
@device_options
@pass_state
def wear(state: CliContext, /, options: DeviceOptions) -> int:
    """What the machine has counted of its own wear, with limits and drift.

    Drift is how long cards lately took against the drawing. Its limit is the rollers' tolerance of 5 %;
    outside of it the exit code is 5. Times of each roller come from the journal of this computer, if there is
    one.

    Exit codes: 0 within limits, 2 usage, 3 no device, 4 several devices, 5 past a limit or not verified.
    """
    output = state.output
    with open_device(state, options, owner=False) as client:
        read = parse_wear(client.ask(Wear(), options.timeout))
        journal = state.user_files.journal(client.identity.serial, client.simulator)
    shown = Shown(box=None, pad_edge=False)
    for title in ("counter", "value", "meaning"):
        shown.add_column(title, justify="right" if title == "value" else "left")
    for each in read:
        output.tell(
            "wear", None, name=each.name, value=each.value, unit=each.unit, meaning=each.meaning,
            limit=each.limit, drift_permille=each.drift_permille, ok=each.within_limit,
        )  # fmt: skip
        text = _wear_text(each)
        shown.add_row(each.name, text if each.within_limit else f"[red]{text}[/red]", each.meaning)
    if not output.as_json:
        output.console.print(shown)
    _tell_roller_times(output, journal)
    outside = [each.name for each in read if not each.within_limit]
    if outside:
        output.tell("limits", f"[red]outside its limit: {', '.join(outside)}[/red]", outside=outside)
    return NOT_VERIFIED if outside else OK


def _wear_text(each: WearReading) -> str:
    if each.unit == "ms":
        return f"{each.value / 3_600_000:.2f} h"
    if each.drift_permille is not None:
        return f"{each.drift_permille / 10:+.1f} % (±5 %)"
    return "not measured" if each.unit else str(each.value)


def _tell_roller_times(output: Output, journal: Path) -> None:
    """Mean time of a card at each roller: the first shuffle of the journal, and the last."""
    if not journal.exists():
        return
    for trend in trends(read_entries(journal, message=RollerTimes.ID)):
        first, last = trend.timings[0].mean_ms, trend.timings[-1].mean_ms
        if first is not None and last is not None:
            change = (last / first - 1) * 100
            output.tell(
                "roller_time",
                f"{trend.roller} roller: {last:.1f} ms a card in the last shuffle, "
                f"{first:.1f} ms in the first of this journal ({change:+.1f} %)",
                roller=trend.roller, first_ms=round(first, 3), last_ms=round(last, 3),
                shuffles=len(trend.timings),
            )  # fmt: skip


@service.command(epilog=example("sabot service log --last 5 --device sim://"))
@device_options
@click.option(
    "--from", "from_n", type=click.IntRange(0), help="the first row; without it, the last --last rows"
)
@click.option("--last", type=click.IntRange(1), default=50, show_default=True, help="how many rows")
@click.option("--evidence", is_flag=True, help="the ring of evidence, which has numbers of its own")
@pass_state
def log(state: CliContext, /, from_n: int | None, last: int, evidence: bool, options: DeviceOptions) -> int:
    """The device's own log in flash, decoded.

    It has at least the last 1,000 events, those too that no computer has received. Faults, counts, voids,
    credentials, settings, calibration, decks, reveals, presence and resets are kept once more in a ring that
    no other event touches: --evidence.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 4 several devices, 5 not verified, 6 in use.
    """
    with open_device(state, options, owner=True) as client:
        if from_n is None:
            rows = list(read_log(client, timeout=options.timeout, evidence=evidence))[-last:]
        else:
            found = read_log(client, from_n, options.timeout, evidence)
            rows = [row for _, row in zip(range(last), found, strict=False)]
    for row in rows:
        _tell_row(state.output, row)
    if not rows:
        state.output.tell("empty", "the log has no such row")
    return OK


def _tell_row(output: Output, row: AnyRow) -> None:
    if isinstance(row, DroppedRows):
        output.tell(
            "log_row", f"{row.n:>6}  [red]{row.count} rows were dropped[/red]", n=row.n, dropped=row.count
        )
        return
    if not isinstance(row, LogRow):
        output.tell(
            "log_row", f"{row.n:>6}  [red]damaged: {row.row.hex()}[/red]", n=row.n, damaged=row.row.hex()
        )
        return
    moment = "no clock yet       " if row.at is None else row.at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    fields: dict[str, Any] = {} if row.message is None else message_fields(row.message)
    words = " ".join(f"{name}={value}" for name, value in fields.items())
    output.tell(
        "log_row", f"{row.n:>6}  {moment}  [bold]{row.name}[/bold] {escape(words)}",
        n=row.n, name=row.name, boot=row.boot_id, ticks_ms=row.ticks_ms,
        device_utc=None if row.at is None else utc(row.at), clock=plain(row.quality), fields=fields,
    )  # fmt: skip


@service.command(epilog=example("sabot service empty --device sim://"))
@device_options
@service_key_option
@pass_state
def empty(state: CliContext, /, service_key: Path | None, options: DeviceOptions) -> int:
    """Eject every card inside; take them out as they come.

    The cards are proved by nothing. People have as long as they need; Ctrl-C stops watching, the machine goes
    on.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 5 not verified, 6 in use, 7 the machine stopped.
    """
    output = state.output
    with technician(state, options, service_key) as who:
        after = who.client.loop.rows
        who.client.ask(EmptyMachine(), who.timeout, who.credential)
        while True:
            for event in who.client.events(after, timeout=1.0):
                after = event.id
                told = event.message if isinstance(event, ReceivedEvent) else None
                if isinstance(told, Emptied):
                    output.tell(
                        "emptied", f"the machine is empty; {told.cards} cards came out", cards=told.cards
                    )
                    return OK
                if isinstance(told, FaultRaised):
                    tell_event(output, event)
                    return FAULT
                if isinstance(told, ShoeChanged) and told.state is ShoeState.STUB_WAITING:
                    output.tell("take", "[bold]take the cards out of the exit tray[/bold]", place="exit_tray")


@service.command(epilog=example("sabot service locate --seconds 5 --device sim://"))
@device_options
@click.option("--seconds", type=click.IntRange(1, 60), default=10, show_default=True)
@pass_state
def locate(state: CliContext, /, seconds: int, options: DeviceOptions) -> int:
    """Let the machine's lamp flash, to find it among others.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 4 several devices, 5 not verified, 6 in use.
    """
    with open_device(state, options, owner=True) as client:
        client.ask(Locate(seconds), options.timeout)
        state.output.tell("located", f"its lamp flashes for {seconds} s", seconds=seconds)
    return OK


@service.command("out-of-order", epilog=example("sabot service out-of-order --device sim://"))
@device_options
@service_key_option
@pass_state
def out_of_order(state: CliContext, /, service_key: Path | None, options: DeviceOptions) -> int:
    """Take the machine out of use until 'sabot service return'.

    It stays out of use over power cuts.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 4 several devices, 5 not verified, 6 in use.
    """
    with technician(state, options, service_key) as who:
        who.client.ask(MarkOutOfOrder(), who.timeout, who.credential)
    state.output.tell(
        "out_of_order", "the machine is out of order; 'sabot service return' brings it back", on=True
    )
    return OK


@service.command("return", epilog=example("sabot service return --device sim://BAC-07"))
@device_options
@service_key_option
@pass_state
def return_command(state: CliContext, /, service_key: Path | None, options: DeviceOptions) -> int:
    """Return a machine that was out of order to use; it tests itself.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 5 not verified, 6 in use, 7 the machine stopped.
    """
    with technician(state, options, service_key) as who:
        here = who.client.loop.rows
        with state.output.busy("testing"):
            who.client.ask(ReturnToService(), who.timeout, who.credential)
            result = await_self_test(who.client, here)
        well = tell_self_test(state.output, result, who.sensors())
    state.output.tell(
        "returned", "the machine is in use again" if well else "[red]not all is well[/red]", ok=well
    )
    return OK if well else FAULT


@service.command(
    "bring-up", epilog=example("sabot service bring-up --skip-hands --sheet sheet.txt --device sim://")
)
@device_options
@service_key_option
@click.option("--sheet", type=click.Path(path_type=Path, dir_okay=False), help="write the sheet to this file")
@click.option("--skip-hands", is_flag=True, help="leave the sensors that hands work to the printed sheet")
@pass_state
def bring_up(
    state: CliContext,
    /,
    sheet: Path | None,
    skip_hands: bool,
    service_key: Path | None,
    options: DeviceOptions,
) -> int:
    """Check a new machine step by step, and write a sheet to print.

    The steps are those of docs/porting.md: self-test, each sensor by hand, each roller, the elevator. Close
    the doors and take every card out first. What the program cannot do is left open on the sheet.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 5 not verified, 6 in use, 7 a step failed.
    """
    output = state.output
    if sheet is not None:
        check_writable(sheet)  # before an hour of work by hand, not after it
    by_hand = not skip_hands and not output.as_json and at_terminal()

    def tell(check: work.Check) -> None:
        mark = (
            "[dim]open[/dim]"
            if check.ok is None
            else "[green]ok  [/green]"
            if check.ok
            else "[red]NO  [/red]"
        )
        output.tell(
            "bring_up_check", f"{mark} {check.name}{': ' if check.found else ''}{check.found}",
            check=check.name, found=check.found, ok=check.ok,
        )  # fmt: skip

    made = work.BringUp(on_check=tell)
    with technician(state, options, service_key) as who:
        here = who.client.loop.rows
        who.client.ask(SelfTest(), who.timeout, who.credential)
        work.check_self_test(made, await_self_test(who.client, here))
        work.check_at_rest(made, who)
        if made.ok:
            with who.in_service():
                work.check_by_hand(made, who, lambda sensor: by_hand and _told(who, sensor))
                work.check_rollers(made, who)
                work.check_elevator(made, who)
        for name, command in work.LATER:
            made.add(name, command, None)
        text = work.sheet_text(made, who, who.client.url)
    if sheet is not None:
        write_text(sheet, text)
        output.tell("sheet", f"the sheet is {sheet}", file=str(sheet))
    output.tell("bring_up", None if sheet else "\n" + escape(text), ok=made.ok, open=sum(
        each.ok is None for each in made.checks
    ))  # fmt: skip
    return OK if made.ok else FAULT


def _told(who: Technician, sensor: Sensor) -> bool:
    """Say what to do by hand; whether the technician does it."""
    who.output.console.print(
        f"Work [bold]{name_of(sensor)}[/bold] and let it go: on means {meaning_of(sensor)}."
    )
    return click.confirm("Ready? (n leaves it open on the sheet)", default=True)
