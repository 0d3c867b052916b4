"""``sabot table``, ``deck`` and ``fault``: tables of this computer, their decks, why a machine stopped."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from sabot_cli.at_table.one_act import ActingPerson, acting_options, give_act
from sabot_cli.cli_context import CliContext, json_option, verbose_option
from sabot_cli.device_access import DeviceOptions, device_options, find_device, identify_device
from sabot_cli.help_text import Group, example
from sabot_cli.output import OK
from sabot_cli.people_commands import authorise, authority_options
from sabot_cli.swap_commands import table_spares, table_swap_machine, table_swap_pc
from sabot_cli.table_policies import keep_policy
from sabot_cli.table_process import refuse_while_running
from sabot_cli.table_records import USUAL_RULES, RecordOptions, read_record, record_options, rules_of_record
from sabot_driver.errors import SabotError
from sabot_driver.serial_numbers import format_serial
from sabot_driver.user_files import TableEntry
from sabot_session import row_data as d
from sabot_session.custody import PackCustody, Where, custody_of
from sabot_session.errors import RecordFailed
from sabot_session.people import PeopleRegister
from sabot_session.record import RecordReader
from sabot_session.record_opening import rules_in_play
from sabot_session.row_kinds import data_of
from sabot_table.errors import TableError
from sabot_table.ruleset import RuleSet, load

REASONS = ("floor_order", "hours", "damaged", "wrong_count")
DESTINATIONS = [str(each) for each in d.Destination]
pass_state = click.make_pass_decorator(CliContext)


class AnotherMachine(SabotError):
    """A table that was played has another machine than the one that is named."""


# -- tables -------------------------------------------------------------------------------------


@click.group(cls=Group)
@verbose_option
def table() -> None:
    """Names for the tables of this computer."""


@table.command("list", epilog=example("sabot table list"))
@json_option
@pass_state
def table_list(state: CliContext) -> int:
    """Every table that is set up, and whether it is open.

    Exit codes: 0 done, 1 the file of tables is damaged.
    """
    tables = state.user_files.tables()
    if not tables and not state.output.as_json:
        state.output.console.print("no table has a name yet; 'sabot table set NAME --device URL' gives one")
    for entry in tables.values():
        standing = _standing(state, entry)
        state.output.tell(
            "table",
            escape(
                f"{entry.name}  {entry.url}  {entry.serial or ''}  {standing}".rstrip()
                + ("" if entry.policy is None else f"  policy {entry.policy[:12]}")
            ),
            name=entry.name,
            url=entry.url,
            serial=entry.serial,
            standing=standing,
            policy=entry.policy,
        )
    return OK


def _standing(state: CliContext, entry: TableEntry) -> str:
    path = state.user_files.table_record(entry)
    if path is None:
        return ""
    if not path.exists():
        return "never opened"
    try:
        with RecordReader(path) as record:
            rules = rules_in_play(record)
    except RecordFailed as error:
        return str(error)
    return "closed" if rules is None else f"open: {rules}"


@table.command("set", epilog=example("sabot table set BAC-07 --device sim://"))
@device_options
@authority_options
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="what the house allows less")
@click.option("--no-policy", is_flag=True, help="the house allows what the rule text allows")
@click.option("--rules", "rule_set", metavar="RULESET", help="check the policy against this rule set")
@click.argument("name")
@pass_state
def table_set(
    state: CliContext,
    /,
    name: str,
    options: DeviceOptions,
    policy_file: Path | None,
    no_policy: bool,
    rule_set: str | None,
    by_key: Path | None,
    by_role: str,
    by_badge: str | None,
    pin_stdin: bool,
) -> int:
    """Give a device a name; from then on only that device is taken for it.

    A table that was played keeps its machine: 'sabot table swap-machine' gives it another one. A house policy
    (docs/table.md) is kept with the table and checked against its rule set, or the one that --rules names.
    The floor or service authorises that a table gets another policy than it has, or none.

    Exit codes: 0 done, 1 it has another machine or the policy is laxer, 2 usage, 3 the device does not
    answer, 5 it is of another kind, or nobody authorised the change.
    """
    if policy_file is not None and no_policy:
        raise click.UsageError("--policy and --no-policy exclude each other")
    files, entry = state.user_files, find_device(state, options)
    serial = format_serial(identify_device(entry, options.timeout).serial)
    before = files.tables().get(name)
    policy = None if before is None or no_policy else before.policy
    if policy_file is not None:
        played = None if before is None else rules_of_record(files.table_record(before))
        policy = keep_policy(state, policy_file, _rules(rule_set or played or USUAL_RULES))
    if before is not None and before.policy not in (None, policy):
        with PeopleRegister(files.people) as register:
            authorise(register, by_key, by_role, by_badge, pin_stdin)
    if before is not None and before.serial == serial:
        files.set_table(replace(before, url=entry.url, policy=policy))
    else:
        path = None if before is None else files.table_record(before)
        if before is not None and path is not None and path.exists():
            raise AnotherMachine(
                f"the table '{name}' has the machine {before.serial} and a record",
                f"Swap the machine: 'sabot table swap-machine {name} --device {entry.url}'. "
                f"Or begin anew: 'sabot table remove {name}'.",
            )
        record = files.new_record_name(serial, entry.simulator)
        files.set_table(TableEntry(name, entry.url, serial, entry.simulator, record, policy))
    words = f"{name} is {serial} at {entry.url}"
    words += "" if policy is None else f", with the house policy {policy[:12]}"
    state.output.tell("table", escape(words), name=name, url=entry.url, serial=serial, policy=policy)
    return OK


def _rules(name: str) -> RuleSet:
    try:
        return load(name)
    except TableError as error:
        raise click.UsageError(str(error)) from None


@table.command("remove", epilog=example("sabot table remove BAC-07"))
@json_option
@click.argument("name")
@pass_state
def table_remove(state: CliContext, /, name: str) -> int:
    """Forget the name of a table. Its keys, journal and record stay on this computer.

    Exit codes: 0 done, 1 there is no such table, 6 a process runs it.
    """
    refuse_while_running(state, state.user_files.table(name), "End it there first.")
    standing = _standing(state, state.user_files.table(name))
    gone = state.user_files.remove_table(name)
    record = state.user_files.table_record(gone)
    words = f"{name} is forgotten; keys and journal of {gone.serial} stay"
    if record is not None and record.exists():
        words += f", and its record {record}"
        words += (
            f". It is {standing}: 'sabot play --device URL' goes on with it." if "open" in standing else ""
        )
    state.output.tell("table_removed", escape(words), name=name, serial=gone.serial, standing=standing)
    return OK


@table.command("rename", epilog=example("sabot table rename BAC-07 BAC-08"))
@json_option
@click.argument("name")
@click.argument("new")
@pass_state
def table_rename(state: CliContext, /, name: str, new: str) -> int:
    """Give a table another name; its device and record stay.

    Exit codes: 0 done, 1 there is no such table, or the name is taken, 6 a process runs it.
    """
    refuse_while_running(state, state.user_files.table(name), "End it there first.")
    entry = state.user_files.rename_table(name, new)
    state.output.tell("table", escape(f"{name} is {new} now"), name=new, url=entry.url, serial=entry.serial)
    return OK


@table.command("open", epilog=example("sabot table open --device sim:// --rules md-three-card-baccarat"))
@acting_options
@click.option("--rules", "rule_set", metavar="RULESET", help="the rule set; 'sabot rules' lists them")
@pass_state
def table_open(
    state: CliContext, /, rule_set: str | None, options: DeviceOptions, acting: ActingPerson
) -> int:
    """The floor opens a table under a rule set; the machine is set to its game.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 5 not verified, 6 the table is in use.
    """
    return give_act(state, options, acting, "open_table", {}, rules=rule_set)


@table.command("close", epilog=example("sabot table close --table BAC-07"))
@acting_options
@pass_state
def table_close(state: CliContext, /, options: DeviceOptions, acting: ActingPerson) -> int:
    """The floor closes a table; what is still open is listed.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 5 not verified, 6 the table is in use.
    """
    return give_act(state, options, acting, "close_table", {})


for each in (table_spares, table_swap_machine, table_swap_pc):
    table.add_command(each)


# -- decks --------------------------------------------------------------------------------------


@click.group(cls=Group)
@verbose_option
def deck() -> None:
    """The decks of a table: from their arrival to their destination."""


@deck.command("list", epilog=example("sabot deck list"))
@record_options
@click.option("--all", "everything", is_flag=True, help="also decks that have left the table")
@pass_state
def deck_list(state: CliContext, /, everything: bool, chosen: RecordOptions) -> int:
    """Which decks are at a table, where each is, and who received it, from the record.

    Exit codes: 0 done, 1 there is no such record or it is damaged, 2 usage.
    """
    with read_record(state, chosen) as record:
        custody = custody_of(record.all_rows())
    packs = [each for _, each in sorted(custody.packs.items())] if everything else custody.here()
    for each in packs:
        state.output.tell("deck", escape(_deck_line(each)), **_deck_fields(each))
    if not packs:
        state.output.tell("decks", "no decks are at the table", decks=0)
    return OK


def _deck_line(each: PackCustody) -> str:
    at = datetime.fromtimestamp(each.received_s).strftime("%Y-%m-%d %H:%M")
    text = f"deck {each.pack_id}  {each.back.upper():<5} bag {each.bag}, received {at} by {each.received_by}"
    if each.where is Where.GONE:
        where = "" if each.destination is None else each.destination.replace("_", " ")
        return f"{text}; left by {each.retired_by} ({each.reason.replace('_', ' ')}): {where}"
    return f"{text}; {each.where}"


def _deck_fields(each: PackCustody) -> dict[str, Any]:
    return {
        "pack_id": each.pack_id,
        "back": each.back,
        "cards": each.cards,
        "bag": each.bag,
        "where": str(each.where),
        "received_s": each.received_s,
        "received_by": each.received_by,
        "brought_by": each.brought_by,
        "verified_by": each.verified_by,
        "counted": each.counted,
        "retired_s": each.retired_s,
        "retired_by": each.retired_by,
        "reason": each.reason,
        "destination": None if each.destination is None else str(each.destination),
        "left_in_bag": each.left_in_bag,
    }


@deck.command("receive", epilog=example("sabot deck receive --back red --bag A-1001 --table BAC-07"))
@acting_options
@click.option("--back", type=click.Choice(["red", "blue"]), required=True)
@click.option("--bag", required=True, metavar="NUMBER", help="the number of the bag or seal")
@click.option("--brought-by", default="", metavar="NAME", help="who handed it over")
@pass_state
def deck_receive(
    state: CliContext,
    /,
    back: str,
    bag: str,
    brought_by: str,
    options: DeviceOptions,
    acting: ActingPerson,
) -> int:
    """The floor receives a deck at an open table; its hours begin.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 5 not verified, 6 the table is in use.
    """
    data = {"back": back, "bag": bag, "brought_by": brought_by}
    return give_act(state, options, acting, "receive_pack", data)


@deck.command("retire", epilog=example("sabot deck retire 1 --reason damaged --table BAC-07"))
@acting_options
@click.argument("number", type=click.IntRange(1))
@click.option("--reason", type=click.Choice(REASONS), default="floor_order", show_default=True)
@click.option("--destination", type=click.Choice(DESTINATIONS), default="cancelled", show_default=True)
@click.option("--bag", default="", metavar="NUMBER", help="the bag or seal it leaves in")
@pass_state
def deck_retire(
    state: CliContext,
    /,
    number: int,
    reason: str,
    destination: str,
    bag: str,
    options: DeviceOptions,
    acting: ActingPerson,
) -> int:
    """The floor takes a deck off the table for good.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 5 not verified, 6 the table is in use.
    """
    data = {"pack_id": number, "reason": reason, "destination": destination, "bag": bag}
    return give_act(state, options, acting, "remove_pack", data)


# -- faults -------------------------------------------------------------------------------------


@click.group(cls=Group)
@verbose_option
def fault() -> None:
    """Why the machine stopped, what to do, and saying that it is done."""


def open_faults(record: RecordReader) -> list[tuple[int, d.FaultRaised]]:
    """Faults on record that are not cleared, with the time of each; a machine that started anew has none."""
    found: list[tuple[int, d.FaultRaised]] = []
    for each in record.rows_of_kind("fault_raised", "fault_cleared", "machine_started"):
        data = data_of(each.row)
        if isinstance(data, d.FaultRaised):
            found.append((each.row.at_s, data))
        elif isinstance(data, d.FaultCleared):
            gone = next((it for it in found if it[1].fault == data.fault), None)
            if gone is not None:
                found.remove(gone)
        else:
            found.clear()
    return found


@fault.command("show", epilog=example("sabot fault show"))
@record_options
@pass_state
def fault_show(state: CliContext, /, chosen: RecordOptions) -> int:
    """The faults that are not cleared, with their steps, from the table's record.

    Exit codes: 0 no fault, 1 no such record, 7 a fault is open.
    """
    with read_record(state, chosen) as record:
        found = open_faults(record)
    for at_s, each in found:
        at = datetime.fromtimestamp(at_s).strftime("%H:%M:%S")
        steps = " ".join(each.steps) or "open the machine and look"
        name, place = each.fault.replace("_", " "), each.place.replace("_", " ")
        words = f"{name} at the {place}, {each.half} half, since {at}"
        state.output.tell(
            "fault",
            f"[red]{words}[/red]\n  {steps}\n  then: sabot fault clear {each.fault}",
            fault=each.fault,
            place=each.place,
            half=str(each.half),
            cards=each.cards,
            steps=steps,
            at_s=at_s,
        )
    if not found:
        state.output.tell("faults", "no fault is open", faults=0)
    return 7 if found else OK


@fault.command("clear", epilog=example("sabot fault clear card_stuck --table BAC-07"))
@acting_options
@click.argument("name", required=False)
@pass_state
def fault_clear(state: CliContext, /, name: str | None, options: DeviceOptions, acting: ActingPerson) -> int:
    """Say that a fault's steps are done; the machine checks with its sensors.

    Exit codes: 0 done, 1 refused or no fault, 2 usage, 3 no device, 5 not verified, 6 the table is in use.
    """
    return give_act(state, options, acting, "clear_fault", {} if name is None else {"fault": name})
