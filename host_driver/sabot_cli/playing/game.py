"""The game: opening, rounds until there were enough, the summary."""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.progress import Progress

from sabot_cli.betting import Book
from sabot_cli.output import FAULT, NOT_VERIFIED, OK, Output
from sabot_cli.playing.coups import ShoeTable
from sabot_cli.playing.desk import Desk
from sabot_cli.playing.machine import TableStopped
from sabot_cli.playing.nonces import Nonces, ShuffleNotProved
from sabot_cli.playing.record import Record
from sabot_cli.playing.reports import Report
from sabot_cli.playing.rounds import Rounds
from sabot_cli.playing.screen import DECK_CARDS, Screen
from sabot_cli.playing.stacks import StackTable
from sabot_cli.playing.typed import EmulatedDealer, Lines, Nobody, NobodyTypes, Prompt, Typist
from sabot_driver import Client, Credential
from sabot_driver.errors import DeviceTimeout, Refused, SabotError
from sabot_protocol.host.messages import Role
from sabot_table import errors
from sabot_table.procedure import Role as Person
from sabot_table.ruleset import RuleSet
from sabot_table.texts import Game


class NotByTheRules(SabotError):
    """The rules forbid the game here; the clause is in the message."""


def the_typist(client: Client, typed: str | None, stack: ExitStack) -> Typist:
    """Who names cards that no reader saw."""
    if typed == "-":
        return Lines.of(sys.stdin)
    if typed is not None:
        return Lines.of(stack.enter_context(Path(typed).open(encoding="utf-8")))
    if client.people is not None:
        return EmulatedDealer()
    return Prompt() if sys.stdin.isatty() else Nobody()


def the_kind(rules: RuleSet) -> type[Rounds]:
    """How a game is dealt: stack by stack, or card by card from a shoe."""
    return ShoeTable if rules.game is Game.MINI else StackTable


def play(
    client: Client,
    output: Output,
    book: Book,
    *,
    rounds: int,
    timeout: float,
    credential: Callable[[Role], Credential],
    record: Path | None = None,
    names: dict[Person, str] | None = None,
    seed: int | None = None,
    typed: str | None = None,
    cover: int | None = None,
    reports: list[Report] | None = None,
) -> int:
    """Play rounds and tell of them; the exit code."""
    began = time.monotonic()
    screen = Screen(output, book.rules, book.settled)
    bar = Progress(
        console=output.console, disable=output.as_json or not output.console.is_terminal, transient=True
    )
    task = bar.add_task("the cards are shuffled", total=rounds)
    stopped: SabotError | None = None
    with ExitStack() as stack:
        kept = Record(record)
        stack.callback(kept.close)
        desk = Desk(book.rules, output, kept, names)
        nonces = Nonces(client, output, kept, timeout, seed)
        typist = the_typist(client, typed, stack)
        table = the_kind(book.rules)(
            client, desk, nonces, timeout, credential, book, typist, screen.tell_round, reports
        )
        if isinstance(table, ShoeTable) and cover is not None:
            table.cover_above = cover
        bar.start()
        try:
            _lead(table, screen, rounds, lambda: bar.update(
                task, description=f"round {screen.rounds + 1} of {rounds}", completed=screen.rounds
            ))  # fmt: skip
        except errors.Refused as refused:
            desk.tell_refused(refused)
            stopped = NotByTheRules(f"{refused.what} ({refused.clause})", refused.do)
        except (TableStopped, NobodyTypes, Refused, DeviceTimeout, ShuffleNotProved) as error:
            stopped = error
        finally:
            bar.stop()
            desk.keep()
        _sum_up(output, screen, table, stopped, time.monotonic() - began)
    if isinstance(stopped, (ShuffleNotProved, NotByTheRules)):
        return NOT_VERIFIED
    return OK if stopped is None else FAULT


def _lead(table: Rounds, screen: Screen, rounds: int, next_round: Callable[[], None]) -> None:
    table.open_table()
    table.sit()
    while screen.rounds < rounds:
        next_round()
        if table.table_state == "between":
            table.prepare()
        table.play_round()
    if table.faults:
        table.mend()
    table.close_table()


def _sum_up(
    output: Output, screen: Screen, table: Rounds, stopped: SabotError | None, took_s: float
) -> None:
    turns = ", ".join(f"{name} {count}" for name, count in sorted(screen.by_deck.items()))
    expected = DECK_CARDS * table.desk.rules.cards.decks
    text = (
        f"\n{screen.rounds} rounds, {screen.void} of them void; {table.shuffles} shuffles, {table.proved} of "
        f"them proved to be {expected}, {table.nonces.checked} revealed and checked. Decks: {turns}. "
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
        "shuffles_checked": table.nonces.checked,
        "decks": screen.by_deck,
        "faults": dict(table.faults_seen),
        "events_lost": table.lost,
        "seconds": round(took_s, 3),
        "ok": stopped is None,
        "stopped": None if stopped is None else str(stopped),
    }
    output.tell("summary", text, **fields)
