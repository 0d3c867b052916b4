"""Seats and wagers: who sits, what lies on the layout, and when it is closed (MD3 7, MDM 7, WA3 wagers)."""

from collections.abc import Iterable

from sabot_table.errors import WagerRefused
from sabot_table.procedure.context import TableContext
from sabot_table.procedure.equipment import EquipmentProcedure
from sabot_table.procedure.memory import PackState, RoundState
from sabot_table.procedure.packs import PackProcedure
from sabot_table.procedure.vocabulary import Attribution
from sabot_table.rule_texts import DealingMethod
from sabot_table.wager_acceptance import check_seat, check_wager, check_wagers

MOST_CARRIED = 3  # of the four cards of a hand, when more were drawn before it


class BettingProcedure:
    """From an empty layout to "no more bets"."""

    def __init__(self, table: TableContext, packs: PackProcedure, equipment: EquipmentProcedure) -> None:
        self.table = table
        self._packs = packs
        self._equipment = equipment

    def sit(self, by: Attribution, seat: int) -> None:
        """A player takes a seat."""
        self.table.check("sit", by)
        check_seat(self.table.rules, seat)
        if seat in self.table.memory.seated:
            raise self.table.refuse(f"seat {seat} is taken", "sit", "choose another")
        if seat in self.table.memory.marked:
            what = f"seat {seat}, whose last player owes vigorish,"
            raise self.table.refuse(what, "collect_vigorish", "collect it first: its marker stays until then")
        self.table.memory.seated = sorted([*self.table.memory.seated, seat])
        self.table.move("sit", by)

    def leave(self, by: Attribution, seat: int) -> None:
        """A player leaves: marked vigorish is due and stays owed until it is collected (MDM 12.D(2)(b)).

        Wagers in a round stay for the floor.
        """
        self.table.check("leave", by)
        if seat not in self.table.memory.seated:
            raise self.table.refuse(f"nobody sits at seat {seat}", "sit", "look at the seats again")
        self.table.memory.seated.remove(seat)
        owed = self.table.memory.marked.get(seat, 0)
        if owed:
            self.table.order("collect-vigorish", seat=seat, cents=owed)
        if self.table.state == "betting":
            self._return(seat)
        self.table.move("leave", by)

    def collect_vigorish(self, by: Attribution, seat: int) -> int:
        """The dealer collects what a seat owes; returns the cents."""
        self.table.check("collect_vigorish", by)
        if seat not in self.table.memory.marked:
            raise self.table.refuse(
                f"seat {seat} owes no vigorish", "collect_vigorish", "look at the markers again"
            )
        self.table.move("collect_vigorish", by)
        return self.table.memory.marked.pop(seat)

    def open_bets(self, by: Attribution) -> None:
        """Wagers may be made; refused while anything stands against a round."""
        self.table.check("open_bets", by)
        pack = self._packs.next_pack()
        self._equipment.check_device()
        self._packs.check_packs()
        self._packs.check_hours(pack, by)
        if self.table.method is DealingMethod.HAND and pack.shuffled_by != "machine":
            raise self.table.refuse(
                "dealing cards from the hand that no machine shuffled", "hand_dealing", "use a shoe"
            )
        if self.table.memory.exposed:
            shown = ", ".join(self.table.memory.exposed)
            what = f"wagers after {shown} was seen"
            raise self.table.refuse(what, "card_exposed", "play the simulated round first")
        if self.table.memory.cover == "announce":
            what = "a hand before 'last hand' is announced"
            raise self.table.refuse(what, "announce_last_hand", "announce it")
        if self.table.memory.cover == "over":
            raise self.table.refuse(
                "another hand from this shoe", "announce_last_hand", "end the shoe and load the next"
            )
        self.begin(pack, simulated=False)
        self.table.move("open_bets", by)

    def begin(self, pack: PackState, simulated: bool) -> None:
        """A new round."""
        self.table.memory.rounds += 1
        self.table.memory.round = RoundState(
            self.table.memory.rounds, pack.pack_id, self.table.memory.method, simulated=simulated
        )

    def place_wager(self, by: Attribution, seat: int, wager: str, cents: int) -> None:
        """A wager is made, or raised to this amount."""
        self._must_be_open("place_wager", by, seat, wager)
        check_seat(self.table.rules, seat)
        if seat not in self.table.memory.seated:
            raise WagerRefused(
                seat, wager, "nobody sits there", self.table.clause("sit"), "only seated players wager"
            )
        if not self.table.round.wagers_known:
            what, do = "a wager beside seats whose wagers are not known", "tell all wagers, or only the seats"
            raise self.table.refuse(what, "place_wager", do)
        made = self.table.round.wagers.get(seat, {})
        self.table.policy.check_most(self.table.rules, seat, {**made, wager: cents})
        check_wager(self.table.rules, seat, wager, cents, {**made, wager: cents})
        self.table.round.wagers[seat] = {**made, wager: cents}
        self.table.move("place_wager", by)

    def place_seats(self, by: Attribution, seats: Iterable[int]) -> None:
        """These seats bet, and nobody tells what: their wagers are not known in this round."""
        self.table.check("place_wager", by)
        betting = sorted(set(seats))
        for seat in betting:
            check_seat(self.table.rules, seat)
            if seat not in self.table.memory.seated:
                why, do = "nobody sits there", "only seated players wager"
                raise WagerRefused(seat, "any wager", why, self.table.clause("sit"), do)
        if self.table.rules.royal_9 is not None:
            what, do = "seats without wagers beside a progressive", "tell all wagers: its meters need them"
            raise self.table.refuse(what, "place_wager", do)
        if any(self.table.round.wagers.values()):
            what, do = "seats without wagers beside known ones", "tell all wagers, or only the seats"
            raise self.table.refuse(what, "place_wager", do)
        self.table.round.wagers = {seat: {} for seat in betting}
        self.table.round.wagers_known = not betting
        self.table.move("place_wager", by)

    def withdraw_wager(self, by: Attribution, seat: int, wager: str) -> None:
        """A wager is taken back; one that others need cannot be."""
        self._must_be_open("withdraw_wager", by, seat, wager)
        made = dict(self.table.round.wagers.get(seat, {}))
        if made.pop(wager, None) is None:
            raise WagerRefused(
                seat, wager, "was not made", self.table.clause("withdraw_wager"), "look at the layout again"
            )
        check_wagers(self.table.rules, {seat: made})
        self.table.round.wagers[seat] = made
        if not made:
            del self.table.round.wagers[seat]
        self.table.move("withdraw_wager", by)

    def _must_be_open(self, action: str, by: Attribution, seat: int, wager: str) -> None:
        if self.table.state in ("dealing", "counting", "revealing", "drawing", "settling"):
            simulated = self.table.memory.round is not None and self.table.memory.round.simulated
            clause = self.table.clause("begin_simulated" if simulated else "bets_closed")
            why = "in a simulated round" if simulated else 'after "no more bets"'
            raise WagerRefused(seat, wager, why, clause, "wait for the next round")
        self.table.check(action, by)

    def return_bets(self, by: Attribution) -> None:
        """Bets that were opened are given back before any card; the round does not take place."""
        self.table.check("return_bets", by)
        for seat in list(self.table.round.wagers):
            self._return(seat)
        self.table.memory.round = None
        self.table.memory.rounds -= 1
        self.table.move("return_bets", by)

    def _return(self, seat: int) -> None:
        for wager, cents in self.table.round.wagers.pop(seat, {}).items():
            self.table.order("return-wager", seat=seat, wager=wager, cents=cents)

    def no_more_bets(self, by: Attribution) -> None:
        """Bets are closed: the progressive is locked, and the pack is in play."""
        self.table.check("no_more_bets", by)
        playing = self.table.round
        if not playing.wagers:
            raise self.table.refuse("a round without wagers", "no_more_bets", "wait for one, or go idle")
        pack = self.table.pack(playing.pack_id)
        if pack.state != ("playing" if self.table.burns else "loaded"):
            raise self.table.refuse(f"pack {pack.pack_id} is no longer in the shoe", "load", "load it again")
        self._equipment.check_device()
        self._packs.check_hours(pack, by)
        check_wagers(self.table.rules, playing.wagers)
        for seat, made in playing.wagers.items():
            self.table.policy.check_most(self.table.rules, seat, made)
            self.table.policy.check_least(self.table.rules, seat, made)
        if self.table.rules.fixed.every_round:
            self.table.move_pack("play", pack, by)
        self.table.memory.last_pack, self.table.memory.delivered = pack.pack_id, 0
        if self.table.rules.royal_9 is not None:
            self.table.order("lock-progressive", round=playing.round_id)
        playing.dealt = min(self.table.memory.carried, MOST_CARRIED)
        self.table.memory.carried -= playing.dealt
        self.table.move("no_more_bets", by)
