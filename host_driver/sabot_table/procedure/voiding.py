"""Void rounds: every wager goes back, and where the cards go."""

from sabot_table.procedure.memory import PackState
from sabot_table.procedure.packs import PackProcedure
from sabot_table.procedure.vocabulary import Attribution
from sabot_table.progressive import Meters
from sabot_table.settlement import settle_void


class VoidProcedure(PackProcedure):
    """What ends a round without a result."""

    def void_round(
        self,
        by: Attribution,
        md3: str,
        mdm: str,
        why: str,
        *,
        cards_in_device: bool = False,
        device_knows: bool = False,
        action: str = "void",
    ) -> None:
        """The round in play is void by this clause: all wagers go back, and the device is told."""
        playing = self.round
        playing.void_clause, playing.void_why = self.clause(md3, mdm), why
        playing.cards_in_device = cards_in_device
        if cards_in_device and not self.rules.fixed.every_round:
            self.memory.cover = "over"  # what comes out of a failed shoe is a shoe no more (MDM 13.E(2))
        settled = settle_void(self.rules, playing.wagers, playing.void_clause, why, self.meters())
        playing.settlement = settled.to_json()
        self.move(action, by)
        if not device_knows:
            self.order("void-round", round=playing.round_id, clause=playing.void_clause, why=why)
        for step in settled.steps():
            self.order("return-wager", seat=step.seat, wager=step.wager, cents=step.cents)

    def check_discards(self, pack: PackState) -> None:
        """Refuse cards of a second pack in the discard rack (MD3 3.B(5), MDM 3.B(5))."""
        other = next((each for each in self.packs() if each is not pack and each.state == "discards"), None)
        if other is not None:
            what = f"pack {pack.pack_id} into the rack that holds pack {other.pack_id}"
            raise self.refuse(what, "3.B", "3.B", f"take pack {other.pack_id} to the shuffler first")

    def meters(self) -> Meters | None:
        """The progressive meters as they stand."""
        if self.rules.royal_9 is None:
            return None
        if self.memory.meters is None:
            return Meters.initial(self.rules.royal_9)
        return Meters.restore(self.rules.royal_9, self.memory.meters)
