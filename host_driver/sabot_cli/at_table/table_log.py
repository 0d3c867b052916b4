"""What happens at a table, told as its record grows: lines for people, objects for programs."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from sabot_cli.at_table.lines_printer import LinesPrinter
from sabot_cli.at_table.round_text import money, round_lines, totals
from sabot_cli.at_table.table_face import TableFace
from sabot_cli.output import Output
from sabot_session import row_data as d
from sabot_session.countersigned_rows import act_in_words, name_of
from sabot_session.round_history import Round
from sabot_session.row_kinds import data_of
from sabot_session.rows import NumberedRow
from sabot_table.cards import DECK_CARDS
from sabot_table.rule_texts import GameKind
from sabot_table.settlement import CardSource

CONNECT_S = 3.0  # a link that takes no longer to come up is not called lost
WARNING, TROUBLE = "yellow", "red"
ORDER = (d.HandOf.SEAT, d.HandOf.DEALER, d.HandOf.PLAYER, d.HandOf.BANKER)
"""Hands in the order of dealing: seats as they were dealt to, then the dealer; or Player and Banker."""
LEARNED = ("receive_pack", "verify", "start_shuffle", "open_bets", "begin_simulated")
SIGNED = ("void", "count_stub", "clear_fault", "unexplained")
"""Kinds of rows that tell the names of packs, who verified them, which shuffle a round was played with,
and what the floor countersigns."""
SOURCES = {CardSource.READER: "reader", CardSource.DEALER: "typed"}


class TableLog:
    """Tells rows of the record once each, and sums up."""

    def __init__(self, table: TableFace, output: Output, printer: LinesPrinter) -> None:
        self._table = table
        self._output = output
        self._printer = printer
        self._after = int(table.snapshot()["newest_row"])
        self._first_boot = table.boot_id
        self._backs: dict[int, str] = {}
        self._verified_by: dict[int, str] = {}  # by pack
        self._signed: dict[int, str] = {}  # by row: what the floor countersigns
        self._shuffle_of: dict[int, int] = {}  # by pack: its newest shuffle
        self._played_with: dict[int, int] = {}  # by round: the shuffle of its pack
        self._up: bool | None = None  # nothing was told of the link yet
        self._began = time.monotonic()
        self.rounds: dict[int, Round] = {}
        """Rounds that ended while this program ran, by number."""
        self.simulated_rounds: dict[int, Round] = {}
        """Simulated rounds of mini baccarat (MDM 13.D); they have no wagers."""
        self.shuffles = self.proved = self.checked = 0
        self.not_proved = ""
        """Which shuffle is not the one that the device was bound to, and why."""
        self.faults: dict[str, int] = {}
        for each in table.rows(0, *LEARNED, *SIGNED):
            self._learn(each)

    @property
    def newest(self) -> int:
        """The number of the newest row that was told."""
        return self._after

    def back(self, pack_id: int) -> str:
        """The name of a pack by its back, such as RED."""
        return self._backs.get(pack_id, f"pack {pack_id}").upper()

    def follow(self) -> int:
        """Tell what is new; how many rows were."""
        self._tell_link()
        told = 0
        for each in self._table.rows(self._after):
            self._learn(each)
            self._tell(each)
            self._after = each.number
            told += 1
        return told

    def _tell_link(self) -> None:
        up = self._table.snapshot()["device"]["up"]
        if up == self._up or (self._up is None and not up and time.monotonic() < self._began + CONNECT_S):
            return
        first, self._up = self._up is None, up
        if up and first:
            return
        if up:
            self._printer.print("the machine answers again; play goes on", WARNING)
        else:
            words = (
                "the machine does not answer: check its cable and power. Nothing is lost; play goes on then"
            )
            self._printer.print(words, TROUBLE)
        self._output.tell("link", None, up=up)

    def _learn(self, each: NumberedRow) -> None:
        data = data_of(each.row)
        if getattr(data, "countersign", False):
            self._signed[each.number] = act_in_words(each.row)
        match data:
            case d.OfPack() if each.row.kind == "verify":
                self._verified_by[data.pack_id] = name_of(each.row.actor)
            case d.PackReceived():
                self._backs[data.pack_id] = data.back
            case d.ShuffleStarted() if data.shuffle_id is not None:
                self._shuffle_of[data.pack_id] = data.shuffle_id
            case d.RoundOpened():
                self._played_with[each.row.round_id] = self._shuffle_of.get(data.pack_id, 0)

    # -- rows -----------------------------------------------------------------------------------

    def _tell(self, each: NumberedRow) -> None:
        row, data = each.row, data_of(each.row)
        who = name_of(row.actor)
        match data:
            case d.Settled() | d.Voided():
                self._tell_round(row.round_id)
            case d.Exposed() if row.kind in ("coup_complete", "coup_simulated"):
                self._tell_round(row.round_id)
            case d.PackReceived():
                self._say(f"{who} received {data.back.upper()}, bag {data.bag}")
                self._output.tell("deck", deck=data.back.upper(), deck_id=data.pack_id, bag=data.bag)
            case d.PackRetired():
                reason = data.reason.replace("_", " ")
                where = data.destination.replace("_", " ")
                self._say(f"{who} took {self.back(data.pack_id)} off the table ({reason}): {where}")
                self._output.tell("deck_removed", deck_id=data.pack_id, reason=str(data.reason))
            case d.Bets():
                self._output.tell("no_more_bets", round_id=row.round_id, seats=list(data.seats))
            case d.ShuffleStarted() if data.shuffle_id is not None:
                self._tell_committed(data.pack_id, data.shuffle_id)
            case d.ShuffleRevealed():
                self._tell_revealed(data)
            case d.ShuffleFinished() if data.by is d.ShuffledBy.MACHINE:
                self.shuffles += 1
                self.proved += data.cards == data.expected
                if data.cards != data.expected:
                    seen = "not proved" if data.cards is None else f"{data.cards} of {data.expected} cards"
                    self._say(f"{self.back(data.pack_id)} was counted: {seen}", TROUBLE)
            case d.PackBurned():
                name, burned = self.back(data.pack_id), data.burned
                self._say(f"{who} burned {data.first} of {name}, and {burned} cards with it")
                self._output.tell("shoe", deck_id=data.pack_id, burn_card=data.first, burned=burned)
            case d.FaultRaised():
                self._tell_fault(data)
            case d.FaultCleared():
                self._say(f"cleared: {data.fault.replace('_', ' ')}")
                self._output.tell("fault_cleared", fault=data.fault)
            case d.MachineStarted() if row.follows is None or row.follows.boot != self._first_boot:
                self._say(f"the machine started again ({data.reason}); nothing in it is proved", WARNING)
                self._output.tell("booted", reason=data.reason)
            case d.HoursWarned():
                words = f"the hours of {self.back(data.pack_id)} end in {data.minutes} minutes"
                self._say(words, WARNING)
                self._output.tell("hours", deck_id=data.pack_id, minutes=data.minutes)
            case d.VerdictGiven():
                self._say(f"{who}: {data.verdict.replace('_', ' ')}")
            case d.CommandAnswered():
                why = data.outcome.removeprefix(f"{data.command}: ")
                why = why.rpartition("Why: ")[2] or why  # the reason says more than the kind of refusal
                what = data.command.replace("_", " ")
                self._say(f"the machine refused the command '{what}': {why}", WARNING)
                self._output.tell("command_refused", command=data.command, outcome=data.outcome)
            case d.TableClosed():
                self._tell_closing(who, data)
            case d.OfRow() if row.kind == "countersign" and data.row in self._signed:
                self._say(f"{who} countersigned {self._signed[data.row]} (row {data.row})")
            case d.OfPack() if row.kind == "stack" and data.pack_id in self._verified_by:
                done = f"{self.back(data.pack_id)}: inspected, spread, washed, stacked"
                self._say(f"{who} prepared {done}; {self._verified_by[data.pack_id]} verified it")
            case _:
                words = sentence(each, self.back)
                if words:
                    self._say(f"{who} {words}")
        if row.kind == "correct" and row.round_id in self.rounds:
            self.rounds[row.round_id] = self._table.round(row.round_id)

    def _tell_committed(self, pack_id: int, shuffle_id: int) -> None:
        begun = self._table.commitment(shuffle_id)
        if begun is not None:
            commitment, nonce = begun
            self._output.tell(
                "shuffle_committed",
                deck_id=pack_id,
                shuffle_id=shuffle_id,
                commitment=commitment,
                nonce=nonce,
            )

    def _tell_revealed(self, data: d.ShuffleRevealed) -> None:
        self.checked += 1
        if data.wrong:
            words = f"shuffle {data.shuffle_id} is not the one that the machine committed to"
            self.not_proved = f"{words}: {data.wrong}"
            self._say(self.not_proved, TROUBLE)
        self._output.tell(
            "shuffle_revealed",
            deck_id=data.pack_id,
            shuffle_id=data.shuffle_id,
            cards=data.cards,
            commitment=data.commitment,
            seed=data.seed,
            nonce=data.nonce,
            placed=list(data.slots),
            ok=not data.wrong,
            wrong=data.wrong.split("; ") if data.wrong else [],
        )

    def _say(self, words: str, style: str = "") -> None:
        self._printer.print(words, style)

    def _tell_fault(self, data: d.FaultRaised) -> None:
        self.faults[data.fault] = self.faults.get(data.fault, 0) + 1
        steps = " ".join(data.steps)
        words = f"STOPPED at the {data.place}: {data.fault.replace('_', ' ')}"
        self._say(f"{words}. {steps}" if steps else words, TROUBLE)
        self._output.tell("fault", fault=data.fault, place=data.place, cards=data.cards, steps=steps)

    def _tell_closing(self, who: str, data: d.TableClosed) -> None:
        lines = [f"{who} closed the table"]
        for what, rows in (
            ("rows to countersign", data.countersignatures),
            ("disputes without decision, rows", data.disputes),
            ("holds, rows", data.holds),
        ):
            if rows:
                lines.append(f"  still open: {what} {', '.join(map(str, rows))}")
        kept = self._table.checkpoints()
        if kept:
            lines += ["The floor keeps these lines (sabot evidence show):", *kept]
        self._printer.print(lines)
        self._output.tell("checkpoints", lines=kept)

    def _tell_round(self, round_id: int) -> None:
        before = self.rounds.get(round_id) or self.simulated_rounds.get(round_id)
        found = self._table.round(round_id)
        if before is not None and (before.void, before.lines) == (found.void, found.lines):
            return
        (self.simulated_rounds if found.simulated else self.rounds)[round_id] = found
        style = TROUBLE if found.void is not None else ""
        self._printer.print(round_lines(found, self._table.rules, self.back(found.pack_id)), style)
        event = "simulated_round" if found.simulated else "round"
        self._output.tell(event, None, **self._round_fields(found))

    def _round_fields(self, each: Round) -> dict[str, Any]:
        counted, void = each.facts.counted, each.void
        mini = self._table.rules.game is GameKind.MINI
        hands = sorted(each.hands, key=lambda it: (ORDER.index(it.of), each.hands.index(it)))
        known = bool(hands) and all(it.cards is not None for it in hands)
        settlement: list[Mapping[str, Any]] | None = [line.to_json() for line in each.lines]
        if void is not None:
            settlement = (
                None if void.give_back is None else [_returned(made, void) for made in void.give_back]
            )
        bets = each.facts.bets
        seats = list(bets.seats) if bets is not None else []
        clockwise = [seat for seat in self._table.rules.clockwise() if seat in seats]
        total = None if counted is None or counted.stub is None else (counted.stacks or 0) + counted.stub
        return {
            "round": len(self.rounds),
            "round_id": each.round_id,
            "deck": self.back(each.pack_id),
            "deck_id": each.pack_id,
            "shuffle_id": self._played_with.get(each.round_id),
            "seats": ["player", "banker"] if mini else [*clockwise, "dealer"],
            "betting": seats,
            "hands": [_short(it.cards or ()) for it in hands] if known else None,
            "stub": None if counted is None else counted.stub,
            "count": None if void is not None else total,
            "expected": DECK_CARDS * self._table.rules.cards.decks,
            "card_source": SOURCES[each.source] if known and each.source is not None else None,
            "void": void is not None,
            "void_reason": None if void is None else void.why.replace(" ", "_"),
            "void_clause": None if void is None else void.clause,
            "verdict": None if counted is None or counted.verdict is None else str(counted.verdict),
            "ruleset_sha256": self._table.rules.sha256,
            "settlement": settlement,
        }

    # -- the end --------------------------------------------------------------------------------

    def sum_up(self, seconds: float, stopped: str = "", advice: str = "") -> None:
        """The last words: rounds, money, shuffles, and why play stopped."""
        void = sum(each.void is not None for each in self.rounds.values())
        pay, take, back = totals(self.rounds.values())
        decks: dict[str, int] = {}
        for each in self.rounds.values():
            name = self.back(each.pack_id)
            decks[name] = decks.get(name, 0) + 1
        lines = [
            f"{len(self.rounds)} round{'' if len(self.rounds) == 1 else 's'}, {void} void; "
            f"paid {money(pay)}, taken {money(take)}, returned {money(back)}.",
            f"{self.shuffles} shuffle{'' if self.shuffles == 1 else 's'}, {self.proved} counted as complete, "
            f"{self.checked} revealed and checked; {seconds:.1f} s.",
        ]
        self._printer.print("")
        self._printer.print(lines)
        if stopped:
            self._printer.print([stopped, advice] if advice else stopped, TROUBLE)
        self._printer.close()
        self._output.tell(
            "summary",
            None,
            rounds=len(self.rounds),
            void=void,
            paid_cents=pay,
            taken_cents=take,
            returned_cents=back,
            shuffles=self.shuffles,
            shuffles_proved=self.proved,
            shuffles_checked=self.checked,
            decks=decks,
            faults=self.faults,
            seconds=round(seconds, 3),
            ok=not stopped,
            stopped=stopped or None,
        )


SENTENCES: Mapping[str, str] = {
    "open_table": "opened the table: {ruleset}",
    "sign_in": "deals",
    "sign_out": "leaves the table",
    "stack": "prepared {pack}: inspected, verified, spread, washed, stacked",
    "hold": "holds the cards of round {round}: {why}",
    "release": "released the cards of round {round}",
    "countersign": "countersigned row {row}",
    "open_dispute": "opened a dispute about round {round}, row {number}: {why}",
    "decide_dispute": "decided the dispute about round {round}, row {row}: {decision}",
    "call_floor": "called the floor: {why}",
    "note_read": "has read the note of {sender}",
    "propose_correction": "says that round {round} was other than on record: {why}",
    "correct": "corrected round {round}: {why}",
    "decline_correction": "declined the correction of round {round}, row {row}",
    "clear_fault": "did the steps of the fault: {fault}",
    "empty_machine": "has every card taken out of the machine",
    "purge": "looked into the shoe's path and turned its roller",
    "path_inspected": "looked: the shoe's path is empty",
    "mark_out_of_order": "marked the {unit} out of order: {how}",
    "unit_failed": "reported: the {unit} cannot be used",
    "repaired": "says that the {unit} may be used again",
    "change_method": "changed the way to deal: {method}",
    "swap_machine": "put machine {after} in the place of {before}",
    "swap_pc": "put this computer in the place of another",
    "order_shuffle": "ordered {pack} to be shuffled again",
}
"""What people are told of a row, by its kind; other kinds are on record and not told."""


def sentence(each: NumberedRow, back: Callable[[int], str]) -> str:
    """What a row says, without its actor; "" for one that is not told."""
    form = SENTENCES.get(each.row.kind)
    if form is None:
        return ""
    data: dict[str, Any] = dict(each.row.data)
    pack = data.get("pack_id")
    return form.format_map(
        {
            **{name: str(value).replace("_", " ") for name, value in data.items()},
            "pack": back(pack) if isinstance(pack, int) else "",
            "round": each.row.round_id,
            "number": each.number,
        }
    )


def _returned(made: d.Wager, void: Any) -> dict[str, Any]:
    return {
        "seat": made.seat,
        "wager": made.wager,
        "stake_cents": made.cents,
        "outcome": "returned",
        "line": void.why,
        "pays_cents": 0,
        "vig_cents": 0,
        "clause": void.clause,
    }


def _short(cards: tuple[str, ...]) -> list[str]:
    """Cards of two characters each, as programs expect them."""
    return [each.replace("10", "T") for each in cards]
