"""Rounds: which one is open, how far it is, and what its count says in the end. Pure decisions.

A round is dealt in stacks, one to each betting hand and one to the dealer; then the stub comes out and all
cards must be there again (`MD3 10.B`, `10.C`).
"""

from sabot_firmware import figures
from sabot_firmware.shoe import STACK_CARDS

# What a round's count says
CORRECT = 1  # 52 cards, three in every stack
MISDEALT = 2  # 52 cards, but a stack had more or fewer than three
CARD_MISSING = 3
CARD_EXTRA = 4


class Round:
    """One round on one deck."""

    def __init__(self, round_id: int, deck_id: int, hands: int) -> None:
        self.round_id = round_id
        self.deck_id = deck_id
        self.hands = hands
        self.stacks: list[int] = []  # cards counted in each
        self.void = ""  # why it is void, once it is

    def next_stack(self) -> int | None:
        """The number of the stack to deal next, from 1; None when every hand has one."""
        return len(self.stacks) + 1 if len(self.stacks) < self.hands else None

    def verdict(self, stub: int, expected: int = figures.DECK_CARDS) -> int:
        """What stacks and stub together say."""
        count = sum(self.stacks) + stub
        if count < expected:
            return CARD_MISSING
        if count > expected:
            return CARD_EXTRA
        for cards in self.stacks:
            if cards != STACK_CARDS:
                return MISDEALT
        return CORRECT
