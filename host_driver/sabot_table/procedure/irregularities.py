"""Cards face up or drawn in error, which both games have and treat differently (MD3 13.A-C, MDM 13.A, D)."""

from sabot_table.cards import Card
from sabot_table.procedure.context import TableContext
from sabot_table.procedure.mini_procedure import MiniProcedure
from sabot_table.procedure.packs import PackProcedure
from sabot_table.procedure.vocabulary import Attribution
from sabot_table.procedure.voiding import VoidProcedure
from sabot_table.rule_texts import DealingMethod


class IrregularityProcedure:
    """Takes the dealer's reports of cards that came out as they should not."""

    def __init__(
        self, table: TableContext, packs: PackProcedure, mini: MiniProcedure, voiding: VoidProcedure
    ) -> None:
        self.table = table
        self._packs = packs
        self._mini = mini
        self._voiding = voiding

    def face_up_card(self, by: Attribution, seen: Card | None = None) -> None:
        """A card lies face up in the shoe: void (MD3 13.A); in mini baccarat it is a card that was seen."""
        if not self.table.three_card:
            if seen is None:
                raise self.table.refuse(
                    "a face-up card without its name", "card_exposed", "say which card it is"
                )
            self._mini.card_exposed(by, seen)
            return
        self.table.check("face_up_card", by)
        inside = self.table.round.method == DealingMethod.AUTOMATED_SHOE
        why = "a card lay face up"
        self._voiding.void_round(by, "face_up_card", why, cards_in_device=inside, action="face_up_card")

    def drawn_in_error(self, by: Attribution, seen: Card | None = None) -> None:
        """A card too many was drawn: unseen it is the next card; seen it is another matter."""
        self.table.check("drawn_in_error", by)
        if not self.table.three_card:
            if seen is not None:
                self._mini.card_exposed(by, seen)
                return
            self._packs.check_shoe("a card drawn in error")
            self.table.memory.carried += 1
            self.table.move("drawn_in_error", by)
            return
        if self.table.state != "dealing":
            raise self.table.refuse(
                "a card drawn while none is dealt", "drawn_in_error", "have the floor decide"
            )
        if self.table.round.method == DealingMethod.AUTOMATED_SHOE:
            self._voiding.void_round(
                by, "wrong_number", "a card too many came out of the shoe", cards_in_device=True
            )
        elif seen is not None:
            self._voiding.void_round(by, "face_up_card", f"{seen} was seen")
        else:
            self.table.round.reserved += 1
            self.table.move("drawn_in_error", by)
