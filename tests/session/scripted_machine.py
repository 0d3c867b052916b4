"""A machine without cards for tests of a session alone: it answers every request and tells the usual events.

Nothing moves and no time passes. A test changes what the next round does: its stacks, its count, its faces.
"""

from collections.abc import Callable
from typing import Any

from sabot_driver.errors import NotAllowed
from sabot_protocol.host import messages as m
from sabot_protocol.host.message_base import ErrorDetail, Message
from sabot_session.outcomes import Answered, DeviceCommand, Failed
from sabot_session.session import TableSession

SERIAL, MEMORY = "SABOT001", "00112233"
SIMULATOR = "Sabot simulator"


def faces_of(names: str) -> tuple[int, ...]:
    """The numbers of faces, such as "KS 9H 2D"."""
    return tuple("A23456789TJQK".index(each[0]) + 13 * "SHDC".index(each[1]) for each in names.split())


Told = tuple[Message | ErrorDetail, ...]


class ScriptedMachine:
    """Answers a session's requests. People lay cards in and take them out at once."""

    def __init__(self, session: TableSession, now_s: Callable[[], int]) -> None:
        self.session = session
        self.now_s = now_s
        self.at = session.journal_at
        self.decks: dict[int, int] = {}
        self.game = m.GameIs("", m.Method.AUTOMATED_SHOE, 1, 3, 8, 0)
        self.last = m.LastRoundIs(0, 0, 0, 0, 0)
        self.shuffles = 0
        self.committed: dict[int, int] = {}
        self.in_shoe = self.stored = 0
        self.hands: list[str] = []
        """The faces of the next round's stacks, in their order; without them the machine has no reader."""
        self.stub = 0
        """Cards more or fewer in the next stub."""
        self.stop_after = 99
        """How many stacks of the next round come; the shoe does nothing then."""
        self.lay_in = True
        """Whether people lay cards into the tray."""
        self.clear_event_first = False
        """Whether the event of a cleared fault comes before the answer."""
        self.to_lose: list[Message] = []
        """Events that are lost, each once."""
        self.asked: list[str] = []

    def tell(self, message: Message) -> None:
        """Report an event, or that it was lost."""
        self.at += 1
        if message in self.to_lose:
            self.to_lose.remove(message)
            self.session.events_lost(self.at, self.now_s())
            return
        self.session.device_event(self.at, message, 1, self.at, self.now_s())

    def press(self, which: m.ButtonFlag) -> None:
        """Somebody presses a button; then everything goes on as far as it can."""
        self.tell(m.Buttons(which))
        self.run()

    def link(self, serial: str = SERIAL, emulated: bool = False) -> None:
        """The link comes up."""
        self.session.link(
            True, self.now_s(), serial=serial, memory_id=MEMORY, model=SIMULATOR, emulated=emulated
        )
        self.run()

    def run(self) -> None:
        """Answer every request that the session has."""
        while (command := self.session.take_command()) is not None:
            self._answer(command)

    def _answer(self, command: DeviceCommand) -> None:
        request: Any = command.message
        self.asked.append(request.NAME)
        do = getattr(self, f"_{request.NAME}", None)
        events: list[Any] = []
        answer: Any = m.Done()
        if do is not None:
            answer, *events = do(request)
        result = (
            Failed(NotAllowed("", answer, 0)) if isinstance(answer, m.NotAllowedDetail) else Answered(answer)
        )
        self.session.answer(command.id, result, self.now_s())
        for each in events:
            self.tell(each)

    # -- answers about itself -------------------------------------------------------------------

    def _status(self, request: m.Status) -> Told:
        shoe = m.ShoeState.READY if self.in_shoe else m.ShoeState.EMPTY
        shuffler = m.ShufflerState.STORED if self.stored else m.ShufflerState.IDLE
        return (m.StatusReport(1, 1, 0, shuffler, shoe, 0, 0, 0, 0),)

    def _decks(self, request: m.Decks) -> Told:
        left = tuple(3600 for _ in self.decks)
        return (m.DecksAre(tuple(self.decks), tuple(self.decks.values()), left, 0),)

    def _game(self, request: m.Game) -> Told:
        return (self.game,)

    def _last_round(self, request: m.LastRound) -> Told:
        return (self.last,)

    def _component(self, request: m.ComponentQuery) -> Told:
        return (m.ComponentIs(request.component, bytes(32), "9.9.9"),)

    def _sensors(self, request: m.Sensors) -> Told:
        return (m.SensorsAre(int(self.lay_in) << m.Sensor.TRAY, 0, ()),)

    # -- packs ----------------------------------------------------------------------------------

    def _set_game(self, it: m.SetGame) -> Told:
        self.game = m.GameIs(it.name, it.method, it.decks, it.stack_cards, it.deck_hours, self.game.one_deck)
        told = m.GameChanged(it.name, it.method, it.decks, it.stack_cards, it.deck_hours, 0, bytes(8), 0)
        return m.Done(), told

    def _register_deck(self, request: m.RegisterDeck) -> Told:
        self.decks[request.deck_id] = request.back
        return (m.Done(),)

    def _remove_deck(self, request: m.RemoveDeck) -> Told:
        self.decks.pop(request.deck_id, None)
        return m.Done(), m.DeckRemoved(request.deck_id, request.reason)

    def _commit_shuffle(self, request: m.CommitShuffle) -> Told:
        self.shuffles += 1
        self.committed = {self.shuffles: request.deck_id}
        commitment = bytes(32)
        told = m.ShuffleCommitted(request.deck_id, self.shuffles, commitment)
        return m.CommitmentIs(self.shuffles, commitment), told

    def _shuffle_with(self, request: m.ShuffleWith) -> Told:
        if not self.lay_in:
            return (m.NotAllowedDetail(m.Forbidden.TRAY_EMPTY),)
        deck = self.committed.pop(request.shuffle_id)
        told: list[Message] = [
            m.ShufflerChanged(m.ShufflerState.FEEDING, deck),
            m.DeckCounted(deck, request.shuffle_id, 52, 52),
            m.ShufflerChanged(m.ShufflerState.STORED, deck),
        ]
        self.stored = deck
        return m.ShuffleBegun(request.shuffle_id), *told, *self._load()

    def _load(self) -> list[Message]:
        if self.in_shoe or not self.stored:
            return []
        self.in_shoe, self.stored = self.stored, 0
        return [
            m.ShoeChanged(m.ShoeState.READY, self.in_shoe, 0),
            m.ShufflerChanged(m.ShufflerState.IDLE, 0),
        ]

    def _reveal_shuffle(self, request: m.RevealShuffle) -> Told:
        return (m.ShuffleRevealed(request.shuffle_id, 1, 52, bytes(32), bytes(32), bytes(32)),)

    def _shuffle_slots(self, request: m.ShuffleSlots) -> Told:
        return (m.ShuffleSlotsAre(request.shuffle_id, request.first, (0,) * min(32, 52 - request.first)),)

    def _clear_fault(self, request: m.ClearFault) -> Told:
        told = m.FaultCleared(request.fault)
        if self.clear_event_first:
            self.tell(told)
            return (m.Done(),)
        return m.Done(), told

    def _empty_machine(self, request: m.EmptyMachine) -> Told:
        self.in_shoe = self.stored = 0
        return (
            m.Done(),
            m.Emptied(0),
            m.ShoeChanged(m.ShoeState.EMPTY, 0, 0),
            m.ShufflerChanged(m.ShufflerState.IDLE, 0),
        )

    # -- a round --------------------------------------------------------------------------------

    def _open_round(self, request: m.OpenRound) -> Told:
        return m.Done(), m.ShoeChanged(m.ShoeState.ROUND_OPEN, request.deck_id, request.round_id)

    def _dispense_stack(self, request: m.DispenseStack) -> Told:
        if request.stack > self.stop_after:
            return (m.Done(),)
        waiting, taken = m.ShoeState.STACK_WAITING, m.ShoeState.ROUND_OPEN
        return (
            m.Done(),
            m.ShoeChanged(waiting, self.in_shoe, request.round_id),
            m.StackDispensed(request.round_id, request.stack, 3),
            m.ShoeChanged(taken, self.in_shoe, request.round_id),
        )

    def _end_round(self, request: m.EndRound) -> Told:
        stub = 52 - 3 * len(self.session.procedure.table.turns()) + self.stub
        verdict = (
            m.Verdict.CARD_MISSING
            if self.stub < 0
            else m.Verdict.CARD_EXTRA
            if self.stub
            else m.Verdict.CORRECT
        )
        self.in_shoe, count = 0, 52 + self.stub
        self.last = m.LastRoundIs(request.round_id, 1, verdict, 0, count)
        return (
            m.Done(),
            m.RoundEnded(request.round_id, verdict, stub, count),
            m.ShoeChanged(m.ShoeState.EMPTY, 0, 0),
            *self._load(),
        )

    def _void_round(self, request: m.VoidRound) -> Told:
        self.in_shoe = 0
        self.last = m.LastRoundIs(request.round_id, 1, 0, request.reason, 0)
        return (
            m.Done(),
            m.RoundVoided(request.round_id, request.reason),
            m.ShoeChanged(m.ShoeState.EMPTY, 0, 0),
            *self._load(),
        )

    def _reveal_round(self, request: m.RevealRound) -> Told:
        return (m.Done() if self.hands else m.NotAllowedDetail(m.Forbidden.NOT_REVEALED),)

    def _faces(self, request: m.Faces) -> Told:
        return (m.FacesAre(request.round_id, request.stack, faces_of(self.hands[request.stack - 1])),)
