"""What rounds of both games share: wagers, what people report, void rounds, settlement.

A round is led by the table's state, so that one that was interrupted goes on where it was.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sabot_cli.playing.card_entry import CardEntry, VoidRequested
from sabot_cli.playing.deck_handling import TRIES, DeckHandling
from sabot_cli.playing.device_control import WAIT_S, TableStopped
from sabot_cli.playing.irregularity_reports import IrregularityReport
from sabot_cli.playing.recorded_table import RecordedTable
from sabot_cli.playing.shuffle_proofs import ShuffleProofs
from sabot_cli.playing.table_people import people_at
from sabot_cli.wager_plan import WagerPlan
from sabot_driver import Client, Credential
from sabot_driver.errors import DeviceRebooted, NotAllowed, Refused, WrongState
from sabot_protocol.host.message_base import Request
from sabot_protocol.host.messages import (
    Back,
    CloseBets,
    Faces,
    OpenRound,
    RevealRound,
    Role,
    RoundEnded,
    ShoeState,
    Verdict,
)
from sabot_table import errors
from sabot_table.cards import DECK_CARDS
from sabot_table.procedure import TableRole
from sabot_table.procedure.vocabulary import RemovalReason

WRONG = (Verdict.MISDEALT, Verdict.CARD_MISSING, Verdict.CARD_EXTRA)
RANKS, SUITS = "A23456789TJQK", "SHDC"  # of a face's number, 0 to 51


@dataclass
class PlayedRound:
    """One round, for whoever is told of it."""

    round_id: int
    deck_id: int
    back: Back | None
    shuffle_id: int | None
    seats: list[int] = field(default_factory=list)
    stacks: list[int] = field(default_factory=list)
    ended: RoundEnded | None = None
    hands: list[list[str]] | None = None
    source: str | None = None
    """``reader`` or ``typed``, once the cards are known."""
    void_reason: str | None = None
    void_clause: str | None = None
    simulated: bool = False
    settlement: list[dict[str, Any]] | None = None
    """Line by line, once it is settled or void."""


class RoundPlay(DeckHandling):
    """The round in play."""

    def __init__(
        self,
        client: Client,
        desk: RecordedTable,
        proofs: ShuffleProofs,
        timeout: float,
        credential: Callable[[Role], Credential],
        book: WagerPlan,
        card_entry: CardEntry,
        tell: Callable[[PlayedRound], None],
        reports: list[IrregularityReport] | None = None,
        patience_s: float = WAIT_S,
    ) -> None:
        super().__init__(client, desk, proofs, timeout, credential, patience_s)
        self.book = book
        self.card_entry = card_entry
        self.people = people_at(client)
        self.tell = tell
        self.reports = reports or []
        self.number = 0
        """How many rounds this program has played; reports are for these numbers."""

    @property
    def table_state(self) -> str:
        """Where the table is."""
        return self.desk.table.state

    # -- the course of a round ------------------------------------------------------------------

    def sit(self) -> None:
        """Players take their seats."""
        for seat in self.book.seats:
            if seat not in self.desk.table.memory.seated:
                self.desk.do(self.desk.procedure.betting.sit, TableRole.PLAYER, seat)

    def play_round(self) -> None:
        """One round to its end, void or not; one that was in play when the program ended goes on."""
        if self.table_state == "between":
            self.begin()
        steps = {
            "betting": self._bet,
            "dealing": self.deal,
            "counting": self.count,
            "revealing": self.reveal,
            "drawing": self.draw,
            "settling": self.settle,
            "collecting": self._collect,
            "voided": self._clear_away,
        }
        while (step := steps.get(self.table_state)) is not None:
            self.people_report()
            if self.table_state in steps and steps[self.table_state] == step:
                step()
        self.desk.keep()

    @abstractmethod
    def prepare(self) -> None:
        """Everything a round needs is there: the pack whose turn it is in the shoe."""

    def begin(self) -> None:
        """Bets are opened."""
        self.number += 1
        self.ended = self.void_reason = None
        self.desk.do(self.desk.procedure.betting.open_bets, TableRole.DEALER)

    def _bet(self) -> None:
        """Wagers are made, the device opens its round, bets are closed."""
        table, desk = self.desk.table, self.desk
        main = self.desk.rules.main_wagers
        for seat, made in self.book.wagers.items():
            there = table.round.wagers.get(seat, {})
            for wager in sorted(made, key=lambda each: each not in main):
                if wager not in there:
                    desk.do(desk.procedure.betting.place_wager, TableRole.PLAYER, seat, wager, made[wager])
        playing = table.round
        try:
            if self.client.status(self.timeout).round_id != playing.round_id:
                self.ask(OpenRound(playing.round_id, playing.pack_id))
        except (NotAllowed, WrongState):
            desk.do(desk.procedure.betting.return_bets, TableRole.DEALER)
            raise
        try:
            desk.do(desk.procedure.betting.no_more_bets, TableRole.DEALER)
        except errors.RuleViolation:
            self.void_on_device("bets cannot be closed")
            desk.do(desk.procedure.betting.return_bets, TableRole.DEALER)
            raise
        self.give(CloseBets(playing.round_id, self.hands()))

    @abstractmethod
    def deal(self) -> None:
        """Cards until every hand has those it begins with."""

    def count(self) -> None:
        """The stub is counted (three-card)."""
        raise AssertionError

    def reveal(self) -> None:
        """The hands are shown (three-card)."""
        raise AssertionError

    def draw(self) -> None:
        """Third cards (mini)."""
        raise AssertionError

    def give(self, command: Request[Any]) -> bool:
        """A command of the round; whether it was accepted. If not, the round is void or soon told to be."""
        state = self.table_state
        try:
            self.ask(command)
        except (Refused, DeviceRebooted):
            self.wait(lambda: self.table_state != state, "the round to be void", 20.0)
            return False
        return True

    # -- what people report ---------------------------------------------------------------------

    def people_report(self) -> None:
        """Whatever somebody has to report of this round and may be reported now."""
        for report in list(self.reports):
            if report.round == self.number and self.may_report(report):
                self.reports.remove(report)
                try:
                    self.carry_out(report)
                except errors.RuleViolation as refused:
                    self.desk.tell_refused(refused)

    def may_report(self, report: IrregularityReport) -> bool:
        """Whether this is the moment for it."""
        return report.may_be(self.table_state, [row.action for row in self.desk.table.expects()])

    def action_of(self, report: IrregularityReport) -> Callable[..., None]:
        """The action of the procedure that a report stands for."""
        procedure = self.desk.procedure
        actions: dict[str, Callable[..., None]] = {
            "face_up_card": procedure.irregularities.face_up_card,
            "drawn_in_error": procedure.irregularities.drawn_in_error,
            "wrong_number": procedure.voiding.wrong_number,
            "shoe_failed": procedure.voiding.shoe_failed,
            "unauthorised_third": procedure.mini.unauthorised_third,
            "card_exposed": procedure.mini.card_exposed,
        }
        return actions[report.what]

    def carry_out(self, report: IrregularityReport) -> None:
        """Something that the device cannot see has happened."""
        self.output.tell("report", f"[yellow]the dealer reports: {report}[/yellow]", **report.to_json())
        self.void_reason = self.void_reason or report.what
        self.desk.do(self.action_of(report), TableRole.DEALER, *report.arguments())

    # -- cards ----------------------------------------------------------------------------------

    def read(self, round_id: int, draw: int) -> list[str] | None:
        """What the reader at the exit saw of a stack; None if it did not, or there is none."""
        try:
            self.ask(RevealRound(round_id))
            faces = self.ask(Faces(round_id, draw)).faces
        except (Refused, DeviceRebooted):
            self.catch_up()  # the power has taken it, or the round is void
            return None
        if not faces or any(face >= DECK_CARDS for face in faces):
            return None
        return [RANKS[face % 13] + SUITS[face // 13] for face in faces]

    def seen(self, round_id: int, draw: int) -> list[str] | None:
        """What people at an emulated table see of a stack that lies open."""
        stacks = [] if self.people is None else self.people.hands.get(round_id, [])
        return stacks[draw - 1] if 0 < draw <= len(stacks) else None

    def ask_again(self, ask: Callable[[], None], what: str) -> None:
        """Have cards typed until they can be; the floor voids the round if the dealer says so."""
        for _ in range(TRIES):
            try:
                ask()
                return
            except errors.ImpossibleCards as error:
                text = str(error)
                self.output.tell("impossible", f"[red]{text}[/red]", what=what, message=text)
                try:
                    self.card_entry.complain(text)
                except VoidRequested as voids:
                    self.void_impossible(str(voids))
                    return
            except VoidRequested as voids:
                self.void_reason = "floor_order"
                self.desk.do(self.desk.procedure.voiding.wrong_number, TableRole.FLOOR, str(voids))
                return
        raise TableStopped(f"{what} cannot be told", "Have the floor decide.")

    def void_impossible(self, why: str) -> None:
        """Cards that no such pack can have: the round is void, and the pack leaves."""
        table = self.desk.table
        self.void_reason = "impossible_cards"
        self.desk.do(self.desk.procedure.voiding.wrong_number, TableRole.FLOOR, why)
        pack, why = table.pack(table.round.pack_id), "a card is there twice"
        self.desk.procedure.packs.mark_for_removal(pack, RemovalReason.DAMAGED, why)

    # -- the end --------------------------------------------------------------------------------

    def settle(self) -> None:
        """The device's round is over; if it is not void, every wager is settled."""
        self.end_on_device()
        if self.table_state == "settling":
            self.desk.do(self.desk.procedure.round_end.settle, TableRole.DEALER)

    @abstractmethod
    def played(self) -> PlayedRound:
        """The round as it stands."""

    def told(self) -> PlayedRound:
        """The round in play, with what every kind of it has."""
        playing = self.desk.table.round
        deck = self.decks.get(playing.pack_id)
        settled: Any = playing.settlement
        return PlayedRound(
            playing.round_id,
            playing.pack_id,
            None if deck is None else deck.back,
            None if deck is None else deck.shuffle_id,
            [seat for seat in self.desk.table.turns() if seat],
            source={"reader": "reader", "dealer": "typed"}.get(playing.source),
            void_reason=self._why_void() if playing.void_clause else None,
            void_clause=playing.void_clause or None,
            simulated=playing.simulated,
            settlement=None if settled is None else settled["settlement"],
        )

    def _why_void(self) -> str:
        return self.void_reason or self.desk.table.round.void_why.replace(" ", "_")

    def _collect(self) -> None:
        """Told, and the cards go to the discards."""
        self.end_on_device()
        self.tell(self.played())
        self.desk.do(self.desk.procedure.round_end.collect, TableRole.DEALER)
        self.take_away()

    def end_on_device(self) -> None:
        """The device's round ends, where it has not."""

    def _clear_away(self) -> None:
        """A void round is told; its cards come out of the machine and off the layout."""
        table = self.desk.table
        if self.desk.take_order("void-round") is not None:
            self.wait(self._may_void, "the shoe to rest")
            self.void_on_device(table.round.void_why)
        if self.ended is not None and self.ended.verdict in WRONG:
            self.wait(lambda: self.void_reason is not None, "the device to call the round void")
        self.tell(self.played())
        pack_id = table.round.pack_id
        if table.round.cards_in_device:
            self.come_out(pack_id)
            self.desk.do(self.desk.procedure.voiding.empty_device, TableRole.DEALER)
        self.desk.do(self.desk.procedure.round_end.collect, TableRole.DEALER)
        self.take_away()

    def _may_void(self) -> bool:
        moving = (ShoeState.DISPENSING, ShoeState.EJECTING)
        return self.shoe not in moving or bool(self.faults)

    def come_out(self, deck_id: int) -> None:
        """The cards of a pack leave the shoe, whatever state it is in."""
        for _ in range(TRIES):
            if not self.recover():
                if self._is_out(deck_id):
                    return
                if self.shoe in (ShoeState.UNPROVED, ShoeState.READY):
                    self.empty()
            self.wait(lambda: bool(self.faults) or self._rests(), "the cards to come out")
        raise TableStopped("the cards do not come out of the shoe")

    def _is_out(self, deck_id: int) -> bool:
        out = self.shoe in (ShoeState.EMPTY, ShoeState.BLOCKED)
        return out or (self.shoe is ShoeState.READY and self.in_shoe != deck_id)

    def _rests(self) -> bool:
        return self.shoe in (
            ShoeState.EMPTY, ShoeState.READY, ShoeState.UNPROVED, ShoeState.OUT_OF_ORDER, ShoeState.BLOCKED,
        )  # fmt: skip

    def close_table(self) -> None:
        """Marked vigorish is collected; the table stays open for the next rounds."""
        for seat in list(self.desk.table.memory.marked):
            cents = self.desk.do(self.desk.procedure.betting.collect_vigorish, TableRole.DEALER, seat)
            words = f"vigorish of seat {seat}: {cents} cents"
            self.output.tell("vigorish", words, seat=seat, cents=cents)
        self.desk.keep()
