"""Commands about decks and the game: register, remove, set the game; and the decks' hours."""

from sabot_firmware.decks import AUTOMATED_SHOE, HAND, WARN_BEFORE_S, is_far_ahead
from sabot_firmware.machine_constants import DECK_CARDS
from sabot_firmware.refusals import forbidden, refuse
from sabot_protocol import ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.errors import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_firmware.controller import Controller
    from sabot_protocol.codec import Values

WRONG_COUNT = enum_number("RemoveReason", "wrong_count")
LOOK_EVERY_S = 30  # the decks' hours are looked at at least this often
LEAST_LEFT_S = -0x80000000  # what the answer's field can say
CLOCKS_DIFFER_S = 900  # how far in the future a deck may be said to be opened


class DeckCommands:
    """Executes the commands about decks, and reports decks that near the end of their hours."""

    def __init__(self, controller: "Controller") -> None:
        self._controller = controller
        self._persistent = controller.persistent
        self._left_s: dict[int, int] = {}  # of each deck, when it was last looked at
        self._look_at_us: int | None = None
        self._aged_at_us = 0  # up to when the decks have aged

    # -- decks ----------------------------------------------------------------------------------

    def register_deck(self, deck_id: int, back: int, opened_s: int) -> "Values":
        """Register a new deck."""
        decks, now_s = self._persistent.decks, self._controller.utc_s()
        refuse(decks.refuse_registering(deck_id, back))
        if is_far_ahead(deck_id, decks.highest_id):
            raise Refusal("bad_field", (0,))
        if now_s is None:
            raise forbidden("time_unknown")
        if opened_s > now_s + CLOCKS_DIFFER_S:
            raise forbidden("not_opened_yet")
        before = self._persistent.pack()
        decks.register(deck_id, back, opened_s)
        self._persistent.save_or_undo(before)
        self._controller.report("deck_registered", deck_id, back, opened_s, *self._controller.who())
        return ()

    def remove_deck(self, deck_id: int, reason: int) -> "Values":
        """Remove a deck for good."""
        current = self._controller.dealing.round
        if self._persistent.decks.find(deck_id) is None:
            raise forbidden("no_such_deck")
        if current is not None and current.deck_id == deck_id:
            raise forbidden("in_use")
        before = self._persistent.pack()
        self._persistent.decks.remove(deck_id)
        self._persistent.save_or_undo(before)
        self._controller.report("deck_removed", deck_id, reason)
        self._controller.shuffle_commands.deck_removed(deck_id)
        return ()

    def wrong_count(self, deck_id: int) -> None:
        """Remove a deck whose count was wrong (MD3 5.B)."""
        if self._persistent.decks.find(deck_id) is not None:
            self._persistent.decks.remove(deck_id)
            self._controller.save_state()
            self._controller.report("deck_removed", deck_id, WRONG_COUNT)
            self._controller.shuffle_commands.deck_removed(deck_id)

    def play_one_deck(self, on: int) -> "Values":
        """The floor chooses to go on with one deck, or with two again (MD3 3.A)."""
        before = self._persistent.pack()
        self._persistent.decks.one_deck = bool(on)
        self._persistent.save_or_undo(before)
        self._report_game()
        return ()

    def decks(self) -> "Values":
        """The decks in use and how long each may still be."""
        decks, now_s = self._persistent.decks, self._controller.utc_s()
        left = [decks.left_s(each.deck_id, now_s) if now_s is not None else 0 for each in decks.in_use]
        left = [max(each, LEAST_LEFT_S) for each in left]
        ids = [each.deck_id for each in decks.in_use]
        return ids, [each.back for each in decks.in_use], left, decks.last_played

    # -- the game -------------------------------------------------------------------------------

    def set_game(self, name: str, method: int, decks: int, stack_cards: int, deck_hours: int) -> "Values":
        """Set the game that the machine serves from now on."""
        game, controller = self._persistent.game, self._controller
        if controller.shuffler.occupied() is not None or controller.shoe.occupied() is not None:
            raise forbidden("in_use")  # cards of the other game are inside
        if self._persistent.decks.in_use and decks != game.decks:
            raise forbidden("in_use")  # decks of another size are registered
        if decks > 1 and method in (AUTOMATED_SHOE, HAND):
            raise forbidden("other_method")  # stacks and the hand are dealt from one deck
        if DECK_CARDS * decks > self._controller.hardware.capacity:
            raise forbidden("too_many")
        if stack_cards * 2 > DECK_CARDS * decks:
            raise Refusal("bad_field", (3,))
        before = self._persistent.pack()
        game.name, game.method, game.decks, game.stack_cards = name, method, decks, stack_cards
        self._persistent.decks.hours = deck_hours  # MD3 3.C: another method's hours apply at once
        self._persistent.save_or_undo(before)
        self._controller.configure()
        self._report_game()
        return ()

    def _report_game(self) -> None:
        self._controller.report("game_changed", *self.game(), *self._controller.who())

    def game(self) -> "Values":
        """The game that the machine serves."""
        game = self._persistent.game
        decks = self._persistent.decks
        return game.name, game.method, game.decks, game.stack_cards, decks.hours, 1 if decks.one_deck else 0

    # -- hours ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Power-up: count uptime from now."""
        self._aged_at_us = self._controller.now_us

    def grow_older(self) -> None:
        """Age the decks by the uptime since the last call."""
        passed_us = self._controller.left_us(self._aged_at_us)
        seconds = -passed_us // 1000000
        if seconds > 0:
            self._persistent.decks.grow_older(seconds)
            self._aged_at_us = ticks.add(self._aged_at_us, seconds * 1000000)
        elif passed_us > 0:  # so long ago that ticks do not tell: there was no deck
            self._aged_at_us = self._controller.now_us

    def hours_due_us(self) -> int | None:
        """Report decks near the end of their hours; microseconds until the next check, or None."""
        controller, decks = self._controller, self._persistent.decks
        if not decks.in_use:
            return None
        if self._look_at_us is not None:
            left_us = controller.left_us(self._look_at_us)
            if 0 < left_us <= LOOK_EVERY_S * 1000000:
                return left_us
        self.grow_older()
        controller.save_state()  # a power cut makes no deck younger
        now_s = controller.utc_s()
        wait_s = LOOK_EVERY_S
        if now_s is not None:
            known, self._left_s = self._left_s, {}  # without the decks that left
            for deck in decks.in_use:
                left = decks.left_s(deck.deck_id, now_s)
                before = known.get(deck.deck_id, left)
                if decks.warning(before, left) is not None:
                    controller.report("deck_hours", deck.deck_id, max(left, 0))
                self._left_s[deck.deck_id] = left
                for each in WARN_BEFORE_S:
                    if each < left < each + wait_s:
                        wait_s = left - each
        self._look_at_us = controller.after_us(max(wait_s, 1) * 1000000)
        return controller.left_us(self._look_at_us)
