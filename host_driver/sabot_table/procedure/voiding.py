"""Void rounds: all wagers are returned, and cards that lie in the device must come out (MD3 13, MDM 13)."""

from sabot_table.procedure.context import TableContext
from sabot_table.procedure.vocabulary import Attribution
from sabot_table.rule_texts import DealingMethod
from sabot_table.settlement import settle_void

# The clause of each reason for which a device voids a round; 13.D for all others.
DEVICE_VOIDS = {
    "face_up_card": "13.A",
    "wrong_number": "13.C",
    "stack_disturbed": "13.C",
    "floor_order": "13.C",
}


class VoidProcedure:
    """Ends a round without a result."""

    def __init__(self, table: TableContext) -> None:
        self.table = table

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
        """Void the round in play by the clause of this table's text, and return all wagers.

        ``cards_in_device``: cards must come out of the device before the round is collected.
        ``device_knows``: the device voided the round itself, so nobody has to tell it.
        """
        playing = self.table.round
        playing.void_clause, playing.void_why = self.table.clause(md3, mdm), why
        playing.cards_in_device = cards_in_device
        if cards_in_device and not self.table.rules.fixed.every_round:
            self.table.memory.cover = (
                "over"  # what comes out of a failed shoe is a shoe no more (MDM 13.E(2))
            )
        settled = settle_void(self.table.rules, playing.wagers, playing.void_clause, why, self.table.meters())
        playing.settlement = settled.to_json()
        self.table.move(action, by)
        if not device_knows:
            self.table.order("void-round", round=playing.round_id, clause=playing.void_clause, why=why)
        for step in settled.steps():
            self.table.order("return-wager", seat=step.seat, wager=step.wager, cents=step.cents)

    def voided_by_device(self, by: Attribution, round_id: int, reason: str) -> None:
        """The device voided its round; ``reason`` is its own name for why."""
        table = self.table
        table.check_round(round_id, "a void", "13.D", "13.E")
        if table.state == "voided":
            return  # the table knew before the device
        if reason == "too_few_cards" and not table.three_card:
            self.too_few_cards(by)
            return
        table.check("void", by)
        clause, why = DEVICE_VOIDS.get(reason, "13.D"), reason.replace("_", " ")
        self.void_round(by, clause, "13.E", why, cards_in_device=True, device_knows=True)

    def too_few_cards(self, by: Attribution) -> None:
        """The shoe cannot finish the round: void, and a new set of cards (MDM 13.E)."""
        self.table.check("too_few_cards", by)
        self.table.only_mini("too few cards", "13.E")
        if self.table.burns:
            self.table.memory.cover = "over"
        self.void_round(by, "13.C", "13.E", "too few cards", action="too_few_cards")

    def wrong_number(self, by: Attribution, why: str) -> None:
        """Somebody has a wrong number of cards: void, and shuffled again (MD3 13.C)."""
        self.table.check("void", by)
        automated = self.table.round.method == DealingMethod.AUTOMATED_SHOE and self.table.state == "dealing"
        self.void_round(by, "13.C", "13.E", why, cards_in_device=automated)

    def shoe_failed(self, by: Attribution, why: str) -> None:
        """The automated shoe jammed, stopped or did not deal: void, its cards come out (MD3 13.D)."""
        self.table.check("void", by)
        if self.table.round.method != DealingMethod.AUTOMATED_SHOE:
            do = f"this round is dealt by {self.table.method}"
            raise self.table.refuse("a failure of the automated shoe", "13.D", "13.E", do)
        self.void_round(by, "13.D", "13.E", why, cards_in_device=True)

    def empty_device(self, by: Attribution) -> None:
        """After a failure: the cards came out of the device, to be shuffled with those dealt (MD3 13.D)."""
        self.table.check("empty_device", by)
        self.table.round.cards_in_device = False
        self.table.move("empty_device", by)
