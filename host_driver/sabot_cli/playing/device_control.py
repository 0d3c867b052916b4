"""The device at the table: its state by its events; waiting for it, clearing its faults, emptying it.

Each event goes to the procedure once. What the device reports of a round overrides the saved state.
"""

import contextlib
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.markup import escape

from sabot_cli.playing.recorded_table import RecordedTable
from sabot_cli.playing.shuffle_proofs import ShuffleProofs
from sabot_driver import Client, Credential, LostEvents, ReceivedEvent
from sabot_driver.errors import NotAllowed, Refused, SabotError, WrongState
from sabot_protocol.host.message_base import AnswerT, Request
from sabot_protocol.host.messages import (
    Back,
    Booted,
    ClearFault,
    ClockChanged,
    CloseBets,
    DeckCounted,
    DeckHours,
    DeckRemoved,
    Decks,
    Emptied,
    EmptyMachine,
    Fault,
    FaultCleared,
    FaultRaised,
    Forbidden,
    LastRound,
    OutOfOrderChanged,
    PathInspected,
    Purge,
    Purged,
    Role,
    RoundEnded,
    RoundVoided,
    SetClock,
    ShoeChanged,
    ShoeState,
    ShufflerChanged,
    ShufflerState,
    StackDispensed,
    StatusFlag,
    Verdict,
    VoidReason,
    VoidRound,
)
from sabot_table.procedure import TableRole, vocabulary
from sabot_table.procedure.vocabulary import DeviceUnit, RemovalReason

WAIT_S = 180.0  # the longest any motion of the machine may take before something is said
CLEAR_S = 60.0  # how long people have to empty a half
CATCH_UP_S = 2.0  # how long events may lag behind a status
NAMES = {Back.RED: "RED", Back.BLUE: "BLUE"}
MAY_BE_EMPTIED = (ShufflerState.IDLE, ShufflerState.STORED, ShufflerState.UNPROVED)
CARDS_ARE_OUT = ("dealing", "counting", "drawing")
CLOCK_TOLERANCE_S = 5


class TableStopped(SabotError):
    """The table cannot go on by itself."""

    advice = "Look at the machine; 'sabot status' says how it is, 'sabot watch' what it reports."


@dataclass
class DeckStatus:
    """A deck or batch at the table, as far as the events have told."""

    deck_id: int
    back: Back
    shuffle_id: int | None = None
    count: int | None = None
    """How many cards the newest shuffle proved; None if it proved none."""


class DeviceControl:
    """What the events have said so far."""

    def __init__(
        self,
        client: Client,
        desk: RecordedTable,
        proofs: ShuffleProofs,
        timeout: float,
        credential: Callable[[Role], Credential],
        patience_s: float = WAIT_S,
    ) -> None:
        self.client = client
        self.desk = desk
        self.output = desk.output
        self.proofs = proofs
        self.timeout = timeout
        self.credential = credential
        self.patience_s = patience_s
        self.decks: dict[int, DeckStatus] = {}
        self.shoe = ShoeState.STARTING
        self.shuffler = ShufflerState.STARTING
        self.in_shoe = 0
        self.in_shuffler = 0
        self.highest_deck = 0
        self.last_played = 0  # as the device said when the table was opened
        self.faults: list[FaultRaised] = []
        self.faults_seen: Counter[str] = Counter()
        self.faults_cleared = 0
        self.purges = 0
        self.shuffles = 0
        self.proved = 0
        self.lost = 0
        self.ended: RoundEnded | None = None
        self.void_reason: str | None = None
        """Of the newest round, as the device told it."""
        self.taken_out = desk.resumed
        """Whether shuffled packs may have come out of the machine without being played."""
        self._rebooted = False
        self._clock_changed = False
        self._quiet = True  # while the past is read
        self._at = 0

    # -- asking ---------------------------------------------------------------------------------

    def ask(self, message: Request[AnswerT]) -> AnswerT:
        """A request, once everything before it is on record."""
        self.desk.keep()
        return self.client.ask(message, self.timeout)

    def ask_floor(self, message: Request[Any], role: Role = Role.FLOOR) -> None:
        """What only the floor may ask (or service); the person's key authorises this one request."""
        self.desk.keep()
        self.client.ask(message, self.timeout, self.credential(role))

    # -- what was told --------------------------------------------------------------------------

    def read_past(self) -> None:
        """How things stand: what the journal has of events, and what the device says of decks and rounds."""
        if not self.desk.resumed:
            self.desk.at = self.client.journal.last_id()
        for event in self.client.events(0, timeout=0.2):
            self._take(event)
        self._quiet = False
        known = self.ask(Decks())
        shuffled = self.decks
        self.decks = {}
        for deck_id, back in zip(known.ids, known.backs, strict=True):
            before = shuffled.get(deck_id)
            self.decks[deck_id] = DeckStatus(deck_id, Back(back)) if before is None else before
            self.decks[deck_id].back = Back(back)
        self.last_played = known.last_played
        self.highest_deck = max([*known.ids, known.last_played, self.desk.table.memory.highest_pack])
        self.faults_seen.clear()
        self.shuffles = self.proved = self.lost = 0
        status = self.client.status(self.timeout)
        self.shoe, self.shuffler = ShoeState(status.shoe), ShufflerState(status.shuffler)
        if not status.flags & StatusFlag.FAULT_LATCHED:
            self.faults.clear()
        self.sync_round()
        self.desk.table.number_after(self.ask(LastRound()).round_id)

    def wait(self, done: Callable[[], bool], what: str, patience_s: float | None = None) -> None:
        """Follow events until something is so; TableStopped if it is not in a good while."""
        patience_s = self.patience_s if patience_s is None else patience_s
        ends = time.monotonic() + patience_s
        while not done():
            took = False
            for event in self.client.events(self._at, timeout=min(1.0, max(ends - time.monotonic(), 0.01))):
                took = True
                self._take(event)
                if self._rebooted:
                    self._rebooted = False
                    self.sync_round()
                if done():
                    break
            if not took and time.monotonic() > ends:
                raise TableStopped(f"waited {patience_s:.0f} s for {what}; the shoe is {self.shoe.name}")
        self.proofs.check()

    def catch_up(self) -> None:
        """Take in what has been told already, and a moment more."""
        for event in self.client.events(self._at, timeout=0.2):
            self._take(event)
        if self._rebooted:
            self._rebooted = False
            self.sync_round()

    def _take(self, event: ReceivedEvent | LostEvents) -> None:
        self._at = event.id
        if isinstance(event, LostEvents):
            self.lost += event.size or 1
            return
        self._heard(event.message)
        if event.id > self.desk.at:
            self.proofs.heard(event.message)
            self.pass_on(event.message)
            self.desk.at = event.id

    def _heard(self, told: object) -> None:
        if isinstance(told, Booted):
            self._forget()
            self._tell_boot(told)
        elif isinstance(told, ClockChanged):
            self._clock_changed = True
        elif isinstance(told, ShoeChanged):
            self.shoe = told.state
            self.in_shoe = 0 if told.state is ShoeState.EMPTY else told.deck_id
        elif isinstance(told, ShufflerChanged):
            self.shuffler = told.state
            self.in_shuffler = told.deck_id if told.state is not ShufflerState.IDLE else 0
        elif isinstance(told, DeckCounted):
            self.shuffles += 1
            self.proved += told.count == told.expected
            deck = self.decks.setdefault(told.deck_id, DeckStatus(told.deck_id, Back.RED))
            deck.count, deck.shuffle_id = told.count, told.shuffle_id
        elif isinstance(told, FaultRaised):
            self.faults.append(told)
            self.faults_seen[told.fault.name.lower()] += 1
            self._tell_fault(told)
        elif isinstance(told, Emptied):
            self.taken_out = True
        elif isinstance(told, Purged):
            self.purges += 1
        elif isinstance(told, FaultCleared):
            self.taken_out = True
            self.faults_cleared += 1
            cleared = [each for each in self.faults if each.fault is told.fault]
            if cleared:  # both halves may have stopped for the same
                self.faults.remove(cleared[0])
        elif isinstance(told, DeckRemoved):
            self._deck_removed(told)

    def _deck_removed(self, told: DeckRemoved) -> None:
        gone = self.decks.pop(told.deck_id, None)
        if gone is not None and not self._quiet:
            name, why = NAMES[gone.back], told.reason.name.lower()
            words = f"[red]{name} leaves the table: {why.replace('_', ' ')}[/red]"
            self.output.tell("deck_removed", words, deck=name, deck_id=told.deck_id, reason=why)

    def _forget(self) -> None:
        """The power was gone: what was known of the machine is not known any more."""
        self.faults.clear()
        self.proofs.rebooted()
        self.shoe, self.shuffler = ShoeState.STARTING, ShufflerState.STARTING
        self.in_shoe = self.in_shuffler = 0
        self._rebooted = not self._quiet

    def _tell_boot(self, told: Booted) -> None:
        if not self._quiet:
            why = told.reason.name.lower().replace("_", " ")
            words = f"[yellow]the device has started again ({why}); nothing in it is proved[/yellow]"
            self.output.tell("booted", words, reason=told.reason.name.lower())

    def check_clock(self) -> None:
        """The table PC's time counts: a device whose clock was lost or moved by others is told it again."""
        if not self._clock_changed:
            return
        self._clock_changed = False
        self.set_clock()

    def set_clock(self) -> None:
        """Device and table have the same time."""
        now_s, status = self.desk.now_s(), self.client.status(self.timeout)
        if abs(status.utc_s - now_s) > CLOCK_TOLERANCE_S:
            self.ask(SetClock(now_s, 0))
            words = "[yellow]the device's clock was not right and has been set[/yellow]"
            self.output.tell("clock_set", words, was_utc_s=status.utc_s, utc_s=now_s)

    def _tell_fault(self, told: FaultRaised) -> None:
        if self._quiet:
            return
        name, place = told.fault.name.lower(), told.place.name.lower()
        words = f"[red]stopped[/red] at {place}: {name.replace('_', ' ')}"
        self.output.tell(
            "fault",
            words + (f". {escape(told.steps)}" if told.steps else ""),
            fault=name,
            place=place,
            cards=told.cards,
            steps=told.steps,
        )

    # -- what the procedure is told -------------------------------------------------------------

    def pass_on(self, told: object) -> None:
        """An event goes to the procedure, where it means something there."""
        desk, table = self.desk, self.desk.table
        playing = table.memory.round
        round_id = 0 if playing is None else playing.round_id
        if isinstance(told, DeckCounted):
            if desk.has(told.deck_id) and desk.pack(told.deck_id).state == "shuffling":
                desk.device(desk.procedure.packs.finish_shuffle, told.deck_id, told.count)
        elif isinstance(told, DeckRemoved):
            if desk.has(told.deck_id) and desk.playing != told.deck_id:
                reason = RemovalReason(told.reason.name.lower())
                desk.do(desk.procedure.packs.remove_pack, TableRole.DEVICE, told.deck_id, reason)
        elif isinstance(told, DeckHours) and desk.has(told.deck_id):
            self.tell_hours(told.deck_id, told.left_s)
        elif isinstance(told, OutOfOrderChanged):
            self._out_of_order(bool(told.on))
        elif getattr(told, "round_id", 0) != round_id or not round_id:
            return
        elif isinstance(told, StackDispensed) and table.state == "dealing":
            desk.device(desk.procedure.three_card.deal_stack, round_id, told.stack, told.cards)
        elif isinstance(told, RoundEnded):
            self._round_ended(told)
        elif isinstance(told, RoundVoided):
            self._round_voided(round_id, told.reason)

    def _round_ended(self, told: RoundEnded) -> None:
        self.ended = told
        unproved = told.verdict is Verdict.UNPROVED
        state = self.desk.table.state
        if state == "counting" or (state == "voided" and not unproved):
            # Unproved: all cards came, and for the shoe's path there is the floor's word.
            verdict = vocabulary.Verdict.CORRECT if unproved else vocabulary.Verdict[told.verdict.name]
            three_card = self.desk.procedure.three_card
            self.desk.device(three_card.end_round, told.round_id, verdict)
            if self.desk.table.state == "counting":  # the dealer follows the device's advice
                self.desk.do(three_card.determine, TableRole.DEALER, verdict)

    def _round_voided(self, round_id: int, reason: VoidReason) -> None:
        self.void_reason = reason.name.lower()
        self.desk.device(self.desk.procedure.voiding.voided_by_device, round_id, self.void_reason)

    def _out_of_order(self, on: bool) -> None:
        """MD3 13.E: nothing else is used before the device is covered or marked."""
        units = self.desk.table.memory.units
        for unit in DeviceUnit:
            if on and unit not in units:
                self.desk.device(self.desk.procedure.equipment.unit_failed, unit)
                self.desk.do(self.desk.procedure.equipment.mark_out_of_order, TableRole.DEALER, unit, "sign")
            elif not on and unit in units and self.desk.table.state in ("closed", "between", "idle"):
                self.desk.do(self.desk.procedure.equipment.repaired, TableRole.FLOOR, unit)

    def tell_hours(self, deck_id: int, left_s: int) -> None:
        """A deck or batch comes to the end of its hours."""
        minutes = left_s // 60
        words = f"pack {deck_id} may be used for {minutes} more minutes"
        words = words if left_s > 0 else f"pack {deck_id} is past its hours"
        self.output.tell("deck_hours", f"[yellow]{words}[/yellow]", deck_id=deck_id, left_s=left_s)

    @abstractmethod
    def hands(self) -> int:
        """How many hands the device deals to."""

    # -- the round in play ----------------------------------------------------------------------

    def sync_round(self) -> None:
        """After a restart of either side: what the device says of the round in play is so."""
        table = self.desk.table
        playing = table.memory.round
        if playing is None or table.state not in CARDS_ARE_OUT:
            return
        status = self.client.status(self.timeout)
        if status.flags & StatusFlag.ROUND_OPEN and status.round_id == playing.round_id:
            self.shoe = ShoeState(status.shoe)
            if self._caught_up(status.stack):
                with contextlib.suppress(Refused):  # cards have come: they are closed there too
                    self.ask(CloseBets(playing.round_id, self.hands()))  # a second time it does nothing
                return
            self.void_on_device("its events are lost")
        last = self.client.ask(LastRound(), self.timeout)
        if table.state not in CARDS_ARE_OUT:
            return  # the events have told meanwhile
        if last.round_id == playing.round_id and last.verdict and not last.void:
            verdict = Verdict(last.verdict)
            stub = max(last.count - sum(playing.stacks), 0)
            if table.state == "counting":
                self._round_ended(RoundEnded(last.round_id, verdict, stub, last.count))
                return
        void = last.void if last.round_id == playing.round_id else 0
        self._round_voided(playing.round_id, VoidReason(void) if void else VoidReason.POWER_CUT)

    def _caught_up(self, dealt: int) -> bool:
        """Whether everything that came out in the round has been told, in a moment at most."""
        playing = self.desk.table.round

        def told() -> bool:
            return max(len(playing.stacks), playing.draws) >= dealt

        if not told():
            for event in self.client.events(self._at, timeout=CATCH_UP_S):
                self._take(event)
                if told():
                    break
        return told()

    def void_on_device(self, why: str) -> None:
        """The floor ends the device's round, if it is open."""
        status = self.client.status(self.timeout)
        if status.flags & StatusFlag.ROUND_OPEN:
            self.output.tell("void_ordered", f"[yellow]the floor voids the round: {why}[/yellow]", why=why)
            self.ask_floor(VoidRound(status.round_id, VoidReason.FLOOR_ORDER))

    # -- clearing and emptying ------------------------------------------------------------------

    def empty(self) -> None:
        """What nobody can prove comes out through the shoe."""
        self.wait(lambda: self.shuffler in MAY_BE_EMPTIED or bool(self.faults), "the shuffler to rest")
        if self.faults:
            return
        self.ask_floor(EmptyMachine())
        self.wait(self._is_empty, "the machine to be emptied")

    def _is_empty(self) -> bool:
        empty = self.shoe in (ShoeState.EMPTY, ShoeState.BLOCKED) and self.shuffler is ShufflerState.IDLE
        return bool(self.faults) or empty

    def clear_blocked_path(self) -> None:
        """A deck came out short: the floor looks into the shoe's path, and the roller turns once.

        What neither finds is not there, by the floor's word; the device then only claims its next count.
        """
        words = "the deck came out short: look into the shoe's path, close its door again"
        self.output.tell("shoe_blocked", f"[yellow]{words}[/yellow]")
        ends, before = time.monotonic() + CLEAR_S, self.purges
        while self.purges == before:
            try:
                self.ask_floor(Purge())
                self.wait(lambda: bool(self.faults) or self.purges > before, "the shoe's path to be purged")
            except (NotAllowed, WrongState):  # the door was not opened yet, or stands open
                if time.monotonic() > ends:
                    raise
                self.catch_up()
            if self.faults:
                return
        moving = (ShoeState.EJECTING, ShoeState.STUB_WAITING)
        self.wait(lambda: bool(self.faults) or self.shoe not in moving, "the card to be taken")
        if self.shoe is ShoeState.BLOCKED and not self.faults:
            self.ask_floor(PathInspected())
            self.output.tell("path_inspected", "the floor has looked: no card lies in the shoe's path")
            self.wait(lambda: bool(self.faults) or self.shoe is not ShoeState.BLOCKED, "the shoe to be free")

    def clear(self) -> None:
        """The floor says that a half was emptied; the machine believes it when its sensors agree."""
        fault: Fault = self.faults[0].fault
        before = self.faults_cleared
        ends = time.monotonic() + CLEAR_S
        role = Role.FLOOR
        while True:
            try:
                self.ask_floor(ClearFault(fault), role)
                break
            except NotAllowed as error:
                if error.reason is Forbidden.SERVICE_ONLY and role is Role.FLOOR:
                    role = Role.SERVICE
                    continue
                if error.reason is Forbidden.NO_SUCH_FAULT:
                    self.faults = [each for each in self.faults if each.fault is not fault]
                    return
                if time.monotonic() > ends:
                    raise
                time.sleep(0.02)
        self.wait(lambda: self.faults_cleared > before, "the fault to be cleared")
        name = fault.name.lower()
        self.output.tell("fault_cleared", f"cleared: {name.replace('_', ' ')}", fault=name)
        resting = (ShoeState.STARTING, ShoeState.JAMMED)
        working = (ShufflerState.STARTING, ShufflerState.JAMMED)
        self.wait(
            lambda: bool(self.faults) or (self.shoe not in resting and self.shuffler not in working),
            "the machine to look around",
        )
