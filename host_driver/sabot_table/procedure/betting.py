"""Seats and wagers: who sits, what lies on the layout, and when it is closed (MD3 7, MDM 7, WA3 wagers)."""

from sabot_table.errors import WagerRefused
from sabot_table.procedure.equipment import EquipmentProcedure
from sabot_table.procedure.memory import PackState, RoundState
from sabot_table.procedure.vocabulary import Attribution
from sabot_table.rule_texts import DealingMethod
from sabot_table.wager_acceptance import check_seat, check_wager, check_wagers

MINI_HANDS = 2
MOST_CARRIED = 3  # of the four cards of a hand, when more were drawn before it


class BettingProcedure(EquipmentProcedure):
    """From an empty layout to "no more bets"."""

    def sit(self, by: Attribution, seat: int) -> None:
        """A player takes a seat."""
        self.check("sit", by)
        check_seat(self.rules, seat)
        if seat in self.memory.seated:
            raise self.refuse(f"seat {seat} is taken", "7.B", "2.A", "choose another")
        self.memory.seated = sorted([*self.memory.seated, seat])
        self.move("sit", by)

    def leave(self, by: Attribution, seat: int) -> None:
        """A player leaves: marked vigorish is due (MDM 12.D(2)(b)). Wagers in a round stay for the floor."""
        self.check("leave", by)
        if seat not in self.memory.seated:
            raise self.refuse(f"nobody sits at seat {seat}", "7.B", "2.A", "look at the seats again")
        self.memory.seated.remove(seat)
        owed = self.memory.marked.pop(seat, 0)
        if owed:
            self.order("collect-vigorish", seat=seat, cents=owed)
        if self.state == "betting":
            self._return(seat)
        self.move("leave", by)

    def collect_vigorish(self, by: Attribution, seat: int) -> int:
        """The dealer collects what a seat owes; returns the cents."""
        self.check("collect_vigorish", by)
        if seat not in self.memory.marked:
            raise self.refuse(f"seat {seat} owes no vigorish", "12.A", "12.D", "look at the markers again")
        self.move("collect_vigorish", by)
        return self.memory.marked.pop(seat)

    def open_bets(self, by: Attribution) -> None:
        """Wagers may be made; refused while anything stands against a round."""
        self.check("open_bets", by)
        pack = self.next_pack()
        self.check_device()
        self.check_hours(pack, by)
        if self.method is DealingMethod.HAND and pack.shuffled_by != "machine":
            raise self.refuse(
                "dealing cards from the hand that no machine shuffled", "9.A", "8", "use a shoe"
            )
        if self.memory.exposed:
            shown = ", ".join(self.memory.exposed)
            what = f"wagers after {shown} was seen"
            raise self.refuse(what, "13.A", "13.D", "play the simulated round first")
        if self.memory.cover == "announce":
            raise self.refuse("a hand before 'last hand' is announced", "5.D", "9.D", "announce it")
        if self.memory.cover == "over":
            raise self.refuse("another hand from this shoe", "5.D", "9.D", "end the shoe and load the next")
        self.begin(pack, simulated=False)
        self.move("open_bets", by)

    def next_pack(self) -> PackState:
        """The pack that the next round is dealt from."""
        ready = "playing" if self.burns else "loaded"
        for pack in self.packs():
            if pack.state == ready:
                if not self.burns:
                    self.check_turn(pack)
                return pack
        waiting = next((each for each in self.packs() if each.state == "loaded"), None)
        if waiting is not None:
            raise self.refuse(f"pack {waiting.pack_id} has not burned", "5.D", "5.F", "burn its first cards")
        raise self.refuse("no pack is in the shoe", "5.C", "5.C", "shuffle and load the next one")

    @property
    def burns(self) -> bool:
        """Whether a shoe serves many rounds and burns cards before the first."""
        return not self.rules.fixed.every_round

    def number_after(self, round_id: int) -> None:
        """Rounds are numbered on from here: a device takes no number twice."""
        if self.memory.round is None:
            self.memory.rounds = max(self.memory.rounds, round_id)

    def begin(self, pack: PackState, simulated: bool) -> None:
        """A new round."""
        self.memory.rounds += 1
        self.memory.round = RoundState(
            self.memory.rounds, pack.pack_id, self.memory.method, simulated=simulated
        )

    def place_wager(self, by: Attribution, seat: int, wager: str, cents: int) -> None:
        """A wager is made, or raised to this amount."""
        self._must_be_open("place_wager", by, seat, wager)
        check_seat(self.rules, seat)
        if seat not in self.memory.seated:
            raise WagerRefused(
                seat, wager, "nobody sits there", self.clause("7.B", "2.A"), "only seated players wager"
            )
        made = self.round.wagers.get(seat, {})
        check_wager(self.rules, seat, wager, cents, {**made, wager: cents})
        self.round.wagers[seat] = {**made, wager: cents}
        self.move("place_wager", by)

    def withdraw_wager(self, by: Attribution, seat: int, wager: str) -> None:
        """A wager is taken back; one that others need cannot be."""
        self._must_be_open("withdraw_wager", by, seat, wager)
        made = dict(self.round.wagers.get(seat, {}))
        if made.pop(wager, None) is None:
            raise WagerRefused(
                seat, wager, "was not made", self.clause("7.D", "7.D"), "look at the layout again"
            )
        check_wagers(self.rules, {seat: made})
        self.round.wagers[seat] = made
        if not made:
            del self.round.wagers[seat]
        self.move("withdraw_wager", by)

    def _must_be_open(self, action: str, by: Attribution, seat: int, wager: str) -> None:
        if self.state in ("dealing", "counting", "revealing", "drawing", "settling"):
            simulated = self.memory.round is not None and self.memory.round.simulated
            clause = "MDM 13.D" if simulated else self.rules.fixed.closed_clause
            why = "in a simulated round" if simulated else 'after "no more bets"'
            raise WagerRefused(seat, wager, why, clause, "wait for the next round")
        self.check(action, by)

    def return_bets(self, by: Attribution) -> None:
        """Bets that were opened are given back before any card; the round does not take place."""
        self.check("return_bets", by)
        for seat in list(self.round.wagers):
            self._return(seat)
        self.memory.round = None
        self.memory.rounds -= 1
        self.move("return_bets", by)

    def _return(self, seat: int) -> None:
        for wager, cents in self.round.wagers.pop(seat, {}).items():
            self.order("return-wager", seat=seat, wager=wager, cents=cents)

    def no_more_bets(self, by: Attribution) -> None:
        """Bets are closed: the progressive is locked, the device told how many hands there are."""
        self.check("no_more_bets", by)
        playing = self.round
        if not playing.wagers:
            raise self.refuse("a round without wagers", "7.C", "8.B", "wait for one, or go idle")
        pack = self.pack(playing.pack_id)
        if pack.state != ("playing" if self.burns else "loaded"):
            raise self.refuse(f"pack {pack.pack_id} is no longer in the shoe", "5.C", "5.C", "load it again")
        self.check_device()
        self.check_hours(pack, by)
        check_wagers(self.rules, playing.wagers)
        if self.rules.fixed.every_round:
            self.move_pack("play", pack, by)
        self.memory.last_pack = pack.pack_id
        if self.rules.royal_9 is not None:
            self.order("lock-progressive", round=playing.round_id)
        playing.dealt = min(self.memory.carried, MOST_CARRIED)
        self.memory.carried -= playing.dealt
        self.order("announce", text="no more bets")
        self.move("no_more_bets", by)
        self.order_cards(opening=True)

    def order_cards(self, opening: bool = False) -> None:
        """Ask the automated shoe, where it deals, for what comes next: a stack, or a card of mini."""
        playing = self.round
        if playing.method != DealingMethod.AUTOMATED_SHOE:
            return
        turns = self.turns()
        if opening:
            hands = len(turns) if self.three_card else MINI_HANDS
            self.order("open-round", round=playing.round_id, pack=playing.pack_id, hands=hands)
        if self.three_card:
            stack = len(playing.stacks) + 1
            self.order("dispense-stack", round=playing.round_id, stack=stack, to=turns[stack - 1])
        else:
            to = ("player", "banker")[playing.dealt % MINI_HANDS]
            self.order("dispense-card", round=playing.round_id, card=playing.dealt + 1, to=to)

    def turns(self) -> list[int]:
        """Whom cards go to: the betting seats clockwise from the dealer's left, then the dealer (0)."""
        return [seat for seat in self.rules.clockwise() if seat in self.round.wagers] + [0]
