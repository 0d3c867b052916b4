"""A table for tests: decks, rounds and the floor's key, on any device."""

import time
from typing import TypeVar

from sabot_driver import Client, Credential, ReceivedEvent
from sabot_protocol.host.message_base import Message
from sabot_protocol.host.messages import (
    Back,
    CloseBets,
    DeckCounted,
    DispenseStack,
    EndRound,
    OpenRound,
    RegisterDeck,
    Role,
    RoundEnded,
    ShoeChanged,
    ShoeState,
    Shuffle,
    ShufflerChanged,
    ShufflerState,
    StackDispensed,
)

FLOOR_KEY = bytes(range(1, 33))
FLOOR_PERSON = 1234
FLOOR = Credential(Role.FLOOR, FLOOR_KEY, FLOOR_PERSON, 3)
WAIT_S = 120.0  # a limit for what fails, not a measure
LAST = 12  # events that a failure shows
M = TypeVar("M", bound=Message)


class Table:
    """Drives a device as a table's program does."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.decks = {1: Back.RED, 2: Back.BLUE}
        self.round_id = 0

    def floor(self) -> None:
        """The floor stands at the table."""
        if FLOOR.slot not in self.client.key_slots().slots:
            self.client.set_key(Role.FLOOR, FLOOR_KEY, FLOOR_PERSON, FLOOR.slot)

    def wait_for(self, kind: type[M], after: int, **fields: object) -> M:
        """The first event of a kind after a place in the journal, with these values."""
        ends = time.monotonic() + WAIT_S
        for event in self.client.events(after, timeout=WAIT_S):
            message = event.message if isinstance(event, ReceivedEvent) else None
            if isinstance(message, kind) and all(
                getattr(message, name) == value for name, value in fields.items()
            ):
                return message
            if time.monotonic() > ends:
                break
        last = [str(event) for event in self.client.events(0, timeout=0)][-LAST:]
        raise AssertionError("\n".join([f"no {kind.NAME} with {fields} came; the last that did:", *last]))

    @property
    def now(self) -> int:
        """The newest place in the journal."""
        return self.client.loop.rows

    def register(self) -> None:
        """Both decks come to the table."""
        self.floor()
        for deck_id, back in self.decks.items():
            self.client.ask(RegisterDeck(deck_id, back, int(time.time())), by=FLOOR)

    def shuffle(self, deck_id: int) -> DeckCounted:
        """Shuffle a deck; how it was counted."""
        here = self.now
        self.client.ask(Shuffle(deck_id))
        return self.wait_for(DeckCounted, here, deck_id=deck_id)

    def open(self) -> None:
        """Both decks shuffled, one in the shoe and one on the shelf."""
        here = self.now
        self.register()
        self.shuffle(1)
        self.wait_for(ShoeChanged, here, state=ShoeState.READY, deck_id=1)
        self.shuffle(2)
        self.wait_for(ShufflerChanged, here, state=ShufflerState.STORED, deck_id=2)

    def open_round(self, hands: int = 3, deck_id: int = 1) -> int:
        """A new round."""
        self.round_id += 1
        self.client.ask(OpenRound(self.round_id, deck_id))
        self.client.ask(CloseBets(self.round_id, hands))
        return self.round_id

    def stack(self, stack: int) -> StackDispensed:
        """Dispense a stack and wait until it was taken."""
        here = self.now
        self.client.ask(DispenseStack(self.round_id, stack))
        told = self.wait_for(StackDispensed, here, round_id=self.round_id, stack=stack)
        self.wait_for(ShoeChanged, here, state=ShoeState.ROUND_OPEN)
        return told

    def end_round(self) -> RoundEnded:
        """End the round and wait until the other deck is in the shoe."""
        here = self.now
        self.client.ask(EndRound(self.round_id))
        ended = self.wait_for(RoundEnded, here, round_id=self.round_id)
        self.wait_for(ShoeChanged, here, state=ShoeState.READY)
        return ended

    def play(self, deck_id: int, hands: int = 3) -> RoundEnded:
        """A whole round, after which its deck is shuffled again."""
        self.open_round(hands, deck_id)
        for stack in range(1, hands + 1):
            self.stack(stack)
        ended = self.end_round()
        self.shuffle(deck_id)
        return ended
