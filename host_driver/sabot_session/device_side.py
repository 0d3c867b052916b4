"""The machine as a session knows it: what its events and answers change, and which request is next.

`DeviceSide` belongs to one `TableSession`, which calls it within its steps. It changes the session's state,
does no input or output, and keeps no queue. `next_request` computes each request from the state and the table
as they are now. So a request that was not executed is computed again if the state still asks for it.

A refused request is the exception: `DeviceState.refused` holds the newest one, and `next_request` does not
return it again until the next event, a new survey, or an act or answer that clears the field.

What an event or answer means for the table, and the rows about it, is in `device_reports`.
"""

from collections.abc import Callable
from typing import Any

from sabot_protocol.host.message_base import Message, Request
from sabot_protocol.host.messages import (
    Back,
    Booted,
    ClearFault,
    CloseBets,
    CommitShuffle,
    Component,
    ComponentQuery,
    DeckCounted,
    DeckRegistered,
    DeckRemoved,
    Decks,
    DecksAre,
    DispenseStack,
    Emptied,
    EndRound,
    Faces,
    FaultCleared,
    FaultRaised,
    Game,
    GameChanged,
    GameIs,
    LastRound,
    Method,
    OpenRound,
    PlayOneDeck,
    Purged,
    RevealRound,
    RoundEnded,
    RoundVoided,
    Sensor,
    Sensors,
    SetGame,
    ShoeChanged,
    ShoeState,
    ShuffleCommitted,
    ShuffleDropped,
    ShufflerChanged,
    ShufflerState,
    ShuffleWith,
    Status,
    StatusFlag,
    StatusReport,
    VoidReason,
    VoidRound,
)
from sabot_session import shuffle_reveals
from sabot_session.dealing_way import DealingWays
from sabot_session.session_state import Commitment, DeviceState, FaultState, GameState, SessionState
from sabot_table.hand_ranking import HAND_CARDS
from sabot_table.procedure import TableProcedure
from sabot_table.procedure.memory import PackState

NAMES = {Back.RED: "red", Back.BLUE: "blue"}  # of a pack's back, as the table has it
BACKS = {name: back for back, name in NAMES.items()}
NO_LIMIT = 0xFFFF  # `deck_hours` for a deck without a time limit
NONCE_SIZE = 32  # bytes
MOST_STOPS = 3  # jams of the shuffler half in a row with one pack, before the floor looks for a damaged card
GAME_NAME = 24  # characters the device keeps of a game's name
COMPONENTS = tuple(f"component {each.value}" for each in Component)
SURVEY = ("status", "decks", "game", "last_round", *COMPONENTS)
"""The queries that ask the machine for its whole state, in this order."""
FED_FROM = ("stacked", "discards", "shuffling")  # states of a pack in which it goes into the tray next
OVER = ("collecting", "voided")  # states of the table: the round is over, its cards are not collected
MAY_BE_VOIDED = (ShoeState.ROUND_OPEN, ShoeState.STACK_WAITING)  # `void_round` is allowed (docs/modes.md)
CARDS_OUT = ("dealing", "counting", "drawing")  # states of the table: cards of the round come out
MAY_BE_EMPTIED = (ShufflerState.IDLE, ShufflerState.STORED, ShufflerState.UNPROVED)
"""States of the shuffler half in which the machine allows `empty_machine` (docs/modes.md)."""
STOPS_EMPTYING = (ShoeState.JAMMED, ShoeState.BLOCKED)
"""States of the shoe half in which the machine ends `empty_machine` early and sends no `emptied` event."""
SHOE_MAY_BE_EMPTIED = (ShoeState.EMPTY, ShoeState.READY, ShoeState.UNPROVED)
"""The same for the shoe half."""


class DeviceSide:
    """Follows the machine's state for one session, and computes the next request to the machine."""

    def __init__(
        self, state: SessionState, procedure: TableProcedure, nonce: Callable[[int], bytes], ways: DealingWays
    ) -> None:
        """Work on ``state`` in place. ``nonce`` makes the host's nonce for a shuffle id."""
        self._state = state
        self._procedure = procedure
        self._nonce = nonce
        self._ways = ways
        self.cleared_at = 0
        """The place of the fault that was cleared last; it says which half `fault_cleared` is about."""

    @property
    def device(self) -> DeviceState:
        """The machine's state."""
        return self._state.device

    # -- what the machine told ------------------------------------------------------------------

    def link(self, up: bool, serial: str = "", memory_id: str = "", model: str = "") -> None:
        """Set whether the link is up. With ``up``, `next_request` asks the machine for its whole state again.

        The session also calls this with the link still up, where the state it has may be out of date: after
        lost events, a request whose outcome is unknown, a stop, service mode or a self-test.
        """
        device = self.device
        device.up = up
        if up:
            device.serial, device.memory_id, device.model = serial, memory_id, model
            device.survey = list(SURVEY)
            device.refused = ""

    def events_lost(self) -> None:
        """Take in that events were lost, and ask the machine for its whole state again.

        The session waits for no event that may be among the lost ones. A pack whose count was lost must be
        shuffled again (`is_uncounted`), and so must a pack that came out without being counted.
        """
        device, shoe, delivered = self.device, self._state.shoe, self._procedure.table.memory.delivered
        device.fed = device.commit_asked = shoe.deliver_asked = shoe.end_asked = 0
        device.shelved = device.in_shuffler
        if delivered:
            self._doubt(delivered)
        self.link(device.up, device.serial, device.memory_id, device.model)

    def hear(self, told: Message) -> None:
        """Take an event into the machine's state. Any event allows a refused request again.

        For `shuffle_committed` this draws the host's nonce, which the state keeps for `shuffle_with`.
        """
        device = self.device
        device.refused = ""
        if isinstance(told, Booted):
            device.faults.clear()
            device.commitments.clear()
            device.fed = device.commit_asked = device.in_shoe = device.in_shuffler = device.shelved = 0
            device.shoe, device.shuffler = ShoeState.STARTING, ShufflerState.STARTING
            device.emptying = device.path_empty = False
            shuffle_reveals.forget(device)
            self._doubt(*(each.pack_id for each in self._procedure.table.packs()))
            device.survey = list(SURVEY)
        elif isinstance(told, ShoeChanged):
            device.shoe, device.path_empty = told.state, False
            device.in_shoe = 0 if told.state is ShoeState.EMPTY else told.deck_id
            if told.state in (ShoeState.EMPTY, ShoeState.READY):
                device.looked_in = False
            if told.state in (ShoeState.JAMMED, ShoeState.DOOR_OPEN):
                self._doubt(told.deck_id)
        elif isinstance(told, ShufflerChanged):
            device.shuffler = told.state
            device.in_shuffler = 0 if told.state is ShufflerState.IDLE else told.deck_id
            device.shelved = told.deck_id if told.state is ShufflerState.STORED else 0
            if told.state in (ShufflerState.FEEDING, ShufflerState.JAMMED):
                device.fed = 0
            if told.state in (ShufflerState.JAMMED, ShufflerState.DOOR_OPEN):
                self._doubt(told.deck_id)
            if told.state is ShufflerState.JAMMED and told.deck_id:
                device.stops[told.deck_id] = device.stops.get(told.deck_id, 0) + 1
        elif isinstance(told, DeckCounted):
            device.stops.pop(told.deck_id, None)
        elif isinstance(told, FaultRaised):
            device.faults.append(FaultState(told.fault, told.place, told.cards, told.steps))
            device.emptying = False
        elif isinstance(told, FaultCleared):
            self._cleared(told.fault)
        elif isinstance(told, Emptied):
            device.emptying = False
            self._doubt(*(each.pack_id for each in self._procedure.table.packs()))
        elif isinstance(told, Purged):
            device.looked_in = True
        elif isinstance(told, DeckRegistered):
            device.decks[told.deck_id] = told.back
        elif isinstance(told, DeckRemoved):
            device.decks.pop(told.deck_id, None)
            device.commitments.pop(told.deck_id, None)
            device.stops.pop(told.deck_id, None)
        elif isinstance(told, GameChanged):
            device.game = GameState(told.method, told.decks, told.stack_cards, told.deck_hours, told.one_deck)
        elif isinstance(told, ShuffleCommitted):
            nonce = self._nonce(told.shuffle_id).hex()
            # The device is bound to the newest commitment only.
            device.commitments = {told.deck_id: Commitment(told.shuffle_id, told.commitment.hex(), nonce)}
            device.commit_asked = 0
        elif isinstance(told, RoundEnded | RoundVoided):
            progress = self._state.round
            if progress is not None and progress.round_id == told.round_id:
                progress.device_done = True
        elif isinstance(told, ShuffleDropped):
            device.commitments = {
                deck: each for deck, each in device.commitments.items() if each.shuffle_id != told.shuffle_id
            }
        if self.emptying_ended():
            device.emptying = False  # the answer to `empty_machine` may come after the event that ends it

    def emptying_ended(self) -> bool:
        """Whether no more cards come out after `empty_machine`: the machine is empty, or it stopped early."""
        device = self.device
        stopped = device.shoe in STOPS_EMPTYING or device.shuffler == ShufflerState.JAMMED
        return stopped or (device.shoe == ShoeState.EMPTY and device.shuffler == ShufflerState.IDLE)

    def _doubt(self, *packs: int) -> None:
        """Note that these packs may leave the machine without being played.

        Once such a pack lies outside, the floor must order another shuffle (`table_needs`). A pack stays in
        doubt until the machine feeds it.
        """
        self.device.doubtful = sorted({*self.device.doubtful, *packs})

    def _cleared(self, fault: int) -> None:
        """Remove a fault of one half. If both halves stopped for the same fault, each has its own event."""
        outbox = self._state.outbox
        if outbox and outbox[0].name == ClearFault.NAME:
            self.device.cleared_unanswered = fault  # the event came before the answer to `clear_fault`
        for each in self.device.faults:
            if each.fault == fault:
                self.device.faults.remove(each)
                self.cleared_at = each.place
                return

    def clearing(self, fault: int) -> None:
        """Take the answer that `clear_fault` was executed.

        If the event `fault_cleared` has not come yet, mark one half's fault as being cleared.
        """
        if self.device.cleared_unanswered != fault:
            waiting = [each for each in self.device.faults if each.fault == fault and not each.clearing]
            for each in waiting[:1]:
                each.clearing = True
        self.device.cleared_unanswered = 0

    def surveyed(self, answer: Message) -> None:
        """Take the answer to a survey's query about status, decks or game.

        The caller removes the query from the survey, and takes the answers about versions and the last round.
        """
        device = self.device
        if isinstance(answer, StatusReport):
            device.shoe, device.shuffler = answer.shoe, answer.shuffler
            device.path_empty = False
            device.in_shoe = 0 if answer.shoe == ShoeState.EMPTY else device.in_shoe
            device.in_shuffler = 0 if answer.shuffler == ShufflerState.IDLE else device.in_shuffler
            device.emptying = device.emptying and not self.emptying_ended()
            if not answer.flags & StatusFlag.FAULT_LATCHED:
                device.faults.clear()
            device.open_round = answer.round_id if answer.flags & StatusFlag.ROUND_OPEN else 0
            progress = self._state.round
            if progress is not None and device.open_round == progress.round_id:
                progress.opened = True
                progress.stacks_asked = max(progress.stacks_asked, answer.stack)
        elif isinstance(answer, DecksAre):
            device.decks = dict(zip(answer.ids, answer.backs, strict=True))
            highest = max([*answer.ids, answer.last_played, self._state.highest_deck])
            self._state.highest_deck = highest
        elif isinstance(answer, GameIs):
            device.game = GameState(
                answer.method, answer.decks, answer.stack_cards, answer.deck_hours, answer.one_deck
            )

    # -- the next request -----------------------------------------------------------------------

    def next_request(self) -> Request[Any] | None:
        """The request to send next; None if there is nothing to ask, or people must act first.

        The session calls this only while no other request waits for its answer. The order is: the survey, a
        round that only the machine has open, the round in play, feeding a pack, revealing a shuffle. If the
        first request found is the one that the machine refused, the result is None: later ones wait with it.
        """
        if not self.device.up:
            return None
        if self.device.survey:
            return _question(self.device.survey[0])
        if not self._ways.machine_serves():
            return None
        way = self._ways.now()
        foreign = self._foreign_round()
        if foreign is not None:
            return foreign
        of_round = self._of_round() if way is None else way.request()
        request = of_round or self._of_feed() or shuffle_reveals.next_request(self.device)
        if request is not None and self.device.refused == _key(request):
            return None
        return request

    def _foreign_round(self) -> Request[Any] | None:
        """Void a round that is open in the machine while the table has none: people ended it by hand.

        If the machine refused that, the result is None and other requests go on.
        """
        table, device = self._procedure.table, self.device
        if not device.open_round or table.memory.round is not None or device.shoe not in MAY_BE_VOIDED:
            return None
        void = VoidRound(device.open_round, VoidReason.FLOOR_ORDER)
        return None if device.refused == _key(void) else void

    def answer_unfit(self, request: Request[Any]) -> None:
        """Do not repeat a request whose answer the rules refused.

        A query of the survey is dropped. Any other request counts as refused.
        """
        if self.device.survey and self.device.survey[0].split()[0] == request.NAME:
            self.device.survey.pop(0)
        else:
            self.refused(request)

    def refused(self, request: Request[Any]) -> None:
        """Note that the device refused a request. Only the newest one is kept; see the module's text."""
        self.device.refused = _key(request)

    def _of_round(self) -> Request[Any] | None:
        """The next request for a round that the machine deals in stacks; other ways have their own."""
        table, device, progress = self._procedure.table, self.device, self._state.round
        playing = table.memory.round
        if playing is None or progress is None:
            return None
        number, no_stack_asked = playing.round_id, device.shoe == ShoeState.ROUND_OPEN
        if table.state == "dealing":
            if not progress.opened:
                return OpenRound(number, playing.pack_id)
            if not progress.closed:
                return CloseBets(number, len(table.turns()))
            dealt = len(playing.stacks)
            if no_stack_asked and progress.stacks_asked == dealt:
                return DispenseStack(number, dealt + 1)
        elif table.state == "counting" and no_stack_asked and not progress.end_asked and not playing.advice:
            return EndRound(number)
        elif table.state == "revealing" and progress.exposed_by is not None and not progress.must_type:
            if not progress.revealed:
                return RevealRound(number)
            return Faces(number, len(progress.faces) + 1)
        elif table.state == "voided" and progress.opened and not progress.device_done:
            reason = VoidReason(progress.void_reason or VoidReason.FLOOR_ORDER)
            return VoidRound(number, reason) if device.shoe in MAY_BE_VOIDED else None
        return None

    def _of_feed(self) -> Request[Any] | None:
        """For the pack to feed: ask for the commitment to a shuffle, then shuffle with the nonce."""
        pack = self.pack_to_feed()
        if pack is None or self.device.tray_seen_empty or self.device.commit_asked == pack.pack_id:
            return None
        committed = self.device.commitments.get(pack.pack_id)
        if committed is None:
            return CommitShuffle(pack.pack_id)
        return ShuffleWith(committed.shuffle_id, bytes.fromhex(committed.nonce))

    def pack_to_feed(self) -> PackState | None:
        """The pack that people may lay into the tray now, for the shuffler half; None if there is none."""
        table, device = self._procedure.table, self.device
        if device.shuffler != ShufflerState.IDLE or device.fed or device.emptying or table.state == "closed":
            return None
        if table.memory.units:
            return None  # packs leave the machine only through the shoe, so a failed shoe ends shuffles too
        if any(each.pack_id == device.in_shoe and self.is_uncounted(each) for each in table.packs()):
            return None  # the machine is emptied first, or this pack would come out again with that one
        waiting = [each for each in table.packs() if self._waits(each)]
        waiting.sort(key=lambda each: each.pack_id == table.memory.last_pack)
        if not waiting or (device.shoe == ShoeState.LOADING and len(waiting) > 1):
            return None
        others = [
            each for each in table.packs() if each.pack_id != waiting[0].pack_id and not each.must_leave
        ]
        if waiting[0].pack_id == table.memory.last_pack and others:
            # The other pack has the turn: it goes in first, or this one would come out again (MD3 3.B(4)).
            return waiting[0] if any(map(self.is_inside, others)) else None
        return waiting[0]

    def _waits(self, pack: PackState) -> bool:
        """Whether a pack lies outside and may be fed: not held, known to the machine, its round over."""
        if pack.pack_id in self._state.holds:
            return False
        if pack.must_leave or not self.on_device(pack) or self.is_inside(pack) or self.stops_often(pack):
            return False
        playing, progress = self._procedure.table.memory.round, self._state.round
        if playing is None or playing.pack_id != pack.pack_id:
            return pack.state in FED_FROM
        over = self._procedure.table.state in OVER and not playing.cards_in_device
        over = over and self._procedure.table.rules.fixed.every_round
        if self._state.dealer is None:
            return False  # a dealer lays the cards in, and with that collects them
        if any(each.state == "discards" for each in self._procedure.table.packs()):
            return False  # the other pack leaves the rack first (MD3 3.B(5))
        return over and progress is not None and progress.device_done

    def stops_often(self, pack: PackState) -> bool:
        """Whether this pack jammed the shuffler half `MOST_STOPS` times without a count in between."""
        return self.device.stops.get(pack.pack_id, 0) >= MOST_STOPS

    def on_device(self, pack: PackState) -> bool:
        """Whether this pack is registered in the machine with the same back."""
        return self.device.decks.get(pack.pack_id) == BACKS.get(pack.back)

    def is_inside(self, pack: PackState) -> bool:
        """Whether the pack is in one of the machine's halves."""
        return pack.pack_id in (self.device.in_shoe, self.device.in_shuffler)

    def was_taken_in(self, pack: PackState) -> bool:
        """Whether the machine has taken this pack out of the tray, and the record has it elsewhere.

        That happens if the table closes, or the dealer signs out, while the machine takes the pack.
        """
        table = self._procedure.table
        if pack.pack_id not in (self.device.fed, self.device.in_shuffler):
            return False
        playing = table.memory.round
        if playing is not None and playing.pack_id == pack.pack_id:
            return table.state in OVER and not playing.cards_in_device
        return pack.state in ("stacked", "discards")

    def is_uncounted(self, pack: PackState) -> bool:
        """Whether the machine has shuffled this pack, and its count is not on record.

        That happens if the machine counts a pack at a closed table. The pack must be shuffled again.
        """
        device = self.device
        if pack.pack_id == device.in_shoe:
            return pack.state in FED_FROM and self._procedure.table.three_card
        return pack.pack_id == device.shelved and pack.state in FED_FROM

    # -- for the session, its reports and its needs ---------------------------------------------

    def poll(self) -> Request[Any] | None:
        """The query that the session repeats at each tick; None while there is none.

        After the machine refused a shuffle because its tray was empty, the query asks for the tray's sensor
        until cards lie there.
        """
        waits = self.device.up and self.device.tray_seen_empty and self.pack_to_feed() is not None
        return Sensors() if waits else None

    def tray_covered(self, levels: int) -> bool:
        """Whether the tray's sensor is covered, from ``levels`` of an answer to `sensors`."""
        return bool(levels >> Sensor.TRAY & 1)

    def in_turn(self) -> bool:
        """Whether the pack in the shoe may play the next round."""
        memory = self._procedure.table.memory
        if self._ways.now() is not None:  # its delivery made it `last_pack`
            return self.device.in_shoe == memory.last_pack
        alternates = self._procedure.table.rules.cards.alternating and not memory.one_pack
        return self.device.in_shoe != memory.last_pack or not alternates

    def must_come_out(self) -> bool:
        """Whether the floor must empty the machine, and the machine allows it now.

        Reasons: cards inside are unproved, their pack must leave, the machine is set to another game, the
        table does not know the pack in the shoe, the record does not have a pack's count, or another pack has
        the turn.
        """
        device, table = self.device, self._procedure.table
        if not self._ways.machine_serves() or self._on_its_way():
            return False
        if device.emptying or device.shuffler not in MAY_BE_EMPTIED or device.shoe not in SHOE_MAY_BE_EMPTIED:
            return False
        if device.shoe == ShoeState.UNPROVED or device.shuffler == ShufflerState.UNPROVED:
            return True
        playing = table.memory.round
        busy = playing is not None and table.state not in OVER
        if not busy and any(each.must_leave and self.is_inside(each) for each in table.packs()):
            return True
        inside = device.shoe == ShoeState.READY or device.shuffler == ShufflerState.STORED
        if table.state == "between" and inside and device.game not in (None, self.wanted_game()):
            return True  # the game is set with an empty machine only
        if self._ways.now() is not None and device.shoe == ShoeState.EMPTY:
            return self._wrong_on_shelf()
        if device.shoe != ShoeState.READY or table.state in ("betting", *CARDS_OUT, "revealing"):
            return False
        if self._ways.now() is None and any(map(self.is_uncounted, table.packs())):
            return True  # card by card, the shoe in play is finished first
        known = any(each.pack_id == device.in_shoe for each in table.packs())
        return not known or (not self.in_turn() and len(device.decks) > 1)

    def _on_its_way(self) -> bool:
        """Whether the cards inside belong to a pack that is being delivered or loaded.

        That is: the request has no answer yet, a delivered pack lies in the shoe, or people laid the next
        pack into the shoe and the floor has not confirmed it (`laid_in`).
        """
        if any(each.name in ("deliver_deck", "load_shoe") for each in self._state.outbox):
            return True
        device, delivery = self.device, self._ways.delivery
        if device.in_shoe and device.in_shoe == self._procedure.table.memory.delivered:
            return True
        pack = delivery.next_pack() if self._ways.now() is self._ways.shoe else None
        laid_in = device.shoe == ShoeState.UNPROVED and device.shuffler != ShufflerState.UNPROVED
        return laid_in and pack is not None and delivery.is_ready(pack)

    def game_requests(self) -> list[Request[Any]]:
        """The requests that set the machine to this table's game.

        Empty if the machine is set to it, or has not answered yet to which game it is set.
        """
        game, wanted = self.device.game, self.wanted_game()
        requests: list[Request[Any]] = []
        if game is None:
            return requests
        if (game.method, game.decks, game.stack_cards, game.deck_hours) != (
            wanted.method,
            wanted.decks,
            wanted.stack_cards,
            wanted.deck_hours,
        ):
            name, method = self._procedure.table.rules.name[:GAME_NAME], Method(wanted.method)
            requests.append(SetGame(name, method, wanted.decks, wanted.stack_cards, wanted.deck_hours))
        if game.one_deck != wanted.one_deck:
            requests.append(PlayOneDeck(wanted.one_deck))
        return requests

    def _wrong_on_shelf(self) -> bool:
        """Whether the pack on the store shelf must come out between two rounds.

        Either its cards are not the ones that the table knows as shuffled, or the other pack has the turn and
        cannot be shuffled while the shelf is full.
        """
        table, device = self._procedure.table, self.device
        if (
            device.shuffler != ShufflerState.STORED
            or table.state != "between"
            or self._state.shoe.deliver_asked
        ):
            return False
        pack = next((each for each in table.packs() if each.pack_id == device.in_shuffler), None)
        others = [each for each in table.packs() if each is not pack]
        waiting = all(each.state in FED_FROM for each in others)
        if pack is None or pack.state not in ("shuffling", "shuffled"):
            return True  # the table has this pack elsewhere, so these cards are not the shuffled pack
        if self.is_uncounted(pack):
            return True
        return waiting and not self._ways.delivery.has_turn(pack.pack_id)

    def wanted_game(self) -> GameState:
        """What the machine must be set to under this rule set."""
        rules, way = self._procedure.table.rules, self._ways.now()
        # MD3 3.C, MDM 3.C: how long cards may be used is the rule text's; some texts set no limit.
        hours = rules.hours(self._procedure.table.method) or NO_LIMIT
        if way is not None:
            return way.game(hours)
        one = self._procedure.table.memory.one_pack or not rules.cards.alternating
        return GameState(Method.AUTOMATED_SHOE, rules.cards.decks, HAND_CARDS, hours, int(one))


def _question(name: str) -> Request[Any]:
    """The query for an entry of a survey."""
    if name.startswith("component"):
        return ComponentQuery(int(name.split()[1]))
    kinds: dict[str, type[Request[Any]]] = {
        "status": Status,
        "decks": Decks,
        "game": Game,
        "last_round": LastRound,
    }
    return kinds[name]()


def _key(request: Request[Any]) -> str:
    """Name and body of a request, as `DeviceState.refused` keeps it."""
    return f"{request.NAME} {request.pack().hex()}"
