"""The game: opening, rounds until there were enough, the summary."""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.progress import Progress

from sabot_cli.output import FAULT, NOT_VERIFIED, OK, Output
from sabot_cli.playing.card_entry import (
    CardEntry,
    CardsNotEntered,
    FileEntry,
    NoEntry,
    PromptEntry,
    SimulatedEntry,
)
from sabot_cli.playing.device_control import TableStopped
from sabot_cli.playing.irregularity_reports import IrregularityReport
from sabot_cli.playing.mini_table import MiniTable
from sabot_cli.playing.recorded_table import RecordedTable
from sabot_cli.playing.round_play import RoundPlay
from sabot_cli.playing.round_printer import RoundPrinter
from sabot_cli.playing.shuffle_proofs import ShuffleNotProved, ShuffleProofs
from sabot_cli.playing.table_people import people_at
from sabot_cli.playing.table_record import TableRecord
from sabot_cli.playing.three_card_table import ThreeCardTable
from sabot_cli.wager_plan import WagerPlan
from sabot_driver import Client, Credential
from sabot_driver.errors import DeviceTimeout, Refused, SabotError
from sabot_protocol.host.messages import Role
from sabot_table import errors
from sabot_table.cards import DECK_CARDS
from sabot_table.procedure import TableRole
from sabot_table.rule_texts import GameKind
from sabot_table.ruleset import RuleSet


class NotByTheRules(SabotError):
    """The rules forbid the game here; the clause is in the message."""


def choose_card_entry(client: Client, typed: str | None, stack: ExitStack) -> CardEntry:
    """Who names cards that no reader saw."""
    if typed == "-":
        return FileEntry.of(sys.stdin)
    if typed is not None:
        return FileEntry.of(stack.enter_context(Path(typed).open(encoding="utf-8")))
    if people_at(client) is not None:
        return SimulatedEntry()
    return PromptEntry() if sys.stdin.isatty() else NoEntry()


def table_class(rules: RuleSet) -> type[RoundPlay]:
    """How a game is dealt: stack by stack, or card by card from a shoe."""
    return MiniTable if rules.game is GameKind.MINI else ThreeCardTable


def play_rounds(
    client: Client,
    output: Output,
    book: WagerPlan,
    *,
    rounds: int,
    timeout: float,
    credential: Callable[[Role], Credential],
    record: Path | None = None,
    names: dict[TableRole, str] | None = None,
    seed: int | None = None,
    typed: str | None = None,
    cover: int | None = None,
    reports: list[IrregularityReport] | None = None,
) -> int:
    """Play rounds and tell of them; the exit code."""
    began = time.monotonic()
    screen = RoundPrinter(output, book.rules, book.settled)
    bar = Progress(
        console=output.console, disable=output.as_json or not output.console.is_terminal, transient=True
    )
    task = bar.add_task("the cards are shuffled", total=rounds)
    stopped: SabotError | None = None
    with ExitStack() as stack:
        kept = TableRecord(record)
        stack.callback(kept.close)
        desk = RecordedTable(book.rules, output, kept, names)
        proofs = ShuffleProofs(client, output, kept, timeout, seed)
        card_entry = choose_card_entry(client, typed, stack)
        table = table_class(book.rules)(
            client, desk, proofs, timeout, credential, book, card_entry, screen.tell_round, reports
        )
        if isinstance(table, MiniTable) and cover is not None:
            table.cover_above = cover
        bar.start()
        try:
            _lead(table, screen, rounds, lambda: bar.update(
                task, description=f"round {screen.rounds + 1} of {rounds}", completed=screen.rounds
            ))  # fmt: skip
        except errors.RuleViolation as refused:
            desk.tell_refused(refused)
            stopped = NotByTheRules(f"{refused.what} ({refused.clause})", refused.do)
        except (TableStopped, CardsNotEntered, Refused, DeviceTimeout, ShuffleNotProved) as error:
            stopped = error
        finally:
            bar.stop()
            desk.keep()
        _sum_up(output, screen, table, stopped, time.monotonic() - began)
    if isinstance(stopped, (ShuffleNotProved, NotByTheRules)):
        return NOT_VERIFIED
    return OK if stopped is None else FAULT


def _lead(table: RoundPlay, screen: RoundPrinter, rounds: int, next_round: Callable[[], None]) -> None:
    table.open_table()
    table.sit()
    while screen.rounds < rounds:
        next_round()
        if table.table_state == "between":
            table.prepare()
        table.play_round()
    if table.faults:
        table.recover()
    table.close_table()


def _sum_up(
    output: Output, screen: RoundPrinter, table: RoundPlay, stopped: SabotError | None, took_s: float
) -> None:
    turns = ", ".join(f"{name} {count}" for name, count in sorted(screen.by_deck.items()))
    expected = DECK_CARDS * table.desk.rules.cards.decks
    text = (
        f"\n{screen.rounds} rounds, {screen.void} of them void; {table.shuffles} shuffles, {table.proved} of "
        f"them proved to be {expected}, {table.proofs.checked} revealed and checked. Decks: {turns}. "
        f"It took {took_s:.1f} s here."
    )
    if stopped is not None:
        text += f"\n[red]{escape(str(stopped))}[/red]\n{escape(stopped.advice)}"
    fields: dict[str, Any] = {
        "rounds": screen.rounds,
        "void": screen.void,
        "simulated_rounds": screen.simulated,
        "shuffles": table.shuffles,
        "shuffles_proved": table.proved,
        "shuffles_checked": table.proofs.checked,
        "decks": screen.by_deck,
        "faults": dict(table.faults_seen),
        "events_lost": table.lost,
        "seconds": round(took_s, 3),
        "ok": stopped is None,
        "stopped": None if stopped is None else str(stopped),
    }
    output.tell("summary", text, **fields)
