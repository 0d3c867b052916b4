"""Rounds on the machine: commands from the table become stacks, draws and ejections of the shoe half.

What the shoe half comes to is told to this object (``entered``), which reports it in terms of rounds. A round
is on record in critical memory before its first card moves, and closed there before its end is reported.
"""

from sabot_firmware import shoe
from sabot_firmware.decks import AUTOMATED_SHOE, CARD_BY_CARD
from sabot_firmware.kept import WORKING
from sabot_firmware.rounds import CARD_EXTRA, CORRECT, UNPROVED, Round
from sabot_protocol.codec import enum_number
from sabot_protocol.errors import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_firmware.core import Core
    from sabot_protocol.codec import Values

# What is being ejected
STUB = 1
DELIVERY = 2
SHOE_END = 3
OUT = 4  # cards that nobody vouches for
PURGE = 5  # a card that lies where no sensor sees it

VOID_REASONS = {
    "face_up_card": "face_up_card",
    "stack_disturbed": "stack_disturbed",
    "supply_low": "power_cut",
    "stopped": "stopped",
}


def forbidden(reason: str) -> Refusal:
    """A refusal by rule."""
    return Refusal("not_allowed", (enum_number("Forbidden", reason),))


class Dealing:
    """The round in play, and what comes out of the shoe besides rounds."""

    def __init__(self, core: "Core") -> None:
        self._core = core
        self._kept = core.kept
        self.round: Round | None = None
        self._ended: Round | None = None  # the newest round that was not void
        self._faces = b""  # of its cards
        self._ejecting = 0  # what comes out
        self._delivering = 0  # the deck that is to be ejected as soon as it is in the shoe
        self._purger = (b"", 0)  # who asked for it
        self._burning = False
        self._burnt = 0
        self._rounds_of_shoe = 0
        self._last_announced = False
        self._covers_said = False
        self._exposed_said = 0

    # -- commands -------------------------------------------------------------------------------

    def open_round(self, round_id: int, deck_id: int) -> "Values":
        """Open a round on the deck in the shoe; from now on its turn is used."""
        core, kept = self._core, self._kept
        self._may_open(round_id, deck_id)
        if kept.game.method == CARD_BY_CARD and core.shoe.cover_seen and self._last_announced:
            raise forbidden("last_hand_dealt")
        self._open(Round(round_id, deck_id, 0, kept.game.stack_cards))
        if core.shoe.cover_seen and kept.game.method == CARD_BY_CARD:
            self._last_announced = True
            core.report("last_hand", round_id)
        return ()

    def simulate_round(self, round_id: int, deck_id: int) -> "Values":
        """Open a round without wagers (MDM 13): there are no bets to close."""
        if self._kept.game.method != CARD_BY_CARD:
            raise forbidden("other_method")
        self._may_open(round_id, deck_id)
        opened = Round(round_id, deck_id, 2)
        opened.simulated = opened.bets_closed = True
        self._open(opened)
        return ()

    def _may_open(self, round_id: int, deck_id: int) -> None:
        core, kept = self._core, self._kept
        if round_id <= kept.round_id:
            raise Refusal("stale", (kept.round_id, 0))
        if kept.game.method not in (AUTOMATED_SHOE, CARD_BY_CARD):
            raise forbidden("other_method")
        decks, now_s = kept.decks, core.utc_s()
        if kept.game.method == CARD_BY_CARD:  # the turn was used when the shoe was loaded
            why = decks.refuse_using(deck_id, now_s)
        else:
            why = decks.refuse_turn(deck_id, now_s)
        if why is not None:
            raise forbidden(why)
        if deck_id != core.shoe.deck:
            raise forbidden("another_deck")
        core.refuse_if_unfit()

    def _open(self, opened: Round) -> None:
        kept = self._kept
        before = kept.pack()
        kept.round_id, kept.round_deck = opened.round_id, opened.deck_id
        kept.verdict = kept.void = kept.count = 0
        kept.round_open = True
        kept.decks.started(opened.deck_id)
        kept.save_or_undo(before)
        opened.first_card = self._core.shoe.dealt
        self.round = opened
        self._rounds_of_shoe += 1
        self._core.wear.add("rounds")
        self._core.shoe.enter(shoe.ROUND_OPEN)

    def close_bets(self, round_id: int, hands: int) -> "Values":
        """No more bets, and so many hands: only now may anything be dealt (MD3 10.A).

        Given again, it corrects a miscounted number, until the dealer's stack, the last one, is dispensed.
        """
        core, current = self._core, self._current(round_id, 0)
        if current.bets_closed and hands == current.hands:
            return ()
        dealt = len(current.stacks)
        if current.bets_closed and (current.hands <= dealt or hands <= dealt):
            raise forbidden("hands_fixed")
        if self._kept.game.method != CARD_BY_CARD and hands * current.stack_cards > core.shoe.cards:
            raise forbidden("too_many")
        before, current.hands = current.hands, hands
        if current.bets_closed:
            core.report("hands_changed", round_id, before, hands, *core.who())
        else:
            current.bets_closed = True
            core.report("bets_closed", round_id, hands)
        return ()

    def dispense_stack(self, round_id: int, stack: int) -> "Values":
        """Deal the next stack."""
        current = self._current(round_id, stack)
        if self._kept.game.method != AUTOMATED_SHOE:
            raise forbidden("other_method")
        if not current.bets_closed:
            raise forbidden("bets_open")
        if current.next_stack() != stack:
            raise Refusal("stale", (round_id, len(current.stacks)))
        self._core.shoe.deal(current.stack_cards, shoe.ROUND_OPEN, self._core.now_us)
        return ()

    def draw_cards(self, round_id: int, draw: int, cards: int) -> "Values":
        """Deal the next cards of a round that is dealt card by card."""
        current = self._current(round_id, draw)
        if self._kept.game.method != CARD_BY_CARD:
            raise forbidden("other_method")
        if draw != len(current.stacks) + 1:
            raise Refusal("stale", (round_id, len(current.stacks)))
        if not current.bets_closed:
            raise forbidden("bets_open")
        self._core.shoe.deal(cards, shoe.ROUND_OPEN, self._core.now_us)
        return ()

    def burn_cards(self, cards: int) -> "Values":
        """Deal cards to be burnt: the first one, then as many as it says (MDM 5)."""
        if self._kept.game.method != CARD_BY_CARD:
            raise forbidden("other_method")
        if self._rounds_of_shoe or self._burnt >= 2:
            raise forbidden("already_burnt")
        self._burnt += 1
        self._burning = True
        self._core.shoe.deal(cards, shoe.READY, self._core.now_us)
        return ()

    def end_round(self, round_id: int) -> "Values":
        """The hands have their cards: the stub comes out and everything is counted (MD3 10.B, 10.C)."""
        current = self._current(round_id, 0)
        if self._kept.game.method == CARD_BY_CARD:
            self._close(current, UNPROVED, 0)
            if self._core.shoe.state != shoe.JAMMED:  # its end could not be recorded
                self._core.shoe.enter(shoe.READY)
            return ()
        if not current.bets_closed or current.next_stack() is not None:
            raise forbidden("stacks_missing")
        self._eject(STUB)
        return ()

    def void_round(self, round_id: int, reason: int) -> "Values":
        """The round is declared void."""
        self._current(round_id, 0)
        half = self._core.shoe
        by_card = self._kept.game.method == CARD_BY_CARD
        if by_card and half.state != shoe.ROUND_OPEN:
            raise Refusal("wrong_state", (half.state, 1 << shoe.ROUND_OPEN, enum_number("Half", "shoe")))
        self.void(reason)
        if half.state == shoe.JAMMED:
            return ()  # it could not be recorded, and the shoe has stopped
        if by_card:
            half.enter(shoe.READY)
        else:
            half.void()
        return ()

    def deliver_deck(self, deck_id: int) -> "Values":
        """Bring a whole shuffled deck out, for a manual shoe, the hand, or a cut (MD3 8, 9; MDM 5)."""
        core, kept = self._core, self._kept
        if kept.game.method == AUTOMATED_SHOE:
            raise forbidden("other_method")
        why = kept.decks.refuse_turn(deck_id, core.utc_s())
        if why is not None:
            raise forbidden(why)
        if core.shuffler.stored_deck != deck_id or not core.may_push():
            raise forbidden("another_deck")
        core.refuse_if_unfit()
        before = kept.pack()
        kept.decks.started(deck_id)
        kept.delivered = 0
        kept.shoe_inside = WORKING
        kept.save_or_undo(before)
        self._delivering = deck_id
        core.push_stored()
        return ()

    def load_shoe(self, deck_id: int) -> "Values":
        """A batch was cut and laid in by hand; its count is a claim until it has been dealt out."""
        core, kept = self._core, self._kept
        if kept.game.method != CARD_BY_CARD:
            raise forbidden("other_method")
        if deck_id != kept.delivered:
            raise forbidden("not_delivered")
        why = kept.decks.refuse_using(deck_id, core.utc_s())
        if why is not None:
            raise forbidden(why)
        deck = kept.decks.find(deck_id)
        assert deck is not None
        if not core.shoe.door_was_open or not core.shoe_loaded_by_hand():
            raise forbidden("not_cleared")
        before = kept.pack()
        kept.delivered = 0
        kept.shoe_inside = WORKING
        kept.save_or_undo(before)
        core.shoe.loaded_by_hand(deck_id, deck.back, kept.game.cards())
        self._burnt = self._rounds_of_shoe = self._exposed_said = 0
        self._last_announced = self._covers_said = False
        return ()

    def end_shoe(self, deck_id: int) -> "Values":
        """What is left of a batch comes out, and all of it is counted."""
        if self._kept.game.method != CARD_BY_CARD:
            raise forbidden("other_method")
        if deck_id != self._core.shoe.deck:
            raise forbidden("another_deck")
        self._eject(SHOE_END)
        return ()

    def purge(self) -> "Values":
        """The roller turns by one pitch and 40 mm; the door was opened before, so nothing holds the card."""
        half = self._core.shoe
        if not half.door_was_open or half.occupied() is not None:
            raise forbidden("not_cleared")
        self._ejecting = PURGE
        self._purger = self._core.who()
        half.purge(self._core.now_us)
        return ()

    def path_inspected(self) -> "Values":
        """A person has looked and saw no card: that is a claim, and so is the next deck's count."""
        core, half = self._core, self._core.shoe
        if half.occupied() is not None:
            raise forbidden("not_cleared")
        core.report("path_inspected_by", half.short_deck, half.missing, *core.who())
        half.inspected = True
        half.block(0, 0)
        return ()

    def counted(self, deck_id: int) -> None:
        """A deck was fed and is whole: no card of it can lie in the shoe's path."""
        half = self._core.shoe
        if half.missing and half.short_deck == deck_id:
            half.block(0, 0)

    def reveal_round(self, round_id: int) -> "Values":
        """The hands lie open: from now on the faces may be asked for.

        Dealt card by card, that is so while the round is played: third cards follow from the first four.
        """
        current = self.round
        if self._kept.game.method == CARD_BY_CARD and current is not None and current.round_id == round_id:
            if not current.bets_closed:
                raise forbidden("bets_open")
            current.revealed = True
            return ()
        if self._ended is None or self._ended.round_id != round_id:
            raise Refusal("stale", (self._kept.round_id, 0))
        self._ended.revealed = True
        return ()

    def faces(self, round_id: int, stack: int) -> "Values":
        """The faces of one stack, after the reveal."""
        shown, start = self._ended, 0
        seen: bytes | bytearray = self._faces
        current = self.round
        if current is not None and current.round_id == round_id and current.revealed:
            shown, start = current, current.first_card
            seen = self._core.shoe.faces
        if shown is None or shown.round_id != round_id or stack > len(shown.stacks):
            raise Refusal("stale", (self._kept.round_id, 0))
        if not shown.revealed:
            raise forbidden("not_revealed")
        self._core.report("faces_revealed", round_id, stack, *self._core.who())
        start += sum(shown.stacks[: stack - 1])
        return round_id, stack, list(seen[start : start + shown.stacks[stack - 1]])

    def _current(self, round_id: int, stack: int) -> Round:
        if self.round is None or self.round.round_id != round_id:
            raise Refusal("stale", (self.round.round_id if self.round is not None else 0, stack))
        return self.round

    # -- what becomes of the shoe half ----------------------------------------------------------

    def entered(self, state: int, before: int) -> None:
        """The shoe half is in another state: report what that means for the round."""
        core = self._core
        half = core.shoe
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
                self.void(enum_number("VoidReason", VOID_REASONS.get(half.jam.cause, "shoe_failed")))
        elif state == shoe.READY and self._delivering:
            self._eject(DELIVERY)
        self._say_odd_cards()

    def _eject(self, what: int) -> None:
        self._ejecting = what
        self._core.shoe.eject(self._core.now_us)

    def eject_unproved(self) -> None:
        """Cards that nobody vouches for come out."""
        self._eject(OUT)

    def _dealt(self, cards: int) -> None:
        core, current = self._core, self.round
        if current is None:
            core.report("cards_drawn", 0, self._burnt, cards)
            return
        current.stacks.append(cards)
        by_card = self._kept.game.method == CARD_BY_CARD
        name = "cards_drawn" if by_card else "stack_dispensed"
        core.report(name, current.round_id, len(current.stacks), cards)

    def _taken(self) -> None:
        core, current = self._core, self.round
        if self._burning:
            self._burning = False
            core.report("cards_taken", 0, self._burnt)
        elif current is not None:
            by_card = self._kept.game.method == CARD_BY_CARD
            core.report("cards_taken" if by_card else "stack_taken", current.round_id, len(current.stacks))

    def _came_out(self, cards: int) -> None:
        core, kept = self._core, self._kept
        half, what = core.shoe, self._ejecting
        self._ejecting = 0
        if half.ran_out and what == 0:  # MDM 13.E: too few cards for the draw
            self.void(enum_number("VoidReason", "too_few_cards"))
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
            kept.delivered = half.deck if half.dealt == half.cards else 0
            self._keep()
            core.report("deck_delivered", half.deck, half.dealt, half.cards)
        elif what == SHOE_END:
            core.report("shoe_ended", half.deck, half.dealt, half.cards)
        elif what == OUT:
            core.service.came_out(cards)
        elif what == PURGE:
            core.report("purged", cards, *self._purger)
        core.wear.add("cards_dealt", half.dealt)

    def _say_odd_cards(self) -> None:
        core = self._core
        half, round_id = core.shoe, self.round.round_id if self.round is not None else 0
        if half.cover_seen and not self._covers_said and half.deck:
            self._covers_said = True
            core.report("cover_card_seen", round_id)
        while self._exposed_said < half.exposed:
            self._exposed_said += 1
            core.report("card_exposed", round_id)

    def _close(self, ended: Round, verdict: int, stub: int) -> None:
        """On record first, then reported."""
        core, kept = self._core, self._kept
        count = sum(ended.stacks) + stub
        wrong = verdict not in (CORRECT, UNPROVED)
        kept.round_open = False
        kept.verdict, kept.count = verdict, count
        kept.void = enum_number("VoidReason", "wrong_number") if wrong else 0
        if not core.keep():  # it would be void after a cut: it is so at once, by the shoe that has stopped
            kept.round_open = True
            kept.verdict = kept.count = kept.void = 0
            return
        self.round = None
        if not wrong:
            first = ended.first_card
            self._faces = bytes(core.shoe.faces[first : first + sum(ended.stacks)])
            self._ended = ended
        core.report("round_ended", ended.round_id, verdict, min(stub, 52), min(count, 255))
        if wrong:
            core.report("round_voided", ended.round_id, kept.void)

    def void(self, reason: int) -> None:
        """The round, if one is open, is void."""
        if self.round is not None:
            ended, self.round = self.round, None
            self._kept.round_open = False
            self._kept.void = reason
            self._keep()
            self._core.report("round_voided", ended.round_id, reason)

    def _keep(self) -> None:
        self._core.keep()

