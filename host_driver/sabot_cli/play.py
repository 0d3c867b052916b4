"""``sabot play``: two decks registered, shuffled, rounds dealt, and what was proved of them."""

import functools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rich.markup import escape
from rich.progress import Progress

from sabot_cli.betting import Book
from sabot_cli.output import FAULT, OK, Output
from sabot_driver import Client, Event, LostEvents
from sabot_driver.errors import (
    DeviceRebooted,
    DeviceTimeout,
    NotAllowed,
    Refused,
    SabotError,
    Stale,
    WrongRole,
    WrongState,
)
from sabot_protocol.host.message import Request
from sabot_protocol.host.messages import (
    Back,
    Booted,
    ClearFault,
    CloseBets,
    DeckCounted,
    DeckRemoved,
    Decks,
    DispenseStack,
    EmptyMachine,
    EndRound,
    Faces,
    Fault,
    FaultCleared,
    FaultRaised,
    Forbidden,
    LastRound,
    OpenRound,
    RegisterDeck,
    RevealRound,
    Role,
    RoundEnded,
    RoundVoided,
    ShoeChanged,
    ShoeState,
    Shuffle,
    ShufflerChanged,
    ShufflerState,
    StackDispensed,
    Verdict,
    VoidReason,
)

WAIT_S = 180.0  # the longest any motion of the machine may take before something is said
CLEAR_S = 60.0  # how long people have to empty a half
NAMES = {Back.RED: "RED", Back.BLUE: "BLUE"}
CARDS_A_STACK = 3
DECK = 52
MAY_BE_EMPTIED = (ShufflerState.IDLE, ShufflerState.STORED, ShufflerState.UNPROVED)
TRIES = 20  # of things that are worth trying again
RANKS, SUITS = "A23456789TJQK", "SHDC"  # of a face's number, 0 to 51


class TableStopped(SabotError):
    """The table cannot go on by itself."""

    advice = "Look at the machine; 'sabot status' says how it is, 'sabot watch' what it reports."


@dataclass
class Deck:
    """A deck at the table, as far as the events have told."""

    deck_id: int
    back: Back
    shuffle_id: int | None = None
    count: int | None = None
    """How many cards the newest shuffle proved; None if it proved none."""
    in_machine: bool = False


@dataclass
class Played:
    """One round, as the device told it."""

    round_id: int
    deck: Deck
    stacks: list[int] = field(default_factory=list)
    ended: RoundEnded | None = None
    void_reason: str | None = None
    shuffle_id: int | None = None
    hands_wanted: int = 0
    hands: list[list[str]] | None = None
    """What the reader saw, once the round was revealed."""


class Table:
    """A game in progress: what the events have said so far, and the next thing to do."""

    def __init__(
        self,
        client: Client,
        output: Output,
        timeout: float,
        raise_role: Callable[[Role], None],
        patience_s: float = WAIT_S,
    ) -> None:
        self.raise_role = raise_role
        self.highest_deck = 0
        self.client = client
        self.output = output
        self.timeout = timeout
        self.patience_s = patience_s
        self.decks: dict[int, Deck] = {}
        self.shoe = ShoeState.STARTING
        self.shuffler = ShufflerState.STARTING
        self.in_shoe: int = 0
        self.in_shuffler: int = 0
        self.faults: list[FaultRaised] = []
        self.faults_seen: Counter[str] = Counter()
        self.faults_cleared = 0
        self.rebooted = False
        self.shuffles = 0
        self.proved = 0
        self.lost = 0
        self.round: Played | None = None
        self.last_round = 0
        self.last_deck = 0
        self._at = 0
        self._read_past()

    # -- what was told --------------------------------------------------------------------------

    def _read_past(self) -> None:
        """How things stand: what the device still has of its events, and what it says of decks and rounds."""
        for event in self.client.events(0, timeout=0.2):
            self._at = event.id
            self._heard(event)
        known = self.client.ask(Decks(), self.timeout)
        for deck_id, back in zip(known.ids, known.backs, strict=True):
            self.decks[deck_id] = Deck(deck_id, Back(back))
        self.last_deck = known.last_played
        self.highest_deck = max([*known.ids, known.last_played])
        self.last_round = self.client.ask(LastRound(), self.timeout).round_id
        self.faults_seen.clear()
        self.shuffles = self.proved = self.lost = 0
        status = self.client.status(self.timeout)
        self.shoe, self.shuffler = ShoeState(status.shoe), ShufflerState(status.shuffler)

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Follow events until something is so; TableStopped if it is not in a good while."""
        ends = time.monotonic() + self.patience_s
        while not done():
            heard = False
            for event in self.client.events(self._at, timeout=min(1.0, max(ends - time.monotonic(), 0.01))):
                heard = True
                self._at = event.id
                self._heard(event)
                if self.rebooted:
                    self._ask_for_the_round()
                if done():
                    return
            if not heard and time.monotonic() > ends:
                raise TableStopped(f"waited {self.patience_s:.0f} s for {what}; the shoe is {self.shoe.name}")

    def _heard(self, event: Event | LostEvents) -> None:
        if isinstance(event, LostEvents):
            self.lost += event.size or 1
            return
        told = event.message
        if isinstance(told, Booted):
            self._rebooted()
        elif isinstance(told, ShoeChanged):
            self._shoe_changed(told)
        elif isinstance(told, ShufflerChanged):
            self.shuffler = told.state
            self.in_shuffler = told.deck_id if told.state is not ShufflerState.IDLE else 0
        elif isinstance(told, DeckCounted):
            self.shuffles += 1
            self.proved += told.count == told.expected
            deck = self.decks.get(told.deck_id)
            if deck is not None:
                deck.count, deck.shuffle_id = told.count, told.shuffle_id
        elif isinstance(told, StackDispensed) and self.round is not None:
            self.round.stacks.append(told.cards)
        elif isinstance(told, RoundEnded) and self.round is not None:
            self.round.ended = told
        elif isinstance(told, RoundVoided) and self.round is not None:
            self.round.void_reason = told.reason.name.lower()
        elif isinstance(told, FaultRaised):
            self.faults.append(told)
            self.faults_seen[told.fault.name.lower()] += 1
            self._tell_fault(told)
        elif isinstance(told, DeckRemoved):
            gone = self.decks.pop(told.deck_id, None)
            if gone is not None:
                words = f"[red]{NAMES[gone.back]} leaves the table: {told.reason.name.lower()}[/red]"
                self.output.tell("deck_removed", words, deck=NAMES[gone.back], deck_id=told.deck_id)
        elif isinstance(told, FaultCleared):
            self.faults_cleared += 1
            cleared = [each for each in self.faults if each.fault is told.fault]
            if cleared:  # both halves may have stopped for the same
                self.faults.remove(cleared[0])

    def _rebooted(self) -> None:
        """The power was gone: what was known of the machine is not known any more."""
        self.faults.clear()
        self.shoe, self.shuffler = ShoeState.STARTING, ShufflerState.STARTING
        self.in_shoe = self.in_shuffler = 0
        self.rebooted = True

    def _ask_for_the_round(self) -> None:
        """What became of the round that was open: its last events may have been lost with the power."""
        self.rebooted = False
        played = self.round
        if played is None or played.ended is not None:
            return
        last = self.client.ask(LastRound(), self.timeout)
        if last.round_id != played.round_id or last.void:
            reason = VoidReason(last.void) if last.void else VoidReason.POWER_CUT
            played.void_reason = reason.name.lower()
        elif last.verdict:
            stub = last.count - CARDS_A_STACK * played.hands_wanted
            played.ended = RoundEnded(last.round_id, Verdict(last.verdict), stub, last.count)

    def _ask_floor(self, message: Request[Any]) -> None:
        """What only the floor may ask; it shows its key again if the session it had shown it in has ended."""
        try:
            self.client.ask(message, self.timeout)
        except WrongRole:
            self.raise_role(Role.FLOOR)
            self.client.ask(message, self.timeout)

    def _shoe_changed(self, told: ShoeChanged) -> None:
        self.shoe = told.state
        self.in_shoe = 0 if told.state is ShoeState.EMPTY else told.deck_id

    def _tell_fault(self, told: FaultRaised) -> None:
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

    # -- what is done ---------------------------------------------------------------------------

    def open(self) -> None:
        """Register what is missing, and have both decks shuffled."""
        have = {deck.back for deck in self.decks.values()}
        for back in (Back.RED, Back.BLUE):
            if back not in have:
                self._register(back)
        self.feed()
        self.wait(self._stopped_or_next, "both decks to be shuffled")

    def _register(self, back: Back) -> None:
        for _ in range(TRIES):
            self.highest_deck += 1
            deck_id = self.highest_deck
            try:
                self._ask_floor(RegisterDeck(deck_id, back, int(time.time())))
                break
            except NotAllowed as error:
                if error.reason is not Forbidden.DECK_USED_BEFORE:
                    raise
        self.decks[deck_id] = Deck(deck_id, back)
        words = f"{NAMES[back]} is registered as deck {deck_id}"
        self.output.tell("deck", words, deck=NAMES[back], deck_id=deck_id)

    def _both_in(self) -> bool:
        """One deck in the shoe and the other on the shelf; what the tray could take is fed meanwhile."""
        self.feed()
        return self.shoe is ShoeState.READY and self.shuffler is ShufflerState.STORED

    def feed(self) -> None:
        """Have a deck shuffled that is not in the machine, if the shuffler half is free."""
        if self.shuffler is not ShufflerState.IDLE or self.faults:
            return
        waiting = [
            each for each in self.decks.values() if each.deck_id not in (self.in_shoe, self.in_shuffler)
        ]
        waiting.sort(key=lambda deck: deck.deck_id == self.last_deck)
        if not waiting or (self.shoe is ShoeState.LOADING and len(waiting) > 1):
            return
        deck = waiting[0]
        try:
            self.client.ask(Shuffle(deck.deck_id), self.timeout)
        except (WrongState, NotAllowed):
            return  # not yet: the next event tells when
        self.shuffler = ShufflerState.FEEDING
        self.in_shuffler = deck.deck_id
        deck.count = None

    def play_round(self, hands: int) -> Played:
        """One round from the deck in the shoe, void or not."""
        deck = self.decks[self.in_shoe]
        self.last_round += 1
        played = self.round = Played(self.last_round, deck, shuffle_id=deck.shuffle_id, hands_wanted=hands)
        self.client.ask(OpenRound(played.round_id, deck.deck_id, hands), self.timeout)
        self.last_deck = deck.deck_id
        try:
            self._deal(played, hands)
        except (Refused, DeviceRebooted):  # void, as the device will tell; or refused for good
            self.wait(lambda: self._over(played), "the round to be void")
        ended = played.ended
        if ended is not None and ended.verdict is not Verdict.CORRECT:
            self.wait(lambda: played.void_reason is not None, "the verdict")
        self.round = None
        if ended is not None and played.void_reason is None:
            self._reveal(played, hands)
        return played

    def _deal(self, played: Played, hands: int) -> None:
        """Bets closed, a stack to every hand, and the stub."""
        self.client.ask(CloseBets(played.round_id), self.timeout)
        for stack in range(1, hands + 1):
            if self._over(played):
                break
            self.client.ask(DispenseStack(played.round_id, stack), self.timeout)
            self.wait(functools.partial(self._dealt, played, stack), f"stack {stack}")
        if not self._over(played):
            self.client.ask(EndRound(played.round_id), self.timeout)
            self.wait(lambda: self._over(played), "the stub")

    def _reveal(self, played: Played, hands: int) -> None:
        """The hands lie open: what the reader at the exit saw of them, if the power did not take it."""
        try:
            self.client.ask(RevealRound(played.round_id), self.timeout)
        except Stale:
            return
        read = [
            self.client.ask(Faces(played.round_id, each), self.timeout).faces for each in range(1, hands + 1)
        ]
        if all(face < DECK for faces in read for face in faces):
            played.hands = [[RANKS[face % 13] + SUITS[face // 13] for face in faces] for faces in read]

    def _dealt(self, played: Played, stack: int) -> bool:
        return self._over(played) or (len(played.stacks) >= stack and self.shoe is ShoeState.ROUND_OPEN)

    @staticmethod
    def _over(played: Played) -> bool:
        return played.ended is not None or played.void_reason is not None

    def next_deck(self) -> None:
        """After a round: clear what stopped, wait for the other deck in the shoe and this one shuffled."""
        for _ in range(TRIES):
            if self.faults:
                self._clear()
            if ShoeState.OUT_OF_ORDER is self.shoe:
                raise TableStopped("the machine is out of order", "Call service.")
            if self._must_come_out():
                self._empty()
            for back in (Back.RED, Back.BLUE):
                if all(deck.back is not back for deck in self.decks.values()):
                    self._register(back)
            self.feed()
            self.wait(self._stopped_or_next, "the other deck")
            if self._next_is_in():
                return
        raise TableStopped("the machine stops again and again")

    def _next_is_in(self) -> bool:
        return self._both_in() and self.in_shoe != self.last_deck

    def _stopped_or_next(self) -> bool:
        return bool(self.faults) or self._must_come_out() or len(self.decks) < 2 or self._next_is_in()

    def _must_come_out(self) -> bool:
        """Nobody vouches for what is inside, or the deck in the shoe has just played."""
        unproved = self.shoe is ShoeState.UNPROVED or self.shuffler is ShufflerState.UNPROVED
        wrong_turn = self.in_shoe == self.last_deck and len(self.decks) > 1
        return unproved or (self.shoe is ShoeState.READY and wrong_turn)

    def _empty(self) -> None:
        """What nobody can prove comes out through the shoe."""
        self.wait(lambda: self.shuffler in MAY_BE_EMPTIED or bool(self.faults), "the shuffler to rest")
        if self.faults:
            return
        self._ask_floor(EmptyMachine())
        self.wait(self._is_empty, "the machine to be emptied")

    def _is_empty(self) -> bool:
        empty = self.shoe is ShoeState.EMPTY and self.shuffler is ShufflerState.IDLE
        return bool(self.faults) or empty

    def _clear(self) -> None:
        """The floor says that a half was emptied; the machine believes it when its sensors agree."""
        fault: Fault = self.faults[0].fault
        before = self.faults_cleared
        ends = time.monotonic() + CLEAR_S
        while True:
            try:
                self._ask_floor(ClearFault(fault))
                break
            except NotAllowed as error:
                if error.reason is Forbidden.SERVICE_ONLY:
                    self.raise_role(Role.SERVICE)
                    continue
                if error.reason is Forbidden.NO_SUCH_FAULT:
                    self.faults = [each for each in self.faults if each.fault is not fault]
                    return
                if time.monotonic() > ends:
                    raise
                time.sleep(0.02)
        self.wait(lambda: self.faults_cleared > before, "the fault to be cleared")
        self.raise_role(Role.FLOOR)
        name = fault.name.lower()
        self.output.tell("fault_cleared", f"cleared: {name.replace('_', ' ')}", fault=name)
        resting = (ShoeState.STARTING, ShoeState.JAMMED)
        working = (ShufflerState.STARTING, ShufflerState.JAMMED)
        self.wait(
            lambda: bool(self.faults) or (self.shoe not in resting and self.shuffler not in working),
            "the machine to look around",
        )


def tell_round(
    output: Output, table: Table, number: int, played: Played, players: int, book: Book | None
) -> None:
    """One round, after its reveal, and its settlement."""
    client = table.client
    betting = range(1, players + 1) if book is None else book.seats
    seats: list[int | str] = [*betting, "dealer"]
    people = client.people
    hands, source = played.hands, "reader"
    if hands is None and people is not None:
        hands, source = people.hands.get(played.round_id), "typed"
    ended = played.ended
    void = played.void_reason is not None
    proved = ended.count if ended is not None and not void else None
    name = NAMES[played.deck.back]
    text = f"round {number} {name:<4}"
    if hands is not None:
        text += "  " + "  ".join(" ".join(hand) for hand in hands)
    if void:
        text += f"  [red]void: {str(played.void_reason).replace('_', ' ')}[/red]"
    elif ended is not None:
        text += f"  {CARDS_A_STACK * (players + 1)} + stub {ended.stub} = [bold]{ended.count}[/bold]"
    fields: dict[str, Any] = {
        "round": number,
        "round_id": played.round_id,
        "deck": name,
        "deck_id": played.deck.deck_id,
        "shuffle_id": played.shuffle_id,
        "seats": seats,
        "hands": hands,
        "stub": None if ended is None else ended.stub,
        "count": proved,
        "expected": DECK,
        "card_source": None if hands is None else source,
        "void": void,
        "void_reason": played.void_reason,
        "verdict": None if ended is None else ended.verdict.name.lower(),
        "stacks": played.stacks,
    }
    if book is not None:
        settled = None
        if played.void_reason is not None:
            settled = book.give_back(played.void_reason)
        elif hands is not None:
            settled = book.settle(hands, source == "reader")
        fields["settlement"] = None if settled is None else [line.to_json() for line in settled.lines]
        for line in () if settled is None else settled.lines:
            text += f"\n    {escape(str(line))}"
    output.tell("round", text, **fields)


def play(
    client: Client,
    output: Output,
    rounds: int,
    players: int,
    timeout: float,
    hello: dict[str, Any],
    raise_role: Callable[[Role], None],
    book: Book | None = None,
) -> int:
    """Play rounds and tell of them, settled if there is a book; the exit code."""
    began = time.monotonic()
    output.tell("hello", None, **hello)
    table = Table(client, output, timeout, raise_role)
    played = void = 0
    stopped: SabotError | None = None
    by_deck: Counter[str] = Counter()
    bar = Progress(
        console=output.console, disable=output.as_json or not output.console.is_terminal, transient=True
    )
    task = bar.add_task("two decks are shuffled", total=rounds)
    bar.start()
    try:
        table.open()
        table.next_deck()
        while played < rounds:
            bar.update(task, description=f"round {played + 1} of {rounds}", completed=played)
            told = table.play_round(players + 1)
            played += 1
            void += told.void_reason is not None
            by_deck[NAMES[told.deck.back]] += 1
            tell_round(output, table, played, told, players, book)
            if played < rounds or table.faults:
                table.next_deck()
    except (TableStopped, Refused, DeviceTimeout) as error:
        stopped = error
    finally:
        bar.stop()
    code = OK if stopped is None else FAULT
    took = time.monotonic() - began
    turns = ", ".join(f"{name} {count}" for name, count in sorted(by_deck.items()))
    text = (
        f"\n{played} rounds, {void} of them void; {table.shuffles} shuffles, {table.proved} of them proved "
        f"to be {DECK}. Decks: {turns}. {took:.1f} s."
    )
    if stopped is not None:
        text += f"\n[red]{escape(str(stopped))}[/red]\n{escape(stopped.advice)}"
    output.tell(
        "summary",
        text,
        rounds=played,
        void=void,
        shuffles=table.shuffles,
        shuffles_proved=table.proved,
        decks=dict(by_deck),
        faults=dict(table.faults_seen),
        events_lost=table.lost,
        seconds=round(took, 3),
        ok=stopped is None,
        stopped=None if stopped is None else str(stopped),
    )
    return code
