"""A table at a terminal: the need in one line, acts by key, and what happens told as it happens."""

import contextlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sabot_cli.at_table.act_entry import Asking, Identification, Question, Wagers, ask, ask_act, required
from sabot_cli.at_table.device_clock import DeviceClock
from sabot_cli.at_table.leaving import say_open_round, standing
from sabot_cli.at_table.lines_printer import LinesPrinter, cut
from sabot_cli.at_table.table_face import TableFace, who_acts
from sabot_cli.at_table.table_log import TROUBLE, TableLog
from sabot_cli.output import NOT_VERIFIED, OK, Output
from sabot_cli.terminal_keys import TypedKeys
from sabot_driver.errors import SabotError
from sabot_session.acts import ACTS, Act, NotAnAct
from sabot_session.needs import Need, NeedKind
from sabot_session.note_acts import ReadNote
from sabot_table.errors import ImpossibleCards, RuleViolation, TableError

INTERRUPTED = 130
POLL_S = 0.05
LEAST_WORDS = 10  # columns; fewer tell nothing
KEYS = {
    "b": ("no_more_bets", "no more bets, with other seats or wagers"),
    "f": ("report_face_up", "a card lies face up in the shoe: the round is void"),
    "w": ("report_wrong_number", "a wrong number of cards: the round is void"),
    "s": ("report_shoe_failed", "the shoe jammed or does not deal: the round is void"),
    "v": ("void_round", "the floor voids the round"),
    "e": ("settle", "the wagers are settled as shown"),
    "h": ("hold", "hold the round's cards until the floor releases them"),
    "d": ("open_dispute", "the screen is wrong: open a dispute"),
    "c": ("call_floor", "call the floor"),
    "n": ("read_note", "the oldest note of the floor is read"),
    "i": ("sign_in", "the next dealer signs in"),
    "o": ("sign_out", "the dealer leaves"),
    "x": ("close_table", "the floor closes the table"),
}
"""Acts that a key gives, whatever the table needs."""
OTHER_KEYS = (
    ("Enter", "do what the line below says"),
    ("Tab", "show the next thing that is needed"),
    (":", "any act by its name"),
    ("?", "these keys"),
    ("q", "leave; the table stays as it is"),
)
ERRORS = (SabotError, RuleViolation, ImpossibleCards, TableError, NotAnAct)


class TerminalTable:
    """Shows one table and takes what people type.

    A need that is longer than the line below is told whole above it.
    """

    def __init__(
        self,
        table: TableFace,
        output: Output,
        printer: LinesPrinter,
        who: Identification,
        usual: Wagers,
        timeout: float,
    ) -> None:
        self._table = table
        self._printer = printer
        self._who = who
        self._usual = usual
        self._log = TableLog(table, output, printer)
        client = table.own_client
        self._clock = None if client is None else DeviceClock(client, output, printer, timeout)
        self._entry: Asking | None = None
        self._done: Callable[[Any], None] = lambda given: None
        self._question = Question("")
        self._typed = ""
        self._chosen = 0
        self._shown: Need | None = None
        self._told_whole = ""  # the id of a need
        self._announced = ""
        self._notes: set[str] = set()
        self._stopped = ""
        self._advice = ""

    def run(self, rounds: int | None) -> int:
        """Show the table until somebody leaves, or so many rounds are over; the exit code."""
        began, code = time.monotonic(), OK
        self._printer.print([standing(self._table), "Press ? for the keys, q to leave."])
        self._tell_notes()
        try:
            with TypedKeys() as keys:
                code = self._loop(keys, rounds)
        except RuleViolation as refused:
            self._stopped, self._advice, code = f"{refused.what} ({refused.clause})", refused.do, NOT_VERIFIED
        finally:
            self._printer.status("")
            with contextlib.suppress(*ERRORS):
                say_open_round(self._table, self._printer)
            self._log.sum_up(time.monotonic() - began, self._stopped, self._advice)
        return NOT_VERIFIED if self._log.not_proved and code == OK else code

    def _loop(self, keys: TypedKeys, rounds: int | None) -> int:
        while True:
            if self._log.follow():
                self._announce()
                self._tell_notes()
            if self._clock is not None:
                self._clock.look()
            if rounds is not None and len(self._log.rounds) >= rounds and self._entry is None:
                return OK
            needs = self._table.needs()
            self._printer.status(self._status(needs))
            key = keys.read(POLL_S)
            if key == "interrupt":
                return INTERRUPTED
            if key == "end":
                return OK
            if key is not None and self._entry is not None:
                self._type(key)
            elif key == "q":
                return OK
            elif key is not None:
                self._press(key, needs)

    def _announce(self) -> None:
        """What the dealer says aloud, when it is new."""
        words = str(self._table.snapshot()["announce"])
        if words and words != self._announced:
            self._printer.print(f'Say: "{words}"')
        self._announced = words

    def _tell_notes(self) -> None:
        """Notes of the floor that nobody has read, each once."""
        waiting = self._waiting_notes()
        for each in waiting:
            if each["note_id"] not in self._notes:
                at = datetime.fromtimestamp(each["at_s"], UTC).strftime("%H:%M")
                self._printer.print(f"Note of {each['sender']}, {at} UTC: {each['text']}  (n: it is read)")
        self._notes = {each["note_id"] for each in waiting}

    def _waiting_notes(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self._table.snapshot().get("notes", ())
        return found  # a service of an older version has none

    # -- the line below -------------------------------------------------------------------------

    def _status(self, needs: Sequence[Need]) -> str:
        width = (self._printer.width or 80) - 1
        if self._entry is not None:
            shown = "*" * len(self._typed) if self._question.hidden else self._typed
            text = f"{self._question}{shown}"
            return text if len(text) <= width else "…" + text[1 - width :]
        self._shown = chosen_need(needs, self._chosen)
        line = need_line(needs, self._shown, width)
        if self._shown is not None and self._shown.words not in line and self._shown.id != self._told_whole:
            self._printer.print(said_by(self._shown))
            self._told_whole = self._shown.id
        return line

    # -- keys -----------------------------------------------------------------------------------

    def _press(self, key: str, needs: Sequence[Need]) -> None:
        wanted = [each for each in needs if each.acts]
        if key == "enter" and self._shown is not None:
            self._begin(ACTS[self._shown.acts[0]], self._shown)
        elif key == "enter":
            self._printer.print("The machine senses this by itself; there is nothing to confirm.")
        elif key == "tab":
            self._chosen += 1
        elif key == "?":
            self._explain(needs)
        elif key == ":":
            self._start(ask(Question("act"), _act_named), lambda kind: self._begin(kind, None))
        elif key == "n" and not self._waiting_notes():
            self._printer.print("No note of the floor waits.")
        elif key in KEYS and KEYS[key][0] in ACTS:
            kind = ACTS[KEYS[key][0]]
            met = next((each for each in wanted if kind.NAME in each.acts), None)
            self._begin(kind, met, ask_bets=True)
        else:
            self._printer.print(f"'{key}' does nothing here; ? shows the keys.")

    def _explain(self, needs: Sequence[Need]) -> None:
        lines = ["What is needed now:"]
        for need in needs:
            who = " or ".join(need.roles) or "no one here"
            clause = f" ({need.clause})" if need.clause else ""
            lines.append(f"  {who}: {need.words}{clause}")
        if not needs:
            lines.append("  nothing: the machine works")
        lines.append("Keys:")
        lines += [f"  {key:<5} {words}" for key, words in OTHER_KEYS]
        lines += [f"  {key:<5} {words}" for key, (name, words) in KEYS.items() if name in ACTS]
        self._printer.print(lines)

    # -- acts -----------------------------------------------------------------------------------

    def _begin(self, kind: type[Act], need: Need | None, ask_bets: bool = False) -> None:
        act_id, shown = secrets.token_hex(8), self._table.snapshot()
        seen = int(shown["newest_row"]) if need is None else need.seen  # what the line below told
        dealer = shown["table"]["dealer"]
        roles = [each for each in kind.ROLES if need is None or each in need.roles]

        def gather() -> Asking:
            if (
                kind.NAME == "no_more_bets"
                and need is not None
                and need.details.get("seats")
                and not ask_bets
            ):
                act: Act = kind()
            else:
                notes = self._waiting_notes() if kind is ReadNote else ()
                told = {"note_id": notes[0]["note_id"]} if notes else None
                act = yield from ask_act(kind, need, self._table.rules, self._usual, told)
            who = yield from self._who.ask(roles, dealer, kind.NAME == "sign_in")
            return act, who

        def give(given: tuple[Act, object]) -> None:
            self._table.act(act_id, None if need is None else need.id, seen, given[1], given[0])
            self._chosen = 0

        self._start(gather(), give)

    def _start(self, entry: Asking, done: Callable[[Any], None]) -> None:
        self._entry, self._done, self._typed = entry, done, ""
        self._advance(None)

    def _type(self, key: str) -> None:
        if key == "enter":
            text, self._typed = self._typed, ""
            self._advance(text)
        elif key == "escape":
            self._entry = None
            self._printer.print("Nothing was done.")
        elif key == "backspace":
            self._typed = self._typed[:-1]
        elif len(key) == 1 and key.isprintable():
            self._typed += key

    def _advance(self, text: str | None) -> None:
        """Give an answer to the entry in progress; do what it was for if it was the last."""
        assert self._entry is not None
        try:
            self._question = next(self._entry) if text is None else self._entry.send(text)
            if self._question.hint:
                self._printer.print(self._question.hint)
            if self._question.wrong:
                self._printer.print(self._question.wrong, TROUBLE)
        except StopIteration as done:
            self._entry = None
            self._finish(done.value)
        except ERRORS as error:
            self._entry = None
            self._tell_error(error)

    def _finish(self, given: object) -> None:
        try:
            self._done(given)
        except ERRORS as error:
            if error is self._table.failure:
                raise
            self._tell_error(error)

    def _tell_error(self, error: BaseException) -> None:
        lines, advice = [f"Not done: {error}"], getattr(error, "advice", "")
        if isinstance(error, RuleViolation):
            lines = [f"Not done: {error.what} ({error.clause})"]
            advice = "" if error.do.startswith("now:") else error.do  # that lists the program's own names
        if advice:
            lines.append(f"  {advice}")
        self._printer.print(lines, TROUBLE)


def _act_named(text: str) -> type[Act]:
    name = required(text).replace(" ", "_")
    if name not in ACTS:
        raise NotAnAct(f"there is no act '{name}'; the acts are {', '.join(sorted(ACTS))}")
    return ACTS[name]


def said_by(need: Need) -> str:
    """A need in words: who, what, by which clause."""
    clause = f" ({need.clause})" if need.clause else ""
    return f"{who_acts(need)}: {need.words}{clause}"


def chosen_need(needs: Sequence[Need], chosen: int) -> Need | None:
    """The need that Enter meets; None if the machine senses everything by itself."""
    wanted = [each for each in needs if each.acts]
    return wanted[chosen % len(wanted)] if wanted else None


def need_line(needs: Sequence[Need], shown: Need | None, width: int) -> str:
    """What is needed now, in one line: first what the machine senses, then what a key confirms.

    If both do not fit, what the machine senses is cut or left out: Enter never confirms what is not shown.
    """
    wanted = [each for each in needs if each.acts]
    parts = list(dict.fromkeys(each.words for each in needs if not each.acts))
    confirmed = ""
    keys = "  [?] keys"
    if shown is not None:
        confirmed = said_by(shown)
        more = f"  [Tab] +{len(wanted) - 1}" if len(wanted) > 1 else ""
        keys = f"  [Enter] done{more}  [?]"
    elif any(each.kind is NeedKind.LINK for each in needs):
        keys = "  [q] leave"
    text = "; ".join(parts)
    room = max(LEAST_WORDS, width - len(keys))
    if confirmed and text:
        left = room - len("; ") - len(confirmed)
        text = f"{cut(text, left)}; {confirmed}" if left >= LEAST_WORDS else confirmed
    text = text or confirmed or "the machine works; nothing is needed from people"
    return cut(text, room) + keys
