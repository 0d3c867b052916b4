"""Rounds: commands of the table become stacks, draws and ejections of the shoe half.

The controller passes every change of the shoe half to ``shoe_changed``, which reports it in terms of rounds.
A round is saved in critical memory before its first card moves, and saved as closed before its end is
reported.
"""

from sabot_firmware import shoe
from sabot_firmware.decks import AUTOMATED_SHOE, CARD_BY_CARD, is_far_ahead
from sabot_firmware.machine_constants import DECK_CARDS
from sabot_firmware.persistent_state import CARDS_MOVING
from sabot_firmware.refusals import forbidden, refuse
from sabot_firmware.rounds import CARD_EXTRA, CORRECT, UNPROVED, Round
from sabot_protocol.codec import enum_number
from sabot_protocol.errors import Refusal
from sabot_protocol.modes import SHOE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_firmware.controller import Controller
    from sabot_protocol.codec import Values

# What is being ejected
STUB = 1
DELIVERY = 2
SHOE_END = 3
OUT = 4  # cards that nothing proves
PURGE = 5  # a card that lies where no sensor sees it

POWER_CUT = enum_number("VoidReason", "power_cut")
SHOE_FAILED = enum_number("VoidReason", "shoe_failed")
TOO_FEW_CARDS = enum_number("VoidReason", "too_few_cards")
WRONG_NUMBER = enum_number("VoidReason", "wrong_number")
VOID_REASONS = {  # by the cause of the shoe's fault; SHOE_FAILED for any other
    "face_up_card": enum_number("VoidReason", "face_up_card"),
    "stack_disturbed": enum_number("VoidReason", "stack_disturbed"),
    "supply_low": POWER_CUT,
    "stopped": enum_number("VoidReason", "stopped"),
}


class Dealing:
    """The round in play, and what else leaves the shoe."""

    def __init__(self, controller: "Controller") -> None:
        self._controller = controller
        self._persistent = controller.persistent
        self.round: Round | None = None
        self._ended: Round | None = None  # the newest round that was not void
        self._faces = b""  # of its cards
        self._ejecting = 0  # what comes out
        self._delivering = 0  # the deck that is to be ejected as soon as it is in the shoe
        self._purger = (b"", 0)  # who asked for the purge
        self._burning = False
        self._burnt = 0
        self._rounds_of_shoe = 0
        self._last_announced = False
        self._cover_reported = False
        self._exposed_reported = 0

    # -- commands -------------------------------------------------------------------------------

    def open_round(self, round_id: int, deck_id: int) -> "Values":
        """Open a round on the deck in the shoe, which uses the deck's turn."""
        controller, persistent = self._controller, self._persistent
        self._may_open(round_id, deck_id)
        if persistent.game.method == CARD_BY_CARD and controller.shoe.cover_seen and self._last_announced:
            raise forbidden("last_hand_dealt")
        self._open(Round(round_id, deck_id, 0, persistent.game.stack_cards))
        if controller.shoe.cover_seen and persistent.game.method == CARD_BY_CARD:
            self._last_announced = True
            controller.report("last_hand", round_id)
        return ()

    def simulate_round(self, round_id: int, deck_id: int) -> "Values":
        """Open a round without wagers (MDM 13), which has no bets to close."""
        self._need_method(CARD_BY_CARD)
        self._may_open(round_id, deck_id)
        opened = Round(round_id, deck_id, 2)
        opened.simulated = opened.bets_closed = True
        self._open(opened)
        return ()

    def _may_open(self, round_id: int, deck_id: int) -> None:
        controller, persistent = self._controller, self._persistent
        if round_id <= persistent.round_id:
            raise Refusal("stale", (persistent.round_id, 0))
        if is_far_ahead(round_id, persistent.round_id):
            raise Refusal("bad_field", (0,))
        if persistent.game.method not in (AUTOMATED_SHOE, CARD_BY_CARD):
            raise forbidden("other_method")
        decks, now_s = persistent.decks, controller.utc_s()
        if persistent.game.method == CARD_BY_CARD:  # the turn was used when the shoe was loaded
            refuse(decks.refuse_using(deck_id, now_s))
        else:
            refuse(decks.refuse_turn(deck_id, now_s))
        if deck_id != controller.shoe.deck:
            raise forbidden("another_deck")
        controller.refuse_if_unfit()

    def _open(self, opened: Round) -> None:
        persistent = self._persistent
        before = persistent.pack()
        persistent.round_id, persistent.round_deck = opened.round_id, opened.deck_id
        persistent.verdict = persistent.void = persistent.count = 0
        persistent.round_open = True
        persistent.decks.started(opened.deck_id)
        persistent.save_or_undo(before)
        opened.first_card = self._controller.shoe.dealt
        self.round = opened
        self._rounds_of_shoe += 1
        self._controller.wear.add("rounds")
        self._controller.shoe.enter(shoe.ROUND_OPEN)

    def close_bets(self, round_id: int, hands: int) -> "Values":
        """Close the bets and set the number of hands; cards may be dealt only from now on (MD3 10.A).

        A second call corrects the number until the dealer's stack, the last one, is dispensed.
        """
        controller, current = self._controller, self._current(round_id, 0)
        if current.bets_closed and hands == current.hands:
            return ()
        dealt = len(current.stacks)
        if current.bets_closed and (current.hands <= dealt or hands <= dealt):
            raise forbidden("hands_fixed")
        if (
            self._persistent.game.method != CARD_BY_CARD
            and hands * current.stack_cards > controller.shoe.cards
        ):
            raise forbidden("too_many")
        before, current.hands = current.hands, hands
        if current.bets_closed:
            controller.report("hands_changed", round_id, before, hands, *controller.who())
        else:
            current.bets_closed = True
            controller.report("bets_closed", round_id, hands)
        return ()

    def dispense_stack(self, round_id: int, stack: int) -> "Values":
        """Deal the next stack."""
        current = self._current(round_id, stack)
        self._need_method(AUTOMATED_SHOE)
        if not current.bets_closed:
            raise forbidden("bets_open")
        if current.next_stack() != stack:
            raise Refusal("stale", (round_id, len(current.stacks)))
        self._controller.shoe.deal(current.stack_cards, shoe.ROUND_OPEN, self._controller.now_us)
        return ()

    def draw_cards(self, round_id: int, draw: int, cards: int) -> "Values":
        """Deal the next cards of a round that is dealt card by card."""
        current = self._current(round_id, draw)
        self._need_method(CARD_BY_CARD)
        if draw != len(current.stacks) + 1:
            raise Refusal("stale", (round_id, len(current.stacks)))
        if not current.bets_closed:
            raise forbidden("bets_open")
        self._controller.shoe.deal(cards, shoe.ROUND_OPEN, self._controller.now_us)
        return ()

    def burn_cards(self, cards: int) -> "Values":
        """Deal cards to burn: first one card, then as many as its value says (MDM 5)."""
        self._need_method(CARD_BY_CARD)
        if self._rounds_of_shoe or self._burnt >= 2:
            raise forbidden("already_burnt")
        self._burnt += 1
        self._burning = True
        self._controller.shoe.deal(cards, shoe.READY, self._controller.now_us)
        return ()

    def end_round(self, round_id: int) -> "Values":
        """All hands have their cards: eject the stub and count everything (MD3 10.B, 10.C)."""
        current = self._current(round_id, 0)
        if self._persistent.game.method == CARD_BY_CARD:
            self._close(current, UNPROVED, 0)
            if self._controller.shoe.state != shoe.JAMMED:  # its end could not be recorded
                self._controller.shoe.enter(shoe.READY)
            return ()
        if not current.bets_closed or current.next_stack() is not None:
            raise forbidden("stacks_missing")
        self._eject(STUB)
        return ()

    def void_round(self, round_id: int, reason: int) -> "Values":
        """Declare the round void."""
        self._current(round_id, 0)
        half = self._controller.shoe
        by_card = self._persistent.game.method == CARD_BY_CARD
        if by_card and half.state != shoe.ROUND_OPEN:
            raise Refusal("wrong_state", (half.state, 1 << shoe.ROUND_OPEN, SHOE))
        self.void(reason)
        if half.state == shoe.JAMMED:
            return ()  # it could not be recorded, and the shoe has stopped
        if by_card:
            half.enter(shoe.READY)
        else:
            half.void()
        return ()

    def deliver_deck(self, deck_id: int) -> "Values":
        """Eject a whole shuffled deck, for a manual shoe, the hand, or a cut (MD3 8, 9; MDM 5)."""
        controller, persistent = self._controller, self._persistent
        if persistent.game.method == AUTOMATED_SHOE:
            raise forbidden("other_method")
        refuse(persistent.decks.refuse_turn(deck_id, controller.utc_s()))
        if controller.shuffler.stored_deck != deck_id or not controller.may_push():
            raise forbidden("another_deck")
        controller.refuse_if_unfit()
        before = persistent.pack()
        persistent.decks.started(deck_id)
        persistent.delivered = 0
        persistent.shoe_inside = CARDS_MOVING
        persistent.save_or_undo(before)
        self._delivering = deck_id
        controller.push_stored()
        return ()

    def load_shoe(self, deck_id: int) -> "Values":
        """People cut a batch and laid it in; its count is a claim until it has been dealt out."""
        controller, persistent = self._controller, self._persistent
        self._need_method(CARD_BY_CARD)
        if deck_id != persistent.delivered:
            raise forbidden("not_delivered")
        refuse(persistent.decks.refuse_using(deck_id, controller.utc_s()))
        deck = persistent.decks.find(deck_id)
        assert deck is not None
        if not controller.shoe.door_was_open or not controller.shoe_loaded_by_hand():
            raise forbidden("not_cleared")
        before = persistent.pack()
        persistent.delivered = 0
        persistent.shoe_inside = CARDS_MOVING
        persistent.save_or_undo(before)
        controller.shoe.loaded_by_hand(deck_id, deck.back, persistent.game.cards())
        self._burnt = self._rounds_of_shoe = self._exposed_reported = 0
        self._last_announced = self._cover_reported = False
        return ()

    def end_shoe(self, deck_id: int) -> "Values":
        """Eject the rest of a batch and count all of it."""
        self._need_method(CARD_BY_CARD)
        if deck_id != self._controller.shoe.deck:
            raise forbidden("another_deck")
        self._eject(SHOE_END)
        return ()

    def purge(self) -> "Values":
        """Turn the deal roller by one pitch and 40 mm. The door was opened before, so the card is free."""
        half = self._controller.shoe
        if not half.door_was_open or half.occupied() is not None:
            raise forbidden("not_cleared")
        self._ejecting = PURGE
        self._purger = self._controller.who()
        half.purge(self._controller.now_us)
        return ()

    def path_inspected(self) -> "Values":
        """A person inspected the path and saw no card. The next deck's count is a claim then."""
        controller, half = self._controller, self._controller.shoe
        if half.occupied() is not None:
            raise forbidden("not_cleared")
        controller.report("path_inspected_by", half.short_deck, half.missing, *controller.who())
        half.inspected = half.cleared = True  # a deck that never comes to the shoe uses the claim up
        half.block(0, 0)
        return ()

    def deck_counted(self, deck_id: int) -> None:
        """A deck was fed and is complete: none of its cards lies in the shoe's path.

        A count is not a composition. Another card may have taken the place of the one that lies there, so the
        next deck's first card must pass the exit before that deck is proved.
        """
        half = self._controller.shoe
        if half.missing and half.short_deck == deck_id:
            half.cleared = True
            half.block(0, 0)

    def reveal_round(self, round_id: int) -> "Values":
        """The hands lie open: the host may ask for the faces from now on.

        In a round dealt card by card this comes during play, because third cards depend on the first four.
        """
        current = self.round
        if (
            self._persistent.game.method == CARD_BY_CARD
            and current is not None
            and current.round_id == round_id
        ):
            if not current.bets_closed:
                raise forbidden("bets_open")
            current.revealed = True
            return ()
        if self._ended is None or self._ended.round_id != round_id:
            raise Refusal("stale", (self._persistent.round_id, 0))
        self._ended.revealed = True
        return ()

    def faces(self, round_id: int, stack: int) -> "Values":
        """The faces of one stack, after the reveal."""
        shown, start = self._ended, 0
        seen: bytes | bytearray = self._faces
        current = self.round
        if current is not None and current.round_id == round_id and current.revealed:
            shown, start = current, current.first_card
            seen = self._controller.shoe.faces
        if shown is None or shown.round_id != round_id or stack > len(shown.stacks):
            raise Refusal("stale", (self._persistent.round_id, 0))
        if not shown.revealed:
            raise forbidden("not_revealed")
        self._controller.report("faces_revealed", round_id, stack, *self._controller.who())
        start += sum(shown.stacks[: stack - 1])
        return round_id, stack, list(seen[start : start + shown.stacks[stack - 1]])

    def _need_method(self, method: int) -> None:
        if self._persistent.game.method != method:
            raise forbidden("other_method")

    def _current(self, round_id: int, stack: int) -> Round:
        if self.round is None or self.round.round_id != round_id:
            raise Refusal("stale", (self.round.round_id if self.round is not None else 0, stack))
        return self.round

    # -- what becomes of the shoe half ----------------------------------------------------------

    def shoe_changed(self, state: int, before: int) -> None:
        """The shoe half changed its state: report what that means for the round."""
        controller = self._controller
        half = controller.shoe
        if state == shoe.STACK_WAITING:
            self._dealt(half.stack)
        elif before == shoe.STACK_WAITING and state in (shoe.ROUND_OPEN, shoe.READY):
            self._taken()
        elif state == shoe.STUB_WAITING:
            self._came_out(half.in_tray)
        elif state == shoe.JAMMED:
            self._delivering = self._ejecting = 0
            self._burning = False
            if half.jam is not None:
                self.void(VOID_REASONS.get(half.jam.cause, SHOE_FAILED))
        elif state == shoe.READY and self._delivering:
            self._eject(DELIVERY)
        self._report_odd_cards()

    def _eject(self, what: int) -> None:
        self._ejecting = what
        self._controller.shoe.eject(self._controller.now_us)

    def eject_unproved(self) -> None:
        """Eject cards whose count and order nothing proves."""
        self._eject(OUT)

    def _dealt(self, cards: int) -> None:
        controller, current = self._controller, self.round
        if current is None:
            controller.report("cards_drawn", 0, self._burnt, cards)
            return
        current.stacks.append(cards)
        by_card = self._persistent.game.method == CARD_BY_CARD
        name = "cards_drawn" if by_card else "stack_dispensed"
        controller.report(name, current.round_id, len(current.stacks), cards)

    def _taken(self) -> None:
        controller, current = self._controller, self.round
        if self._burning:
            self._burning = False
            controller.report("cards_taken", 0, self._burnt)
        elif current is not None:
            by_card = self._persistent.game.method == CARD_BY_CARD
            controller.report(
                "cards_taken" if by_card else "stack_taken", current.round_id, len(current.stacks)
            )

    def _came_out(self, cards: int) -> None:
        controller, persistent = self._controller, self._persistent
        half, what = controller.shoe, self._ejecting
        self._ejecting = 0
        if half.ran_out and what == 0:  # MDM 13.E: too few cards for the draw
            self.void(TOO_FEW_CARDS)
            what = SHOE_END
        if what == STUB and self.round is not None:
            verdict = self.round.verdict(cards, half.cards)
            if verdict == CORRECT and half.missing:
                verdict = CARD_EXTRA  # as many as there must be came out, and one more left the shoe
            elif verdict == CORRECT and half.claimed:
                verdict = UNPROVED
            self._close(self.round, verdict, cards)
        elif what == DELIVERY:
            self._delivering = 0
            whole = half.dealt == half.cards and not half.missing  # else one more left the shoe
            persistent.delivered = half.deck if whole else 0
            self._controller.save_state()
            controller.report("deck_delivered", half.deck, half.dealt, half.cards)
        elif what == SHOE_END:
            controller.report("shoe_ended", half.deck, half.dealt, half.cards)
        elif what == OUT:
            controller.service.count_ejected(cards)
        elif what == PURGE:
            controller.report("purged", cards, *self._purger)
        controller.wear.add("cards_dealt", half.dealt)

    def _report_odd_cards(self) -> None:
        controller = self._controller
        half, round_id = controller.shoe, self.round.round_id if self.round is not None else 0
        if half.cover_seen and not self._cover_reported and half.deck:
            self._cover_reported = True
            controller.report("cover_card_seen", round_id)
        while self._exposed_reported < half.exposed:
            self._exposed_reported += 1
            controller.report("card_exposed", round_id)

    def _close(self, ended: Round, verdict: int, stub: int) -> None:
        """Save the end of a round, then report it."""
        controller, persistent = self._controller, self._persistent
        count = sum(ended.stacks) + stub
        wrong = verdict not in (CORRECT, UNPROVED)
        persistent.round_open = False
        persistent.verdict, persistent.count = verdict, count
        persistent.void = WRONG_NUMBER if wrong else 0
        if (
            not controller.save_state()
        ):  # it would be void after a cut: it is so at once, by the shoe that has stopped
            persistent.round_open = True
            persistent.verdict = persistent.count = persistent.void = 0
            return
        self.round = None
        if not wrong:
            first = ended.first_card
            self._faces = bytes(controller.shoe.faces[first : first + sum(ended.stacks)])
            self._ended = ended
        controller.report("round_ended", ended.round_id, verdict, min(stub, DECK_CARDS), min(count, 255))
        if wrong:
            controller.report("round_voided", ended.round_id, persistent.void)

    def void(self, reason: int) -> None:
        """Void the open round, if there is one."""
        if self.round is not None:
            ended, self.round = self.round, None
            self._persistent.round_open = False
            self._persistent.void = reason
            self._controller.save_state()
            self._controller.report("round_voided", ended.round_id, reason)
