"""Void rounds: all wagers are returned, and cards that lie in the device must come out (MD3 13, MDM 13)."""

from sabot_table.procedure.context import TableContext
from sabot_table.procedure.vocabulary import Attribution
from sabot_table.rule_texts import DealingMethod
from sabot_table.settlement import settle_void
from sabot_table.text_vocabulary import EVERY_GROUND


class VoidProcedure:
    """Ends a round without a result."""

    def __init__(self, table: TableContext) -> None:
        self.table = table

    def void_round(
        self,
        by: Attribution,
        key: str,
        why: str,
        *,
        cards_in_device: bool = False,
        device_knows: bool = False,
        action: str = "void",
    ) -> None:
        """Void the round in play by the clause of this table's text, and return all wagers.

        ``key``: a reason of a void, or the ground of a count (`text_vocabulary`).
        ``cards_in_device``: cards must come out of the device before the round is collected.
        ``device_knows``: the device voided the round itself, so nobody has to tell it.
        """
        playing = self.table.round
        text = self.table.rules.fixed
        playing.void_clause = text.clause(key) if key in EVERY_GROUND else text.void_clause(key)
        playing.void_why = why
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
        table.check_round(round_id, "a void", "shoe_failed")
        if table.state == "voided":
            return  # the table knew before the device
        if reason == "too_few_cards" and table.has("too_few_cards"):
            self.too_few_cards(by)
            return
        table.check("void", by)
        why = reason.replace("_", " ")
        self.void_round(by, reason, why, cards_in_device=True, device_knows=True)

    def not_opened(self, by: Attribution, round_id: int, why: str) -> None:
        """The device did not open the round, so it has dealt none of its cards (MD3 13.D)."""
        self.table.check_round(round_id, "a round that was not opened", "shoe_failed")
        self.table.check("void", by)
        self.void_round(by, "shoe_failed", f"the machine opened no round: {why}", device_knows=True)

    def too_few_cards(self, by: Attribution) -> None:
        """The shoe cannot finish the round: void, and a new set of cards (MDM 13.E)."""
        self.table.check("too_few_cards", by)
        if self.table.burns:
            self.table.memory.cover = "over"
        self.void_round(by, "too_few_cards", "too few cards", action="too_few_cards")

    def wrong_number(self, by: Attribution, why: str) -> None:
        """Somebody has a wrong number of cards: void, and shuffled again (MD3 13.C)."""
        self.table.check("wrong_number", by)
        automated = self.table.round.method == DealingMethod.AUTOMATED_SHOE and self.table.state == "dealing"
        self.void_round(by, "wrong_number", why, cards_in_device=automated, action="wrong_number")

    def void_by_floor(self, by: Attribution, why: str) -> None:
        """The floor voids the round in play."""
        self.table.check("void", by)
        dealt_by_device = self.table.round.method == DealingMethod.AUTOMATED_SHOE
        inside = dealt_by_device and self.table.state in ("dealing", "counting")
        self.void_round(by, "floor_order", why, cards_in_device=inside)

    def shoe_failed(self, by: Attribution, why: str) -> None:
        """The automated shoe jammed, stopped or did not deal: void, its cards come out (MD3 13.D)."""
        self.table.check("shoe_failed", by)
        if self.table.round.method != DealingMethod.AUTOMATED_SHOE:
            do = f"this round is dealt by {self.table.method}"
            raise self.table.refuse("a failure of the automated shoe", "shoe_failed", do)
        self.void_round(by, "shoe_failed", why, cards_in_device=True, action="shoe_failed")

    def empty_device(self, by: Attribution) -> None:
        """After a failure: the cards came out of the device, to be shuffled with those dealt (MD3 13.D)."""
        self.table.check("empty_device", by)
        self.table.round.cards_in_device = False
        self.table.move("empty_device", by)
