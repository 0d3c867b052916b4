"""``sabot rounds`` and ``sabot round``: what was played, and what people do about it afterwards."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import click

from sabot_cli.at_table.act_entry import parse_hands, parse_wagers
from sabot_cli.at_table.lines_printer import LinesPrinter
from sabot_cli.at_table.one_act import (
    ActingPerson,
    Step,
    acting_options,
    give_act,
    give_acts,
    table_for_acts,
)
from sabot_cli.at_table.round_text import money, round_lines, totals
from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import DeviceOptions
from sabot_cli.help_text import example
from sabot_cli.output import OK
from sabot_cli.table_records import RecordOptions, read_record, record_options
from sabot_session import row_data as d
from sabot_session.countersigned_rows import name_of
from sabot_session.record import RecordReader
from sabot_session.round_export import round_json, rounds_csv
from sabot_session.round_history import Round, RoundFilter, list_rounds, read_round
from sabot_session.row_kinds import data_of
from sabot_table.errors import ImpossibleCards, TableError
from sabot_table.ruleset import RuleSet, load

VERDICTS = ("correct", "misdealt", "card_missing", "card_extra", "void", "not_counted")
pass_state = click.make_pass_decorator(CliContext)


def parse_day(text: str | None) -> date | None:
    """A day as YYYY-MM-DD, or today."""
    if text is None:
        return None
    if text == "today":
        return datetime.now().astimezone().date()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"'{text}' is no day: write YYYY-MM-DD, or today") from None


@click.command(epilog=example("sabot rounds --day today --csv"))
@record_options
@click.option("--day", metavar="DAY", help="YYYY-MM-DD or today, in this computer's time zone")
@click.option("--dealer", default="", metavar="ID", help="rounds of this dealer only")
@click.option("--verdict", type=click.Choice(VERDICTS), default=None, help="rounds that ended so only")
@click.option("--csv", "as_csv", is_flag=True, help="a table with a line for each wager")
@pass_state
def rounds(
    state: CliContext,
    /,
    day: str | None,
    dealer: str,
    verdict: str | None,
    as_csv: bool,
    chosen: RecordOptions,
) -> int:
    """List the rounds of a table's record.

    The record is read while the table runs. Without --table or --record the only record here is read.

    Exit codes: 0 done, 1 there is no such record or it is damaged, 2 usage.
    """
    zone = datetime.now().astimezone().tzinfo
    assert zone is not None
    wanted = RoundFilter(parse_day(day), dealer, verdict or "", zone)
    with read_record(state, chosen) as record:
        found = list(list_rounds(record, wanted))
        backs = backs_of(record)
    if as_csv:
        click.echo(rounds_csv(found), nl=False)
        return OK
    for each in found:
        state.output.tell("round", _line(each, backs), **round_json(each))
    pay, take, back = totals(found)
    void = sum(each.void is not None for each in found)
    count = f"{len(found)} round{'' if len(found) == 1 else 's'}"
    words = f"{count}, {void} void; paid {money(pay)}, taken {money(take)}, returned {money(back)}"
    state.output.tell(
        "rounds", words, rounds=len(found), void=void, paid_cents=pay, taken_cents=take, returned_cents=back
    )
    return OK


def _line(each: Round, backs: dict[int, str]) -> str:
    opened = (
        "" if each.opened_s is None else datetime.fromtimestamp(each.opened_s).strftime("%Y-%m-%d %H:%M:%S")
    )
    how = f"void: {each.void.why} ({each.void.clause})" if each.void is not None else str(each.end)
    flags = [
        words
        for words, is_so in (
            ("corrected", each.older),
            ("held", each.held),
            ("disputed", each.disputes),
            ("countersign", each.to_countersign),
        )
        if is_so
    ]
    note = f" [{', '.join(flags)}]" if flags else ""
    text = f"{each.round_id:>6}  {opened}  {backs.get(each.pack_id, ''):<5} {each.dealer:<12} {how}{note}"
    return text.replace("[", r"\[")


def backs_of(record: RecordReader) -> dict[int, str]:
    """The names of all packs that the record knows, by their number."""
    found = {}
    for each in record.rows_of_kind("receive_pack"):
        data = data_of(each.row)
        if isinstance(data, d.PackReceived):
            found[data.pack_id] = data.back.upper()
    return found


def rules_of(record: RecordReader) -> RuleSet:
    """The rule set under which the table was opened last, as far as this computer knows it."""
    opened = record.rows_of_kind("open_table")
    name = str(opened[-1].row.data["ruleset"]) if opened else "md-three-card-baccarat"
    try:
        return load(name)
    except (LookupError, ValueError):
        return load("md-three-card-baccarat")  # a file of the house: only the main wager's name may differ


ACTIONS = {
    "hold": ("hold", "keep the cards of the round out of the tray"),
    "release": ("release", "the floor releases held cards"),
    "dispute": ("open_dispute", "somebody says that the screen is wrong"),
    "decide": ("decide_dispute", "the floor decides a dispute"),
    "countersign": ("countersign", "the floor countersigns a row"),
    "correct": ("propose_correction", "dealer and floor correct the round"),
    "confirm": ("confirm_correction", "the floor confirms a correction"),
    "decline": ("decline_correction", "the floor declines a correction"),
}
"""What people do about a round: the act's name, and what it is."""


@click.command("round", epilog=example("sabot round 1"))
@click.argument("number", type=click.IntRange(1))
@click.argument("action", type=click.Choice(["show", *ACTIONS]), default="show", metavar="[ACTION]")
@click.option(
    "--record", type=click.Path(dir_okay=False, path_type=Path), help="show: a table's record, or a copy"
)
@click.option("--csv", "as_csv", is_flag=True, help="show: a table with a line for each wager")
@click.option("--why", help="hold, dispute, correct: the reason")
@click.option("--wagers", metavar="TEXT", help="correct: the wagers, such as '1 ante 20 tie 5, 3 ante 10'")
@click.option("--hands", metavar="TEXT", help="correct: the cards, such as 'dealer 7S AH JC, 1 8H 6H 10S'")
@click.option(
    "--row",
    type=click.IntRange(1),
    help="countersign, decide, confirm, decline: the row; without it the only open one",
)
@click.option("--note", help="release, countersign, decline: a note")
@click.option("--surveillance", metavar="REF", help="decide: surveillance's reference")
@click.option("--decision", help="decide: what was decided")
@click.option("--machine-wrong/--machine-right", default=None, help="decide: whether the machine was wrong")
@acting_options
@pass_state
def round_(
    state: CliContext,
    /,
    number: int,
    action: str,
    record: Path | None,
    as_csv: bool,
    wagers: str | None,
    hands: str | None,
    options: DeviceOptions,
    acting: ActingPerson,
    **told: Any,
) -> int:
    """Show a round, or act on it: hold, release, dispute, correct, countersign.

    ACTION is show, hold, release, dispute, decide, correct, confirm, decline or countersign.

    "sabot round 7 hold --why 'a card fell'" keeps the cards out of the tray until the floor releases them.
    "sabot round 7 dispute" opens a dispute; "decide" ends it with surveillance's reference (--surveillance),
    the decision (--decision) and --machine-wrong or --machine-right.

    "sabot round 7 correct --why ... --wagers ... --hands ..." says what the round really was: every wager of
    it, every hand, or both. The dealer (--person) proposes it, the floor (--floor-key) confirms it: together
    in one command, or the floor later with "confirm" or "decline". The old version stays on record.

    An act is given by a person: the floor shows a key file or badge (--floor-key, --badge) and a PIN.

    Exit codes: 0 done, 1 refused or no such round, 2 usage, 3 no device, 5 not verified, 6 in use.
    """
    if action == "show":
        return _show(state, RecordOptions(options.table, record), number, as_csv)
    data = {key: value for key, value in told.items() if value is not None}
    if action != "correct":
        if wagers is not None or hands is not None:
            raise click.UsageError(f"--wagers and --hands are for 'correct', not for '{action}'")
        return give_act(state, options, acting, ACTIONS[action][0], data, round_id=number)
    if wagers is None and hands is None:
        raise click.UsageError("say what was other than on record: --wagers TEXT, --hands TEXT")
    with table_for_acts(state, options, acting) as table:
        try:
            if wagers is not None:
                data["wagers"] = parse_wagers(wagers, table.rules, {})
            if hands is not None:
                data["hands"] = parse_hands(hands, table.rules)
        except (ValueError, TableError, ImpossibleCards) as error:
            raise click.UsageError(str(error)) from None
        steps = [Step(ACTIONS["correct"][0], data), Step(ACTIONS["confirm"][0], {})]
        return give_acts(state, table, acting, steps, options.timeout, number)


def _show(state: CliContext, chosen: RecordOptions, number: int, as_csv: bool) -> int:
    with read_record(state, chosen) as reader:
        found = read_round(reader, number)
        backs, rules = backs_of(reader), rules_of(reader)
    if as_csv:
        click.echo(rounds_csv([found]), nl=False)
        return OK
    printer = LinesPrinter(state.output)
    printer.print(round_lines(found, rules, backs.get(found.pack_id, "")))
    printer.print("  who did what:")
    for done in found.done:
        at = datetime.fromtimestamp(done.at_s).strftime("%H:%M:%S")
        clause = f" ({done.clause})" if done.clause else ""
        how = f", {done.actor.how.replace('_', ' ')}" if done.actor.person else ""
        printer.print(
            f"    {done.number:>5} {at} {done.kind.replace('_', ' ')}: {name_of(done.actor)}{how}{clause}"
        )
    printer.close()
    state.output.tell("round", None, **round_json(found))
    return OK
