"""One round: its stacks, and the verdict of its count. Pure decisions.

A round is dealt in stacks, one for each betting hand and one for the dealer. Then the stub is ejected, and
all cards of the deck must be there again (`MD3 10.B`, `10.C`). A round dealt card by card consists of draws.
"""

STACK_CARDS = 3  # unless the game says otherwise

# What a round's count says
CORRECT = 1  # all cards, as many as it must be in every stack
MISDEALT = 2  # all cards, but a stack had more or fewer
CARD_MISSING = 3
CARD_EXTRA = 4
UNPROVED = 5  # dealt card by card: nothing is proved before the shoe's end


class Round:
    """One round on one deck."""

    def __init__(self, round_id: int, deck_id: int, hands: int, stack_cards: int = STACK_CARDS) -> None:
        self.round_id = round_id
        self.deck_id = deck_id
        self.hands = hands  # 0 until bets are closed
        self.stack_cards = stack_cards
        self.bets_closed = False  # MD3 10.A: nothing is dealt before
        self.simulated = False  # a round without wagers
        self.revealed = False  # the hands lie open: their faces may be told
        self.stacks: list[int] = []  # cards counted in each stack or draw
        self.first_card = 0  # cards of the deck that were dealt before it

    def next_stack(self) -> int | None:
        """The number of the stack to deal next, from 1; None when every hand has one."""
        return len(self.stacks) + 1 if len(self.stacks) < self.hands else None

    def verdict(self, stub: int, expected: int) -> int:
        """The verdict that stacks and stub give together."""
        count = sum(self.stacks) + stub
        if count < expected:
            return CARD_MISSING
        if count > expected:
            return CARD_EXTRA
        for cards in self.stacks:
            if cards != self.stack_cards:
                return MISDEALT
        return CORRECT
