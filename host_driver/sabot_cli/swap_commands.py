"""``sabot table spares``, ``swap-machine`` and ``swap-pc``: another machine or another computer at a table.

Service says what was installed, the floor confirms it. The table keeps its name, and its rounds are numbered
on. A table's record stays one file, whatever machines it had (`TableEntry.record`).
"""

from dataclasses import dataclass, replace
from pathlib import Path

import click

from sabot_cli.at_table.one_act import ActingPerson, Step, acting_options, give_acts, own_table_for_acts
from sabot_cli.at_table.running_table import TablePlace
from sabot_cli.cli_context import CliContext, json_option
from sabot_cli.device_access import DeviceOptions, find_device, identify_device, table_names
from sabot_cli.help_text import example
from sabot_cli.output import OK
from sabot_driver.discovery import DiscoveredDevice, find_devices
from sabot_driver.errors import AmbiguousDevice, NoDevice, NotProvisioned, SabotError
from sabot_driver.serial_numbers import format_serial
from sabot_driver.user_files import TableEntry
from sabot_protocol.host.messages import IdentityFlag
from sabot_session.record import RecordReader
from sabot_session.record_opening import rules_in_play

pass_state = click.make_pass_decorator(CliContext)
PROVISION = (
    "Provision it first: 'sabot provision --device {}'. 'sabot table spares' lists those that are ready."
)


class CannotSwap(SabotError):
    """The machine or computer cannot be swapped; the text says why."""


# -- spares -------------------------------------------------------------------------------------


def spare_serials(state: CliContext) -> list[tuple[str, bool]]:
    """Serial numbers of devices that this computer has a key of and no table has; and whether emulated."""
    keyring = state.user_files.keyring
    used = {(each.serial, each.simulator) for each in state.user_files.tables().values()}
    found = [
        (path.stem, path.parent != keyring.folder)
        for path in sorted(keyring.folder.glob("**/*.key"))
        if "." not in path.stem
    ]
    return [each for each in found if each not in used]


@click.command("spares", epilog=example("sabot table spares"))
@json_option
@pass_state
def table_spares(state: CliContext) -> int:
    """Machines that are ready to be swapped in: provisioned here, and at no table.

    A spare must be connected when it is swapped in; emulated ones are not looked for.

    Exit codes: 0 done, 1 the file of tables is damaged.
    """
    spares = spare_serials(state)
    there = {
        format_serial(each.identity.serial): each.url for each in find_devices() if each.identity is not None
    }
    for serial, simulator in spares:
        url = None if simulator else there.get(serial)
        words = f"{serial}  {'emulated' if simulator else url or 'not connected'}"
        state.output.tell("spare", words, serial=serial, simulator=simulator, url=url)
    if not spares:
        words = "no spare is provisioned here; 'sabot provision --device URL' makes one ready"
        state.output.tell("spares", words, spares=0)
    return OK


def _only_spare(state: CliContext) -> DiscoveredDevice:
    """The only spare that is connected."""
    ready = {serial for serial, simulator in spare_serials(state) if not simulator}
    found = [
        each
        for each in find_devices()
        if each.identity is not None and format_serial(each.identity.serial) in ready
    ]
    if len(found) > 1:
        raise AmbiguousDevice([each.url for each in found])
    if not found:
        raise NoDevice(
            "no spare machine is connected",
            "Connect one that is provisioned ('sabot table spares'), or say where it is: --device URL.",
        )
    return found[0]


# -- another machine ----------------------------------------------------------------------------


@click.command("swap-machine", epilog=example("sabot table swap-machine BAC-07 --device URL --simulator"))
@acting_options
@click.argument("name", shell_complete=table_names)
@pass_state
def table_swap_machine(state: CliContext, /, name: str, options: DeviceOptions, acting: ActingPerson) -> int:
    """Put another machine, a provisioned spare, at a table; rounds are numbered on.

    Between rounds, with no card in the machine before. --device is where the new machine is; without it the
    only spare that is connected is taken. Service says that it is installed (--service-key), the floor
    confirms it (--floor-key); they may do so one after the other. Decks are received and registered anew.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 4 several spares, 5 not verified, 6 in use.
    """
    if options.table is not None:
        raise click.UsageError("the table is the first argument; --device is where the new machine is")
    files, entry = state.user_files, state.user_files.table(name)
    if entry.serial is None:
        raise CannotSwap(
            f"the table '{name}' has no machine yet", f"Use 'sabot table set {name} --device URL'."
        )
    new = find_device(state, options) if options.device else TableEntry("", _only_spare(state).url)
    about = identify_device(new, options.timeout)
    serial = format_serial(about.serial)
    _check_spare(state, entry, new, serial, bool(about.flags & IdentityFlag.PROVISIONED))
    place = TablePlace(name, files.table_record(entry))
    chosen = replace(options, device=new.url, simulator=new.simulator)
    steps = [Step("install_machine", {"serial": serial}), Step("swap_machine", {"serial": serial})]
    with own_table_for_acts(state, chosen, acting, place=place) as table:
        # An earlier run may have ended after one act or after both: what was done is not asked for again.
        stranger = table.run.read(lambda session: session.state.stranger)
        of_table = table.run.read(lambda session: session.state.device.serial)
        if stranger is not None and stranger.serial == serial and stranger.installed_by:
            steps = steps[1:]
        code = OK if of_table == serial else give_acts(state, table, acting, steps, options.timeout)
        swapped = table.run.read(lambda session: session.state.device.serial) == serial
    if not swapped:
        words = f"{name} still has {entry.serial}: the floor confirms {serial} with the same command"
        state.output.tell("swap_waits", words, name=name, serial=serial, before=entry.serial)
        return code
    files.set_table(TableEntry(name, new.url, serial, new.simulator, entry.record_name, entry.policy))
    words = f"{name} has {serial} at {new.url} now; {entry.serial} is a spare"
    state.output.tell("machine_swapped", words, name=name, url=new.url, serial=serial, before=entry.serial)
    return code


def _check_spare(
    state: CliContext, entry: TableEntry, new: TableEntry, serial: str, provisioned: bool
) -> None:
    """`CannotSwap` or `NotProvisioned` for a machine that cannot come to this table."""
    if new.simulator != entry.simulator:
        kinds = ("an emulated device", "a machine")
        raise CannotSwap(
            f"{entry.name} has {kinds[not entry.simulator]}, and {serial} is {kinds[not new.simulator]}"
        )
    others = [each.name for each in state.user_files.tables().values() if each.serial == serial]
    if entry.serial == serial:
        raise CannotSwap(
            f"{serial} is the machine of {entry.name} already",
            f"If only its port changed: 'sabot table set {entry.name} --device {new.url}'.",
        )
    if others:
        raise CannotSwap(
            f"{serial} is the machine of {others[0]}", f"Take a spare, or remove {others[0]} first."
        )
    if not provisioned or state.user_files.keyring.find(serial.encode(), new.simulator) is None:
        raise NotProvisioned(f"{serial} is not provisioned by this computer", PROVISION.format(new.url))


# -- another table PC ---------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordBefore:
    """The record that another computer kept of a table."""

    record_id: str
    rows: int
    round_id: int
    open_under: str | None = None


def read_copy(path: Path) -> RecordBefore:
    """What a copy of a record tells of itself; the copy is not changed."""
    with RecordReader(path) as record:
        return RecordBefore(
            record.record_id, record.newest(), max(record.round_ids(), default=0), rules_in_play(record)
        )


@click.command(
    "swap-pc",
    epilog=example("sabot table swap-pc BAC-07 --record-id 4f1c --round 120 --device URL --simulator"),
)
@acting_options
@click.argument("name", shell_complete=table_names)
@click.option(
    "--copy",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="a copy of the record (SERIAL.table.db) of the computer before",
)
@click.option(
    "--record-id", metavar="ID", help="without a copy: the id of that record, or what is known of it"
)
@click.option(
    "--round", "round_id", type=click.IntRange(0), metavar="N", help="without a copy: its newest round"
)
@click.option(
    "--rows", type=click.IntRange(0), metavar="N", help="without a copy: its number of rows, if known"
)
@pass_state
def table_swap_pc(
    state: CliContext,
    /,
    name: str,
    copy: Path | None,
    record_id: str | None,
    round_id: int | None,
    rows: int | None,
    options: DeviceOptions,
    acting: ActingPerson,
) -> int:
    """This computer takes over a table from another one; rounds are numbered on.

    Run it on the new computer, before the table is opened there. It needs the device's key: copy the folder
    'keys' of the computer before, or provision the machine anew. If the computer before still owns the
    device, 'sabot evict' takes it away. Service says which record this computer continues (--service-key),
    the floor confirms it (--floor-key).

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 5 not verified, 6 another computer owns the device.
    """
    if (copy is None) == (record_id is None):
        raise click.UsageError("say which record is continued: --copy FILE, or --record-id and --round")
    if copy is not None:
        if round_id is not None or rows is not None:
            raise click.UsageError("--copy tells the rounds and rows; leave out --round and --rows")
        before = read_copy(copy)
    elif round_id is None or not record_id:
        raise click.UsageError("without a copy say the newest round too: --round N")
    else:
        before = RecordBefore(record_id, rows or 0, round_id)
    files = state.user_files
    entry = _take_name(state, name, options)
    if before.open_under is not None:
        words = (
            f"the table was open there ({before.open_under}): decks are received anew, an open round is void"
        )
        state.output.tell("warning", f"[yellow]{words}[/yellow]", message=words)
    data = {"before": before.record_id, "rows": before.rows, "round_id": before.round_id}
    steps = [Step("install_pc", data), Step("swap_pc", {})]
    chosen = replace(options, device=None, table=name)
    place = TablePlace(name, files.table_record(entry), takes_over=True)
    with own_table_for_acts(state, chosen, acting, place=place) as table:
        if table.run.read(lambda session: session.state.installed_pc) is not None:
            steps = steps[1:]
        code = give_acts(state, table, acting, steps, options.timeout)
        waits = table.run.read(lambda session: session.state.installed_pc) is not None
    if waits:
        words = f"the floor confirms this computer for {name} with the same command"
        state.output.tell("swap_waits", words, name=name, serial=entry.serial)
        return code
    words = f"{name} runs on this computer now; the next round is {before.round_id + 1} or higher"
    state.output.tell(
        "pc_swapped",
        words,
        name=name,
        serial=entry.serial,
        record_id=before.record_id,
        round_id=before.round_id,
    )
    return code


def _take_name(state: CliContext, name: str, options: DeviceOptions) -> TableEntry:
    """The table of this name, set up here if it is not."""
    files = state.user_files
    known = files.tables().get(name)
    if known is not None and options.device is None:
        return known
    if options.device is None:
        raise click.UsageError(
            f"the table '{name}' is not set up here: say where its machine is, --device URL"
        )
    new = find_device(state, options)
    serial = format_serial(identify_device(new, options.timeout).serial)
    if known is not None and known.serial != serial:
        raise CannotSwap(
            f"the table '{name}' has the machine {known.serial} here, and {serial} answers",
            "Swap one thing at a time: 'sabot table swap-machine' is for another machine.",
        )
    entry = known or TableEntry(
        name, new.url, serial, new.simulator, files.new_record_name(serial, new.simulator)
    )
    files.set_table(replace(entry, url=new.url))
    return files.table(name)
