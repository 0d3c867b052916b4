"""One act from the command line.

If another process runs the table, the act is given there. If none does, the table's session runs just long
enough to take the act and carry it out.
"""

import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import Any

import click

from sabot_cli.at_table.about_round import NothingOpen, open_about
from sabot_cli.at_table.act_entry import read_held
from sabot_cli.at_table.attached_table import AttachedTable, SimulatedRole
from sabot_cli.at_table.leaving import standing
from sabot_cli.at_table.lines_printer import LinesPrinter
from sabot_cli.at_table.running_table import RunningTable, TablePlace, run_table
from sabot_cli.at_table.table_face import TableFace, who_acts
from sabot_cli.at_table.table_log import TableLog
from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import DeviceOptions, device_options, find_device, is_emulator
from sabot_cli.output import FAILED, OK
from sabot_cli.people_keys import KEY_FILE, table_credentials
from sabot_cli.running_service import running_service
from sabot_driver.errors import DeviceTimeout, SabotError
from sabot_protocol.host.messages import Role
from sabot_serve.errors import ServiceRunning
from sabot_session.acts import ACTS, Act, ClearFault, NotAnAct, parse_act
from sabot_session.needs import Need
from sabot_session.outcomes import ActDone
from sabot_session.people import Presented
from sabot_session.record import RecordReader
from sabot_session.record_opening import rules_in_play
from sabot_session.rows import NumberedRow
from sabot_table.errors import ImpossibleCards, RuleViolation, TableError
from sabot_table.procedure import TableRole
from sabot_table.ruleset import RuleSet, load

POLL_S = 0.05
MOST_NEEDS = 5
"""How many needs are listed after an act."""
USUAL_RULES = "md-three-card-baccarat"


class AgainstTheRules(SabotError):
    """The rules forbid the act here; the clause is in the message."""


@dataclass(frozen=True)
class ActingPerson:
    """The options that say who acts."""

    real_people: bool = False
    person: str | None = None
    floor_key: Path | None = None
    service_key: Path | None = None
    badge: str | None = None
    pin_stdin: bool = False


def acting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a device and of a person; the command gets them as ``options`` and ``acting``."""
    options = [
        click.option("--people", "real_people", is_flag=True, help="people of the register, also at sim://"),
        click.option("--person", metavar="ID", help="the dealer who acts, with a PIN alone"),
        click.option("--floor-key", type=KEY_FILE, help="the floor's key file"),
        click.option("--service-key", type=KEY_FILE, help="service's key file"),
        click.option("--badge", metavar="CODE", help="the badge instead of a key file"),
        click.option("--pin-stdin", is_flag=True, help="read the PIN from standard input"),
    ]

    @wraps(command)
    def call(*args: Any, **given: Any) -> Any:
        names = [each.name for each in fields(ActingPerson)]
        acting = ActingPerson(**{name: given.pop(name) for name in names})
        return command(*args, acting=acting, **given)

    wrapped: Callable[..., Any] = call
    for option in reversed(options):
        wrapped = option(wrapped)
    return device_options(wrapped)


def read_pin(acting: ActingPerson, whose: str) -> str:
    """A PIN, typed without being shown."""
    if acting.pin_stdin:
        return sys.stdin.readline().strip()
    return str(click.prompt(f"PIN of {whose}", hide_input=True, err=True))


def read_new_pin(acting: ActingPerson, whose: str) -> str:
    """A PIN that somebody chooses. At a terminal it is typed twice: a hidden mistake would lock them out."""
    if acting.pin_stdin:
        return read_pin(acting, whose)
    again = "the same PIN again"
    return str(click.prompt(f"PIN of {whose}", hide_input=True, err=True, confirmation_prompt=again))


def _shows(acting: ActingPerson, roles: tuple[TableRole, ...]) -> bool:
    """Whether the options have a credential of one of these roles."""
    shown = {
        TableRole.FLOOR: acting.floor_key or acting.badge,
        TableRole.SERVICE: acting.service_key or acting.badge,
        TableRole.DEALER: acting.person or acting.badge,
    }
    return any(shown.get(role) for role in roles)


def show_credential(acting: ActingPerson, roles: tuple[TableRole, ...]) -> Presented:
    """What the person of the options shows, for an act of these roles."""
    for role, key in ((TableRole.FLOOR, acting.floor_key), (TableRole.SERVICE, acting.service_key)):
        if key is not None and role in roles:
            return replace(read_held(role, str(key)), pin=read_pin(acting, role))
    if acting.person is not None and (TableRole.DEALER in roles or acting.badge is None):
        return Presented(read_pin(acting, acting.person), person=acting.person)
    if acting.badge is not None:
        return Presented(read_pin(acting, "the badge's holder"), badge=acting.badge)
    ways = [f"--{role}-key FILE" for role in roles if role is not TableRole.DEALER]
    ways += ["--badge CODE"] + (["--person ID"] if TableRole.DEALER in roles else [])
    raise click.UsageError(
        f"this is an act of {' or '.join(roles)}: say who acts with {' or '.join(ways)};"
        " 'sabot people list' shows who is enrolled"
    )


@dataclass(frozen=True)
class Step:
    """An act of a command that gives several, one after the other."""

    name: str
    data: Mapping[str, Any]


def give_act(
    state: CliContext,
    options: DeviceOptions,
    acting: ActingPerson,
    name: str,
    data: Mapping[str, Any],
    *,
    round_id: int | None = None,
    rules: str | None = None,
) -> int:
    """Give an act at a table and wait until the machine did what follows from it; the exit code."""
    with table_for_acts(state, options, acting, rules) as table:
        return give_acts(state, table, acting, [Step(name, data)], options.timeout, round_id)


@contextmanager
def table_for_acts(
    state: CliContext,
    options: DeviceOptions,
    acting: ActingPerson,
    rules: str | None = None,
) -> Iterator[TableFace]:
    """A table for acts: that of the process that runs it, or one that runs for as long as acts are given.

    It is under its own rules if no others are named; `ServiceRunning` if a process runs it under others.
    """
    private = is_emulator(find_device(state, options).url)  # such a device is in this process
    running = None if private else running_service(state, options)
    if running is None:
        with own_table_for_acts(state, options, acting, rules) as own:
            yield own
        return
    with AttachedTable(*running) as table:
        if rules is not None and _load(rules).sha256 != table.rules.sha256:
            raise ServiceRunning(f"process {running[1].pid} runs this table under {table.rules.name}")
        yield table


@contextmanager
def own_table_for_acts(
    state: CliContext,
    options: DeviceOptions,
    acting: ActingPerson,
    rules: str | None = None,
    place: TablePlace | None = None,
) -> Iterator[RunningTable]:
    """A table that runs in this process while acts are given; under its own rules if none are named."""

    def choose(record: Path | None) -> RuleSet:
        return _load(rules or _rules_of(record))

    with run_table(state, options, choose, real_people=acting.real_people, place=place) as table:
        yield table


def give_acts(
    state: CliContext,
    table: TableFace,
    acting: ActingPerson,
    steps: Sequence[Step],
    timeout: float,
    round_id: int | None = None,
) -> int:
    """Give acts one after the other, each when the machine has finished with the one before; the exit code.

    Two people need not come together: without the credential of the second one that act stays a need.
    """
    printer = LinesPrinter(state.output)
    log = TableLog(table, state.output, printer)
    _settle(table, timeout)
    log.follow()
    shown = (acting.person, acting.badge, acting.floor_key, acting.service_key)
    if _simulated(table, acting) and any(each is not None for each in shown):
        printer.print("simulated people act at this emulated device; with --people those of the register do")
    not_done: list[NumberedRow] = []
    for step in steps:
        kind = ACTS[step.name]
        if step is not steps[0] and not _simulated(table, acting) and not _shows(acting, kind.ROLES):
            break
        data = dict(step.data)
        if round_id is not None:
            data |= open_about(table, step.name, round_id, step.data)
        need = _need_for(table, kind, data, round_id)
        act = _make(kind, data, need, round_id)
        credential = _credential(state, table, acting, kind, need)
        done = _give(table, act, need, credential)
        _settle(table, timeout, done.row)
        log.follow()
        not_done += table.rows(done.row, "command_answered")
        needs = [each.words for each in table.needs()]
        state.output.tell("act", None, act=step.name, row=done.row, needs=needs, ok=not not_done)
    printer.print(standing(table))
    needs_now = table.needs()
    for each in needs_now[:MOST_NEEDS]:
        who = who_acts(each)
        printer.print(f"  next: {who}: {each.words}" if who else f"  next: {each.words}")
    if len(needs_now) > MOST_NEEDS:
        printer.print(f"  and {len(needs_now) - MOST_NEEDS} more: 'sabot play' shows them")
    return FAILED if not_done else OK


def _give(table: TableFace, act: Act, need: Need | None, credential: object) -> ActDone:
    seen = int(table.snapshot()["newest_row"])
    try:
        return table.act(secrets.token_hex(8), None if need is None else need.id, seen, credential, act)
    except RuleViolation as refused:
        raise AgainstTheRules(f"{refused.what} ({refused.clause})", refused.do) from refused
    except (TableError, ImpossibleCards) as error:
        raise AgainstTheRules(str(error)) from error


def _rules_of(record: Path | None) -> str:
    if record is None or not record.exists():
        return USUAL_RULES
    with RecordReader(record) as reader:
        return rules_in_play(reader) or USUAL_RULES


def _load(name: str) -> RuleSet:
    try:
        return load(name)
    except TableError as error:
        raise click.UsageError(str(error)) from None


def _settle(table: TableFace, timeout: float, row: int = 0) -> None:
    """Wait until the machine has answered everything that it was asked, up to a row of the record."""
    ends = time.monotonic() + timeout
    while (shown := table.snapshot())["newest_row"] < row or shown["device"]["busy"]:
        if time.monotonic() > ends:
            raise DeviceTimeout("the machine has not answered everything in time", None, "act")
        time.sleep(POLL_S)


def _need_for(
    table: TableFace, kind: type[Act], data: Mapping[str, Any], round_id: int | None
) -> Need | None:
    """The need that the act meets, if the table has it."""
    for need in table.needs():
        if kind.NAME not in need.acts:
            continue
        if any(
            name in need.details and str(need.details[name]) != str(value) for name, value in data.items()
        ):
            continue
        if round_id is not None and need.details.get("round_id", round_id) != round_id:
            continue
        return need
    return None


def _make(kind: type[Act], data: Mapping[str, Any], need: Need | None, round_id: int | None) -> Act:
    known = {each.name for each in fields(kind)}
    given = {name: value for name, value in data.items() if name in known}
    strange = [name for name in data if name not in known]
    if strange:
        raise click.UsageError(f"{kind.NAME} takes no --{strange[0].replace('_', '-')}")
    if need is not None:
        given |= {name: need.details[name] for name in known if name in need.details and name not in given}
    if round_id is not None and "round_id" in known:
        given.setdefault("round_id", round_id)
    try:
        return parse_act(kind.NAME, given)
    except NotAnAct as error:
        missing = [
            _option(each.name)
            for each in fields(kind)
            if each.name not in given and each.default.__class__.__name__ == "_MISSING_TYPE"
        ]
        if missing and kind is ClearFault:
            raise NothingOpen("no fault is open", "'sabot fault show' lists faults.") from error
        if missing:
            raise click.UsageError(f"this needs {', '.join(missing)}") from error
        raise click.UsageError(str(error)) from error


def _option(name: str) -> str:
    """The option of the command in use that tells a detail of an act, with its opposite if it has one."""
    context = click.get_current_context(silent=True)
    for each in () if context is None else context.command.params:
        if each.name == name:
            return " or ".join((*each.opts, *each.secondary_opts))
    return f"--{name.replace('_', '-')}"


def _simulated(table: TableFace, acting: ActingPerson) -> bool:
    """Whether simulated people act at this table, and no others were asked for."""
    if isinstance(table, AttachedTable):
        return bool(table.about["simulated_people"]) and not acting.real_people
    assert isinstance(table, RunningTable)
    return table.simulated is not None


def _credential(
    state: CliContext, table: TableFace, acting: ActingPerson, kind: type[Act], need: Need | None
) -> object:
    roles = tuple(each for each in kind.ROLES if need is None or not need.roles or each in need.roles)
    if not _simulated(table, acting):
        return show_credential(acting, roles)
    if not isinstance(table, RunningTable):
        return SimulatedRole(roles[0])
    assert table.simulated is not None
    keys = table_credentials(state, table.client, acting.floor_key)
    made = keys(Role.FLOOR), keys(Role.SERVICE)
    return table.simulated.staff(table.run, table.client.url, {}, *made).credential(roles[0])
