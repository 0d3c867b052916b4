"""Packs: receiving, opening, shuffling, cutting, loading, burning, changing (MD3 3-5, MDM 3-5)."""

from sabot_table.cards import Card
from sabot_table.procedure.context import TableContext
from sabot_table.procedure.memory import PackState
from sabot_table.procedure.vocabulary import Attribution, DeviceUnit, RemovalReason, TableRole
from sabot_table.rule_texts import CutRule
from sabot_table.text_vocabulary import PACK_STATES
from sabot_table.versions import check_components

HOUR_S = 3600
IN_SHOE = ("loaded", "playing")


class PackProcedure:
    """Receives, opens, shuffles, cuts, loads, burns and removes packs."""

    def __init__(self, table: TableContext) -> None:
        self.table = table

    # -- coming and going -----------------------------------------------------------------------

    def receive_pack(self, by: Attribution, pack_id: int, back: str) -> None:
        """A pack comes to the table; its hours run from now."""
        self.table.check("receive_pack", by)
        if pack_id <= self.table.memory.highest_pack:
            raise self.table.refuse(
                f"pack {pack_id} was here before", "remove", "give every new pack a higher number"
            )
        there = self.table.packs()
        if len(there) >= (2 if self.table.rules.cards.alternating else 1):
            what = "a third pack" if self.table.rules.cards.alternating else "a second pack"
            raise self.table.refuse(what, "two_packs", "remove one first")
        if there and DeviceUnit.SHUFFLER in self.table.memory.units:
            do = "play with one, or repair the shuffler"
            raise self.table.refuse("a second pack without a shuffler", "two_packs", do)
        if not back.strip():
            raise self.table.refuse("a pack without the colour of its backs", "two_packs", "say the colour")
        if any(same_colour(each.back, back) for each in there):
            raise self.table.refuse(
                f"two packs with {back} backs", "two_packs", "use backs of another colour"
            )
        self.table.memory.packs.append(PackState(pack_id, back, by.at_s))
        self.table.memory.highest_pack = pack_id
        self.table.memory.one_pack = False
        self.table.note(f"receive {pack_id}", by)

    def remove_pack(self, by: Attribution, pack_id: int, reason: RemovalReason, why: str = "") -> None:
        """A pack leaves the table for good; ``why`` is for people."""
        pack = self.table.pack(pack_id)
        self.table.check_pack("remove", pack, by)
        if self._in_play(pack):
            raise self.table.refuse(
                f"pack {pack_id} removed in a round", "remove", "finish or void the round first"
            )
        if reason not in self.table.rules.fixed.removal:
            known = ", ".join(self.table.rules.fixed.removal)
            raise self.table.refuse(f"pack {pack_id} removed for {reason}", "remove", f"give one of {known}")
        self.mark_for_removal(pack, reason, why or reason.replace("_", " "))
        self.remove_marked(pack, by)

    def play_one_pack(self, by: Attribution) -> None:
        """The floor chooses to go on with one pack (MD3 3.A)."""
        self.table.check("play_one_pack", by)
        if len(self.table.packs()) != 1:
            raise self.table.refuse(
                "one-pack play with two packs there", "two_packs", "remove the other first"
            )
        if self._two_packs_shall and self.table.uses_shuffler():
            do = "bring the second batch; one batch alone is for a failed shuffler"
            raise self.table.refuse("one-pack play beside a shuffler", "two_packs", do)
        self.table.memory.one_pack = True
        self.table.move("play_one_pack", by)

    def mark_for_removal(self, pack: PackState, reason: RemovalReason, why: str) -> None:
        """The pack must leave; the first reason counts."""
        if not pack.must_leave:
            pack.removal_reason, pack.must_leave = reason, why

    def remove_marked(self, pack: PackState, by: Attribution) -> None:
        """Remove a pack that was marked for removal, and ask for it to be taken off the device too."""
        if pack.state in IN_SHOE:
            self.forget_shoe()
        self.table.move_pack("remove", pack, by)
        reason = RemovalReason(pack.removal_reason or RemovalReason.DAMAGED)
        clause = self.table.rules.fixed.removal_clause(reason)
        self.table.order("remove-pack", pack=pack.pack_id, why=pack.must_leave, reason=reason, clause=clause)

    # -- opening --------------------------------------------------------------------------------

    def inspect(self, by: Attribution, pack_id: int) -> None:
        """The dealer looks for defects."""
        self._open(by, pack_id, "inspect")

    def verify(self, by: Attribution, pack_id: int) -> None:
        """The floor confirms the inspection."""
        self._open(by, pack_id, "verify")

    def spread(self, by: Attribution, pack_id: int) -> None:
        """Spread face up for the first player."""
        self._open(by, pack_id, "spread")

    def wash(self, by: Attribution, pack_id: int) -> None:
        """Turned face down and mixed."""
        self._open(by, pack_id, "wash")

    def stack(self, by: Attribution, pack_id: int) -> None:
        """One stack. Batches for a shuffler need no wash (MDM 4.D, 5.H); all other cards do."""
        pack = self.table.pack(pack_id)
        unwashed = pack.state == "spread" and self.table.has("stack_unwashed") and self.table.uses_shuffler()
        self._open(by, pack_id, "stack_unwashed" if unwashed else "stack")

    def accept_prepared(self, by: Attribution, pack_id: int) -> None:
        """Pre-inspected and pre-shuffled cards skip the opening; they are cut like cards shuffled by hand."""
        pack = self.table.pack(pack_id)
        self._open(by, pack_id, "accept_prepared")
        pack.shuffled_by = "prepared"

    def _open(self, by: Attribution, pack_id: int, action: str) -> None:
        pack = self.table.pack(pack_id)
        self.table.check_pack(action, pack, by)
        self.table.move_pack(action, pack, by)

    # -- shuffling ------------------------------------------------------------------------------

    def start_shuffle(self, by: Attribution, pack_id: int, machine: bool) -> None:
        """A shuffle begins, by the device or by hand."""
        pack = self.table.pack(pack_id)
        self.table.check_pack("start_shuffle", pack, by)
        self.check_hours(pack, by)
        if self._in_play(pack):
            raise self.table.refuse(
                f"pack {pack_id} shuffled in a round", "start_shuffle", "finish the round first"
            )
        if pack.state not in ("stacked", "discards") and by.role is not TableRole.FLOOR:
            what = f"another shuffle of pack {pack_id}, which is {PACK_STATES[pack.state]}"
            raise self.table.refuse(what, "start_shuffle", "only the floor orders it again")
        if machine and DeviceUnit.SHUFFLER in self.table.memory.units:
            raise self.table.refuse(
                "the shuffler is out of order", "mark_out_of_order", "shuffle by hand, or repair it"
            )
        if machine and self._two_packs_shall and not self.table.rules.cards.alternating:
            do = "shuffle by hand, or play by a rule set with alternating = true"
            raise self.table.refuse("a shuffler at a table with one batch", "two_packs", do)
        if machine:
            check_components(self.table.rules, self.table.memory.model, self.table.memory.versions)
        else:
            self.table.check_marked()
            if len(self.table.packs()) > 1:
                raise self.table.refuse(
                    "two packs without a shuffler", "two_packs", "remove one and play with the other"
                )
        if pack.state in IN_SHOE:
            self.forget_shoe()
        self.table.move_pack("start_shuffle", pack, by)
        if self.table.memory.delivered == pack_id:
            self.table.memory.delivered = 0
        pack.shuffled_by = "machine" if machine else "hand"
        pack.counted, pack.shuffle_verified, pack.cut_by, pack.declined = False, False, None, []

    def finish_shuffle(self, by: Attribution, pack_id: int, count: int | None = None) -> None:
        """A shuffle is done; a device tells its count, and a pack with a wrong one leaves (MD3 5.B)."""
        pack = self.table.pack(pack_id)
        self.table.check_pack("finish_shuffle", pack, by)
        if pack.shuffled_by == "machine" and count is None and by.role is not TableRole.DEVICE:
            what = "a machine's shuffle ended by hand"
            raise self.table.refuse(what, "shuffle_count", "wait for the device")
        self.table.move_pack("finish_shuffle", pack, by)
        pack.seen = count
        if count is not None and count != self.table.pack_cards:
            why = f"{count} cards instead of {self.table.pack_cards}"
            self.mark_for_removal(pack, RemovalReason.WRONG_COUNT, why)
            self.remove_marked(pack, by)
            return
        pack.counted = count is not None
        if pack.counted:
            pack.uncounted_rounds = 0

    def verify_shuffle(self, by: Attribution, pack_id: int) -> None:
        """The floor saw that a shuffle by hand left no uneven distribution (MDM 5.A(2))."""
        pack = self.table.pack(pack_id)
        self.table.check_pack("verify_shuffle", pack, by)
        if pack.shuffled_by != "hand":
            what = f"pack {pack_id} was not shuffled by hand"
            raise self.table.refuse(what, "verify_shuffle", "go on with the cut")
        pack.shuffle_verified = True
        self.table.move_pack("verify_shuffle", pack, by)

    # -- cutting --------------------------------------------------------------------------------

    def needs_cut(self, pack: PackState) -> bool:
        """Whether this pack is cut: every shoe of mini baccarat; by MD3 what no machine shuffled."""
        rule = self.table.rules.fixed.cut.when
        return rule is CutRule.ALWAYS or (rule is CutRule.UNLESS_MACHINE and pack.shuffled_by != "machine")

    def cutters(self, pack: PackState) -> list[int]:
        """The seats still to be offered the cut: from the highest clockwise, without those that declined."""
        clockwise = list(self.table.rules.clockwise())
        start = clockwise.index(max(clockwise))
        around = clockwise[start:] + clockwise[:start]
        return [seat for seat in around if seat in self.table.memory.seated and seat not in pack.declined]

    def decline_cut(self, by: Attribution, pack_id: int, seat: int) -> None:
        """A player does not want to cut."""
        pack = self.table.pack(pack_id)
        self.table.check_pack("decline_cut", pack, by)
        self._check_cutter(pack, seat)
        pack.declined.append(seat)
        self.table.move_pack("decline_cut", pack, by)

    def cut(self, by: Attribution, pack_id: int, from_top: int, seat: int | None = None) -> None:
        """The cover card goes in so many cards from the top; a seat cuts, or the dealer (None)."""
        pack = self.table.pack(pack_id)
        self.table.check_pack("cut", pack, by)
        if not self.needs_cut(pack):
            raise self.table.refuse(
                f"pack {pack_id} needs no cut", "cut_needed", "deal it as the machine left it"
            )
        by_hand = pack.shuffled_by == "hand" and self.table.has("verify_shuffle")
        if by_hand and not pack.shuffle_verified:
            what = f"a cut of pack {pack_id} before the floor verified its shuffle"
            raise self.table.refuse(what, "verify_shuffle", "have the floor look at the stack")
        terms = self.table.rules.fixed.cut
        if not terms.from_top <= from_top <= self.table.pack_cards - terms.from_bottom:
            ends = "the top or the bottom" if terms.from_bottom > 1 else "the top"
            do = f"cut at least {terms.from_top} from {ends}"
            raise self.table.refuse(f"a cut {from_top} from the top", "cut", do)
        if terms.by_players:
            self._check_cutter(pack, seat)
        elif seat is not None:
            raise self.table.refuse(f"a cut by seat {seat}", "cut", "the dealer cuts")
        self.table.move_pack("cut", pack, by)
        pack.cut_by = seat

    def _check_cutter(self, pack: PackState, seat: int | None) -> None:
        waiting: list[int | None] = [*self.cutters(pack), None]
        if seat != waiting[0]:
            first = "the dealer" if waiting[0] is None else f"seat {waiting[0]}"
            who = "the dealer" if seat is None else f"seat {seat}"
            raise self.table.refuse(f"the cut by {who}", "cut", f"it is offered to {first} now")

    def order_recut(self, by: Attribution, pack_id: int) -> None:
        """The floor wants another cut: before the first card (MD3 5.E), before loading (MDM 5.D)."""
        pack = self.table.pack(pack_id)
        self.table.check_pack("order_recut", pack, by)
        if not self.needs_cut(pack):
            raise self.table.refuse(f"pack {pack_id} was not cut", "cut_needed", "order a shuffle instead")
        self.table.move_pack("order_recut", pack, by)
        if pack.cut_by is not None:
            pack.declined.append(pack.cut_by)  # the next person entitled cuts (MDM 5.E)
        pack.cut_by = None

    def place_cover(self, by: Attribution, pack_id: int, above_bottom: int) -> None:
        """The second cover card of a shoe (MDM 5.C)."""
        pack = self.table.pack(pack_id)
        self.table.check_pack("place_cover", pack, by)
        terms = self.table.rules.fixed.cover
        assert terms is not None  # a text with this act has it
        if not terms.above_bottom <= above_bottom < self.table.pack_cards:
            what = f"a cover card {above_bottom} above the bottom"
            raise self.table.refuse(what, "place_cover", f"put it at least {terms.above_bottom} above")
        self.table.move_pack("place_cover", pack, by)

    # -- loading and burning --------------------------------------------------------------------

    def begin_delivery(self, pack_id: int) -> None:
        """The device begins to bring a pack out: its turn is used, whatever becomes of it."""
        self.table.memory.last_pack = self.table.memory.delivered = pack_id

    def deliver(self, by: Attribution, pack_id: int) -> None:
        """The device brought a shuffled pack out for its turn, which is used from now on."""
        pack = self.table.pack(pack_id)
        self.table.check_pack("deliver", pack, by)
        self.check_turn(pack)
        self.table.move_pack("deliver", pack, by)
        self.table.memory.last_pack = self.table.memory.delivered = pack_id

    def load(self, by: Attribution, pack_id: int) -> None:
        """Into the shoe, or into the dealer's hand."""
        pack = self.table.pack(pack_id)
        self.table.check_pack("load", pack, by)
        if self.needs_cut(pack):
            if pack.state == "shuffled":
                raise self.table.refuse(f"pack {pack_id} is not cut", "cut_needed", "have it cut first")
            if self.table.has("place_cover") and pack.state != "covered":
                raise self.table.refuse(
                    "a shoe without its second cover card", "place_cover", "put it in first"
                )
        other = next((each for each in self.table.packs() if each.state in IN_SHOE), None)
        if other is not None:
            raise self.table.refuse(
                f"pack {other.pack_id} is in the shoe", "two_packs", "one pack is dealt at a time"
            )
        self.check_turn(pack)
        self.table.move_pack("load", pack, by)
        if self.table.burns:
            self.table.memory.delivered = 0  # else its turn is used by the round that it plays

    def burn(self, by: Attribution, pack_id: int, first: Card, burned: int) -> None:
        """A new shoe's first card is shown and so many go with it, face down (MDM 5.F-G)."""
        pack = self.table.pack(pack_id)
        self.table.check_pack("burn", pack, by)
        if burned != first.burns:
            raise self.table.refuse(f"{burned} cards burned by {first}", "burn", f"it burns {first.burns}")
        if self.table.memory.marked:
            seats = ", ".join(map(str, sorted(self.table.memory.marked)))
            what = f"a new shoe while seats {seats} owe vigorish"
            raise self.table.refuse(what, "collect_vigorish", "collect it first")
        self.table.move_pack("burn", pack, by)
        self.forget_shoe()

    def forget_shoe(self) -> None:
        """What was drawn or seen too early, and the cover card, end with the shoe they came from."""
        self.table.memory.cover, self.table.memory.carried, self.table.memory.exposed = "", 0, []

    def check_shoe(self, what: str) -> None:
        """Refuse a card that can have come out of no shoe."""
        if not any(each.state in IN_SHOE for each in self.table.packs()):
            what = f"{what} while no pack is in the shoe"
            raise self.table.refuse(what, "drawn_in_error", "look at the cards again")

    # -- what other parts ask -------------------------------------------------------------------

    @property
    def _two_packs_shall(self) -> bool:
        return self.table.rules.fixed.cards.two_packs == "shall"

    def check_packs(self) -> None:
        """Refuse two packs without a shuffler (MD3 3.B), and one pack where two shall be (MDM 3.B)."""
        there = len(self.table.packs())
        if there > 1 and DeviceUnit.SHUFFLER in self.table.memory.units:
            do = "remove one and play with the other"
            raise self.table.refuse("two packs without a shuffler", "two_packs", do)
        if there < 2 and self._two_packs_shall and self.table.uses_shuffler():
            do = "bring the second; one alone is for a failed shuffler"
            raise self.table.refuse("one batch beside a shuffler", "two_packs", do)

    def check_hours(self, pack: PackState, by: Attribution) -> None:
        """Refuse a pack past its hours by the method in use now; time that anyone told does not go back."""
        left_s = self.hours_left_s(pack, by.at_s)
        if left_s is not None and left_s <= 0:
            hours = self.table.hours()
            used_s = max(by.at_s, self.table.memory.newest_s) - pack.opened_s
            what = f"pack {pack.pack_id} was opened {used_s // HOUR_S} hours ago"
            raise self.table.refuse(what, "hours", f"change it: {hours} hours is the most")

    def hours_left_s(self, pack: PackState, at_s: int) -> int | None:
        """How long a pack may still be used by the method in use now; None where the text sets no limit."""
        hours = self.table.hours()
        if hours is None:
            return None
        return hours * HOUR_S - (max(at_s, self.table.memory.newest_s) - pack.opened_s)

    def check_turn(self, pack: PackState) -> None:
        """Refuse the pack that was played last while two alternate (MD3 3.B(4), MDM 3.B(4))."""
        if (
            not self.table.rules.cards.alternating
            or self.table.memory.one_pack
            or not self.table.uses_shuffler()
        ):
            return
        if pack.pack_id == self.table.memory.last_pack != self.table.memory.delivered:
            other = next((each for each in self.table.packs() if each is not pack), None)
            do = f"it is pack {other.pack_id}'s turn" if other else "bring another, or choose one-pack play"
            raise self.table.refuse(f"pack {pack.pack_id} out of turn", "two_packs", do)

    def _in_play(self, pack: PackState) -> bool:
        return self.table.memory.round is not None and self.table.memory.round.pack_id == pack.pack_id

    def next_pack(self) -> PackState:
        """The pack that the next round is dealt from."""
        ready = "playing" if self.table.burns else "loaded"
        for pack in self.table.packs():
            if pack.state == ready:
                if not self.table.burns:
                    self.check_turn(pack)
                return pack
        waiting = next((each for each in self.table.packs() if each.state == "loaded"), None)
        if waiting is not None:
            what = f"pack {waiting.pack_id} has not burned"
            raise self.table.refuse(what, "burn", "burn its first cards")
        raise self.table.refuse("no pack is in the shoe", "load", "shuffle and load the next one")

    def check_discards(self, pack: PackState) -> None:
        """Refuse cards of a second pack in the discard rack (MD3 3.B(5), MDM 3.B(5))."""
        others = (each for each in self.table.packs() if each is not pack and each.state == "discards")
        other = next(others, None)
        if other is not None:
            what = f"pack {pack.pack_id} into the rack that holds pack {other.pack_id}"
            raise self.table.refuse(what, "two_packs", f"take pack {other.pack_id} to the shuffler first")

    def end_shoe(self, by: Attribution) -> None:
        """The cards of a finished shoe go to the discards."""
        pack = self.next_pack()
        self.table.check_pack("discard", pack, by)
        if self.table.state not in ("between", "idle"):
            raise self.table.refuse("the end of a shoe in a round", "shoe_end", "finish the round first")
        self.check_discards(pack)
        self.table.move_pack("discard", pack, by)
        self.forget_shoe()


def same_colour(one: str, other: str) -> bool:
    """Whether two names of a back mean one colour: capitals and blanks make no difference."""
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()
