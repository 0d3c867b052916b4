"""The oracle: receives a device's reports and compares each claim with where the cards really are.

A *claim* is a count, a place of a proved deck, a round's verdict, an empty half, a turn, or hours not over.
The oracle keeps the truth it needs: the cards that lay in the chamber when a deck was counted (its *proof*),
every card that fell into the exit tray, which deck played last, when decks were opened.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sabot_firmware import hardware, shoe, shuffler
from sabot_firmware.decks import CARD_BY_CARD, DEFAULT_HOURS, NO_LIMIT
from sabot_firmware.machine_constants import DECK_CARDS
from sabot_firmware.rounds import CARD_EXTRA, CARD_MISSING, CORRECT, UNPROVED
from sabot_protocol.codec import enum_number
from sabot_simulators.emulated_device import CommandValue, SteppedDevice
from sabot_simulators.mechanism.faults import FaultOccurrence
from sabot_simulators.mechanism.moving_parts import DOORS, SHOE, SHUFFLER
from sabot_simulators.mechanism.physical_cards import PhysicalCard
from sabot_simulators.oracle.claims import Excuse, WrongClaim
from sabot_simulators.oracle.hands import Overlooked
from sabot_simulators.view import DeckView

Body = tuple[PhysicalCard, ...]  # cards that moved as one

MEMORY_DAMAGED = enum_number("Fault", "memory_damaged")
SHOE_MOVES = (shoe.DISPENSING, shoe.EJECTING, shoe.LOADING)
STANDS = (shoe.JAMMED, shoe.DOOR_OPEN, shoe.OUT_OF_ORDER, shoe.SERVICE)
CHAMBER_AT, STORE_AT, SHOE_AT, TRAY_AT, HANDS_AT = range(2, 7)  # in ``DeckView.cards``
TAKEN_KINDS = ("missing_card", "other_deck_card")
ADDED_KINDS = ("extra_card", "other_deck_card", "duplicate_card")
HIDDEN_PLACES = ("store", "shoe")
CLOCK_TOLERANCE_S = 60  # hours are looked at every half minute


@dataclass
class DeckSeen:
    """The oracle's record of one deck."""

    deck_id: int
    back: int
    opened_us: int | None = None
    """When it really was opened; None if that was not seen."""
    opened_ahead_s: int = 0
    """How much later than that it was said to be opened."""
    pack: int = 0
    """The new deck its cards came out of."""
    proof: list[PhysicalCard] | None = None
    """What really lay in the chamber when it was counted, the top card first."""
    proof_us: int = -1
    strangers: "dict[int, Excuse | None]" = field(default_factory=dict)
    """The cards among them that are of no or another pack, and why that cannot be seen."""
    in_shoe_us: int = -1
    """When the pusher began to bring it into the shoe."""
    out: list[Body] = field(default_factory=list)
    """What has fallen into the exit tray since then."""


@dataclass
class RoundSeen:
    """The oracle's record of one round."""

    round_id: int
    deck_id: int
    hands: int | None = None
    stacks: list[list[Body]] = field(default_factory=list)
    ended: tuple[int, int] | None = None
    """Verdict and count, as reported."""
    void: int = 0
    cut: bool = False
    """Whether the shoe half started anew after it was opened."""


class Oracle:
    """Judges every report of a device. Wrong claims are collected in ``wrong``, not raised."""

    def __init__(self, device: SteppedDevice) -> None:
        self._device = device
        self._machine = device.machine
        self._faults = device.machine.faults
        self.claims = 0
        """How many were judged."""
        self.wrong: list[WrongClaim] = []
        """Every wrong claim. One whose ``unseen`` is None has no excuse: a defect of the firmware."""
        self.round: RoundSeen | None = None
        """The newest round."""
        self._decks: dict[int, DeckSeen] = {}
        self._cards: list[PhysicalCard] = []  # all there were when they were last looked at
        self._in_shoe = 0  # the deck that was pushed into the shoe last
        self._shoe_was = shoe.STARTING
        self._last_turn = 0  # the deck that was dealt or delivered last
        self._one_deck = False
        self._stack_cards = 3
        self._method = 0
        self._game_cards = DECK_CARDS
        self._hours = DEFAULT_HOURS
        self._fed_us = -1  # when the newest shuffle began
        self._in_tray: list[PhysicalCard] = []  # at that moment
        self._fallen: list[Body] = []  # since the shoe began to deal or to eject
        self._stack: list[Body] = []  # of which that was a stack or a stub
        self._emptied: list[Body] = []  # since emptying began
        self._emptying = False
        self._flying: list[PhysicalCard] = []  # cards that had left the shoe when emptying began
        self._overlooked = Overlooked(device.machine, self._deck_of)
        device.machine.landed.clear()
        device.on_report = self.report
        device.on_command = self.commanded

    # -- between reports ------------------------------------------------------------------------

    def every_card_in_one_place(self, in_hands: Iterable[PhysicalCard]) -> None:
        """Judge that no card is in two places and none is lost, including those in people's hands."""
        held = [card for cards in self._machine.truth().values() for card in cards]
        held += in_hands
        ids = set(map(id, held))
        self._claim("no card is in two places", len(ids) == len(held))
        self._claim("no card is lost", all(id(card) in ids for card in self._cards))
        self._cards = held

    def ask(self) -> None:
        """Query the newest round and the places of the decks; the answers must agree with the reports."""
        device, current = self._device, self.round
        if current is not None:
            round_id, deck_id, verdict, void, count = device.command("last_round")
            same = round_id == current.round_id and deck_id == current.deck_id
            self._claim("the host is told of the same round", same)
            if same:
                self._ended_on_record(current, verdict, void, count)
                reported = current.ended or (0, 0)
                self._claim("the host is told the same verdict", (verdict, count) == reported)
                self._claim("the host is told the same reason", void == current.void)
        for deck in device.view().decks:
            _, _, proved, cards = device.command("whereabouts", deck.deck_id)
            same = bool(proved) == deck.proved and tuple(cards) == deck.cards
            self._claim(f"the host is told the same of deck {deck.deck_id}", same)

    def _ended_on_record(self, current: RoundSeen, verdict: int, void: int, count: int) -> None:
        """Judge the end of a round that was saved and not reported, because the power failed in between."""
        if current.cut and current.ended is None and not current.void:
            if verdict:
                stub = count - sum(map(len, current.stacks))
                self._hear_round_ended(current.round_id, verdict, stub, count)
            current.void = void

    # -- what is heard --------------------------------------------------------------------------

    def commanded(self, name: str, values: tuple[CommandValue, ...]) -> None:
        """Record a command that the device accepted."""
        if name == "register_deck":
            self._registered(*(each for each in values if isinstance(each, int)))
        elif name == "play_one_deck":
            self._one_deck = bool(values[0])
        elif name == "set_game":
            self._method, self._stack_cards, self._hours = int(values[1]), int(values[3]), int(values[4])
            self._game_cards = DECK_CARDS * int(values[2])
        elif name == "deliver_deck":
            self._last_turn = int(values[0])
        elif name == "empty_machine":
            self._take_landed()
            self._emptied, self._emptying = [], self._device.view().emptying
            self._flying = self._machine.deal_track.flying()

    def _registered(self, deck_id: int, back: int, opened_s: int) -> None:
        now_us = self._machine.agenda.now_us
        deck = self._decks[deck_id] = DeckSeen(deck_id, back, now_us)
        deck.opened_ahead_s = opened_s - self._device.true_utc_s()
        if len(self._device.view().decks) == 2:
            self._one_deck = False

    def report(self, name: str, values: tuple[int | str, ...]) -> None:
        """Judge an event that the device just reported."""
        numbers = [int(each) if isinstance(each, int) else 0 for each in values]
        judge = getattr(self, f"_hear_{name}", None)
        if judge is not None:
            judge(*numbers)

    def _hear_deck_counted(self, deck_id: int, _: int, count: int, expected: int) -> None:
        """Judge a count of the chamber; the cards of a whole deck show its back and came from the tray."""
        cards = self._machine.stack()
        deck = self._deck(deck_id)
        self._overlooked.chamber_counted(deck_id if count == expected else 0)
        self._claim(f"{count} in the chamber", count == len(cards))
        if count != expected:
            return
        self._claim(f"{count} of one back", all(card.colour == deck.back for card in cards))
        deck.pack = deck.pack or _most_common(card.pack for card in cards)
        strangers = [card for card in cards if card.pack != deck.pack]
        deck.strangers = {id(card): self._laid_in(deck_id, card) for card in strangers}
        self._judge(f"the cards of deck {deck_id}", not strangers, deck.strangers.values())

    def _hear_shuffler_changed(self, state: int, deck_id: int) -> None:
        machine = self._machine
        if state in (shuffler.JAMMED, shuffler.STARTING):
            self._emptying = False  # broken off
        if state == shuffler.FEEDING:
            now_us = self._fed_us = machine.agenda.now_us
            drawn = [body for body in machine.feed_track.bodies if not body.lead_now(now_us)]  # this moment
            self._in_tray = machine.tray + [card for body in drawn for card in body.cards]
            self._deck(deck_id).proof = None
            self._judge_hours(deck_id, "shuffle")
        elif state == shuffler.IDLE:
            inside = machine.feed_track.cards() + machine.crashed + machine.stack()
            if self._device.shoe_state != shoe.LOADING:
                inside += machine.store
            excuses = self._overlooked.excuses(SHUFFLER, inside)
            self._judge("the shuffler half is empty", not inside, excuses)
        elif state in (shuffler.HOLDING, shuffler.STORING) and deck_id and self._deck(deck_id).proof is None:
            deck = self._deck(deck_id)  # deck_counted follows, and is judged then
            deck.proof, deck.proof_us, deck.out = machine.stack(), machine.agenda.now_us, []
        self._each_deck()

    def _hear_shoe_changed(self, state: int, deck_id: int, round_id: int) -> None:
        self._take_landed()
        if state in (shoe.JAMMED, shoe.STARTING, shoe.BLOCKED):
            self._emptying = False  # broken off
        if state == shoe.STARTING and self.round is not None:
            self.round.cut = True
        if state in (shoe.DISPENSING, shoe.EJECTING):
            self._fallen = []
        elif state in (shoe.STACK_WAITING, shoe.STUB_WAITING):
            self._stack = self._fallen
        before, self._shoe_was = self._shoe_was, state
        self._overlooked.look()
        if state == shoe.BLOCKED:
            self._overlooked.missed(self._in_shoe)
        by_hand = state == shoe.READY and (before == shoe.UNPROVED or deck_id != self._in_shoe)
        if state == shoe.LOADING or by_hand:
            self._in_shoe = deck_id
            deck = self._deck(deck_id)
            if by_hand and self._method == CARD_BY_CARD:
                self._laid_into_the_shoe(deck)
            deck.in_shoe_us, deck.out = self._machine.agenda.now_us, []
        elif state == shoe.ROUND_OPEN and (self.round is None or self.round.round_id != round_id):
            self._round_opened(round_id, deck_id)
        elif state == shoe.EMPTY:
            inside = self._machine.deal_track.cards() + self._machine.shoe
            excuses = self._overlooked.excuses(SHOE, inside)
            found = [each or self._replaced(card) for each, card in zip(excuses, inside, strict=True)]
            self._judge("the shoe half is empty", not inside, found)
        self._each_deck()

    def _hear_path_inspected_by(self, *_: int) -> None:
        self._overlooked.vouched()

    def _laid_into_the_shoe(self, deck: DeckSeen) -> None:
        """Judge that a deck which people may lay in was delivered whole, with nothing left in the path."""
        came = sum(map(len, deck.out))
        what = f"deck {deck.deck_id} was delivered whole"
        self._judge(what, came == self._game_cards, self._aligned(deck.out, deck.deck_id))
        self._claim(f"{what}, and no card is left in the path", not self._machine.deal_track.bodies)

    def _hear_bets_closed(self, round_id: int, hands: int) -> None:
        self._current(round_id).hands = hands

    def _hear_hands_changed(self, round_id: int, before: int, hands: int, *_: int) -> None:
        current = self._current(round_id)
        self._claim(f"{before} hands before", current.hands in (None, before))
        current.hands = hands

    def _hear_stack_dispensed(self, round_id: int, stack: int, cards: int) -> None:
        self._stack_came(f"stack {stack} of {cards}", cards)
        current = self._current(round_id)
        current.stacks.append(self._stack)
        self._claim(f"stack {stack} is the next", stack == len(current.stacks))
        self._judge_backs(self._stack, self._deck(current.deck_id))

    def _hear_cards_drawn(self, round_id: int, draw: int, cards: int) -> None:
        self._stack_came(f"draw {draw} of {cards}", cards)

    def _hear_stack_taken(self, round_id: int, stack: int) -> None:
        self._each_deck()

    def _hear_round_ended(self, round_id: int, verdict: int, stub: int, count: int) -> None:
        current = self._current(round_id)
        current.ended = verdict, count
        if verdict == UNPROVED:
            return
        deck = self._deck(current.deck_id)
        self._stack_came(f"a stub of {stub}", stub)
        bodies = [*(body for stack in current.stacks for body in stack), *self._stack]
        self._number(f"a round of {count}", count, bodies, deck.deck_id)
        if deck.proof is None:
            return
        expected = len(deck.proof)
        if verdict == CARD_MISSING:
            self._overlooked.missed(deck.deck_id)
        self._claim(f"{count} is too few", verdict != CARD_MISSING or count < expected)
        left = self._machine.deal_track.cards() + self._machine.shoe  # one more may lie in the path
        more = count > expected or (count == expected and len(bodies) + len(left) > expected)
        self._claim(f"{count} is too many", verdict != CARD_EXTRA or more)
        if verdict == CORRECT:
            self._correct(current, deck, bodies, count)

    def _hear_round_voided(self, round_id: int, reason: int) -> None:
        if self.round is not None and self.round.round_id == round_id:
            self.round.void = reason

    def _hear_deck_delivered(self, deck_id: int, dealt: int, cards: int) -> None:
        self._take_landed()
        self._stack = list(self._deck(deck_id).out)
        self._number(f"{dealt} delivered", dealt, self._stack, deck_id)

    def _hear_shoe_ended(self, deck_id: int, dealt: int, cards: int) -> None:
        self._take_landed()
        self._number(f"{dealt} in the whole shoe", dealt, self._deck(deck_id).out, deck_id)

    def _hear_emptied(self, cards: int) -> None:
        self._take_landed()
        if self._emptying:
            bodies = [body for body in self._emptied if body[0] not in self._flying]
            self._number(f"{cards} brought out", cards, bodies, 0)
        self._emptying = False

    def _hear_deck_hours(self, deck_id: int, left_s: int) -> None:
        age_s = self._age_s(deck_id)
        if age_s is not None and not self._device.clock_wrong_by_s:
            most_s = max(self._hours * 3600 - age_s, 0) + CLOCK_TOLERANCE_S
            # Less is allowed: a deck that was once seen too old stays so.
            self._judge(f"deck {deck_id} may be used for {left_s} s", left_s <= most_s, self._clock(deck_id))

    def _hear_fault_raised(self, fault: int, *_: int) -> None:
        if fault == MEMORY_DAMAGED:  # the device says itself that it knows nothing from before
            self.round = None
            self._one_deck, self._last_turn = False, 0
            self._overlooked.vouched()

    # -- rounds ---------------------------------------------------------------------------------

    def _round_opened(self, round_id: int, deck_id: int) -> None:
        """Judge the opening of a round: it is the deck's turn, and its hours are not over."""
        last, self.round = self.round, RoundSeen(round_id, deck_id)
        if self._method != CARD_BY_CARD:
            turn = self._last_turn != deck_id or self._one_deck
            self._claim(f"it is the turn of deck {deck_id}", turn)
        self._last_turn = deck_id
        self._claim(f"round {round_id} is new", last is None or round_id > last.round_id)
        self._judge_hours(deck_id, "round")

    def _current(self, round_id: int) -> RoundSeen:
        if self.round is None or self.round.round_id != round_id:  # opened before anybody listened
            self.round = RoundSeen(round_id, self._device.view().shoe_deck)
        return self.round

    def _correct(self, current: RoundSeen, deck: DeckSeen, bodies: list[Body], count: int) -> None:
        """Judge a round reported as correct: all hands, three cards each, proved cards in proved order."""
        assert deck.proof is not None
        dealt = [card for body in bodies for card in body]
        hands = len(current.stacks) if current.hands is None else current.hands
        self._claim(f"a correct round of {hands} stacks", len(current.stacks) == hands)
        for number, stack in enumerate(current.stacks, 1):
            cards = sum(map(len, stack))
            excuses = self._aligned(stack, deck.deck_id)
            self._judge(f"a correct round, stack {number}", cards == self._stack_cards, excuses)
        right = len(dealt) == len(deck.proof) == count
        self._judge(f"a correct round of {count}", right, self._aligned(bodies, deck.deck_id))
        self._judge_backs(self._stack, deck)  # of the stub; stacks were judged before people could turn cards
        if [id(card) for card in dealt] != [id(card) for card in deck.proof]:
            missing, added = _difference(deck.proof, dealt)
            excuses = self._tampered(deck, missing, added, "composition")
            self._judge("a correct round of the proved cards", False, excuses if missing or added else ())
        else:
            self.claims += 1
        strangers = [card for card in dealt if card.pack != deck.pack]
        excuses = [deck.strangers.get(id(card)) or self._added(deck, card) for card in strangers]
        self._judge("a correct round of one deck", not strangers, excuses)

    def _judge_backs(self, bodies: list[Body], deck: DeckSeen) -> None:
        """Judge the backs of the cards that came out; a card that lies under another is not seen."""
        self._claim(f"backs of deck {deck.deck_id}", all(body[0].colour == deck.back for body in bodies))
        for body in bodies:
            if any(card.colour != deck.back for card in body[1:]):
                self._judge(f"backs of deck {deck.deck_id}", False, self._aligned([body], deck.deck_id))

    def _stack_came(self, what: str, cards: int) -> None:
        """Judge a stack: the cards that fell since the shoe began to deal have the reported number."""
        self._take_landed()
        self._number(what, cards, self._stack, self._in_shoe)

    # -- numbers, places, hours -----------------------------------------------------------------

    def _number(self, what: str, claimed: int, bodies: list[Body], deck_id: int) -> None:
        """Judge a number of cards that came out; two aligned cards may have been counted as one."""
        counted = [body for body in bodies if body[0].number >= 0]  # cover cards are counted apart
        real = sum(map(len, counted))
        excuses = self._aligned(counted, deck_id)
        if claimed != len(counted):
            excuses.append(self._past_dead(counted, len(counted) - claimed, deck_id))
        self._judge(what, claimed == real, excuses)

    def _each_deck(self) -> None:
        """Judge the place of each proved deck; a half that is stopped or open proves nothing."""
        device = self._device
        view = device.view()
        for deck in view.decks:
            if deck.proved:
                self._proved(deck, view.shuffler_state, view.shoe_state)

    def _proved(self, said: DeckView, shuffler_state: int, shoe_state: int) -> None:
        machine = self._machine
        deck, cards = self._deck(said.deck_id), said.cards
        in_shoe = cards[SHOE_AT] + cards[TRAY_AT] + cards[HANDS_AT]
        what = f"deck {said.deck_id} is proved"
        if deck.proof is not None:
            self._claim(f"{what} whole", sum(cards) == len(deck.proof))
        if shoe_state == shoe.LOADING and (in_shoe or not cards[CHAMBER_AT]):
            return  # on its way from the shelf
        if in_shoe:
            closed = self._closed(hardware.SHOE_DOOR, deck.in_shoe_us) and shoe_state not in STANDS
            self._claim(f"{what} in a shoe that works and that nobody opened", closed)
            if shoe_state not in SHOE_MOVES:
                lies = machine.deal_track.cards() + machine.shoe
                self._place(deck, f"{cards[SHOE_AT]} in the shoe", cards[SHOE_AT], lies)
                self._exit_tray(deck, cards[TRAY_AT])
            return
        closed = self._closed(hardware.SHUFFLER_DOOR, deck.proof_us)
        self._claim(f"{what} behind a door that nobody opened", closed)
        if shuffler_state == shuffler.STORING:
            return  # on its way to the shelf
        if cards[CHAMBER_AT]:
            what, lies = f"{cards[CHAMBER_AT]} in the chamber", machine.stack()
        else:
            what, lies = f"{cards[STORE_AT]} on the shelf", machine.store
        self._place(deck, what, sum(cards), lies)

    def _closed(self, door: int, since_us: int) -> bool:
        """Whether a door is closed and was not opened since a time."""
        machine = self._machine
        return bool(machine.level(door)) and machine.opened_us[DOORS.index(door)] <= since_us

    def _place(self, deck: DeckSeen, what: str, claimed: int, lies: list[PhysicalCard]) -> None:
        """Judge that the cards of a deck that have not come out lie in this place, and no others."""
        if deck.proof is None:  # counted before anybody listened
            self._claim(what, claimed == len(lies))
            return
        missing, added = _difference(deck.proof, [card for body in deck.out for card in body] + lies)
        doubles = [body for body in deck.out if len(body) > 1]
        name = "composition" if claimed == len(lies) else "behind_a_closed_door"
        excuses = self._tampered(deck, missing, added, name) + self._aligned(doubles, deck.deck_id)
        uncounted = claimed - (len(deck.proof) - len(deck.out))
        if uncounted:
            excuses.append(self._past_dead(deck.out, uncounted, deck.deck_id))
        self._judge(what, claimed == len(lies) and not missing and not added, excuses)

    def _exit_tray(self, deck: DeckSeen, claimed: int) -> None:
        """Judge that the stack in the exit tray is the one that came out last."""
        machine = self._machine
        if not claimed or self._device.edges_pending():
            return
        missing, added = _difference([card for body in self._stack for card in body], machine.exit_tray)
        excuses: list[Excuse | None] = []
        now_us = machine.agenda.now_us
        if added:
            hand = "a hand"
            excuses.append(Excuse("laid_onto_a_stack", deck.deck_id, tuple(added), hand, now_us))
        if missing:
            upset = machine.sensors.is_upset(hardware.EXIT_TRAY)
            cause = self._newest(("dead_sensor", "chattering_sensor"), "exit_tray") if upset else None
            excuses.append(
                None if cause is None else _excuse("taken_unseen", deck.deck_id, cause, tuple(missing))
            )
        self._judge(f"{claimed} in the exit tray", not missing and not added, excuses)

    def _judge_hours(self, deck_id: int, what: str) -> None:
        age_s = self._age_s(deck_id)
        if age_s is not None and self._hours != NO_LIMIT:
            within = age_s < self._hours * 3600 + CLOCK_TOLERANCE_S
            self._judge(f"deck {deck_id} is within its hours for a {what}", within, self._clock(deck_id))

    def _age_s(self, deck_id: int) -> int | None:
        opened_us = self._deck(deck_id).opened_us
        return None if opened_us is None else (self._machine.agenda.now_us - opened_us) // 1_000_000

    # -- excuses --------------------------------------------------------------------------------

    def _aligned(self, bodies: Iterable[Body], deck_id: int) -> list[Excuse | None]:
        """Excuses for aligned cards: for each, the fault that drew exactly these cards together."""
        excuses: list[Excuse | None] = []
        for body in bodies:
            if len(body) > 1:
                cause = self._cause(body[0], ("aligned_double",), ("shoe",), -1)
                named = cause is not None and all(card in cause.cards for card in body)
                if cause is not None and named:
                    excuses.append(_excuse("aligned_at_the_exit", deck_id, cause, body))
                else:
                    excuses.append(None)
        return excuses

    def _past_dead(self, bodies: list[Body], uncounted: int, deck_id: int) -> Excuse | None:
        """The excuse for the shoe's last card past a dead exit sensor; another card would stop the shoe."""
        machine = self._machine
        cause = self._newest(("dead_sensor",), "exit") if machine.sensors.is_dead(hardware.EXIT) else None
        if cause is None or uncounted != 1 or not bodies:
            return None
        if machine.landed_us < cause.at_us or machine.shoe or machine.deal_track.bodies:
            return None
        return _excuse("past_a_dead_sensor", deck_id, cause, bodies[-1])

    def _tampered(
        self, deck: DeckSeen, missing: list[PhysicalCard], added: list[PhysicalCard], name: str
    ) -> "list[Excuse | None]":
        """Excuses for each card that left or joined a deck since its count behind a closed door."""
        excuses: list[Excuse | None] = []
        for cards, kinds in ((missing, TAKEN_KINDS), (added, ADDED_KINDS)):
            for card in cards:
                cause = self._cause(card, kinds, HIDDEN_PLACES, deck.proof_us)
                excuses.append(None if cause is None else _excuse(name, deck.deck_id, cause, (card,)))
        return excuses

    def _added(self, deck: DeckSeen, card: PhysicalCard) -> Excuse | None:
        return self._tampered(deck, [], [card], "composition")[0]

    def _laid_in(self, deck_id: int, card: PhysicalCard) -> Excuse | None:
        """The excuse for a card of another deck that lay in the tray for the newest shuffle."""
        if card.laid_us < self._fed_us and not any(each is card for each in self._in_tray):
            return None  # it lay elsewhere in the machine
        return Excuse("composition", deck_id, (card,), "laid into the tray", card.laid_us)

    def _replaced(self, card: PhysicalCard) -> Excuse | None:
        """The excuse for a missing card in the path: its deck was counted whole, with another instead."""
        deck = self._deck(self._deck_of(card))
        laid_in = [each for each in deck.strangers.values() if each is not None]
        if not laid_in or not any(each is card for each in self._overlooked.replaced):
            return None
        return Excuse("composition", deck.deck_id, (card, *laid_in[0].cards), laid_in[0].cause, deck.proof_us)

    def _clock(self, deck_id: int) -> list[Excuse]:
        now_us, ahead_s = self._machine.agenda.now_us, self._deck(deck_id).opened_ahead_s
        cause = self._newest(("wrong_clock",), "controller")
        if cause is None or not (self._device.clock_wrong_by_s < 0 or ahead_s > 0):
            return []
        since_us = cause.at_us if self._device.clock_wrong_by_s < 0 else now_us
        return [Excuse("wrong_clock", deck_id, (), str(cause.fault), since_us)]

    def _cause(
        self, card: PhysicalCard, kinds: tuple[str, ...], places: tuple[str, ...], since_us: int
    ) -> FaultOccurrence | None:
        """The fault that happened to exactly this card, or None."""
        for each in reversed(self._faults.happened):
            if each.at_us >= since_us and each.kind in kinds and each.place in places and card in each.cards:
                return each
        return None

    def _newest(self, kinds: tuple[str, ...], place: str) -> FaultOccurrence | None:
        for each in reversed(self._faults.happened):
            if each.kind in kinds and each.place == place:
                return each
        return None

    # -- small things ---------------------------------------------------------------------------

    def _deck(self, deck_id: int) -> DeckSeen:
        deck = self._decks.get(deck_id)
        if deck is None:
            backs = [each.back for each in self._device.view().decks if each.deck_id == deck_id]
            deck = self._decks[deck_id] = DeckSeen(deck_id, backs[0] if backs else hardware.NOTHING)
        return deck

    def _deck_of(self, card: PhysicalCard) -> int:
        """The deck whose new pack a card came out of, or 0."""
        return next((deck.deck_id for deck in self._decks.values() if deck.pack == card.pack), 0)

    def _take_landed(self) -> None:
        """Record the cards that fell into the exit tray since the last call."""
        landed = self._machine.landed
        if landed:
            bodies = list(landed)
            landed.clear()
            self._overlooked.passed_the_exit(bodies[-1])
            self._fallen += bodies
            self._emptied += bodies
            deck = self._decks.get(self._in_shoe)
            if deck is not None:
                deck.out += bodies

    def _claim(self, what: str, right: bool) -> None:
        self._judge(what, right, ())

    def _judge(self, what: str, right: bool, excuses: "Iterable[Excuse | None]") -> None:
        """Judge one claim. If it is wrong, every difference must have an excuse."""
        self.claims += 1
        if right:
            return
        found = tuple(excuses)
        named = tuple(each for each in found if each is not None)
        happened = tuple(f"{each.kind}@{each.place}" for each in self._faults.happened)
        whole = named if len(named) == len(found) else ()
        self.wrong.append(WrongClaim(what, self._machine.agenda.now_us, happened, whole))


def _excuse(name: str, deck_id: int, cause: FaultOccurrence, cards: tuple[PhysicalCard, ...]) -> Excuse:
    return Excuse(name, deck_id, cards, str(cause.fault), cause.at_us)


def _difference(
    expected: list[PhysicalCard], lies: list[PhysicalCard]
) -> tuple[list[PhysicalCard], list[PhysicalCard]]:
    """The cards that are missing and the cards that are too many, by identity."""
    should, are = set(map(id, expected)), set(map(id, lies))
    if should == are:
        return [], []
    missing = [card for card in expected if id(card) not in are]
    return missing, [card for card in lies if id(card) not in should]


def _most_common(packs: Iterable[int]) -> int:
    found = list(packs)
    return max(set(found), key=found.count) if found else 0
